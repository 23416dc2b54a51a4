import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { onTheme, tones } from "../ui/theme";
import { aligned, type Chart, type Drawn } from "./chart";

/** palette are colours that can be told apart on light and dark; the first is of what is beside the point. */
const palette = ["#7a7f87", "#0b78c2", "#d55e00", "#0a9069", "#b8609a", "#a8790a", "#8a63d2", "#c23b3b", "#5d8a1e", "#3a8fc7"];

/** colourOf returns the colour of a series. */
export function colourOf(s: Drawn): string {
  return s.colour === 0 ? palette[0] : palette[1 + ((s.colour - 1) % (palette.length - 1))];
}

const height = 320;

/** draw draws a chart into an element, as wide as that is, until the function that it returns is called. */
export function draw(box: HTMLElement, chart: Chart): () => void {
  let plot = make(box, chart);
  const resized = new ResizeObserver(() => plot.setSize({ width: Math.max(box.clientWidth, 200), height }));
  resized.observe(box);
  const off = onTheme(() => {
    plot.destroy();
    plot = make(box, chart);
  });
  return () => {
    off();
    resized.disconnect();
    plot.destroy();
  };
}

function make(box: HTMLElement, c: Chart): uPlot {
  const { text, line } = tones("text", "line");
  const font = '12px "Geist Variable", system-ui, sans-serif';
  const axis = { stroke: text, font, labelFont: font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const long = c.names.length > 6 || c.names.some((n) => n.length > 10);
  return new uPlot(
    {
      width: Math.max(box.clientWidth, 200),
      height,
      padding: [null, long ? 70 : null, null, null],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: false, distr: c.xLog && !c.names.length ? 3 : 1, range: () => c.x },
        y: { distr: c.yLog ? 3 : 1, range: () => c.y },
      },
      axes: [
        {
          ...axis,
          label: c.xLabel,
          ...(c.names.length ? { splits: () => c.names.map((_, i) => i), values: () => c.names.map((n) => (n.length > 22 ? n.slice(0, 21) + "…" : n)), ...(long ? { rotate: -35, size: 90 } : {}) } : {}),
        },
        { ...axis, label: c.yLabel, size: 64 },
      ],
      series: [{}, ...c.series.map((s) => seriesOf(s))],
      hooks: { draw: [(u) => more(u, c, text)] },
    },
    aligned(c) as unknown as uPlot.AlignedData,
    box,
  );
}

function seriesOf(s: Drawn): uPlot.Series {
  const stroke = colourOf(s);
  const points = { show: s.kind === "line" || s.kind === "dots", size: 7, stroke, fill: s.hollow ? "transparent" : stroke };
  const common = { label: s.name, stroke, width: 2, dash: s.dashed ? [6, 4] : undefined, spanGaps: true, points };
  switch (s.kind) {
    case "bars":
    case "dots":
      return { ...common, paths: () => null };
    case "steps":
      return { ...common, paths: uPlot.paths.stepped!({ align: 1 }) };
  }
  return common;
}

/** more draws what uPlot does not: bars, intervals, moments. */
function more(u: uPlot, c: Chart, text: string) {
  const { ctx, bbox } = u;
  const scale = devicePixelRatio;
  const [x, y] = [(v: number) => u.valToPos(v, "x", true), (v: number) => u.valToPos(v, "y", true)];
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const s of c.series) {
    ctx.strokeStyle = ctx.fillStyle = colourOf(s);
    ctx.lineWidth = 1.5 * scale;
    ctx.setLineDash(s.dashed && s.kind === "bars" ? [6 * scale, 4 * scale] : []);
    if (s.kind === "bars") {
      const foot = c.yLog ? y(c.y[0]) : y(0);
      for (const p of s.points) {
        const [left, right] = [x(p.x - s.width / 2) + scale, x(p.x + s.width / 2) - scale];
        if (s.hollow) ctx.strokeRect(left, y(p.y), right - left, foot - y(p.y));
        else ctx.fillRect(left, y(p.y), right - left, foot - y(p.y));
      }
    }
    ctx.setLineDash([]);
    if (s.kind === "bars" && !s.hollow) ctx.strokeStyle = text;
    const cap = 4 * scale;
    for (const p of s.points) {
      if (p.low === undefined || p.high === undefined) continue;
      ctx.beginPath();
      ctx.moveTo(x(p.x), y(p.low));
      ctx.lineTo(x(p.x), y(p.high));
      for (const end of [p.low, p.high]) {
        ctx.moveTo(x(p.x) - cap, y(end));
        ctx.lineTo(x(p.x) + cap, y(end));
      }
      ctx.stroke();
    }
  }
  ctx.strokeStyle = ctx.fillStyle = text;
  ctx.lineWidth = scale;
  ctx.font = `${12 * scale}px system-ui, sans-serif`;
  ctx.setLineDash([2 * scale, 3 * scale]);
  for (const m of c.marks) {
    ctx.beginPath();
    ctx.moveTo(x(m.x), bbox.top);
    ctx.lineTo(x(m.x), bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(m.text, x(m.x) + 4 * scale, bbox.top + 14 * scale);
  }
  ctx.restore();
}
