import { get } from "../api/client";
import { cableEnds, cableKey, calledAll, hostKey, hostName, hostNames, nameOf, short, type Known } from "../api/known";
import type { Host, Info } from "../api/types.gen";
import { plain } from "../network/flowsearch";
import { write } from "./route";

/** Found is something that a search has found, and its address in Loom. */
export interface Found {
  kind: string;
  title: string;
  address: string;
}

const command = (title: string, address: string): Found => ({ kind: "command", title, address });

/** commands are what the pages can do, by name. */
export const commands: Found[] = [
  command("Overview: health, figures, what happened", write("overview", {})),
  command("Trace a packet between two hosts, and their paths", write("network", { tab: "path" })),
  command("Show the table of switches", write("network", { tab: "switches" })),
  command("Show the table of links", write("network", { tab: "links" })),
  command("Show the table of hosts", write("network", { tab: "hosts" })),
  command("Show the broadcast tree", write("network", { tree: "1" })),
  command("Find flow entries on all switches", write("network", { tab: "flows" })),
  command("Show the time line of events", write("network", { tab: "events" })),
  command("Show errors and floods", write("network", { tab: "events", kinds: "errors" })),
  command("Move a service, change replicas or transports: the plan", write("services", {})),
  command("Health of the processes, and their logs", write("services", { tab: "processes" })),
  command("What the services do, and where they run", write("services", { tab: "services" })),
  command("Watch packets through the services", write("services", { tab: "packets" })),
  command("Rates and latency between services", write("services", { tab: "crossings" })),
  command("Draw and deploy a network", write("lab", {})),
  command("Run an experiment", write("experiments", {})),
  command("Configuration and its history", write("changes", { tab: "configuration" })),
  command("History of the plan, and roll-back", write("changes", { tab: "plan" })),
  command("Audit log", write("changes", { tab: "audit" })),
  command("Edit flow rules", write("changes", { tab: "flows" })),
  command("Edit firewall rules", write("changes", { tab: "firewall" })),
  command("Edit virtual IPs", write("changes", { tab: "balancer" })),
];

const most = 40;

const addresses = (h: Host) => [...(h.ipv4 ?? []), ...(h.ipv6 ?? []), h.mac ?? ""];

/** find returns what has every word of a query, at most some: first what is called so, then what
 * begins so. A search in the flow tables of all switches is offered for any query. */
export function find(known: Known, services: string[], query: string): Found[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean).map(plain);
  if (words.length === 0) return commands;
  const out: Array<{ found: Found; rank: number }> = [];
  // names are what something is called; text is what else is said of it.
  const offer = (names: string[], text: string, f: () => Found) => {
    const low = names.map((n) => n.toLowerCase());
    const all = `${low.join(" ")} ${text}`.toLowerCase();
    if (!words.every((w) => all.includes(w))) return;
    const rank = Math.min(...words.map((w) => (low.includes(w) ? 0 : low.some((n) => n.startsWith(w)) ? 1 : 2)));
    out.push({ found: f(), rank });
  };
  for (const c of commands) offer([c.title], "command", () => c);
  for (const s of services) offer([s], "service", () => ({ kind: "service", title: s, address: write("services", { service: s }) }));
  const called = calledAll(known);
  for (const [dpid, s] of known.switches) {
    const title = called.get(dpid)!;
    const names = [dpid, short(dpid), title, ...(nameOf(s) ? [nameOf(s)] : []), (s.address ?? "").replace(/:\d+$/, "")];
    offer(names, "switch", () => ({ kind: "switch", title, address: write("network", { switch: dpid }) }));
    offer(names, "flows of switch", () => ({ kind: "flows", title: `of switch ${title}`, address: write("network", { switch: dpid, part: "flows" }) }));
  }
  const asked = hostNames(known);
  for (const h of known.hosts.values()) {
    const others = addresses(h).filter((a) => a && a !== hostName(h));
    offer(addresses(h), "host address", () => ({ kind: "host", title: `${hostName(h)}${others.length > 0 ? ` (${others.join(", ")})` : ""}${h.vlan ? `, VLAN ${h.vlan}` : ""}`, address: write("network", { host: hostKey(h) }) }));
  }
  for (const cable of new Set([...known.links.values()].map(cableKey))) {
    const ends = cableEnds(cable).map((end) => end.replace(/^[^:]*/, (dpid) => called.get(dpid) ?? short(dpid)));
    offer([...ends, ...cableEnds(cable).map((end) => short(end))], "link", () => ({ kind: "link", title: ends.join(" – "), address: write("network", { link: cable }) }));
  }
  const two = words.flatMap((w) => [...known.hosts].filter(([, h]) => addresses(h).some((a) => a.toLowerCase() === w)).slice(0, 1)).map(([key]) => asked.get(key)!);
  if (two.length === 2) out.push({ found: command(`Trace a packet from ${two[0]} to ${two[1]}`, write("network", { tab: "path", from: two[0], to: two[1] })), rank: -1 });
  const list = out.sort((a, b) => a.rank - b.rank).slice(0, most - 1).map((o) => o.found);
  const text = query.trim().replace(/^flows?(\s+|$)/i, "");
  return text ? [...list, { kind: "flow", title: `entries of all switches with “${text}”`, address: write("network", { tab: "flows", find: text }) }] : list;
}

/** serviceNames returns the services that run. */
export async function serviceNames(): Promise<string[]> {
  try {
    return ((await get<Info>("v1/info")).services ?? []).map((s) => s.name ?? "");
  } catch {
    return []; // Status says that the controller does not answer
  }
}
