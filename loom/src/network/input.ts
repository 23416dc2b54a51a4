import type { Drawing, Hit } from "./drawing";
import type { Point } from "./scene";

/** Wanted is what a user does on the map. */
export interface Wanted {
  tap(hit: Hit): void;
  drag(id: string, to: Point): void; // a node, while it is moved
  drop(): void;
  look(): void; // the view was moved by hand
}

const slop = 5; // pixels that a pointer may move in a click

/** listen calls what the user does by mouse, finger and wheel, until the function that it returns is called; on a map that is
 * still only taps. */
export function listen(box: HTMLElement, drawing: Drawing, still: boolean, wanted: Wanted): () => void {
  const stop = new AbortController();
  const on = <K extends keyof HTMLElementEventMap>(name: K, f: (e: HTMLElementEventMap[K]) => void) => box.addEventListener(name, f, { signal: stop.signal, passive: false });
  const down = new Map<number, Point>(); // pointers
  let [start, moved, held]: [Point, boolean, string] = [{ x: 0, y: 0 }, false, ""];
  const at = (e: MouseEvent): Point => {
    const r = box.getBoundingClientRect();
    return { x: e.clientX - r.left, y: e.clientY - r.top };
  };
  on("pointerdown", (e) => {
    if (e.button !== 0) return;
    const p = at(e);
    down.set(e.pointerId, p);
    if (down.size > 1) return;
    const hit = drawing.hit(p.x, p.y);
    [start, moved, held] = [p, false, hit.what === "node" && !still ? hit.id : ""];
  });
  on("pointermove", (e) => {
    const [was, p] = [down.get(e.pointerId), at(e)];
    if (!was) {
      if (e.buttons === 0) box.style.cursor = drawing.hit(p.x, p.y).what ? "pointer" : still ? "" : "grab";
      return;
    }
    if (still || (!moved && Math.hypot(p.x - start.x, p.y - start.y) < slop)) return;
    if (!moved) box.setPointerCapture(e.pointerId);
    const other = [...down].find(([id]) => id !== e.pointerId)?.[1];
    const v = drawing.view;
    if (other) {
      drawing.zoom(Math.hypot(p.x - other.x, p.y - other.y) / (Math.hypot(was.x - other.x, was.y - other.y) || 1), other.x, other.y);
    } else if (held) wanted.drag(held, drawing.to(p.x, p.y));
    else drawing.look({ ...v, x: v.x + p.x - (moved ? was.x : start.x), y: v.y + p.y - (moved ? was.y : start.y) });
    moved = true;
    down.set(e.pointerId, p);
    if (!held) wanted.look();
  });
  const up = (e: PointerEvent) => {
    if (!down.delete(e.pointerId) || down.size > 0) return;
    if (held && moved) wanted.drop();
    else if (!moved && e.type === "pointerup") wanted.tap(drawing.hit(start.x, start.y));
    held = "";
  };
  on("pointerup", up);
  on("pointercancel", up);
  if (!still) {
    on("wheel", (e) => {
      e.preventDefault();
      const p = at(e);
      drawing.zoom(Math.exp(-Math.sign(e.deltaY) * Math.min(60, Math.abs(e.deltaY * (e.deltaMode === 1 ? 16 : 1))) / 300), p.x, p.y);
      wanted.look();
    });
  }
  return () => stop.abort();
}
