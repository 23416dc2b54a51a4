import type { ExperimentClaim, ExperimentFigure, ExperimentPanel, ExperimentResults } from "../api/types.gen";
import { otherRun, placeOf } from "./chart";

/** Point is one value of a figure in a table. */
export interface Point {
  panel: string;
  series: string;
  x: string;
  y: number | null;
  low: number | null;
  high: number | null;
  paper: boolean;
}

/** pointsOf returns the values of a figure: the table twin of its plots. */
export function pointsOf(f: ExperimentFigure): Point[] {
  return (f.panels ?? []).flatMap((p, i) =>
    (p.series ?? []).flatMap((s) =>
      (s.points ?? []).map((v) => ({
        panel: p.title || p.y?.label || String(i + 1),
        series: s.name ?? "",
        x: placeOf(p.x?.names, v.x ?? 0),
        y: v.y ?? null,
        low: v.ci95?.[0] ?? null,
        high: v.ci95?.[1] ?? null,
        paper: !!s.source,
      })),
    ),
  );
}

/** Beside is one value of two runs beside each other. */
export interface Beside {
  what: string;
  unit: string;
  paper: string;
  a: number | null;
  aCI: number[];
  b: number | null;
  bCI: number[];
  /** ratio of b to a; null if there is none. */
  ratio: number | null;
  /** apart: their intervals do not overlap; null if one has none. */
  apart: boolean | null;
}

function beside(what: string, unit: string, paper: string, a: { y?: number | null; ci?: number[] }, b: { y?: number | null; ci?: number[] }): Beside {
  const [ya, yb, ca, cb] = [a.y ?? null, b.y ?? null, a.ci ?? [], b.ci ?? []];
  return {
    what, unit, paper, a: ya, aCI: ca, b: yb, bCI: cb,
    ratio: ya !== null && yb !== null && ya !== 0 ? yb / ya : null,
    apart: ca.length === 2 && cb.length === 2 ? ca[1] < cb[0] || cb[1] < ca[0] : null,
  };
}

const claimKey = (c: ExperimentClaim) => `${c.figure ?? ""}\n${c.what ?? ""}`;

/** compareClaims puts the claims of two runs beside each other, in the order of the first; what only the
 * second has is at the end. */
export function compareClaims(a: ExperimentResults, b: ExperimentResults): Beside[] {
  const other = new Map((b.claims ?? []).map((c) => [claimKey(c), c]));
  const row = (c: ExperimentClaim, x?: ExperimentClaim, y?: ExperimentClaim) =>
    beside([c.figure, c.what].filter(Boolean).join(": "), c.unit ?? "", c.paper ?? "", { y: x?.ours, ci: x?.ci95 }, { y: y?.ours, ci: y?.ci95 });
  const rows = (a.claims ?? []).map((c) => {
    const match = other.get(claimKey(c));
    other.delete(claimKey(c));
    return row(c, c, match);
  });
  return [...rows, ...[...other.values()].map((c) => row(c, undefined, c))];
}

/** comparePoints puts the measured values of a figure of two runs beside each other. */
export function comparePoints(a: ExperimentFigure, b: ExperimentFigure | undefined): Beside[] {
  const keyed = (f: ExperimentFigure | undefined) => new Map((f ? pointsOf(f) : []).filter((p) => !p.paper).map((p) => [`${p.panel}\n${p.series}\n${p.x}`, p]));
  const [ours, theirs] = [keyed(a), keyed(b)];
  const ci = (p: Point | undefined) => (p && p.low !== null && p.high !== null ? [p.low, p.high] : []);
  return [...new Set([...ours.keys(), ...theirs.keys()])].map((key) => {
    const [x, y] = [ours.get(key), theirs.get(key)];
    return beside(key.split("\n").filter(Boolean).join(", "), "", "", { y: x?.y, ci: ci(x) }, { y: y?.y, ci: ci(y) });
  });
}

/** together lays the other run's measured series over a panel: dashed, hollow, and named so. */
export function together(a: ExperimentPanel, b: ExperimentPanel | undefined, run: string): ExperimentPanel {
  const more = (b?.series ?? []).filter((s) => !s.source).map((s) => ({ ...s, name: `${s.name ?? ""} (${run})`, dashed: true, source: otherRun }));
  return { ...a, series: [...(a.series ?? []), ...more] };
}
