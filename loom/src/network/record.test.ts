import { expect, test } from "vitest";

import type { Happening } from "../api/happenings";
import { apply, empty } from "../api/known";
import { Readings, span, stateAt } from "./record";

const cable = "0000000000000001:1-0000000000000002:2";
const link = (at: number, change: string): Happening => ({ key: String(at), at, subject: "discovery.LinkChanged", kind: "links", text: "", dpid: "1", about: { link: cable }, change });
const node = (at: number, change: string): Happening => ({ key: `s${at}`, at, subject: "southbound.SwitchChanged", kind: "switches", text: "", dpid: "0000000000000002", about: {}, change });

test("what was up at a moment is what events tell of it", () => {
  const k = empty();
  apply(k, { subject: "southbound.SwitchChanged", event: { switch: { dpid: "0000000000000002", connected: true }, ports: [] } });
  const line = [link(10, "down"), link(20, "up"), node(30, "gone"), node(40, "connected")];
  expect(stateAt(k, line, 5)).toEqual({ gone: new Set(), away: new Set() }); // it went down later: it was up
  expect(stateAt(k, line, 10).gone).toEqual(new Set([cable]));
  expect(stateAt(k, line, 25).gone).toEqual(new Set());
  expect(stateAt(k, line.slice(1), 5).gone).toEqual(new Set([cable])); // it came up later: it was down
  expect(stateAt(k, line, 35).away).toEqual(new Set(["0000000000000002"]));
  expect(stateAt(k, [], 35).away).toEqual(new Set());
  const l = { src: { dpid: "0000000000000001", port: 1 }, dst: { dpid: "0000000000000002", port: 2 } };
  apply(k, { subject: "discovery.LinkChanged", event: { link: l, removed: true }, time: "2026-01-01T00:00:00Z" });
  expect(stateAt(k, [], 35).gone).toEqual(new Set([cable])); // no event tells more
});

test("rates are those that were read shortly before a moment, of ten minutes", () => {
  const r = new Readings();
  const port = (tx: number) => ({ dpid: "1", port: 1, tx_bits_per_s: tx, rx_bits_per_s: 0 });
  r.take([port(100), { dpid: "1", port: 2 }], 100, 1000);
  r.take([port(200)], 200, 3000);
  expect([r.at(999), r.at(2000)?.traffic, r.at(3000)?.traffic, r.at(9001)]).toEqual([undefined, 100, 200, undefined]);
  expect([...r.at(1000)!.bits]).toEqual([["1:1", [100, 0]]]);
  r.take([], 0, 1000 + span);
  expect(r.list.map((x) => x.at)).toEqual([3000, 1000 + span]);
});
