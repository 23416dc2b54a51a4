// How single things of the map look: on a canvas, in pixels, in colours of the page.

import { glyph, outline, shape } from "../ui/icons";
import type { Box } from "./labels";
import { useStep } from "./pulse";
import type { Group, Line, Node } from "./scene";

/** uses are the colours of links by their use. */
export const uses = ["use-0", "use-1", "use-2", "use-3", "use-4"] as const;

/** colours are those of the page that the map needs. */
export const colours = ["ground", "surface", "line-strong", "text", "dim", "accent", "good", "warn", "bad", ...uses] as const;
export type Tones = Record<(typeof colours)[number], string>;

export const font = '"Geist Variable", system-ui, sans-serif';
export const alpha = (colour: string, a: number) => colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${a})`);

const loop = 14; // radius of a line that leads back to its node
const paths = new Map<string, Path2D>();
/** pathOf returns a path of icons, made once. */
const pathOf = (d: string) => paths.get(d) ?? paths.set(d, new Path2D(d)).get(d)!;

/** Ink draws on a canvas. */
export class Ink {
  constructor(
    readonly c: CanvasRenderingContext2D,
    readonly T: Tones,
  ) {}

  disc(x: number, y: number, r: number, fill: string, border = "", width = 1) {
    this.c.beginPath();
    this.c.arc(x, y, r, 0, 7);
    if (fill) (this.c.fillStyle = fill), this.c.fill();
    if (border) (this.c.strokeStyle = border), (this.c.lineWidth = width), this.c.stroke();
  }

  /** line draws a line between two points; turns: one that leads back to where it begins. */
  line(colour: string, width: number, dash: number[], [x1, y1, x2, y2]: Box, turns = false) {
    const c = this.c;
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.setLineDash(dash);
    c.beginPath();
    if (turns) c.arc(x1 + loop, y1 - loop, loop, 0, 7);
    else c.moveTo(x1, y1), c.lineTo(x2, y2);
    c.stroke();
    c.setLineDash([]);
  }

  text(text: string, x: number, y: number, colour: string) {
    this.c.lineJoin = "round";
    this.c.lineWidth = 4;
    this.c.strokeStyle = alpha(this.T.ground, 0.92);
    this.c.strokeText(text, x, y);
    this.c.fillStyle = colour;
    this.c.fillText(text, x, y);
  }

  group(g: Group, x: number, y: number, r: number) {
    const tone = g.mood ? this.T[g.mood] : this.T["line-strong"];
    this.disc(x, y, r, alpha(g.mood ? tone : this.T.dim, g.mood ? 0.1 : 0.055), alpha(tone, g.mood ? 0.85 : 0.42), g.mood ? 1.5 : 1);
  }

  /** cross marks the middle of a line that is gone. */
  cross(x: number, y: number) {
    this.disc(x, y, 12, this.T.ground);
    this.disc(x, y, 9.5, this.T.bad);
    for (const d of [3.4, -3.4]) this.line(this.T.ground, 2.2, [], [x - d, y - 3.4, x + d, y + 3.4]);
  }

  /** dot draws a switch that is too small for its icon, and has to be seen. */
  dot(x: number, y: number, h: number, colour: string) {
    this.c.beginPath();
    this.c.roundRect(x - h, y - h, 2 * h, 2 * h, h * 0.5);
    this.c.fillStyle = colour;
    this.c.fill();
    this.disc(x, y, h + 4, "", colour, 1.6);
  }

  /** node draws a device with its state; h is half its size. */
  node(n: Node, x: number, y: number, h: number, chosen: boolean, traced: boolean) {
    const [c, T, of, z] = [this.c, this.T, shape[n.kind], h / 11];
    const marked = chosen || traced;
    c.save();
    c.translate(x - 12 * z, y - 12 * z);
    c.scale(z, z);
    c.lineCap = c.lineJoin = "round";
    if (of === "none") this.disc(12, 12, 14, marked ? alpha(T.accent, 0.2) : T.ground);
    else {
      const tile = pathOf(outline[of]);
      if (marked) (c.strokeStyle = alpha(T.accent, chosen ? 0.28 : 0.2)), (c.lineWidth = (chosen ? 16 : 12) / z), c.stroke(tile);
      c.fillStyle = T.surface;
      c.fill(tile);
      c.lineWidth = (marked || n.state === "gone" ? 2.2 : 1.6) / z;
      c.strokeStyle = marked ? T.accent : n.state === "gone" ? T.bad : T["line-strong"];
      c.stroke(tile);
      c.transform(0.66, 0, 0, 0.66, 4.1, 4.1);
    }
    c.lineWidth = of === "none" ? Math.max(1.6, 1.5 / z) : Math.max(1.75, 1.7 / z);
    c.strokeStyle = marked ? T.accent : n.state === "claimed" ? T.bad : of === "none" || n.pale || n.state === "gone" ? T.dim : T.text;
    c.stroke(pathOf(glyph[n.kind]));
    c.restore();
    if (n.state !== "gone") return;
    const [bx, by] = [x + h * 0.86, y - h * 0.86];
    this.disc(bx, by, 8.5, T.ground);
    this.disc(bx, by, 6.5, T.bad);
    c.fillStyle = T.ground;
    c.fillRect(bx - 0.9, by - 3.4, 1.8, 4.2);
    c.fillRect(bx - 0.9, by + 1.7, 1.8, 1.8);
  }

  /** packets draws those of a line at a time in seconds: as many and as fast as it is used, each direction by itself. */
  packets(l: Line, [x1, y1, x2, y2]: Box, t: number, traced: boolean, strength: number) {
    const far = Math.hypot(x2 - x1, y2 - y1);
    if (far < 60) return;
    for (const [share, there] of [[l.there, true], [l.back, false]] as const) {
      if (!(share > 0)) continue;
      const use = Math.min(1, share);
      const n = Math.max(1, Math.round((far / 46) * (0.35 + use)));
      const colour = traced ? this.T.accent : this.T[uses[useStep(use)]];
      for (let i = 0; i < n; i++) {
        const part = (i / n + (t * (34 + 60 * use)) / far + (there ? 0 : 0.5 / n)) % 1;
        const p = there ? part : 1 - part;
        const fade = Math.min(1, Math.max(0, Math.min(p, 1 - p) * far - 16) / 20);
        const [x, y, r] = [x1 + p * (x2 - x1), y1 + p * (y2 - y1), 2 + 1.5 * use];
        this.disc(x, y, r + 1.1, alpha(this.T.ground, fade * strength));
        this.disc(x, y, r, alpha(colour, fade * strength));
      }
    }
  }
}

/** loopDistance returns how far a point is from the line that leads back to a node. */
export const loopDistance = (nx: number, ny: number, x: number, y: number) => Math.abs(Math.hypot(x - nx - loop, y - ny + loop) - loop);
