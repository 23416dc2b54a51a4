// The health of network and controller in a sentence, and what is not as it should be.

import { cableKey, cableText, called, hostName, placeText, short, type Known } from "../api/known";
import type { ListWorkersResponse, PortRole } from "../api/types.gen";
import { write } from "../ui/route";

/** Problem is something that is not as it should be, and where Loom shows it. */
export interface Problem {
  mood: "warn" | "bad";
  text: string;
  href: string;
}

/** Health is what the checks have found. */
export interface Health {
  mood: "good" | "warn" | "bad" | "none"; // none: no switch has ever connected
  sentence: string;
  facts: string;
  problems: Problem[];
}

const count = (n: number, what: string, plural = what + "s") => `${n} ${n === 1 ? what : plural}`;

/** switchText names a switch for people. */
export const switchText = (known: Known, dpid?: string) => called(known, dpid) || `switch ${short(dpid)}`;

/** linkText names a link by its two switches. */
export const linkText = (known: Known, cable: string) => {
  const [a, b] = cable.split("-").map((end) => called(known, end.split(":")[0]));
  return a && b ? `${a} – ${b}` : cableText(known, cable);
};

const odd = new Set(["held", "blocked", "refuses", "relay"]); // causes of ports that somebody has to look at

/** checks are what is looked at; each returns what it finds. */
const checks: Array<(k: Known, workers: ListWorkersResponse | undefined, roles: PortRole[]) => Problem[]> = [
  (_, w) => (w?.workers ?? []).filter((x) => x.state !== "up").map((x) => ({ mood: "bad", text: `Process ${x.process} is ${x.state}.`, href: write("services", { tab: "processes" }) })),
  (_, w) => {
    if (!w?.store || (w.store.quorum && !w.store.error)) return [];
    return [{ mood: "bad", text: w.store.error ? "The store does not answer." : "The store has no quorum: no change is kept.", href: write("services", { tab: "processes" }) }];
  },
  (k) => [...k.switches.values()].filter((s) => !s.connected).map((s) => ({ mood: "bad", text: `${sentence(switchText(k, s.dpid))} is not connected.`, href: write("network", { switch: s.dpid ?? "" }) })),
  (k) => {
    const up = new Set([...k.links.values()].map(cableKey));
    const gone = new Set([...k.gone.values()].map((g) => cableKey(g.link)).filter((c) => !up.has(c)));
    return [...gone].map((c) => ({ mood: "bad", text: `Link ${linkText(k, c)} is down.`, href: write("network", { link: c }) }));
  },
  (k) => {
    const other = new Map([...k.links.values()].filter((l) => l.state !== "up").map((l) => [cableKey(l), l]));
    return [...other].map(([c, l]) => ({ mood: "warn", text: `Link ${linkText(k, c)} is ${l.state === "one_way" ? "seen in one direction only" : l.state}.`, href: write("network", { link: c }) }));
  },
  (k, _, roles) => roles.filter((r) => odd.has(r.cause ?? "")).map((r) => ({ mood: "warn", text: `Port ${placeText(k, r.at)}: ${r.reason}`, href: write("network", { switch: r.at?.dpid ?? "" }) })),
  (k) => [...k.hosts.values()].filter((h) => h.claimed_at?.dpid).map((h) => ({ mood: "bad", text: `Somebody at ${placeText(k, h.claimed_at)} claims the address of ${hostName(h)}.`, href: write("network", { host: `${h.mac}/${h.vlan ?? 0}` }) })),
];

const sentence = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1);

/** healthOf looks at what is known of the network, the controller's processes, and why ports take no traffic. */
export function healthOf(known: Known, workers: ListWorkersResponse | undefined, roles: PortRole[]): Health {
  const problems = checks.flatMap((check) => check(known, workers, roles));
  const switches = [...known.switches.values()].filter((s) => s.connected).length;
  const links = new Set([...known.links.values()].map(cableKey)).size;
  const what = `${count(switches, "switch", "switches")}, ${count(links, "link")} and ${count(known.hosts.size, "host")}.`;
  const passed = checks.filter((check) => check(known, workers, roles).length === 0).length;
  const facts = `${what} ${passed === checks.length ? `All ${checks.length} checks pass.` : `${passed} of ${checks.length} checks pass.`}`;
  const mood = problems.some((p) => p.mood === "bad") ? "bad" : problems.length > 0 ? "warn" : "good";
  if (mood === "good" && known.switches.size === 0) return { mood: "none", sentence: "No switch is connected yet.", facts: "Start with a network to try, one of your own, or your switches.", problems };
  if (mood === "good") return { mood, sentence: "The network is well.", facts, problems };
  return { mood, sentence: problems.length === 1 ? problems[0].text : `${problems.length} things need a look.`, facts, problems };
}
