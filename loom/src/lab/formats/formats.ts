// Reading and writing files of labs, by format.

import { fresh, json, read, type Lab } from "../document";
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

/** readFile returns the text of a lab file from a file of any of the formats; what it is not says its error. */
export function readFile(name: string, text: string): string {
  if (text.length > most) throw new Error(`the file has ${text.length.toLocaleString("en")} characters: at most ${most.toLocaleString("en")} are read`);
  const base = name.replace(/^.*[\\/]/, "").replace(/(\.clab)?\.[a-z0-9]+$/i, "");
  const begin = text.slice(0, 2000).trimStart();
  let fields: LabFields;
  if (begin.startsWith("<")) fields = readGraphML(text, base);
  else if (begin.startsWith("{") && /"vertices"\s*:/.test(text)) fields = readT3D(text, base);
  else if (/^topology\s*:/m.test(text) || /"topology"\s*:/.test(begin)) fields = readClab(text, base);
  else {
    const lab = read(text);
    if (lab.broken) throw new Error(lab.problems[0]?.text ?? "it cannot be read");
    return text;
  }
  return fresh(fields);
}
