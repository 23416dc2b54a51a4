// Networks of OSHI's tools, of their three generations: lists of names and pairs
// (2014), objects by id (Topology3D), lists of objects (version 2). See also lab/t3d.go.

import type { Fields } from "../document";
import { fieldsOf, filled, labName, listOf, Names, position, rest, type LabFields } from "./common";

interface Vertex {
  id: string;
  raw: Fields;
}
interface Edge {
  a: string;
  b: string;
  raw: Fields;
  /** bare says that it stands by itself where others are in a list of links. */
  bare?: boolean;
}
interface Drawing {
  generation: number;
  vertices: Vertex[];
  edges: Edge[];
  rest: Fields;
}

type Role = "cr" | "pe" | "bridge" | "host" | "controller" | "vs" | "";

function roleOf(v: Vertex): Role {
  const said = String(fieldsOf(v.raw.info).type ?? "");
  const kind = said || (v.id.match(/^(cro|peo|cer|ctr|vs|swi|mgm|COSHI|AOSHI|EUH|L2SW)/)?.[0] ?? "");
  switch (kind.toLowerCase()) {
    case "oshi-cr":
    case "cro":
    case "coshi":
      return "cr";
    case "oshi-pe":
    case "peo":
    case "aoshi":
      return "pe";
    case "l2sw":
    case "swi":
    case "l2 switch":
      return "bridge";
    case "ce":
    case "cer":
    case "euh":
      return "host";
    case "of controller":
    case "ctr":
      return "controller";
    case "vs":
    case "mgm":
      return "vs";
  }
  return "";
}

function readDrawing(text: string): Drawing {
  const top = JSON.parse(text) as Fields;
  if (!("vertices" in fieldsOf(top))) throw new Error("not a topology of OSHI's tools: want an object with vertices and edges");
  const d: Drawing = { generation: 2, vertices: [], edges: [], rest: rest(top, "vertices", "edges") };
  if (!Array.isArray(top.vertices)) {
    d.generation = 1;
    d.vertices = Object.entries(fieldsOf(top.vertices)).map(([id, raw]) => ({ id, raw: fieldsOf(raw) }));
  } else if (top.vertices.every((v) => typeof v === "string")) {
    d.generation = 0;
    const properties = fieldsOf(top.node_properties);
    d.vertices = top.vertices.map((id: string) => ({ id, raw: fieldsOf(properties[id]) }));
    if ("node_properties" in top) d.rest.node_properties = rest(properties, ...(top.vertices as string[]));
  } else {
    d.vertices = top.vertices.map((v) => ({ id: String(fieldsOf(v).id ?? ""), raw: rest(fieldsOf(v), "id") }));
  }
  if (Array.isArray(top.edges)) {
    d.edges = top.edges.map((e) => (Array.isArray(e) ? { a: String(e[0]), b: String(e[1]), raw: fieldsOf(e[2]), bare: e.length < 3 } : { a: String(fieldsOf(e).source), b: String(fieldsOf(e).target), raw: rest(fieldsOf(e), "source", "target") }));
  } else {
    for (const [key, value] of Object.entries(fieldsOf(top.edges))) {
      const [a, b] = key.split("&&");
      if (b === undefined) throw new Error(`the edge ${JSON.stringify(key.slice(0, 80))}: want two ids joined by &&`);
      const links = fieldsOf(value).links;
      if (Array.isArray(links)) d.edges.push(...links.map((raw) => ({ a, b, raw: fieldsOf(raw) })));
      else d.edges.push({ a, b, raw: fieldsOf(value), bare: true });
    }
  }
  return d;
}

function writeDrawing(d: Drawing): string {
  const out: Fields = {};
  if (d.generation === 1) {
    out.vertices = Object.fromEntries(d.vertices.map((v) => [v.id, v.raw]));
    const edges: Record<string, Fields> = {};
    for (const e of d.edges) {
      const key = `${e.a}&&${e.b}`;
      if (e.bare && !(key in edges)) edges[key] = e.raw;
      else (((edges[key] ??= { links: [] }) as { links: Fields[] }).links ??= []).push(e.raw);
    }
    out.edges = edges;
  } else if (d.generation === 0) {
    out.vertices = d.vertices.map((v) => v.id);
    out.edges = d.edges.map((e) => (e.bare && Object.keys(e.raw).length === 0 ? [e.a, e.b] : [e.a, e.b, e.raw]));
  } else {
    out.vertices = d.vertices.map((v) => ({ id: v.id, ...v.raw }));
    out.edges = d.edges.map((e) => ({ source: e.a, target: e.b, ...e.raw }));
  }
  Object.assign(out, d.rest);
  const said = d.vertices.filter((v) => Object.keys(v.raw).length > 0);
  if (d.generation === 0 && said.length > 0) out.node_properties = { ...fieldsOf(out.node_properties), ...Object.fromEntries(said.map((v) => [v.id, v.raw])) };
  return JSON.stringify(out, null, 1) + "\n";
}

/** ours is what Loom has written beside what OSHI's tools know. */
const ours = "x-weft";

function positionOf(v: Vertex): [number, number] | undefined {
  const { x, y } = fieldsOf(v.raw.pos);
  return position([x, y]) ?? undefined;
}

/** nodeFields returns what a vertex is in a lab, but for its name and where it came from. */
function nodeFields(v: Vertex, role: Role): Fields {
  const at = { "x-position": positionOf(v) };
  if (ours in v.raw) return filled({ ...fieldsOf(v.raw[ours]), ...at });
  if (role === "host") return filled({ "x-type": "ce", ...at });
  if (role === "bridge") return filled({ kind: "bridge", ...at });
  const loopback = String(fieldsOf(fieldsOf(v.raw.info).property).loopback ?? "");
  return filled({ kind: "hybrid", "x-type": role, loopback: /^[0-9]+(\.[0-9]+){3}(\/32)?$/.test(loopback) ? loopback.replace("/32", "") : undefined, ...at });
}

/** readT3D reads a lab from a topology of OSHI's tools. What a lab has no place for is kept below x-t3d. */
export function readT3D(text: string, file = "lab"): LabFields {
  const d = readDrawing(text);
  const names = new Names();
  const role = new Map<string, Role>();
  const name = new Map<string, string>();
  const switches: Fields[] = [];
  const hosts = new Map<string, Fields[]>();
  const services: Fields[] = [];
  const vss = new Map<string, Fields & { ends: string[]; "x-t3d": Fields }>();
  const others: Vertex[] = [];
  for (const v of d.vertices) {
    const r = roleOf(v);
    if (!v.id || role.has(v.id)) throw new Error(`the vertex ${JSON.stringify(v.id.slice(0, 80))} has no name, or stands twice`);
    if (!r) throw new Error(`the vertex ${v.id.slice(0, 80)} has an unknown type ${JSON.stringify(fieldsOf(v.raw.info).type ?? "")}`);
    role.set(v.id, r);
    const own = fieldsOf(v.raw[ours]).name;
    const n = names.of(typeof own === "string" ? own : v.id.replaceAll("#", ""));
    name.set(v.id, n);
    const from = { id: v.id, ...filled({ raw: rest(v.raw, "pos", ours), pos: v.raw.pos }) };
    const fields = { ...nodeFields(v, r), name: typeof own === "string" ? own : n, "x-t3d": from };
    if (r === "host") hosts.set(v.id, [fields]);
    else if (r === "cr" || r === "pe" || r === "bridge") switches.push(fields);
    else if (r === "vs" && String(fieldsOf(v.raw.info).type ?? "vs").toLowerCase() === "vs" && v.id.startsWith("vs")) {
      vss.set(v.id, { name: n, type: "vss", ends: [], "x-t3d": { ...from, links: [] } });
    } else others.push(v);
  }
  const links: Fields[] = [];
  const kept: Edge[] = [];
  let at = "";
  for (const e of d.edges) {
    const [ra, rb] = [role.get(e.a), role.get(e.b)];
    if (!ra || !rb) throw new Error(`the edge from ${e.a.slice(0, 80)} to ${e.b.slice(0, 80)} ends at ${JSON.stringify((ra ? e.b : e.a).slice(0, 80))}, which is no vertex`);
    const view = String(e.raw.view || (String(e.raw.vll) === "true" ? "Vll" : "Data"));
    const from = filled({ raw: rest(e.raw, ours), bare: e.bare || undefined });
    const routed = (r: Role) => r === "cr" || r === "pe" || r === "bridge";
    if ((view === "Vll" || view === "PW" || view === "Data") && ra === "host" && rb === "host") {
      const type = view === "PW" ? "pw" : "vll";
      const own = fieldsOf(e.raw[ours]);
      services.push({ name: `${type}${services.length + 1}`, type, ...own, ends: [name.get(e.a)!, name.get(e.b)!], "x-t3d": { ...from, ids: [e.a, e.b] } });
    } else if (view === "VS" && (vss.has(e.a) ? rb : ra) === "host" && (vss.has(e.a) || vss.has(e.b))) {
      const of = vss.get(vss.has(e.a) ? e.a : e.b)!;
      const host = vss.has(e.a) ? e.b : e.a;
      of.ends.push(name.get(host)!);
      (of["x-t3d"].links as Fields[]).push({ end: name.get(host), id: host, flip: vss.has(e.a), ...from });
    } else if (view === "Data" && routed(ra) && routed(rb) && (e.a !== e.b || ours in e.raw)) {
      links.push({ a: name.get(e.a), b: name.get(e.b), ...fieldsOf(e.raw[ours]), "x-t3d": from });
    } else if (view === "Data" && ((routed(ra) && rb === "host") || (routed(rb) && ra === "host"))) {
      const host = ra === "host" ? e.a : e.b;
      const all = hosts.get(host)!;
      const link = { ...from, flip: ra === "host" };
      const to = { switch: name.get(ra === "host" ? e.b : e.a), "x-t3d": { ...fieldsOf(all[0]["x-t3d"]), link } };
      if (!("link" in fieldsOf(all[0]["x-t3d"]))) Object.assign(all[0], to);
      else all.push({ "x-type": "ce", name: names.of(name.get(host)!), ...to });
    } else {
      kept.push(e);
      if (view === "Data" && (ra === "controller" || rb === "controller")) {
        const node = ra === "controller" ? e.b : e.a;
        if (!at && role.get(node) !== "bridge" && routed(role.get(node)!)) at = name.get(node)!;
      }
    }
  }
  services.push(...vss.values());
  const derived = filled({ name: labName(file), control: at ? { mode: "in-band", at } : undefined });
  const top = ours in d.rest ? fieldsOf(d.rest[ours]) : derived;
  const x = filled({ generation: d.generation, rest: rest(d.rest, ours), others, edges: kept, derived: ours in d.rest ? undefined : derived });
  const empty = listOf(top.empty).map((k): [string, Fields[]] => [String(k), []]);
  const lists = { switches, hosts: [...hosts.values()].flat(), links };
  return { ...rest(top, "empty"), "x-t3d": x, ...Object.fromEntries(empty), ...Object.fromEntries(Object.entries(lists).filter(([, v]) => v.length > 0)), ...(services.length > 0 ? { "x-services": services } : {}) };
}

/** writeT3D writes a lab as OSHI's tools do: in the generation that it came from, else that of Topology3D. */
export function writeT3D(lab: LabFields, generation?: number): string {
  const x = fieldsOf(lab["x-t3d"]);
  const d: Drawing = { generation: generation ?? (typeof x.generation === "number" ? x.generation : 1), vertices: [], edges: [], rest: { ...fieldsOf(x.rest) } };
  const ids = new Set<string>([...listOf(lab.switches), ...listOf(lab.hosts), ...listOf(lab["x-services"])].flatMap((n) => fieldsOf(fieldsOf(n)["x-t3d"]).id ?? []).map(String));
  const others = listOf(x.others) as unknown as Vertex[];
  others.forEach((v) => ids.add(v.id));
  const next = (prefix: string, wish: unknown) => {
    let id = typeof wish === "string" && new RegExp(`^${prefix}[0-9]+$`).test(wish) && !ids.has(wish) ? wish : "";
    for (let n = 1; !id; n++) if (!ids.has(`${prefix}${n}`)) id = `${prefix}${n}`;
    ids.add(id);
    return id;
  };
  const byName = new Map<string, string>();
  const busy = new Set(listOf(lab.hosts).map((h) => fieldsOf(h).switch));
  const vertex = (f: Fields, role: Role) => {
    const from = fieldsOf(f["x-t3d"]);
    const id = typeof from.id === "string" ? from.id : next({ cr: "cro", pe: "peo", bridge: "swi", host: "cer" }[role as "cr"] ?? "cro", f.name);
    byName.set(String(f.name), id);
    if (d.vertices.some((v) => v.id === id)) return id; // a host with two links
    const type = { cr: "OSHI-CR", pe: "OSHI-PE", bridge: "L2SW", host: "CE" }[role as "cr"];
    const raw: Fields = "id" in from ? { ...fieldsOf(from.raw) } : { info: { type, property: filled({ custom_label: f.name, loopback: f.loopback }) } };
    const at = position(f["x-position"]);
    if (at) raw.pos = { ...fieldsOf(from.pos), x: at[0], y: at[1] };
    else if ("pos" in from) raw.pos = from.pos;
    const is = rest(f, "switch", "x-t3d", "x-position");
    const derived = { ...rest(nodeFields({ id, raw }, role), "x-position"), name: "id" in from ? new Names().of(id.replaceAll("#", "")) : null };
    if (!same(is, derived)) raw[ours] = is;
    d.vertices.push({ id, raw });
    return id;
  };
  for (const s of listOf(lab.switches).map(fieldsOf)) vertex(s, s.kind === "bridge" ? "bridge" : s["x-type"] === "pe" || (s["x-type"] === undefined && busy.has(s.name)) ? "pe" : "cr");
  const edge = (a: string, b: string, from: unknown, own: Fields, view: string) => {
    const raw: Fields = from !== undefined ? { ...fieldsOf(fieldsOf(from).raw) } : d.generation === 0 && view === "Data" ? {} : { view };
    if (Object.keys(own).length > 0 || (a === b && from === undefined)) raw[ours] = own; // else it would be left alone
    d.edges.push({ a, b, raw, ...(fieldsOf(from).bare ? { bare: true } : {}) });
  };
  for (const l of listOf(lab.links).map(fieldsOf)) {
    const [a, b] = [byName.get(String(l.a)), byName.get(String(l.b))];
    if (a && b) edge(a, b, l["x-t3d"], rest(l, "a", "b", "x-t3d"), "Data");
  }
  for (const h of listOf(lab.hosts).map(fieldsOf)) {
    const id = vertex(h, "host");
    const sw = byName.get(String(h.switch));
    const { link } = fieldsOf(h["x-t3d"]);
    const { flip } = fieldsOf(link);
    if (sw) edge(flip ? id : sw, flip ? sw : id, link, {}, "Data");
  }
  for (const s of listOf(lab["x-services"]).map(fieldsOf)) {
    const ends = listOf(s.ends).map((e) => byName.get(String(e)));
    const from = fieldsOf(s["x-t3d"]);
    if (s.type === "vss") {
      const id = typeof from.id === "string" ? from.id : next("vs", s.name);
      const raw: Fields = "id" in from ? { ...fieldsOf(from.raw), ...("pos" in from ? { pos: from.pos } : {}) } : { info: { type: "VS", property: {} } };
      const own = rest(s, "ends", "x-t3d");
      if (!same(own, { name: new Names().of(id), type: "vss" })) raw[ours] = own;
      d.vertices.push({ id, raw });
      ends.forEach((e, i) => {
        const l = listOf(from.links).map(fieldsOf).find((k) => k.end === listOf(s.ends)[i]);
        if (e) edge(l?.flip ? id : e, l?.flip ? e : id, l, {}, "VS");
      });
    } else if ((s.type === "vll" || s.type === "pw") && ends.length === 2 && ends[0] && ends[1]) {
      edge(ends[0], ends[1], s["x-t3d"], "ids" in from ? {} : rest(s, "ends", "x-t3d"), s.type === "pw" ? "PW" : "Vll");
    }
  }
  d.vertices.push(...others);
  d.edges.push(...(listOf(x.edges) as unknown as Edge[]));
  const top = rest(lab, "switches", "hosts", "links", "x-services", "x-t3d");
  const empty = ["switches", "hosts", "links"].filter((k) => Array.isArray(lab[k]) && (lab[k] as unknown[]).length === 0);
  if (!same(top, fieldsOf(x.derived)) || empty.length > 0) d.rest[ours] = { ...top, ...(empty.length > 0 ? { empty } : {}) };
  return writeDrawing(d);
}

/** same reports whether two values are alike, whatever the order of keys. */
function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false;
  const [ka, kb] = [Object.keys(a), Object.keys(b)];
  return ka.length === kb.length && ka.every((k) => same((a as Fields)[k], (b as Fields)[k]));
}
