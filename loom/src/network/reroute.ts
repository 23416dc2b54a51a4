import { cableKey } from "../api/known";
import type { Link, LoggedEvent, TraceStep } from "../api/types.gen";

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

/** Cut is a link that ended, or several at once, and what the controller has said of routes since. */
export interface Cut {
  id: number;
  cables: string[]; // none yet if the user is only cutting it
  here: boolean; // the user has cut it
  back: boolean; // it is up again
  moved: number; // routes
  failed: number; // routes for which there is no other path
  ms: number; // that the slowest took, from the event to its last entry
}

/** Reroute says how long the controller took to move the routes over a link that ends. */
export class Reroute {
  private cut?: Cut;
  private last = 0; // by the controller's clock, when something of it happened
  private count = 0;

  private begin(at: number, here: boolean): Cut {
    this.last = at;
    return { id: ++this.count, cables: [], here, back: false, moved: 0, failed: 0, ms: 0 };
  }

  /** cutting is called when the user cuts a link. */
  cutting(): Cut {
    return (this.cut = this.begin(0, true));
  }

  /** seen takes an event, and returns what is known of the cut if that has changed. */
  seen(logged: LoggedEvent): Cut | undefined {
    const at = Date.parse(logged.time ?? "") || 0;
    const event = (logged.event ?? {}) as { link?: Link; removed?: boolean; change?: string; took_us?: string | number };
    const fresh = !this.cut || (at - this.last > quiet && this.last > 0);
    if (logged.subject === "discovery.LinkChanged") {
      const cable = cableKey(event.link ?? {});
      if (!event.removed) {
        if (!this.cut?.cables.includes(cable) || event.link?.state !== "up") return undefined;
        return (this.cut = { ...this.cut, back: true });
      }
      const c = fresh ? this.begin(at, false) : this.cut!;
      this.last = at;
      if (c.cables.includes(cable)) return undefined;
      return (this.cut = { ...c, cables: [...c.cables, cable] });
    }
    if (logged.subject !== "forwarding.RouteChanged" || (event.change !== "rerouted" && event.change !== "failed") || fresh || this.last === 0) return undefined;
    const c = this.cut!;
    this.last = at;
    const failed = event.change === "failed";
    return (this.cut = { ...c, moved: c.moved + (failed ? 0 : 1), failed: c.failed + (failed ? 1 : 0), ms: Math.max(c.ms, Number(event.took_us ?? 0) / 1000) });
  }
}

/** Said is a cut in words: a number of milliseconds if any route has moved. */
export interface Said {
  ms: string;
  head: string;
  words: string;
  mood: "accent" | "warn" | "dim";
}

const routes = (n: number) => `${n} ${n === 1 ? "route" : "routes"}`;

/** sayCut returns a cut in words; link names its link, late says that its routes had time to move, and traced that a path
 * that is looked at led over it. */
export function sayCut(c: Cut, link: string, late: boolean, traced: boolean): Said {
  const what = c.cables.length > 1 ? `${c.cables.length} links went down.` : c.cables.length === 0 ? "The link is being cut." : `Link ${link} ${c.here ? "was cut" : "went down"}.`;
  const failed = c.failed > 0 ? ` ${routes(c.failed)} found no other path.` : "";
  if (c.moved > 0) return { ms: c.ms.toFixed(1), head: `${routes(c.moved)} moved`, words: what + failed, mood: "accent" };
  if (c.failed > 0) return { ms: "", head: "No other path", words: what + failed, mood: "warn" };
  if (late && traced) return { ms: "", head: "No new path yet", words: what, mood: "warn" };
  if (late) return { ms: "", head: "No route moved", words: what, mood: "dim" };
  return { ms: "", head: "Waiting for routes to move", words: what, mood: "dim" };
}
