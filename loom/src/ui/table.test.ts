import { expect, test } from "vitest";

import { keyed, orderOf, sorted, widths, type Column } from "./table";

const columns: Array<Column<{ name: string; rate: number }>> = [
  { title: "Name", text: (r) => r.name },
  { title: "Rate", text: (r) => (r.rate ? `${r.rate} kb/s` : ""), number: true, value: (r) => r.rate || NaN },
];
const rows = [{ name: "s10", rate: 900 }, { name: "s9", rate: 0 }, { name: "s1", rate: 2000 }];
const names = (list: typeof rows) => list.map((r) => r.name);

test("numbers in names count as numbers, rates by their value, and what has none is last", () => {
  expect(names(sorted(rows, columns, 0, false, ""))).toEqual(["s1", "s9", "s10"]);
  expect(names(sorted(rows, columns, 1, false, ""))).toEqual(["s10", "s1", "s9"]);
  expect(names(sorted(rows, columns, 1, true, ""))).toEqual(["s1", "s10", "s9"]);
  expect(sorted(rows, columns, -1, false, "")).toEqual(rows);
});

test("every word of a filter has to be in a row", () => {
  expect(names(sorted(rows, columns, -1, false, "S1 kb"))).toEqual(["s10", "s1"]);
  expect(sorted(rows, columns, -1, false, "s1 none")).toEqual([]);
});

test("an address keeps the order", () => {
  expect(orderOf(columns, "-Rate")).toEqual({ by: 1, down: true });
  expect(orderOf(columns, "Name")).toEqual({ by: 0, down: false });
  expect(orderOf(columns, "gone")).toEqual({ by: -1, down: false });
});

test("rows with the same key are all shown", () => {
  expect(new Set(keyed([{ name: "a" }, { name: "a" }, { name: "b" }], (r) => r.name).map(([k]) => k)).size).toBe(3);
});

test("columns fill their table: numbers whole, the longest text gives way first", () => {
  const sum = (list: number[]) => Math.round(list.reduce((a, b) => a + b, 0));
  expect(widths([50, 60, 40], [false, true, false], 400)).toEqual([175, 60, 165]);
  expect(widths([50, 60], [true, true], 200)).toEqual([95, 105]);
  const tight = widths([60, 500, 80, 300], [false, false, true, false], 396);
  expect(tight).toEqual([60, 128, 80, 128]);
  expect(sum(tight)).toBe(396);
  // What has no room at all is scrolled.
  expect(sum(widths([200, 200, 200], [false, true, false], 100))).toBe(312);
});
