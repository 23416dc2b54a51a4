import { expect, test } from "vitest";

import { Random } from "../lab/random";
import { placeLabels, type Box, type Wish } from "./labels";

const over = (a: Box, b: Box) => a[0] < b[2] && a[2] > b[0] && a[1] < b[3] && a[3] > b[1];

test("a name stands on the freest side, below if all are free", () => {
  const wish = (angles: number[]): Wish => ({ id: "s1", x: 100, y: 100, half: 20, wide: 30, high: 16, angles });
  const at = (angles: number[]) => placeLabels([wish(angles)], []).get("s1")!;
  expect(at([])).toEqual([85, 124, 115, 140]);
  expect(at([Math.PI / 2, 0, -Math.PI / 2])[2]).toBe(76); // left
  expect(at([Math.PI / 2, 0, Math.PI])[3]).toBe(76); // above
});

test("no name lies over a node or another name, however many there are; the first win", () => {
  const r = new Random(3);
  const wishes = Array.from({ length: 400 }, (_, i): Wish => ({ id: String(i), x: 1000 * r.next(), y: 700 * r.next(), half: 14, wide: 20 + 60 * r.next(), high: 16, angles: [6 * r.next(), 6 * r.next()] }));
  const nodes = wishes.map((w): Box => [w.x - w.half, w.y - w.half, w.x + w.half, w.y + w.half]);
  const placed = placeLabels(wishes, nodes);
  expect(placed.size).toBeGreaterThan(30);
  expect(placed.size).toBeLessThan(400);
  const boxes = [...placed.values()];
  for (const [i, b] of boxes.entries()) {
    for (const n of nodes) expect(over(b, n)).toBe(false);
    for (let j = 0; j < i; j++) expect(over(b, boxes[j])).toBe(false);
  }
  const alone = placeLabels([wishes[0], { ...wishes[0], id: "later" }], []);
  expect(alone.has("0")).toBe(true);
});
