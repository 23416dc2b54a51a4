import { expect, test } from "vitest";

import { along, bend, flows, label, way } from "./overlay";

test("what crosses processes is summed up by workers, the busiest first", () => {
  const rows = [
    { from: "hosts", to: "southbound", from_process: "hosts", to_process: "all", name: "Send", per_s: 2, p50_us: 400 },
    { from: "l2vpn", to: "southbound", from_process: "hosts-2", to_process: "all", name: "Apply", per_s: 5, p50_us: 90 },
    { from: "paths", to: "forwarding", from_process: "a", to_process: "b", per_s: 30, p50_us: 12000 },
    { from: "nat", to: "qos", from_process: "policy", to_process: "policy", per_s: 1000 },
    { from: "stats", to: "southbound", from_process: "stats", to_process: "all", per_s: 0 },
  ];
  expect(flows(rows).map((f) => [f.from, f.to, label(f)])).toEqual([["paths", "forwarding", "30/s, 12 ms"], ["l2vpn", "southbound", "7.0/s, 90 µs"]]);
  expect(flows(Array.from({ length: 500 }, (_, i) => ({ from: `a${i}`, to: "b", from_process: `p${i}`, to_process: "2", per_s: 1 })))).toHaveLength(24);
});

test("both directions bend to different sides", () => {
  const [there, back] = [bend({ x: 0, y: 0 }, { x: 100, y: 0 }), bend({ x: 100, y: 0 }, { x: 0, y: 0 })];
  expect(there.label.y).toBeGreaterThan(0);
  expect(back.label.y).toBeLessThan(0);
});

test("a packet goes along the services that it has met", () => {
  expect(way({ stages: [{ service: "discovery" }, { service: "hosts" }, { service: "hosts" }, { service: "forwarding" }] })).toEqual(["discovery", "hosts", "forwarding"]);
  expect(way({})).toEqual([]);
  const points = [{ x: 0, y: 0 }, { x: 10, y: 0 }, { x: 10, y: 20 }];
  expect([along(points, 0), along(points, 0.25), along(points, 0.75), along(points, 3)]).toEqual([{ x: 0, y: 0 }, { x: 5, y: 0 }, { x: 10, y: 10 }, { x: 10, y: 20 }]);
  expect(along([{ x: 3, y: 4 }], 0.5)).toEqual({ x: 3, y: 4 });
});
