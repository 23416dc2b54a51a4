import { parse } from "yaml";
import { expect, test } from "vitest";

import { add, fresh, json, move, mostOctets, nameProblem, read, remove, rename, set, setTop, type Fields, type Lab } from "./document";
import { Random } from "./random";
import { flow } from "./yamltext";

const hand = `# A lab by hand.
name: triangle   # with a name
x-note: {of: ours, deep: [1, {a: b}]}
switches:
  # the first
  - {name: s1, x-position: [1, 2]} # here
  - name: s2
    dpid: 0x2   # hexadecimal
    protocols: [OpenFlow13]
    unknown: "kept"

  - {name: s3}
hosts:
  - {name: h1, switch: s1, run: [python3 -m http.server 80]}
  - name: h2
    switch: s2
    run:
      - name: x
        command: |
          sh -c 'a
          b'
links:
  - {a: s1, b: s2, rate: 100mbit}   # fast
  - {a: s2, b: s3}
  - {a: s3, b: s1}
# the end
`;
const asJSON = `{"name": "j", "switches": [{"name": "s1"}, {"name": "s2"}],
 "hosts": [
   {"name": "h1", "switch": "s1"}
 ],
 "links": [{"a": "s1", "b": "s2"}]}
`;
const dense = "switches: [{name: s1}, {name: s2, kind: hybrid,}, ]\nhosts: []\nlinks:\ncontrol: {mode: in-band, at: s2}\n";
const texts = [hand, asJSON, dense, "", "# nothing yet", "name: x", "name: x\nlinks: ~\nswitches:   # none\nhosts: []"];

/** shape is the nodes and links of a lab, to compare. */
function shape(lab: Lab) {
  return { nodes: lab.nodes.map((n) => [n.name, n.kind, n.at]), links: lab.links.map((l) => [l.of, l.a, l.b]) };
}

test("a text is read", () => {
  const lab = read(hand);
  expect(lab.problems).toEqual([]);
  expect(lab.nodes.map((n) => n.name)).toEqual(["s1", "s2", "s3", "h1", "h2"]);
  expect(lab.nodes[1].line).toBe(7);
  expect(lab.links.map((l) => l.id)).toEqual(["host/s1/h1", "host/s2/h2", "link/s1/s2", "link/s2/s3", "link/s3/s1"]);
});

test("an edit changes only its part of the text", () => {
  const changed = (from: string, to: string) => to.split("\n").filter((l) => !from.split("\n").includes(l));
  let lab = read(hand);
  let text = move(lab, new Map([["s2", [30.4, 40]]]));
  expect(changed(hand, text)).toEqual(["    x-position: [30, 40]"]);
  text = move(lab, new Map([["s1", [5, 6]]]));
  expect(changed(hand, text)).toEqual(["  - {name: s1, x-position: [5, 6]} # here"]);
  text = add(lab, { hosts: [{ name: "h3", switch: "s3" }], links: [{ a: "s1", b: "s3" }] });
  expect(changed(hand, text)).toEqual(["  - name: h3", "    switch: s3", "  - {a: s1, b: s3}"]);
  text = rename(lab, lab.nodes[0], "core");
  expect(changed(hand, text)).toEqual(["  - {name: core, x-position: [1, 2]} # here", "  - {name: h1, switch: core, run: [python3 -m http.server 80]}", "  - {a: core, b: s2, rate: 100mbit}   # fast", "  - {a: s3, b: core}"]);
  text = remove(lab, new Set(["s2"]));
  lab = read(text);
  expect(changed(hand, text)).toEqual([]);
  expect(shape(lab).links).toEqual([["host", "s1", "h1"], ["host", "", "h2"], ["link", "s3", "s1"]]);
  expect(text).toContain("# the end");
  text = set(read(hand), read(hand).links[2], { rate: "10mbit", delay: "5ms" });
  expect(changed(hand, text)).toEqual(["  - {a: s1, b: s2, rate: 10mbit, delay: 5ms}   # fast"]);
  text = set(read(hand), read(hand).nodes[1], { dpid: undefined, kind: "bridge" });
  expect(changed(hand, text)).toEqual(["    kind: bridge"]);
});

/** wanted is what the JSON of a lab has to be after an edit, worked out on the JSON alone. */
function step(r: Random, text: string): { text: string; wanted: Fields } {
  const lab = read(text);
  const is = structuredClone(json(lab)) as Record<string, Fields[]>;
  const at = (list: string) => (Array.isArray(is[list]) ? is[list] : (is[list] = []));
  const name = `n${r.below(1e9)}`;
  const nodes = lab.nodes.filter((n) => n.id === n.name);
  switch (nodes.length < 3 ? 0 : r.below(6)) {
    case 0: {
      const many = Array.from({ length: 1 + r.below(3) }, (_, i) => ({ name: `${name}-${i}`, "x-position": [i, i - 9] }));
      at("switches").push(...many);
      return { text: add(lab, { switches: many }), wanted: is };
    }
    case 1: {
      const n = r.pick(nodes);
      const p: [number, number] = [r.below(500), r.below(500)];
      at(n.list)[n.index]["x-position"] = p;
      return { text: move(lab, new Map([[n.id, p]])), wanted: is };
    }
    case 2: {
      const [a, b] = [r.pick(nodes).name, r.pick(nodes).name];
      at("links").push({ a, b, "x-note": "say: {x}, #no" });
      return { text: add(lab, { links: [{ a, b, "x-note": "say: {x}, #no" }] }), wanted: is };
    }
    case 3: {
      const gone = new Set([r.pick(nodes), r.pick(nodes)].map((n) => n.name));
      for (const list of ["switches", "hosts", "links"]) is[list] = at(list).filter((x) => !gone.has(String(x.name)) && !gone.has(String(x.a)) && !gone.has(String(x.b)));
      for (const h of is.hosts) if (gone.has(String(h.switch))) delete h.switch;
      return { text: remove(lab, gone), wanted: is };
    }
    case 4: {
      const n = r.pick(nodes);
      const value = r.pick(["a b", "x: y", "[", "1", 7, true, "#", ["p", { q: "}" }], "", undefined]);
      if (value === undefined || value === "") delete at(n.list)[n.index].extra;
      else at(n.list)[n.index].extra = value;
      return { text: set(lab, n, { extra: value }), wanted: is };
    }
    default: {
      const n = r.pick(nodes);
      at(n.list)[n.index].name = name;
      for (const l of at("links")) for (const end of ["a", "b"]) if (l[end] === n.name) l[end] = name;
      for (const h of at("hosts")) if (h.switch === n.name) h.switch = name;
      const control = (is as Record<string, unknown>).control as Fields | undefined;
      if (control?.at === n.name) control.at = name;
      return { text: rename(lab, n, name), wanted: is };
    }
  }
}

/** bare is JSON without what is empty. */
function bare(of: Fields): Fields {
  return Object.fromEntries(Object.entries(of).filter(([, v]) => v !== null && !(Array.isArray(v) && v.length === 0)));
}

test("property: every edit does to the text what it would do to its JSON, and keeps comments", () => {
  for (let seed = 1; seed <= 25; seed++) {
    const r = new Random(seed);
    let text = texts[seed % texts.length];
    for (let i = 0; i < 25; i++) {
      const next = step(r, text);
      const again = read(next.text);
      expect(again.broken, `seed ${seed}, step ${i}:\n${text}\n---\n${next.text}\n${JSON.stringify(again.problems)}`).toBe(false);
      expect(bare(json(again)), `seed ${seed}, step ${i}:\n${text}\n---\n${next.text}`).toEqual(bare(next.wanted));
      for (const comment of ["# A lab by hand.", "# the end", "# with a name", "# none", "# nothing yet"]) expect(next.text.includes(comment), comment).toBe(texts[seed % texts.length].includes(comment));
      text = next.text;
    }
  }
});

test("names are checked in place", () => {
  expect(nameProblem("s1", ["s2"])).toBe("");
  expect(nameProblem("s1", ["s1"])).toContain("already another node's");
  expect(nameProblem("<img src=x onerror=alert(1)>", [])).toContain("is not a name");
  const lab = read("switches: [{name: a}, {name: a}, {name: '<b>x</b>'}]\nlinks: [{a: a, b: a}, {a: a, b: z}]\nhosts: [{name: h}, {name: g, switch: h}]");
  expect(lab.problems.map((p) => p.text).join("\n")).toMatch(/already[^]*is not a name[^]*attached to no switch[^]*which is a host[^]*itself[^]*which is no node/);
  expect(new Set(lab.nodes.map((n) => n.id)).size).toBe(5);
});

test("what is too large or broken is said and left alone", () => {
  expect(read("x".repeat(mostOctets + 1)).problems[0].text).toContain("at most");
  const many = read("switches:\n" + Array.from({ length: 5001 }, (_, i) => `- {name: s${i}}\n`).join(""));
  expect(many.nodes).toEqual([]);
  expect(many.problems[0].text).toContain("5,001 nodes");
  expect(read("switches: [\n").problems[0].line).toBeGreaterThan(0);
  expect(read("- a").broken).toBe(true);
  expect(read("switches: &a [{name: s1}]\nhosts: *a").problems[0].text).toContain("hosts is an alias, which is not drawn");
  expect(read("switches: [&x {name: s1}, *x]").problems[0].text).toContain("alias");
  expect(read("a: &a [x, x]\nb: &b [*a, *a]\nname: *b").name).toBe("");
});

test("a lab is written from its fields", () => {
  const fields = { name: "x", "x-model": "openflow", switches: [{ name: "s1" }], hosts: [{ name: "h1", switch: "s1" }], links: [], control: { mode: "in-band" } };
  expect(parse(fresh(fields))).toEqual(fields);
  expect(setTop(read(""), "name", "a")).toBe("name: a\n");
  expect(setTop(read("name: a # x\n"), "name", "b")).toBe("name: b # x\n");
});

test("texts that readers of YAML 1.1 and 1.2 take differently stand in quotes", () => {
  for (const s of ["count?", "=", "2010_08", "12:30", "yes", "a #", "~", "%", "|", "02:00:00:00:00:01"]) expect(flow(s)).toBe(JSON.stringify(s));
  for (const s of ["s1", "10.0.0.1/24", "python3 -m http.server 80", "100mbit", "tcp:127.0.0.1:6653", "é-✓"].slice(0, 5)) expect(flow(s)).toBe(s);
});

test("property: whatever value is written on a line is read as it was", () => {
  const r = new Random(3);
  const texts = ["", " ", "a b", "a: b", "- x", "#", "x #y", "true", "No", "null", "~", "0x10", "1e3", "1.0", "007", "12:30", "{", "[x", "a,b", "'", '"', "\\", "\n", "a\nb\n", "é✓", "@x", "*x", "&x", "!x", "%", "?", "a: ", "=", "<<", "\t", "-", "---", "...", "s1", "10.0.0.1/24", "fd00::1/64", "\u0000", "\u2028"];
  const value = (deep: number): unknown => {
    const kind = r.below(deep > 2 ? 4 : 6);
    if (kind < 2) return r.pick(texts) + (r.next() < 0.3 ? r.pick(texts) : "");
    if (kind === 2) return r.pick([0, -1, 1.5, 1e21, -0.25, 4294967296]);
    if (kind === 3) return r.pick([true, false, null]);
    if (kind === 4) return Array.from({ length: r.below(70) }, () => value(deep + 1));
    return Object.fromEntries(Array.from({ length: r.below(4) }, () => [r.pick(texts), value(deep + 1)]));
  };
  for (let i = 0; i < 150; i++) {
    const v = value(0);
    const line = flow(v);
    expect(line).not.toContain("\n");
    expect(parse(`k: [${line}]`), line).toEqual({ k: [v] });
    expect(parse(`{k: ${flow(v, true)}}`)).toEqual({ k: v });
  }
});
