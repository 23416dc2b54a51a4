import { expect, test } from "vitest";

import { Random } from "../lab/random";
import { arrange } from "./layout";

function ring(n: number): { nodes: string[]; links: Array<[string, string]> } {
  const nodes = Array.from({ length: n }, (_, i) => `s${i}`);
  return { nodes, links: nodes.map((id, i) => [id, nodes[(i + 1) % n]]) };
}

test("places are finite, apart, and the same for the same network", () => {
  for (const n of [1, 2, 3, 10, 100]) {
    const { nodes, links } = ring(n);
    const places = arrange(nodes, links);
    expect(places).toEqual(arrange(nodes, links));
    const seen = [...places.values()];
    expect(seen.every((p) => Number.isFinite(p.x) && Number.isFinite(p.y))).toBe(true);
    for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) expect(Math.hypot(seen[i].x - seen[j].x, seen[i].y - seen[j].y)).toBeGreaterThan(5);
  }
});

test("a new node leaves the others about where they are", () => {
  const { nodes, links } = ring(20);
  const before = arrange(nodes, links);
  const after = arrange([...nodes, "new"], [...links, ["new", "s3"]], before);
  for (const id of nodes) expect(Math.hypot(after.get(id)!.x - before.get(id)!.x, after.get(id)!.y - before.get(id)!.y)).toBeLessThan(400);
});

test("links to nodes that are not there, and to oneself, are no harm", () => {
  expect(arrange(["a"], [["a", "a"], ["a", "b"]]).size).toBe(1);
});

test("a thousand nodes are placed in seconds", () => {
  const r = new Random(7);
  const nodes = Array.from({ length: 1000 }, (_, i) => `s${i}`);
  const links = Array.from({ length: 3000 }, () => [r.pick(nodes), r.pick(nodes)] as [string, string]);
  expect(arrange(nodes, links).size).toBe(1000);
});
