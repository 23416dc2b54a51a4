// Models of networks, read from files: types of nodes and links, what may be joined, how
// many there are, views and defaults.

import core5g from "../../models/5gc.yaml?raw";
import fattree from "../../models/fattree.yaml?raw";
import openflow from "../../models/openflow.yaml?raw";
import oshi from "../../models/oshi.yaml?raw";
import type { Fields, Lab, Node } from "./document";
import { readModel } from "./modelfile";

/** Count is how many there are of something: at least, at most, and why. */
export interface Count {
  least?: number;
  most?: number;
  why?: string;
}

/** NodeType is a type of node of a model; its count is of a lab. */
export interface NodeType extends Count {
  type: string;
  title: string;
  list: "switches" | "hosts";
  kind: string;
  /** prefix is how names of new ones begin. */
  prefix: string;
  shape: string;
  colour: string;
  /** set is what new ones have in the file. */
  set?: Fields;
  /** hosts says that one without x-type is of this type if hosts are attached to it. */
  hosts?: boolean;
  /** named is how names look of those without x-type. */
  named?: string;
  /** degree is how many links a node has. */
  degree?: Count;
}

/** LinkType is a type of link: what it joins, how it looks, and what a new one has. */
export interface LinkType {
  type: string;
  title: string;
  between: Array<[string, string]>;
  /** set is what new ones have in the file, at the host if they attach one. */
  set?: Fields;
  /** parallel says whether two nodes may have several; they may unless it is false. */
  parallel?: boolean;
  width?: number;
  line?: "solid" | "dashed" | "dotted";
  colour?: string;
}

export interface Refusal {
  between: [string, string];
  why: string;
}

export interface ServiceType {
  type: string;
  title: string;
  ends: string[];
  least: number;
  most: number;
  why: string;
}

export interface View {
  name: string;
  title: string;
  types?: string[];
  /** links are the types of those that are shown; all without. */
  links?: string[];
  service?: string;
  controllers?: boolean;
}

export interface Model {
  name: string;
  title: string;
  nodes: NodeType[];
  links: LinkType[];
  refusals: Refusal[];
  services: ServiceType[];
  views: View[];
  defaults: { lab: Fields; generator: string };
  /** text is its file. */
  text: string;
}

/** models are those that Loom has. */
export const models: Model[] = [openflow, oshi, core5g, fattree].map(readModel);

/** guessed returns the first model that has a lab's kinds of nodes. */
export function guessed(lab: Lab): Model {
  const kinds = new Set(lab.nodes.map((n) => n.kind));
  return models.find((m) => [...kinds].every((k) => m.nodes.some((t) => t.kind === k))) ?? models[0];
}

/** fits reports whether a pair of types is one that a model names; * is any. */
export function fits(pair: [string, string], a: string, b: string): boolean {
  const is = (want: string, type: string) => want === "*" || want === type;
  return (is(pair[0], a) && is(pair[1], b)) || (is(pair[0], b) && is(pair[1], a));
}

/** Types tells the types of a lab's nodes and links. */
export class Types {
  private readonly withHosts: Set<string>;
  private readonly byName: Map<string, Node>;
  private readonly found = new Map<Node, NodeType | undefined>();

  constructor(
    readonly model: Model,
    lab: Lab,
  ) {
    this.withHosts = new Set(lab.links.filter((l) => l.of !== "link").map((l) => l.a));
    this.byName = new Map(lab.nodes.filter((n) => n.id === n.name).map((n) => [n.name, n]));
  }

  /** of returns the type of a node; undefined if the model has none. */
  of(node: Node): NodeType | undefined {
    if (!this.found.has(node)) this.found.set(node, this.find(node));
    return this.found.get(node);
  }

  private find(node: Node): NodeType | undefined {
    const of = this.model.nodes.filter((t) => t.kind === node.kind);
    const said = of.find((t) => t.set?.["x-type"] !== undefined && t.set["x-type"] === node.fields["x-type"]);
    if (said || of.length < 2) return said ?? of[0];
    return (
      of.find((t) => t.named && new RegExp(t.named).test(node.name)) ??
      of.find((t) => t.list === "hosts" && (t.set?.gateway ?? false) === (node.fields.gateway ?? false)) ??
      of.find((t) => t.list === "switches" && !t.named && !!t.hosts === this.withHosts.has(node.name)) ??
      of.at(-1)
    );
  }

  /** pair returns the types of two nodes; null if the model does not know them. */
  pair(a: Node | undefined, b: Node | undefined): [string, string] | null {
    const [ta, tb] = [a && this.of(a), b && this.of(b)];
    return ta && tb ? [ta.type, tb.type] : null;
  }

  /** between returns the types of links that may join two nodes, the usual one first. */
  between(a: Node | undefined, b: Node | undefined): LinkType[] {
    const pair = this.pair(a, b);
    return pair ? this.model.links.filter((t) => t.between.some((p) => fits(p, ...pair))) : [];
  }

  /** link returns the type of a link: the one that it names as x-link, else the usual one. */
  link(l: { a: string; b: string; fields: Fields }): LinkType | undefined {
    const said = this.model.links.find((t) => t.type === l.fields["x-link"]);
    return said ?? this.between(this.byName.get(l.a), this.byName.get(l.b))[0];
  }
}
