import type { ExperimentAxis, ExperimentPanel, ExperimentSeries } from "../api/types.gen";

/** Mark is one value as it is drawn: where, and how far its interval reaches. */
export interface Mark {
  x: number;
  y: number;
  low?: number;
  high?: number;
}

/** Drawn is a series as it is drawn. */
export interface Drawn {
  name: string;
  kind: string;
  colour: number;
  dashed: boolean;
  /** hollow: the paper's, those of the other run, or no results like those beside them. */
  hollow: boolean;
  /** points in the order of x; of bars, x is the middle of the bar. */
  points: Mark[];
  /** width of bars, in units of x. */
  width: number;
}

/** Chart is a panel ready to be drawn. */
export interface Chart {
  title: string;
  xLabel: string;
  yLabel: string;
  /** names of the places 0, 1, … on the axis x; empty: numbers. */
  names: string[];
  xLog: boolean;
  yLog: boolean;
  x: [number, number];
  y: [number, number];
  series: Drawn[];
  marks: Array<{ x: number; text: string }>;
}

/** otherRun is the source of series that are laid over those of a run. */
export const otherRun = "the other run";

/** room is how much of a place the bars at it take. */
const room = 0.8;

/** chartOf lays a panel out: bars beside each other, intervals, ends of the axes. */
export function chartOf(panel: ExperimentPanel): Chart {
  const axis = (a: ExperimentAxis | undefined) => a ?? {};
  const [x, y] = [axis(panel.x), axis(panel.y)];
  const list = panel.series ?? [];
  const bars = list.filter((s) => s.kind === "bars");
  const places = distinct(list.flatMap((s) => (s.points ?? []).map((p) => p.x ?? 0)));
  const place = x.names?.length ? 1 : Math.min(...places.slice(1).map((v, i) => v - places[i]), places.length > 1 ? Infinity : 1);
  const width = (place * room) / Math.max(bars.length, 1);
  const series = list.map((s) => drawn(s, x, y, bars.indexOf(s), bars.length, width));
  return {
    title: panel.title ?? "",
    xLabel: x.label ?? "",
    yLabel: y.label ?? "",
    names: x.names ?? [],
    xLog: !!x.log,
    yLog: !!y.log,
    x: ends(series.flatMap((s) => s.points.flatMap((p) => (s.width ? [p.x - s.width / 2, p.x + s.width / 2] : [p.x]))), x, !x.names?.length),
    y: ends(series.flatMap((s) => s.points.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y, ...(s.kind === "bars" && !y.log ? [0] : [])])), y, true),
    series,
    marks: (panel.marks ?? []).map((m) => ({ x: m.x ?? 0, text: m.text ?? "" })),
  };
}

function drawn(s: ExperimentSeries, x: ExperimentAxis, y: ExperimentAxis, at: number, of: number, width: number): Drawn {
  const points: Mark[] = [];
  for (const p of s.points ?? []) {
    const [px, py] = [p.x ?? 0, p.y];
    if (py === null || py === undefined || !Number.isFinite(py) || (y.log && py <= 0) || (x.log && px <= 0)) continue;
    const m: Mark = { x: at >= 0 ? px + (at - (of - 1) / 2) * width : px, y: py };
    if (p.ci95?.length === 2) [m.low, m.high] = p.ci95;
    if (y.log && m.low !== undefined && m.low <= 0) m.low = py;
    points.push(m);
  }
  points.sort((a, b) => a.x - b.x);
  const name = s.source && s.source !== otherRun ? paperName(s.name ?? "") : (s.name ?? "");
  return { name, kind: s.kind ?? "line", colour: s.colour ?? 0, dashed: !!s.dashed, hollow: !!s.source || !!s.hollow, points, width: at >= 0 ? width : 0 };
}

/** paperName names a series of the paper. */
const paperName = (name: string) => (/^(the )?paper$/i.test(name) || name === "" ? "the paper" : `${name}, the paper`);

/** ends returns where an axis begins and ends. */
function ends(values: number[], axis: ExperimentAxis, margin: boolean): [number, number] {
  if (axis.names?.length) return [-0.6, axis.names.length - 0.4];
  const known = values.filter(Number.isFinite);
  if (known.length === 0) return axis.log ? [1, 10] : [0, 1];
  let [low, high] = [known[0], known[0]];
  for (const v of known) [low, high] = [Math.min(low, v), Math.max(high, v)];
  if (axis.max) high = axis.max;
  if (axis.log) return [low / 1.2, high * 1.2];
  if (low >= 0 && low < high / 2) low = 0;
  const gap = margin ? (high - low || Math.abs(high) || 1) * 0.05 : 0;
  return [low === 0 ? 0 : low - gap, high + gap];
}

function distinct(values: number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

/** aligned returns what uPlot takes: all x, and of each series the y there. Of
 * two points at one x, the last counts. */
export function aligned(c: Chart): Array<Array<number | null>> {
  const xs = distinct(c.series.flatMap((s) => s.points.map((p) => p.x)));
  const at = new Map(xs.map((x, i) => [x, i]));
  const columns = c.series.map((s) => {
    const column = new Array<number | null>(xs.length).fill(null);
    for (const p of s.points) column[at.get(p.x)!] = p.y;
    return column;
  });
  return [xs, ...columns];
}

/** placeOf writes an x: the name of its place, or the number. */
export function placeOf(names: string[] | undefined, x: number): string {
  return names?.length ? (names[x] ?? "") : String(Number(x.toPrecision(6)));
}
