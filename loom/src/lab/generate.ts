// Networks by rule: regular ones, and random ones that are the same for the same seed.

import { mostNodes, type Added, type Fields } from "./document";
import { lay, type Layout, type Position } from "./layout";
import type { Model, NodeType } from "./models";
import { Random } from "./random";

export interface Parameter {
  name: string;
  label: string;
  least: number;
  most: number;
  is: number;
}

export interface Generator {
  name: string;
  title: string;
  parameters: Parameter[];
  layout: Layout;
  /** needs are the types of nodes without which a model has no use for it. */
  needs?: string[];
  make: (p: Record<string, number>) => Skeleton;
}

/** Skeleton is nodes, by number, what joins them, and where hosts are. */
interface Skeleton {
  nodes: Array<{ type?: string; at?: Position; name?: string }>;
  links: Array<[number, number]>;
  hosts?: Array<{ at: number; type?: string; name?: string }>;
}

const count = (label: string, least: number, is: number): Parameter => ({ name: "n", label, least, most: mostNodes, is });
const seed: Parameter = { name: "seed", label: "Seed: the same number makes the same network", least: 0, most: 4294967295, is: 1 };
const bare = (n: number): Skeleton["nodes"] => Array.from({ length: n }, () => ({}));

/** functions are the types of a 5G core that there are several of. */
const functions = ["amf", "smf", "ausf", "udm", "pcf"];

/** offered returns the generators that make sense in a model. */
export const offered = (model: Model): Generator[] => generators.filter((g) => (g.needs ?? []).every((t) => model.nodes.some((n) => n.type === t)));

export const generators: Generator[] = [
  { name: "ring", title: "Ring", layout: "circle", parameters: [count("Switches", 3, 4)], make: ({ n }) => ({ nodes: bare(n), links: Array.from({ length: n }, (_, i) => [i, (i + 1) % n]) }) },
  { name: "line", title: "Line", layout: "grid", parameters: [count("Switches", 1, 3)], make: ({ n }) => ({ nodes: Array.from({ length: n }, (_, i) => ({ at: [i * 130, 0] })), links: Array.from({ length: n - 1 }, (_, i) => [i, i + 1]) }) },
  { name: "star", title: "Star", layout: "layered", parameters: [count("Switches around the one in the middle", 1, 5)], make: ({ n }) => ({ nodes: bare(n + 1), links: Array.from({ length: n }, (_, i) => [0, i + 1]) }) },
  {
    name: "tree",
    title: "Tree",
    layout: "layered",
    parameters: [
      { name: "depth", label: "Levels of switches", least: 1, most: 12, is: 3 },
      { name: "fan", label: "Children of each", least: 1, most: 64, is: 2 },
    ],
    make: tree,
  },
  {
    name: "grid",
    title: "Grid",
    layout: "grid",
    parameters: [
      { name: "w", label: "Columns", least: 1, most: mostNodes, is: 3 },
      { name: "h", label: "Rows", least: 1, most: mostNodes, is: 3 },
    ],
    make: gridOf,
  },
  { name: "mesh", title: "Full mesh", layout: "circle", parameters: [{ ...count("Switches", 2, 5), most: 150 }], make: ({ n }) => ({ nodes: bare(n), links: Array.from({ length: n }, (_, i) => Array.from({ length: n - i - 1 }, (_, j): [number, number] => [i, i + j + 1])).flat() }) },
  { name: "fattree", title: "Fat tree", layout: "layered", parameters: [{ name: "k", label: "Ports of each switch (even)", least: 2, most: 26, is: 4 }], make: fatTree },
  { name: "random", title: "Random, connected", layout: "force", parameters: [count("Switches", 2, 12), { name: "degree", label: "Links of a switch on average", least: 1, most: 50, is: 3 }, seed], make: random },
  { name: "ba", title: "Barabási–Albert", layout: "force", parameters: [count("Switches", 2, 20), { name: "m", label: "Links of each new switch", least: 1, most: 20, is: 2 }, seed], make: barabasi },
  { name: "5gc", title: "5G core", needs: ["core", "edge", "nrf", "scp", ...functions], layout: "layered", parameters: [{ name: "n", label: "Producers of each type", least: 1, most: 254, is: 2 }], make: core },
];

function tree({ depth, fan }: Record<string, number>): Skeleton {
  const links: Array<[number, number]> = [];
  let level = [0];
  let n = 1;
  for (let d = 1; d < depth; d++) {
    if (n + level.length * fan > mostNodes) throw new Error(tooMany(n + level.length * fan));
    level = level.flatMap((p) =>
      Array.from({ length: fan }, () => {
        links.push([p, n]);
        return n++;
      }),
    );
  }
  return { nodes: bare(n), links };
}

function gridOf({ w, h }: Record<string, number>): Skeleton {
  if (w * h > mostNodes) throw new Error(tooMany(w * h));
  const links: Array<[number, number]> = [];
  const nodes: Skeleton["nodes"] = [];
  for (let y = 0; y < h; y++) {
    for (let x = 0; x < w; x++) {
      nodes.push({ at: [x * 130, y * 130] });
      if (x > 0) links.push([y * w + x - 1, y * w + x]);
      if (y > 0) links.push([(y - 1) * w + x, y * w + x]);
    }
  }
  return { nodes, links };
}

function fatTree({ k }: Record<string, number>): Skeleton {
  if (k % 2 !== 0) throw new Error(`the number of ports is ${k}: a fat tree needs an even one`);
  const half = k / 2;
  const width = k * half * half * 60;
  const row = (i: number, n: number, y: number): Position => [((i + 0.5) / n) * width, y];
  const out: Required<Skeleton> = { nodes: [], links: [], hosts: [] };
  const put = (type: string, name: string, at: Position) => out.nodes.push({ type, name, at }) - 1;
  for (let i = 0; i < half * half; i++) put("core", `c${i + 1}`, row(i, half * half, 0));
  for (let p = 0; p < k; p++) {
    const above = Array.from({ length: half }, (_, i) => {
      const a = put("aggregation", `a${p + 1}-${i + 1}`, row(p * half + i, k * half, 180));
      for (let j = 0; j < half; j++) out.links.push([i * half + j, a]);
      return a;
    });
    for (let i = 0; i < half; i++) {
      const e = put("edge", `e${p + 1}-${i + 1}`, row(p * half + i, k * half, 340));
      for (const a of above) out.links.push([a, e]);
      for (let h = 0; h < half; h++) out.hosts.push({ at: e });
    }
  }
  return out;
}

/** random joins all by a random tree, then adds links between what has none yet. */
function random({ n, degree, seed }: Record<string, number>): Skeleton {
  if (degree > n - 1) throw new Error(`${n} switches have at most ${n - 1} links each`);
  const r = new Random(seed);
  const order = r.shuffle(Array.from({ length: n }, (_, i) => i));
  const links: Array<[number, number]> = [];
  const seen = new Set<number>();
  const join = (a: number, b: number) => {
    const key = Math.min(a, b) * n + Math.max(a, b);
    if (a === b || seen.has(key)) return;
    seen.add(key);
    links.push([a, b]);
  };
  for (let i = 1; i < n; i++) join(order[i], order[r.below(i)]);
  const want = Math.floor((n * degree) / 2);
  while (links.length < want) join(r.below(n), r.below(n));
  return { nodes: bare(n), links };
}

/** barabasi joins each new switch to some of those there, the more links those have the more likely. */
function barabasi({ n, m, seed }: Record<string, number>): Skeleton {
  if (m >= n) throw new Error(`${n} switches: each new one has at most ${n - 1} links`);
  const r = new Random(seed);
  const links: Array<[number, number]> = [];
  const ends: number[] = [0];
  for (let i = 1; i < n; i++) {
    const to = new Set<number>();
    while (to.size < Math.min(m, i)) to.add(r.next() < 0.05 ? r.below(i) : r.pick(ends));
    for (const t of to) {
      links.push([t, i]);
      ends.push(t);
    }
    for (let k = 0; k < to.size; k++) ends.push(i);
  }
  return { nodes: bare(n), links };
}

function core({ n }: Record<string, number>): Skeleton {
  const edges = Math.min(Math.max(n, 2), 4);
  const nodes: Skeleton["nodes"] = [{ type: "core", name: "core1" }, { type: "core", name: "core2" }];
  const links: Array<[number, number]> = [];
  const gap = Math.max(260, Math.ceil((2 + functions.length * n) / edges) * 60 + 40);
  const middle = ((edges - 1) * gap) / 2;
  nodes[0].at = [middle - 150, 0];
  nodes[1].at = [middle + 150, 0];
  for (let i = 0; i < edges; i++) {
    nodes.push({ type: "edge", name: `edge${i + 1}`, at: [i * gap, 200] });
    links.push([0, i + 2], [1, i + 2]);
  }
  const at = (kind: number, i: number) => 2 + ((kind + i - 1) % edges);
  const hosts: Skeleton["hosts"] = [{ at: at(0, 1), type: "nrf", name: "nrf" }, { at: at(0, 2), type: "scp", name: "scp" }];
  for (let i = 1; i <= n; i++) functions.forEach((type, k) => hosts.push({ at: at(k + 1, i), type, name: `${type}${i}` }));
  return { nodes, links, hosts };
}

function tooMany(n: number): string {
  return `it would have ${n.toLocaleString("en")} nodes: at most ${mostNodes.toLocaleString("en")} are drawn; weft lab up makes larger ones`;
}

export interface Wanted {
  generator: Generator;
  parameters: Record<string, number>;
  /** hosts is how many each switch has; every says that only each so-manieth has them. */
  hosts: number;
  every: number;
}

/** generate makes nodes, links and their positions in the types of a model, by names not taken yet. */
export function generate(model: Model, wanted: Wanted, taken: Iterable<string> = []): Added {
  for (const p of wanted.generator.parameters) {
    const v = wanted.parameters[p.name];
    if (!Number.isInteger(v) || v < p.least) throw new Error(`${p.label}: a whole number from ${p.least.toLocaleString("en")} to ${p.most.toLocaleString("en")}`);
    if (v > p.most) throw new Error(p.most === mostNodes ? tooMany(v) : `${p.label}: at most ${p.most.toLocaleString("en")}`);
  }
  const { hosts, every } = wanted;
  if (!Number.isInteger(hosts) || hosts < 0 || hosts > 100) throw new Error("Hosts of a switch: a whole number from 0 to 100");
  if (!Number.isInteger(every) || every < 1) throw new Error("Hosts at every so many switches: a whole number from 1");
  const skeleton = wanted.generator.make(wanted.parameters);
  const attach = skeleton.hosts ?? skeleton.nodes.flatMap((_, i) => (i % every === 0 ? Array.from({ length: hosts }, () => ({ at: i, type: undefined, name: undefined })) : []));
  const total = skeleton.nodes.length + attach.length;
  if (total > mostNodes) throw new Error(tooMany(total));

  const names = new Set(taken);
  const next = new Map<string, number>();
  const name = (prefix: string, wish?: string) => {
    if (wish && !names.has(wish)) {
      names.add(wish);
      return wish;
    }
    let n = next.get(prefix) ?? 1;
    while (names.has(`${prefix}${n}`)) n++;
    next.set(prefix, n + 1);
    names.add(`${prefix}${n}`);
    return `${prefix}${n}`;
  };
  const busy = new Set(attach.map((h) => h.at));
  const switchTypes = model.nodes.filter((t) => t.list === "switches");
  const typeOf = (wish: string | undefined, i: number): NodeType =>
    switchTypes.find((t) => t.type === wish) ?? switchTypes.find((t) => !!t.hosts === busy.has(i) && !t.named) ?? switchTypes.find((t) => !t.named) ?? switchTypes[0];
  const hostTypes = model.nodes.filter((t) => t.list === "hosts");

  const nodes = skeleton.nodes.map((n, i) => {
    const type = typeOf(n.type, i);
    return { type, name: name(type.prefix, n.name), at: n.at };
  });
  const attached = attach.map((h) => {
    const type = hostTypes.find((t) => t.type === h.type) ?? hostTypes.find((t) => t.most === undefined) ?? hostTypes[0];
    return { type, name: name(type.prefix, h.name), of: nodes[h.at].name };
  });
  const links = skeleton.links.map(([a, b]): [string, string] => [nodes[a].name, nodes[b].name]);
  const at = positions(wanted.generator.layout, nodes, attached, links);
  const fields = (n: { name: string; type: NodeType }, more: Fields): Fields => ({ name: n.name, ...more, ...n.type.set, "x-position": at.get(n.name) });
  return {
    switches: nodes.map((n) => fields(n, {})),
    hosts: attached.map((n) => fields(n, { switch: n.of })),
    links: links.map(([a, b]) => ({ a, b })),
  };
}

function positions(layout: Layout, nodes: Array<{ name: string; at?: Position }>, hosts: Array<{ name: string; of: string }>, links: Array<[string, string]>): Map<string, Position> {
  const drawn = { nodes: [...nodes, ...hosts].map((n) => n.name), links: [...links, ...hosts.map((h): [string, string] => [h.of, h.name])], small: new Set(hosts.map((h) => h.name)) };
  if (nodes.some((n) => !n.at)) return lay(layout === "grid" ? "force" : layout, drawn);
  const at = new Map<string, Position>(nodes.map((n) => [n.name, [Math.round(n.at![0]), Math.round(n.at![1])]]));
  const count = new Map<string, number>();
  for (const h of hosts) count.set(h.of, (count.get(h.of) ?? 0) + 1);
  const seen = new Map<string, number>();
  for (const h of hosts) {
    const p = at.get(h.of)!;
    const i = seen.get(h.of) ?? 0;
    seen.set(h.of, i + 1);
    const n = count.get(h.of)!;
    at.set(h.name, [p[0] + Math.round((i - (n - 1) / 2) * 60), p[1] + 90]);
  }
  return at;
}
