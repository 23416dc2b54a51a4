// Networks to begin with: what generators make, with their thumbnails.

import type { Design } from "./design.svelte";
import { fresh, type Added } from "./document";
import { generate, generators } from "./generate";
import { models, type Model } from "./models";

/** Template is a network to begin with. */
export interface Template {
  title: string;
  words: string; // what it is for
  model: string;
  generator: string;
  parameters: Record<string, number>;
  hosts: number; // of each switch
}

const of = (title: string, words: string, generator: string, parameters: Record<string, number>, hosts = 1, model = "openflow"): Template => ({ title, words, model, generator, parameters, hosts });

export const templates: Template[] = [
  of("Ring", "Cut a link and watch routes move.", "ring", { n: 6 }),
  of("Tree", "Three levels, hosts at the leaves.", "tree", { depth: 3, fan: 2 }),
  of("Fat tree", "A data centre of four pods.", "fattree", { k: 4 }, 1, "fattree"),
  of("Grid", "Many equal paths.", "grid", { w: 4, h: 3 }),
  of("Full mesh", "Every switch beside every other.", "mesh", { n: 5 }),
  of("Carrier", "Hybrid nodes of IP and SDN, for circuits.", "random", { n: 8, degree: 3, seed: 4 }, 0, "oshi"),
  of("5G core", "Network functions behind edge switches.", "5gc", { n: 2 }, 0, "5gc"),
  of("Random", "Connected, from a seed.", "random", { n: 12, degree: 3, seed: 1 }),
];

const modelOf = (t: Template): Model => models.find((m) => m.name === t.model) ?? models[0];

/** made returns what a template makes. */
function made(t: Template): Added {
  return generate(modelOf(t), { generator: generators.find((g) => g.name === t.generator)!, parameters: t.parameters, hosts: t.hosts, every: 1 }, []);
}

/** Sketch is a template in small, in a box of 100 by 62. */
export interface Sketch {
  switches: Array<[number, number]>;
  hosts: Array<[number, number]>;
  lines: Array<[number, number, number, number]>;
  facts: string; // how many there are
}

/** sketch draws a template in small. */
export function sketch(t: Template): Sketch {
  const { switches = [], hosts = [], links = [] } = made(t);
  const at = new Map([...switches, ...hosts].map((n) => [String(n.name), n["x-position"] as [number, number]]));
  const [xs, ys] = [0, 1].map((axis) => [...at.values()].map((p) => p[axis]));
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const k = Math.min(84 / (Math.max(...xs) - left || 1), 46 / (Math.max(...ys) - top || 1));
  const [dx, dy] = [50 - (k * (Math.max(...xs) - left)) / 2, 31 - (k * (Math.max(...ys) - top)) / 2];
  const place = (name: unknown): [number, number] => {
    const [x, y] = at.get(String(name)) ?? [left, top];
    return [Number((dx + k * (x - left)).toFixed(1)), Number((dy + k * (y - top)).toFixed(1))];
  };
  const count = (n: number, one: string, more: string) => (n > 0 ? [`${n} ${n === 1 ? one : more}`] : []);
  return {
    switches: switches.map((s) => place(s.name)),
    hosts: hosts.map((h) => place(h.name)),
    lines: [...links.map((l) => [l.a, l.b]), ...hosts.map((h) => [h.name, h.switch])].map(([a, b]) => [...place(a), ...place(b)]),
    facts: [...count(switches.length, "switch", "switches"), ...count(hosts.length, "host", "hosts")].join(", "),
  };
}

/** draw begins a draft with a template; one that has something in it is kept. */
export function draw(design: Design, t: Template) {
  if (design.lab.nodes.length > 0) design.start();
  const name = t.title.toLowerCase().replace(/\W+/g, "-");
  const model = modelOf(t);
  design.edit(fresh({ name, ...(model === models[0] ? {} : { "x-model": model.name }), ...model.defaults.lab, ...made(t) }), `drawing ${name}`);
  design.fit++;
}
