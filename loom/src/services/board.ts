// What the board shows of the plan in force and of one that is proposed: both at once.

import type { DiffPlansResponse } from "../api/types.gen";
import type { PlanWorker } from "./planedit";

/** Chip is a service in a worker: it is there, or it comes or goes with the proposal. */
export interface Chip {
  service: string;
  fate: "stays" | "comes" | "goes";
}

/** Card is a worker as the proposal has it; one that ends is as it is now. */
export interface Card {
  worker: PlanWorker;
  fate: "stays" | "starts" | "stops";
  chips: Chip[];
}

/** cards returns the workers of both plans, in the order of the one in force, the new ones last. */
export function cards(now: PlanWorker[], then: PlanWorker[]): Card[] {
  const next = new Map(then.map((w) => [w.name, w]));
  const old = new Map(now.map((w) => [w.name, w]));
  return [...now, ...then.filter((w) => !old.has(w.name))].map(({ name }): Card => {
    const [was, is] = [old.get(name), next.get(name)];
    const has = is?.services ?? [];
    const chips: Chip[] = has.map((service) => ({ service, fate: was && !was.services.includes(service) ? "comes" : was ? "stays" : "comes" }));
    (was?.services ?? []).forEach((service, i) => {
      if (!has.includes(service)) chips.splice(Math.min(i, chips.length), 0, { service, fate: "goes" });
    });
    return { worker: is ?? was!, fate: !is ? "stops" : !was ? "starts" : "stays", chips };
  });
}

/** Cost is what a proposal changes, as a figure and what it is of. */
export interface Cost {
  figure: string;
  what: string;
  mood: "good" | "bad" | "dim";
}

const mib = (octets?: string | number) => Math.round(Number(octets ?? 0) / 2 ** 20);
const signed = (n: number, digits = 0) => `${n > 0 ? "+" : n < 0 ? "−" : ""}${Math.abs(n).toFixed(digits)}`;
const mood = (n: number): Cost["mood"] => (n < 0 ? "good" : n > 0 ? "bad" : "dim");

/** costs returns what the controller says that a proposal changes: processes, memory, and the latency of the calls that
 * it changes most, where that was measured. */
export function costs(d: DiffPlansResponse): Cost[] {
  const processes = (d.new_size?.processes ?? 0) - (d.old_size?.processes ?? 0);
  const memory = mib(d.new_size?.memory) - mib(d.old_size?.memory);
  const out: Cost[] = [
    { figure: signed(processes), what: Math.abs(processes) === 1 ? "process" : "processes", mood: mood(processes) },
    { figure: `${signed(memory)} MiB`, what: "memory", mood: mood(memory) },
  ];
  const known = (d.crossings ?? []).filter((c) => c.known && c.us);
  const weight = (c: (typeof known)[number]) => Math.abs(c.us ?? 0) * Math.max(c.per_s ?? 0, 0.01);
  const most = known.sort((a, b) => weight(b) - weight(a))[0];
  if (most) out.push({ figure: `${signed(most.us!, Math.abs(most.us!) < 10 ? 1 : 0)} µs`, what: `a ${most.kind} to ${most.to}`, mood: mood(most.us!) });
  return out;
}
