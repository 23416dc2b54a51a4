// Where names stand on the map: beside what they name, on the freest side, over nothing else.

/** Box is a rectangle on the screen: left, top, right and bottom. */
export type Box = [number, number, number, number];

/** Wish is a name to be placed around a centre; half is how far what it names reaches. */
export interface Wish {
  id: string;
  x: number;
  y: number;
  half: number;
  wide: number;
  high: number;
  angles: number[]; // of lines that leave the centre, from atan2
}

const gap = 4; // pixels between a name and what it names

/** Taken finds boxes that overlap, by a grid. */
class Taken {
  private cells = new Map<string, Box[]>();

  private each(b: Box, f: (key: string) => boolean): boolean {
    for (let x = Math.floor(b[0] / 64); x <= Math.floor(b[2] / 64); x++) for (let y = Math.floor(b[1] / 64); y <= Math.floor(b[3] / 64); y++) if (f(`${x} ${y}`)) return true;
    return false;
  }
  add(b: Box) {
    this.each(b, (key) => {
      const list = this.cells.get(key);
      if (list) list.push(b);
      else this.cells.set(key, [b]);
      return false;
    });
  }
  hits(b: Box): boolean {
    return this.each(b, (key) => this.cells.get(key)?.some((o) => b[0] < o[2] && b[2] > o[0] && b[1] < o[3] && b[3] > o[1]) ?? false);
  }
}

const sides = [Math.PI / 2, 0, Math.PI, -Math.PI / 2]; // below, right, left, above

/** freedom returns how far a side is from the next line, below first among equals. */
function freedom(side: number, angles: number[]): number {
  let least = 0.7;
  for (const a of angles) least = Math.min(least, Math.abs(((a - side + 3 * Math.PI) % (2 * Math.PI)) - Math.PI));
  return least + (side === sides[0] ? 0.12 : 0);
}

function boxAt(w: Wish, side: number): Box {
  const [dx, dy] = [Math.round(Math.cos(side)), Math.round(Math.sin(side))];
  const [x, y] = [w.x + dx * (w.half + gap + w.wide / 2), w.y + dy * (w.half + gap + w.high / 2)];
  return [x - w.wide / 2, y - w.high / 2, x + w.wide / 2, y + w.high / 2];
}

/** placeLabels returns the boxes of names that fit: the first wishes first, none over another or over what is taken. */
export function placeLabels(wishes: Wish[], taken: Iterable<Box>): Map<string, Box> {
  const boxes = new Taken();
  for (const b of taken) boxes.add(b);
  const out = new Map<string, Box>();
  for (const w of wishes) {
    let best: Box | undefined;
    let most = -1;
    for (const side of sides) {
      const [box, free] = [boxAt(w, side), freedom(side, w.angles)];
      if (free > most && !boxes.hits(box)) [best, most] = [box, free];
    }
    if (!best) continue;
    boxes.add(best);
    out.set(w.id, best);
  }
  return out;
}
