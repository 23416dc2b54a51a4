// The resource file of a distributed testbed: machines, and which nodes stand on
// them by hand.

import { parseDocument, type YAMLMap } from "yaml";

import { apply, deleteKey, find, isMap, isSeq, setKey, textOf, type Splice } from "./yamltext";

/** mostOctets is the longest resource file that the lab service takes. */
export const mostOctets = 64 << 10;

export const example = `machines:
  - {name: m1, ssh: root@192.0.2.1}
  - {name: m2, ssh: root@192.0.2.2}
controller: tcp:192.0.2.9:6653
`;

function machinesOf(text: string): YAMLMap[] {
  const doc = parseDocument(text, { keepSourceTokens: true, prettyErrors: false, logLevel: "silent" });
  const list = doc.errors.length === 0 && isMap(doc.contents) ? find(doc.contents, "machines")?.value : null;
  return isSeq(list) ? list.items.filter((m) => isMap(m)) : [];
}

/** names returns the machines that a resource file has. */
export const names = (text: string): string[] => machinesOf(text).map((m) => textOf(find(m, "name")?.value)).filter(Boolean);

/** controllerOf returns where a resource file says that machines reach the controller; empty if it does not. */
export function controllerOf(text: string): string {
  const doc = parseDocument(text, { keepSourceTokens: true, prettyErrors: false, logLevel: "silent" });
  return doc.errors.length === 0 && isMap(doc.contents) ? textOf(find(doc.contents, "controller")?.value) : "";
}

/** place returns the text with a node on a machine, and on no other; "" leaves it to the mapping. */
export function place(text: string, node: string, machine: string): string {
  const splices: Splice[] = [];
  for (const m of machinesOf(text)) {
    const list = find(m, "nodes")?.value;
    const had = isSeq(list) ? list.items.map(textOf) : [];
    const has = had.filter((n) => n !== node);
    if (textOf(find(m, "name")?.value) === machine) has.push(node);
    if (has.join("\n") === had.join("\n")) continue;
    if (has.length > 0) splices.push(...setKey(text, m, "nodes", has));
    else splices.push(...deleteKey(text, m, "nodes"));
  }
  return apply(text, splices);
}
