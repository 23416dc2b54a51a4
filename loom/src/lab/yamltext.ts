// Edits of a YAML text that change nothing but what they are about: each answers
// with pieces to put in place of others, and comments, order and style of
// everything else stay.

import { isAlias, isCollection, isMap, isPair, isScalar, isSeq, parse, type Node, type Pair, type YAMLMap, type YAMLSeq } from "yaml";

/** Splice puts text in place of what stands from one offset to another. */
export interface Splice {
  from: number;
  to: number;
  text: string;
}

/** eolOf returns how the lines of a text end: as its first does. */
export const eolOf = (text: string): string => /\r?\n/.exec(text)?.[0] ?? "\n";

/** apply makes splices that do not overlap; what they add ends its lines as the text does. */
export function apply(text: string, splices: Splice[]): string {
  const order = [...splices].sort((a, b) => a.from - b.from || a.to - b.to);
  const eol = eolOf(text);
  let out = "";
  let at = 0;
  for (const s of order) {
    out += text.slice(at, Math.max(at, s.from)) + s.text.replace(/\r?\n/g, eol);
    at = Math.max(at, s.to);
  }
  return out + text.slice(at);
}

/** flow writes a value on one line, as it may stand in brackets; json quotes every text. */
export function flow(value: unknown, json = false): string {
  if (json) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((v) => flow(v)).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const said = Object.entries(value).filter(([, v]) => v !== undefined);
    return `{${said.map(([k, v]) => `${flow(k)}: ${flow(v)}`).join(", ")}}`;
  }
  return scalar(value);
}

const words = new Set(["true", "false", "null", "yes", "no", "on", "off", "y", "n"]);

/** plainly are the texts that every reader of YAML takes as they stand, in brackets too: the lab service reads YAML 1.1. */
const plainly = /^[\p{L}\p{N}_./][\p{L}\p{N}_./:@+ -]*$/u;

/** scalar writes a value that is neither list nor mapping. */
function scalar(value: unknown): string {
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  if (typeof value === "boolean" || value === null || value === undefined) return String(value ?? null);
  const text = String(value);
  const plain = plainly.test(text) && !/: |:$| $|^[0-9].*:|^[0-9.]+_[0-9_.]*$/.test(text) && !words.has(text.toLowerCase()) && (/^[A-Za-z][A-Za-z0-9_/-]*$/.test(text) || parse(text) === text);
  return plain ? text : JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\ufeff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

interface Token {
  type: string;
  offset: number;
}
interface Items {
  items: Array<{ start: Token[]; key?: { offset: number }; value?: { offset: number } }>;
}

/** lineEnd returns where the line of an offset ends, behind its newline. */
function lineEnd(text: string, at: number): number {
  if (at > 0 && text[at - 1] === "\n") return at;
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end + 1;
}

function column(text: string, at: number): number {
  return at - (text.lastIndexOf("\n", at - 1) + 1);
}

/** end returns where the last character of a node stands. */
function end(node: Node | null | undefined, otherwise: number): number {
  if (!node?.range) return otherwise;
  if (isCollection(node) && !node.flow && node.items.length > 0) {
    const last = node.items[node.items.length - 1];
    if (isPair(last)) return pairEnd(last as Pair<Node, Node | null>);
    return end(last as Node, node.range[1]);
  }
  return node.range[1];
}

function pairEnd(pair: Pair<Node, Node | null>): number {
  return Math.max(end(pair.value, 0), pair.key.range![1]);
}

/** startOf returns where an item of a list begins: its dash, or in brackets its value with what belongs to it. */
function startOf(seq: YAMLSeq, i: number): number {
  const token = (seq as unknown as { srcToken: Items }).srcToken.items[i];
  const dash = token?.start.find((t) => t.type === "seq-item-ind");
  if (dash) return dash.offset;
  const props = token?.start.find((t) => t.type === "anchor" || t.type === "tag");
  return props?.offset ?? (seq.items[i] as Node).range![0];
}

function pairs(map: YAMLMap): Array<Pair<Node, Node | null>> {
  return map.items as unknown as Array<Pair<Node, Node | null>>;
}

/** keyOf returns the text of a key. */
export function keyOf(pair: Pair<unknown, unknown>): string {
  return isScalar(pair.key) ? String(pair.key.value) : "";
}

/** find returns the pair of a key. */
export function find(map: YAMLMap, key: string): Pair<Node, Node | null> | undefined {
  return pairs(map).find((p) => keyOf(p) === key);
}

/** jsonish reports whether a mapping is written as JSON. */
function jsonish(map: YAMLMap): boolean {
  const key = pairs(map)[0]?.key;
  return !!map.flow && isScalar(key) && key.type === "QUOTE_DOUBLE";
}

/** behind puts items into brackets behind the last: on a line of their own if that is, and behind what a comment says of it. */
function behind(text: string, starts: number[], open: number, end: number, written: string[]): Splice[] {
  const last = starts[starts.length - 1];
  const line = text.lastIndexOf("\n", last - 1);
  const alone = line > open && text.slice(line + 1, last).trim() === "";
  const fresh = "\n" + (alone ? text.slice(line + 1, last) : " ".repeat(column(text, last)));
  const comment = /^[ \t]*(,?)[ \t]*#[^\r\n]*/.exec(text.slice(end, lineEnd(text, end)));
  if (!comment) return [{ from: end, to: end, text: written.map((w) => (alone ? "," + fresh : ", ") + w).join("") }];
  const at = end + comment[0].length;
  const added = { from: at, to: at, text: fresh + written.join("," + fresh) };
  return comment[1] ? [added] : [{ from: end, to: end, text: "," }, added];
}

/** atOnce reports whether a value can be replaced where it stands: it is no block, whose place and indentation count. */
function atOnce(v: Node | null | undefined): v is Node {
  if (!v?.range || v.range[1] <= v.range[0]) return false;
  return isCollection(v) ? !!v.flow : !(isScalar(v) && (v.type === "BLOCK_LITERAL" || v.type === "BLOCK_FOLDED"));
}

/** change makes a value another and keeps what both have in common; null if it has to be written anew. */
function change(text: string, v: Node | null | undefined, value: unknown, json: boolean): Splice[] | null {
  const anew = atOnce(v) ? [{ from: v.range![0], to: v.range![1], text: flow(value, json) }] : null;
  if (isScalar(v) && v.value === value) return [];
  if (isSeq(v) && Array.isArray(value) && v.items.length > 0) return changeList(text, v, value, json) ?? anew;
  if (isMap(v) && isFields(value) && v.items.length > 0) {
    const gone = pairs(v).map(keyOf).filter((k) => !(k in value));
    if (gone.length > 1 || gone.length === v.items.length) return anew;
    return [...gone.flatMap((k) => deleteKey(text, v, k)), ...Object.entries(value).flatMap(([k, x]) => setKey(text, v, k, x))];
  }
  return anew;
}

function isFields(v: unknown): v is Record<string, unknown> {
  return v !== null && typeof v === "object" && !Array.isArray(v);
}

/** changeList is change for a list: items stay that are in both, in this order. */
function changeList(text: string, seq: YAMLSeq, values: unknown[], json: boolean): Splice[] | null {
  const items = seq.items as Node[];
  const out: Splice[] = [];
  if (items.length === values.length) {
    for (const [i, item] of items.entries()) {
      const some = change(text, item, values[i], json);
      if (!some) return null;
      out.push(...some);
    }
    return out;
  }
  const gone: number[] = [];
  let kept = 0;
  for (const [i, item] of items.entries()) {
    if (kept < values.length && change(text, item, values[kept], json)?.length === 0) kept++;
    else gone.push(i);
  }
  if (kept === 0) return null;
  return [...deleteItems(text, seq, gone), ...appendItems(text, seq, values.slice(kept), json)];
}

/** setKey gives a mapping a key, or a key of it another value. */
export function setKey(text: string, map: YAMLMap, key: string, value: unknown): Splice[] {
  const json = jsonish(map);
  const written = flow(value, json);
  const there = find(map, key);
  const name = json ? JSON.stringify(key) : flow(key);
  if (there) {
    const changed = change(text, there.value, value, json);
    if (changed) return changed;
    const at = there.key.range![1];
    const colon = /^[ \t]*:/.exec(text.slice(at, lineEnd(text, at)))?.[0] ?? "";
    const empty = !there.value?.range || there.value.range[1] <= there.value.range[0];
    if (map.flow || empty) return [{ from: at + colon.length, to: at + colon.length, text: (colon ? " " : ": ") + written }];
    const from = there.key.range![0];
    const to = lineEnd(text, pairEnd(there));
    const comment = /[ \t]#[^\r\n]*/.exec(text.slice(at, lineEnd(text, at)))?.[0] ?? "";
    return [{ from, to, text: `${name}: ${written}${comment}${text[to - 1] === "\n" ? "\n" : ""}` }];
  }
  const all = pairs(map);
  if (map.flow) {
    if (all.length === 0) return [{ from: map.range![0] + 1, to: map.range![1] - 1, text: `${name}: ${written}` }];
    const starts = all.map((p) => p.key.range![0]);
    return behind(text, starts, map.range![0], pairEnd(all[all.length - 1]), [`${name}: ${written}`]);
  }
  const indent = " ".repeat(column(text, all[0].key.range![0]));
  const at = lineEnd(text, pairEnd(all[all.length - 1]));
  const fresh = at > 0 && text[at - 1] !== "\n" ? "\n" : "";
  return [{ from: at, to: at, text: `${fresh}${indent}${name}: ${written}\n` }];
}

/** cut takes what is last in brackets, with the comma before it, but no comment between them. */
function cut(text: string, before: number, from: number, to: number): Splice[] {
  if (!text.slice(before, from).includes("#")) return [{ from: before, to, text: "" }];
  const comma = before + Math.max(0, text.slice(before, from).indexOf(","));
  return [{ from: comma, to: comma + 1, text: "" }, { from, to, text: "" }];
}

/** deleteKey takes a key from a mapping; nothing if it is not there. */
export function deleteKey(text: string, map: YAMLMap, key: string): Splice[] {
  const all = pairs(map);
  const i = all.findIndex((p) => keyOf(p) === key);
  if (i < 0) return [];
  const from = all[i].key.range![0];
  const to = pairEnd(all[i]);
  if (map.flow) {
    if (i + 1 < all.length) return [{ from, to: all[i + 1].key.range![0], text: "" }];
    if (i > 0) return cut(text, pairEnd(all[i - 1]), from, to);
    return [{ from: map.range![0] + 1, to: map.range![1] - 1, text: "" }];
  }
  const line = from - column(text, from);
  const first = text.slice(line, from).trim() === "";
  if (all.length === 1) return [column(text, from) === 0 ? { from, to: lineEnd(text, to), text: "" } : { from, to, text: "{}" }];
  if (first) return [{ from: line, to: lineEnd(text, to), text: "" }];
  // Behind a dash: what stands below comes up to it, unless there is a comment first.
  const next = all[i + 1].key.range![0];
  return [{ from, to: text.slice(to, next).includes("#") ? to : next, text: "" }];
}

/** deleteItems takes items from a list, by their indices. */
export function deleteItems(text: string, seq: YAMLSeq, indices: number[]): Splice[] {
  const gone = new Set(indices);
  const n = seq.items.length;
  const nodeEnd = (i: number) => end(seq.items[i] as Node, startOf(seq, i));
  const out: Splice[] = [];
  if (!seq.flow) {
    for (const i of gone) {
      const from = startOf(seq, i);
      out.push({ from: from - column(text, from), to: lineEnd(text, Math.max(nodeEnd(i), from + 1)), text: "" });
    }
    return out;
  }
  if (gone.size === n) return [{ from: seq.range![0] + 1, to: seq.range![1] - 1, text: "" }];
  for (let i = 0; i < n; i++) {
    if (!gone.has(i)) continue;
    let j = i;
    while (j + 1 < n && gone.has(j + 1)) j++;
    if (j + 1 < n) out.push({ from: startOf(seq, i), to: startOf(seq, j + 1), text: "" });
    else out.push(...cut(text, nodeEnd(i - 1), startOf(seq, i), nodeEnd(j)));
    i = j;
  }
  return out;
}

/** block writes an item of a list, without its dash, as lines of keys if it is a mapping. */
function block(value: unknown, indent: string): string {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return flow(value);
  return Object.entries(value)
    .map(([k, v]) => `${flow(k)}: ${flow(v)}`)
    .join("\n" + indent);
}

/** appendItems adds items to a list that has some. */
function appendItems(text: string, seq: YAMLSeq, values: unknown[], json: boolean): Splice[] {
  if (values.length === 0) return [];
  const last = seq.items.length - 1;
  const item = seq.items[last] as Node;
  if (seq.flow) {
    const starts = seq.items.map((_, i) => startOf(seq, i));
    return behind(text, starts, seq.range![0], end(item, 0), values.map((v) => flow(v, json)));
  }
  const dash = startOf(seq, last);
  const indent = text.slice(dash - column(text, dash), dash);
  const at = lineEnd(text, Math.max(end(item, 0), dash + 1));
  const fresh = text[at - 1] !== "\n" ? "\n" : "";
  const lines = isMap(item) && !item.flow;
  return [{ from: at, to: at, text: fresh + values.map((v) => `${indent}- ${lines ? block(v, indent + "  ") : flow(v)}\n`).join("") }];
}

/** append adds items to the list at a key of the topmost mapping, which it makes if it is not there. */
export function append(text: string, root: YAMLMap | null, key: string, values: unknown[]): Splice[] {
  if (values.length === 0) return [];
  const items = (indent: string) => values.map((v) => `${indent}- ${flow(v)}\n`).join("");
  if (!root) {
    const fresh = text !== "" && !text.endsWith("\n") ? "\n" : "";
    return [{ from: text.length, to: text.length, text: `${fresh}${key}:\n${items("  ")}` }];
  }
  const there = find(root, key);
  if (!there && (root.flow || root.items.length === 0)) return setKey(text, root, key, values);
  if (!there) {
    const all = pairs(root);
    const at = lineEnd(text, pairEnd(all[all.length - 1]));
    const fresh = text[at - 1] !== "\n" ? "\n" : "";
    return [{ from: at, to: at, text: `${fresh}${" ".repeat(column(text, all[0].key.range![0]))}${key}:\n${items("  ")}` }];
  }
  const seq = there.value;
  if (isSeq(seq) && seq.items.length > 0) return appendItems(text, seq, values, root.flow ? jsonish(root) : isMap(seq.items[0]) && jsonish(seq.items[0]));
  if (root.flow) return setKey(text, root, key, values);
  // An empty list, or nothing: a line for each item, below what stands on the line of the key.
  const at = there.key.range![1] + (/^[ \t]*:/.exec(text.slice(there.key.range![1]))?.[0].length ?? 0);
  const to = seq?.range && seq.range[1] > seq.range[0] ? seq.range[1] : at;
  const line = lineEnd(text, to);
  return [{ from: at, to, text: "" }, { from: line, to: line, text: (text[line - 1] === "\n" ? "" : "\n") + items("  ") }];
}

/** textOf returns what a single value says, as it is written. */
export function textOf(node: unknown): string {
  if (!isScalar(node)) return "";
  if (typeof node.value === "string") return node.value;
  return node.source ?? String(node.value ?? "");
}

export { isAlias, isMap, isScalar, isSeq };
