import { cableEnds, cableKey, calledAll, hostKey, hostName, place, short, type Known } from "../api/known";
import type { PortStats, Switch } from "../api/types.gen";
import { Drawing, type Hit } from "./drawing";
import { groupsOf, placeGroups, radius, seat } from "./groups";
import { listen } from "./input";
import { arrange } from "./layout";
import { markOf, readPlaces, writePlaces } from "./places";
import type { Replayed } from "./record";
import { emptyScene, few, type Group, type Line, type Node, type Point } from "./scene";
import { bitsText } from "./units";

/** Chosen is what the user has clicked. */
export interface Chosen {
  kind: "switch" | "host" | "link" | "";
  id: string;
}

const hostsMost = 800; // nodes up to which hosts are drawn without being asked for
const rim = 40; // pixels that are left free around the map
const above = 80; // and below the toolbar
const leastBits = 1000; // a second, that a link carries something from
const regrouped = 1.5; // times as many switches as were grouped, from which they are grouped anew
const longest = 24; // characters of a name on the map
const [hubLeast, hubTimes] = [4, 1.5]; // links of a switch that is drawn larger, and how many times as many as the mean
const tiny = 0.01; // share of a link that carries something, if what it can carry is not known

/** withHosts reports whether a map shows hosts without being asked: not of many switches. */
export const withHosts = (k: Known) => k.switches.size <= few && k.switches.size + k.hosts.size <= hostsMost;

/** labelOf returns what a switch is called on the map, and the role of the controller unless it is master. */
export function labelOf(s: Switch, called: string): string {
  const all = [...called];
  const name = all.length > longest ? `${all.slice(0, longest).join("")}… (${short(s.dpid)})` : all.join("");
  return s.connected && s.role && s.role !== "master" ? `${name}\n${s.role}` : name;
}

/**
 * NetMap keeps a drawing of the network up to date. Ids begin with s, h, l, a and c for switches, hosts, links, the
 * access links of hosts, and where somebody claims to be a host.
 */
export class NetMap {
  /** drawing is where the map is drawn. */
  readonly drawing: Drawing;
  private places = new Map<string, Point>();
  private groups: Array<{ label: string; members: string[] }> = []; // of a large map
  private middles: Point[] = [];
  private grouped = 0; // switches, when they were grouped
  private timer = 0;
  private events: number[] = []; // when the events happened that are to be drawn
  private way: { dpids: string[]; cables: string[]; hosts: string[] } = { dpids: [], cables: [], hosts: [] };
  private before: string[] = []; // links of the path before
  private treePorts = new Set<string>();
  private stats = new Map<string, PortStats>(); // by place
  private replayed?: Replayed;
  private whole = true; // is shown, until the user moves it
  private below = rim; // pixels that are left free for bars
  private size: ResizeObserver;
  private off: () => void;
  /** moved is called when the view has changed, built when what is drawn has. */
  moved = () => {};
  built = () => {};

  constructor(
    private box: HTMLElement,
    private known: Known,
    private choose: (c: Chosen) => void,
    private asked?: boolean, // whether hosts are drawn; undefined: if there are not too many
    private still = false, // nothing can be moved, and the page scrolls over it
  ) {
    this.drawing = new Drawing(box, emptyScene());
    this.off = listen(box, this.drawing, still, {
      tap: (hit) => this.tap(hit),
      drag: (id, to) => {
        this.places.set(id, to);
        const n = this.drawing.scene.nodes.get(id);
        if (n) Object.assign(n, to);
        this.drawing.soon();
      },
      drop: () => this.keep(),
      look: () => {
        this.whole = false;
        this.moved();
      },
    });
    this.size = new ResizeObserver(() => {
      this.drawing.size();
      if (this.whole) this.fit();
    });
    this.size.observe(box);
    this.drawing.size();
    this.all();
  }

  end() {
    clearTimeout(this.timer);
    this.size.disconnect();
    this.off();
    this.drawing.end();
  }

  /** restyle follows a change between light and dark. */
  restyle() {
    this.drawing.restyle();
  }

  private tap(hit: Hit) {
    if (hit.what === "group") {
      const g = this.drawing.scene.groups.find((g) => g.id === hit.id);
      if (g && !this.still) return this.open(g);
    }
    const kind = ({ s: "switch", h: "host", l: "link", a: "host", c: "host", t: "" } as const)[hit.id.slice(0, 1)] ?? "";
    this.choose({ kind, id: kind ? hit.id.slice(2) : "" });
  }

  /** open shows a group as large as it fits. */
  open(g: Group) {
    this.whole = false;
    const [wide, high] = [this.box.clientWidth, this.box.clientHeight];
    const k = (0.42 * Math.min(wide, high)) / g.r;
    this.drawing.look({ k, x: wide / 2 - k * g.x, y: high / 2 - k * g.y });
    this.moved();
  }

  /** show brings a point of the map into the middle. */
  show(p: Point) {
    const k = this.drawing.view.k;
    this.drawing.look({ k, x: this.box.clientWidth / 2 - k * p.x, y: this.box.clientHeight / 2 - k * p.y });
    this.whole = false;
    this.moved();
  }

  private get hosts(): boolean {
    return this.asked ?? withHosts(this.known);
  }

  /** ask says whether hosts are to be drawn. */
  ask(hosts?: boolean) {
    const was = this.hosts;
    this.asked = hosts;
    if (this.hosts !== was) this.all();
  }

  /** all places what has no place yet, draws everything anew, and shows it whole. */
  all() {
    if (this.places.size === 0) {
      const kept = readPlaces(this.marks());
      for (const [id, x, y] of kept?.at ?? []) this.places.set(id, { x, y });
      this.groups = (kept?.groups ?? []).map(([label, members]) => ({ label, members }));
      this.grouped = this.groups.reduce((n, g) => n + g.members.length, 0);
    }
    this.build();
    this.fit();
  }

  private marks(): string[] {
    return [...this.cables().keys()].map(markOf);
  }

  private keep() {
    writePlaces(this.marks(), this.places, this.groups.map((g) => [g.label, g.members]));
  }

  /** cables are the links that are there, with the ends that send, and those that are gone and may come again. */
  private cables(): Map<string, Set<string>> {
    const out = new Map<string, Set<string>>();
    for (const g of this.known.gone.values()) out.set(cableKey(g.link), new Set());
    for (const l of this.known.links.values()) out.set(cableKey(l), (out.get(cableKey(l)) ?? new Set()).add(place(l.src)));
    return out;
  }

  /** changed draws what an event is about soon. */
  changed(subject: string, time = Date.now()) {
    if (!/^(southbound\.(SwitchChanged|SwitchForgotten|PortChanged)|discovery\.(LinkChanged|PortRoleChanged)|hosts\.HostChanged)$/.test(subject)) return;
    this.events.push(time);
    this.soon();
  }

  /** soon draws what has changed: at once, but never for more than a part of the time. */
  soon(after = 30) {
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      const began = performance.now();
      this.build();
      const took = performance.now() - began;
      // For measurements (test/scale.mjs).
      dispatchEvent(new CustomEvent("loom-drawn", { detail: this.events }));
      this.events = [];
      if (took > 15) this.timer = window.setTimeout(() => ((this.timer = 0), this.events.length > 0 && this.soon()), 3 * took);
    }, after);
  }

  /** lay gives places to nodes that have none: beside what they are linked with, or in groups. */
  private lay(links: Array<[string, string]>, hosts: Array<[string, string]>) {
    const ids = [...this.known.switches.keys()].map((d) => "s " + d);
    if (ids.length > few) this.layGroups(ids, links);
    else {
      this.groups = [];
      const all = [...ids, ...hosts.map(([h]) => h)];
      if (all.some((id) => !this.places.has(id))) {
        const arranged = arrange(all, [...links, ...hosts], this.places);
        for (const id of all) if (!this.places.has(id)) this.places.set(id, arranged.get(id)!);
      }
    }
    const seats = new Map<string, number>();
    for (const [h, s] of hosts) {
      const n = seats.get(s) ?? 0;
      seats.set(s, n + 1);
      const p = this.places.get(s) ?? { x: 0, y: 0 };
      if (!this.places.has(h)) this.places.set(h, { x: p.x + 6 * Math.cos(2.4 * n), y: p.y + 6 * Math.sin(2.4 * n) });
    }
  }

  private layGroups(ids: string[], links: Array<[string, string]>) {
    if (this.groups.length === 0 || ids.length > regrouped * this.grouped) {
      this.groups = groupsOf(ids, links, new Map([...calledAll(this.known)].map(([dpid, name]) => ["s " + dpid, name])));
      this.grouped = ids.length;
      this.middles = [];
      this.places.clear();
    }
    const of = new Map(this.groups.flatMap((g) => g.members.map((id) => [id, g] as const)));
    for (const id of ids) {
      if (of.has(id)) continue;
      const beside = links.find(([a, b]) => (a === id && of.has(b)) || (b === id && of.has(a)));
      const g = (beside && (of.get(beside[0]) ?? of.get(beside[1]))) ?? this.groups[this.groups.length - 1];
      g.members.push(id);
      of.set(id, g);
    }
    if (this.middles.length === 0) this.middles = placeGroups(this.groups, links);
    this.groups.forEach((g, i) =>
      g.members.forEach((id, j) => {
        const [m, s] = [this.middles[i], seat(j)];
        if (!this.places.has(id)) this.places.set(id, { x: m.x + s.x, y: m.y + s.y });
      }),
    );
  }

  /** build makes the scene of what is known now, or of the moment that is replayed. */
  private build() {
    const [k, past] = [this.known, this.replayed];
    const cables = this.cables();
    const called = calledAll(k);
    const nodeOf = (end: string) => "s " + end.slice(0, end.indexOf(":"));
    const joined: Array<[string, string]> = [];
    for (const c of cables.keys()) {
      const [a, b] = cableEnds(c).map(nodeOf);
      if (k.switches.has(a.slice(2)) && k.switches.has(b.slice(2))) joined.push([a, b]);
      else cables.delete(c);
    }
    const hosts = this.hosts ? [...k.hosts.values()].filter((h) => k.switches.has(h.at?.dpid ?? "")) : [];
    this.lay(joined, hosts.map((h) => ["h " + hostKey(h), "s " + h.at!.dpid]));
    const nodes = new Map<string, Node>();
    const lines = new Map<string, Line>();
    const node = (id: string, rest: Pick<Node, "kind" | "label" | "state" | "pale">) => nodes.set(id, { id, ...this.places.get(id)!, group: "", degree: 0, hub: false, ...rest });
    for (const s of k.switches.values()) {
      const up = past ? !past.away.has(s.dpid!) : s.connected;
      node("s " + s.dpid, { kind: "switch", label: labelOf(s, called.get(s.dpid!)!), state: up ? "up" : "gone", pale: s.role === "slave" || s.role === "equal" });
    }
    for (const [i, g] of this.groups.entries()) for (const id of g.members) if (nodes.has(id)) nodes.get(id)!.group = `g ${i}`;
    const beside = new Map<string, string[]>();
    for (const c of cables.keys()) {
      const pair = cableEnds(c).map(nodeOf).sort().join(" ");
      beside.set(pair, [...(beside.get(pair) ?? []), c]);
    }
    for (const [c, sends] of cables) {
      const [a, b] = cableEnds(c);
      const l = k.links.get(sends.has(a) ? `${a}-${b}` : `${b}-${a}`);
      const gone = past ? past.gone.has(c) : sends.size === 0;
      const all = beside.get([nodeOf(a), nodeOf(b)].sort().join(" "))!;
      this.line(lines, "l " + c, nodeOf(a), nodeOf(b), {
        state: gone ? "gone" : past ? "up" : sends.size === 1 ? "gone" : l && l.state !== "up" ? "waits" : "up",
        ...this.carried(a, b, 1000 * Number(l?.capacity_kbps ?? 0), gone),
        beside: all.length > 1 ? all.indexOf(c) - (all.length - 1) / 2 : 0,
        tree: !gone && this.treePorts.has(a) && this.treePorts.has(b),
      });
      for (const end of [a, b]) nodes.get(nodeOf(end))!.degree++;
    }
    const mean = (2 * cables.size) / Math.max(1, k.switches.size);
    for (const n of nodes.values()) n.hub = n.degree >= hubLeast && n.degree > hubTimes * mean;
    for (const h of hosts) {
      const [id, at] = ["h " + hostKey(h), "s " + h.at!.dpid];
      const claim = h.claimed_at?.dpid && k.switches.has(h.claimed_at.dpid) ? h.claimed_at : undefined;
      node(id, { kind: "host", label: hostName(h), state: claim ? "claimed" : "up", pale: false });
      nodes.get(id)!.degree = 1;
      const speed = 1000 * Number(k.ports.get(h.at!.dpid!)?.get(h.at!.port ?? 0)?.speed_kbps ?? 0);
      const { there, back, texts } = this.carried("", place(h.at), speed, false);
      this.line(lines, "a " + hostKey(h), id, at, { host: true, there, back, texts });
      if (claim) this.line(lines, "c " + hostKey(h), id, "s " + claim.dpid, { host: true, state: "claim" });
    }
    Object.assign(this.drawing.scene, { nodes, lines });
    this.circles();
    this.trace();
    this.box.dataset.drawn = String(k.switches.size);
    this.drawing.soon();
    this.built();
  }

  private line(lines: Map<string, Line>, id: string, a: string, b: string, rest: Partial<Line>) {
    lines.set(id, { id, a, b, state: "up", host: false, there: 0, back: 0, texts: ["", ""], beside: 0, count: 1, tree: false, ...rest });
  }

  /** carried returns what both ends of a link send, as a share of what it can carry; of a host's, by what its port gets and sends. */
  private carried(a: string, b: string, capacity: number, gone: boolean): Pick<Line, "there" | "back" | "texts"> {
    const sends = (at: string) => (this.replayed ? (this.replayed.bits.get(at)?.[0] ?? 0) : (this.stats.get(at)?.tx_bits_per_s ?? 0));
    const gets = (at: string) => (this.replayed ? (this.replayed.bits.get(at)?.[1] ?? 0) : (this.stats.get(at)?.rx_bits_per_s ?? 0));
    const bits = gone ? [0, 0] : [a ? sends(a) : gets(b), sends(b)];
    const [there, back] = bits.map((n) => (n < leastBits ? 0 : Math.max(tiny, n / (capacity || Infinity))));
    const [x, y] = bits.map((n) => (n < leastBits ? "" : bitsText(n)));
    return { there, back, texts: [x, y] };
  }

  /** circles makes the groups of a large map, and the trunks between them. */
  private circles() {
    const scene = this.drawing.scene;
    scene.groups = this.groups.flatMap((g, i): Group[] => {
      const there = g.members.flatMap((id) => scene.nodes.get(id) ?? []);
      if (there.length === 0) return [];
      const away = there.filter((n) => n.state !== "up").length;
      const mean = (axis: "x" | "y") => there.reduce((sum, n) => sum + n[axis], 0) / there.length;
      const [x, y] = [this.middles[i]?.x ?? mean("x"), this.middles[i]?.y ?? mean("y")];
      return [{ id: `g ${i}`, label: g.label, sub: away > 0 ? `${there.length - away} of ${there.length} switches` : `${there.length} ${there.length === 1 ? "switch" : "switches"}`, x, y, r: radius(there.length), mood: away === there.length ? "bad" : away > 0 ? "warn" : "" }];
    });
    const trunks = new Map<string, Line>();
    if (scene.groups.length > 0) {
      for (const l of scene.lines.values()) {
        const [a, b] = [scene.nodes.get(l.a)?.group ?? "", scene.nodes.get(l.b)?.group ?? ""];
        if (!a || !b || a === b || l.host) continue;
        const [x, y] = a < b ? [a, b] : [b, a];
        const t = trunks.get(`${x} ${y}`);
        const [there, back] = a < b ? [l.there, l.back] : [l.back, l.there];
        if (!t) this.line(trunks, `${x} ${y}`, x, y, { there, back, state: l.state === "gone" ? "gone" : "up" });
        else Object.assign(t, { count: t.count + 1, there: Math.max(t.there, there), back: Math.max(t.back, back), state: t.state === "gone" && l.state === "gone" ? "gone" : "up" });
      }
    }
    scene.trunks = [...trunks.values()];
  }

  /** rates shows what both ends of each link send; none: it is not known. */
  rates(stats: PortStats[]) {
    this.stats = new Map(stats.map((s) => [place(s), s]));
    this.soon();
  }

  /** replay shows the network as it was; undefined: as it is. */
  replay(moment?: Replayed) {
    if (this.replayed === moment) return;
    this.replayed = moment;
    this.soon(0);
  }

  /** traffic says whether packets are drawn. */
  traffic(is: boolean) {
    this.drawing.scene.traffic = is;
    this.drawing.soon();
  }

  /** tree marks the links of the broadcast tree. */
  tree(ports: string[]) {
    if (ports.length === this.treePorts.size && ports.every((p) => this.treePorts.has(p))) return;
    this.treePorts = new Set(ports);
    this.soon();
  }

  /** path marks a path by its switches and links in their order, and the hosts at its ends. Where it differs from the one
   * before, that one is dimmed, and this one grows. */
  path(dpids: string[], cables: string[], hosts: string[] = []) {
    const was = this.way;
    if ([was.dpids, was.cables, was.hosts].join() === [dpids, cables, hosts].join()) return;
    const goes = was.cables.join() !== cables.join();
    const sameHosts = was.hosts.join() === hosts.join();
    if (goes) this.before = sameHosts && cables.length > 0 ? was.cables : [];
    this.way = { dpids, cables, hosts };
    this.trace();
    if (goes && cables.length > 0 && was.cables.length > 0) this.drawing.grow();
    this.drawing.soon();
  }

  /** trace puts the path into the scene: what leads over a link that is gone is the path before. */
  private trace() {
    const { dpids, cables, hosts } = this.way;
    const scene = this.drawing.scene;
    const gone = (c: string) => {
      const [a, b] = cableEnds(c);
      return !this.known.links.has(`${a}-${b}`) && !this.known.links.has(`${b}-${a}`);
    };
    const broken = cables.some(gone);
    if (!this.before.some(gone)) this.before = [];
    const now = broken ? [] : [...hosts.slice(0, 1).map((h) => "a " + h), ...cables.map((c) => "l " + c), ...hosts.slice(1).map((h) => "a " + h)];
    scene.way = { nodes: new Set([...(broken ? [] : dpids.map((d) => "s " + d)), ...hosts.map((h) => "h " + h)]), lines: now };
    scene.old = new Set([...this.before, ...(broken ? cables : [])].map((c) => "l " + c).filter((id) => !now.includes(id)));
  }

  /** mark marks what the user has chosen. */
  mark(c: Chosen) {
    this.drawing.scene.chosen = c.kind ? (c.kind === "switch" ? "s " : c.kind === "host" ? "h " : "l ") + c.id : "";
    this.drawing.soon();
  }

  /** reserve leaves room below the map for bars. */
  reserve(pixels: number) {
    this.below = pixels;
    if (this.whole) this.fit();
  }

  fit() {
    this.whole = true;
    this.drawing.fit(rim, this.still ? rim : above, this.still ? rim : this.below);
    this.moved();
  }
  zoom(by: number) {
    this.whole = false;
    this.drawing.zoom(by);
    this.moved();
  }
  pan(x: number, y: number) {
    this.whole = false;
    const v = this.drawing.view;
    this.drawing.look({ ...v, x: v.x + x, y: v.y + y });
    this.moved();
  }
  /** arrangeAnew forgets where nodes were moved to. */
  arrangeAnew() {
    this.places.clear();
    this.groups = [];
    this.middles = [];
    this.build();
    this.keep();
    this.fit();
  }
}
