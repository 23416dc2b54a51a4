// How much the controller's processes work.

import type { GetWorkResponse, Worker } from "../api/types.gen";

/** Load is what a process does. */
export interface Load {
  process: string;
  state: string;
  share: number; // of one processor, between two readings; NaN if that is not known
  rate: number; // packets and calls a second, over the last ten
}

/** loads returns what processes do, the busiest first, by two readings of their work some seconds apart. */
export function loads(workers: Worker[], before: GetWorkResponse | undefined, now: GetWorkResponse | undefined, seconds: number): Load[] {
  const of = (r?: GetWorkResponse) => new Map((r?.processes ?? []).map((p) => [p.process ?? "", p]));
  const [old, is] = [of(before), of(now)];
  const out = workers.map((w): Load => {
    const name = w.process ?? "";
    const [a, b] = [old.get(name), is.get(name)];
    const same = a && b && a.run === b.run && seconds > 0;
    return { process: name, state: w.state ?? "", share: same ? Math.max(0, (b.cpu_seconds ?? 0) - (a.cpu_seconds ?? 0)) / seconds : NaN, rate: (b?.work ?? []).reduce((sum, x) => sum + (x.rate ?? 0), 0) };
  });
  return out.sort((a, b) => Number(b.state !== "up") - Number(a.state !== "up") || (b.share || 0) - (a.share || 0) || a.process.localeCompare(b.process));
}
