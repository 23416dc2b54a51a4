import { ApiError, get, post, text, textOf } from "../api/client";
import { pause } from "../api/poll";
import type { ApplyPlanResponse, ListWorkersResponse, Worker } from "../api/types.gen";
import { counters, Ledger, type Losses } from "./losses";

/** Fate is what has become of a process. */
export interface Fate {
  process: string;
  before: string; // its services and number
  now: string;
  state: string;
  what: "starts" | "ends" | "restarts" | "changes" | "stays";
}

const pace = 400; // milliseconds between looks
const calm = 3000; // for which all is up and counted before it is over
const patience = 90_000;

const servicesOf = (w: Worker) => (w.services ?? []).map((s) => s.name).join(", ");
const shown = (w?: Worker) => (w ? `pid ${w.pid}: ${servicesOf(w)}` : "");

/** fates compares the processes before a plan was applied with those of now. */
export function fates(before: Worker[], now: Worker[]): Fate[] {
  const names = [...new Set([...before, ...now].map((w) => w.process ?? ""))].sort();
  return names.map((process) => {
    const [a, b] = [before, now].map((list) => list.find((w) => w.process === process));
    const what = !a ? "starts" : !b || !b.pid ? "ends" : a.pid !== b.pid ? "restarts" : servicesOf(a) !== servicesOf(b) ? "changes" : "stays";
    return { process, before: shown(a), now: shown(b), state: b?.state ?? "ended", what };
  });
}

/** Applying follows a plan that is being brought into force: what becomes of the processes, and which
 * packets are lost meanwhile. */
export class Applying {
  state = $state<"applying" | "settling" | "done" | "failed">("applying");
  error = $state("");
  generation = $state("");
  changes = $state.raw<string[]>([]);
  processes = $state.raw<Fate[]>([]);
  losses = $state.raw<Losses>({ read: 0, packets: new Map(), messages: new Map() });
  uncounted = $state(""); // why the losses are not known
  ms = $state(0); // since it began

  /** run applies a plan that was made from the one of a generation, and returns when all is calm. */
  async run(plan: string, generation: string, signal: AbortSignal) {
    const began = performance.now();
    const before = (await get<ListWorkersResponse>("v1/workers", signal).catch(() => ({ workers: [] }) as ListWorkersResponse)).workers ?? [];
    let ledger: Ledger | undefined;
    await this.count(signal, (c) => (ledger = new Ledger(c)));
    const answer = post<ApplyPlanResponse>("v1/plan", { text: plan, made_from: generation }).then(
      (r) => {
        [this.state, this.changes, this.generation] = ["settling", r.changes ?? [], String(r.generation)];
      },
      (err) => {
        // The gateway may have moved before it could answer.
        if (err instanceof ApiError && err.status !== 0 && err.status < 500) [this.state, this.error] = ["failed", textOf(err)];
        else this.error = textOf(err);
      },
    );
    let quiet = 0;
    while (!signal.aborted && this.state !== "failed" && performance.now() - began < patience) {
      await pause(pace, signal);
      if (ledger) await this.count(signal, (c) => (this.losses = ledger!.take(c)));
      try {
        const r = await get<ListWorkersResponse>("v1/workers", signal);
        this.processes = fates(before, r.workers ?? []);
        if (this.error && String(r.generation) !== generation) [this.state, this.generation, this.error] = ["settling", String(r.generation), ""];
        const up = (r.workers ?? []).every((w) => w.state === "up" && w.current) && String(r.generation) !== generation;
        quiet = this.state === "settling" && up ? quiet || performance.now() : 0;
      } catch {
        quiet = 0; // it does not answer while the gateway moves
      }
      this.ms = performance.now() - began;
      if (quiet > 0 && performance.now() - quiet >= calm) {
        this.state = "done";
        return;
      }
      if (this.error && quiet === 0 && performance.now() - began > patience / 3) break;
    }
    await answer;
    if (this.state === "applying" || this.state === "settling") [this.state, this.error] = ["failed", this.error || "not every process is up; the tab Processes says which one is not"];
  }

  private async count(signal: AbortSignal, take: (c: Map<string, number>) => void) {
    try {
      take(counters(await text("metrics", signal)));
      this.uncounted = "";
    } catch (err) {
      if (!signal.aborted) this.uncounted = textOf(err);
    }
  }
}
