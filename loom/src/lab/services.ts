// The services drawn between customer edges, as circuits of the controller.

import type { Lab, Service } from "./document";
import type { Circuit, LabDetails } from "../api/types.gen";

/** Wish is what is asked of a circuit. */
export interface Wish {
  name: string;
  type: string;
  payload: string;
  ends: string[];
  rate_kbps: number;
  protect: boolean;
}

/** kinds are the services, as types of circuits: a VLL carries IP, a pseudowire every frame. */
const kinds: Record<string, [type: string, payload: string]> = { vll: ["vpws", "ip"], pw: ["vpws", "ethernet"], vss: ["vpls", "ethernet"] };

/** circuitName is that of a service's circuit: whatever begins so is this lab's, and all else others'. */
export const circuitName = (lab: string, service: string) => `loom.${lab}.${service}`;

/** ofLab returns the name of the service that a circuit of a lab is of; empty if it is not this lab's. */
export function ofLab(lab: string, circuit: string): string {
  const begin = circuitName(lab, "");
  return lab !== "" && circuit.startsWith(begin) ? circuit.slice(begin.length) : "";
}

/** kbps reads a rate such as 20mbit; NaN if it is none. */
export function kbps(rate: unknown): number {
  if (rate === undefined || rate === null || rate === "") return 0;
  const m = /^([0-9]+(?:\.[0-9]+)?)([kmg])bit$/.exec(String(rate).trim());
  return m ? Math.round(Number(m[1]) * { k: 1, m: 1e3, g: 1e6 }[m[2] as "k" | "m" | "g"]) : NaN;
}

/** wish returns what is asked for a service of a running lab, or throws why it cannot be. */
export function wish(lab: Lab, running: LabDetails, service: Service): Wish {
  const kind = kinds[service.type];
  if (!kind) throw new Error(`type ${service.type || "?"}: the controller has circuits for ${Object.keys(kinds).join(", ")}`);
  const name = circuitName(lab.name, service.name);
  if (!/^[A-Za-z0-9_.-]+$/.test(service.name) || name.length > 63) throw new Error(`the circuit would be called ${name.slice(0, 80)}: a service's name has letters, digits, '-', '_' and '.', and with the lab's at most 57 characters`);
  const rate = kbps(service.fields.rate);
  if (Number.isNaN(rate)) throw new Error(`rate ${String(service.fields.rate).slice(0, 40)}: want one such as 20mbit`);
  const nodes = new Map((running.graph?.nodes ?? []).map((n) => [n.name, n]));
  const ends = service.ends.map((host) => {
    const link = (running.graph?.links ?? []).find((l) => l.b === host && l.b_interface && l.b_interface !== "eth1");
    const dpid = nodes.get(link?.a)?.dpid;
    if (!link || !dpid) throw new Error(`${host} is at no switch of the running lab: apply the difference first`);
    const vlan = nodes.get(host)?.vlan;
    return `${dpid}:${link.a_port}${vlan ? `.${vlan}` : ""}`;
  });
  return { name, type: kind[0], payload: kind[1], ends, rate_kbps: rate, protect: service.fields.protect === true };
}

/** same reports whether a circuit is as wished. */
export function same(w: Wish, c: Circuit): boolean {
  return w.type === (c.type || "vpws") && w.payload === (c.payload || "ethernet") && w.rate_kbps === Number(c.rate_kbps ?? 0) && w.protect === !!c.protect && w.ends.join() === (c.ends ?? []).join();
}

/** Row is a service as it is drawn and as it is in the controller. */
export interface Row {
  name: string;
  type: string;
  ends: string;
  /** state is not set, differs, asked, up, degraded, down, failed, or to be deleted. */
  state: string;
  why: string;
  path: string;
  circuit: string;
  packets: string;
  wish?: Wish;
  there?: Circuit;
}

/** rows compares what is drawn with what the controller has; refused says why it took a circuit not. */
export function rows(lab: Lab, running: LabDetails | null, circuits: Circuit[], refused: Map<string, string>): Row[] {
  const there = new Map(circuits.map((c) => [c.name ?? "", c]));
  const names = new Map((running?.graph?.nodes ?? []).map((n) => [n.dpid ?? "", n.name ?? ""]));
  const out: Row[] = lab.services.map((s) => {
    const row: Row = { name: s.name, type: s.type, ends: s.ends.join(", "), state: "not set", why: "", path: "", circuit: circuitName(lab.name, s.name), packets: "" };
    if (!running) return { ...row, state: "drawn", why: "the lab is not deployed" };
    row.there = there.get(row.circuit);
    try {
      row.wish = wish(lab, running, s);
    } catch (err) {
      return { ...row, state: "failed", why: (err as Error).message };
    }
    const c = row.there;
    const why = refused.get(row.circuit);
    if (why) [row.state, row.why] = ["failed", why];
    else if (c) [row.state, row.why] = same(row.wish, c) ? [c.state === "requested" ? "asked" : (c.state ?? ""), c.reason ?? ""] : ["differs", "what is drawn has changed since it was set"];
    if (c) [row.path, row.packets] = [(c.path ?? []).map((d) => names.get(d) ?? d).join(" → "), `${c.rx_packets ?? 0} in, ${c.tx_packets ?? 0} out`];
    return row;
  });
  const drawn = new Set(lab.services.map((s) => s.name));
  for (const c of circuits) {
    const name = ofLab(lab.name, c.name ?? "");
    if (name && !drawn.has(name)) out.push({ name, type: c.type ?? "", ends: (c.ends ?? []).join(", "), state: "to be deleted", why: "it is not drawn any more", path: "", circuit: c.name ?? "", packets: "", there: c });
  }
  return out;
}
