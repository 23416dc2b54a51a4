import { expect, test } from "vitest";

import { Random } from "../lab/random";
import { groupsOf, placeGroups, radius, seat } from "./groups";

/** clusters are rings of switches, of which each is linked with the next. */
function clusters(count: number, size: number) {
  const ids = Array.from({ length: count * size }, (_, i) => `s${i}`);
  const links = ids.map((id, i): [string, string] => [id, ids[i % size === size - 1 ? i - size + 1 : i + 1]]);
  for (let c = 0; c < count; c++) links.push([ids[c * size], ids[((c + 1) % count) * size]]);
  return { ids, links };
}

test("names that tell places or pods make the groups", () => {
  const ids = ["mil", "fra", "ber", "rom"].flatMap((p) => Array.from({ length: 25 }, (_, i) => `${p}${i}`));
  const names = new Map(ids.map((id) => [id, id]));
  expect(groupsOf(ids, [], names).map((g) => [g.label, g.members.length]).sort()).toEqual([["ber", 25], ["fra", 25], ["mil", 25], ["rom", 25]]);
  const pods = ["pod0-agg1", "pod0-edge1", "pod0-edge2", "pod1-agg1", "pod1-edge1", "pod1-edge2", "core-1", "core-2", "core-3"];
  expect(groupsOf(pods, [], new Map(pods.map((p) => [p, p]))).map((g) => g.label)).toEqual(["core", "pod0", "pod1"]);
});

test("else links make them: of about one size, each in one piece, the same for the same network", () => {
  const { ids, links } = clusters(6, 20);
  const names = new Map(ids.map((id) => [id, id])); // s1, s2 …: one stem
  const groups = groupsOf(ids, links, names);
  expect(groups).toEqual(groupsOf(ids, links, names));
  expect(groups.flatMap((g) => g.members).sort()).toEqual([...ids].sort());
  for (const g of groups) {
    expect(g.members.length).toBeGreaterThan(3);
    expect(g.members.length).toBeLessThan(30);
    expect(g.label).toMatch(/^Around s\d+$/);
  }
  const inside = links.filter(([a, b]) => groups.some((g) => g.members.includes(a) && g.members.includes(b))).length;
  expect(inside).toBeGreaterThan(0.8 * links.length);
});

test("switches without links, and a network in pieces, have groups, too", () => {
  const ids = Array.from({ length: 100 }, (_, i) => `x${i}`);
  expect(groupsOf(ids, [], new Map())).toEqual([{ label: "Without links", members: [...ids].sort() }]);
  const links = ids.slice(2).map((id, i): [string, string] => [ids[i & ~1], id]);
  expect(groupsOf(ids, links, new Map()).flatMap((g) => g.members).sort()).toEqual([...ids].sort());
});

test("no circle lies over another, and no two of a group on each other; 2,500 switches are placed", () => {
  const r = new Random(5);
  const ids = Array.from({ length: 2500 }, (_, i) => `s${i}`);
  const links = Array.from({ length: 7500 }, () => [r.pick(ids), r.pick(ids)] as [string, string]);
  const groups = groupsOf(ids, links, new Map());
  const at = placeGroups(groups, links);
  for (let i = 0; i < at.length; i++) for (let j = 0; j < i; j++) expect(Math.hypot(at[i].x - at[j].x, at[i].y - at[j].y)).toBeGreaterThan(radius(groups[i].members.length) + radius(groups[j].members.length));
  const seats = Array.from({ length: 200 }, (_, i) => seat(i));
  for (let i = 0; i < 200; i++) for (let j = 0; j < i; j++) expect(Math.hypot(seats[i].x - seats[j].x, seats[i].y - seats[j].y)).toBeGreaterThan(9);
});
