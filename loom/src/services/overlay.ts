import type { Crossing, WatchedPacket } from "../api/types.gen";

/** Point is a place on the board, in pixels. */
export interface Point {
  x: number;
  y: number;
}

/** Flow is what the processes of one worker send those of another. */
export interface Flow {
  from: string; // the services of the busiest of its messages
  to: string;
  perS: number;
  p50: number; // of the busiest of its messages, microseconds
}

const least = 0.05; // messages per second that are drawn
const most = 24; // arrows, the busiest; the table has all

// Replicas are one on the board.
const worker = (process = "") => process.replace(/-\d+$/, "");

/** flows sums up what crosses processes, by workers, the busiest first. */
export function flows(crossings: Crossing[]): Flow[] {
  const by = new Map<string, Flow & { busiest: number }>();
  for (const c of crossings) {
    if (!c.from || !c.to || c.from_process === c.to_process) continue;
    const key = worker(c.from_process) + " " + worker(c.to_process);
    let f = by.get(key);
    if (!f) by.set(key, (f = { from: "", to: "", perS: 0, p50: 0, busiest: -1 }));
    f.perS += c.per_s ?? 0;
    if ((c.per_s ?? 0) > f.busiest) [f.from, f.to, f.busiest, f.p50] = [c.from, c.to, c.per_s ?? 0, c.p50_us ?? 0];
  }
  return [...by.values()].filter((f) => f.perS >= least).map(({ busiest: _, ...f }) => f).sort((a, b) => b.perS - a.perS).slice(0, most);
}

/** bend returns a curve between two points as the path of an SVG, and the place of its
 * label; the curves of both directions bend to different sides. */
export function bend(a: Point, b: Point): { d: string; label: Point } {
  const [mx, my, dx, dy] = [(a.x + b.x) / 2, (a.y + b.y) / 2, b.x - a.x, b.y - a.y];
  return { d: `M${a.x},${a.y} Q${mx - dy * 0.14},${my + dx * 0.14} ${b.x},${b.y}`, label: { x: mx - dy * 0.07, y: my + dx * 0.07 } };
}

/** label says a rate and a latency in few characters. */
export function label(f: Flow): string {
  return `${f.perS >= 10 ? f.perS.toFixed(0) : f.perS.toFixed(1)}/s${f.p50 ? `, ${f.p50 >= 10000 ? (f.p50 / 1000).toFixed(0) + " ms" : f.p50.toFixed(0) + " µs"}` : ""}`;
}

/** way returns the services that a packet has met, each stop once in a row. */
export function way(p: WatchedPacket): string[] {
  return (p.stages ?? []).map((s) => s.service ?? "").filter((s, i, all) => s !== "" && s !== all[i - 1]);
}

/** along returns where on a way of points a packet is, at a part 0 to 1 of its time. */
export function along(points: Point[], part: number): Point {
  const at = Math.min(Math.max(part, 0), 1) * (points.length - 1);
  const [a, b, t] = [points[Math.floor(at)], points[Math.ceil(at)], at % 1];
  return { x: a.x + (b.x - a.x) * t, y: a.y + (b.y - a.y) * t };
}
