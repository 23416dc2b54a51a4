import type { ConfigChange } from "../api/types.gen";

/** InForce is a text in force, or on trial yet: its number for the controller, and as the history shows it; last is the newest of the history. */
export interface InForce {
  text: string;
  number: number;
  shown: number;
  trial?: boolean;
  last?: { number?: string; state?: string; error?: string };
}

/** Draft is a text that is being written, and the one in force that it is made from. */
export interface Draft {
  text: string;
  base: string;
}

/** Outcome is what a change does, or did; pending is the number that is being applied yet. */
export interface Outcome {
  said: string[];
  pending?: string;
}

/** Problem is what is wrong with a line. */
export interface Problem {
  line: number;
  text: string;
}

/** linesOf returns what an error of the controller says of lines: SOURCE:LINE: TEXT, in lines of their own. */
export function linesOf(error: string): Problem[] {
  return [...error.matchAll(/^[^\n:]*?:(\d+): (.+)$/gm)].map((m) => ({ line: Number(m[1]), text: m[2] }));
}

/** configChange says one difference between two configurations. */
export function configChange(c: ConfigChange): string {
  const old = (c.old ?? "").trim();
  const now = (c.new ?? "").trim();
  const what = old && now ? `${old} → ${now}` : now ? `new: ${now}` : `no longer ${old}`;
  const effect = c.effect === "restart" ? "; the service is started again" : c.effect === "live" ? "; taken over while it runs" : "";
  return `${c.section}.${c.key}: ${what}${effect}${c.worker ? ` (worker ${c.worker})` : ""}`;
}

/** auditPage is how many records of the audit log are read at once. */
export const auditPage = 200;

/** auditPath is the path of the audit log with filters; times are as 15m, 2h, 1d (ago) or a time. */
export function auditPath(f: { who: string; method: string; since: string; before: string }, now: number): string {
  const query = new URLSearchParams({ limit: String(auditPage) });
  for (const name of ["who", "method"] as const) if (f[name].trim()) query.set(name, f[name].trim());
  for (const name of ["since", "before"] as const) if (f[name].trim()) query.set(name, timeOf(f[name].trim(), now));
  return "v1/audit?" + query.toString();
}

function timeOf(text: string, now: number): string {
  const ago = /^(\d+)\s*([smhd])$/.exec(text);
  if (ago) return new Date(now - Number(ago[1]) * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[ago[2] as "s"]!).toISOString();
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new Error(`${text}: want 15m, 2h, 1d or a time such as 2026-01-31 12:00`);
  // The controller's own times are finer than those of JavaScript.
  return /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(text) ? text : new Date(at).toISOString();
}

/** sorted returns a value whose objects have their names in order, so that equal ones are the same JSON. */
export function sorted(v: unknown): unknown {
  if (Array.isArray(v)) return v.map(sorted);
  if (!v || typeof v !== "object") return v;
  return Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)).map(([n, x]) => [n, sorted(x)]));
}
