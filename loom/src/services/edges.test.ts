import { expect, test } from "vitest";

import { edges, ring } from "./edges";

test("crossings between processes add up, those within one do not count", () => {
  const c = (from: string, to: string, per_s: number, p50_us: number) => ({ from_process: from, to_process: to, per_s, p50_us, transport: "grpc" });
  expect(edges([c("a", "b", 1, 50), c("a", "b", 9, 20), c("b", "b", 100, 1), c("b", "a", 2, 7)])).toEqual([
    { from: "a", to: "b", perS: 10, p50: 20, transport: "grpc" },
    { from: "b", to: "a", perS: 2, p50: 7, transport: "grpc" },
  ]);
});

test("processes lie within the picture", () => {
  for (const p of ring(["a", "b", "c", "d", "e"], 700, 300).values()) {
    expect(p.x).toBeGreaterThanOrEqual(0);
    expect(p.x).toBeLessThanOrEqual(700);
    expect(p.y).toBeGreaterThanOrEqual(0);
    expect(p.y).toBeLessThanOrEqual(300);
  }
});
