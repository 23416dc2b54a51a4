// What may be drawn, and why something may not; and what of a text would not have been drawn.

import type { Lab, Link, Node, Problem, Service } from "./document";
import { fits, type LinkType, type NodeType, type Types } from "./models";

const because = (why: string | undefined) => (why ? `: ${why}` : "");

/** mayAdd returns why a further node of a type may not be; empty if it may. */
export function mayAdd(lab: Lab, types: Types, type: NodeType, further = 1): string {
  if (type.most === undefined) return "";
  const there = lab.nodes.filter((n) => types.of(n) === type).length;
  return there + further > type.most ? `a lab has at most ${type.most} of the type ${type.title}${because(type.why)}` : "";
}

/** degrees counts the links of each node, by name. */
function degrees(lab: Lab): Map<string, number> {
  const of = new Map<string, number>();
  for (const l of lab.links) if (l.a !== "") for (const end of [l.a, l.b]) of.set(end, (of.get(end) ?? 0) + 1);
  return of;
}

/** mayConnect returns why two nodes may not be joined, by a link of a type if one is said; empty if they may. */
export function mayConnect(lab: Lab, types: Types, a: Node, b: Node, as?: LinkType): string {
  if (a.id === b.id) return `${a.name} cannot be joined to itself: choose another node`;
  const pair = types.pair(a, b);
  if (a.kind === "host" && b.kind === "host") {
    return types.model.refusals.find((r) => pair && fits(r.between, ...pair))?.why ?? "hosts are joined by switches: connect each of them to one";
  }
  const host = a.kind === "host" ? a : b.kind === "host" ? b : null;
  if (host) {
    const at = lab.links.find((l) => l.of === "host" && l.index === host.index)?.a;
    if (at) return `host ${host.name} is attached to ${at} already: delete that link first`;
  }
  if (pair) {
    const why = refused(types, a, b, as);
    if (why) return why;
    const type = as ?? types.between(a, b)[0];
    if (type?.parallel === false && lab.links.some((l) => (l.a === a.name && l.b === b.name) || (l.a === b.name && l.b === a.name))) return `${a.name} and ${b.name} are joined already: a ${type.title} joins two nodes once`;
    const degree = degrees(lab);
    for (const n of [a, b]) {
      const most = types.of(n)?.degree?.most;
      if (most !== undefined && (degree.get(n.name) ?? 0) >= most) return `${title(types, n)} has ${most} ${most === 1 ? "link" : "links"}, and may have no more${because(types.of(n)?.degree?.why)}`;
    }
  }
  const routes = (n: Node) => n.kind === "hybrid" || n.kind === "router";
  if ((routes(a) && b.kind === "openflow") || (routes(b) && a.kind === "openflow")) return `${a.name} and ${b.name}: a node that routes has no neighbour behind an OpenFlow switch`;
  if (a.kind === "bridge" && b.kind === "bridge" && joined(lab, a.name, b.name)) return `${a.name} and ${b.name} are joined by bridges already: frames would go round for ever`;
  if (a.kind === "router" && b.kind === "host" && b.fields.gateway !== true) return `${b.name} needs gateway: true: a router passes on nothing but IP`;
  if (b.kind === "router" && a.kind === "host" && a.fields.gateway !== true) return `${a.name} needs gateway: true: a router passes on nothing but IP`;
  return "";
}

/** refused returns why the model has no link between two nodes, or none of a type; empty if it has. */
function refused(types: Types, a: Node, b: Node, as?: LinkType): string {
  const pair = types.pair(a, b)!;
  const { model } = types;
  const specific = model.refusals.find((r) => !r.between.includes("*") && fits(r.between, ...pair));
  if (specific) return specific.why;
  const all = types.between(a, b);
  if (all.length === 0) return model.refusals.find((r) => fits(r.between, ...pair))?.why ?? `${title(types, a)} and ${title(types, b)} are not joined in the model ${model.title}`;
  if (as && !all.includes(as)) return `a ${as.title} does not join ${title(types, a)} and ${title(types, b)}; allowed: ${all.map((t) => t.title).join(", ")}`;
  return "";
}

function title(types: Types, n: Node): string {
  return `${n.name} (${types.of(n)?.title ?? n.kind})`;
}

/** joined reports whether bridges alone lead from one to another. */
function joined(lab: Lab, from: string, to: string): boolean {
  const bridges = new Set(lab.nodes.filter((n) => n.kind === "bridge").map((n) => n.name));
  const seen = new Set([from]);
  const next = [from];
  for (let at = next.pop(); at !== undefined; at = next.pop()) {
    if (at === to) return true;
    for (const l of lab.links) {
      if (l.of !== "link") continue;
      const other = l.a === at ? l.b : l.b === at ? l.a : "";
      if (!bridges.has(other) || seen.has(other)) continue;
      seen.add(other);
      next.push(other);
    }
  }
  return false;
}

/** mayServe returns why a service may not be; empty if it may. */
export function mayServe(lab: Lab, types: Types, service: Pick<Service, "name" | "type" | "ends">): string {
  return ends(lab, types, service) || (lab.services.some((s) => s.name === service.name) ? `there is a service ${service.name} already` : "");
}

/** ends returns what is wrong with the ends of a service; empty if nothing is. */
function ends(lab: Lab, types: Types, service: Pick<Service, "type" | "ends">): string {
  const of = types.model.services.find((s) => s.type === service.type);
  if (!of) return `the model ${types.model.title} has no services of the type ${service.type}`;
  if (service.ends.length < of.least || service.ends.length > of.most || new Set(service.ends).size !== service.ends.length) return of.why;
  for (const name of service.ends) {
    const node = lab.nodes.find((n) => n.name === name);
    if (!node) return `${name} is no node`;
    const type = types.of(node)?.type ?? "";
    if (!of.ends.includes(type)) return `${title(types, node)} is not an end of a ${of.title}: ${of.why}`;
  }
  return "";
}

const most = 100; // violations that are listed

/** violations returns what in a lab its model would have refused to draw, or what it lacks still. */
export function violations(lab: Lab, types: Types): Problem[] {
  const out: Problem[] = [];
  const { model } = types;
  for (const n of lab.nodes) {
    if (!types.of(n)) out.push({ line: n.line, text: `${n.name} is of the kind ${n.kind}, which the model ${model.title} does not have`, of: n.id });
    if (out.length >= most) return out;
  }
  const there = new Map<NodeType, Node[]>();
  for (const n of lab.nodes) {
    const t = types.of(n);
    if (t && !there.get(t)?.push(n)) there.set(t, [n]);
  }
  for (const t of lab.nodes.length > 0 ? model.nodes : []) {
    const all = there.get(t) ?? [];
    if (t.most !== undefined && all.length > t.most) out.push({ line: all[t.most].line, text: `a lab has at most ${t.most} of the type ${t.title}, and this has ${all.length}${because(t.why)}`, of: all[t.most].id });
    if (t.least !== undefined && all.length < t.least) out.push({ line: 0, text: `a lab of the model ${model.title} has ${t.least === 1 ? "at least one" : `at least ${t.least}`} of the type ${t.title}${because(t.why)}`, lacks: true });
  }
  out.push(...links(lab, types), ...nodes(lab, types, degrees(lab)));
  const names = new Set<string>();
  for (const s of lab.services) {
    const why = names.has(s.name) ? `there is a service ${s.name} already` : ends(lab, types, s);
    names.add(s.name);
    if (why) out.push({ line: s.line, text: `the service ${s.name}: ${why}`, of: `service/${s.name}` });
  }
  return out.slice(0, most);
}

function links(lab: Lab, types: Types): Problem[] {
  const out: Problem[] = [];
  const byName = new Map(lab.nodes.map((n) => [n.name, n]));
  const seen = new Set<string>();
  const problem = (l: Link, text: string) => out.push({ line: l.line, text: `the link ${l.a} to ${l.b} ${text}`, of: l.id });
  for (const l of lab.links) {
    const [a, b] = [byName.get(l.a), byName.get(l.b)];
    if (out.length >= most) break;
    if (types.model.links.length === 0 || !a || !b || !types.pair(a, b)) continue;
    const said = l.fields["x-link"];
    const as = types.model.links.find((t) => t.type === said);
    if (said !== undefined && !as) problem(l, `is of the type ${String(said).slice(0, 40)}; allowed: ${types.between(a, b).map((t) => t.type).join(", ")}`);
    const why = refused(types, a, b, as);
    if (why) {
      problem(l, `is not of the model ${types.model.title}: ${why}`);
      continue;
    }
    const key = [l.a, l.b].sort().join("\n");
    if (seen.has(key) && types.link(l)?.parallel === false) problem(l, `is a second one: a ${types.link(l)!.title} joins two nodes once`);
    seen.add(key);
  }
  return out;
}

function nodes(lab: Lab, types: Types, degree: Map<string, number>): Problem[] {
  const out: Problem[] = [];
  for (const n of lab.nodes) {
    const count = types.of(n)?.degree;
    const has = degree.get(n.name) ?? 0;
    if (!count || out.length >= most) continue;
    if (count.most !== undefined && has > count.most) out.push({ line: n.line, text: `${title(types, n)} has ${has} links: at most ${count.most}${because(count.why)}`, of: n.id });
    if (count.least !== undefined && has < count.least) out.push({ line: n.line, text: `${title(types, n)} has ${has === 0 ? "no link" : has === 1 ? "one link" : `${has} links`}: at least ${count.least}${because(count.why)}`, of: n.id, lacks: true });
  }
  return out;
}
