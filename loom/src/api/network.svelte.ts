import { ApiError, post, textOf } from "./client";
import { apply, clear, empty, subjectText, type Known } from "./known";
import type { EventPosition, LoggedEvent, ReadEventsResponse } from "./types.gen";

/** Happening is an event as the time line shows it. */
export interface Happening {
  number: number;
  time: string;
  subject: string;
  text: string;
}

const kept = 300; // events of the time line

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
    while (!signal.aborted) {
      try {
        const r = await post<ReadEventsResponse>("v1/events:read", { position: this.position, wait_ms: this.position ? 15000 : 0 }, signal);
        if (this.lost) this.resumed = r.restarted ? "The controller answers again; its state was read anew." : "The controller answers again; nothing was missed.";
        this.lost = "";
        pause = 250;
        this.take(r);
      } catch (err) {
        if (signal.aborted) return;
        if (err instanceof ApiError && (err.status === 401 || err.status === 403)) {
          this.lost = err.message;
          this.end();
          return;
        }
        this.lost = textOf(err);
        this.resumed = "";
        await new Promise((done) => setTimeout(done, pause));
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
