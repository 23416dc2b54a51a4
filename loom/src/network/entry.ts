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
  if (f.goto_table) parts.push(`goto table ${f.goto_table}`);
  return parts.length === 0 ? "drop" : parts.join(", ");
}
