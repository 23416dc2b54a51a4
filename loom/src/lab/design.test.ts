import { describe, expect, test } from "vitest";

import guide from "../../../docs/guide/lab.md?raw";
import { mayAdd, mayConnect, mayServe, violations } from "./constraints";
import { add, fresh, mostNodes, read, type Fields, type Lab } from "./document";
import { generate, generators, offered, type Generator } from "./generate";
import { History } from "./history";
import { complete, lay, layouts } from "./layout";
import { isModel, readModel } from "./modelfile";
import { guessed, models, Types } from "./models";
import { ofLab } from "./ownmodels";
import { Random } from "./random";

const modelNamed = (name: string) => models.find((m) => m.name === name)!;

function labOf(text: string, model = "openflow"): [Lab, Types] {
  const lab = read(text);
  return [lab, new Types(modelNamed(model), lab)];
}

function connected(nodes: Fields[], links: Array<{ a: unknown; b: unknown }>): boolean {
  const seen = new Set([nodes[0].name]);
  for (let before = 0; before < seen.size; ) {
    before = seen.size;
    for (const l of links) {
      if (seen.has(l.a)) seen.add(l.b);
      else if (seen.has(l.b)) seen.add(l.a);
    }
  }
  return nodes.every((n) => seen.has(n.name));
}

/** own is a model as somebody may write it. */
const own = `name: metro
title: Metro
nodes:
  - {type: ring, title: Ring node, list: switches, kind: openflow, prefix: r, shape: hexagon, colour: switch, set: {x-type: ring}, least: 3, why: a ring has three}
  - {type: tail, title: Tail, list: switches, kind: openflow, prefix: t, shape: ellipse, colour: edge, set: {x-type: tail}, degree: {most: 1, why: a tail hangs on one ring node}}
links:
  - {type: fibre, title: Fibre, between: [[ring, ring]], parallel: false, width: 4, colour: blue}
  - {type: copper, title: Copper, between: [[ring, tail]], set: {rate: 20mbit}, line: dotted}
views:
  - {name: all, title: Everything}
  - {name: rings, title: Rings, types: [ring]}
defaults: {lab: {}, generator: ring}
`;

const named = (name: string): Generator => generators.find((g) => g.name === name)!;
const usual = (g: Generator) => Object.fromEntries(g.parameters.map((p) => [p.name, p.is]));

describe("generators", () => {
  for (const g of generators) {
    for (const model of models.filter((m) => offered(m).includes(g))) {
      test(`${g.name} in ${model.name}`, () => {
        const made = generate(model, { generator: g, parameters: usual(g), hosts: 1, every: 2 });
        const nodes = [...made.switches!, ...made.hosts!];
        expect(connected(nodes, [...(made.links as Array<{ a: unknown; b: unknown }>), ...made.hosts!.map((h) => ({ a: h.switch, b: h.name }))])).toBe(true);
        expect(new Set(nodes.map((n) => n.name)).size).toBe(nodes.length);
        expect(new Set(nodes.map((n) => String(n["x-position"]))).size).toBeGreaterThan(nodes.length * 0.9);
        const lab = read(fresh({ name: "x", ...made }));
        expect(lab.problems).toEqual([]);
        expect(JSON.stringify(generate(model, { generator: g, parameters: usual(g), hosts: 1, every: 2 }))).toBe(JSON.stringify(made));
      });
    }
  }

  test("property: random networks are connected, simple, and have the links asked for", () => {
    const r = new Random(7);
    for (let i = 0; i < 40; i++) {
      const n = 2 + r.below(60);
      const degree = 1 + r.below(Math.min(n - 1, 8));
      const { switches, links } = generate(models[0], { generator: named("random"), parameters: { n, degree, seed: i }, hosts: 0, every: 1 });
      const pairs = new Set(links!.map((l) => [l.a, l.b].sort().join()));
      expect(pairs.size).toBe(links!.length);
      expect(links!.length).toBe(Math.max(n - 1, Math.floor((n * degree) / 2)));
      expect(connected(switches!, links as never)).toBe(true);
      const m = 1 + r.below(Math.min(n - 1, 4));
      const ba = generate(models[0], { generator: named("ba"), parameters: { n, m, seed: i }, hosts: 0, every: 1 });
      expect(connected(ba.switches!, ba.links as never)).toBe(true);
      expect(ba.links!.length).toBe((m * (m - 1)) / 2 + (n - m) * m);
    }
  });

  test("a fat tree and a 5G core keep their models' rules", () => {
    for (const [g, model] of [["fattree", "fattree"], ["5gc", "5gc"]]) {
      const made = generate(modelNamed(model), { generator: named(g), parameters: usual(named(g)), hosts: 1, every: 1 });
      const [lab, types] = labOf(fresh({ ...made }), model);
      expect(violations(lab, types)).toEqual([]);
    }
    const made = generate(modelNamed("fattree"), { generator: named("fattree"), parameters: { k: 4 }, hosts: 1, every: 1 });
    expect([made.switches!.length, made.links!.length, made.hosts!.length]).toEqual([20, 32, 16]);
  });

  test("what is too large is refused with its number", () => {
    for (const [g, p] of [["ring", { n: 1e6 }], ["tree", { depth: 12, fan: 64 }], ["grid", { w: 1000, h: 1000 }]] as const) {
      expect(() => generate(models[0], { generator: named(g), parameters: p, hosts: 0, every: 1 })).toThrow("at most 5,000 are drawn");
    }
    expect(() => generate(models[0], { generator: named("ring"), parameters: { n: 2600 }, hosts: 1, every: 1 })).toThrow("5,200 nodes");
    expect(() => generate(models[0], { generator: named("ring"), parameters: { n: 2 }, hosts: 1, every: 1 })).toThrow("from 3");
    expect(() => generate(models[0], { generator: named("fattree"), parameters: { k: 3 }, hosts: 1, every: 1 })).toThrow("even");
    expect(() => generate(models[0], { generator: named("random"), parameters: { n: 3, degree: 5, seed: 1 }, hosts: 1, every: 1 })).toThrow("at most 2");
  });

  test("names that are taken are not used again", () => {
    const lab = read("switches: [{name: s1}, {name: s3}]\n");
    const made = generate(models[0], { generator: named("ring"), parameters: { n: 3 }, hosts: 0, every: 1 }, lab.nodes.map((n) => n.name));
    expect(made.switches!.map((s) => s.name)).toEqual(["s2", "s4", "s5"]);
    expect(read(add(lab, made)).problems).toEqual([]);
  });
});

describe("layouts", () => {
  test("every node stands somewhere of its own", () => {
    const made = generate(models[0], { generator: named("ba"), parameters: { n: 80, m: 2, seed: 3 }, hosts: 1, every: 1 });
    const nodes = [...made.switches!, ...made.hosts!].map((n) => String(n.name));
    const links = [...made.links!.map((l) => [l.a, l.b]), ...made.hosts!.map((h) => [h.switch, h.name])] as Array<[string, string]>;
    for (const how of layouts) {
      const at = lay(how, { nodes, links, small: new Set(made.hosts!.map((h) => String(h.name))) });
      expect(at.size).toBe(160);
      expect(new Set([...at.values()].map(String)).size).toBe(160);
      for (const p of at.values()) expect(p.every(Number.isFinite)).toBe(true);
    }
    expect(lay("force", { nodes: ["a"], links: [] }).size).toBe(1);
    expect(lay("circle", { nodes: [], links: [] }).size).toBe(0);
  });

  test("nodes that have a position keep it, others stand where they are joined", () => {
    const fixed = new Map<string, [number, number]>([["a", [0, 0]], ["b", [400, 0]]]);
    const at = complete({ nodes: ["a", "b", "between", "end", "h1", "h2", "alone"], links: [["a", "between"], ["between", "b"], ["b", "end"], ["a", "h1"], ["a", "h2"]], small: new Set(["h1", "h2"]) }, fixed);
    expect([at.get("a"), at.get("b"), at.get("between")]).toEqual([[0, 0], [400, 0], [200, 0]]);
    const far = (n: string, m: string) => Math.hypot(at.get(n)![0] - at.get(m)![0], at.get(n)![1] - at.get(m)![1]);
    for (const [n, m] of [["end", "b"], ["h1", "a"], ["h2", "a"]]) expect(far(n, m)).toBeLessThan(150);
    expect(at.get("alone")![0]).toBeGreaterThan(400);
    expect(new Set([...at.values()].map(String)).size).toBe(7);
    expect(complete({ nodes: ["a", "b"], links: [] }, new Map()).size).toBe(2);
  });

  test("five thousand nodes are laid out in seconds", () => {
    const nodes = Array.from({ length: mostNodes }, (_, i) => `n${i}`);
    const began = Date.now();
    lay("force", { nodes, links: nodes.slice(1).map((n, i) => [nodes[Math.floor(i / 2)], n]) });
    expect(Date.now() - began).toBeLessThan(20000);
  });
});

describe("models and constraints", () => {
  test("the models are read, each with types, views and links among its types", () => {
    expect(models.map((m) => m.name)).toEqual(["openflow", "oshi", "5gc", "fattree"]);
    expect(models.every((m) => m.links.length > 0 && m.views.length > 1)).toBe(true);
    expect(guessed(read("switches: [{name: a, kind: hybrid}]")).name).toBe("oshi");
    expect(guessed(read("switches: [{name: a}]")).name).toBe("openflow");
    expect(ofLab(read("x-model: 5gc\nswitches: [{name: a}]"), models).model.name).toBe("5gc");
    expect(ofLab(read("x-model: 6g\nswitches: [{name: a}]"), models).wrong).toContain("no model 6g here; allowed: openflow, oshi");
    expect(models.map((m) => isModel(m.text))).toEqual([true, true, true, true]);
    expect(isModel("name: x\nswitches: []\n")).toBe(false);
  });

  test("a model that somebody has written: its types of links, its numbers and its defaults count", () => {
    const metro = readModel(own);
    const lab = (text: string) => {
      const l = read(text);
      return [l, new Types(metro, l)] as const;
    };
    const [l, types] = lab("switches: [{name: r1, x-type: ring}, {name: r2, x-type: ring}, {name: t1, x-type: tail}]\nlinks: [{a: r1, b: r2}, {a: r2, b: t1, x-link: copper}]\n");
    const of = (n: string) => l.nodes.find((m) => m.name === n)!;
    expect(l.links.map((k) => types.link(k)?.type)).toEqual(["fibre", "copper"]);
    expect(mayConnect(l, types, of("r1"), of("r2"))).toBe("r1 and r2 are joined already: a Fibre joins two nodes once");
    expect(mayConnect(l, types, of("r1"), of("t1"), metro.links[0])).toContain("a Fibre does not join r1 (Ring node) and t1 (Tail); allowed: Copper");
    expect(mayConnect(l, types, of("r1"), of("t1"))).toBe("t1 (Tail) has 1 link, and may have no more: a tail hangs on one ring node");
    expect(mayConnect(l, types, of("t1"), { ...of("t1"), id: "t2", name: "t2" })).toContain("are not joined in the model Metro");
    expect(violations(l, types).map((v) => [v.text, v.lacks])).toEqual([["a lab of the model Metro has at least 3 of the type Ring node: a ring has three", true]]);
    const [bad, badTypes] = lab("switches:\n  - {name: r1, x-type: ring}\n  - {name: t1, x-type: tail}\n  - {name: b, kind: bridge}\nlinks:\n  - {a: r1, b: t1, x-link: fibre}\n  - {a: r1, b: t1, x-link: radio}\nx-services:\n  - {name: v, type: vll, ends: [r1]}\n");
    expect(violations(bad, badTypes).map((v) => `${v.line} ${v.text}`)).toEqual([
      "4 b is of the kind bridge, which the model Metro does not have",
      "0 a lab of the model Metro has at least 3 of the type Ring node: a ring has three",
      "6 the link r1 to t1 is not of the model Metro: a Fibre does not join r1 (Ring node) and t1 (Tail); allowed: Copper",
      "7 the link r1 to t1 is of the type radio; allowed: copper",
      "3 t1 (Tail) has 2 links: at most 1: a tail hangs on one ring node",
      "9 the service v: the model Metro has no services of the type vll",
    ]);
  });

  test("the model in the guide is one", () => {
    const text = /```text\n(name: metro[^]*?)```/.exec(guide)![1];
    expect(readModel(text).links.map((l) => l.type)).toEqual(["fibre", "copper"]);
  });

  test("what is wrong with a model is said with its place", () => {
    const wrong = (change: (text: string) => string) => {
      try {
        readModel(change(own));
        return "";
      } catch (err) {
        return (err as Error).message;
      }
    };
    expect(wrong((t) => t)).toBe("");
    expect(wrong(() => "title: x")).toContain("name is missing; nodes is missing; views is missing");
    expect(wrong(() => "- a")).toContain("the model:");
    expect(wrong((t) => t.replace("shape: hexagon", "shape: blob"))).toContain('nodes[0].shape: "blob": allowed: ellipse, ');
    expect(wrong((t) => t.replace("[ring, ring]", "[ring, rnig]"))).toContain('links[0].between[0]: "rnig" is no type of node of this model; allowed: ring, tail');
    expect(wrong((t) => t.replace("parallel", "paralel"))).toContain("links[0].paralel: an unknown key; allowed: type, title");
    expect(wrong((t) => t.replace("least: 3", "least: some"))).toContain("nodes[0].least: \"some\": want a whole number");
    expect(wrong((t) => t.replace("generator: ring", "generator: rnig"))).toContain("defaults.generator");
    expect(wrong((t) => t.replace("type: tail", "type: ring"))).toContain("ring is there twice");
    expect(wrong((t) => t.replace("types: [ring]", "links: [cooper]"))).toContain('views[1].links: "cooper" is no type of link');
  });

  test("what may not be joined is refused with the reason", () => {
    const [lab, types] = labOf("switches: [{name: s1}, {name: s2}, {name: b1, kind: bridge}, {name: b2, kind: bridge}]\nhosts: [{name: h1, switch: s1}, {name: h2}]\nlinks: [{a: b1, b: b2}]");
    const why = (a: string, b: string) => mayConnect(lab, types, lab.nodes.find((n) => n.name === a)!, lab.nodes.find((n) => n.name === b)!);
    expect(why("s1", "s2")).toBe("");
    expect(why("h2", "s2")).toBe("");
    expect(why("s1", "s1")).toContain("itself");
    expect(why("h1", "h2")).toContain("hosts are joined by switches");
    expect(why("h1", "s2")).toContain("attached to s1 already");
    expect(why("b1", "b2")).toContain("round for ever");
  });

  test("the rules of OSHI", () => {
    const text = "switches: [{name: cr1, kind: hybrid, x-type: cr}, {name: pe1, kind: hybrid, x-type: pe}, {name: r1, kind: router}]\nhosts: [{name: ce1, x-type: ce}, {name: ce2, switch: pe1, x-type: ce}, {name: ip1, gateway: true}]\n";
    const [lab, types] = labOf(text, "oshi");
    const of = (n: string) => lab.nodes.find((m) => m.name === n)!;
    expect(types.of(of("ip1"))?.type).toBe("ip");
    expect(mayConnect(lab, types, of("ce1"), of("cr1"))).toContain("a core router has no customers");
    expect(mayConnect(lab, types, of("ce1"), of("pe1"))).toBe("");
    expect(mayConnect(lab, types, of("ce1"), of("ce2"))).toContain("is a service");
    expect(mayConnect(lab, types, of("ce1"), of("r1"))).toContain("nothing but IP");
    expect(mayConnect(lab, types, of("ip1"), of("r1"))).toBe("");
    expect(mayServe(lab, types, { name: "v", type: "vll", ends: ["ce1", "ce2"] })).toBe("");
    expect(mayServe(lab, types, { name: "v", type: "vll", ends: ["ce1"] })).toContain("joins two");
    expect(mayServe(lab, types, { name: "v", type: "vll", ends: ["ce1", "pe1"] })).toContain("not an end of a VLL");
    expect(mayServe(lab, types, { name: "v", type: "x", ends: [] })).toContain("no services");
    const [bad, badTypes] = labOf("switches: [{name: cr1, kind: hybrid, x-type: cr}]\nhosts: [{name: ce1, switch: cr1, x-type: ce}]", "oshi");
    expect(violations(bad, badTypes)[0].text).toContain("no customers");
  });

  test("a 5G core has one NRF", () => {
    const [lab, types] = labOf("hosts: [{name: nrf, x-type: nrf}]", "5gc");
    const nrf = types.model.nodes.find((t) => t.type === "nrf")!;
    expect(types.of(lab.nodes[0])).toBe(nrf);
    expect(mayAdd(lab, types, nrf)).toContain("at most 1");
  });
});

describe("history", () => {
  test("property: undo goes back through every text, redo forward again", () => {
    for (let seed = 1; seed < 20; seed++) {
      const r = new Random(seed);
      const h = new History("begin");
      const texts = ["begin"];
      for (let i = 0; i < 50; i++) {
        const t = h.text;
        const at = r.below(t.length + 1);
        const next = t.slice(0, at) + r.pick(["", "a", "bb", "\n", t.slice(0, 3)]) + t.slice(at + r.below(4));
        if (h.change(next, "an edit", i)) texts.push(next);
      }
      for (let i = texts.length - 2; i >= 0; i--) {
        expect(h.undo()).toBe(true);
        expect(h.text).toBe(texts[i]);
      }
      expect(h.undo()).toBe(false);
      for (const t of texts.slice(1)) {
        expect(h.redo()).toBe(true);
        expect(h.text).toBe(t);
      }
      expect(h.redo()).toBe(false);
    }
  });

  test("what is typed in one go is one step, and steps are bounded", () => {
    const h = new History("");
    for (let i = 1; i <= 5; i++) h.change("x".repeat(i), "typing", i);
    h.change("xxxxxy", "typing", 5000);
    expect([h.undo(), h.text, h.undo(), h.text, h.redoes]).toEqual([true, "xxxxx", true, "", "typing"]);
    for (let i = 0; i < 2000; i++) h.change(String(i), "an edit", i);
    let n = 0;
    while (h.undo()) n++;
    expect(n).toBe(500);
  });
});
