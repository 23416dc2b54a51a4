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

/** Reroute says how long the controller took to move the routes over a link that ends. */
export class Reroute {
  private cutHere = false;
  private downAt = 0; // by the controller's clock, as what follows
  private last = 0;
  private moved = 0;
  private failed = 0;
  private slowest = 0;

  /** cut is called when the user cuts a link. */
  cut() {
    this.begin(0);
    this.cutHere = true;
  }

  private begin(downAt: number) {
    [this.cutHere, this.downAt, this.last, this.moved, this.failed, this.slowest] = [false, downAt, downAt, 0, 0, 0];
  }

  /** seen takes an event, and returns what is to be said, "" if nothing is. */
  seen(logged: LoggedEvent): string {
    const at = Date.parse(logged.time ?? "") || 0;
    const event = (logged.event ?? {}) as { removed?: boolean; change?: string; took_us?: string | number };
    if (logged.subject === "discovery.LinkChanged" && event.removed) {
      if (this.cutHere && this.downAt === 0) [this.downAt, this.last] = [at, at];
      else if (at - this.last > quiet) this.begin(at);
      else return "";
      return this.text();
    }
    if (logged.subject !== "forwarding.RouteChanged" || (event.change !== "rerouted" && event.change !== "failed")) return "";
    if (at - this.last > quiet && (!this.cutHere || this.downAt > 0)) this.begin(0);
    this.last = at;
    if (event.change === "failed") this.failed++;
    else this.moved++;
    this.slowest = Math.max(this.slowest, Number(event.took_us ?? 0) / 1000);
    return this.text();
  }

  private text(): string {
    if (this.moved + this.failed === 0) return this.cutHere ? "The link is down; no route has moved yet." : "";
    const failed = this.failed > 0 ? `; ${this.failed} could not be` : "";
    return `${this.moved} ${this.moved === 1 ? "route" : "routes"} rerouted in ${this.slowest.toFixed(1)} ms${failed}.`;
  }
}
