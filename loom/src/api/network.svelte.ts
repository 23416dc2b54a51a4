import { ApiError, post, textOf } from "./client";
import { apply, clear, empty, subjectText, type Known } from "./known";
import { session } from "./session.svelte";
import type { EventPosition, LoggedEvent, ReadEventsResponse } from "./types.gen";

/** Happening is an event as the time line shows it. */
export interface Happening {
  number: number;
  time: string;
  subject: string;
  text: string;
}

const kept = 300; // events of the time line

// How long a call waits for events, how much longer its answer may take, and how often a page that nobody sees asks, in milliseconds.
const longest = 15_000;
const grace = 5_000;
const unseen = 5_000;

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
  /** version changes whenever known does. */
  version = $state(0);
  /** happenings are the last events, the newest first. */
  happenings = $state.raw<Happening[]>([]);
  /** lost says why nothing arrives; "" if it does. */
  lost = $state("");
  /** resumed says that the connection came back, and how. */
  resumed = $state("");
  /** read is whether the whole state has been read. */
  read = $state(false);

  private position: EventPosition | undefined;
  private stop: AbortController | undefined;
  private listeners = new Set<(events: LoggedEvent[], renewed: boolean) => void>();

  /** follow begins to read events, until end. */
  follow() {
    if (this.stop) return;
    this.stop = new AbortController();
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
        if (this.lost) this.resumed = r.restarted ? "The controller answers again; its state was read anew." : "The controller answers again; nothing was missed.";
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
        this.lost = navigator.onLine ? textOf(err) : "the controller does not answer, and this machine has no network";
        turn = new AbortController();
        await seen(pause, AbortSignal.any([signal, turn.signal]));
        pause = Math.min(2 * pause, 4000);
      }
    }
  }

  private take(r: ReadEventsResponse) {
    const renewed = r.restarted ?? false;
    this.position = r.position;
    if (renewed) {
      clear(this.known);
      this.read = false;
    }
    const events = r.events ?? [];
    const fresh: Happening[] = [];
    for (const e of events) {
      apply(this.known, e);
      if (!e.state) fresh.push({ number: Number(e.number), time: e.time ?? "", subject: e.subject ?? "", text: subjectText(e) });
    }
    if (fresh.length > 0) this.happenings = [...fresh.reverse(), ...this.happenings].slice(0, kept);
    if (Number(r.position?.state ?? 0) === 0) this.read = true;
    if (events.length > 0 || renewed) this.version++;
    for (const f of this.listeners) f(events, renewed);
  }
}

export const network = new Network();
