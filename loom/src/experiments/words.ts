import type { Experiment, ExperimentRun } from "../api/types.gen";

/** number writes a value with three significant digits, whole thousands whole. */
export function number(v: number | null | undefined): string {
  if (v === null || v === undefined || !Number.isFinite(v)) return "–";
  if (v === 0) return "0";
  if (Math.abs(v) >= 1000) return v.toLocaleString("en", { maximumFractionDigits: 0 });
  return String(Number(v.toPrecision(3)));
}

/** interval writes a 95 % interval; "–" if there is none. */
export function interval(ci95: number[] | undefined): string {
  return ci95?.length === 2 ? `${number(ci95[0])} to ${number(ci95[1])}` : "–";
}

/** duration writes seconds for people. */
export function duration(seconds: number): string {
  const s = Math.round(seconds);
  if (s < 1) return "less than a second";
  if (s < 90) return `${s} s`;
  const m = Math.round(s / 60);
  return m < 90 ? `${m} min` : `${Math.floor(m / 60)} h ${m % 60} min`;
}


/** byPaper groups experiments by their papers, both in the order of the list. */
export function byPaper(list: Experiment[]): Array<{ paper: string; experiments: Experiment[] }> {
  const groups = new Map<string, Experiment[]>();
  for (const e of list) {
    const paper = e.paper ?? "";
    groups.set(paper, [...(groups.get(paper) ?? []), e]);
  }
  return [...groups].map(([paper, experiments]) => ({ paper, experiments }));
}

/** howLong says how long a run is going to take, as far as that is known. */
export function howLong(e: Experiment, quick: boolean, rounds: number, minutes: number): string {
  const usual = (quick ? e.quick_rounds : e.rounds) ?? 0;
  const last = (quick ? e.quick_seconds : e.seconds) ?? 0;
  const bound = `No round begins that would end after ${duration(minutes * 60)}.`;
  if (last > 0 && usual > 0) {
    const about = duration((last * rounds) / usual);
    return `About ${about}: the last such run of ${usual} ${usual === 1 ? "round" : "rounds"} took ${duration(last)} here. ${bound}`;
  }
  const quickly = e.quick_seconds ?? 0;
  if (!quick && quickly > 0) return `Longer than a quick run, which took ${duration(quickly)} here. ${bound}`;
  return `It has not been run so on this machine, so how long it takes is not known yet. ${bound}`;
}

/** stateOf says how far a run is. */
export function stateOf(r: ExperimentRun): string {
  switch (r.state) {
    case "running": {
      const left = r.seconds_left ? `, about ${duration(r.seconds_left)} left` : "";
      return r.total ? `running: ${r.done ?? 0} of ${r.total}${left}` : "running";
    }
    case "failed":
      return `failed: ${r.error ?? ""}`;
    case "interrupted":
      return "interrupted; goes on when weft experiment serve starts again";
  }
  return r.state ?? "";
}

/** active says whether a run waits or works. */
export function active(r: ExperimentRun | undefined): boolean {
  return r?.state === "waiting" || r?.state === "running";
}

/** said is a verdict as it is written: nothing is asked where there is none. */
export function said(verdict: string | undefined): string {
  return !verdict || verdict === "-" ? "–" : verdict;
}

/** mood is the class in which a verdict is written. */
export function mood(verdict: string | undefined): "good" | "bad" | "warn" | "dim" {
  if (verdict === "met" || verdict === "reproduced") return "good";
  if (verdict === "missed" || verdict === "contradicts") return "bad";
  return verdict === "undecided" || verdict === "no verdict" || verdict === "not measured" ? "warn" : "dim";
}
