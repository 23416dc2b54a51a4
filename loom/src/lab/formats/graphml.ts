// GraphML, as yEd, NetworkX and the Internet Topology Zoo write it.

import type { Fields } from "../document";
import { fieldsOf, filled, labName, listOf, Names, position, rest, type LabFields } from "./common";
import { escape, local, readXML, type Element } from "./xml";

// What a lab has beyond nodes and links is data named "weft": JSON. Data of others is kept in x-graphml.

const reserved = ["label", "list", "x", "y", "weft", "of", "lists"];

/** writeGraphML writes a lab: everything that its file says, but comments. */
export function writeGraphML(lab: LabFields): string {
  const keys = new Map<string, string>();
  const key = (of: string, name: string, type = "string") => {
    const k = `for="${of}" attr.name="${escape(name)}" attr.type="${type}"`;
    if (!keys.has(k)) keys.set(k, `d${keys.size}`);
    return keys.get(k)!;
  };
  const data = (id: string, value: unknown) => `<data key="${id}">${escape(typeof value === "string" ? value : JSON.stringify(value))}</data>`;
  // Data of others keep their names, unless those are ours.
  const written = (fields: Fields) => Object.entries(fieldsOf(fields["x-graphml"])).filter(([k, v]) => typeof v === "string" && !reserved.includes(k));
  const kept = (fields: Fields) => {
    const foreign = fieldsOf(fields["x-graphml"]);
    const apart = rest(foreign, ...written(fields).map(([k]) => k));
    return Object.keys(apart).length > 0 || written(fields).length === 0 ? rest({ ...fields, "x-graphml": apart }, ...("x-graphml" in fields ? [] : ["x-graphml"])) : rest(fields, "x-graphml");
  };
  const others = (of: "node" | "edge", fields: Fields) => written(fields).map(([k, v]) => data(key(of, k), v));
  const out: string[] = [];
  const node = (list: string, f: Fields) => {
    const at = position(f["x-position"]);
    const own = rest(kept(f), ...(typeof f.name === "string" ? ["name"] : []), ...(at ? ["x-position"] : []));
    const parts = [data(key("node", "label"), f.name), data(key("node", "list"), list), ...(at ? [data(key("node", "x", "double"), String(at[0])), data(key("node", "y", "double"), String(at[1]))] : []), data(key("node", "weft"), own), ...others("node", f)];
    out.push(`    <node id="${escape(String(f.name))}">${parts.join("")}</node>`);
  };
  listOf(lab.switches).forEach((s) => node("switches", fieldsOf(s)));
  listOf(lab.hosts).forEach((h) => node("hosts", fieldsOf(h)));
  for (const h of listOf(lab.hosts).map(fieldsOf)) {
    if (typeof h.switch === "string") out.push(`    <edge source="${escape(h.switch)}" target="${escape(String(h.name))}">${data(key("edge", "of"), "host")}</edge>`);
  }
  for (const l of listOf(lab.links).map(fieldsOf)) {
    const own = rest(kept(l), "a", "b");
    out.push(`    <edge source="${escape(String(l.a))}" target="${escape(String(l.b))}">${data(key("edge", "weft"), own)}${others("edge", l).join("")}</edge>`);
  }
  const top = data(key("graph", "weft"), rest(lab, "switches", "hosts", "links"));
  const lists = data(key("graph", "lists"), Object.keys(lab).filter((k) => ["switches", "hosts", "links"].includes(k)));
  return `<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n${[...keys].map(([k, id]) => `  <key id="${id}" ${k}/>`).join("\n")}\n  <graph id="${escape(String(lab.name ?? "lab"))}" edgedefault="undirected">\n    ${top}${lists}\n${out.join("\n")}\n  </graph>\n</graphml>\n`;
}

/** readGraphML reads a lab from GraphML: one that Loom wrote as it was, others as weft lab up does. */
export function readGraphML(text: string, file = "lab"): LabFields {
  const root = readXML(text);
  const keys = new Map(root.children.filter((c) => local(c) === "key").map((k) => [k.attributes.id ?? "", k.attributes["attr.name"] ?? k.attributes.id ?? ""]));
  const graphs = root.children.filter((c) => local(c) === "graph");
  if (local(root) !== "graphml" || graphs.length !== 1) throw new Error(`not GraphML of one graph: it has ${graphs.length}`);
  const [graph] = graphs;
  const dataOf = (e: Element): Record<string, string> =>
    Object.fromEntries(e.children.filter((c) => local(c) === "data").map((d) => [keys.get(d.attributes.key ?? "") ?? d.attributes.key ?? "", d.children.length > 0 ? "" : d.text]));
  const nodes = graph.children.filter((c) => local(c) === "node");
  const edges = graph.children.filter((c) => local(c) === "edge");
  if (nodes.length === 0) throw new Error("the GraphML has no nodes");
  const top = dataOf(graph);
  if (top.weft !== undefined) return ours(top, nodes, edges, dataOf);
  const trimmed = (e: Element) => Object.fromEntries(Object.entries(dataOf(e)).map(([k, v]) => [k, v.trim()]));
  return theirs(nodes, edges, trimmed, file, top);
}

function parsed(text: string | undefined): Fields {
  return fieldsOf(JSON.parse(text ?? "{}"));
}

function ours(top: Record<string, string>, nodes: Element[], edges: Element[], dataOf: (e: Element) => Record<string, string>): LabFields {
  const lists: Record<string, Fields[]> = {};
  for (const name of listOf(JSON.parse(top.lists ?? "[]"))) lists[String(name)] = [];
  for (const n of nodes) {
    const d = dataOf(n);
    const f: Fields = { name: n.attributes.id, ...parsed(d.weft) };
    if (d.x !== undefined && d.y !== undefined) f["x-position"] = [Number(d.x), Number(d.y)];
    const foreign = rest(d, "label", "list", "x", "y", "weft");
    if (Object.keys(foreign).length > 0) f["x-graphml"] = { ...fieldsOf(f["x-graphml"]), ...foreign };
    (lists[d.list] ??= []).push(f);
  }
  for (const e of edges) {
    const d = dataOf(e);
    if (d.of === "host") continue;
    const foreign = rest(d, "weft", "of");
    const own = parsed(d.weft);
    (lists.links ??= []).push({ a: e.attributes.source, b: e.attributes.target, ...own, ...(Object.keys(foreign).length > 0 ? { "x-graphml": { ...fieldsOf(own["x-graphml"]), ...foreign } } : {}) });
  }
  return { ...parsed(top.weft), ...lists };
}

/** theirs makes every node a switch with a host, and every edge a link with its rate. */
function theirs(nodes: Element[], edges: Element[], dataOf: (e: Element) => Record<string, string>, file: string, more: Fields): LabFields {
  const names = new Names();
  const of = new Map<string, string>();
  // A map is drawn as large as its nodes need.
  const degrees = nodes.map((n) => dataOf(n)).map((d) => [parseFloat(d.Longitude ?? ""), parseFloat(d.Latitude ?? "") * 1.5]).filter((p) => p.every(Number.isFinite));
  const extent = (axis: 0 | 1) => Math.max(...degrees.map((p) => p[axis])) - Math.min(...degrees.map((p) => p[axis]));
  const scale = degrees.length > 1 ? Math.max(600, 160 * Math.sqrt(nodes.length)) / Math.max(extent(0), extent(1), 0.01) : 40;
  // Several nodes of a town are at one place: they stand around it.
  const taken = new Map<string, number>();
  const room = ([x, y]: number[]): number[] => {
    const n = taken.get(`${x} ${y}`) ?? 0;
    taken.set(`${x} ${y}`, n + 1);
    return n === 0 ? [x, y] : [x + Math.round((30 + 4 * n) * Math.cos(n)), y + Math.round((30 + 4 * n) * Math.sin(n))];
  };
  const lab: LabFields & Required<Pick<LabFields, "switches" | "hosts" | "links">> = { name: labName(file), ...filled({ "x-graphml": more }), switches: [], hosts: [], links: [] };
  for (const n of nodes) {
    const d = dataOf(n);
    const id = n.attributes.id ?? "";
    if (of.has(id)) throw new Error(`the node ${JSON.stringify(id)} stands twice`);
    const name = names.of(d.label || `n${id}`);
    of.set(id, name);
    const [lat, lon] = [parseFloat(d.Latitude ?? ""), parseFloat(d.Longitude ?? "")];
    const [x, y] = [parseFloat(d.x ?? ""), parseFloat(d.y ?? "")];
    const at = Number.isFinite(x + y) ? [Math.round(x), Math.round(y)] : Number.isFinite(lat + lon) ? [Math.round(lon * scale), Math.round(lat * -1.5 * scale)] : undefined;
    lab.switches.push(filled({ name, "x-position": at && room(at), "x-graphml": { id, ...d } }));
  }
  lab.switches.forEach((s) => lab.hosts.push({ name: names.of(`h${lab.hosts.length + 1}`), switch: s.name }));
  for (const e of edges) {
    const d = dataOf(e);
    const [a, b] = [of.get(e.attributes.source ?? ""), of.get(e.attributes.target ?? "")];
    if (!a || !b) throw new Error(`an edge from ${JSON.stringify(e.attributes.source)} to ${JSON.stringify(e.attributes.target)} ends at no node`);
    if (a === b) continue;
    const speed = Number(d.LinkSpeedRaw);
    lab.links.push(filled({ a, b, rate: speed >= 8000 && speed <= 1e12 ? `${speed}bit` : undefined, "x-graphml": d }));
  }
  return lab;
}
