import { Random } from "../lab/random";

/** Point is a position on the map. */
export interface Point {
  x: number;
  y: number;
}

/** side is the wanted length of a link. */
export const side = 90;

/**
 * arrange places nodes such that linked ones are near each other and none lie on
 * each other (Fruchterman and Reingold 1991; only near nodes push each other
 * apart). Nodes that have a place move little. The same input gives the same places.
 */
export function arrange(nodes: string[], links: Array<[string, string]>, known: Map<string, Point> = new Map()): Map<string, Point> {
  const n = nodes.length;
  const index = new Map(nodes.map((id, i) => [id, i]));
  const x = new Float64Array(n);
  const y = new Float64Array(n);
  const fixed = new Uint8Array(n);
  const ends: Array<[number, number]> = [];
  const near: number[][] = nodes.map(() => []);
  for (const [a, b] of links) {
    const i = index.get(a);
    const j = index.get(b);
    if (i === undefined || j === undefined || i === j) continue;
    ends.push([i, j]);
    near[i].push(j);
    near[j].push(i);
  }
  place(nodes, near, known, x, y, fixed);
  const rounds = n > 600 ? 60 : n > 150 ? 120 : 250;
  const fx = new Float64Array(n);
  const fy = new Float64Array(n);
  for (let round = 0; round < rounds; round++) {
    const heat = (side * (rounds - round)) / rounds + 1;
    fx.fill(0);
    fy.fill(0);
    apart(x, y, fx, fy);
    for (const [i, j] of ends) {
      const dx = x[j] - x[i];
      const dy = y[j] - y[i];
      const d = Math.hypot(dx, dy) || 1;
      // What hangs on one link only, as hosts do, is nearer.
      const wanted = near[i].length === 1 || near[j].length === 1 ? 0.9 * side : 1.4 * side;
      const f = d / wanted;
      const share = 1 / Math.sqrt(Math.max(near[i].length, near[j].length));
      fx[i] += dx * f * share;
      fy[i] += dy * f * share;
      fx[j] -= dx * f * share;
      fy[j] -= dy * f * share;
    }
    for (let i = 0; i < n; i++) {
      const f = Math.hypot(fx[i], fy[i]) || 1;
      const step = Math.min(f, heat) * (fixed[i] ? 0.05 : 1);
      x[i] += (fx[i] / f) * step;
      y[i] += (fy[i] / f) * step;
    }
  }
  return new Map(nodes.map((id, i) => [id, { x: Math.round(x[i]), y: Math.round(y[i]) }]));
}

/** place gives every node a first place: its own, beside a neighbour, or in rings
 * around the node with most links. */
function place(nodes: string[], near: number[][], known: Map<string, Point>, x: Float64Array, y: Float64Array, fixed: Uint8Array) {
  const r = new Random(nodes.length + 1);
  const placed = new Uint8Array(nodes.length);
  for (let i = 0; i < nodes.length; i++) {
    const p = known.get(nodes[i]);
    if (p) [x[i], y[i], fixed[i], placed[i]] = [p.x, p.y, 1, 1];
  }
  const order = nodes.map((_, i) => i).sort((a, b) => near[b].length - near[a].length || a - b);
  let islands = 0;
  for (const first of order) {
    if (placed[first]) continue;
    const beside = near[first].find((j) => placed[j]);
    if (beside !== undefined) {
      x[first] = x[beside] + (r.next() - 0.5) * 2 * side;
      y[first] = y[beside] + (r.next() - 0.5) * 2 * side;
      placed[first] = 1;
      continue;
    }
    const cx = islands === 0 ? 0 : (islands % 8) * side * 4;
    const cy = islands === 0 ? 0 : Math.ceil(islands / 8) * side * 4;
    islands++;
    let ring = [first];
    placed[first] = 1;
    for (let depth = 0; ring.length > 0; depth++) {
      const next: number[] = [];
      ring.forEach((i, at) => {
        const angle = (2 * Math.PI * at) / ring.length + depth;
        const radius = depth * side * Math.max(1, Math.sqrt(ring.length) / 4);
        x[i] = cx + radius * Math.cos(angle) + r.next();
        y[i] = cy + radius * Math.sin(angle) + r.next();
        for (const j of near[i]) if (!placed[j]) (placed[j] = 1), next.push(j);
      });
      ring = next;
    }
  }
}

/** apart pushes near nodes from each other; a grid finds them. */
function apart(x: Float64Array, y: Float64Array, fx: Float64Array, fy: Float64Array) {
  const cell = 2.5 * side;
  const cells = new Map<number, number[]>();
  const at = (i: number, dx: number, dy: number) => (Math.floor(x[i] / cell) + dx) * 1_000_003 + Math.floor(y[i] / cell) + dy;
  for (let i = 0; i < x.length; i++) {
    const list = cells.get(at(i, 0, 0));
    if (list) list.push(i);
    else cells.set(at(i, 0, 0), [i]);
  }
  for (let i = 0; i < x.length; i++) {
    for (let dx = -1; dx <= 1; dx++) {
      for (let dy = -1; dy <= 1; dy++) {
        for (const j of cells.get(at(i, dx, dy)) ?? []) {
          if (j <= i) continue;
          const ex = x[i] - x[j] || 0.1 * (i - j);
          const ey = y[i] - y[j] || 0.1;
          const d2 = ex * ex + ey * ey;
          if (d2 > cell * cell) continue;
          const f = (side * side) / d2;
          fx[i] += ex * f;
          fy[i] += ey * f;
          fx[j] -= ex * f;
          fy[j] -= ey * f;
        }
      }
    }
  }
}
