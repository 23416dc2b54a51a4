import { expect, test } from "vitest";

import { apply, cableText, called, calledAll, clear, empty, hostNames, prune } from "../api/known";
import type { LabDetails } from "../api/types.gen";
import { stepRates } from "./counters";
import { actionsText, entryKey, ownersText, perSecond } from "./entry";
import { fits, searchText } from "./flowsearch";
import { find, isHere, labLinkOf, labsHere } from "./lablink";
import { labelOf } from "./netmap";
import { request } from "./packet";
import { packets, wrong } from "./packet";
import { cablesOf, dpidsOf } from "./reroute";
import { ago, bitsText } from "./units";

const [s1, s2] = ["0000000000000001", "0000000000000002"];

test("events make the network, and unmake it", () => {
  const k = empty();
  const tell = (subject: string, event: Record<string, unknown>) => apply(k, { subject, event });
  tell("southbound.SwitchChanged", { switch: { dpid: s1, connected: true }, ports: [{ dpid: s1, port: 1 }] });
  tell("southbound.PortChanged", { port: { dpid: s1, port: 2 } });
  const link = { src: { dpid: s1, port: 1 }, dst: { dpid: s2, port: 1 }, state: "up" };
  tell("discovery.LinkChanged", { link });
  tell("hosts.HostChanged", { host: { mac: "02:00:00:00:00:01", vlan: 0 }, change: "learnt" });
  expect([k.switches.size, k.ports.get(s1)?.size, k.links.size, k.hosts.size]).toEqual([1, 2, 1, 1]);
  tell("discovery.LinkChanged", { link, removed: true });
  tell("hosts.HostChanged", { host: { mac: "02:00:00:00:00:01", vlan: 0 }, change: "gone" });
  tell("southbound.PortChanged", { port: { dpid: s1, port: 2 }, removed: true });
  tell("southbound.SwitchForgotten", { dpid: s1 });
  expect([k.switches.size, k.ports.size, k.links.size, k.hosts.size]).toEqual([0, 0, 0, 0]);
});

test("a link that has gone is known until something takes its place, or for ten minutes", () => {
  const k = empty();
  const tell = (subject: string, event: Record<string, unknown>, time = "2026-01-01T00:00:00Z") => apply(k, { subject, event, time });
  const link = (a: string, ap: number, b: string, bp: number) => ({ src: { dpid: a, port: ap }, dst: { dpid: b, port: bp }, state: "up" });
  const lost = (l: object) => tell("discovery.LinkChanged", { link: l, removed: true, cause: "port_status" });
  tell("southbound.SwitchChanged", { switch: { dpid: s1, connected: true }, ports: [{ dpid: s1, port: 1 }, { dpid: s1, port: 2 }] });
  const was = link(s1, 1, s2, 2);
  lost(was);
  expect([...k.gone.values()].map((g) => g.cause)).toEqual(["port_status"]);
  tell("discovery.LinkChanged", { link: was });
  expect(k.gone.size).toBe(0); // it is back
  lost(was);
  lost(link(s2, 2, s1, 1));
  expect(k.gone.size).toBe(2); // both directions
  tell("discovery.LinkChanged", { link: link(s1, 1, s2, 7) });
  expect(k.gone.size).toBe(0); // another link is at its port
  lost(was);
  tell("discovery.PortRoleChanged", { port: { at: { dpid: s2, port: 2 }, role: "edge" } });
  expect(k.gone.size).toBe(0); // a host is
  lost(was);
  tell("southbound.PortChanged", { port: { dpid: s1, port: 1 }, removed: true });
  expect(k.gone.size).toBe(0); // the port is no more
  lost(was);
  tell("southbound.SwitchChanged", { switch: { dpid: s1, connected: false }, ports: [] });
  expect([k.gone.size, k.ports.get(s1)!.size]).toEqual([1, 1]); // it may come again as it was
  tell("southbound.SwitchChanged", { switch: { dpid: s1, connected: true }, ports: [{ dpid: s1, port: 5 }] });
  expect([k.gone.size, [...k.ports.get(s1)!.keys()]]).toEqual([0, [5]]); // it has other ports
  lost(link(s1, 5, s2, 2));
  tell("southbound.SwitchForgotten", { dpid: s2 });
  expect(k.gone.size).toBe(0);
  lost(link(s1, 5, s2, 2));
  expect(prune(k, Date.parse("2026-01-01T00:09:59Z"))).toBe(false);
  expect(prune(k, Date.parse("2026-01-01T00:10:00Z"))).toBe(true);
  expect(k.gone.size).toBe(0);
});

test("hosts with the same address are asked for by Ethernet address", () => {
  const k = empty();
  const host = (mac: string, ipv4: string[], vlan = 0) => k.hosts.set(`${mac}/${vlan}`, { mac, vlan, ipv4, ipv6: ["fe80::1"] });
  host("02:00:00:00:00:01", ["10.0.0.1"], 5);
  host("02:00:00:00:00:02", ["10.0.0.1"], 6);
  host("02:00:00:00:00:03", ["10.0.0.3"]);
  host("02:00:00:00:00:04", []);
  expect([...hostNames(k).values()]).toEqual(["02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.3", "02:00:00:00:00:04"]);
});

test("entries are told apart, counted by owner, and rated between two readings", () => {
  const entry = (priority: number, packets: number, more = {}) => ({ dpid: s1, table: 0, priority, match: { in_port: "1" }, owner: "routes", packets, ...more });
  const [before, now] = [[entry(5, 100), entry(6, 7)], [entry(5, 300), entry(6, 2), entry(7, 9)]];
  expect([...perSecond(before, now, 2)]).toEqual([[entryKey(now[0]), 100]]); // 6 has begun anew, 7 is new
  expect(ownersText([...now, { owner: "" }])).toBe("routes 3, nobody 1");
  expect(actionsText({ meter: 3, actions: ["output:2"], metadata: "0x1/0xff", goto_table: 2 })).toBe("meter 3, output:2, metadata 0x1/0xff, goto table 2");
});

test("the counters of each hop are rated while the trace stays on it", () => {
  const step = (packets: number, bytes: number, cookie = "1") => ({ switch: s1, in_port: 1, table: 4, entry: { dpid: s1, table: 4, priority: 9, match: { x: cookie }, packets, bytes } });
  expect(stepRates([step(10, 1000)], [step(30, 21000), step(30, 21000, "2"), { switch: s1, in_port: 1, table: 0 }], 2)).toEqual([{ packets: 10, bits: 80000 }, undefined, undefined]);
});

test("a search for entries finds addresses however they are written", () => {
  const text = searchText({ dpid: s1, table: 4, priority: 9, cookie: "0000000000a50001", owner: "routes", match: { eth_dst: "02:00:00:00:00:0a", ipv6_dst: "fd00::1" }, actions: ["output:2"] });
  for (const query of ["02-00-00-00-00-0A", "0200.0000.000a", "owner=routes output:2", "fd00::1", "a50001", "table=4 routes"]) expect(fits(text, query), query).toBe(true);
  for (const query of ["0200.0000.000b", "routes output:3", "10.0.0.1"]) expect(fits(text, query), query).toBe(false);
});

test("a trace is asked for as the packet that was chosen", () => {
  expect(request("a", "b", "", 80)).toEqual({ src: "a", dst: "b" });
  expect(request("a", "b", "tcp", 443)).toEqual({ src: "a", dst: "b", tcp_dst: 443 });
  expect(request("a", "b", "ping6", 443)).toEqual({ src: "a", dst: "b", ipv6: true });
});

test("rates and times are written for people", () => {
  expect([0, 999, 1000, 99_949, 999_600, 12_345_678, 1e9, 123_456_789_000].map(bitsText)).toEqual(["0 b/s", "999 b/s", "1.00 kb/s", "99.9 kb/s", "1.00 Mb/s", "12.3 Mb/s", "1.00 Gb/s", "123 Gb/s"]);
  const now = Date.parse("2026-01-02T00:00:00Z");
  expect(["2026-01-01T23:59:58Z", "2026-01-01T23:50:00Z", "2026-01-01T01:00:00Z", "2025-12-20T00:00:00Z", ""].map((t) => ago(t, now))).toEqual(["2 s ago", "10 min ago", "23 h ago", "13 days ago", ""]);
});

test("a cable is the lab's link between the same ports", () => {
  const lab = {
    name: "ring",
    graph: {
      nodes: [{ name: "a", dpid: s1 }, { name: "b", dpid: s2 }, { name: "h" }],
      links: [{ link: "a:9-h", a: "a", a_port: 9, b: "h", b_port: 0 }, { link: "a:1-b:2", a: "a", a_port: 1, b: "b", b_port: 2, state: "down" }],
    },
  };
  const want = { lab: "ring", link: "a:1-b:2", down: true };
  expect(find(lab, `${s1}:1-${s2}:2`)).toEqual(want);
  expect(find(lab, `${s2}:2-${s1}:1`)).toEqual(want);
  expect(find(lab, `${s1}:2-${s2}:2`)).toBeUndefined();
});

test("packets that cannot be traced are said", () => {
  expect(packets.map((p) => wrong(p.id, 80))).toEqual(packets.map(() => ""));
  for (const port of [0, -5, 1.5, 65536, NaN]) for (const as of ["tcp", "udp"]) expect(wrong(as, port)).toContain("1 to 65535");
  expect(wrong("", NaN)).toBe("");
  expect(wrong("bogus", 80)).toContain("bogus");
});

test("a trace crosses the cables between its hops", () => {
  const steps = [
    { switch: s2, table: 0, out: [] },
    { switch: s2, table: 1, out: [{ port: 3, to: { dpid: s1, port: 4 } }] },
    { switch: s1, table: 1, out: [{ port: 1, hosts: ["02:00:00:00:00:01"] }] },
  ];
  expect(dpidsOf(steps)).toEqual([s2, s1]);
  expect(cablesOf(steps)).toEqual([`${s1}:4-${s2}:3`]);
});

test("a link of another controller's lab is not taken for one of this network", async () => {
  const links = [{ link: "s1:1-s2:2", a: "s1", a_port: 1, b: "s2", b_port: 2, state: "up" }];
  const nodes = [{ name: "s1", dpid: s1, control: "connected" }, { name: "s2", dpid: s2, control: "connected" }];
  const labs: Record<string, LabDetails> = {
    demo: { name: "demo", graph: { links, nodes: [...nodes, { name: "s3", dpid: "0000000000000003", control: "connected" }] } },
    mine: { name: "mine", graph: { links, nodes } },
  };
  const get = async <T>(path: string) => (path === "v1/switches" ? { switches: [s1, s2].map((dpid) => ({ dpid, connected: true })) } : (labs[path.split("/")[3]] ?? { labs: Object.keys(labs).map((name) => ({ name })) })) as T;
  const cable = `${s1}:1-${s2}:2`;
  expect(cableText(empty(), cable)).toBe("1:1 – 2:2");
  expect(labLinkOf(await labsHere(get), cable)?.lab).toBe("mine");
  labs.same = { name: "same", graph: { links, nodes } };
  const here = await labsHere(get);
  expect(() => labLinkOf(here, cable)).toThrow("labs mine and same both have this link");
});

test("a lab whose switches are connected to another controller, or to none, is not the network", () => {
  const lab = (name: string, control: string, controller: string): LabDetails => ({
    name,
    graph: {
      links: [{ link: "s1:1-s2:2", a: "s1", a_port: 1, b: "s2", b_port: 2 }],
      nodes: [s1, s2].map((dpid, i) => ({ name: `s${i + 1}`, dpid, control, sessions: [{ controller, connected: control === "connected" }] })),
    },
  });
  const switches = new Map([s1, s2].map((dpid) => [dpid, { dpid, connected: true, local: "127.0.0.1:6653" }]));
  const labs = [lab("mine", "connected", "tcp:controller.example:6653"), lab("theirs", "connected", "tcp:127.0.0.1:7653"), lab("left", "disconnected", "tcp:127.0.0.1:6653")];
  expect(labs.map((l) => isHere(l, switches))).toEqual([true, false, true]);
  expect(labLinkOf(labs.filter((l) => isHere(l, switches)), `${s1}:1-${s2}:2`)?.lab).toBe("mine");
  expect(isHere(lab("six", "connected", "tcp:[::1]:6653"), switches)).toBe(true);
  expect(isHere(lab("relayed", "connected", "unix:/run/x"), switches)).toBe(true); // it cannot be told
});

test("a switch is called as the controller takes it, else as it calls itself, with its number where others do so, too", () => {
  const k = empty();
  for (const [dpid, description] of [[s1, "core"], [s2, "core"], ["0000000000000003", "edge"], ["00000000000000a4", "None"]]) k.switches.set(dpid, { dpid, description });
  const all = () => [...k.switches.keys()].map((d) => [called(k, d), calledAll(k).get(d)]);
  expect(all()).toEqual([["core (1)", "core (1)"], ["core (2)", "core (2)"], ["edge", "edge"], ["", "a4"]]);
  k.names = new Map([[s2, "milan"]]);
  expect(all()[1]).toEqual(["milan", "milan"]);
  clear(k);
  expect([k.switches.size, k.names.size]).toEqual([0, 1]);
});

test("a label of the map has a name's beginning, and the role unless it is master", () => {
  expect(labelOf({ dpid: s1, connected: true, role: "master" }, "1")).toBe("1");
  expect(labelOf({ dpid: s1, connected: true, role: "slave" }, "core")).toBe("core\nslave");
  expect(labelOf({ dpid: s1 }, "😀".repeat(256))).toBe(`${"😀".repeat(24)}… (1)`);
});
