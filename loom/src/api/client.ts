/** What the northbound answers when it refuses or fails. */
export class ApiError extends Error {
  /** status is that of HTTP; 0 if the controller does not answer. */
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** sessionPath says who the user is, and signs in and out. */
export const sessionPath = "v1/session";

/** refused is called when a call is refused for want of a token (401) or of a role (403). */
let refused: (status: 401 | 403) => void = () => {};
export function onRefused(f: (status: 401 | 403) => void) {
  refused = f;
}

/** ended is whether the sign-in has ended: until the next one, calls are not made, as each would count as a wrong token. */
let ended = false;
const hasEnded = () => new ApiError("your sign-in has ended: sign in, and try again; what you typed is kept", 401);

/** signedIn lets calls be made again. */
export function signedIn() {
  ended = false;
}

/** patience is how long an answer may take to begin, in milliseconds: longer than the gateway's call_timeout.
 * Pings and measurements of a lab, and the end of an experiment, take minutes. */
function patience(method: string, path: string): number {
  if (method === "GET") return 30_000;
  return /^v1\/(lab|experiments)\b/.test(path) ? 630_000 : 95_000;
}

async function refusal(r: Response, path: string): Promise<ApiError> {
  if (path !== sessionPath && (r.status === 401 || r.status === 403)) {
    ended = r.status === 401;
    refused(r.status);
    if (ended) return hasEnded();
  }
  const text = await r.text();
  let message = text.trim() || r.statusText || `HTTP status ${r.status}`;
  try {
    message = (JSON.parse(text) as { message?: string }).message ?? message;
  } catch {
    // It is not JSON: as it is.
  }
  return new ApiError(message, r.status);
}

/** send makes a call, and reads its answer as read does. */
async function send<T>(method: string, path: string, body: unknown, read: (r: Response) => T | Promise<T>, signal?: AbortSignal, within = patience(method, path)): Promise<T> {
  if (ended && path !== sessionPath) throw hasEnded();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), within);
  try {
    const r = await fetch(path, {
      method,
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
      credentials: "same-origin",
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (!r.ok) throw await refusal(r, path);
    return await read(r);
  } catch (err) {
    if (signal?.aborted || err instanceof ApiError) throw err;
    if (err instanceof SyntaxError) throw new ApiError(`the answer to ${path} is no JSON: something other than the controller may have answered`, 0);
    throw new ApiError(`the controller does not answer${late.signal.aborted ? ` for ${within / 1000} s` : ""}`, 0);
  } finally {
    clearTimeout(timer);
  }
}

/** get reads a path of the northbound. */
export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return send("GET", path, undefined, (r) => r.json() as Promise<T>, signal);
}

/** post calls a method with a request; within bounds how long its answer may take. */
export function post<T>(path: string, body: unknown = {}, signal?: AbortSignal, within?: number): Promise<T> {
  return send("POST", path, body, (r) => r.json() as Promise<T>, signal, within);
}

/** del deletes what a path names. */
export function del<T>(path: string): Promise<T> {
  return send("DELETE", path, undefined, (r) => r.json() as Promise<T>);
}

/** lines calls a method that answers with one JSON value per line, until it ends
 * or is aborted. */
export async function lines<T>(path: string, body: unknown, onLine: (value: T) => void, signal: AbortSignal): Promise<void> {
  const stream = await send("POST", path, body, (r) => r.body!, signal);
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    for (let at = rest.indexOf("\n"); at >= 0; at = rest.indexOf("\n")) {
      const line = rest.slice(0, at).trim();
      rest = rest.slice(at + 1);
      if (line) onLine(JSON.parse(line) as T);
    }
  }
}

/** octets reads a path as a stream of octets. */
export function octets(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  return send("GET", path, undefined, (r) => r.body!, signal);
}

/** text reads a path as text. */
export function text(path: string, signal?: AbortSignal): Promise<string> {
  return send("GET", path, undefined, (r) => r.text(), signal);
}

/** doubtful returns what an error of a change says: one that was not answered may have been made. */
export function doubtful(err: unknown): string {
  return err instanceof ApiError && err.status === 0 ? `${err.message}; whether the change was made is not known: look before you make it again` : textOf(err);
}

/** textOf returns what an error says. */
export function textOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}
