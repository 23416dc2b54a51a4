// Where switches and hosts stand is kept in the browser, for the network that it was.

import type { Point } from "./scene";

const stored = "loom.places";
const most = 6000; // nodes whose places are kept

/** Kept are places, and the groups that nodes were in, of a network with these links. */
export interface Kept {
  links: string[]; // short marks of them
  at: Array<[string, number, number]>;
  groups: Array<[string, string[]]>; // labels, and the members by their order
}

/** markOf returns a short mark of a link: a hash (FNV-1a). */
export function markOf(cable: string): string {
  let h = 0x811c9dc5;
  for (let i = 0; i < cable.length; i++) h = Math.imul(h ^ cable.charCodeAt(i), 0x01000193);
  return (h >>> 0).toString(36);
}

/** same reports whether two networks are one: at least half of the links of the smaller are in both. */
export function same(a: string[], b: string[]): boolean {
  const has = new Set(a);
  return 2 * b.filter((m) => has.has(m)).length >= Math.min(a.length, b.length);
}

/** readPlaces returns what was kept of a network with these links; undefined if that was another. */
export function readPlaces(links: string[]): Kept | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(stored) ?? "null") as Kept | null;
    return kept && same(kept.links, links) ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** writePlaces keeps places; without room for them, they are arranged anew after a reload. */
export function writePlaces(links: string[], at: Map<string, Point>, groups: Array<[string, string[]]>) {
  try {
    localStorage.setItem(stored, JSON.stringify({ links, at: [...at].slice(0, most).map(([id, p]) => [id, Math.round(p.x), Math.round(p.y)]), groups } satisfies Kept));
  } catch {
    // No room.
  }
}
