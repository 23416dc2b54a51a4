import { expect, test } from "vitest";

import { read } from "./document";
import { kbps, ofLab, rows, same, wish } from "./services";

const text = `name: p
hosts: [{name: ce1, switch: pe1}, {name: ce2, switch: pe2, vlan: 7}]
x-services:
  - {name: a, type: vll, ends: [ce1, ce2], rate: 20mbit, protect: true}
  - {name: b, type: vss, ends: [ce1, ce9]}
  - {name: "<b>", type: pw, ends: [ce1, ce2]}
`;
const running = {
  name: "p",
  graph: {
    nodes: [{ name: "pe1", dpid: "0000000000000001" }, { name: "pe2", dpid: "0000000000000002" }, { name: "ce1" }, { name: "ce2", vlan: 7 }],
    links: [{ a: "pe1", a_port: 3, b: "ce1", b_interface: "eth0" }, { a: "pe2", a_port: 4, b: "ce2", b_interface: "eth0" }],
  },
};

test("a service is a circuit between the ports of its ends", () => {
  const lab = read(text);
  const w = wish(lab, running, lab.services[0]);
  expect(w).toEqual({ name: "loom.p.a", type: "vpws", payload: "ip", ends: ["0000000000000001:3", "0000000000000002:4.7"], rate_kbps: 20000, protect: true });
  expect(() => wish(lab, running, lab.services[1])).toThrow("ce9 is at no switch");
  expect(() => wish(lab, running, lab.services[2])).toThrow("a service's name has");
  expect(same(w, { ...w, rate_kbps: "20000" })).toBe(true);
  expect(same(w, { ...w, ends: [...w.ends].reverse() })).toBe(false);
  expect([kbps("1.5gbit"), kbps(undefined), kbps("fast")]).toEqual([1500000, 0, NaN]);
});

test("what is drawn is compared with what the controller has, and others' circuits are left alone", () => {
  const lab = read(text);
  const w = wish(lab, running, lab.services[0]);
  expect([ofLab("p", "loom.p.a"), ofLab("p", "loom.q.a"), ofLab("p", "a"), ofLab("", "loom..a")]).toEqual(["a", "", "", ""]);
  const of = (...circuits: object[]) => rows(lab, running, circuits, new Map()).map((r) => `${r.name} ${r.state}`);
  expect(of()).toEqual(["a not set", "b failed", "<b> failed"]);
  expect(of({ ...w, state: "up" }, { name: "red" }, { name: "loom.p.old" })).toEqual(["a up", "b failed", "<b> failed", "old to be deleted"]);
  expect(of({ ...w, rate_kbps: 5 })[0]).toBe("a differs");
  expect(of({ ...w, state: "requested" })[0]).toBe("a asked");
  expect(rows(lab, running, [], new Map([["loom.p.a", "no label is free"]]))[0]).toMatchObject({ state: "failed", why: "no label is free" });
  expect(rows(lab, running, [{ ...w, state: "up", path: ["0000000000000001", "0000000000000002", "00000000000000ff"] }], new Map())[0].path).toBe("pe1 → pe2 → 00000000000000ff");
  expect(rows(lab, null, [], new Map())[0].state).toBe("drawn");
});
