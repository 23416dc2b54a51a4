// A lab as its text: what is drawn is read from it, and every edit of the drawing
// changes only its part of the text.

import { LineCounter, parseDocument, visit, type Alias, type Node as YAMLNode, type YAMLMap, type YAMLSeq } from "yaml";

import { append, apply, deleteItems, deleteKey, find, flow, isAlias, isMap, isScalar, isSeq, keyOf, setKey, textOf, type Splice } from "./yamltext";

/** mostOctets is the longest text that a lab's service takes. */
export const mostOctets = 1 << 20;
/** mostNodes is how many nodes are drawn. */
export const mostNodes = 5000;

/** mostMarks is how many groups, and how many notes, are drawn. */
export const mostMarks = 500;

export type Fields = Record<string, unknown>;
export type List = "switches" | "hosts" | "links";

/** Node is a switch or host of the text. */
export interface Node {
  /** id is its name; of a second one of that name, something else. */
  id: string;
  name: string;
  /** kind is openflow, hybrid, router, bridge or host. */
  kind: string;
  list: "switches" | "hosts";
  index: number;
  line: number;
  at?: [number, number];
  fields: Fields;
}

/** Link is a link of the text, or that of a host to its switch. */
export interface Link {
  id: string;
  a: string;
  b: string;
  /** of is where it stands: in links, as switch of a host, or as eth1 of a host. */
  of: "link" | "host" | "eth1";
  index: number;
  line: number;
  fields: Fields;
}

/** Problem is something wrong with a lab file. */
export interface Problem {
  line: number;
  text: string;
  allowed?: string;
  /** of is the id of the node or link that it is about. */
  of?: string;
  /** lacks says that something is not there yet, and nothing is wrong with what is. */
  lacks?: boolean;
}

export interface Service {
  index: number;
  line: number;
  name: string;
  type: string;
  ends: string[];
  /** fields are all that the file says of it: rate and protect, too. */
  fields: Fields;
}

/** Group is nodes that are drawn in one frame. */
export interface Group {
  id: string;
  index: number;
  name: string;
  colour: string;
  nodes: string[];
}

/** Note is a text on the drawing. */
export interface Note {
  id: string;
  index: number;
  text: string;
  at: [number, number];
}

export interface Lab {
  text: string;
  name: string;
  /** model is what the text says of its model: a name, or the model itself. */
  model?: unknown;
  modelLine?: number;
  controllers: string[];
  /** at is the node that the controllers' machine is linked to, in band. */
  at: string;
  nodes: Node[];
  links: Link[];
  services: Service[];
  groups: Group[];
  notes: Note[];
  problems: Problem[];
  /** broken says that the text cannot be read: nothing of it can be edited by drawing. */
  broken: boolean;
  root: YAMLMap | null;
}

const nodeName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
const nameRule = "letters, digits, '_', '.', '-', at most 63, beginning with a letter or digit";

/** nameProblem returns what is wrong with a name for a node; empty if nothing is. */
export function nameProblem(name: string, taken: Iterable<string>): string {
  if (!nodeName.test(name)) return `${JSON.stringify(name.slice(0, 80))} is not a name for a node; allowed: ${nameRule}`;
  for (const t of taken) if (t === name) return `the name ${name} is already another node's: names of switches and hosts are distinct`;
  return "";
}

// What aliases stand for, and how many values may still be read by them: they multiply.
const meant = new WeakMap<object, unknown>();
const mostAliased = 100_000;
let aliased = 0;

/** meaning notes what each alias stands for: the last anchor of its name before it. It returns an alias that stands for nothing. */
function meaning(root: YAMLNode | null): Alias | undefined {
  const anchors = new Map<string, unknown>();
  let lost: Alias | undefined;
  aliased = 0;
  visit(root, {
    Value: (_, n) => void (n.anchor && anchors.set(n.anchor, n)),
    Alias: (_, n) => {
      if (anchors.has(n.source)) meant.set(n, anchors.get(n.source));
      else lost ??= n;
    },
  });
  return lost;
}

/** itself returns a value, or what it stands for if it is an alias. */
function itself(v: unknown): unknown {
  return isAlias(v) ? meant.get(v) : v;
}

/** plain returns a value of the text as it is in JSON. */
function plain(v: unknown, deep = 0, behind = false): unknown {
  if (deep > 30 || (behind && ++aliased > mostAliased)) return null;
  if (isAlias(v)) return plain(meant.get(v), deep + 1, true);
  if (isScalar(v)) return v.value;
  if (isSeq(v)) return v.items.map((x) => plain(x, deep + 1, behind));
  if (isMap(v)) {
    const out: Fields = {};
    for (const p of v.items) Object.defineProperty(out, keyOf(p), { value: plain(p.value, deep + 1, behind), enumerable: true, writable: true, configurable: true });
    return out;
  }
  return null;
}

/** has returns the text of a key of a mapping; empty without one. */
function has(map: YAMLMap, key: string): string {
  return textOf(itself(find(map, key)?.value));
}

/** textsOf returns the texts that a key of a mapping lists. */
function textsOf(map: YAMLMap, key: string): string[] {
  const list = itself(find(map, key)?.value);
  return isSeq(list) ? list.items.map((i) => textOf(itself(i))) : [];
}

/** position returns where something stands; undefined if it does not say. */
function position(item: YAMLMap): [number, number] | undefined {
  const at = plain(find(item, "x-position")?.value);
  return Array.isArray(at) && at.length === 2 && at.every((v) => typeof v === "number" && Math.abs(v) <= 1e6) ? [at[0] as number, at[1] as number] : undefined;
}

/** read reads the text of a lab file. It never fails: what is wrong is in problems. */
export function read(text: string): Lab {
  const lab: Lab = { text, name: "", controllers: [], at: "", nodes: [], links: [], services: [], groups: [], notes: [], problems: [], broken: true, root: null };
  if (text.length > mostOctets) {
    lab.problems.push({ line: 0, text: `the text has ${text.length.toLocaleString("en")} characters: a lab file in the browser has at most ${mostOctets.toLocaleString("en")}; bring it up by weft lab up` });
    return lab;
  }
  const lines = new LineCounter();
  const doc = parseDocument(text, { keepSourceTokens: true, lineCounter: lines, prettyErrors: false, logLevel: "silent" });
  for (const e of doc.errors.slice(0, 100)) lab.problems.push({ line: lines.linePos(e.pos[0]).line, text: e.message });
  if (doc.errors.length > 0) return lab;
  if (doc.contents !== null && !isMap(doc.contents)) {
    if (isScalar(doc.contents) && doc.contents.value === null) lab.broken = false;
    else lab.problems.push({ line: 1, text: "the lab is not a mapping of keys to values" });
    return lab;
  }
  const lost = meaning(doc.contents);
  if (lost) {
    lab.problems.push({ line: lost.range ? lines.linePos(lost.range[0]).line : 0, text: `*${lost.source} stands for nothing: no &${lost.source} is before it` });
    return lab;
  }
  lab.broken = false;
  lab.root = doc.contents;
  if (!lab.root) return lab;
  new Reader(lab, lab.root, lines).read();
  return lab;
}

class Reader {
  private readonly names = new Map<string, Node>();
  private readonly counts = new Map<string, number>();

  constructor(
    private readonly lab: Lab,
    private readonly root: YAMLMap,
    private readonly lines: LineCounter,
  ) {}

  read() {
    const { lab, root } = this;
    lab.name = has(root, "name");
    const model = find(root, "x-model");
    if (model) [lab.model, lab.modelLine] = [plain(model.value), this.line(model.key)];
    const one = has(root, "controller");
    lab.controllers = one ? [one] : textsOf(root, "controller");
    const control = itself(find(root, "control")?.value);
    if (isMap(control) && has(control, "mode") === "in-band") lab.at = has(control, "at");
    let total = 0;
    for (const list of ["switches", "hosts"] as const) {
      const seq = this.list(list);
      total += seq.length;
      if (total > mostNodes) {
        lab.problems.push({ line: 0, text: `the lab has ${total.toLocaleString("en")} nodes or more: at most ${mostNodes.toLocaleString("en")} are drawn; the text can still be edited and deployed` });
        lab.nodes = [];
        return;
      }
      seq.forEach((item, index) => this.node(list, item, index));
    }
    this.list("links").forEach((item, index) => {
      if (!isMap(item)) return this.alias("links", item);
      this.link({ a: has(item, "a"), b: has(item, "b"), of: "link", index, line: this.line(item), fields: plain(item) as Fields });
    });
    for (const [index, item] of this.list("x-services").entries()) {
      if (!isMap(item)) continue;
      lab.services.push({ index, line: this.line(item), name: has(item, "name"), type: has(item, "type"), ends: textsOf(item, "ends"), fields: plain(item) as Fields });
    }
    this.marks();
  }

  /** marks reads what is drawn around nodes: groups and notes. */
  private marks() {
    const { lab } = this;
    for (const [index, item] of this.list("x-groups").slice(0, mostMarks).entries()) {
      if (isMap(item)) lab.groups.push({ id: `group/${index}`, index, name: has(item, "name"), colour: has(item, "colour"), nodes: textsOf(item, "nodes") });
    }
    for (const [index, item] of this.list("x-notes").slice(0, mostMarks).entries()) {
      if (isMap(item)) lab.notes.push({ id: `note/${index}`, index, text: has(item, "text").slice(0, 1000), at: position(item) ?? [0, 0] });
    }
  }

  private line(node: { range?: [number, number, number] | null }): number {
    return node.range ? this.lines.linePos(node.range[0]).line : 0;
  }

  private list(key: string): unknown[] {
    const pair = find(this.root, key);
    if (isSeq(pair?.value)) return pair.value.items;
    if (pair?.value && !(isScalar(pair.value) && pair.value.value === null)) this.lab.problems.push({ line: this.line(pair.key), text: `${key} is ${isAlias(pair.value) ? "an alias, which is not drawn" : "not a list"}: write a list` });
    return [];
  }

  private alias(key: string, item: unknown) {
    const what = isAlias(item) ? "an alias, which is not drawn" : "not a mapping of keys to values";
    this.lab.problems.push({ line: this.line(item as YAMLMap), text: `something in ${key} is ${what}` });
  }

  private node(list: "switches" | "hosts", item: unknown, index: number) {
    if (!isMap(item)) return this.alias(list, item);
    const name = has(item, "name");
    const line = this.line(item);
    const wrong = nameProblem(name, this.names.has(name) ? [name] : []);
    const id = this.names.has(name) ? `${name}\n${list}${index}` : name;
    if (wrong) this.lab.problems.push({ line, text: wrong, of: id });
    const at = position(item);
    const node: Node = { id, name, kind: list === "hosts" ? "host" : has(item, "kind") || "openflow", list, index, line, fields: plain(item) as Fields };
    if (at) node.at = at;
    this.lab.nodes.push(node);
    if (!this.names.has(name)) this.names.set(name, node);
    if (list === "switches") return;
    this.link({ a: has(item, "switch"), b: name, of: "host", index, line, fields: node.fields });
    const eth1 = itself(find(item, "eth1")?.value);
    if (isMap(eth1)) this.link({ a: has(eth1, "switch") || has(item, "switch"), b: name, of: "eth1", index, line: this.line(eth1), fields: plain(eth1) as Fields });
  }

  private link(l: Omit<Link, "id">) {
    const key = `${l.of}/${l.a}/${l.b}`;
    const n = this.counts.get(key) ?? 0;
    this.counts.set(key, n + 1);
    const link: Link = { ...l, id: n ? `${key}/${n}` : key };
    this.lab.links.push(link);
    if (l.of !== "link" && l.a === "") {
      this.lab.problems.push({ line: l.line, text: `host ${l.b} is attached to no switch: connect it, or write switch:`, of: l.b });
      return;
    }
    for (const name of l.of === "link" ? [l.a, l.b] : [l.a]) {
      const node = this.names.get(name);
      if (!node) this.lab.problems.push({ line: l.line, text: `the link ${l.a} to ${l.b} ends at ${JSON.stringify(name)}, which is no node`, of: link.id });
      else if (node.kind === "host") this.lab.problems.push({ line: l.line, text: `the link ${l.a} to ${l.b} ends at ${name}, which is a host: a host names its switch`, of: link.id });
    }
    if (l.of === "link" && l.a === l.b) this.lab.problems.push({ line: l.line, text: `the link joins ${l.a} to itself: name two different switches`, of: link.id });
  }
}

function item(lab: Lab, list: string, index: number): YAMLMap | null {
  const seq = lab.root && find(lab.root, list)?.value;
  const found = isSeq(seq) ? seq.items[index] : null;
  return isMap(found) ? found : null;
}

/** Added is what add puts into a lab: the fields of nodes and links. */
export interface Added {
  switches?: Fields[];
  hosts?: Fields[];
  links?: Fields[];
}

/** addTo returns the text with further items of a list of the lab. */
export function addTo(lab: Lab, list: string, values: Fields[]): string {
  return apply(lab.text, append(lab.text, lab.root, list, values));
}

/** removeFrom returns the text without an item of a list of the lab, nor the list if that was its last. */
export function removeFrom(lab: Lab, list: string, index: number): string {
  const seq = lab.root && find(lab.root, list)?.value;
  if (!isSeq(seq) || index >= seq.items.length) return lab.text;
  if (seq.items.length === 1) return setTop(lab, list, undefined);
  return apply(lab.text, deleteItems(lab.text, seq as YAMLSeq, [index]));
}

/** setIn returns the text with keys of an item of a list of the lab changed, or of the mapping
 * at a key of that; undefined takes a key away. */
export function setIn(lab: Lab, list: string, index: number, fields: Fields, inner = ""): string {
  let now = lab;
  for (const [key, value] of Object.entries(fields)) {
    const whole = item(now, list, index);
    const map = whole && inner ? find(whole, inner)?.value : whole;
    if (!isMap(map)) break;
    now = read(apply(now.text, value === undefined || value === "" ? deleteKey(now.text, map, key) : setKey(now.text, map, key, value)));
  }
  return now.text;
}

/** add returns the text with further nodes and links. */
export function add(lab: Lab, more: Added): string {
  let text = lab.text;
  for (const list of ["switches", "hosts", "links"] as const) {
    const values = more[list] ?? [];
    if (values.length === 0) continue;
    const now = text === lab.text ? lab : read(text);
    text = apply(text, append(text, now.root, list, values));
  }
  return text;
}

/** move returns the text with other positions of nodes and notes. */
export function move(lab: Lab, to: Map<string, [number, number]>): string {
  const splices: Splice[] = [];
  for (const n of [...lab.nodes, ...lab.notes]) {
    const at = to.get(n.id);
    const map = at && item(lab, "list" in n ? n.list : "x-notes", n.index);
    if (!at || !map) continue;
    const rounded = [Math.round(at[0]) + 0, Math.round(at[1]) + 0];
    if (n.at && n.at[0] === rounded[0] && n.at[1] === rounded[1]) continue;
    splices.push(...setKey(lab.text, map, "x-position", rounded));
  }
  return apply(lab.text, splices);
}

/** set returns the text with keys of nodes or links changed; undefined takes a key away. */
export function set(lab: Lab, of: Node | Link, fields: Fields): string {
  const list = "list" in of ? of.list : of.of === "link" ? "links" : "hosts";
  return setIn(lab, list, of.index, fields, "of" in of && of.of === "eth1" ? "eth1" : "");
}

/** setTop returns the text with a key of the lab itself changed; undefined takes it away. */
export function setTop(lab: Lab, key: string, value: unknown): string {
  if (!lab.root) return value === undefined ? lab.text : apply(lab.text, [{ from: 0, to: 0, text: "" }, ...start(lab.text, key, value)]);
  if (value === undefined) return apply(lab.text, deleteKey(lab.text, lab.root, key));
  return apply(lab.text, setKey(lab.text, lab.root, key, value));
}

/** setBlock returns the text with a key of the lab itself set to what a text says, as lines below it. */
export function setBlock(lab: Lab, key: string, said: string): string {
  const without = lab.root ? apply(lab.text, deleteKey(lab.text, lab.root, key)) : lab.text;
  const fresh = without !== "" && !without.endsWith("\n") ? "\n" : "";
  const lines = said.trimEnd().split(/\r?\n/).map((l) => (l ? "  " + l : l));
  return apply(without, [{ from: without.length, to: without.length, text: `${fresh}${key}:\n${lines.join("\n")}\n` }]);
}

function start(text: string, key: string, value: unknown): Splice[] {
  const fresh = text !== "" && !text.endsWith("\n") ? "\n" : "";
  return [{ from: text.length, to: text.length, text: `${fresh}${key}: ${flow(value)}\n` }];
}

/** remove returns the text without some nodes, links, groups and notes, nor the links of those nodes. */
export function remove(lab: Lab, ids: Set<string>): string {
  const gone = { switches: new Set<number>(), hosts: new Set<number>(), links: new Set<number>() };
  const names = new Set<string>();
  for (const n of lab.nodes) {
    if (!ids.has(n.id)) continue;
    gone[n.list].add(n.index);
    if (n.id === n.name) names.add(n.name);
  }
  const splices: Splice[] = [];
  for (const g of lab.groups) {
    const left = g.nodes.filter((n) => !names.has(n));
    const map = left.length < g.nodes.length && !ids.has(g.id) && item(lab, "x-groups", g.index);
    if (map) splices.push(...setKey(lab.text, map, "nodes", left));
  }
  for (const [list, all] of [["x-groups", lab.groups], ["x-notes", lab.notes]] as const) {
    const seq = lab.root && find(lab.root, list)?.value;
    const some = all.filter((m) => ids.has(m.id)).map((m) => m.index);
    if (!isSeq(seq) || some.length === 0) continue;
    if (some.length === seq.items.length) splices.push(...deleteKey(lab.text, lab.root!, list));
    else splices.push(...deleteItems(lab.text, seq as YAMLSeq, some));
  }
  for (const l of lab.links) {
    if (l.of === "link") {
      if (ids.has(l.id) || names.has(l.a) || names.has(l.b)) gone.links.add(l.index);
      continue;
    }
    if (gone.hosts.has(l.index) || !(ids.has(l.id) || names.has(l.a))) continue;
    const host = item(lab, "hosts", l.index);
    if (!host) continue;
    if (l.of === "eth1") splices.push(...deleteKey(lab.text, host, "eth1"));
    // A host without a switch stays in the drawing, with the problem said.
    else if (find(host, "switch")) splices.push(...deleteKey(lab.text, host, "switch"));
  }
  for (const list of ["switches", "hosts", "links"] as const) {
    const seq = lab.root && find(lab.root, list)?.value;
    if (isSeq(seq) && gone[list].size > 0) splices.push(...deleteItems(lab.text, seq as YAMLSeq, [...gone[list]]));
  }
  return apply(lab.text, splices);
}

/** rename returns the text with another name of a node, wherever it stands. */
export function rename(lab: Lab, node: Node, to: string): string {
  const splices: Splice[] = [];
  const set = (map: YAMLMap | null | undefined, key: string) => map && splices.push(...setKey(lab.text, map, key, to));
  set(item(lab, node.list, node.index), "name");
  if (node.id === node.name) {
    for (const l of lab.links) {
      const map = item(lab, l.of === "link" ? "links" : "hosts", l.index);
      if (!map) continue;
      if (l.of === "link") {
        if (l.a === node.name) set(map, "a");
        if (l.b === node.name) set(map, "b");
      } else if (l.a === node.name) {
        const at = l.of === "eth1" ? find(map, "eth1")?.value : map;
        if (isMap(at) && has(at, "switch") === node.name) set(at, "switch");
      }
    }
    const control = lab.root && find(lab.root, "control")?.value;
    if (isMap(control) && has(control, "at") === node.name) set(control, "at");
    for (const [list, key] of [["x-services", "ends"], ["x-groups", "nodes"]]) {
      const seq = lab.root && find(lab.root, list)?.value;
      for (const s of isSeq(seq) ? seq.items : []) {
        const all = isMap(s) ? plain(find(s, key)?.value) : null;
        if (isMap(s) && Array.isArray(all) && all.includes(node.name)) splices.push(...setKey(lab.text, s, key, all.map((e) => (e === node.name ? to : e))));
      }
    }
  }
  return apply(lab.text, splices);
}

/** json returns everything that the text says, as JSON. */
export function json(lab: Lab): Fields {
  aliased = 0;
  return lab.root ? (plain(lab.root) as Fields) : {};
}

/** unused returns a name that no node has: prefix and a number. */
export function unused(taken: Set<string>, prefix: string): string {
  let n = 1;
  while (taken.has(`${prefix}${n}`)) n++;
  return `${prefix}${n}`;
}

/** fresh returns the text of a lab from its fields, a line for each node and link. */
export function fresh(fields: Fields): string {
  let text = "";
  for (const [key, value] of Object.entries(fields)) {
    const lab = read(text);
    if (Array.isArray(value) && value.length > 0 && value.every((v) => v !== null && typeof v === "object" && !Array.isArray(v))) text = apply(text, append(text, lab.root, key, value));
    else if (lab.root) text = apply(text, setKey(text, lab.root, key, value));
    else text = `${key}: ${flow(value)}\n`;
  }
  return text;
}
