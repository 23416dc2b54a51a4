// The last ten minutes of the network: rates that the page has read, and states that events tell.

import { cableKey, place, type Known } from "../api/known";
import type { Happening } from "../api/happenings";
import type { PortStats } from "../api/types.gen";

/** span is how far back the time line goes, in milliseconds. */
export const span = 600_000;

const stale = 6000; // milliseconds after which rates tell nothing of a moment any more

/** Reading are the rates of ports at a time: what each sends and gets, bits per second, by place. */
export interface Reading {
  at: number; // milliseconds since 1970
  traffic: number; // what hosts and other networks send, bits per second
  bits: Map<string, [number, number]>;
}

/** Replayed is the network as it was at a moment. */
export interface Replayed {
  gone: Set<string>; // cables that were down
  away: Set<string>; // switches that were not connected
  bits: Map<string, [number, number]>; // none if no rates were read then
}

/** Readings keeps the rates of ten minutes. */
export class Readings {
  list: Reading[] = [];

  /** take notes rates as they are now; idle ports are left out. */
  take(ports: PortStats[], traffic: number, now = Date.now()) {
    const bits = new Map<string, [number, number]>();
    for (const p of ports) {
      const [tx, rx] = [p.tx_bits_per_s ?? 0, p.rx_bits_per_s ?? 0];
      if (tx > 0 || rx > 0) bits.set(place(p), [tx, rx]);
    }
    this.list = [...this.list.filter((r) => r.at > now - span), { at: now, traffic, bits }];
  }

  /** at returns the rates of a moment, if they were read shortly before it. */
  at(t: number): Reading | undefined {
    const r = this.list.findLast((r) => r.at <= t);
    return r && t - r.at <= stale ? r : undefined;
  }
}

/** stateAt returns what was up at a moment: for each link and switch as the last event before it says, else the contrary of
 * what the first one after it says, else as it is now. */
export function stateAt(k: Known, line: readonly Happening[], t: number): Pick<Replayed, "gone" | "away"> {
  const links = new Map<string, boolean>(); // up
  const switches = new Map<string, boolean>();
  for (const h of line) {
    const link = h.subject === "discovery.LinkChanged";
    if (!link && h.subject !== "southbound.SwitchChanged") continue;
    const [map, id, up] = link ? [links, h.about.link, h.change !== "down"] : [switches, h.dpid, h.change === "connected"];
    if (h.at <= t) map.set(id, up);
    else if (!map.has(id)) map.set(id, !up);
  }
  const now = new Set([...k.links.values()].map(cableKey));
  for (const g of k.gone.values()) if (!links.has(cableKey(g.link)) && !now.has(cableKey(g.link))) links.set(cableKey(g.link), false);
  for (const s of k.switches.values()) if (!switches.has(s.dpid!)) switches.set(s.dpid!, s.connected ?? false);
  const down = (of: Map<string, boolean>) => new Set([...of].filter(([, up]) => !up).map(([id]) => id));
  return { gone: down(links), away: down(switches) };
}

/** readings are those of this page. */
export const readings = new Readings();
