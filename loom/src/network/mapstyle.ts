import type { StylesheetJson } from "cytoscape";

import { glyph, outline, shape, type Kind } from "../ui/icons";
import { tones } from "../ui/theme";

/** tile is the width of a switch in pixels, small that of a host. */
export const tile = 40;
const small = 26;

const grain = 4; // pixels of a picture for each of the grid of 24 and its rim of one

/** picture draws a device as a bitmap, in colours of the page, which is drawn faster than a vector; mark is the colour of its
 * badge, if it has one. */
function picture(kind: Kind, colour: string, fill: string, border: string, mark = ""): string {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 26 * grain;
  const ink = canvas.getContext("2d");
  if (!ink) return "none";
  const of = shape[kind];
  ink.lineCap = ink.lineJoin = "round";
  ink.setTransform(grain, 0, 0, grain, grain, grain);
  ink.fillStyle = fill;
  if (of !== "none") {
    const tile = new Path2D(outline[of]);
    ink.strokeStyle = border;
    ink.lineWidth = mark ? 1.4 : 0.9;
    ink.fill(tile);
    ink.stroke(tile);
    ink.transform(0.615, 0, 0, 0.615, 4.6, 4.6);
  }
  const sign = new Path2D(glyph[kind]);
  ink.strokeStyle = colour;
  ink.lineWidth = of === "none" ? 1.75 : 1.9;
  if (of === "none") ink.fill(sign);
  ink.stroke(sign);
  if (mark) {
    ink.setTransform(grain, 0, 0, grain, grain, grain);
    ink.fillStyle = mark;
    ink.fill(new Path2D("M21 -1a4 4 0 1 0 0 8 4 4 0 0 0 0-8z"));
    ink.strokeStyle = fill;
    ink.lineWidth = 1.3;
    ink.stroke(new Path2D("M21 1v2.2M21 5v.1"));
  }
  return canvas.toDataURL();
}

/** mapStyle is how the map looks, in the colours of the page; of many switches names are left out until they are near. */
export function mapStyle(many: boolean): StylesheetJson {
  const c = tones("ground", "surface", "text", "dim", "line-strong", "accent", "accent-soft", "good", "warn", "bad", "use-0", "use-1", "use-2", "use-3", "use-4");
  const halo = { "text-background-color": c.ground, "text-background-opacity": 0.85, "text-background-padding": "1px" } as const;
  const icon = (kind: Kind, colour = c.text, border = c["line-strong"], mark = "") => ({ "background-image": picture(kind, colour, c.surface, border, mark) });
  const use = (["use-1", "use-2", "use-3", "use-4"] as const).map((name, i) => ({ selector: `edge[use = ${i + 1}]`, style: { "line-color": c[name] } }));
  return [
    {
      selector: "node",
      style: {
        shape: "round-rectangle", width: tile, height: tile, "background-opacity": 0, "background-fit": "contain", "background-image-containment": "over", "background-clip": "none",
        label: "data(label)", color: c.text, "font-family": '"Geist Variable", system-ui, sans-serif', "font-size": 12, "font-weight": 600, "text-valign": "bottom", "text-margin-y": 4, "text-wrap": "wrap", "min-zoomed-font-size": many ? 10 : 7, ...halo, ...icon("switch"),
      },
    },
    { selector: "node[role = 'slave'], node[role = 'equal']", style: icon("switch", c.dim) },
    { selector: "node[kind = 'host']", style: { width: small, height: small, "font-size": 11, "font-weight": 400, ...icon("host", c.dim) } },
    { selector: "node[state = 'gone']", style: icon("switch", c.dim, c.bad, c.bad) },
    { selector: "node[state = 'claimed']", style: icon("host", c.bad) },
    // So small that no sign could be told.
    { selector: "node.plain", style: { "background-image": "none", "background-opacity": 1, "background-color": c.surface, "border-width": 3, "border-color": c["line-strong"] } },
    { selector: "node.plain[state = 'gone']", style: { "border-color": c.bad } },
    { selector: "edge", style: { width: 2, "line-color": c["use-0"], "curve-style": "haystack", "haystack-radius": 0 } },
    { selector: "edge[width]", style: { width: "data(width)" } },
    ...use,
    { selector: "edge[?bent]", style: { "curve-style": "bezier", "control-point-step-size": 26, "loop-sweep": "60deg", "loop-direction": "-45deg" } },
    { selector: "edge.path[there], edge.chosen[there], edge.near[there]", style: { "source-label": "data(there)", "target-label": "data(back)", "source-text-offset": 52, "target-text-offset": 52, "source-text-margin-y": -8, "target-text-margin-y": -8, "source-text-rotation": "autorotate", "target-text-rotation": "autorotate", "font-family": '"Geist Variable", system-ui, sans-serif', "font-size": 10, color: c.dim, "min-zoomed-font-size": 8, ...halo } },
    { selector: "edge[?tree]", style: { "underlay-color": c.good, "underlay-opacity": 0.3, "underlay-padding": 4 } },
    { selector: "edge[state = 'access']", style: { width: 1.3 } },
    { selector: "edge[state = 'claim']", style: { width: 2, "line-style": "dashed", "line-color": c.bad } },
    { selector: "edge[state = 'gone'], edge[state = 'one_way']", style: { "line-color": c.bad, "line-style": "dotted" } },
    { selector: "edge[state = 'waiting'], edge[state = 'held'], edge[state = 'dampened']", style: { "line-color": c.warn, "line-style": "dashed" } },
    { selector: "edge.path", style: { "line-color": c.accent, width: 6 } },
    { selector: "node.path", style: icon("switch", c.text, c.accent) },
    { selector: "node.plain.path", style: { "background-image": "none", "border-color": c.accent, "border-width": 6 } },
    { selector: "node.chosen", style: { "underlay-color": c.accent, "underlay-opacity": 0.25, "underlay-padding": 6, "underlay-shape": "round-rectangle" } },
    { selector: "edge.chosen", style: { "underlay-color": c.accent, "underlay-opacity": 0.4, "underlay-padding": 5 } },
  ];
}
