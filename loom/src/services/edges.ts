import type { Crossing } from "../api/types.gen";

/** Edge is all that one process sends another. */
export interface Edge {
  from: string;
  to: string;
  perS: number;
  p50: number; // of the busiest of them, microseconds
  transport: string;
}

/** edges sums up crossings between processes, the busiest first. */
export function edges(crossings: Crossing[]): Edge[] {
  const by = new Map<string, Edge & { most: number }>();
  for (const c of crossings) {
    if (!c.from_process || !c.to_process || c.from_process === c.to_process) continue;
    const key = c.from_process + " " + c.to_process;
    let e = by.get(key);
    if (!e) by.set(key, (e = { from: c.from_process, to: c.to_process, perS: 0, p50: 0, transport: c.transport ?? "", most: -1 }));
    e.perS += c.per_s ?? 0;
    if ((c.per_s ?? 0) > e.most) [e.most, e.p50] = [c.per_s ?? 0, c.p50_us ?? 0];
  }
  return [...by.values()].map(({ most: _, ...e }) => e).sort((a, b) => b.perS - a.perS);
}

/** ring places processes on an ellipse of a picture of a width and height. */
export function ring(names: string[], width: number, height: number): Map<string, { x: number; y: number }> {
  const [rx, ry] = [width / 2 - 80, height / 2 - 30];
  return new Map(names.map((n, i) => [n, { x: width / 2 + rx * Math.cos((2 * Math.PI * i) / names.length - Math.PI / 2), y: height / 2 + ry * Math.sin((2 * Math.PI * i) / names.length - Math.PI / 2) }]));
}
