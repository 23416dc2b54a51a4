import { expect, test } from "vitest";

import { empty, linkKey, place } from "../api/known";
import type { Link, PortRole, Switch } from "../api/types.gen";
import { busiest, changesPerSecond, offered, shareText, useStep } from "./pulse";

const [s1, s2] = ["0000000000000001", "0000000000000002"];
const link = (a: number, b: number, capacity_kbps: string): Link => ({ src: { dpid: s1, port: a }, dst: { dpid: s2, port: b }, capacity_kbps });

test("the busiest links are those that carry most of what they can; idle ones are none", () => {
  const k = empty();
  for (const l of [link(1, 1, "1000"), link(2, 2, "10000"), link(3, 3, "0"), link(4, 4, "1000")]) k.links.set(linkKey(l), l);
  const rates = new Map([[1, 500_000], [2, 900_000], [3, 5_000_000], [4, 0]].map(([port, tx_bits_per_s]) => [place({ dpid: s1, port }), { tx_bits_per_s }]));
  expect(busiest(k, rates, 3).map((b) => [b.link.src?.port, b.bits, b.share])).toEqual([[1, 500_000, 0.5], [2, 900_000, 0.09], [3, 5_000_000, NaN]]);
  expect([0, 0.1, 0.3, 0.6, 0.85, 1, NaN].map(useStep)).toEqual([0, 1, 2, 3, 4, 4, 0]);
  expect([0.914, 0.05, 0.00012, 0.000001, 0, NaN].map(shareText)).toEqual(["91 %", "5.0 %", "0.012 %", "< 0.01 %", "0 %", ""]);
});

test("traffic is what comes in from hosts and other networks, not what crosses links", () => {
  const k = empty();
  for (const [port, role] of [[1, "edge"], [2, "link"], [3, "access"]] as Array<[number, string]>) k.roles.set(place({ dpid: s1, port }), { role } as PortRole);
  const rates = new Map([1, 2, 3].map((port) => [place({ dpid: s1, port }), { rx_bits_per_s: 10 ** port }]));
  expect([offered(k, rates), offered(k, new Map())]).toEqual([1010, NaN]);
});

test("flow changes are counted from one reading to the next, over a new connection, too", () => {
  const of = (...list: Array<[string, string, string]>) => new Map(list.map(([dpid, flow_mods, since]): [string, Switch] => [dpid, { dpid, flow_mods, since }]));
  const before = of([s1, "100", "a"], [s2, "500", "a"]);
  expect(changesPerSecond(before, of([s1, "120", "a"], [s2, "8", "b"]), 4)).toBe(7);
  expect(changesPerSecond(new Map(), before, 4)).toBe(NaN);
});
