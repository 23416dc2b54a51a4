// Where nodes stand.

import { arrange, side } from "../network/layout";

export type Position = [number, number];
export interface Drawn {
  nodes: string[];
  links: Array<[string, string]>;
  /** small are nodes that stand around the one they are joined to, such as hosts. */
  small?: Set<string>;
}

export const layouts = ["force", "circle", "grid", "layered"] as const;
export type Layout = (typeof layouts)[number];

const gap = 110;

/** lay returns a position for each node. */
export function lay(how: Layout, drawn: Drawn): Map<string, Position> {
  const big = drawn.nodes.filter((n) => !drawn.small?.has(n));
  const main = big.length > 0 && how !== "grid" ? big : drawn.nodes;
  const at = new Map<string, Position>();
  if (how === "circle") circle(main, drawn.links).forEach((p, n) => at.set(n, p));
  else if (how === "grid") grid(main).forEach((p, n) => at.set(n, p));
  else if (how === "layered") layered(main, drawn.links).forEach((p, n) => at.set(n, p));
  else force(main, drawn.links).forEach((p, n) => at.set(n, p));
  if (main !== drawn.nodes) around(drawn, at);
  for (const [n, [x, y]] of at) at.set(n, [Math.round(x) + 0, Math.round(y) + 0]);
  return at;
}

/** complete returns a position for each node: those that have one keep it, others stand where they are joined to those, or beside them. */
export function complete(drawn: Drawn, fixed: Map<string, Position>): Map<string, Position> {
  if (fixed.size === 0) return lay(drawn.nodes.length > 60 ? "force" : "circle", drawn);
  const at = new Map(fixed);
  const of = neighbours(drawn.nodes, drawn.links);
  const apart = new Set(drawn.nodes.filter((n) => !at.has(n) && !drawn.small?.has(n)));
  for (let more = true; more; ) {
    more = false;
    for (const n of apart) {
      const joined = of.get(n)!.filter((m) => at.has(m));
      const near = joined.map((m) => at.get(m)!);
      if (near.length === 0) continue;
      const mean: Position = [near.reduce((s, p) => s + p[0], 0) / near.length, near.reduce((s, p) => s + p[1], 0) / near.length];
      const away = free(mean, of.get(joined[0])!.filter((m) => at.has(m)).map((m) => at.get(m)!), -Math.PI / 2);
      at.set(n, near.length === 1 ? [mean[0] + gap * Math.cos(away), mean[1] + gap * Math.sin(away)] : mean);
      apart.delete(n);
      more = true;
    }
  }
  if (apart.size > 0) {
    const there = [...at.values()];
    const others = force([...apart], drawn.links);
    const left = Math.min(...[...others.values()].map((p) => p[0]));
    const [right, top] = [Math.max(...there.map((p) => p[0])), Math.min(...there.map((p) => p[1]))];
    for (const [n, [x, y]] of others) at.set(n, [x - left + right + 2 * gap, y + top]);
  }
  around(drawn, at);
  for (const [n, [x, y]] of at) if (!fixed.has(n)) at.set(n, [Math.round(x) + 0, Math.round(y) + 0]);
  return at;
}

function neighbours(nodes: string[], links: Array<[string, string]>): Map<string, string[]> {
  const of = new Map<string, string[]>(nodes.map((n) => [n, []]));
  for (const [a, b] of links) {
    if (!of.has(a) || !of.has(b) || a === b) continue;
    of.get(a)!.push(b);
    of.get(b)!.push(a);
  }
  return of;
}

/** circle goes round in an order in which neighbours follow each other where they can. */
function circle(nodes: string[], links: Array<[string, string]>): Map<string, Position> {
  const of = neighbours(nodes, links);
  const order: string[] = [];
  const seen = new Set<string>();
  for (const first of nodes) {
    const next = [first];
    while (next.length > 0) {
      const n = next.pop()!;
      if (seen.has(n)) continue;
      seen.add(n);
      order.push(n);
      next.push(...of.get(n)!.filter((m) => !seen.has(m)).reverse());
    }
  }
  const radius = Math.max(gap, (order.length * gap) / (2 * Math.PI));
  return new Map(order.map((n, i) => [n, [radius * Math.sin((2 * Math.PI * i) / order.length), -radius * Math.cos((2 * Math.PI * i) / order.length)]]));
}

function grid(nodes: string[]): Map<string, Position> {
  const width = Math.ceil(Math.sqrt(nodes.length));
  return new Map(nodes.map((n, i) => [n, [(i % width) * gap, Math.floor(i / width) * gap]]));
}

/** layered stands nodes in rows by how far they are from the one with most links. */
function layered(nodes: string[], links: Array<[string, string]>): Map<string, Position> {
  const of = neighbours(nodes, links);
  const row = new Map<string, number>();
  const rows: string[][] = [];
  const order = [...nodes].sort((a, b) => of.get(b)!.length - of.get(a)!.length);
  for (const root of order) {
    if (row.has(root)) continue;
    let level = [root];
    row.set(root, 0);
    for (let d = 0; level.length > 0; d++) {
      (rows[d] ??= []).push(...level);
      const next: string[] = [];
      for (const n of level) {
        for (const m of of.get(n)!) {
          if (row.has(m)) continue;
          row.set(m, d + 1);
          next.push(m);
        }
      }
      level = next;
    }
  }
  const at = new Map<string, Position>();
  rows.forEach((r, y) => r.forEach((n, x) => at.set(n, [(x - (r.length - 1) / 2) * gap, y * gap * 1.2])));
  return at;
}

/** force is the map's layout, at the distances of a drawing. */
function force(nodes: string[], links: Array<[string, string]>): Map<string, Position> {
  const scale = gap / side;
  return new Map([...arrange(nodes, links)].map(([n, p]) => [n, [p.x * scale, p.y * scale]]));
}

/** free returns the middle of the widest angle at a node in which nothing is drawn;
 * of several, one that leads away from the middle of the drawing. */
function free(p: Position, others: Position[], outward: number): number {
  const taken = others.map((q) => Math.atan2(q[1] - p[1], q[0] - p[0])).sort((a, b) => a - b);
  let [best, found] = [-Infinity, outward];
  taken.forEach((a, i) => {
    const width = (i + 1 < taken.length ? taken[i + 1] : taken[0] + 2 * Math.PI) - a;
    const middle = a + width / 2;
    const good = width + Math.cos(middle - outward) / 2;
    if (good > best) [best, found] = [good, middle];
  });
  return found;
}

/** around stands small nodes at those they are joined to, where there is room. */
function around(drawn: Drawn, at: Map<string, Position>) {
  const big = [...at];
  const joined = neighbours([...at.keys()], drawn.links);
  let [mx, my] = [0, 0];
  for (const [x, y] of at.values()) [mx, my] = [mx + x / at.size, my + y / at.size];
  const of = new Map<string, string[]>();
  const small = drawn.nodes.filter((n) => !at.has(n));
  const owner = new Map<string, string>();
  for (const [a, b] of drawn.links) {
    if (at.has(a) && !at.has(b)) owner.set(b, owner.get(b) ?? a);
    if (at.has(b) && !at.has(a)) owner.set(a, owner.get(a) ?? b);
  }
  for (const s of small) {
    const o = owner.get(s) ?? "";
    of.set(o, [...(of.get(o) ?? []), s]);
  }
  for (const [o, all] of of) {
    const p = at.get(o);
    const outward = !p || Math.hypot(p[0] - mx, p[1] - my) < 1 ? -Math.PI / 2 : Math.atan2(p[1] - my, p[0] - mx);
    const near = !p || big.length > 500 ? [] : big.filter(([n, q]) => n !== o && Math.hypot(q[0] - p[0], q[1] - p[1]) < 2 * gap).map(([, q]) => q);
    const away = p ? free(p, [...near, ...(joined.get(o) ?? []).map((n) => at.get(n)!)], outward) : outward;
    all.forEach((s, i) => {
      if (!p) return at.set(s, [mx + i * gap, my - gap * 3]);
      const spread = all.length > 1 ? (i - (all.length - 1) / 2) * Math.min(0.9, (2 * Math.PI) / all.length) : 0;
      const far = gap * 0.75 * (1 + Math.floor(all.length / 8) * 0.3);
      return at.set(s, [p[0] + far * Math.cos(away + spread), p[1] + far * Math.sin(away + spread)]);
    });
  }
}
