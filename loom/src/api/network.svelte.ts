import { ApiError, get, post, textOf } from "./client";
import { happening, kept, TimeLine, type Happening } from "./happenings";
import { apply, clear, empty, prune, type Known } from "./known";
import { poll } from "./poll";
import { session } from "./session.svelte";
import type { EventPosition, ListSwitchNamesResponse, LoggedEvent, ReadEventsResponse } from "./types.gen";

// How long a call waits for events, how much longer its answer may take, and how often a page that nobody sees asks, in milliseconds.
const longest = 15_000;
const grace = 5_000;
const unseen = 5_000;
const pace = 100; // between changes of version, at least
const naming = 10_000; // between readings of names: no event tells of them
const sweep = 30_000; // between looks for what is gone for long

/** seen waits some milliseconds, at most until the page is seen or hidden. */
function seen(most: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(end, most);
    function end() {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", end);
      signal.removeEventListener("abort", end);
      done();
    }
    document.addEventListener("visibilitychange", end);
    signal.addEventListener("abort", end);
  });
}

/**
 * Network is what the controller knows, kept by its numbered events: after a lost
 * connection it goes on where it was, and reads the state anew if it must.
 */
class Network {
  readonly known: Known = empty();
  /** line are the last events. */
  readonly line = new TimeLine();
  /** version changes when known or line has changed, at most ten times a second. */
  version = $state(0);
  /** lost says why nothing arrives; "" if it does. */
  lost = $state("");
  /** resumed says that the connection came back, and how. */
  resumed = $state("");
  /** read is whether the whole state has been read. */
  read = $state(false);

  private position: EventPosition | undefined;
  private oldest = 0; // the first event that the gateway still has
  private past = ""; // the run of the gateway whose earlier events were read
  private stop: AbortController | undefined;
  private pending = false; // a change of version
  private listeners = new Set<(events: LoggedEvent[], renewed: boolean) => void>();

  /** follow begins to read events, until end. */
  follow() {
    if (this.stop) return;
    this.stop = new AbortController();
    const sweeper = setInterval(() => prune(this.known, Date.now()) && this.changed([], false), sweep);
    const names = poll(naming, (signal) => this.name(signal));
    this.stop.signal.addEventListener("abort", () => {
      clearInterval(sweeper);
      names();
    });
    void this.run(this.stop.signal);
  }
  end() {
    this.stop?.abort();
    this.stop = undefined;
  }

  /** on calls f with every batch of events; renewed: all before is void. It
   * returns what ends that. */
  on(f: (events: LoggedEvent[], renewed: boolean) => void): () => void {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }

  /** recall reads the events from before the page was opened into line, as far as the gateway has them. */
  async recall() {
    const p = this.position;
    if (!p || !this.read || this.past === String(p.epoch)) return;
    this.past = String(p.epoch);
    try {
      this.line.before(await this.earlier(this.past, Number(p.number)));
      this.version++;
    } catch (err) {
      this.past = ""; // the next to ask tries again
      throw err;
    }
  }

  /** name reads what switches are called. */
  private async name(signal: AbortSignal) {
    const { names = [] } = await get<ListSwitchNamesResponse>("v1/switch-names", signal);
    const now = new Map(names.flatMap((n) => (n.dpid && n.name ? [[n.dpid, n.name] as const] : [])));
    const was = this.known.names;
    if (now.size === was.size && [...now].every(([dpid, name]) => was.get(dpid) === name)) return;
    this.known.names = now;
    if (this.read) this.changed([], false);
  }

  private async earlier(epoch: string, last: number): Promise<Happening[]> {
    const older: Happening[] = [];
    for (let at = Math.max(this.oldest - 1, last - kept); at < last; ) {
      const r = await post<ReadEventsResponse>("v1/events:read", { position: { epoch, number: at } });
      if (String(r.position?.epoch) !== epoch) break; // the gateway was started again
      if (r.restarted) {
        at = Number(r.oldest) - 1; // it has dropped some meanwhile
        continue;
      }
      if (!r.events?.length) break;
      older.push(...r.events.map((e) => happening(e, epoch, this.known)));
      at = Number(r.position?.number);
    }
    return older;
  }

  private async run(signal: AbortSignal) {
    let pause = 250;
    // The browser knows at once that it has lost its network, or has it again.
    let turn = new AbortController();
    const turned = () => turn.abort();
    for (const e of ["offline", "online"]) addEventListener(e, turned, { signal });
    while (!signal.aborted) {
      turn = new AbortController();
      const stop = AbortSignal.any([signal, turn.signal]);
      try {
        // A page that nobody sees holds no connection: browsers have few for each controller. Nor does one that waits for news of a controller that was away.
        const wait = this.position && !this.lost && !document.hidden ? longest : 0;
        const r = await post<ReadEventsResponse>("v1/events:read", { position: this.position, wait_ms: wait }, stop, longest + grace);
        if (this.lost) session.anew++;
        if (this.lost) this.resumed = r.restarted ? "Reconnected; everything reloaded." : "Reconnected; nothing was missed.";
        this.lost = "";
        pause = 250;
        this.take(r);
        if (document.hidden && Number(r.position?.state ?? 0) === 0) await seen(unseen, signal);
      } catch (err) {
        if (signal.aborted) return;
        if (err instanceof ApiError && err.status === 401) {
          this.end(); // until the next sign-in
          return;
        }
        this.resumed = "";
        if (turn.signal.aborted && navigator.onLine) continue;
        this.lost = navigator.onLine ? textOf(err) : "no answer from the controller";
        turn = new AbortController();
        await seen(pause, AbortSignal.any([signal, turn.signal]));
        pause = Math.min(2 * pause, 4000);
      }
    }
  }

  private take(r: ReadEventsResponse) {
    const renewed = r.restarted ?? false;
    const epoch = String(r.position?.epoch);
    if (renewed && this.position) {
      const text = String(this.position.epoch) === epoch ? "this page has missed events" : "the gateway was started again";
      this.line.add([{ key: `${epoch}/${r.position?.state}/anew`, at: Date.now(), subject: "loom", kind: "other", text: `${text}: the state was read anew`, dpid: "", about: {} }]);
    }
    this.position = r.position;
    this.oldest = Number(r.oldest ?? 0);
    if (renewed) {
      clear(this.known);
      this.read = false;
    }
    const events = r.events ?? [];
    for (const e of events) apply(this.known, e);
    this.line.add(events.filter((e) => !e.state).map((e) => happening(e, epoch, this.known)));
    if (Number(r.position?.state ?? 0) === 0) this.read = true;
    if (events.length > 0 || renewed) this.changed(events, renewed);
  }

  private changed(events: LoggedEvent[], renewed: boolean) {
    if (!this.pending) setTimeout(() => ((this.pending = false), this.version++), pace);
    this.pending = true;
    for (const f of this.listeners) f(events, renewed);
  }
}

export const network = new Network();
