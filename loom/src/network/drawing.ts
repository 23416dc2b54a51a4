import { shape } from "../ui/icons";
import { tones } from "../ui/theme";
import { alpha, colours, font, Ink, loopDistance, uses } from "./ink";
import { placeLabels, type Box, type Wish } from "./labels";
import { useStep } from "./pulse";
import type { Group, Line, Node, Point, Scene } from "./scene";

/** Hit is what lies under a point: an id of the scene, "" if nothing does. */
export interface Hit {
  what: "node" | "line" | "group" | "";
  id: string;
}

/** View is where the map is seen: pixels for each unit, and where its origin is. */
export interface View extends Point {
  k: number;
}

const heavy = 150; // from so many nodes on, a picture of them is moved, and drawn anew when the map rests
const margin = 0.25; // of the box, that such a picture has around it
const rest = 120; // milliseconds without a move
const pace = 33; // milliseconds between pictures of packets
const growth = 240; // milliseconds in which a new path grows
const [zoomLeast, zoomMost, zoomFit] = [0.02, 8, 1.6];
const [iconLeast, nameLeast, openLeast] = [11, 7.5, 70]; // half pixels of a switch with an icon and with a name; radius of a group that is open, of very many
const many = 1000; // from so many nodes on, those in closed groups are not drawn

/** Drawing draws a scene on a canvas, its packets on another above it. */
export class Drawing {
  view: View = { k: 1, x: 0, y: 0 };
  /** boxes are where names stand, as they were drawn last. */
  boxes = new Map<string, Box>();
  private base = document.createElement("canvas");
  private over = document.createElement("canvas");
  private ink!: Ink; // of base
  private above!: Ink; // of over
  private drawn: View = this.view; // where base is drawn
  private groupOf = new Map<string, Group>();
  private wide = 0;
  private high = 0;
  private request = 0;
  private resting = 0;
  private moving = 0; // request of the next picture of packets
  private painted = 0;
  private grown = 0; // when the path began to grow
  private quiet = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(
    private box: HTMLElement,
    public scene: Scene,
  ) {
    for (const c of [this.base, this.over]) Object.assign(c.style, { position: "absolute", pointerEvents: "none" });
    box.append(this.base, this.over);
    this.restyle();
    void document.fonts.load(`600 12px ${font}`).then(() => this.soon());
  }

  end() {
    for (const request of [this.request, this.moving]) cancelAnimationFrame(request);
    clearTimeout(this.resting);
    for (const c of [this.base, this.over]) c.remove();
  }

  /** restyle reads the colours of the page anew. */
  restyle() {
    const T = tones(...colours);
    if (this.box.closest(".card")) T.ground = T.surface;
    [this.ink, this.above] = [this.base, this.over].map((c) => new Ink(c.getContext("2d")!, T));
    this.soon();
  }

  /** size follows the size of the box. */
  size() {
    [this.wide, this.high] = [this.box.clientWidth, this.box.clientHeight];
    this.soon();
  }

  private get isHeavy() {
    return this.scene.nodes.size > heavy;
  }
  private get large() {
    return this.scene.groups.length > 0;
  }

  /** grow lets the path grow from its source. */
  grow() {
    this.grown = this.quiet.matches ? 0 : performance.now();
    this.soon();
  }

  /** soon draws all anew with the next frame. */
  soon() {
    this.request ||= requestAnimationFrame(() => {
      this.request = 0;
      this.draw();
    });
  }

  /** look moves the view: light scenes are drawn anew; of heavy ones the picture is moved until it rests. */
  look(to: View) {
    this.view = to;
    this.base.style.willChange = this.isHeavy ? "transform" : ""; // a layer of its own, that is only put elsewhere
    if (!this.isHeavy) return this.soon();
    const s = to.k / this.drawn.k;
    const [dx, dy] = [to.x - this.drawn.x * s, to.y - this.drawn.y * s];
    this.base.style.transform = `translate(${dx}px, ${dy}px) scale(${s})`;
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => this.soon(), rest);
    const [mx, my] = [margin * this.wide * s, margin * this.high * s];
    if (dx > mx || dy > my || dx < this.wide - s * this.wide - mx || dy < this.high - s * this.high - my) this.soon();
  }

  /** fit shows all, with pixels left free at the sides, above and below. */
  fit(side: number, above: number, below: number) {
    let [x1, y1, x2, y2] = [Infinity, Infinity, -Infinity, -Infinity];
    const take = (p: Point, r: number) => ([x1, y1, x2, y2] = [Math.min(x1, p.x - r), Math.min(y1, p.y - r), Math.max(x2, p.x + r), Math.max(y2, p.y + r)]);
    if (this.large) for (const g of this.scene.groups) take(g, g.r + 14);
    else for (const n of this.scene.nodes.values()) take(n, 0);
    if (x1 > x2) return;
    const k = Math.max(zoomLeast, Math.min(zoomFit, (this.wide - 2 * side) / (x2 - x1 || 1), (this.high - above - below) / (y2 - y1 || 1)));
    this.look({ k, x: this.wide / 2 - (k * (x1 + x2)) / 2, y: (this.high + above - below) / 2 - (k * (y1 + y2)) / 2 });
    this.soon();
  }

  /** zoom zooms about a point of the box. */
  zoom(by: number, x = this.wide / 2, y = this.high / 2) {
    const v = this.view;
    const k = Math.max(zoomLeast, Math.min(zoomMost, v.k * by));
    this.look({ k, x: x - ((x - v.x) * k) / v.k, y: y - ((y - v.y) * k) / v.k });
  }

  /** to returns where a point of the box is on the map. */
  to(x: number, y: number): Point {
    return { x: (x - this.view.x) / this.view.k, y: (y - this.view.y) / this.view.k };
  }

  /** seen is the part of the map in the box: left, top, right and bottom. */
  get seen(): Box {
    const [a, b] = [this.to(0, 0), this.to(this.wide, this.high)];
    return [a.x, a.y, b.x, b.y];
  }

  /** at returns where a point of the map is in the box. */
  at(p: Point): [number, number] {
    return [p.x * this.view.k + this.view.x, p.y * this.view.k + this.view.y];
  }

  /** hit returns what lies under a point of the box. */
  hit(x: number, y: number): Hit {
    let [best, least] = ["", 5];
    for (const n of this.scene.nodes.values()) {
      if (this.closed(n)) continue;
      const [px, py] = this.at(n);
      const far = Math.max(Math.abs(px - x), Math.abs(py - y)) - this.half(n);
      if (far < least) [best, least] = [n.id, far];
    }
    if (best) return { what: "node", id: best };
    least = 7;
    for (const l of this.scene.lines.values()) {
      const e = this.skips(l) ? undefined : this.ends(l);
      if (!e) continue;
      const [x1, y1, dx, dy] = [e[0], e[1], e[2] - e[0], e[3] - e[1]];
      const t = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
      const far = l.a === l.b ? loopDistance(x1, y1, x, y) : Math.hypot(x - x1 - t * dx, y - y1 - t * dy);
      if (far < least) [best, least] = [l.id, far];
    }
    if (best) return { what: "line", id: best };
    const p = this.to(x, y);
    const g = this.scene.groups.find((g) => Math.hypot(g.x - p.x, g.y - p.y) <= g.r);
    return g ? { what: "group", id: g.id } : { what: "", id: "" };
  }

  /** half is how far a node reaches, in pixels. */
  private half(n: Node): number {
    const k = this.view.k;
    if (this.large && n.kind !== "host") return Math.max(n.hub ? 4.5 : 3, Math.min(18, (n.hub ? 5.6 : 4.4) * k ** 1.1));
    return (shape[n.kind] === "none" ? 13 : 20) * Math.min(1.1, Math.max(0.72, Math.sqrt(k))) * (this.large ? Math.min(1, k / 3) : 1);
  }

  /** closed reports whether a node is in a group that is drawn without what is in it. */
  private closed(n: Node): boolean {
    return this.scene.nodes.size > many && n.group !== "" && (this.groupOf.get(n.group)?.r ?? 0) * this.view.k < openLeast && this.scene.chosen !== n.id;
  }

  /** skips reports whether a line is part of a trunk, or in a closed group. */
  private skips(l: Line): boolean {
    if (!this.large) return false;
    const [a, b] = [this.scene.nodes.get(l.a), this.scene.nodes.get(l.b)];
    if (!a || !b) return true;
    return a.group !== b.group ? Math.min(this.half(a), this.half(b)) < iconLeast && !this.marked(l) : this.closed(a);
  }
  private marked(l: Line): boolean {
    return l.id === this.scene.chosen || this.scene.old.has(l.id) || this.scene.way.lines.includes(l.id);
  }

  /** ends returns both ends of a line, a little aside if others join the same nodes. */
  private ends(l: Line): Box | undefined {
    const [a, b] = [this.scene.nodes.get(l.a) ?? this.groupOf.get(l.a), this.scene.nodes.get(l.b) ?? this.groupOf.get(l.b)];
    if (!a || !b) return undefined;
    const [[x1, y1], [x2, y2]] = [this.at(a), this.at(b)];
    const aside = (7 * l.beside) / (Math.hypot(x2 - x1, y2 - y1) || 1);
    const [dx, dy] = [(y1 - y2) * aside, (x2 - x1) * aside];
    return [x1 + dx, y1 + dy, x2 + dx, y2 + dy];
  }

  /** clear makes a canvas empty, as large as the box and a part of it around. */
  private clear(canvas: HTMLCanvasElement, around: number) {
    const sharp = this.isHeavy ? 1 : devicePixelRatio || 1;
    const [mx, my] = [Math.round(around * this.wide), Math.round(around * this.high)];
    const [w, h] = [this.wide + 2 * mx, this.high + 2 * my];
    if (canvas.width !== Math.round(w * sharp) || canvas.height !== Math.round(h * sharp)) {
      [canvas.width, canvas.height] = [Math.round(w * sharp), Math.round(h * sharp)];
      Object.assign(canvas.style, { width: `${w}px`, height: `${h}px`, left: `${-mx}px`, top: `${-my}px`, transformOrigin: `${mx}px ${my}px` });
    }
    const c = canvas.getContext("2d")!;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.clearRect(0, 0, canvas.width, canvas.height);
    c.setTransform(sharp, 0, 0, sharp, mx * sharp, my * sharp);
    c.lineCap = "round";
  }

  /** inside reports whether a point is near enough to be drawn. */
  private inside(x: number, y: number, reach = 40): boolean {
    const m = this.isHeavy ? margin : 0;
    return x > -m * this.wide - reach && y > -m * this.high - reach && x < (1 + m) * this.wide + reach && y < (1 + m) * this.high + reach;
  }

  private draw() {
    if (this.wide === 0 || this.high === 0) return;
    clearTimeout(this.resting);
    const s = this.scene;
    this.groupOf = new Map(s.groups.map((g) => [g.id, g]));
    this.clear(this.base, this.isHeavy ? margin : 0);
    this.base.style.transform = "";
    this.drawn = this.view;
    for (const g of s.groups) {
      const [[x, y], r] = [this.at(g), g.r * this.view.k];
      if (this.inside(x, y, r)) this.ink.group(g, x, y, r);
    }
    const [thin, strong]: [Line[], Line[]] = [[], []];
    for (const l of s.lines.values()) if (!this.skips(l)) (this.large && l.state === "up" && !this.marked(l) && !l.tree ? thin : strong).push(l);
    if (thin.length > 0) this.strokes(thin);
    for (const l of s.trunks) this.line(l);
    for (const l of strong.sort((a, b) => Number(this.marked(a)) - Number(this.marked(b)))) this.line(l);
    this.path();
    const [near, dots]: [Node[], Node[]] = [[], []];
    for (const n of s.nodes.values()) {
      if (!this.inside(...this.at(n)) || this.closed(n)) continue;
      const plain = this.large && this.half(n) < iconLeast && n.state === "up" && n.id !== s.chosen && !s.way.nodes.has(n.id);
      (plain ? dots : near).push(n);
    }
    this.dots(dots);
    for (const n of near) {
      const [[x, y], h] = [this.at(n), this.half(n)];
      if (this.large && h < iconLeast) this.ink.dot(x, y, h, n.state === "up" ? this.ink.T.accent : this.ink.T.bad);
      else this.ink.node(n, x, y, h, n.id === s.chosen, s.way.nodes.has(n.id));
    }
    for (const l of strong) {
      const e = l.state === "gone" && l.a !== l.b && !(this.large && this.view.k < 1) ? this.ends(l) : undefined;
      if (e) this.ink.cross((e[0] + e[2]) / 2, (e[1] + e[3]) / 2);
    }
    this.names(near, dots);
    this.rates();
    this.packets();
    if (this.grown && performance.now() - this.grown < growth) this.soon();
  }

  /** faint is how strong what is not on the path is drawn. */
  private get faint(): number {
    return this.scene.way.lines.length > 0 ? 0.5 : 1;
  }

  /** strokes draws many thin lines, those of one step of use at once. */
  private strokes(lines: Line[]) {
    const paths = uses.map(() => new Path2D());
    for (const l of lines) {
      const e = this.ends(l);
      if (!e || (!this.inside(e[0], e[1]) && !this.inside(e[2], e[3]))) continue;
      const p = paths[useStep(Math.max(l.there, l.back))];
      p.moveTo(e[0], e[1]);
      p.lineTo(e[2], e[3]);
    }
    const { c, T } = this.ink;
    c.lineWidth = Math.min(2.6, Math.max(0.8, this.view.k * 0.7));
    paths.forEach((p, step) => {
      c.strokeStyle = alpha(T[uses[step]], (this.view.k > 1.5 ? 0.9 : 0.5) * this.faint);
      c.stroke(p);
    });
  }

  private line(l: Line) {
    const [e, T, turns] = [this.ends(l), this.ink.T, l.a === l.b];
    if (!e || (!this.inside(e[0], e[1], 2000) && !this.inside(e[2], e[3], 2000))) return;
    const use = Math.min(1, Math.max(l.there, l.back));
    if (l.tree) this.ink.line(alpha(T.good, 0.3), 12, [], e, turns);
    if (l.id === this.scene.chosen) this.ink.line(alpha(T.accent, 0.3), 14, [], e, turns);
    if (l.state === "gone") this.ink.line(T.bad, 3, [1, 8], e, turns);
    else if (l.state === "claim") this.ink.line(T.bad, 2, [6, 6], e, turns);
    else if (l.state === "waits") this.ink.line(T.warn, 3, [8, 7], e, turns);
    else if (this.scene.old.has(l.id)) this.ink.line(alpha(T.dim, 0.75), 3.5, [9, 8], e, turns);
    else this.ink.line(alpha(T[uses[useStep(use)]], 0.92 * this.faint), l.host ? 1.5 : this.large ? 1.6 + 0.7 * Math.min(4, Math.log2(1 + l.count)) + 3.4 * use : 2.6 + 3.6 * use, [], e, turns);
  }

  /** path draws the path, as far as it has grown. */
  private path() {
    const T = this.ink.T;
    const lines = this.scene.way.lines.flatMap((id) => this.scene.lines.get(id) ?? []).filter((l) => l.state !== "gone");
    const part = this.grown ? Math.min(1, (performance.now() - this.grown) / growth) * lines.length : lines.length;
    for (const [halo, width] of [[0.2, 17], [1, 5]]) {
      let from = ""; // the node that the path has come to
      for (const [i, l] of lines.entries()) {
        const e = this.ends(l);
        if (!e || i >= part) break;
        const next = lines[i + 1];
        from ||= next && (l.a === next.a || l.a === next.b) ? l.b : l.a;
        const [x1, y1, x2, y2] = l.a === from ? e : [e[2], e[3], e[0], e[1]];
        from = l.a === from ? l.b : l.a;
        const t = Math.min(1, part - i);
        this.ink.line(alpha(T.accent, halo), width, [], [x1, y1, x1 + t * (x2 - x1), y1 + t * (y2 - y1)]);
      }
    }
  }

  /** dots draws switches that are too small for icons. */
  private dots(nodes: Node[]) {
    const [{ c, T }, paths] = [this.ink, [new Path2D(), new Path2D()]];
    for (const n of nodes) {
      const [[x, y], h] = [this.at(n), this.half(n)];
      paths[n.hub ? 1 : 0].roundRect(x - h, y - h, 2 * h, 2 * h, h * 0.5);
    }
    [c.strokeStyle, c.lineWidth] = [T.ground, 1.4];
    paths.forEach((p, i) => {
      c.fillStyle = i === 1 ? T.text : T.dim;
      c.fill(p);
      c.stroke(p);
    });
  }

  /** names writes names where they are clear of nodes and of each other: faults, what is chosen and the path first. */
  private names(near: Node[], dots: Node[]) {
    const [{ c, T }, s, taken] = [this.ink, this.scene, [] as Box[]];
    this.boxes.clear();
    [c.textAlign, c.textBaseline] = ["center", "middle"];
    for (const g of s.groups) {
      const [x, y] = this.at({ x: g.x, y: g.y - g.r });
      if (!this.inside(x, y, 100)) continue;
      c.font = `600 13px ${font}`;
      const half = Math.max(c.measureText(g.label).width, 70) / 2;
      const box: Box = [x - half, y - 34, x + half, y - 2];
      taken.push(box);
      this.boxes.set(g.id, box);
      this.ink.text(g.label, x, y - 26, g.mood ? T[g.mood] : T.text);
      c.font = `400 11px ${font}`;
      this.ink.text(g.sub, x, y - 10, T.dim);
    }
    const weight = (n: Node) => (n.id === s.chosen ? 100 : 0) + (s.way.nodes.has(n.id) ? 50 : 0) + (n.state === "up" ? 0 : 30) + (n.kind === "host" ? 0 : 5) + Math.min(4, n.degree / 4);
    const wanted = [...near, ...dots].filter((n) => !this.large || weight(n) >= 30 || this.half(n) >= nameLeast).sort((a, b) => weight(b) - weight(a));
    for (const n of near) {
      const [[x, y], h] = [this.at(n), this.half(n)];
      taken.push([x - h, y - h, x + h, y + h]);
    }
    const angles = new Map<string, number[]>();
    if (!this.large) {
      for (const l of s.lines.values()) {
        const e = this.ends(l);
        const a = e && Math.atan2(e[3] - e[1], e[2] - e[0]);
        if (a !== undefined) for (const [id, way] of [[l.a, a], [l.b, a + Math.PI]] as const) angles.set(id, [...(angles.get(id) ?? []), way]);
      }
    }
    const size = (n: Node) => (this.large || n.kind === "host" ? 11 : 13);
    const fontOf = (n: Node) => `${n.kind === "host" ? 400 : 600} ${size(n)}px ${font}`;
    const wishes = wanted.map((n): Wish => {
      c.font = fontOf(n);
      const [[x, y], rows] = [this.at(n), n.label.split("\n")];
      return { id: n.id, x, y, half: this.half(n), wide: Math.max(...rows.map((t) => c.measureText(t).width)) + 4, high: (size(n) + 3) * rows.length, angles: angles.get(n.id) ?? [] };
    });
    for (const [id, b] of placeLabels(wishes, taken)) {
      const n = s.nodes.get(id)!;
      c.font = fontOf(n);
      n.label.split("\n").forEach((t, i) => this.ink.text(t, (b[0] + b[2]) / 2, b[1] + (size(n) + 3) * (i + 0.5), n.state === "up" ? T.text : T.bad));
      this.boxes.set(id, b);
    }
  }

  /** rates writes what the ends of lines send that are chosen, at what is chosen, or on the path. */
  private rates() {
    const s = this.scene;
    this.ink.c.font = `400 10px ${font}`;
    for (const l of s.lines.values()) {
      if (!(l.texts[0] || l.texts[1]) || !(this.marked(l) || (s.chosen && (l.a === s.chosen || l.b === s.chosen)))) continue;
      const e = this.ends(l);
      const far = e ? Math.hypot(e[2] - e[0], e[3] - e[1]) : 0;
      if (!e || far < 110) continue;
      l.texts.forEach((text, i) => {
        const t = i === 0 ? 48 / far : 1 - 48 / far;
        if (text) this.ink.text(text, e[0] + t * (e[2] - e[0]), e[1] + t * (e[3] - e[1]) - 11, this.ink.T.dim);
      });
    }
  }

  /** packets draws what moves, for as long as anything does and the page is seen. */
  private packets() {
    cancelAnimationFrame(this.moving);
    this.moving = 0;
    const s = this.scene;
    const lines = (this.large ? s.trunks : [...s.lines.values()]).filter((l) => (l.there > 0 || l.back > 0) && l.state !== "gone" && l.a !== l.b && !s.old.has(l.id));
    const none = !s.traffic || this.quiet.matches || lines.length === 0;
    this.over.style.display = none ? "none" : "";
    if (none) return;
    const traced = new Set(s.way.lines);
    const step = (now: number) => {
      this.moving = requestAnimationFrame(step);
      if (now - this.painted < pace) return; // browsers ask for no frames of a page that is hidden
      this.painted = now;
      this.clear(this.over, 0);
      for (const l of lines) {
        const e = this.ends(l);
        if (e) this.above.packets(l, e, now / 1000, traced.has(l.id), traced.has(l.id) || this.faint === 1 ? 1 : 0.8);
      }
    };
    this.moving = requestAnimationFrame(step);
  }
}
