// What is copied, as the text of a lab: it can be pasted into other drafts, other
// browsers, and the text itself.

import { violations } from "./constraints";
import { add, addTo, fresh, read, unused, type Added, type Fields, type Lab } from "./document";
import { Types } from "./models";

/** identity are the keys that no two nodes have alike. */
const identity = ["dpid", "loopback", "loopback6", "mac", "ipv4", "ipv6", "gateway4", "gateway6", "port", "eth1"];

/** copied returns the text of some nodes, what joins them alone, and notes; empty if there are none. */
export function copied(lab: Lab, ids: Set<string>): string {
  const nodes = lab.nodes.filter((n) => ids.has(n.id));
  const names = new Set(nodes.map((n) => n.name));
  const of = (list: string) => nodes.filter((n) => n.list === list).map((n) => n.fields);
  const parts: Record<string, Fields[]> = {
    switches: of("switches"),
    hosts: of("hosts"),
    links: lab.links.filter((l) => l.of === "link" && names.has(l.a) && names.has(l.b)).map((l) => l.fields),
    "x-services": lab.services.filter((s) => s.ends.length > 0 && s.ends.every((e) => names.has(e))).map((s) => s.fields),
    "x-groups": lab.groups.filter((g) => g.nodes.length > 0 && g.nodes.every((n) => names.has(n))).map((g) => ({ name: g.name, colour: g.colour, nodes: g.nodes })),
    "x-notes": lab.notes.filter((n) => ids.has(n.id)).map((n) => ({ text: n.text, "x-position": n.at })),
  };
  return nodes.length + parts["x-notes"].length > 0 ? fresh(Object.fromEntries(Object.entries(parts).filter(([, all]) => all.length > 0))) : "";
}

/** Pasted is a text with what was copied, and the ids of that. */
export interface Pasted {
  text: string;
  ids: Set<string>;
}

/** paste returns the text of a lab with what was copied, by names that are not taken, some way off; it throws why it cannot. */
export function paste(lab: Lab, types: Types, clip: string, off: number): Pasted {
  const from = read(clip);
  if (from.broken || from.nodes.length + from.notes.length === 0) throw new Error("what is in the clipboard is no part of a lab");
  const taken = new Set(lab.nodes.map((n) => n.name));
  const here = new Set(taken);
  const to = new Map<string, string>();
  for (const n of from.nodes) {
    const name = unused(taken, n.name.replace(/[0-9]+$/, ""));
    taken.add(name);
    to.set(n.name, name);
  }
  const moved = (at: [number, number] | undefined) => [(at?.[0] ?? 0) + off, (at?.[1] ?? 0) + off];
  const more: Required<Added> = { switches: [], hosts: [], links: [] };
  for (const n of from.nodes) {
    const fields: Fields = { ...n.fields, name: to.get(n.name), "x-position": moved(n.at) };
    for (const key of identity) delete fields[key];
    // A host stays at its switch, or at the copy of it; in a lab without that it is at none.
    const at = String(fields.switch ?? "");
    if (to.has(at)) fields.switch = to.get(at);
    else if (at && !here.has(at)) delete fields.switch;
    more[n.list].push(fields);
  }
  for (const l of from.links.filter((l) => l.of === "link" && to.has(l.a) && to.has(l.b))) {
    const fields: Fields = { ...l.fields, a: to.get(l.a), b: to.get(l.b) };
    delete fields.a_port;
    delete fields.b_port;
    more.links.push(fields);
  }
  let text = add(lab, more);
  const others: Array<[string, Fields[]]> = [
    ["x-services", from.services.map((s) => ({ ...s.fields, ends: s.ends.map((e) => to.get(e) ?? e) }))],
    ["x-groups", from.groups.map((g) => ({ name: g.name, colour: g.colour, nodes: g.nodes.map((n) => to.get(n) ?? n) }))],
    ["x-notes", from.notes.map((n) => ({ text: n.text, "x-position": moved(n.at) }))],
  ];
  const named = new Set([...lab.services, ...lab.groups].map((x) => x.name));
  for (const [list, items] of others) {
    if (items.length === 0) continue;
    for (const i of list === "x-notes" ? [] : items) {
      if (named.has(String(i.name))) i.name = unused(named, String(i.name).replace(/[0-9]+$/, ""));
      named.add(String(i.name));
    }
    text = addTo(read(text), list, items);
  }
  const then = read(text);
  const ids = new Set([...to.values(), ...then.notes.slice(lab.notes.length).map((n) => n.id)]);
  const concerned = new Set([...ids, ...then.links.filter((l) => ids.has(l.a) || ids.has(l.b)).map((l) => l.id)]);
  const wrong = violations(then, new Types(types.model, then)).find((v) => !v.lacks && v.of !== undefined && concerned.has(v.of));
  if (wrong) throw new Error(`not pasted: ${wrong.text}`);
  return { text, ids };
}
