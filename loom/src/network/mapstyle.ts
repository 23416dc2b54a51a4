import type { StylesheetJson } from "cytoscape";

import { tones } from "../ui/theme";

/** mapStyle is how the map looks, in the colours of the page. */
export function mapStyle(): StylesheetJson {
  const all = tones("ground", "text", "dim", "accent", "good", "warn", "bad");
  const c = (name: keyof typeof all) => all[name];
  const halo = { "text-background-color": c("ground"), "text-background-opacity": 0.85, "text-background-padding": "1px" } as const;
  return [
    { selector: "node", style: { "background-color": c("accent"), "border-color": c("accent"), label: "data(label)", color: c("text"), "font-size": 11, "text-valign": "bottom", "text-margin-y": 3, "text-wrap": "wrap", "min-zoomed-font-size": 7, width: 26, height: 26, ...halo } },
    { selector: "node[role = 'slave']", style: { "background-color": c("ground"), "border-width": 2 } },
    { selector: "node[role = 'equal']", style: { "border-width": 6, "border-style": "double", "border-color": c("accent"), "background-color": c("ground") } },
    { selector: "node[kind = 'host']", style: { shape: "round-rectangle", "background-color": c("good"), "border-color": c("good"), width: 16, height: 16, "font-size": 9 } },
    { selector: "node[state = 'gone']", style: { shape: "octagon", "background-color": c("bad"), "border-color": c("bad"), "background-opacity": 0.5 } },
    { selector: "node[state = 'claimed']", style: { "border-color": c("bad"), "border-width": 4 } },
    { selector: "edge", style: { width: 2, "line-color": c("dim"), "curve-style": "haystack", "haystack-radius": 0 } },
    { selector: "edge[?bent]", style: { "curve-style": "bezier", "control-point-step-size": 26, "loop-sweep": "60deg", "loop-direction": "-45deg" } },
    { selector: "edge[there]", style: { "source-label": "data(there)", "target-label": "data(back)", "source-text-offset": 38, "target-text-offset": 38, "source-text-margin-y": -7, "target-text-margin-y": -7, "source-text-rotation": "autorotate", "target-text-rotation": "autorotate", "font-size": 9, color: c("text"), "min-zoomed-font-size": 8, ...halo } },
    { selector: "edge[busy > 0]", style: { width: "mapData(busy, 0, 6, 2, 9)" as unknown as number } },
    { selector: "edge[?tree]", style: { "line-color": c("accent") } },
    { selector: "edge[state = 'access']", style: { width: 1, "line-style": "dotted" } },
    { selector: "edge[state = 'claim']", style: { width: 2, "line-style": "dashed", "line-color": c("bad") } },
    { selector: "edge[state = 'gone'], edge[state = 'one_way']", style: { "line-color": c("bad"), "line-style": "dashed" } },
    { selector: "edge[state = 'waiting'], edge[state = 'held'], edge[state = 'dampened']", style: { "line-color": c("warn"), "line-style": "dashed" } },
    { selector: ".path", style: { "line-color": c("warn"), "background-color": c("warn"), width: 7 } },
    { selector: "node.path", style: { width: 30, height: 30, "border-color": c("warn") } },
    { selector: ".chosen", style: { "overlay-color": c("accent"), "overlay-opacity": 0.35, "overlay-padding": 6 } },
  ];
}
