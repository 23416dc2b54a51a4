// Traffic matrices: how much each host sends to each other, and what became of it.

import type { LabFlow, LabFlowResult } from "../api/types.gen";
import { Random } from "./random";

/** mostFlows is how many pairs may send at once, as the lab service has it. */
export const mostFlows = 64;
/** mostHosts is how many hosts a matrix has. */
export const mostHosts = 16;

/** Demand is what one host sends to another, in packets a second. */
export interface Demand {
  from: string;
  to: string;
  rate: number;
}

export const patterns = {
  all: "every pair",
  ring: "each to the next",
  pairs: "each to one other (random)",
  into: "all to the first",
  out: "the first to all",
  gravity: "by weights of the hosts (random)",
};
export type Pattern = keyof typeof patterns;

/** fill returns the demands of a pattern between hosts, which are the same for the same seed. */
export function fill(hosts: string[], pattern: Pattern, rate: number, seed: number): Demand[] {
  const r = new Random(seed);
  const n = hosts.length;
  if (n < 2) return [];
  const demand = (a: number, b: number, of = rate): Demand => ({ from: hosts[a], to: hosts[b], rate: of });
  const all = hosts.flatMap((_, a) => hosts.flatMap((_, b) => (a === b ? [] : [[a, b]])));
  switch (pattern) {
    case "ring":
      return hosts.map((_, i) => demand(i, (i + 1) % n));
    case "pairs": {
      // One circle through all in a random order: nobody sends to itself, and each receives once.
      const order = r.shuffle(hosts.map((_, i) => i));
      return order.map((a, i) => demand(a, order[(i + 1) % n]));
    }
    case "into":
      return hosts.slice(1).map((_, i) => demand(i + 1, 0));
    case "out":
      return hosts.slice(1).map((_, i) => demand(0, i + 1));
    case "gravity": {
      // What a pair sends is proportional to the weights of both; all pairs together send rate each on average.
      const weight = hosts.map(() => 0.2 + r.next());
      const sum = all.reduce((s, [a, b]) => s + weight[a] * weight[b], 0);
      return all.map(([a, b]) => demand(a, b, Math.max(1, Math.round((rate * all.length * weight[a] * weight[b]) / sum))));
    }
  }
  return all.map(([a, b]) => demand(a, b));
}

/** readTraffic returns what a lab's file says as x-traffic; null if it does not. */
export function readTraffic(said: unknown): { demands: Demand[]; size: number; seconds: number } | null {
  if (said === null || typeof said !== "object" || !Array.isArray((said as { demands?: unknown }).demands)) return null;
  const of = said as { demands: Array<Partial<Demand> | null>; size?: unknown; seconds?: unknown };
  const number = (v: unknown, least: number, most: number, otherwise: number) => (typeof v === "number" && v >= least && v <= most ? v : otherwise);
  return {
    demands: of.demands.slice(0, 256).flatMap((d) => (typeof d?.from === "string" && typeof d.to === "string" && d.from !== d.to ? [{ from: d.from, to: d.to, rate: number(d.rate, 0, 100_000, 0) }] : [])),
    size: number(of.size, 64, 1500, 1000),
    seconds: number(of.seconds, 1, 20, 3),
  };
}

/** flowsOf returns what is asked for of the demands; it throws what is wrong with them. */
export function flowsOf(demands: Demand[], size: number): LabFlow[] {
  const flows = demands.filter((d) => d.rate > 0).map((d) => ({ ...d, size }));
  if (flows.length === 0) throw new Error("nobody sends: fill the matrix first");
  if (flows.length > mostFlows) throw new Error(`${flows.length} pairs send: at most ${mostFlows} may at once`);
  return flows;
}

/** lost returns how much of what was sent was lost, from 0 to 1. */
export const lost = (f: LabFlowResult): number => (f.sent ? 1 - (f.received ?? 0) / f.sent : 0);

export const figures = { lost: "Lost, %", mean: "Mean delay, ms", p99: "99 of 100, ms", mbit: "Received, Mbit/s" };
export type Figure = keyof typeof figures;

/** figureOf writes a figure of a flow; seconds and size are those that were asked for. */
export function figureOf(f: LabFlowResult, figure: Figure, seconds: number, size: number): string {
  if (f.error) return "failed";
  switch (figure) {
    case "lost":
      return (100 * lost(f)).toFixed(1);
    case "mean":
      return f.received ? (f.mean_ms ?? 0).toFixed(2) : "–";
    case "p99":
      return f.received ? (f.p99_ms ?? 0).toFixed(2) : "–";
    case "mbit":
      return (((f.received ?? 0) * size * 8) / seconds / 1e6).toFixed(3);
  }
}
