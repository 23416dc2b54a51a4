// Reading and writing files of labs, by format.

import { fresh, json, mostNodes, read, type Lab } from "../document";
import { readClab, writeClab } from "./clab";
import { most, type LabFields } from "./common";
import { readGraphML, writeGraphML } from "./graphml";
import { readT3D, writeT3D } from "./t3d";

export interface Format {
  name: string;
  title: string;
  extension: string;
  write: (lab: Lab) => string;
}

export const formats: Format[] = [
  { name: "lab", title: "Lab file (YAML)", extension: "yaml", write: (lab) => lab.text },
  { name: "graphml", title: "GraphML", extension: "graphml", write: (lab) => writeGraphML(json(lab)) },
  { name: "t3d", title: "Topology3D (JSON)", extension: "t3d", write: (lab) => writeT3D(json(lab)) },
  { name: "clab", title: "containerlab (YAML)", extension: "clab.yaml", write: (lab) => writeClab(json(lab)) },
];

/** bounded refuses a file that is too large, before it is read. */
export function bounded(octets: number) {
  if (octets > most) throw new Error(`it has ${octets.toLocaleString("en")} octets, and at most ${most.toLocaleString("en")} are read here; weft lab up takes a larger lab`);
}

/** readFile returns the text of a lab file from a file of any of the formats; what it is not says its error. */
export function readFile(name: string, text: string): string {
  bounded(text.length);
  const base = name.replace(/^.*[\\/]/, "").replace(/(\.clab)?\.[a-z0-9]+$/i, "");
  const begin = text.slice(0, 2000).trimStart();
  let fields: LabFields;
  if (begin.startsWith("<")) fields = readGraphML(text, base);
  else if (begin.startsWith("{") && /"vertices"\s*:/.test(text)) fields = readT3D(text, base);
  else if (/^topology\s*:/m.test(text) || /"topology"\s*:/.test(begin)) fields = readClab(text, base);
  else {
    const lab = read(text);
    if (lab.broken) throw new Error(lab.problems[0]?.text ?? "it cannot be read");
    if (lab.root && !["name", "switches", "hosts", "links"].some((k) => k in json(lab))) throw new Error("it is neither a lab, with switches, hosts and links, nor GraphML, Topology3D, containerlab or a model");
    return text;
  }
  const nodes = (fields.switches?.length ?? 0) + (fields.hosts?.length ?? 0);
  if (nodes > mostNodes) throw new Error(`it has ${nodes.toLocaleString("en")} nodes: at most ${mostNodes.toLocaleString("en")} are drawn`);
  return fresh(fields);
}
