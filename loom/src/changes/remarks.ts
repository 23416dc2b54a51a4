// What a dry run cannot say: a change that is in order, and yet has no effect, or not yet.

import { titled, type Known } from "../api/known";
import { actionsText } from "../network/entry";
import type { FirewallRule, FlowEntry } from "../api/types.gen";

/** dpidOf returns a switch's number as the controller writes it. */
const dpidOf = (text: string | undefined) => (text ?? "").trim().toLowerCase().padStart(16, "0");

/** away says that a switch is not there to take something; "" if it is. */
export function away(dpid: string | undefined, known: Known): string {
  if (!dpid?.trim()) return "";
  const s = known.switches.get(dpidOf(dpid));
  return s?.connected ? "" : `switch ${titled(known, dpidOf(dpid))} is ${s ? "not connected" : "not known"} now: it gets this once it is connected`;
}

/** flowRemarks says what is odd about a flow rule. */
export function flowRemarks(f: FlowEntry, known: Known): string[] {
  const gone = away(f.dpid, known);
  if (gone) return [gone];
  const ports = known.ports.get(dpidOf(f.dpid)) ?? new Map();
  const named = [...(f.actions ?? []), ...(f.write_actions ?? [])].map((a) => /^output:(\d+)$/.exec(a)?.[1]);
  const wanted = [...new Set([f.match?.in_port, ...named])].filter((p): p is string => !!p && /^\d+$/.test(p));
  const out = wanted.filter((p) => !ports.has(Number(p))).map((p) => `switch ${titled(known, dpidOf(f.dpid))} has no port ${p} now`);
  if (Object.keys(f.match ?? {}).length === 0 && actionsText(f) === "drop") out.push("it drops every packet that no entry of a higher priority in this table is about");
  return out;
}

/** before reports whether the first of two firewall rules is asked first. */
const before = (a: FirewallRule, b: FirewallRule) => (a.priority ?? 0) > (b.priority ?? 0) || ((a.priority ?? 0) === (b.priority ?? 0) && (a.id ?? "") < (b.id ?? ""));

/** covers reports whether a rule is about every packet of another; not every such pair is found. */
function covers(a: FirewallRule, b: FirewallRule): boolean {
  const where = (!a.dpid || dpidOf(a.dpid) === dpidOf(b.dpid || "?")) && (!a.tenant || a.tenant === b.tenant) && (!a.vlan || a.vlan === b.vlan);
  return where && Object.entries(a.match ?? {}).every(([k, v]) => b.match?.[k] === v);
}

/** most bounds the rules that are compared with each other. */
const most = 1000;

/** hidden returns, of rules that never decide as another comes first for all of their packets, that other one. */
export function hidden(rules: FirewallRule[]): Map<string, string> {
  const out = new Map<string, string>();
  if (rules.length > most) return out;
  for (const b of rules) {
    const a = rules.find((x) => x.id !== b.id && before(x, b) && covers(x, b));
    if (a) out.set(b.id ?? "", a.id ?? "");
  }
  return out;
}

/** firewallRemarks says what is odd about a rule among others. */
export function firewallRemarks(r: FirewallRule, known: Known, rules: FirewallRule[]): string[] {
  const all = [...rules.filter((x) => x.id !== r.id), r];
  const first = hidden(all).get(r.id ?? "");
  const hides = [...hidden(all)].filter(([, by]) => by === (r.id ?? "")).map(([id]) => id);
  return [
    away(r.dpid, known),
    first === undefined ? "" : `it never decides: ${first} comes first for all of its packets`,
    hides.length === 0 ? "" : `${hides.slice(0, 10).join(", ")} never ${hides.length === 1 ? "decides" : "decide"} then: this comes first for all of their packets`,
  ].filter(Boolean);
}
