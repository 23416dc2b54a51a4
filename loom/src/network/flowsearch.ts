import type { FlowEntry } from "../api/types.gen";
import { actionsText, matchText } from "./entry";

/** searchText is what a search for entries looks at. */
export function searchText(f: FlowEntry): string {
  return `switch=${f.dpid} table=${f.table ?? 0} priority=${f.priority ?? 0} owner=${f.owner || "unknown"} cookie=0x${f.cookie} ${matchText(f)} ${actionsText(f)}`.toLowerCase();
}

/** fits reports whether every word is in a text; addresses as people and switches write them are the same. */
export function fits(text: string, query: string): boolean {
  return query.toLowerCase().split(/\s+/).filter(Boolean).every((w) => text.includes(w) || text.includes(plain(w)));
}

/** plain writes an Ethernet address as switches do, and a cookie without its leading zeros as it is listed. */
export function plain(word: string): string {
  const hex = word.replace(/[-.:]/g, "");
  if (/^[0-9a-f]{12}$/.test(hex) && /[-.:]/.test(word)) return hex.match(/../g)!.join(":");
  return word;
}
