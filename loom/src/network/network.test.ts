import { expect, test } from "vitest";

import { apply, empty, subjectText } from "../api/known";
import { find, labLinkOf } from "./lablink";
import { cablesOf, dpidsOf, Reroute } from "./reroute";

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

test("an event that is not known is shown, and short", () => {
  expect(subjectText({ subject: "new.Event", event: { text: "x".repeat(1000) } }).length).toBeLessThan(200);
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

test("a trace crosses the cables between its hops", () => {
  const steps = [
    { switch: s2, table: 0, out: [] },
    { switch: s2, table: 1, out: [{ port: 3, to: { dpid: s1, port: 4 } }] },
    { switch: s1, table: 1, out: [{ port: 1, hosts: ["02:00:00:00:00:01"] }] },
  ];
  expect(dpidsOf(steps)).toEqual([s2, s1]);
  expect(cablesOf(steps)).toEqual([`${s1}:4-${s2}:3`]);
});

test("a reroute says how long it took", () => {
  const r = new Reroute();
  r.cut(1000);
  expect(r.seen("discovery.LinkChanged", { removed: true }, 1020)).toBe("");
  expect(r.seen("forwarding.RouteChanged", { change: "added", took_us: "9" }, 1021)).toBe("");
  const text = r.seen("forwarding.RouteChanged", { change: "rerouted", took_us: "2500" }, 1040);
  expect(text).toContain("2.5 ms");
  expect(text).toContain("40 ms after the cut");
});

test("a link of another controller's lab is not taken for one of this network", async () => {
  const links = [{ link: "s1:1-s2:2", a: "s1", a_port: 1, b: "s2", b_port: 2, state: "up" }];
  const nodes = [{ name: "s1", dpid: s1, control: "connected" }, { name: "s2", dpid: s2, control: "connected" }];
  const labs: Record<string, object> = {
    demo: { name: "demo", graph: { links, nodes: [...nodes, { name: "s3", dpid: "0000000000000003", control: "connected" }] } },
    mine: { name: "mine", graph: { links, nodes } },
  };
  const get = async <T>(path: string) => (path === "v1/switches" ? { switches: [s1, s2].map((dpid) => ({ dpid, connected: true })) } : (labs[path.split("/")[3]] ?? { labs: Object.keys(labs).map((name) => ({ name })) })) as T;
  expect((await labLinkOf(get, `${s1}:1-${s2}:2`))?.lab).toBe("mine");
  labs.same = { name: "same", graph: { links, nodes } };
  await expect(labLinkOf(get, `${s1}:1-${s2}:2`)).rejects.toThrow("labs mine and same both have this link");
});
