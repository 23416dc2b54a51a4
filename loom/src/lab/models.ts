// Models of networks, read from files: types of nodes, what may be joined, views and defaults.

import { parse } from "yaml";

import core5g from "../../models/5gc.yaml?raw";
import fattree from "../../models/fattree.yaml?raw";
import openflow from "../../models/openflow.yaml?raw";
import oshi from "../../models/oshi.yaml?raw";
import type { Fields, Lab, Node } from "./document";

/** NodeType is a type of node of a model. */
export interface NodeType {
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
  /** most is how many a lab has at most. */
  most?: number;
}

export interface Pair {
  between: [string, string];
  why?: string;
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
  service?: string;
  controllers?: boolean;
}

export interface Model {
  name: string;
  title: string;
  nodes: NodeType[];
  links: Pair[];
  refusals: Pair[];
  services: ServiceType[];
  views: View[];
  defaults: { lab: Fields; generator: string };
}

/** readModel reads the file of a model. */
export function readModel(text: string): Model {
  const m = parse(text) as Partial<Model>;
  if (!m.name || !m.nodes?.length || !m.views?.length) throw new Error("a model has name, nodes and views");
  return { title: m.name, links: [], refusals: [], services: [], defaults: { lab: {}, generator: "ring" }, ...m } as Model;
}

/** models are those that Loom knows. */
export const models: Model[] = [openflow, oshi, core5g, fattree].map(readModel);

export function modelNamed(name: string): Model {
  return models.find((m) => m.name === name) ?? models[0];
}

/** modelOf returns the model of a lab: the one that it names, else the first that has its kinds of nodes. */
export function modelOf(lab: Lab, named: string): Model {
  if (named) return modelNamed(named);
  const kinds = new Set(lab.nodes.map((n) => n.kind));
  return models.find((m) => [...kinds].every((k) => m.nodes.some((t) => t.kind === k))) ?? models[0];
}

/** Types tells the types of a lab's nodes. */
export class Types {
  private readonly withHosts: Set<string>;

  constructor(
    readonly model: Model,
    lab: Lab,
  ) {
    this.withHosts = new Set(lab.links.filter((l) => l.of !== "link").map((l) => l.a));
  }

  /** of returns the type of a node; undefined if the model has none. */
  of(node: Node): NodeType | undefined {
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
}
