// The looks that models and labs may give to what is drawn.

import type { Kind } from "../ui/icons";

/** shapes are those of nodes. */
export const shapes = ["ellipse", "rectangle", "round-rectangle", "hexagon", "octagon", "diamond", "triangle", "pentagon", "tag", "star", "barrel", "vee"];

/** fills are the colours of nodes, in the light and in the dark. */
export const fills: Record<string, [string, string]> = { switch: ["#bcd7f5", "#24507f"], edge: ["#c9e7cf", "#23603a"], bridge: ["#e3ddf3", "#4b4173"], host: ["#eceef1", "#3a424c"], program: ["#fbe3c4", "#70511d"] };

/** frames are the colours of groups and of links. */
export const frames: Record<string, string> = { grey: "#888888", blue: "#4e79a7", green: "#59a14f", orange: "#f28e2b", red: "#e15759", purple: "#b07aa1" };

const kinds: Record<string, Kind> = { openflow: "switch", hybrid: "hybrid", router: "router", bridge: "bridge" };

/** kindOf returns the icon of a type of node. */
export const kindOf = (t: { list: string; kind: string; set?: Record<string, unknown> }): Kind => (t.list === "switches" ? (kinds[t.kind] ?? "switch") : t.set?.run ? "function" : "host");
