// Edits of a YAML text that change nothing but what they are about: each answers
// with pieces to put in place of others, and comments, order and style of
// everything else stay.

import { Document, isAlias, isCollection, isMap, isPair, isScalar, isSeq, type Node, type Pair, type YAMLMap, type YAMLSeq } from "yaml";

/** Splice puts text in place of what stands from one offset to another. */
export interface Splice {
  from: number;
  to: number;
  text: string;
}

/** apply makes splices that do not overlap. */
export function apply(text: string, splices: Splice[]): string {
  const order = [...splices].sort((a, b) => a.from - b.from || a.to - b.to);
  let out = "";
  let at = 0;
  for (const s of order) {
    out += text.slice(at, Math.max(at, s.from)) + s.text;
    at = Math.max(at, s.to);
  }
  return out + text.slice(at);
}

/** flow writes a value on one line, as it may stand in brackets; json quotes every text. */
export function flow(value: unknown, json = false): string {
  if (json) return JSON.stringify(value);
  const doc = new Document([value]);
  (doc.contents as unknown as YAMLSeq).flow = true;
  const text = doc.toString({ lineWidth: 0, flowCollectionPadding: false, blockQuote: false, defaultStringType: "PLAIN" }).trim();
  // Lists of many items are written over several lines whatever the width.
  return text.includes("\n") ? JSON.stringify(value) : text.slice(1, -1).trim();
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

/** between returns what separates the items of a collection in brackets: a new line if the last stands on its own. */
function between(text: string, items: number[], open: number): string {
  const last = items[items.length - 1];
  const line = text.lastIndexOf("\n", last - 1);
  if (line > open && text.slice(line + 1, last).trim() === "") return ",\n" + text.slice(line + 1, last);
  return ", ";
}

/** setKey gives a mapping a key, or a key of it another value. */
export function setKey(text: string, map: YAMLMap, key: string, value: unknown): Splice {
  const json = jsonish(map);
  const written = flow(value, json);
  const there = find(map, key);
  const name = json ? JSON.stringify(key) : flow(key);
  if (there) {
    const v = there.value;
    const at = there.key.range![1];
    if (map.flow || (v && isScalar(v) && v.type !== "BLOCK_LITERAL" && v.type !== "BLOCK_FOLDED" && v.source !== "" && v.range && !text.slice(at, v.range[0]).includes("\n"))) {
      if (v?.range && v.range[1] > v.range[0]) return { from: v.range[0], to: v.range[1], text: written };
      const colon = text.slice(at).match(/^\s*:/);
      return { from: at + (colon?.[0].length ?? 0), to: at + (colon?.[0].length ?? 0), text: (colon ? " " : ": ") + written };
    }
    const from = there.key.range![0];
    const to = lineEnd(text, pairEnd(there));
    return { from, to, text: `${name}: ${written}${to > from && text[to - 1] === "\n" ? "\n" : ""}` };
  }
  const all = pairs(map);
  if (map.flow) {
    if (all.length === 0) return { from: map.range![0] + 1, to: map.range![1] - 1, text: `${name}: ${written}` };
    const at = pairEnd(all[all.length - 1]);
    const sep = between(
      text,
      all.map((p) => p.key.range![0]),
      map.range![0],
    );
    return { from: at, to: at, text: `${sep}${name}: ${written}` };
  }
  const indent = " ".repeat(column(text, all[0].key.range![0]));
  const at = lineEnd(text, pairEnd(all[all.length - 1]));
  const fresh = at > 0 && text[at - 1] !== "\n" ? "\n" : "";
  return { from: at, to: at, text: `${fresh}${indent}${name}: ${written}\n` };
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
    if (i > 0) return [{ from: pairEnd(all[i - 1]), to, text: "" }];
    return [{ from: map.range![0] + 1, to: map.range![1] - 1, text: "" }];
  }
  if (all.length === 1) return [{ from, to, text: "{}" }];
  if (i === 0) return [{ from, to: all[1].key.range![0], text: "" }];
  return [{ from: from - column(text, from), to: lineEnd(text, to), text: "" }];
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
    else out.push({ from: nodeEnd(i - 1), to: nodeEnd(j), text: "" });
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

/** append adds items to the list at a key of the topmost mapping, which it makes if it is not there. */
export function append(text: string, root: YAMLMap | null, key: string, values: unknown[]): Splice[] {
  if (values.length === 0) return [];
  const items = (indent: string) => values.map((v) => `${indent}- ${flow(v)}\n`).join("");
  if (!root) {
    const fresh = text !== "" && !text.endsWith("\n") ? "\n" : "";
    return [{ from: text.length, to: text.length, text: `${fresh}${key}:\n${items("  ")}` }];
  }
  const there = find(root, key);
  if (!there && (root.flow || root.items.length === 0)) return [setKey(text, root, key, values)];
  if (!there) {
    const all = pairs(root);
    const at = lineEnd(text, pairEnd(all[all.length - 1]));
    const fresh = text[at - 1] !== "\n" ? "\n" : "";
    return [{ from: at, to: at, text: `${fresh}${" ".repeat(column(text, all[0].key.range![0]))}${key}:\n${items("  ")}` }];
  }
  const seq = there.value;
  if (!isSeq(seq)) {
    if (root.flow) return [setKey(text, root, key, values)];
    const at = there.key.range![1] + (text.slice(there.key.range![1]).match(/^\s*:/)?.[0].length ?? 0);
    if (seq?.range && seq.range[1] > seq.range[0]) return [{ from: at, to: lineEnd(text, pairEnd(there)), text: `\n${items("  ")}` }];
    const eol = lineEnd(text, at);
    return [{ from: eol, to: eol, text: (text[eol - 1] === "\n" ? "" : "\n") + items("  ") }];
  }
  if (seq.flow) {
    const json = root.flow ? jsonish(root) : isMap(seq.items[0]) && jsonish(seq.items[0]);
    const written = values.map((v) => flow(v, json));
    if (seq.items.length === 0) {
      if (!root.flow) return [{ from: seq.range![0], to: seq.range![1], text: "\n" + items("  ").trimEnd() }];
      return [{ from: seq.range![0] + 1, to: seq.range![1] - 1, text: written.join(", ") }];
    }
    const last = seq.items.length - 1;
    const at = end(seq.items[last] as Node, 0);
    const sep = between(
      text,
      seq.items.map((_, i) => startOf(seq, i)),
      seq.range![0],
    );
    return [{ from: at, to: at, text: written.map((w) => sep + w).join("") }];
  }
  const last = seq.items.length - 1;
  const dash = startOf(seq, last);
  const indent = text.slice(dash - column(text, dash), dash);
  const at = lineEnd(text, Math.max(end(seq.items[last] as Node, 0), dash + 1));
  const fresh = text[at - 1] !== "\n" ? "\n" : "";
  const lastItem = seq.items[last];
  const lines = isMap(lastItem) && !lastItem.flow;
  return [{ from: at, to: at, text: fresh + values.map((v) => `${indent}- ${lines ? block(v, indent + "  ") : flow(v)}\n`).join("") }];
}

/** textOf returns what a single value says, as it is written. */
export function textOf(node: unknown): string {
  if (!isScalar(node)) return "";
  if (typeof node.value === "string") return node.value;
  return node.source ?? String(node.value ?? "");
}

export { isAlias, isMap, isScalar, isSeq };
