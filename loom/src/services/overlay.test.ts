import { expect, test } from "vitest";

import { along, bend, flows, label, on, spread, way, type Rect } from "./overlay";

const worker = (process: string) => process.replace(/-\d+$/, "");

test("what crosses processes is summed up by workers, the busiest first", () => {
  const rows = [
    { from: "hosts", to: "southbound", from_process: "hosts", to_process: "all", name: "Send", per_s: 2, p50_us: 400, transport: "nats" },
    { from: "l2vpn", to: "southbound", from_process: "hosts-2", to_process: "all", name: "Apply", per_s: 5, p50_us: 90, transport: "grpc" },
    { from: "paths", to: "forwarding", from_process: "a", to_process: "b", per_s: 30, p50_us: 12000, transport: "grpc" },
    { from: "nat", to: "qos", from_process: "policy", to_process: "policy", per_s: 1000 },
    { from: "paths", to: "paths", from_process: "routing-1", to_process: "routing-2", per_s: 1000 },
    { from: "stats", to: "southbound", from_process: "stats", to_process: "all", per_s: 0 },
  ];
  expect(flows(rows, worker).map((f) => [f.from.service, f.to.service, label(f), f.transports.join()])).toEqual([["paths", "forwarding", "30/s, 12 ms", "grpc"], ["l2vpn", "southbound", "7.0/s, 90 µs", "nats,grpc"]]);
  expect(flows(Array.from({ length: 500 }, (_, i) => ({ from: `a${i}`, to: "b", from_process: `p${i}`, to_process: "2", per_s: 1 })), (p) => p)).toHaveLength(24);
});

test("services of the same name in different workers are different ends", () => {
  const rows = ["east", "west"].map((p) => ({ from: "southbound", to: "firewall", from_process: p, to_process: `${p}-policy`, per_s: 3 }));
  expect(flows(rows, (p) => p).map((f) => [f.from.worker, f.to.worker])).toEqual([["east", "east-policy"], ["west", "west-policy"]]);
});

const box = (x: number, y: number): Rect => ({ left: x - 20, right: x + 20, top: y - 10, bottom: y + 10 });

test("both directions bend to different sides, and begin at the edge", () => {
  const [there, back] = [bend(box(0, 0), box(200, 0)), bend(box(200, 0), box(0, 0))];
  expect(on(there, 0.5).y).toBeGreaterThan(0);
  expect(on(back, 0.5).y).toBeLessThan(0);
  expect(there.a.x).toBeCloseTo(20);
  expect(there.b.x).toBeCloseTo(180);
});

test("labels cover neither each other nor the board", () => {
  const size = { width: 400, height: 200 };
  const curve = bend(box(30, 100), box(370, 100));
  const both = spread([{ curve, text: "10/s, 3 ms" }, { curve, text: "11/s, 3 ms" }], [], size);
  expect(Math.abs(both[0]!.x - both[1]!.x)).toBeGreaterThan(20);
  const taken = [{ left: 0, right: 400, top: 0, bottom: 200 }];
  expect(spread([{ curve, text: "10/s" }], taken, size)).toEqual([undefined]);
});

test("a packet goes along the services that it has met", () => {
  const stage = (service: string, process: string) => ({ service, process });
  expect(way({ stages: [stage("discovery", "a"), stage("hosts", "b-1"), stage("hosts", "b-2"), stage("forwarding", "a")] }, worker).map((s) => `${s.worker}/${s.service}`)).toEqual(["a/discovery", "b/hosts", "a/forwarding"]);
  expect(way({}, worker)).toEqual([]);
  const points = [{ x: 0, y: 0 }, { x: 10, y: 0 }, { x: 10, y: 20 }];
  expect([along(points, 0), along(points, 0.25), along(points, 0.75), along(points, 3)]).toEqual([{ x: 0, y: 0 }, { x: 5, y: 0 }, { x: 10, y: 10 }, { x: 10, y: 20 }]);
  expect(along([{ x: 3, y: 4 }], 0.5)).toEqual({ x: 3, y: 4 });
});
