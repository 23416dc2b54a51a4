import { textOf } from "./client";

/**
 * poll calls f, and again ms after it has ended: never twice at a time, at most for a
 * quarter of the time, and not while the page is hidden. It returns what stops it, which
 * aborts the signal that f gets. said gets the error of each call, "" if there was none.
 */
export function poll(ms: number, f: (signal: AbortSignal) => Promise<void>, said: (error: string) => void = () => {}): () => void {
  const stop = new AbortController();
  void (async () => {
    await Promise.resolve(); // what f reads is not what an effect that calls poll depends on
    while (!stop.signal.aborted) {
      const began = performance.now();
      if (!globalThis.document?.hidden) {
        const error = await f(stop.signal).then(() => "", textOf);
        if (stop.signal.aborted) return;
        said(error);
      }
      await pause(Math.max(ms, 3 * (performance.now() - began)), stop.signal);
    }
  })();
  return () => stop.abort();
}

/** pause waits, less long if the signal is aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(end, ms);
    function end() {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    }
    signal.addEventListener("abort", end);
  });
}
