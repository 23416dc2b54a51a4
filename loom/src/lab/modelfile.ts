// Reading the file of a model, which anybody may write: what is wrong with it is said
// with its place.

import { parse } from "yaml";

import { generators } from "./generate";
import { frames, fills, shapes } from "./looks";
import type { Model } from "./models";

type Check = (value: unknown, at: string) => string[];

const isFields = (v: unknown): v is Record<string, unknown> => v !== null && typeof v === "object" && !Array.isArray(v);
const say = (v: unknown) => (v === undefined ? "nothing" : JSON.stringify(v)?.slice(0, 60));

const text: Check = (v, at) => (typeof v === "string" && v !== "" && v.length <= 500 ? [] : [`${at}: ${say(v)}: want a text`]);
const word: Check = (v, at) => (typeof v === "string" && /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/.test(v) ? [] : [`${at}: ${say(v)}: want letters, digits, '-' and '_', at most 32`]);
const yes: Check = (v, at) => (typeof v === "boolean" ? [] : [`${at}: ${say(v)}: want true or false`]);
const number =
  (least: number, most: number): Check =>
  (v, at) => (Number.isInteger(v) && (v as number) >= least && (v as number) <= most ? [] : [`${at}: ${say(v)}: want a whole number from ${least} to ${most}`]);
const oneOf =
  (...all: string[]): Check =>
  (v, at) => (all.includes(v as string) ? [] : [`${at}: ${say(v)}: allowed: ${all.join(", ")}`]);
const anything: Check = (v, at) => (isFields(v) ? [] : [`${at}: ${say(v)}: want keys with values`]);
const pattern: Check = (v, at) => {
  try {
    new RegExp(String(v));
    return text(v, at);
  } catch {
    return [`${at}: ${say(v)}: want a regular expression`];
  }
};
const list =
  (of: Check, least = 0, most = 500): Check =>
  (v, at) => (Array.isArray(v) && v.length >= least && v.length <= most ? v.flatMap((x, i) => of(x, `${at}[${i}]`)) : [`${at}: ${say(v)}: want a list of ${least === most ? least : `${least} to ${most}`}`]);

/** keys checks a mapping; the names of keys that need not be there end with ?. */
function keys(of: Record<string, Check>): Check {
  const known = new Map(Object.entries(of).map(([k, check]) => [k.replace("?", ""), { check, needed: !k.endsWith("?") }]));
  return (v, at) => {
    if (!isFields(v)) return [`${at || "the model"}: ${say(v)}: want keys with values`];
    const path = (k: string) => (at ? `${at}.${k}` : k);
    const wrong = Object.keys(v).filter((k) => !known.has(k)).map((k) => `${path(k)}: an unknown key; allowed: ${[...known.keys()].join(", ")}`);
    for (const [k, { check, needed }] of known) {
      if (k in v) wrong.push(...check(v[k], path(k)));
      else if (needed) wrong.push(`${path(k)} is missing`);
    }
    return wrong;
  };
}

const count = { "least?": number(0, 5000), "most?": number(0, 5000), "why?": text };

const model = keys({
  name: word,
  "title?": text,
  nodes: list(
    keys({
      type: word, title: text, list: oneOf("switches", "hosts"), kind: oneOf("openflow", "hybrid", "router", "bridge", "host"), prefix: word, shape: oneOf(...shapes), colour: oneOf(...Object.keys(fills)),
      "set?": anything, "hosts?": yes, "named?": pattern, ...count, "degree?": keys(count),
    }),
    1,
  ),
  "links?": list(keys({ type: word, title: text, between: list(list(text, 2, 2), 1), "set?": anything, "parallel?": yes, "width?": number(1, 8), "line?": oneOf("solid", "dashed", "dotted"), "colour?": oneOf(...Object.keys(frames)) })),
  "refusals?": list(keys({ between: list(text, 2, 2), why: text })),
  "services?": list(keys({ type: oneOf("vll", "pw", "vss"), title: text, ends: list(word, 1), least: number(2, 64), most: number(2, 64), why: text })),
  views: list(keys({ name: word, title: text, "types?": list(word), "links?": list(word), "service?": word, "controllers?": yes }), 1),
  "defaults?": keys({ "lab?": anything, "generator?": word }),
});

/** strays returns what names a type that there is not, or one that there is twice. */
function strays(m: Model): string[] {
  const out: string[] = [];
  const distinct = (all: string[], at: string) => all.filter((x, i) => all.indexOf(x) !== i).map((x) => `${at}: ${x} is there twice`);
  const nodes = m.nodes.map((t) => t.type);
  const links = m.links.map((t) => t.type);
  out.push(...distinct(nodes, "nodes"), ...distinct(links, "links"), ...distinct(m.views.map((v) => v.name), "views"));
  const among = (all: string[], of: readonly string[] | undefined, at: string, what: string) => out.push(...(of ?? []).filter((t) => !all.includes(t)).map((t) => `${at}: ${say(t)} is no type of ${what} of this model; allowed: ${all.join(", ")}`));
  m.nodes.forEach((t, i) => {
    if ((t.list === "hosts") !== (t.kind === "host")) out.push(`nodes[${i}]: a node of the list ${t.list} is not of the kind ${t.kind}`);
  });
  m.links.forEach((t, i) => t.between.forEach((p, k) => among([...nodes, "*"], p, `links[${i}].between[${k}]`, "node")));
  m.refusals.forEach((r, i) => among([...nodes, "*"], r.between, `refusals[${i}].between`, "node"));
  m.services.forEach((s, i) => among(nodes, s.ends, `services[${i}].ends`, "node"));
  m.views.forEach((v, i) => {
    among(nodes, v.types, `views[${i}].types`, "node");
    among(links, v.links, `views[${i}].links`, "link");
    among(m.services.map((s) => s.type), v.service ? [v.service] : [], `views[${i}].service`, "service");
  });
  if (!generators.some((g) => g.name === m.defaults.generator)) out.push(`defaults.generator: ${say(m.defaults.generator)}; allowed: ${generators.map((g) => g.name).join(", ")}`);
  return out;
}

/** modelOf makes a model of what its file says, or throws what is wrong with it. */
export function modelOf(said: unknown, written: string): Model {
  let wrong = model(said, "");
  const given = said as Partial<Model> | null;
  const m = { title: given?.name, links: [], refusals: [], services: [], ...given, defaults: Object.assign({ lab: {}, generator: "ring" }, given?.defaults), text: written } as unknown as Model;
  if (wrong.length === 0) wrong = strays(m);
  if (wrong.length > 0) throw new Error(`the model is not right: ${wrong.slice(0, 5).join("; ")}${wrong.length > 5 ? `; and ${wrong.length - 5} more` : ""}`);
  return m;
}

/** readModel reads the file of a model. */
export function readModel(written: string): Model {
  return modelOf(parse(written, { maxAliasCount: 1000 }), written);
}

/** isModel reports whether a text is the file of a model and none of a lab. */
export function isModel(written: string): boolean {
  return /^nodes\s*:/m.test(written) && /^views\s*:/m.test(written);
}

/** fieldsOf returns a model as it stands in the file of a lab. */
export function fieldsOf(m: Model): Record<string, unknown> {
  return parse(m.text) as Record<string, unknown>;
}
