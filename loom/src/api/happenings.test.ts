import { expect, test } from "vitest";

import { bins, happening, kept, kinds, TimeLine, type Happening } from "./happenings";

const [s1, s2] = ["0000000000000001", "0000000000000002"];
const logged = (subject: string, event: Record<string, unknown>, number = 1) => ({ number, subject, event, time: "2026-01-01T00:00:00.250Z" });
const at = (n: number, ms: number): Happening => ({ key: `1/${n}`, at: ms, subject: "x", kind: kinds[n % kinds.length], text: "", dpid: "", about: {} });

test("an event that has no words of its own is shown, and short", () => {
  const h = happening(logged("new.Event", { "@type": "t", text: "x".repeat(1000) }), "7");
  expect([h.kind, h.key, h.text.length < 200, h.about]).toEqual(["other", "7/1", true, {}]);
});

test("an event says what it is about, and leads there", () => {
  const link = { src: { dpid: s2, port: 3 }, dst: { dpid: s1, port: 1 } };
  expect(happening(logged("discovery.LinkChanged", { link, removed: true, cause: "silent" }), "7")).toMatchObject({ kind: "links", text: "link 2:3 → 1:1 down (silent)", about: { link: `${s1}:1-${s2}:3` } });
  expect(happening(logged("southbound.SwitchError", { dpid: s1, text: "TABLE_FULL", cookie: "00a5", xid: 3 }), "7")).toMatchObject({ kind: "errors", dpid: s1, text: "switch 1 refused the entry with cookie 00a5: TABLE_FULL", about: { switch: s1 } });
  expect(happening(logged("hosts.HostChanged", { host: { mac: "02:00:00:00:00:01", vlan: 5, at: { dpid: s1, port: 4 } }, change: "moved", from: { dpid: s2, port: 9 } }), "7")).toMatchObject({ text: "host 02:00:00:00:00:01 moved at 1:4, from 2:9", about: { host: "02:00:00:00:00:01/5" } });
  expect(happening(logged("forwarding.RouteChanged", { route: { src: "a", dst: "b", hops: [{ dpid: s1 }, { dpid: s2 }] }, change: "rerouted", took_us: "2500" }), "7")).toMatchObject({ text: "route a → b rerouted over 1 → 2, 2.5 ms", about: { tab: "path", from: "a", to: "b" } });
});

test("a time line keeps the last events only, however many there are", () => {
  const line = new TimeLine();
  for (let n = 0; n < 5 * kept; n += 100) line.add(Array.from({ length: 100 }, (_, i) => at(n + i, n + i)));
  expect(line.all.length).toBeLessThanOrEqual(1.2 * kept);
  expect(line.all.length).toBeGreaterThanOrEqual(kept);
  expect(line.all.at(-1)!.at).toBe(5 * kept - 1);
  expect(line.added).toBe(5 * kept);
});

test("earlier events are put before, each once", () => {
  const line = new TimeLine();
  line.add([at(5, 50), at(6, 60)]);
  line.before([at(3, 30), at(4, 40), at(5, 50)]);
  expect(line.all.map((h) => h.at)).toEqual([30, 40, 50, 60]);
  line.before(Array.from({ length: 2 * kept }, (_, i) => at(100 + i, i)));
  expect(line.all.length).toBe(kept);
  expect(line.all.at(-1)!.at).toBe(60);
});

test("bars have every event once, and are at most as many as asked for", () => {
  expect(bins([], 10)).toEqual([]);
  const list = Array.from({ length: 1000 }, (_, i) => at(i, 1000 * 1000 + i * 777));
  const bars = bins(list, 60);
  expect(bars.length).toBeLessThanOrEqual(60);
  expect(bars.reduce((n, b) => n + b.total, 0)).toBe(1000);
  for (const b of bars) expect(Object.values(b.counts).reduce((n, c) => n + c, 0)).toBe(b.total);
  expect(bins([at(1, 5000)], 60)).toHaveLength(1);
});
