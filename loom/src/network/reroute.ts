import type { LoggedEvent, TraceStep } from "../api/types.gen";

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

const quiet = 2000; // milliseconds after which what happens is another story

/**
 * Reroute times what follows the end of a link: what the controller says it took to move
 * routes, and if the link was cut here, how long that took as this page saw it.
 */
export class Reroute {
  private cutAt = 0; // by the page's clock; 0: not cut here, or that is told
  private seenAfter = 0;
  private downAt = 0; // by the controller's clock, as what follows
  private last = 0;
  private moved = 0;
  private failed = 0;
  private slowest = 0;

  /** cut is called when the user cuts a link, with the page's clock. */
  cut(now: number) {
    this.begin(0);
    this.cutAt = now;
  }

  private begin(downAt: number) {
    [this.cutAt, this.seenAfter, this.downAt, this.last, this.moved, this.failed, this.slowest] = [0, 0, downAt, downAt, 0, 0, 0];
  }

  /** seen takes an event at a time of the page's clock, and returns what is to be said, "" if nothing is. */
  seen(logged: LoggedEvent, now: number): string {
    const at = Date.parse(logged.time ?? "") || 0;
    const event = (logged.event ?? {}) as { removed?: boolean; change?: string; took_us?: string | number };
    if (logged.subject === "discovery.LinkChanged" && event.removed) {
      if (this.cutAt > 0 && this.downAt === 0) [this.downAt, this.last] = [at, at];
      else if (at - this.last > quiet) this.begin(at);
      else return "";
      if (this.cutAt > 0) this.seenAfter = now - this.cutAt;
      return this.text();
    }
    if (logged.subject !== "forwarding.RouteChanged" || (event.change !== "rerouted" && event.change !== "failed")) return "";
    if (at - this.last > quiet && (this.cutAt === 0 || this.downAt > 0)) this.begin(0);
    this.last = at;
    if (event.change === "failed") this.failed++;
    else this.moved++;
    this.slowest = Math.max(this.slowest, Number(event.took_us ?? 0) / 1000);
    if (this.cutAt > 0) this.seenAfter = now - this.cutAt;
    return this.text();
  }

  private text(): string {
    const here = this.seenAfter > 0 ? ` This page saw it ${this.seenAfter.toFixed(0)} ms after the cut was asked for.` : "";
    if (this.moved + this.failed === 0) return this.cutAt > 0 ? `The link is down; no route has moved.${here}` : "";
    const routes = `${this.moved} ${this.moved === 1 ? "route" : "routes"} moved${this.failed > 0 ? `, ${this.failed} could not be` : ""}`;
    const within = this.downAt > 0 ? ` within ${Math.max(0, this.last - this.downAt)} ms of the link's end` : "";
    return `${routes}${within}; the slowest took the controller ${this.slowest.toFixed(1)} ms, from the event to its last entry.${here}`;
  }
}
