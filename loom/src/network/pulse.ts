// Figures of the whole network, from what the controller measures.

import { linkKey, place, type Known } from "../api/known";
import type { Link, Switch } from "../api/types.gen";
import type { Rates } from "./figures";

/** Busy is a direction of a link, what it carries, and of how much. */
export interface Busy {
  link: Link;
  bits: number; // a second
  share: number; // of what it can carry; NaN if that is not known
}

const outward = new Set(["edge", "access"]); // roles of ports where hosts and other networks are

/** offered returns what comes in from hosts and other networks, bits per second; NaN if no rate is known. */
export function offered(known: Known, rates: Rates): number {
  if (rates.size === 0) return NaN;
  let bits = 0;
  for (const [at, role] of known.roles) if (outward.has(role.role ?? "")) bits += rates.get(at)?.rx_bits_per_s ?? 0;
  return bits;
}

/** busiest returns the directions of links that carry most of what they can, at most some; idle ones are left out. */
export function busiest(known: Known, rates: Rates, most: number): Busy[] {
  const all: Busy[] = [];
  for (const link of known.links.values()) {
    const bits = rates.get(place(link.src))?.tx_bits_per_s ?? 0;
    const capacity = 1000 * Number(link.capacity_kbps ?? 0);
    if (bits >= 1) all.push({ link, bits, share: capacity > 0 ? bits / capacity : NaN });
  }
  const rank = (b: Busy) => (Number.isNaN(b.share) ? 0 : b.share);
  return all.sort((a, b) => rank(b) - rank(a) || b.bits - a.bits || linkKey(a.link).localeCompare(linkKey(b.link))).slice(0, most);
}

/** shareText writes a share of what a link can carry, with two figures below a percent. */
export function shareText(share: number): string {
  if (Number.isNaN(share)) return "";
  const percent = 100 * share;
  return percent === 0 ? "0 %" : percent < 0.01 ? "< 0.01 %" : `${percent >= 10 ? percent.toFixed(0) : percent.toPrecision(2)} %`;
}

/** useStep returns which of the five colours of use a share has. */
export const useStep = (share: number) => (!(share > 0) ? 0 : share < 0.3 ? 1 : share < 0.6 ? 2 : share < 0.85 ? 3 : 4);

/** changesPerSecond returns how many flow entries a second were sent to switches between two readings; NaN without a
 * reading before. A switch that has connected anew meanwhile counts from its connection. */
export function changesPerSecond(before: Map<string, Switch>, now: Map<string, Switch>, seconds: number): number {
  if (before.size === 0 || seconds <= 0) return NaN;
  let sum = 0;
  for (const [dpid, s] of now) {
    const old = before.get(dpid);
    const count = Number(s.flow_mods ?? 0);
    if (old) sum += old.since === s.since ? Math.max(0, count - Number(old.flow_mods ?? 0)) : count;
  }
  return sum / seconds;
}
