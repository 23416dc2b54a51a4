import type { FlowEntry } from "../api/types.gen";

/** matchText writes what an entry matches. */
export function matchText(f: FlowEntry): string {
  const parts = Object.entries(f.match ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return parts.length === 0 ? "everything" : parts.map(([k, v]) => `${k}=${v}`).join(" ");
}

/** actionsText writes what an entry does. */
export function actionsText(f: FlowEntry): string {
  const parts = [...(f.actions ?? [])];
  if (f.meter) parts.unshift(`meter ${f.meter}`);
  if (f.clear_actions) parts.push("clear actions");
  if ((f.write_actions ?? []).length > 0) parts.push(`write ${f.write_actions!.join(", ")}`);
  if (f.metadata) parts.push(`metadata ${f.metadata}`);
  if (f.goto_table) parts.push(`goto table ${f.goto_table}`);
  return parts.length === 0 ? "drop" : parts.join(", ");
}

/** passes reports whether an entry only leads every packet to the next table. */
export const passes = (f: FlowEntry) => Object.keys(f.match ?? {}).length === 0 && actionsText(f) === `goto table ${f.goto_table}`;

/** entryKey is what tells the entries of a switch apart. */
export const entryKey = (f: FlowEntry) => `${f.dpid} ${f.table ?? 0} ${f.priority ?? 0} ${matchText(f)}`;

/** ownersText says how many entries each owner has, the most first. */
export function ownersText(flows: FlowEntry[]): string {
  const by = new Map<string, number>();
  for (const f of flows) by.set(f.owner || "nobody", (by.get(f.owner || "nobody") ?? 0) + 1);
  return [...by].sort((a, b) => b[1] - a[1]).map(([owner, n]) => `${owner} ${n}`).join(", ");
}

/** perSecond returns how many packets a second each entry has met between two readings. */
export function perSecond(before: FlowEntry[], now: FlowEntry[], seconds: number): Map<string, number> {
  const was = new Map(before.map((f) => [entryKey(f), f]));
  const out = new Map<string, number>();
  for (const f of now) {
    const old = was.get(entryKey(f));
    const more = old ? Number(f.packets ?? 0) - Number(old.packets ?? 0) : -1;
    if (more >= 0 && seconds > 0) out.set(entryKey(f), more / seconds);
  }
  return out;
}
