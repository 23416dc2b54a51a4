import { get } from "../api/client";
import { hostKey, hostName, short, type Known } from "../api/known";
import type { Info } from "../api/types.gen";
import { write } from "./route";

/** Found is something that a search has found, and its address in Loom. */
export interface Found {
  kind: string;
  title: string;
  address: string;
}

/** commands are what the pages can do, by name. */
export const commands: Found[] = [
  { kind: "command", title: "Trace a packet between two hosts", address: write("network", { tab: "path" }) },
  { kind: "command", title: "Show the table of switches", address: write("network", { tab: "switches" }) },
  { kind: "command", title: "Show the table of links", address: write("network", { tab: "links" }) },
  { kind: "command", title: "Show the table of hosts", address: write("network", { tab: "hosts" }) },
  { kind: "command", title: "Show the time line of events", address: write("network", { tab: "events" }) },
  { kind: "command", title: "Move a service to another worker", address: write("services", { tab: "plan" }) },
  { kind: "command", title: "Watch packets through the services", address: write("services", { tab: "packets" }) },
  { kind: "command", title: "Rates and latency between services", address: write("services", { tab: "crossings" }) },
  { kind: "command", title: "Draw and deploy a network", address: write("lab", {}) },
  { kind: "command", title: "Run an experiment", address: write("experiments", {}) },
  { kind: "command", title: "Configuration and its history", address: write("changes", { tab: "configuration" }) },
  { kind: "command", title: "Audit log", address: write("changes", { tab: "audit" }) },
  { kind: "command", title: "Edit flow rules", address: write("changes", { tab: "flows" }) },
  { kind: "command", title: "Edit firewall rules", address: write("changes", { tab: "firewall" }) },
  { kind: "command", title: "Edit virtual IPs", address: write("changes", { tab: "balancer" }) },
];

const most = 40;

/** find returns what contains every word of a query, at most some. */
export function find(known: Known, services: string[], query: string): Found[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const out: Found[] = [];
  const offer = (text: string, f: () => Found) => {
    const low = text.toLowerCase();
    if (out.length < most && words.every((w) => low.includes(w))) out.push(f());
  };
  if (words.length === 0) return commands;
  for (const c of commands) offer("command " + c.title, () => c);
  for (const s of services) offer("service " + s, () => ({ kind: "service", title: s, address: write("services", { service: s }) }));
  for (const [dpid, s] of known.switches) {
    offer(`switch ${dpid} ${s.description ?? ""} ${s.address ?? ""}`, () => ({ kind: "switch", title: `${short(dpid)} ${s.description ?? ""}`.trim(), address: write("network", { switch: dpid }) }));
    offer(`flows of ${dpid} ${s.description ?? ""}`, () => ({ kind: "flow", title: `flows of switch ${short(dpid)}`, address: write("network", { switch: dpid, part: "flows" }) }));
  }
  for (const h of known.hosts.values()) {
    offer(`host ${h.mac} ${(h.ipv4 ?? []).join(" ")} ${(h.ipv6 ?? []).join(" ")}`, () => ({ kind: "host", title: `${hostName(h)} (${h.mac})`, address: write("network", { host: hostKey(h) }) }));
  }
  return out;
}

/** serviceNames returns the services that run. */
export async function serviceNames(): Promise<string[]> {
  try {
    return ((await get<Info>("v1/info")).services ?? []).map((s) => s.name ?? "");
  } catch {
    return []; // Status says that the controller does not answer
  }
}
