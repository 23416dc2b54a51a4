import type { WatchedPacket } from "../api/types.gen";

/** Box is a process of the picture, with the stages in it. */
export interface Box {
  process: string;
  x: number;
  y: number;
  width: number;
  stages: Array<{ service: string; x: number; y: number }>;
}

/** Step is a stop of the packet: where, from when to when, and what came of it. */
export interface Step {
  x: number;
  y: number;
  from: number;
  to: number;
  text: string;
}

export const row = 74; // the height of a process
const column = 118; // the width of a stage

/** picture lays out the processes that a packet has met, each once, in the order
 * in which it met them, and the stops that it made. */
export function picture(p: WatchedPacket): { boxes: Box[]; steps: Step[]; width: number; height: number } {
  const boxes: Box[] = [];
  const steps: Step[] = [];
  (p.stages ?? []).forEach((s, i) => {
    const process = s.process ?? "";
    let box = boxes.find((b) => b.process === process);
    if (!box) boxes.push((box = { process, x: 0, y: boxes.length * row, width: 0, stages: [] }));
    const at = { service: s.service ?? "", x: 130 + i * column, y: box.y + 40 };
    box.stages.push(at);
    const ops = s.operations ?? [];
    steps.push({
      x: at.x,
      y: at.y,
      from: s.start_us ?? 0,
      to: (s.start_us ?? 0) + (s.duration_us ?? 0),
      text: `${s.service}: ${s.verdict}, ${(s.duration_us ?? 0).toFixed(0)} µs${s.transport && s.transport !== "inproc" ? `, by ${s.transport}` : ""}${ops.length > 0 ? `; ${ops.join("; ")}` : ""}`,
    });
  });
  const width = 160 + Math.max(1, (p.stages ?? []).length) * column;
  for (const b of boxes) b.width = width - 10;
  return { boxes, steps, width, height: Math.max(1, boxes.length) * row };
}

/** confirmations says, in a line each, what the switches have answered to the changes
 * of their entries. */
export function confirmations(p: WatchedPacket): Array<{ text: string; state: string }> {
  return (p.entries ?? []).map((e) => ({
    state: e.state ?? "",
    text: `${(e.at_us ?? 0).toFixed(0)} µs: switch ${(e.dpid ?? "").replace(/^0+/, "")}: ${e.state}${e.operation ? `: ${e.operation}` : ""}${e.error ? ` (${e.error})` : ""}`,
  }));
}

/** place returns where the packet is at a time of its way, and at which step. */
export function place(steps: Step[], us: number): { x: number; y: number; step: number } {
  if (steps.length === 0) return { x: 0, y: 0, step: -1 };
  for (let i = steps.length - 1; i >= 0; i--) {
    const s = steps[i];
    if (us < s.from && i > 0) {
      const before = steps[i - 1];
      if (us < before.to) continue;
      const t = (us - before.to) / Math.max(1e-9, s.from - before.to);
      return { x: before.x + (s.x - before.x) * t, y: before.y + (s.y - before.y) * t, step: i - 1 };
    }
    if (us >= s.from) return { x: s.x, y: s.y, step: i };
  }
  return { x: steps[0].x, y: steps[0].y, step: 0 };
}
