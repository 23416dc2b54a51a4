import type { Crossing, WatchedPacket } from "../api/types.gen";

/** Point is a place on the board, in pixels. */
export interface Point {
  x: number;
  y: number;
}

/** Rect is a part of the board. */
export interface Rect {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Stop is a service in a worker. */
export interface Stop {
  worker: string;
  service: string;
}

export const stopKey = (s: Stop) => `${s.worker} ${s.service}`;

/** Flow is what the processes of one worker send those of another. */
export interface Flow {
  from: Stop; // of the busiest of its messages
  to: Stop;
  perS: number;
  p50: number; // of the busiest of its messages, microseconds
  transports: string[];
}

const least = 0.05; // messages per second that are drawn
const most = 24; // arrows, the busiest; the table has all

/** flows sums up what crosses processes, by workers, the busiest first. */
export function flows(crossings: Crossing[], workerOf: (process: string) => string): Flow[] {
  const by = new Map<string, Flow & { busiest: number }>();
  for (const c of crossings) {
    if (!c.from || !c.to || c.from_process === c.to_process) continue;
    const [from, to] = [workerOf(c.from_process ?? ""), workerOf(c.to_process ?? "")];
    if (from === to) continue; // between replicas: they are one on the board
    const key = `${from} ${to}`;
    let f = by.get(key);
    if (!f) by.set(key, (f = { from: { worker: from, service: c.from }, to: { worker: to, service: c.to }, perS: 0, p50: 0, transports: [], busiest: -1 }));
    f.perS += c.per_s ?? 0;
    if ((c.per_s ?? 0) > 0 && c.transport && !f.transports.includes(c.transport)) f.transports.push(c.transport);
    if ((c.per_s ?? 0) > f.busiest) [f.from.service, f.to.service, f.busiest, f.p50] = [c.from, c.to, c.per_s ?? 0, c.p50_us ?? 0];
  }
  return [...by.values()].filter((f) => f.perS >= least).map(({ busiest: _, ...f }) => f).sort((a, b) => b.perS - a.perS).slice(0, most);
}

/** Curve is a bent line, from a to b. */
export interface Curve {
  a: Point;
  bend: Point;
  b: Point;
}

const middle = (r: Rect): Point => ({ x: (r.left + r.right) / 2, y: (r.top + r.bottom) / 2 });

/** bend returns a curve from the edge of one part of the board to that of another; the curves of
 * both directions bend to different sides. */
export function bend(from: Rect, to: Rect): Curve {
  const [p, q] = [middle(from), middle(to)];
  const [dx, dy] = [q.x - p.x, q.y - p.y];
  const by = { x: (p.x + q.x) / 2 - dy * 0.14, y: (p.y + q.y) / 2 + dx * 0.14 };
  return { a: leave(from, by), bend: by, b: leave(to, by) };
}

/** leave returns where the line from the middle of a part to a point leaves it. */
function leave(r: Rect, to: Point): Point {
  const m = middle(r);
  const [dx, dy] = [to.x - m.x, to.y - m.y];
  const t = Math.min(dx === 0 ? Infinity : (r.right - r.left) / 2 / Math.abs(dx), dy === 0 ? Infinity : (r.bottom - r.top) / 2 / Math.abs(dy), 1);
  return { x: m.x + dx * t, y: m.y + dy * t };
}

export const pathOf = (c: Curve) => `M${c.a.x},${c.a.y} Q${c.bend.x},${c.bend.y} ${c.b.x},${c.b.y}`;

/** on returns a point of a curve, 0 to 1 of it. */
export function on(c: Curve, t: number): Point {
  const [u, v, w] = [(1 - t) * (1 - t), 2 * t * (1 - t), t * t];
  return { x: u * c.a.x + v * c.bend.x + w * c.b.x, y: u * c.a.y + v * c.bend.y + w * c.b.y };
}

const letter = 6.4; // width and height of the labels' letters, pixels, about
const height = 14;
const tries = [0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7, 0.25, 0.75, 0.2, 0.8, 0.15, 0.85, 0.1, 0.9];

/** spread finds a place for the label of each curve where it covers nothing of the board and no other
 * label; undefined if there is none. */
export function spread(curves: Array<{ curve: Curve; text: string }>, taken: Rect[], size: { width: number; height: number }): Array<Point | undefined> {
  const full = taken.slice();
  return curves.map(({ curve, text }) => {
    const half = (text.length * letter) / 2;
    for (const t of tries) {
      const p = on(curve, t);
      const r = { left: p.x - half, right: p.x + half, top: p.y - height, bottom: p.y + 3 };
      if (r.left < 0 || r.top < 0 || r.right > size.width || r.bottom > size.height) continue;
      if (full.some((o) => r.left < o.right && o.left < r.right && r.top < o.bottom && o.top < r.bottom)) continue;
      full.push(r);
      return p;
    }
    return undefined;
  });
}

/** label says a rate and a latency in few characters. */
export function label(f: Flow): string {
  return `${f.perS >= 10 ? f.perS.toFixed(0) : f.perS.toFixed(1)}/s${f.p50 ? `, ${f.p50 >= 1000 ? (f.p50 / 1000).toPrecision(2) + " ms" : f.p50.toFixed(0) + " µs"}` : ""}`;
}

/** way returns the services that a packet has met and where, each stop once in a row. */
export function way(p: WatchedPacket, workerOf: (process: string) => string): Stop[] {
  return (p.stages ?? [])
    .map((s) => ({ worker: workerOf(s.process ?? ""), service: s.service ?? "" }))
    .filter((s, i, all) => s.service !== "" && (i === 0 || stopKey(s) !== stopKey(all[i - 1])));
}

/** along returns where on a way of points a packet is, at a part 0 to 1 of its time. */
export function along(points: Point[], part: number): Point {
  const at = Math.min(Math.max(part, 0), 1) * (points.length - 1);
  const [a, b, t] = [points[Math.floor(at)], points[Math.ceil(at)], at % 1];
  return { x: a.x + (b.x - a.x) * t, y: a.y + (b.y - a.y) * t };
}
