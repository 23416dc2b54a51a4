import type { ConfigChange } from "../api/types.gen";

/** configChange says one difference between two configurations. */
export function configChange(c: ConfigChange): string {
  const old = (c.old ?? "").trim();
  const now = (c.new ?? "").trim();
  const what = old && now ? `${old} → ${now}` : now ? `new: ${now}` : `no longer ${old}`;
  const effect = c.effect === "restart" ? "; the service is started again" : c.effect === "live" ? "; taken over while it runs" : "";
  return `${c.section}.${c.key}: ${what}${effect}${c.worker ? ` (worker ${c.worker})` : ""}`;
}

/** auditPath is the path of the audit log with filters; ago is as 15m, 2h, 1d or a time. */
export function auditPath(f: { who: string; method: string; since: string; limit: string }, now: number): string {
  const query = new URLSearchParams();
  for (const name of ["who", "method", "limit"] as const) if (f[name].trim()) query.set(name, f[name].trim());
  const since = sinceTime(f.since.trim(), now);
  if (since) query.set("since", since);
  return "v1/audit" + (query.size > 0 ? "?" + query.toString() : "");
}

function sinceTime(text: string, now: number): string {
  if (!text) return "";
  const ago = /^(\d+)\s*([smhd])$/.exec(text);
  if (ago) return new Date(now - Number(ago[1]) * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[ago[2] as "s"]!).toISOString();
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new Error(`${text}: want 15m, 2h, 1d or a time such as 2026-01-31T12:00:00Z`);
  return new Date(at).toISOString();
}
