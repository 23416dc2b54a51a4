// Topologies of containerlab.

import { parse, stringify } from "yaml";

import type { Fields } from "../document";
import { fieldsOf, filled, labName, listOf, Names, rest, type LabFields } from "./common";

// What a lab says of a node beyond what containerlab knows is the label "weft": JSON.
// What containerlab's file says beyond what a lab knows is kept below x-clab.

const label = "weft";
const images: Record<string, Fields> = {
  openflow: { kind: "ovs-bridge" },
  bridge: { kind: "bridge" },
  hybrid: { kind: "linux", image: "quay.io/frrouting/frr:10.2.1" },
  router: { kind: "linux", image: "quay.io/frrouting/frr:10.2.1" },
  host: { kind: "linux", image: "alpine:3" },
};

interface End {
  node: string;
  port: string;
}

function endsOf(link: unknown): [End, End] {
  const ends = listOf(fieldsOf(link).endpoints).map((e): End => {
    if (typeof e !== "string") return { node: String(fieldsOf(e).node ?? ""), port: String(fieldsOf(e).interface ?? "") };
    const at = e.lastIndexOf(":");
    return { node: at < 0 ? e : e.slice(0, at), port: at < 0 ? "" : e.slice(at + 1) };
  });
  if (ends.length !== 2) throw new Error(`a link has ${ends.length} endpoints: want two`);
  return [ends[0], ends[1]];
}

function parsed(of: Fields): Fields | undefined {
  const text = fieldsOf(of.labels)[label];
  return typeof text === "string" ? fieldsOf(JSON.parse(text)) : undefined;
}

function withoutLabel(of: Fields): Fields {
  if (!(label in fieldsOf(of.labels))) return of;
  const labels = rest(fieldsOf(of.labels), label);
  return Object.keys(labels).length > 0 ? { ...of, labels } : rest(of, "labels");
}

const number = (v: unknown) => (typeof v === "string" || typeof v === "number" ? Number(v) : NaN);

/** readClab reads a lab from containerlab's YAML: nodes with one link are hosts, bridges and others switches. */
export function readClab(text: string, file = "lab"): LabFields {
  const top = fieldsOf(parse(text, { maxAliasCount: 1000 }));
  const topology = fieldsOf(top.topology);
  const nodes = fieldsOf(topology.nodes);
  if (Object.keys(nodes).length === 0) throw new Error("not a topology of containerlab: want topology.nodes");
  const links = listOf(topology.links).map((raw) => ({ raw, ends: Array.isArray(fieldsOf(raw).endpoints) ? endsOf(raw) : null }));
  const count = new Map<string, number>();
  for (const l of links) for (const e of l.ends ?? []) count.set(e.node, (count.get(e.node) ?? 0) + 1);
  const names = new Names();
  const of = new Map<string, { fields: Fields; host: boolean }>();
  const said = parsed(fieldsOf(topology.defaults));
  const host = (id: string) => {
    const raw = fieldsOf(nodes[id]);
    const own = parsed(raw);
    return own ? own.list === "hosts" : raw.kind !== "ovs-bridge" && raw.kind !== "bridge" && count.get(id) === 1;
  };
  const hosts = new Set(Object.keys(nodes).filter(host));
  // Of two hosts that are joined, one has to be a switch.
  for (const l of links) if (l.ends && hosts.has(l.ends[0].node) && hosts.has(l.ends[1].node)) hosts.delete(l.ends[0].node);
  for (const [id, v] of Object.entries(nodes)) {
    const raw = fieldsOf(v);
    const own = parsed(raw);
    const [x, y] = [number(fieldsOf(raw.labels)["graph-posX"]), number(fieldsOf(raw.labels)["graph-posY"])];
    const at = Number.isFinite(x + y) ? [x, y] : undefined;
    const kind = raw.kind === "bridge" ? "bridge" : /frr/.test(String(raw.image ?? "")) ? "router" : undefined;
    const fields = own ? rest(own, "list", "made") : filled({ name: names.of(id), kind: hosts.has(id) ? undefined : kind, "x-position": at });
    const clab = own?.made === true ? {} : { "x-clab": filled({ id, raw: withoutLabel(raw) }) };
    of.set(id, { fields: { ...fields, ...clab }, host: hosts.has(id) });
  }
  const out: Fields[] = [];
  const kept: unknown[] = [];
  for (const l of links) {
    const [a, b] = l.ends ?? [];
    const [na, nb] = [a && of.get(a.node), b && of.get(b.node)];
    if (!a || !b || !na || !nb || (na.host && nb.host)) {
      kept.push(l.raw);
      continue;
    }
    const own = parsed(fieldsOf(l.raw));
    if (own && "host" in own) continue; // said at the host
    const raw = { "x-clab": { raw: withoutLabel(fieldsOf(l.raw)) } };
    const h = na.host ? na : nb.host ? nb : null;
    if (h && h.fields.switch === undefined) Object.assign(h.fields, { switch: (h === na ? nb : na).fields.name, "x-clab": { ...fieldsOf(h.fields["x-clab"]), link: raw["x-clab"].raw } });
    else if (h) kept.push(l.raw);
    else out.push({ a: na.fields.name, b: nb.fields.name, ...(own ? rest(own, "made") : {}), ...(own?.made === true ? {} : raw) });
  }
  const lists = { switches: [...of.values()].filter((n) => !n.host).map((n) => n.fields), hosts: [...of.values()].filter((n) => n.host).map((n) => n.fields), links: out };
  const x = filled({ top: rest(top, "name", "topology"), topology: rest(topology, "nodes", "links", ...(said ? ["defaults"] : [])), links: kept });
  const shown = Object.entries(lists).filter(([k, v]) => v.length > 0 || listOf(said?.empty).includes(k));
  return { ...(said ? rest(said, "empty") : { name: labName(String(top.name ?? file)), ...filled({ "x-clab": x, ...(labName(String(top.name ?? file)) === top.name ? {} : { "x-clab": { ...x, name: top.name ?? null } }) }) }), ...Object.fromEntries(shown) };
}

/** writeClab writes a lab for containerlab. */
export function writeClab(lab: LabFields): string {
  const x = fieldsOf(lab["x-clab"]);
  const foreign = "x-clab" in lab || [...listOf(lab.switches), ...listOf(lab.hosts)].some((n) => "x-clab" in fieldsOf(n));
  const nodes: Record<string, Fields> = {};
  const id = new Map<string, string>();
  const ports = new Map<string, number>();
  const port = (node: string) => {
    ports.set(node, (ports.get(node) ?? 0) + 1);
    return `${node}:eth${ports.get(node)}`;
  };
  const put = (list: string, f: Fields) => {
    const from = fieldsOf(f["x-clab"]);
    const key = typeof from.id === "string" ? from.id : String(f.name);
    id.set(String(f.name), key);
    if ("id" in from) {
      nodes[key] = fieldsOf(from.raw);
      return;
    }
    const at = listOf(f["x-position"]);
    const kind = list === "hosts" ? "host" : String(f.kind ?? "openflow");
    nodes[key] = { ...(images[kind] ?? images.openflow), labels: { ...(at.length === 2 ? { "graph-posX": String(at[0]), "graph-posY": String(at[1]) } : {}), [label]: JSON.stringify({ ...f, list, made: true }) } };
  };
  listOf(lab.switches).forEach((s) => put("switches", fieldsOf(s)));
  listOf(lab.hosts).forEach((h) => put("hosts", fieldsOf(h)));
  const links: unknown[] = [];
  for (const l of listOf(lab.links).map(fieldsOf)) {
    const from = fieldsOf(l["x-clab"]);
    if ("raw" in from) links.push(from.raw);
    else links.push({ endpoints: [port(id.get(String(l.a)) ?? String(l.a)), port(id.get(String(l.b)) ?? String(l.b))], labels: { [label]: JSON.stringify({ ...rest(l, "a", "b"), made: true }) } });
  }
  for (const h of listOf(lab.hosts).map(fieldsOf)) {
    const from = fieldsOf(h["x-clab"]);
    if ("link" in from) links.push(from.link);
    else if (id.has(String(h.switch))) links.push({ endpoints: [port(id.get(String(h.switch))!), port(id.get(String(h.name))!)], labels: { [label]: '{"host":true}' } });
  }
  links.push(...listOf(x.links));
  const empty = ["switches", "hosts", "links"].filter((k) => Array.isArray(lab[k]) && (lab[k] as unknown[]).length === 0);
  const said = { ...rest(lab, "switches", "hosts", "links"), ...(empty.length > 0 ? { empty } : {}) };
  const topology: Fields = { ...fieldsOf(x.topology), ...(foreign ? {} : { defaults: { labels: { [label]: JSON.stringify(said) } } }), nodes, ...(links.length > 0 ? { links } : {}) };
  const name = "name" in x ? x.name : (lab.name ?? "lab");
  return stringify({ ...(name === null ? {} : { name }), ...fieldsOf(x.top), topology }, { lineWidth: 0 });
}
