import { expect, test } from "vitest";

import { aligned, chartOf, placeOf } from "./chart";
import { compareClaims, comparePoints, pointsOf, together } from "./points";
import { byPaper, duration, howLong, interval, mood, number, said, stateOf } from "./words";

test("numbers and times are for people", () => {
  expect([0, 0.012345, 12.3456, 123456.7, null, NaN].map(number)).toEqual(["0", "0.0123", "12.3", "123,457", "–", "–"]);
  expect([0.2, 12, 600, 7200].map(duration)).toEqual(["less than a second", "12 s", "10 min", "2 h 0 min"]);
  expect([interval([1, 2]), interval([])]).toEqual(["1 to 2", "–"]);
});

test("experiments are grouped by paper in the order of the list", () => {
  const groups = byPaper([{ name: "a", paper: "P" }, { name: "b", paper: "Q" }, { name: "c", paper: "P" }]);
  expect(groups.map((g) => [g.paper, g.experiments.map((e) => e.name)])).toEqual([["P", ["a", "c"]], ["Q", ["b"]]]);
});

test("how long a run takes is said by what is known", () => {
  const e = { rounds: 10, quick_rounds: 2, quick_seconds: 30 };
  expect(howLong(e, true, 4, 30)).toContain("About 60 s");
  expect(howLong(e, false, 10, 30)).toContain("Longer than a quick run");
  expect(howLong({}, true, 2, 30)).toContain("not known yet");
  expect(howLong({}, true, 2, 30)).toContain("after 30 min");
});

test("states and verdicts", () => {
  expect(stateOf({ state: "running", done: 3, total: 9, seconds_left: 61 })).toBe("running: 3 of 9, about 61 s left");
  expect(stateOf({ state: "failed", error: "no root" })).toBe("failed: no root");
  expect([said("met"), said("contradicts"), said("-"), mood("missed"), mood("contradicts"), mood("reproduced"), mood("-")]).toEqual([
    "met", "contradicts", "–", "bad", "bad", "good", "dim",
  ]);
});

const bars = {
  x: { label: "transport", names: ["grpc", "ws"] },
  y: { label: "ms" },
  series: [
    { name: "weft", kind: "bars", colour: 1, points: [{ x: 0, y: 4, ci95: [3, 6] }, { x: 1, y: null as unknown as number }] },
    { name: "paper", kind: "bars", colour: 0, source: "Fig. 9", points: [{ x: 0, y: 2 }, { x: 1, y: 5 }] },
  ],
};

test("bars stand beside each other, and axes include zero and intervals", () => {
  const c = chartOf(bars);
  expect(c.series[0].points).toEqual([{ x: -0.2, y: 4, low: 3, high: 6 }]);
  expect(c.series[1].points.map((p) => p.x)).toEqual([0.2, 1.2]);
  expect(c.series.map((s) => [s.name, s.hollow])).toEqual([["weft", false], ["the paper", true]]);
  expect(c.x).toEqual([-0.6, 1.6]);
  expect(c.y[0]).toBe(0);
  expect(c.y[1]).toBeGreaterThanOrEqual(6);
  expect(aligned(c)).toEqual([[-0.2, 0.2, 1.2], [4, null, null], [null, 2, 5]]);
});

test("a logarithmic axis leaves out what it has no place for", () => {
  const c = chartOf({ x: { log: true }, y: { log: true }, series: [{ kind: "line", points: [{ x: 0, y: 1 }, { x: 1, y: 0 }, { x: 10, y: 5, ci95: [-1, 9] }] }] });
  expect(c.series[0].points).toEqual([{ x: 10, y: 5, low: 5, high: 9 }]);
  expect(c.y[0]).toBeGreaterThan(0);
});

test("a panel without points has axes", () => {
  const c = chartOf({});
  expect(c.x.every(Number.isFinite) && c.y.every(Number.isFinite)).toBe(true);
  expect(aligned(c)).toEqual([[]]);
});

test("the table has every point", () => {
  const rows = pointsOf({ panels: [bars] });
  expect(rows).toHaveLength(4);
  expect(rows[0]).toEqual({ panel: "ms", series: "weft", x: "grpc", y: 4, low: 3, high: 6, paper: false });
  expect(rows[1].y).toBeNull();
  expect(placeOf([], 0.1 + 0.2)).toBe("0.3");
});

test("two runs stand beside each other", () => {
  const a = { claims: [{ figure: "Fig. 1", what: "x", ours: 2, ci95: [1, 3], unit: "ms" }, { what: "only a", ours: 1 }] };
  const b = { claims: [{ what: "only b", ours: 7 }, { figure: "Fig. 1", what: "x", ours: 8, ci95: [7, 9] }] };
  const rows = compareClaims(a, b);
  expect(rows.map((r) => [r.what, r.a, r.b, r.ratio, r.apart])).toEqual([
    ["Fig. 1: x", 2, 8, 4, true],
    ["only a", 1, null, null, null],
    ["only b", null, 7, null, null],
  ]);
  const points = comparePoints({ panels: [bars] }, { panels: [{ ...bars, series: [{ name: "weft", points: [{ x: 0, y: 6 }] }] }] });
  expect(points.map((r) => [r.what, r.a, r.b, r.ratio])).toEqual([["ms, weft, grpc", 4, 6, 1.5], ["ms, weft, ws", null, null, null]]);
  const both = together(bars, bars, "x.2");
  expect(both.series?.map((s) => s.name)).toEqual(["weft", "paper", "weft (x.2)"]);
});
