// What the map draws: made by NetMap, drawn by Drawing.

import type { Kind } from "../ui/icons";
import type { Point } from "./layout";

export type { Point };

/** Node is a switch or a host. */
export interface Node extends Point {
  id: string;
  kind: Kind;
  label: string;
  state: "up" | "gone" | "claimed";
  pale: boolean; // the controller is not its master
  group: string; // "" if it is in none
  degree: number; // its links
  hub: boolean; // it has many more than most
}

/** Line joins two nodes, or two groups. */
export interface Line {
  id: string;
  a: string;
  b: string;
  state: "up" | "gone" | "waits" | "claim";
  host: boolean; // one of the ends is a host
  there: number; // share of what it can carry that a sends; tiny if only the rate is known
  back: number; // and b
  texts: [string, string]; // the rates that both ends send, "" if too little
  beside: number; // steps to the side, if others join the same nodes
  count: number; // links that it stands for
  tree: boolean;
}

/** Group is a circle with the switches that belong together. */
export interface Group extends Point {
  id: string;
  label: string;
  sub: string;
  r: number;
  mood: "" | "warn" | "bad";
}

/** Scene is all that is drawn. */
export interface Scene {
  nodes: Map<string, Node>;
  lines: Map<string, Line>;
  groups: Group[];
  trunks: Line[]; // between groups
  way: { nodes: Set<string>; lines: string[] }; // a path, its lines from source to target
  old: Set<string>; // lines of the path before
  chosen: string;
  traffic: boolean; // packets are drawn
}

/** few is how many switches are drawn with icons and names at any size; more are drawn in groups. */
export const few = 80;

/** emptyScene returns a scene with nothing in it. */
export const emptyScene = (): Scene => ({ nodes: new Map(), lines: new Map(), groups: [], trunks: [], way: { nodes: new Set(), lines: [] }, old: new Set(), chosen: "", traffic: true });
