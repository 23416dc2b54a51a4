import cytoscape from "cytoscape";

import { cableKey, hostKey, hostName, place, short, type Known } from "../api/known";
import type { Link, PortStats, Switch } from "../api/types.gen";
import { arrange, type Point } from "./layout";

/** Chosen is what the user has clicked. */
export interface Chosen {
  kind: "switch" | "host" | "link" | "";
  id: string;
}

const hostsMost = 800; // nodes up to which hosts are drawn without being asked for
const stored = "loom.places";

/**
 * NetMap draws the network on a canvas and keeps it up to date: per event, only
 * what the event is about.
 */
export class NetMap {
  private cy: cytoscape.Core;
  private places = new Map<string, Point>(readPlaces());
  private waiting = new Set<string>(); // of the map, to be drawn anew
  private timer = 0;
  private ends = new Map<string, Set<string>>(); // directions that are up, by cable
  private told: number[] = []; // when the events happened that are to be drawn
  /** hosts says whether hosts are drawn. */
  hosts = true;

  constructor(
    private box: HTMLElement,
    private known: Known,
    private choose: (c: Chosen) => void,
  ) {
    this.cy = cytoscape({
      container: box,
      style: style(),
      minZoom: 0.02,
      maxZoom: 4,
      pixelRatio: 1,
      textureOnViewport: true,
      hideLabelsOnViewport: true,
      boxSelectionEnabled: false,
    });
    this.cy.on("tap", "node,edge", (e) => {
      const d = e.target.data() as { kind: Chosen["kind"]; id: string };
      this.choose({ kind: d.kind, id: d.id.slice(2) });
    });
    this.cy.on("tap", (e) => {
      if (e.target === this.cy) this.choose({ kind: "", id: "" });
    });
    this.cy.on("dragfree", "node", (e) => {
      this.places.set(e.target.id(), { ...e.target.position() });
      writePlaces(this.places);
    });
  }

  end() {
    clearTimeout(this.timer);
    this.cy.destroy();
  }

  /** restyle follows a change between light and dark. */
  restyle() {
    this.cy.style(style());
  }

  /** all draws everything anew. */
  all() {
    const k = this.known;
    if (this.hosts && k.switches.size + k.hosts.size > hostsMost) this.hosts = false;
    this.ends.clear();
    for (const l of k.links.values()) this.count(l, true);
    const nodes = [...k.switches.keys()].map((d) => "s " + d);
    const cables = this.cables();
    const links = [...cables.values()].map((l): [string, string] => ["s " + l.src!.dpid, "s " + l.dst!.dpid]);
    if (this.hosts) {
      for (const h of k.hosts.values()) {
        nodes.push("h " + hostKey(h));
        links.push(["h " + hostKey(h), "s " + h.at?.dpid]);
      }
    }
    this.places = new Map([...arrange(nodes, links, this.places)].map(([id, p]) => [id, this.places.get(id) ?? p]));
    const elements: cytoscape.ElementDefinition[] = [];
    for (const s of k.switches.values()) elements.push(this.switchElement(s));
    for (const [key, l] of cables) {
      const e = this.cableElement(key, l);
      if (e) elements.push(e);
    }
    if (this.hosts) for (const key of k.hosts.keys()) elements.push(...this.hostElements(key));
    this.cy.batch(() => {
      this.cy.elements().remove();
      this.cy.add(elements);
    });
    this.box.dataset.drawn = String(k.switches.size);
    this.fit();
  }

  private cables(): Map<string, Link> {
    const out = new Map<string, Link>();
    for (const l of this.known.links.values()) out.set(cableKey(l), l);
    return out;
  }

  private count(l: Link, up: boolean) {
    const key = cableKey(l);
    let set = this.ends.get(key);
    if (!set) this.ends.set(key, (set = new Set()));
    if (up) set.add(place(l.src));
    else if (set.delete(place(l.src)) && set.size === 0) this.ends.delete(key);
  }

  /** changed notes what an event is about; it is drawn at the next frame. */
  changed(subject: string, event: Record<string, unknown>, time = Date.now()) {
    const e = event as { switch?: Switch; dpid?: string; link?: Link; removed?: boolean; host?: Parameters<typeof hostKey>[0] };
    switch (subject) {
      case "southbound.SwitchChanged":
        this.waiting.add("s " + e.switch!.dpid);
        break;
      case "southbound.SwitchForgotten":
        this.waiting.add("s " + e.dpid);
        break;
      case "discovery.LinkChanged":
        this.count(e.link!, !e.removed);
        this.waiting.add("l " + cableKey(e.link!));
        break;
      case "hosts.HostChanged":
        if (this.hosts) this.waiting.add("h " + hostKey(e.host!));
        break;
      default:
        return;
    }
    this.told.push(time);
    this.timer ||= window.setTimeout(() => this.draw(), 30);
  }

  private draw() {
    this.timer = 0;
    const ids = [...this.waiting].sort(); // hosts, links, switches
    this.waiting.clear();
    this.cy.batch(() => {
      for (const id of ids.filter((i) => i.startsWith("s "))) this.drawSwitch(id);
      for (const id of ids.filter((i) => i.startsWith("l "))) this.drawCable(id);
      for (const id of ids.filter((i) => i.startsWith("h "))) this.drawHost(id);
    });
    // For measurements (test/scale.mjs).
    dispatchEvent(new CustomEvent("loom-drawn", { detail: this.told }));
    this.told = [];
  }

  private drawSwitch(id: string) {
    const s = this.known.switches.get(id.slice(2));
    const old = this.cy.getElementById(id);
    if (!s) old.remove();
    else if (old.nonempty()) old.data(this.switchElement(s).data);
    else this.cy.add(this.switchElement(s));
  }

  private drawCable(id: string) {
    const key = id.slice(2);
    const old = this.cy.getElementById(id);
    const l = [...(this.ends.get(key) ?? [])].map((from) => this.known.links.get(from + "-" + other(key, from))).find((x) => x !== undefined);
    const e = l ? this.cableElement(key, l) : undefined;
    if (!e) {
      if (old.nonempty()) old.data("state", "gone");
    } else if (old.nonempty()) old.data(e.data);
    else this.cy.add(e);
  }

  private drawHost(id: string) {
    this.cy.getElementById(id).remove();
    this.cy.add(this.hostElements(id.slice(2)));
  }

  private place(id: string, beside?: string): Point {
    let p = this.places.get(id);
    if (!p) {
      const b = beside ? this.places.get(beside) : undefined;
      const angle = (this.places.size * 2.4) % (2 * Math.PI);
      p = { x: (b?.x ?? 0) + 80 * Math.cos(angle), y: (b?.y ?? 0) + 80 * Math.sin(angle) };
      this.places.set(id, p);
    }
    return { ...p };
  }

  private switchElement(s: Switch): cytoscape.ElementDefinition {
    const id = "s " + s.dpid;
    return { group: "nodes", data: { id, kind: "switch", label: short(s.dpid), state: s.connected ? "up" : "gone" }, position: this.place(id) };
  }

  private cableElement(key: string, l: Link): cytoscape.ElementDefinition | undefined {
    if (!this.known.switches.has(l.src!.dpid!) || !this.known.switches.has(l.dst!.dpid!)) return undefined;
    const both = this.ends.get(key)?.size === 2;
    return { group: "edges", data: { id: "l " + key, kind: "link", source: "s " + l.src!.dpid, target: "s " + l.dst!.dpid, state: both ? l.state : "one_way" } };
  }

  private hostElements(key: string): cytoscape.ElementDefinition[] {
    const h = this.known.hosts.get(key);
    if (!h?.at?.dpid || !this.known.switches.has(h.at.dpid)) return [];
    const [id, at] = ["h " + key, "s " + h.at.dpid];
    return [
      { group: "nodes", data: { id, kind: "host", label: hostName(h), state: "up" }, position: this.place(id, at) },
      { group: "edges", data: { id: "a " + key, kind: "host", source: id, target: at, state: "access" } },
    ];
  }

  /** rates shows how much of their capacity links carry, in percent. */
  rates(stats: PortStats[]) {
    const by = new Map(stats.map((s) => [place(s), Math.max(s.tx_bits_per_s ?? 0, s.rx_bits_per_s ?? 0)]));
    this.cy.batch(() => {
      for (const [key] of this.ends) {
        const e = this.cy.getElementById("l " + key);
        if (e.empty()) continue;
        const bits = Math.max(...key.split("-").map((end) => by.get(end) ?? 0));
        const text = bits >= 1000 ? bitsText(bits) : "";
        if (e.data("label") !== text) e.data({ label: text, busy: Math.min(6, Math.log10(Math.max(1, bits / 1000))) });
      }
    });
  }

  /** tree marks the links of the broadcast tree. */
  tree(ports: string[]) {
    const on = new Set(ports);
    this.cy.batch(() => {
      for (const [key] of this.ends) {
        const e = this.cy.getElementById("l " + key);
        const is = key.split("-").every((end) => on.has(end));
        if (e.nonempty() && e.data("tree") !== is) e.data("tree", is);
      }
    });
  }

  /** path marks the links and switches of a path; the hops' ends are places. */
  path(dpids: string[], cables: string[]) {
    this.cy.batch(() => {
      this.cy.elements(".path").removeClass("path");
      for (const d of dpids) this.cy.getElementById("s " + d).addClass("path");
      for (const c of cables) this.cy.getElementById("l " + c).addClass("path");
    });
  }

  /** mark marks what the user has chosen. */
  mark(c: Chosen) {
    this.cy.batch(() => {
      this.cy.elements(".chosen").removeClass("chosen");
      if (c.kind) this.cy.getElementById((c.kind === "switch" ? "s " : c.kind === "host" ? "h " : "l ") + c.id).addClass("chosen");
    });
  }

  fit() {
    this.cy.fit(undefined, 30);
    if (this.cy.zoom() > 1.6) {
      this.cy.zoom(1.6);
      this.cy.center();
    }
  }
  zoom(by: number) {
    this.cy.zoom({ level: this.cy.zoom() * by, renderedPosition: { x: this.cy.width() / 2, y: this.cy.height() / 2 } });
  }
  pan(x: number, y: number) {
    this.cy.panBy({ x, y });
  }
  /** arrangeAnew forgets where nodes were moved to. */
  arrangeAnew() {
    this.places.clear();
    writePlaces(this.places);
    this.all();
  }
}

const other = (key: string, end: string) => (key.startsWith(end + "-") ? key.slice(end.length + 1) : key.slice(0, key.length - end.length - 1));

/** bitsText writes a rate for people. */
export function bitsText(bits: number): string {
  for (const [unit, of] of [["Gb/s", 1e9], ["Mb/s", 1e6], ["kb/s", 1e3]] as const) {
    if (bits >= of) return `${(bits / of).toPrecision(3)} ${unit}`;
  }
  return `${Math.round(bits)} b/s`;
}

function readPlaces(): Array<[string, Point]> {
  try {
    return JSON.parse(sessionStorage.getItem(stored) ?? "[]") as Array<[string, Point]>;
  } catch {
    return [];
  }
}
function writePlaces(places: Map<string, Point>) {
  try {
    sessionStorage.setItem(stored, JSON.stringify([...places].slice(0, 5000)));
  } catch {
    // No room: positions are arranged anew after a reload.
  }
}

function style(): cytoscape.StylesheetJson {
  const of = getComputedStyle(document.documentElement);
  const c = (name: string) => of.getPropertyValue("--" + name).trim();
  return [
    { selector: "node", style: { "background-color": c("accent"), label: "data(label)", color: c("text"), "font-size": 11, "text-valign": "bottom", "text-margin-y": 3, "min-zoomed-font-size": 7, width: 26, height: 26 } },
    { selector: "node[kind = 'host']", style: { shape: "round-rectangle", "background-color": c("good"), width: 16, height: 16, "font-size": 9 } },
    { selector: "node[state = 'gone']", style: { "background-color": c("bad"), "background-opacity": 0.5 } },
    { selector: "edge", style: { width: 2, "line-color": c("dim"), "curve-style": "haystack", "haystack-radius": 0.3 } },
    { selector: "edge[label]", style: { label: "data(label)", "font-size": 9, color: c("text"), "min-zoomed-font-size": 8 } },
    { selector: "edge[busy > 0]", style: { width: "mapData(busy, 0, 6, 2, 9)" as unknown as number } },
    { selector: "edge[?tree]", style: { "line-color": c("accent") } },
    { selector: "edge[state = 'access']", style: { width: 1, "line-style": "dotted" } },
    { selector: "edge[state = 'gone'], edge[state = 'one_way']", style: { "line-color": c("bad"), "line-style": "dashed" } },
    { selector: "edge[state = 'waiting'], edge[state = 'held'], edge[state = 'dampened']", style: { "line-color": c("warn"), "line-style": "dashed" } },
    { selector: ".path", style: { "line-color": c("warn"), "background-color": c("warn"), width: 6 } },
    { selector: "node.path", style: { width: 30 } },
    { selector: ".chosen", style: { "overlay-color": c("accent"), "overlay-opacity": 0.35, "overlay-padding": 6 } },
  ];
}
