// How somebody gets a network: from the laboratory, or from switches of their own.

import type { Configuration } from "../api/types.gen";

const usual = "tcp:127.0.0.1:6653"; // where the controller listens if nothing is said
const every = new Set(["", "*", "0.0.0.0", "[::]"]); // hosts that stand for all addresses of the machine

/** listen finds where southbound listens in a configuration or plan, whatever the style of the YAML. */
const listen = /(?:^|\n)\s*southbound:\s*(?:\{|\n\s)[^]*?\blisten:[ ]*(\[[^\]]*\]|(?:\n\s*-[^\n]*)+|[^\n,}]+)/;

/** addresses returns where switches connect, in the form that ovs-vsctl set-controller takes: as the configuration or the
 * plan says; host is the controller's machine where it listens at all addresses. */
export function addresses(config: Configuration, plan: string, host: string): string[] {
  const own = (config.overrides ?? []).find((o) => o.startsWith("southbound.listen="));
  const text = own ?? listen.exec(config.text ?? "")?.[1] ?? listen.exec(plan)?.[1] ?? usual;
  const found = [...text.matchAll(/\b(tcp|ssl):(\[[^\]]+\]|[\w.*-]*):(\d+)/g)];
  const machine = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  return found.map(([, kind, at, port]) => `${kind}:${every.has(at) ? machine : at}:${port}`);
}

/** tryout is the name of the network to try. */
export const tryout = "try";

/** demo returns the lab file of a small network with loops and hosts, whose switches connect to a controller. Its numbers and
 * addresses are such as no other lab has that does not ask for them. */
export function demo(controller: string): string {
  const switches = [1, 2, 3, 4, 5, 6].map((n) => `  - {name: s${n}, dpid: "00000000000d000${n}"}`);
  const hosts = [1, 2, 3, 4].map((n) => `  - {name: h${n}, switch: s${n}, mac: "02:00:00:0d:00:0${n}", ipv4: 10.13.0.${n}/24, ipv6: "fd00:13::${n}/64"}`);
  const links = [[1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 1], [1, 4], [2, 5]].map(([a, b]) => `  - {a: s${a}, b: s${b}}`);
  return [`name: ${tryout}`, `controller: ${controller}`, "switches:", ...switches, "hosts:", ...hosts, "links:", ...links, ""].join("\n");
}
