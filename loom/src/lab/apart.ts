// Numbers and addresses of a lab that is to run beside others at the same controller.

import { isMap, isSeq, parseDocument, type YAMLMap } from "yaml";

import type { LabNode } from "../api/types.gen";

/** Numbered is what the controller knows a node by. */
export type Numbered = Pick<LabNode, "name" | "kind" | "dpid" | "mac" | "ipv4" | "ipv6">;

const address = (prefix?: string) => (prefix ?? "").split("/")[0];
const hex = (n: number, digits: number) => n.toString(16).padStart(digits, "0");

/** clashes returns the names of nodes that have a datapath id or address of others. */
export function clashes(nodes: Numbered[], others: Numbered[]): string[] {
  const used = new Set(others.flatMap((o) => [o.dpid, o.mac, address(o.ipv4), address(o.ipv6)]).filter(Boolean));
  return nodes.filter((n) => [n.dpid, n.mac, address(n.ipv4), address(n.ipv6)].some((x) => x && used.has(x))).map((n) => n.name ?? "");
}

/**
 * apart returns the text of a lab in which switches and hosts have numbers and
 * addresses that no other lab has, where the text leaves them open; nodes are those
 * of the text with everything filled in. The text is the same if nothing clashes. The
 * error of a clash that the text itself decides is thrown.
 */
export function apart(text: string, nodes: Numbered[], others: Numbered[]): string {
  if (clashes(nodes, others).length === 0) return text;
  const doc = parseDocument(text);
  const maps = (list: string): YAMLMap[] => {
    const all = doc.get(list);
    return isSeq(all) ? all.items.filter(isMap) : [];
  };
  const [switches, hosts] = [maps("switches"), maps("hosts")];
  const by = new Map(nodes.map((n) => [n.name, n]));
  if (nodes.some((n) => n.kind === "hybrid" || n.kind === "router")) {
    throw new Error(`${clashes(nodes, others).slice(0, 5).join(", ")}: a running lab at this controller has the same datapath ids or addresses; take that one down, or write others into this text`);
  }
  const wide = hosts.length > 254 ? 16 : 24;
  for (let k = 1; k < 255; k++) {
    if (k === 64) continue; // 10.64.0.0/16 is for hosts with gateways
    const dpid = (i: number) => hex(k, 12) + hex(i + 1, 4);
    const mac = (i: number) => `02:00:${hex(k, 2)}:00:${hex((i + 1) >> 8, 2)}:${hex((i + 1) & 255, 2)}`;
    const ipv4 = (i: number) => `10.${k}.${(i + 1) >> 8}.${(i + 1) & 255}/${wide}`;
    const ipv6 = (i: number) => `fd00:0:0:${k.toString(16)}::${(i + 1).toString(16)}/64`;
    const then = [...switches.map((_, i) => ({ dpid: dpid(i) })), ...hosts.map((_, i) => ({ mac: mac(i), ipv4: ipv4(i), ipv6: ipv6(i) }))];
    if (clashes(then, others).length > 0) continue;
    const changed = new Map<string, Numbered>();
    switches.forEach((s, i) => {
      const n = by.get(String(s.get("name")));
      if (!n?.dpid) return;
      if (!s.has("dpid")) s.set("dpid", quoted(doc, dpid(i)));
      changed.set(n.name!, { ...n, dpid: s.has("dpid") ? String(s.get("dpid")).replace(/^0x/, "").padStart(16, "0") : "" });
    });
    hosts.forEach((h, i) => {
      const n = by.get(String(h.get("name")));
      if (!n) return;
      for (const [key, value] of [["mac", mac(i)], ["ipv4", ipv4(i)], ["ipv6", ipv6(i)]] as const) if (!h.has(key)) h.set(key, quoted(doc, value));
      changed.set(n.name!, { ...n, mac: String(h.get("mac")), ipv4: String(h.get("ipv4")), ipv6: String(h.get("ipv6")) });
    });
    const left = clashes(nodes.map((n) => changed.get(n.name!) ?? n), others);
    if (left.length > 0) throw new Error(`${left.slice(0, 5).join(", ")}: a running lab at this controller has the same datapath ids or addresses as this text says; change them, or take that lab down`);
    return doc.toString({ lineWidth: 0 });
  }
  throw new Error("254 labs run at this controller: take one down");
}

function quoted(doc: ReturnType<typeof parseDocument>, value: string) {
  const node = doc.createNode(value);
  (node as { type?: string }).type = "QUOTE_DOUBLE";
  return node;
}
