import cytoscape from "cytoscape";

import { cableEnds, cableKey, hostKey, hostName, place, short, titled, type Known } from "../api/known";
import type { Host, Link, PortStats, Switch } from "../api/types.gen";
import { arrange, type Point } from "./layout";
import { mapStyle, tile } from "./mapstyle";
import { useStep } from "./pulse";
import { bitsText } from "./units";

/** Chosen is what the user has clicked. */
export interface Chosen {
  kind: "switch" | "host" | "link" | "";
  id: string;
}

const hostsMost = 800; // nodes up to which hosts are drawn without being asked for
const sharpMost = 400; // and up to which every pixel of a fine screen is drawn
const movedMost = 100; // switches up to which all is drawn anew while the map is moved; above, a picture of it is moved
const labelsMost = 80; // switches up to which all have their names, however small
const [rim, bars] = [30, 64]; // pixels that are left free around the map, and where bars float over it
const signLeast = 11; // pixels of half a switch from which its sign is drawn
const leastBits = 1000; // a second, that a link has a label for
const placesMost = 5000; // that are kept
const stored = "loom.places";

const longest = 24; // characters of a name on the map

/** labelOf returns what a switch is called on the map, and the role of the controller unless it is master. */
export function labelOf(s: Switch, called: string): string {
  const all = [...called];
  const name = all.length > longest ? `${all.slice(0, longest).join("")}… (${short(s.dpid)})` : all.join("");
  return s.connected && s.role && s.role !== "master" ? `${name}\n${s.role}` : name;
}

/**
 * NetMap draws the network on a canvas and keeps it up to date: per event, only
 * what the event is about. Ids begin with s, h, l, a and c for switches, hosts, links,
 * the access links of hosts, and where somebody claims to be a host.
 */
export class NetMap {
  private cy: cytoscape.Core;
  private places = new Map<string, Point>(readPlaces());
  private waiting = new Set<string>(); // of the map, to be drawn anew
  private timer = 0;
  private directions = new Map<string, Set<string>>(); // that are up: their sources, by cable
  private drawnGone = new Set<string>(); // cables that are drawn, and gone
  private beside = new Map<string, Set<string>>(); // cables, by the two switches that they join
  private told: number[] = []; // when the events happened that are to be drawn
  private marked: Chosen = { kind: "", id: "" };
  private way: { dpids: string[]; cables: string[] } = { dpids: [], cables: [] };
  private treePorts = new Set<string>();
  private stats: PortStats[] = [];
  private hosts = true; // are drawn
  private whole = true; // is shown, until the user moves it
  private size: ResizeObserver;
  private plain?: boolean; // switches are too small for their signs

  constructor(
    private box: HTMLElement,
    private known: Known,
    private choose: (c: Chosen) => void,
    private asked?: boolean, // whether hosts are drawn; undefined: if there are not too many
    private still = false, // nothing can be moved, and the page scrolls over it
  ) {
    this.cy = cytoscape({
      container: box,
      style: mapStyle(known.switches.size > labelsMost),
      minZoom: 0.02,
      maxZoom: 4,
      pixelRatio: known.switches.size > sharpMost ? 1 : "auto",
      textureOnViewport: known.switches.size > movedMost,
      hideLabelsOnViewport: known.switches.size > sharpMost,
      boxSelectionEnabled: false,
      userZoomingEnabled: !still,
      userPanningEnabled: !still,
      autoungrabify: still,
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
    this.cy.on("scrollzoom pinchzoom dragpan", () => (this.whole = false));
    this.cy.on("zoom", () => this.detail());
    this.size = new ResizeObserver(() => {
      this.cy.resize();
      if (this.whole) this.fit();
    });
    this.size.observe(box);
    this.all();
  }

  end() {
    clearTimeout(this.timer);
    this.size.disconnect();
    this.cy.destroy();
  }

  /** restyle follows a change between light and dark. */
  restyle() {
    this.cy.style(mapStyle(this.known.switches.size > labelsMost));
  }

  /** withHosts is whether hosts are drawn, as was asked or as many as there are. */
  get withHosts(): boolean {
    return this.asked ?? this.known.switches.size + this.known.hosts.size <= hostsMost;
  }

  /** ask says whether hosts are to be drawn. */
  ask(hosts?: boolean) {
    if (this.asked === hosts) return;
    this.asked = hosts;
    if (this.hosts !== this.withHosts) this.all();
  }

  /** all draws everything anew. */
  all() {
    const k = this.known;
    this.hosts = this.withHosts;
    for (const m of [this.directions, this.beside, this.drawnGone, this.waiting]) m.clear();
    for (const l of k.links.values()) this.count(l, true);
    const cables = this.cables();
    const nodes = [...k.switches.keys()].map((d) => "s " + d);
    const links = [...cables].map((c): [string, string] => {
      const [a, b] = cableEnds(c).map(dpidOf);
      return ["s " + a, "s " + b];
    });
    if (this.hosts) {
      for (const [key, h] of k.hosts) {
        nodes.push("h " + key);
        links.push(["h " + key, "s " + h.at?.dpid]);
      }
    }
    const arranged = arrange(nodes, links, this.places);
    this.places = new Map([...arranged].map(([id, p]) => [id, this.places.get(id) ?? p]));
    this.cy.batch(() => {
      this.cy.elements().remove();
      this.cy.add([...k.switches.values()].map((s) => this.switchElement(s)));
      for (const c of cables) this.drawCable("l " + c);
      if (this.hosts) for (const key of k.hosts.keys()) this.drawHost("h " + key);
      this.bend(this.beside.keys());
    });
    this.box.dataset.drawn = String(k.switches.size);
    this.mark(this.marked);
    this.path(this.way.dpids, this.way.cables);
    this.tree([...this.treePorts]);
    this.rates(this.stats);
    this.fit();
    this.plain = undefined;
    this.detail();
  }

  /** cables are those that are there, and those that are gone and may come again. */
  private cables(): Set<string> {
    const out = new Set(this.directions.keys());
    for (const g of this.known.gone.values()) out.add(cableKey(g.link));
    return out;
  }

  private count(l: Link, up: boolean) {
    const key = cableKey(l);
    let set = this.directions.get(key);
    if (!set) this.directions.set(key, (set = new Set()));
    if (up) set.add(place(l.src));
    else set.delete(place(l.src));
    if (set.size === 0) this.directions.delete(key);
  }

  /** changed notes what an event is about; it is drawn soon. */
  changed(subject: string, event: Record<string, unknown>, time = Date.now()) {
    const e = event as { switch?: Switch; dpid?: string; link?: Link; removed?: boolean; host?: Host };
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
      case "southbound.PortChanged":
      case "discovery.PortRoleChanged": // links that are gone may have lost their place
        break;
      default:
        return;
    }
    this.told.push(time);
    this.soon();
  }

  /** soon draws what waits, and drops what is gone for long. */
  soon() {
    this.timer ||= window.setTimeout(() => this.draw(), 30);
  }

  private draw() {
    this.timer = 0;
    const ids = [...this.waiting];
    this.waiting.clear();
    this.cy.batch(() => {
      const fresh = new Set(ids.filter((i) => i.startsWith("s ") && this.drawSwitch(i)).map((i) => i.slice(2)));
      if (fresh.size > 0) ids.push(...this.at(fresh));
      const gone = new Set([...this.known.gone.values()].map((g) => cableKey(g.link)));
      for (const key of this.drawnGone) if (!gone.has(key)) ids.push("l " + key);
      const cables = new Set(ids.filter((i) => i.startsWith("l ")));
      for (const id of cables) this.drawCable(id);
      this.bend([...cables].map((id) => pairOf(id.slice(2))));
      for (const id of new Set(ids)) if (id.startsWith("h ")) this.drawHost(id);
    });
    // For measurements (test/scale.mjs).
    dispatchEvent(new CustomEvent("loom-drawn", { detail: this.told }));
    this.told = [];
  }

  /** at returns the links and hosts of switches. */
  private at(dpids: Set<string>): string[] {
    const out = [...this.cables()].filter((c) => cableEnds(c).some((end) => dpids.has(dpidOf(end)))).map((c) => "l " + c);
    if (this.hosts) for (const [key, h] of this.known.hosts) if (dpids.has(h.at?.dpid ?? "") || dpids.has(h.claimed_at?.dpid ?? "")) out.push("h " + key);
    return out;
  }

  /** drawSwitch reports whether a switch is new on the map. */
  private drawSwitch(id: string): boolean {
    const s = this.known.switches.get(id.slice(2));
    const old = this.cy.getElementById(id);
    if (!s) {
      for (const e of old.connectedEdges().toArray()) this.lose(e.id());
      old.remove();
      return false;
    }
    if (old.nonempty()) {
      old.data(this.switchElement(s).data);
      return false;
    }
    this.cy.add(this.switchElement(s)).toggleClass("plain", this.plain ?? false);
    return true;
  }

  private drawCable(id: string) {
    const key = id.slice(2);
    const old = this.cy.getElementById(id);
    const [a, b] = cableEnds(key);
    const up = this.directions.get(key);
    const gone = !up && (this.known.gone.has(`${a}-${b}`) || this.known.gone.has(`${b}-${a}`));
    if ((!up && !gone) || !this.known.switches.has(dpidOf(a)) || !this.known.switches.has(dpidOf(b))) {
      this.lose(id);
      old.remove();
      return;
    }
    const l = up ? this.known.links.get(up.has(a) ? `${a}-${b}` : `${b}-${a}`) : undefined;
    const data = { state: gone ? "gone" : up!.size === 2 ? (l?.state ?? "up") : "one_way" };
    if (gone) this.drawnGone.add(key);
    else this.drawnGone.delete(key);
    if (old.nonempty()) {
      old.data(gone ? { ...data, there: "", back: "", use: 0, width: widthOf(0) } : data);
      return;
    }
    const pair = pairOf(key);
    this.beside.set(pair, (this.beside.get(pair) ?? new Set()).add(key));
    this.cy.add({ group: "edges", data: { id, kind: "link", source: "s " + dpidOf(a), target: "s " + dpidOf(b), ...data } });
    if (this.way.cables.includes(key)) this.cy.getElementById(id).addClass("path");
  }

  /** lose forgets about a link that is not drawn any more. */
  private lose(id: string) {
    const key = id.slice(2);
    this.drawnGone.delete(key);
    const pair = this.beside.get(pairOf(key));
    pair?.delete(key);
    if (pair?.size === 0) this.beside.delete(pairOf(key));
  }

  /** bend has links that join the same switches, or a switch with itself, lie beside each other. */
  private bend(pairs: Iterable<string>) {
    for (const pair of pairs) {
      const keys = this.beside.get(pair);
      if (!keys) continue;
      const [a, b] = pair.split(" ");
      for (const key of keys) this.cy.getElementById("l " + key).data("bent", keys.size > 1 || a === b);
    }
  }

  private drawHost(id: string) {
    const key = id.slice(2);
    const h = this.known.hosts.get(key);
    const at = h?.at?.dpid;
    const old = this.cy.getElementById(id);
    if (!h || !at || !this.known.switches.has(at)) {
      old.remove(); // and its edges
      if (this.places.size > placesMost) this.places.delete(id);
      return;
    }
    const claim = h.claimed_at?.dpid && this.known.switches.has(h.claimed_at.dpid) ? h.claimed_at : undefined;
    const data = { id, kind: "host", label: hostName(h), state: claim ? "claimed" : "up" };
    if (old.empty()) this.cy.add({ group: "nodes", data, position: this.place(id, "s " + at) });
    else old.data(data);
    this.attach("a " + key, id, "s " + at, "access");
    if (claim) this.attach("c " + key, id, "s " + claim.dpid, "claim");
    else this.cy.getElementById("c " + key).remove();
  }

  private attach(id: string, source: string, target: string, state: string) {
    const old = this.cy.getElementById(id);
    if (old.nonempty() && old.target().id() !== target) old.move({ target });
    else if (old.empty()) this.cy.add({ group: "edges", data: { id, kind: "host", source, target, state } });
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
    return { group: "nodes", data: { id, kind: "switch", label: labelOf(s, titled(this.known, s.dpid)), state: s.connected ? "up" : "gone", role: s.connected ? s.role : "" }, position: this.place(id) };
  }

  /** rates shows what both ends of each link send; none: it is not known. */
  rates(stats: PortStats[]) {
    this.stats = stats;
    const by = new Map(stats.map((s) => [place(s), s]));
    const text = (bits: number) => (bits >= leastBits ? bitsText(bits) : "");
    const set = (id: string, there: number, back: number, capacity: number) => {
      const e = this.cy.getElementById(id);
      const share = Math.max(there, back) / (capacity || Infinity);
      const data = { there: text(there), back: text(back), use: Math.max(there, back) < leastBits ? 0 : Math.max(1, useStep(share)), width: widthOf(share) };
      if (e.nonempty() && (["there", "back", "use"] as const).some((k) => e.data(k) !== data[k])) e.data(data);
    };
    this.cy.batch(() => {
      for (const key of this.directions.keys()) {
        const [a, b] = cableEnds(key);
        const capacity = (this.known.links.get(`${a}-${b}`) ?? this.known.links.get(`${b}-${a}`))?.capacity_kbps;
        set("l " + key, by.get(a)?.tx_bits_per_s ?? 0, by.get(b)?.tx_bits_per_s ?? 0, 1000 * Number(capacity ?? 0));
      }
      if (!this.hosts) return;
      for (const [key, h] of this.known.hosts) {
        const s = by.get(place(h.at));
        set("a " + key, s?.rx_bits_per_s ?? 0, s?.tx_bits_per_s ?? 0, 1000 * (this.known.ports.get(h.at?.dpid ?? "")?.get(h.at?.port ?? 0)?.speed_kbps ?? 0));
      }
    });
  }

  /** tree marks the links of the broadcast tree. */
  tree(ports: string[]) {
    this.treePorts = new Set(ports);
    this.cy.batch(() => {
      for (const key of this.directions.keys()) {
        const e = this.cy.getElementById("l " + key);
        const is = cableEnds(key).every((end) => this.treePorts.has(end));
        if (e.nonempty() && Boolean(e.data("tree")) !== is) e.data("tree", is);
      }
    });
  }

  /** path marks the links and switches of a path; the hops' ends are places. */
  path(dpids: string[], cables: string[]) {
    this.way = { dpids, cables };
    this.cy.batch(() => {
      this.cy.elements(".path").removeClass("path");
      for (const d of dpids) this.cy.getElementById("s " + d).addClass("path");
      for (const c of cables) this.cy.getElementById("l " + c).addClass("path");
    });
  }

  /** mark marks what the user has chosen. */
  mark(c: Chosen) {
    this.marked = c;
    this.cy.batch(() => {
      this.cy.elements(".chosen, .near").removeClass("chosen near");
      if (c.kind) {
        const e = this.cy.getElementById((c.kind === "switch" ? "s " : c.kind === "host" ? "h " : "l ") + c.id).addClass("chosen");
        if (e.isNode()) e.connectedEdges().addClass("near");
      }
    });
  }

  /** detail leaves the signs of switches out where they are too small for them. */
  private detail() {
    const plain = (this.cy.zoom() * tile) / 2 < signLeast;
    if (plain === this.plain) return;
    this.plain = plain;
    this.cy.batch(() => this.cy.nodes("[kind = 'switch']").toggleClass("plain", plain));
  }

  fit() {
    this.whole = true;
    const box = this.cy.elements().boundingBox();
    if (box.w === 0 || box.h === 0) return;
    const [wide, high] = [this.cy.width(), this.cy.height()];
    const zoom = Math.max(0.02, Math.min(1.6, (wide - 2 * rim) / box.w, (high - 2 * (this.still ? rim : bars)) / box.h));
    this.cy.viewport({ zoom, pan: { x: wide / 2 - (zoom * (box.x1 + box.x2)) / 2, y: high / 2 - (zoom * (box.y1 + box.y2)) / 2 } });
  }
  zoom(by: number) {
    this.whole = false;
    this.cy.zoom({ level: this.cy.zoom() * by, renderedPosition: { x: this.cy.width() / 2, y: this.cy.height() / 2 } });
  }
  pan(x: number, y: number) {
    this.whole = false;
    this.cy.panBy({ x, y });
  }
  /** arrangeAnew forgets where nodes were moved to. */
  arrangeAnew() {
    this.places.clear();
    writePlaces(this.places);
    this.all();
  }
}

/** widthOf is how wide a link is that carries a share of what it can. */
const widthOf = (share: number) => 2.6 + 3.6 * Math.min(1, share || 0);

const dpidOf = (end: string) => end.slice(0, end.indexOf(":"));

/** pairOf names the two switches that a cable joins. */
const pairOf = (cable: string) => cableEnds(cable).map(dpidOf).sort().join(" ");

function readPlaces(): Array<[string, Point]> {
  try {
    return JSON.parse(sessionStorage.getItem(stored) ?? "[]") as Array<[string, Point]>;
  } catch {
    return [];
  }
}
function writePlaces(places: Map<string, Point>) {
  try {
    sessionStorage.setItem(stored, JSON.stringify([...places].slice(0, placesMost)));
  } catch {
    // No room: positions are arranged anew after a reload.
  }
}
