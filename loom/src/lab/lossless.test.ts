import { expect, test, vi } from "vitest";

import { memory } from "./memory";
import { Random } from "./random";
import { eolOf } from "./yamltext";

vi.stubGlobal("localStorage", memory());
const { Design } = await import("./design.svelte");
const { json, read } = await import("./document");
const { retyped, shown } = await import("./lines");

/** Piece is a part of a text; those with an id are of a node, link, service, group or note. */
interface Piece {
  id?: string;
  text: string;
  /** behind is whose line it ends: it goes with that. */
  behind?: string;
}

/** quoted writes a text in one of the ways that YAML has. */
function quoted(r: Random, s: string): string {
  return r.pick([s, s, `'${s}'`, `"${s}"`]);
}

const comments = ["# über 'alles' [", "#", "#no space: {", "# tab\there", "# ✓ " + "long ".repeat(40)];

/** documentOf makes the text of a lab as people write them: with comments, anchors, keys that nobody knows, and every style. */
function documentOf(r: Random): Piece[] {
  const pieces: Piece[] = [];
  const put = (text: string, id?: string, behind?: string) => pieces.push({ id, text, behind });
  const comment = (indent = "") => r.next() < 0.3 && put(`${indent}${r.pick(comments)}\n`);
  const after = () => (r.next() < 0.3 ? `   ${r.pick(comments)}` : r.next() < 0.1 ? "  " : "");
  if (r.next() < 0.2) put("--- # begin\n");
  comment();
  if (r.next() < 0.8) put(`name:   ${quoted(r, "lab-1")}${after()}\n`);
  put(`x-tool: &shared {unknown: [1, 'two', "th\\tree"], url: http://x/#y, deep: {a: ~, b: yes}}${after()}\n`);
  if (r.next() < 0.5) put("x-text: |+\n  lines: [\n    # no comment\n\n");
  const unknown = (id: string) => r.pick([`x-k: 'it''s ${id}'`, `vendor: {of: [${id}, 0x1F]}`, `"x q": >-\n            folded ${id}\n            text`, `x-r: *shared`, `note: "a: #b ${id}"`]);
  const at = () => r.pick(["[1, 2]", "[ -30,4 ]", "[ 5.5, 6 ]"]);
  const indent = r.pick(["", "  ", "    "]);
  const names: string[] = [];
  const list = (key: string, items: Array<{ id: string; keys: string[] }>) => {
    comment();
    const style = r.below(4);
    const plain = (k: string) => !k.includes("\n") || false;
    if (style === 0 && items.every((i) => i.keys.every(plain))) {
      put(`${key}: [`);
      items.forEach((i, n) => {
        put(`{${i.keys.join(", ")}}`, i.id);
        put(n + 1 < items.length ? r.pick([", ", ",\n    ", `, ${r.pick(comments.slice(0, 3))}\n    `]) : r.pick(["", ",", " ", `\n    ${r.pick(comments.slice(0, 3))}\n  `]), "", i.id);
      });
      put(`]${after()}\n`);
      return;
    }
    put(`${key}:${after()}\n`);
    for (const i of items) {
      comment(indent);
      const flow = style === 1 || r.next() < 0.4;
      if (flow && i.keys.every(plain)) put(`${indent}- {${i.keys.join(r.pick([", ", ",  "]))}}`, i.id);
      else put(`${indent}- ${i.keys.join(`\n${indent}  `)}`, i.id);
      put(`${after()}\n`, "", i.id);
      if (r.next() < 0.2) put("\n");
    }
  };
  const keysOf = (id: string, more: string[]) => r.shuffle([...more, ...(r.next() < 0.5 ? [unknown(id)] : [])]);
  const switches = Array.from({ length: 2 + r.below(4) }, (_, i) => `s${i + 1}`);
  names.push(...switches);
  list("switches", switches.map((s) => ({ id: s, keys: [`name: ${quoted(r, s)}`, ...keysOf(s, [`x-position: ${at()}`, ...(r.next() < 0.3 ? ["dpid: 0x" + s.slice(1)] : [])])] })));
  const hosts = Array.from({ length: r.below(4) }, (_, i) => `h${i + 1}`);
  if (hosts.length > 0 && r.next() < 0.9) list("hosts", hosts.map((h) => ({ id: h, keys: [`name: ${h}`, ...keysOf(h, [`switch: ${quoted(r, r.pick(switches))}`, ...(r.next() < 0.5 ? [`x-position: ${at()}`] : [])])] })));
  const links = Array.from({ length: r.below(5) }, () => r.shuffle(switches).slice(0, 2));
  if (links.length > 0) list("links", links.map(([a, b], i) => ({ id: `link ${i}`, keys: [`a: ${quoted(r, a)}`, `b: ${b}`, ...keysOf(`l${i}`, r.next() < 0.4 ? ["rate: 10mbit"] : [])] })));
  if (r.next() < 0.4) list("x-groups", [{ id: "group", keys: ["name: 'A  B'", `nodes: [${switches.join(", ")}]`] }]);
  if (r.next() < 0.4) list("x-notes", [{ id: "note", keys: ["x-position: [0, 9]", 'text: "two\\nlines: ✓"'] }]);
  comment();
  if (r.next() < 0.3) put("x-last: no new line behind");
  return pieces;
}

/** crlf ends lines of a text as Windows does. */
const crlf = (text: string) => text.replace(/\n/g, "\r\n");

/** edit makes a random edit of the drawing, and returns the ids of what it is about, "gone" before them if it is deleted. */
function edit(r: Random, d: InstanceType<typeof Design>, first: Map<string, string>): string[] {
  const node = r.pick(d.lab.nodes);
  const link = d.lab.links.length > 0 ? r.pick(d.lab.links) : undefined;
  const name = (n: string) => first.get(n) ?? n; // the one that it had first
  const of = (n: typeof node) => [name(n.name)];
  const linkId = (l: NonNullable<typeof link>) => (l.of === "link" ? `link ${l.index}` : name(l.b));
  switch (r.below(9)) {
    case 0:
      d.move(new Map([[node.id, [r.below(900), -r.below(900)]]]));
      return of(node);
    case 1:
      d.addNode(r.pick(d.model.nodes), [r.below(100), 7]);
      return [];
    case 2: {
      const other = r.pick(d.lab.nodes);
      d.connect(node.id, other.id);
      return [node, other].filter((n) => n.kind === "host").flatMap(of);
    }
    case 3: {
      const to = `renamed-${r.below(1e9)}`;
      const touched = [...of(node), ...d.lab.links.filter((l) => l.a === node.name || l.b === node.name).map(linkId), "group"];
      d.rename(node, to);
      first.set(to, name(node.name));
      return touched;
    }
    case 4:
      d.set(node, { rate: r.pick(["1mbit", "a: b", "#x", undefined]) }, "rate");
      return of(node).flatMap((n) => [n, `gone ${n}`]); // a key goes with what is said behind it
    case 5:
      if (link) d.set(link, { delay: r.pick(["5ms", undefined]), rate: r.pick(["7mbit", undefined]) }, "delay");
      return link ? [linkId(link), `gone ${linkId(link)}`] : [];
    case 6:
      d.chosen = new Set([node.id]);
      d.group();
      return ["group"];
    case 7:
      d.addNote([1, 2]);
      return [];
    default: {
      d.chosen = new Set([node.id]);
      const touched = [...of(node), ...d.lab.links.filter((l) => l.a === node.name || l.b === node.name).map(linkId), "group"];
      d.remove();
      return d.bad ? [] : [...touched, ...touched.map((t) => `gone ${t}`)];
    }
  }
}

/** stands fails unless every piece that was not edited stands in the text as it was, in its order. */
function stands(pieces: Piece[], touched: Set<string>, text: string, what: string) {
  let at = 0;
  for (const p of pieces) {
    // What stands between items in brackets goes with them.
    if (p.id ? touched.has(p.id) : touched.has(`gone ${p.behind}`) || /^[\s,\]]*$/.test(p.text)) continue;
    const kept = p.id ? p.text : p.behind ? (/#[^\r\n]*/.exec(p.text)?.[0].trim() ?? "") : p.text.trim();
    const found = text.indexOf(kept, at);
    expect(found, `${what}\nlost: ${JSON.stringify(kept)}\n${text}`).toBeGreaterThanOrEqual(0);
    at = found + kept.length;
  }
}

test("property: what is not edited stays octet for octet, whatever the style; undo gives all of it back", () => {
  for (let seed = 1; seed <= 120; seed++) {
    const r = new Random(seed);
    const windows = r.next() < 0.4;
    const pieces = documentOf(r).map((p) => (windows ? { ...p, text: crlf(p.text) } : p));
    const begin = pieces.map((p) => p.text).join("");
    expect(read(begin).broken, `seed ${seed}: ${JSON.stringify(read(begin).problems)}\n${begin}`).toBe(false);
    const d = new Design();
    d.start(begin);
    const touched = new Set<string>();
    const first = new Map<string, string>();
    for (let i = 0; i < 8; i++) {
      if (d.lab.nodes.length < 2) break;
      // By index, items of links are known only until one of them goes.
      const before = d.lab.links.filter((l) => l.of === "link").length;
      const was = d.lab.text;
      for (const id of edit(r, d, first)) touched.add(id);
      if (d.lab.links.filter((l) => l.of === "link").length < before) for (const p of pieces) if (`${p.id} ${p.behind}`.includes("link ")) touched.add(p.id || `gone ${p.behind}`);
      const what = `seed ${seed}, step ${i}: ${d.said}\n${was}\n-----`;
      expect(d.lab.broken, `${what}\n${d.lab.text}`).toBe(false);
      stands(pieces, touched, d.lab.text, what);
      if (windows) expect(/[^\r]\n/.test(d.lab.text), what + d.lab.text).toBe(false);
    }
    const end = d.lab.text;
    while (d.undoes) d.undo();
    expect(d.lab.text).toBe(begin);
    while (d.redoes) d.redo();
    expect(d.lab.text).toBe(end);
  }
});

test("property: typing into what an editor shows changes only that of the text, however its lines end", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const r = new Random(seed);
    const lines = Array.from({ length: r.below(12) }, () => r.pick(["", "a: b", "  - {x: y}", "é ✓"]));
    let text = lines.map((l) => l + r.pick(seed % 2 ? ["\r\n"] : ["\n", "\r\n"])).join("") + r.pick(["", "end"]);
    for (let i = 0; i < 5; i++) {
      const is = shown(text);
      const from = r.below(is.length + 1);
      const to = from + r.below(is.length - from + 1);
      const insert = r.pick(["", "x", "\n", "y\nz"]);
      const next = retyped(text, [{ from, to, insert }]);
      expect(shown(next)).toBe(is.slice(0, from) + insert + is.slice(to));
      // Lines before and behind the change end as they did.
      const before = is.slice(0, from).lastIndexOf("\n");
      const head = [...text.matchAll(/\r\n?|\n/g)].slice(0, is.slice(0, before + 1).split("\n").length - 1).map((m) => m[0]);
      expect([...next.matchAll(/\r\n?|\n/g)].slice(0, head.length).map((m) => m[0])).toEqual(head);
      if (seed % 2 && eolOf(text) === "\r\n") expect(/[^\r]\n/.test(next)).toBe(false);
      text = next;
    }
  }
});

test("what an alias stands for is drawn, and deleting what one stands for is refused with the reason", () => {
  const text = "x-a: &far {rate: 10mbit}\nswitches:\n  - {name: s1, extra: &e [1]}\n  - {name: &n s2, extra: *e}\nhosts:\n  - {name: h1, switch: *n, eth1: *far}\nlinks:\n  - {a: s1, b: *n}\n";
  const d = new Design();
  d.start(text);
  expect(d.lab.problems).toEqual([]);
  expect(d.lab.links.map((l) => l.id)).toEqual(["host/s2/h1", "eth1/s2/h1", "link/s1/s2"]);
  expect((json(d.lab).hosts as Array<Record<string, unknown>>)[0].eth1).toEqual({ rate: "10mbit" });
  d.chosen = new Set(["s1"]);
  d.remove();
  expect([d.bad, d.lab.text]).toEqual([true, text]);
  expect(d.said).toContain("deleting is not done");
  d.rename(d.node("h1")!, "user");
  expect(d.lab.text).toBe(text.replace("h1", "user"));
  const bomb = "x-a: &a [x, x, x, x, x, x, x, x, x]\n" + "bcdefghi".split("").map((c, i) => `x-${c}: &${c} [${`*${"abcdefgh"[i]}, `.repeat(9)}]\n`).join("") + "switches: [{name: s1, extra: *i}]\n";
  expect(read(bomb).nodes.length).toBe(1);
});
