// What may be drawn, and why something may not.

import type { Lab, Node, Service } from "./document";
import type { Model, NodeType, Types } from "./models";

function fits(pair: [string, string], a: string, b: string): boolean {
  const is = (want: string, type: string) => want === "*" || want === type;
  return (is(pair[0], a) && is(pair[1], b)) || (is(pair[0], b) && is(pair[1], a));
}

/** mayAdd returns why a further node of a type may not be; empty if it may. */
export function mayAdd(lab: Lab, types: Types, type: NodeType, further = 1): string {
  if (type.most === undefined) return "";
  const there = lab.nodes.filter((n) => types.of(n) === type).length;
  return there + further > type.most ? `a lab has at most ${type.most} of the type ${type.title}` : "";
}

/** mayConnect returns why two nodes may not be joined; empty if they may. */
export function mayConnect(lab: Lab, types: Types, a: Node, b: Node): string {
  if (a.id === b.id) return `${a.name} cannot be joined to itself: choose another node`;
  if (a.kind === "host" && b.kind === "host") {
    const pair = pairOf(types, a, b);
    return types.model.refusals.find((r) => pair && fits(r.between, ...pair))?.why ?? "hosts are joined by switches: connect each of them to one";
  }
  const host = a.kind === "host" ? a : b.kind === "host" ? b : null;
  if (host) {
    const at = lab.links.find((l) => l.of === "host" && l.index === host.index)?.a;
    if (at) return `host ${host.name} is attached to ${at} already: delete that link first`;
  }
  const pair = pairOf(types, a, b);
  if (pair) {
    const { model } = types;
    const specific = model.refusals.find((r) => !r.between.includes("*") && fits(r.between, ...pair));
    if (specific) return specific.why ?? "";
    if (!model.links.some((l) => fits(l.between, ...pair))) {
      return model.refusals.find((r) => fits(r.between, ...pair))?.why ?? `${title(types, a)} and ${title(types, b)} are not joined in the model ${model.title}`;
    }
  }
  const routes = (n: Node) => n.kind === "hybrid" || n.kind === "router";
  if ((routes(a) && b.kind === "openflow") || (routes(b) && a.kind === "openflow")) return `${a.name} and ${b.name}: a node that routes has no neighbour behind an OpenFlow switch`;
  if (a.kind === "bridge" && b.kind === "bridge" && joined(lab, a.name, b.name)) return `${a.name} and ${b.name} are joined by bridges already: frames would go round for ever`;
  if (a.kind === "router" && b.kind === "host" && b.fields.gateway !== true) return `${b.name} needs gateway: true: a router passes on nothing but IP`;
  if (b.kind === "router" && a.kind === "host" && a.fields.gateway !== true) return `${a.name} needs gateway: true: a router passes on nothing but IP`;
  return "";
}

function pairOf(types: Types, a: Node, b: Node): [string, string] | null {
  const [ta, tb] = [types.of(a), types.of(b)];
  return ta && tb ? [ta.type, tb.type] : null;
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
  const of = types.model.services.find((s) => s.type === service.type);
  if (!of) return `the model ${types.model.title} has no services of the type ${service.type}`;
  if (service.ends.length < of.least || service.ends.length > of.most || new Set(service.ends).size !== service.ends.length) return of.why;
  for (const name of service.ends) {
    const node = lab.nodes.find((n) => n.name === name);
    if (!node) return `${name} is no node`;
    const type = types.of(node)?.type ?? "";
    if (!of.ends.includes(type)) return `${title(types, node)} is not an end of a ${of.title}: ${of.why}`;
  }
  return lab.services.some((s) => s.name === service.name) ? `there is a service ${service.name} already` : "";
}

/** violations returns what in a lab its model would have refused to draw. */
export function violations(lab: Lab, types: Types): Array<{ line: number; text: string; of: string }> {
  const out: Array<{ line: number; text: string; of: string }> = [];
  const byName = new Map(lab.nodes.map((n) => [n.name, n]));
  for (const l of lab.links) {
    const [a, b] = [byName.get(l.a), byName.get(l.b)];
    const pair = a && b && pairOf(types, a, b);
    if (!pair || types.model.links.length === 0) continue;
    const refused = types.model.refusals.find((r) => !r.between.includes("*") && fits(r.between, ...pair));
    if (refused || !types.model.links.some((p) => fits(p.between, ...pair))) {
      const why = refused?.why ?? types.model.refusals.find((r) => fits(r.between, ...pair))?.why;
      out.push({ line: l.line, text: `the link ${l.a} to ${l.b} is not of the model ${types.model.title}${why ? ": " + why : ""}`, of: l.id });
    }
    if (out.length >= 50) break;
  }
  return out;
}

export type { Model };
