import type { TraceStep } from "../api/types.gen";

/** dpidsOf returns the switches of a trace. */
export function dpidsOf(steps: TraceStep[]): string[] {
  return [...new Set(steps.map((s) => s.switch ?? ""))];
}

/** cablesOf returns the links that a trace crosses, as the map names them. */
export function cablesOf(steps: TraceStep[]): string[] {
  const out = new Set<string>();
  for (const s of steps) {
    for (const o of s.out ?? []) {
      if (!o.to?.dpid) continue;
      const [a, b] = [`${s.switch}:${o.port}`, `${o.to.dpid}:${o.to.port}`];
      out.add(a < b ? `${a}-${b}` : `${b}-${a}`);
    }
  }
  return [...out];
}

/**
 * Reroute times what follows a cut: from the click until the link is known to be
 * down, and what the controller says it took to move routes.
 */
export class Reroute {
  private cutAt = 0;
  private downAt = 0;
  private moved = 0;
  private longest = 0;

  /** cut is called when the user cuts a link. */
  cut(now: number) {
    [this.cutAt, this.downAt, this.moved, this.longest] = [now, 0, 0, 0];
  }

  /** seen takes an event, and returns what is to be said, "" if nothing is. */
  seen(subject: string, event: Record<string, unknown>, now: number): string {
    if (subject === "discovery.LinkChanged" && event.removed && this.cutAt > 0 && this.downAt === 0) this.downAt = now;
    if (subject !== "forwarding.RouteChanged" || event.change !== "rerouted") return "";
    const took = Number(event.took_us ?? 0) / 1000;
    this.moved++;
    this.longest = Math.max(this.longest, took);
    const seen = this.cutAt > 0 ? ` ${(now - this.cutAt).toFixed(0)} ms after the cut was asked for here, seen in this page.` : "";
    return `${this.moved} ${this.moved === 1 ? "route" : "routes"} moved; the last took the controller ${took.toFixed(1)} ms, the slowest ${this.longest.toFixed(1)} ms from the event to the last entry.${seen}`;
  }
}
