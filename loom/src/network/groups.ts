// Which switches belong together on a large map, and where they stand: by what their names say, else by their links.

import { arrange } from "./layout";
import type { Point } from "./scene";

/** Grouped is a group of nodes, the one with most links first. */
export interface Grouped {
  label: string;
  members: string[];
}

/** stem returns what a name says of a place or pod: what is before its first mark ("pod3-edge1", "fra.core"), or before its
 * number ("mil15"). */
function stem(name: string): string {
  const marked = /^(.+?)[-_.:/ ]/.exec(name);
  return (marked ? marked[1] : name.replace(/\d+$/, "")).trim();
}

/** byNames groups nodes by their names; undefined if those say nothing: too many groups or too few, or one with most of all. */
function byNames(ids: string[], names: Map<string, string>): Map<string, string[]> | undefined {
  const out = new Map<string, string[]>();
  for (const id of ids) {
    const s = stem(names.get(id) ?? "");
    if (!s) return undefined;
    out.set(s, [...(out.get(s) ?? []), id]);
  }
  const largest = Math.max(...[...out.values()].map((m) => m.length));
  return out.size >= 3 && out.size <= ids.length / 3 && largest <= ids.length / 2 ? out : undefined;
}

const unlinked = "Without links";

/** byLinks grows groups of about the same size from nodes that are far from each other, each to its neighbours; then nodes go
 * where most of theirs are. Those that no link leads to are one group. */
function byLinks(all: string[], near: Map<string, string[]>): Map<string, string[]> {
  const [ids, lone] = [all.filter((id) => near.get(id)!.length > 0), all.filter((id) => near.get(id)!.length === 0)];
  const out = new Map<string, string[]>(lone.length > 0 ? [[unlinked, lone]] : []);
  if (ids.length === 0) return out;
  const count = Math.max(4, Math.min(36, Math.round(0.75 * Math.sqrt(ids.length))));
  const of = new Map<string, number>();
  const seeds: string[] = [];
  const far = new Map<string, number>(ids.map((id) => [id, Infinity]));
  for (let next = ids.reduce((a, b) => (near.get(b)!.length > near.get(a)!.length ? b : a)); seeds.length < count; ) {
    seeds.push(next);
    far.set(next, 0);
    for (let ring = [next], depth = 1; ring.length > 0; depth++) {
      const beyond: string[] = [];
      for (const id of ring) for (const n of near.get(id)!) if (far.get(n)! > depth) (far.set(n, depth), beyond.push(n));
      ring = beyond;
    }
    const rank = (id: string) => Math.min(far.get(id)!, 1e6) * 1e3 + near.get(id)!.length;
    next = ids.reduce((a, b) => (rank(b) > rank(a) ? b : a));
    if (far.get(next) === 0) break;
  }
  const fronts = seeds.map((s, i) => (of.set(s, i), [s]));
  const sizes = seeds.map(() => 1);
  for (let grown = true; grown; ) {
    grown = false;
    const order = fronts.map((_, i) => i).sort((a, b) => sizes[a] - sizes[b] || a - b);
    for (const g of order) {
      const free = fronts[g].flatMap((id) => near.get(id)!).find((n) => !of.has(n));
      if (free === undefined) continue;
      of.set(free, g);
      fronts[g] = fronts[g].filter((id) => near.get(id)!.some((n) => !of.has(n)));
      fronts[g].push(free);
      sizes[g]++;
      grown = true;
      break; // the smallest that can grow
    }
  }
  for (const id of ids) if (!of.has(id)) of.set(id, seeds.length); // in pieces that have no seed
  const most = (1.4 * ids.length) / count;
  for (let round = 0; round < 3; round++) {
    for (const id of ids) {
      const votes = new Map<number, number>();
      for (const n of near.get(id)!) votes.set(of.get(n)!, (votes.get(of.get(n)!) ?? 0) + 1);
      const own = of.get(id)!;
      for (const [g, n] of votes) if (n > (votes.get(own) ?? 0) && of.get(id) === own && g < seeds.length && own < seeds.length && sizes[g] < most && sizes[own] > 1) (of.set(id, g), sizes[own]--, sizes[g]++);
    }
  }
  for (const [id, g] of of) out.set(String(g), [...(out.get(String(g)) ?? []), id]);
  return out;
}

/** groupsOf divides nodes into groups; the same network gives the same groups. */
export function groupsOf(ids: string[], links: Array<[string, string]>, names: Map<string, string>): Grouped[] {
  const near = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const [a, b] of links) if (a !== b && near.has(a) && near.has(b)) (near.get(a)!.push(b), near.get(b)!.push(a));
  const sorted = [...ids].sort();
  const named = byNames(sorted, names);
  const all = named ?? byLinks(sorted, near);
  return [...all].map(([key, members]) => {
    members.sort((a, b) => near.get(b)!.length - near.get(a)!.length || (a < b ? -1 : 1));
    return { label: named || key === unlinked ? key : `Around ${names.get(members[0]) || members[0]}`, members };
  });
}

const step = 8; // of the spiral on which members stand
const rim = 10; // between the last of them and the circle

/** radius returns that of the circle around so many nodes. */
export const radius = (n: number) => step * Math.sqrt(n) + rim;

/** seat returns where the i-th member of a group stands, from its middle (Vogel 1979: no two are near). */
export function seat(i: number): Point {
  const [r, angle] = [step * Math.sqrt(i + 0.5), i * Math.PI * (3 - Math.sqrt(5))];
  return { x: Math.round(10 * r * Math.cos(angle)) / 10, y: Math.round(10 * r * Math.sin(angle)) / 10 };
}

/** placeGroups returns where the middles of groups are: linked ones near each other, no circle over another. */
export function placeGroups(groups: Grouped[], links: Array<[string, string]>): Point[] {
  const of = new Map(groups.flatMap((g, i) => g.members.map((id) => [id, i] as const)));
  const between = new Set<string>();
  for (const [a, b] of links) {
    const [i, j] = [of.get(a), of.get(b)];
    if (i !== undefined && j !== undefined && i !== j) between.add(`${Math.min(i, j)} ${Math.max(i, j)}`);
  }
  const ids = groups.map((_, i) => String(i));
  const at = arrange(ids, [...between].map((pair) => pair.split(" ") as [string, string]));
  const r = groups.map((g) => radius(g.members.length));
  const mean = r.reduce((a, b) => a + b, 0) / r.length;
  const points = ids.map((id) => ({ x: (at.get(id)!.x * mean) / 36, y: (at.get(id)!.y * mean) / 36 }));
  const room = 46; // for names
  for (let round = 0; round < 200; round++) {
    let any = false;
    for (let i = 0; i < points.length; i++) {
      for (let j = 0; j < i; j++) {
        const [dx, dy] = [points[i].x - points[j].x || 0.1, points[i].y - points[j].y || 0.1];
        const d = Math.hypot(dx, dy);
        const short = r[i] + r[j] + room - d;
        if (short <= 0.5) continue;
        any = true;
        for (const [p, sign] of [[points[i], 1], [points[j], -1]] as const) {
          p.x += (sign * dx * short) / d / 2;
          p.y += (sign * dy * short) / d / 2;
        }
      }
    }
    if (!any) break;
  }
  return points.map((p) => ({ x: Math.round(p.x), y: Math.round(p.y) }));
}
