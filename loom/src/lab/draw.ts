// What the canvas shows of a lab, and how it looks.

import type { Core, ElementDefinition, StylesheetJson } from "cytoscape";

import { controllersOf, sessions } from "./controllers";
import type { Design } from "./design.svelte";
import type { LabLink } from "../api/types.gen";
import type { Link, Node } from "./document";
import type { Live } from "./live.svelte";
import { isDark, tones } from "../ui/theme";
import { fills, frames } from "./looks";

export interface Colours {
  text: string;
  ground: string;
  line: string;
  dim: string;
  accent: string;
  good: string;
  warn: string;
  bad: string;
  dark: boolean;
}

/** colours reads the page's colours. */
export function colours(): Colours {
  return { ...tones("text", "ground", "line", "dim", "accent", "good", "warn", "bad"), dark: isDark() };
}

/** machines are the colours of a testbed's, as Testbed.svelte has them. */
const machines = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e15759", "#76b7b2", "#edc948", "#9c755f"];

/** sheet is the style of the drawing. */
export function sheet(c: Colours, large = false): StylesheetJson {
  const fill = (name: string) => (fills[name] ?? fills.host)[c.dark ? 1 : 0];
  return [
    { selector: "node", style: { label: "data(label)", shape: "data(shape)" as never, width: 44, height: 34, "font-size": 12, "min-zoomed-font-size": 7, color: c.text, "text-valign": "center", "text-halign": "center", "background-color": fill("host"), "border-width": 1, "border-color": c.dim, "text-outline-color": c.ground, "text-outline-width": large ? 0 : 1 } },
    ...Object.keys(fills).map((name) => ({ selector: `node.${name}`, style: { "background-color": fill(name) } })),
    ...machines.map((colour, i) => ({ selector: `node.m${i}`, style: { "background-color": colour } })),
    { selector: "node.small", style: { width: 30, height: 30 } },
    { selector: "node.group", style: { "background-opacity": 0.12, "border-width": 1, "border-style": "dashed", "text-valign": "top", "font-size": 13, padding: "18px" } },
    ...Object.entries(frames).map(([name, colour]) => ({ selector: `node.group.${name}`, style: { "background-color": colour, "border-color": colour } })),
    { selector: "node.note", style: { shape: "round-rectangle", width: "label", height: "label", padding: "6px", "background-color": c.dark ? "#4a4420" : "#fdf6c9", "border-color": c.line, "text-wrap": "wrap", "text-max-width": "180px", "text-outline-width": 0 } as never },
    { selector: "node.controller", style: { shape: "round-tag", "background-color": c.accent, "text-valign": "top" } },
    { selector: "node.service", style: { shape: "ellipse", width: 20, height: 20, "background-color": c.accent, "text-valign": "bottom" } },
    { selector: "edge", style: { width: 2, "line-color": c.dim, "curve-style": "bezier", label: "data(label)", "font-size": 10, "min-zoomed-font-size": 8, color: c.text, "text-background-color": c.ground, "text-background-opacity": 0.8, "text-background-padding": "1px" } },
    { selector: "edge.straight", style: { "curve-style": "haystack", "haystack-radius": 0 } as never },
    ...[1, 2, 3, 4, 5, 6, 7, 8].map((w) => ({ selector: `edge.w${w}`, style: { width: w } })),
    { selector: "edge.dashed, edge.dotted", style: { "line-style": "dashed" } },
    { selector: "edge.dotted", style: { "line-style": "dotted" } },
    ...Object.entries(frames).map(([name, colour]) => ({ selector: `edge.${name}`, style: { "line-color": colour } })),
    { selector: "node.ghost", style: { width: 6, height: 6, events: "no", "background-color": c.accent } as never },
    { selector: "edge.ghost", style: { width: 2, "line-style": "dashed", "line-color": c.accent, events: "no" } as never },
    { selector: "edge.ports", style: { "source-label": "data(from)", "target-label": "data(to)", "source-text-offset": 26, "target-text-offset": 26 } as never },
    { selector: "edge.served", style: { width: 3, "line-color": c.accent, "line-style": "dashed" } },
    { selector: "edge.rules", style: { width: 1, "line-color": c.accent, "line-style": "dotted" } },
    { selector: "edge.carries", style: { "line-color": c.good, "line-style": "solid" } },
    { selector: "edge.down", style: { "line-color": c.bad, "line-style": "dashed", width: 3 } },
    { selector: "edge.silent", style: { "line-color": c.warn, "line-style": "dotted", width: 3 } },
    { selector: "node.connected", style: { "border-color": c.good, "border-width": 3 } },
    { selector: "node.up", style: { "border-color": c.good, "border-width": 2 } },
    { selector: "node.disconnected", style: { "border-color": c.warn, "border-width": 3 } },
    { selector: "node.waiting", style: { opacity: 0.5 } },
    { selector: "node.working", style: { "border-color": c.warn, "border-width": 4 } },
    { selector: "node.done", style: { "border-color": c.good, "border-width": 4 } },
    { selector: "node.wrong, node.failed", style: { "border-color": c.bad, "border-width": 4, "border-style": "double" } },
    { selector: "edge.wrong", style: { "line-color": c.bad } },
    { selector: "node.from", style: { "border-color": c.accent, "border-width": 5 } },
    { selector: "node:selected", style: { "overlay-color": c.accent, "overlay-opacity": 0.25, "overlay-padding": 5 } },
    { selector: "edge:selected", style: { "overlay-color": c.accent, "overlay-opacity": 0.3, "overlay-padding": 4 } },
  ] as StylesheetJson;
}

/** placesOf counts, for each link, how many stand before it between the same nodes. */
export function placesOf(links: Link[]): Map<string, number> {
  const count = new Map<string, number>();
  return new Map(
    links.map((l) => {
      const key = [l.a, l.b].sort().join("\n") + (l.of === "eth1" ? "\neth1" : "");
      const n = count.get(key) ?? 0;
      count.set(key, n + 1);
      return [l.id, n];
    }),
  );
}

/** portsOf are the ports at both ends of a link, as far as they are known. */
function portsOf(l: Link, is?: LabLink): { from: string; to: string } {
  const text = (v: unknown) => (v ? String(v) : "");
  if (is) return is.a === l.a ? { from: text(is.a_port), to: text(is.b_port || is.b_interface) } : { from: text(is.b_port || is.b_interface), to: text(is.a_port) };
  return l.of === "link" ? { from: text(l.fields.a_port), to: text(l.fields.b_port) } : { from: text(l.fields.port), to: "" };
}

/** most is how many nodes are drawn with all that they may have: of more, links are straight and without names. */
export const most = 200;

/** elements returns what the canvas is to show. */
export function elements(design: Design, live: Live): ElementDefinition[] {
  const { lab, types, current, problems, mode } = design;
  const running = lab.name !== "" && live.lab?.name === lab.name;
  const wrong = new Set(problems.filter((p) => !p.lacks).map((p) => p.of));
  const wanted = design.shown;
  const loads = new Map((design.spread ? (design.mapped?.loads ?? []) : []).map((l, i) => [l.machine, `m${i % machines.length}`]));
  const machine = new Map((loads.size > 0 ? (design.mapped?.mapping ?? []) : []).map((m) => [m.node, loads.get(m.machine) ?? ""]));
  const out: ElementDefinition[] = [];
  const within = new Map<string, string>();
  const shown = new Map<string, Node>();
  for (const n of lab.nodes) {
    const type = types.of(n);
    if (wanted && !(type && wanted.includes(type.type))) continue;
    shown.set(n.id, n);
    const [x, y] = design.at(n);
    const classes = [type?.colour ?? "host", n.kind === "host" ? "small" : ""];
    classes.push(machine.get(n.name) ?? "");
    if (wrong.has(n.id)) classes.push("wrong");
    if (mode.does === "connect" && mode.from === n.id) classes.push("from");
    const step = live.steps.get(n.name);
    const is = running ? live.nodes.get(n.name) : undefined;
    if (step && live.job?.lab === lab.name) classes.push(step);
    else if (is) classes.push(is.control || "up");
    out.push({ group: "nodes", data: { id: n.id, label: n.name, shape: type?.shape ?? "ellipse" }, position: { x, y }, classes: classes.join(" ") });
  }
  for (const g of lab.groups) {
    const inside = g.nodes.filter((n) => shown.has(n));
    if (inside.length === 0) continue;
    out.unshift({ group: "nodes", data: { id: g.id, label: g.name, shape: "round-rectangle" }, classes: `group ${frames[g.colour] ? g.colour : "grey"}` });
    for (const n of inside) within.set(n, g.id);
  }
  for (const e of out) if (within.has(e.data.id!)) e.data.parent = within.get(e.data.id!);
  for (const n of lab.notes) out.push({ group: "nodes", data: { id: n.id, label: n.text, shape: "rectangle" }, position: { x: n.at[0], y: n.at[1] }, classes: "note" });
  if (current.service) services(design, live, shown, out);
  else links(design, live, running, wrong, shown, out);
  if (current.controllers) controllers(design, live, shown, out);
  return out;
}

function links(design: Design, live: Live, running: boolean, wrong: Set<string | undefined>, shown: Map<string, Node>, out: ElementDefinition[]) {
  const large = design.lab.nodes.length > most;
  const places = running ? placesOf(design.lab.links) : new Map<string, number>();
  for (const l of design.lab.links) {
    if (!shown.has(l.a) || !shown.has(l.b)) continue;
    const type = design.types.link(l);
    if (design.current.links && !design.current.links.includes(type?.type ?? "")) continue;
    const classes = [large ? "straight" : "", type?.width ? `w${type.width}` : l.of === "link" ? "" : "w1", type?.line ?? "", type?.colour ?? "", wrong.has(l.id) ? "wrong" : ""];
    const is = running ? live.linkOf(l.a, l.b, places.get(l.id) ?? 0, l.of === "eth1") : undefined;
    if (is?.state && is.state !== "up") classes.push(is.state);
    const ports = design.ports && !large ? portsOf(l, is) : { from: "", to: "" };
    if (ports.from || ports.to) classes.push("ports");
    out.push({ group: "edges", data: { id: l.id, source: l.a, target: l.b, label: large ? "" : label(l, is), ...ports }, classes: classes.join(" ") });
  }
}

/** label is what a link does to packets. */
function label(l: Link, is?: { state?: string; rate_mbit?: number; delay_ms?: number; loss_percent?: number }): string {
  if (is) return [is.state !== "up" ? is.state : "", is.rate_mbit ? `${is.rate_mbit} Mbit/s` : "", is.delay_ms ? `${is.delay_ms} ms` : "", is.loss_percent ? `${is.loss_percent} %` : ""].filter(Boolean).join(", ");
  if (l.of === "eth1") return "eth1";
  return [l.fields.rate, l.fields.delay, l.fields.loss].filter((v) => typeof v === "string").join(", ");
}

/** looks are the classes of services, by their states. */
const looks: Record<string, string> = { up: "carries", degraded: "silent", down: "down", failed: "down" };

function services(design: Design, live: Live, shown: Map<string, Node>, out: ElementDefinition[]) {
  for (const s of design.lab.services) {
    const ends = s.ends.filter((e) => shown.has(e));
    if (s.type !== design.current.service || ends.length < 2) continue;
    const classes = `served ${looks[live.services.states.get(s.name) ?? ""] ?? ""}`;
    if (ends.length === 2) {
      out.push({ group: "edges", data: { id: `service/${s.name}`, source: ends[0], target: ends[1], label: s.name }, classes });
      continue;
    }
    const at = ends.map((e) => design.at(shown.get(e)!));
    const mean = (axis: 0 | 1) => at.reduce((sum, p) => sum + p[axis], 0) / at.length;
    out.push({ group: "nodes", data: { id: `service/${s.name}`, label: s.name, shape: "ellipse" }, position: { x: mean(0), y: mean(1) }, classes: "service", grabbable: false });
    for (const e of ends) out.push({ group: "edges", data: { id: `service/${s.name}/${e}`, source: `service/${s.name}`, target: e, label: "" }, classes });
  }
}

function controllers(design: Design, live: Live, shown: Map<string, Node>, out: ElementDefinition[]) {
  const running = live.lab?.name === design.lab.name ? live.lab : null;
  const drawn = sessions(design.lab, running).filter((s) => shown.has(s.node));
  const at = [...shown.values()].map((n) => design.at(n));
  const all = [...new Set([...drawn.map((s) => s.controller), ...controllersOf(design.lab)])];
  const [left, right, top] = at.length > 0 ? [Math.min(...at.map((p) => p[0])), Math.max(...at.map((p) => p[0])), Math.min(...at.map((p) => p[1]))] : [0, 300, 140];
  const [middle, wide] = [(left + right) / 2, Math.max(right - left, 220 * all.length)];
  all.forEach((address, i) => out.push({ group: "nodes", data: { id: `controller/${address}`, label: address, shape: "round-tag" }, position: { x: middle + wide * ((i + 1) / (all.length + 1) - 0.5), y: top - 140 }, classes: `controller ${design.mode.does === "connect" && design.mode.from === `controller/${address}` ? "from" : ""}`, grabbable: false }));
  for (const s of drawn) {
    const label = [s.how.startsWith("in band, linked") ? "in band" : "", s.role].filter(Boolean).join(", ");
    out.push({ group: "edges", data: { id: `controller/${s.controller}/${s.node}`, source: `controller/${s.controller}`, target: s.node, label }, classes: `rules ${s.state === "disconnected" ? "down" : s.role === "slave" ? "" : s.state ? "carries" : ""}` });
  }
}

export type { Core };
