import { expect, test } from "vitest";

import { Random } from "./random";
import { figureOf, fill, flowsOf, lost, patterns, readTraffic, type Pattern } from "./traffic";

const hosts = (n: number) => Array.from({ length: n }, (_, i) => `h${i + 1}`);

test("property: no pattern has a host send to itself or twice to another, and the same seed makes the same", () => {
  const r = new Random(1);
  for (let i = 0; i < 200; i++) {
    const pattern = r.pick(Object.keys(patterns)) as Pattern;
    const n = r.below(17);
    const all = fill(hosts(n), pattern, 100, i);
    expect(all).toEqual(fill(hosts(n), pattern, 100, i));
    expect(all.every((d) => d.from !== d.to && d.rate > 0)).toBe(true);
    expect(new Set(all.map((d) => `${d.from} ${d.to}`)).size).toBe(all.length);
    if (n < 2) expect(all).toEqual([]);
    else if (pattern === "ring" || pattern === "pairs") for (const end of ["from", "to"] as const) expect(new Set(all.map((d) => d[end])).size).toBe(n);
    else expect(all.length).toBe(pattern === "all" || pattern === "gravity" ? n * (n - 1) : n - 1);
    if (n > 1 && pattern === "gravity") expect(Math.abs(all.reduce((s, d) => s + d.rate, 0) / all.length - 100)).toBeLessThan(2);
  }
});

test("what the file says is read, and what is too much is refused", () => {
  expect(readTraffic(undefined)).toBeNull();
  expect(readTraffic({ demands: [{ from: "a", to: "b", rate: 7 }, null, { from: "a", to: "a", rate: 1 }, { from: "a", to: "c", rate: "x" }], size: 9999 })).toEqual({ demands: [{ from: "a", to: "b", rate: 7 }, { from: "a", to: "c", rate: 0 }], size: 1000, seconds: 3 });
  expect(() => flowsOf([{ from: "a", to: "b", rate: 0 }], 100)).toThrow("nobody sends");
  expect(() => flowsOf(fill(hosts(9), "all", 1, 1), 100)).toThrow("72 pairs send: at most 64");
  expect(flowsOf(fill(hosts(8), "all", 5, 1), 100).length).toBe(56);
});

test("figures of what became of it", () => {
  const f = { from: "a", to: "b", sent: 200, received: 150, mean_ms: 1.234, p99_ms: 9 };
  expect(lost(f)).toBe(0.25);
  expect((["lost", "mean", "p99", "mbit"] as const).map((x) => figureOf(f, x, 2, 1000))).toEqual(["25.0", "1.23", "9.00", "0.600"]);
  expect(figureOf({ sent: 5 }, "mean", 1, 100)).toBe("–");
  expect(figureOf({ error: "no route" }, "lost", 1, 100)).toBe("failed");
});
