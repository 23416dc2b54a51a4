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

/** signedOut is called when a call is refused for want of a token. */
let signedOut: () => void = () => {};
export function onSignedOut(f: () => void) {
  signedOut = f;
}

async function refusal(r: Response): Promise<ApiError> {
  const text = await r.text();
  let message = text.trim() || r.statusText || `HTTP status ${r.status}`;
  try {
    message = (JSON.parse(text) as { message?: string }).message ?? message;
  } catch {
    // It is not JSON: as it is.
  }
  if (r.status === 401) signedOut();
  return new ApiError(message, r.status);
}

async function send(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  let r: Response;
  try {
    r = await fetch(path, {
      method,
      signal,
      credentials: "same-origin",
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (err) {
    if (signal?.aborted) throw err;
    throw new ApiError("the controller does not answer", 0);
  }
  if (!r.ok) throw await refusal(r);
  return r;
}

/** get reads a path of the northbound. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await send("GET", path, undefined, signal)).json()) as T;
}

/** post calls a method with a request. */
export async function post<T>(path: string, body: unknown = {}, signal?: AbortSignal): Promise<T> {
  return (await (await send("POST", path, body, signal)).json()) as T;
}

/** del deletes what a path names. */
export async function del<T>(path: string): Promise<T> {
  return (await (await send("DELETE", path, undefined)).json()) as T;
}

/** lines calls a method that answers with one JSON value per line, until it ends
 * or is aborted. */
export async function lines<T>(path: string, body: unknown, onLine: (value: T) => void, signal: AbortSignal): Promise<void> {
  const r = await send("POST", path, body, signal);
  const reader = r.body!.pipeThrough(new TextDecoderStream()).getReader();
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
export async function octets(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  return (await send("GET", path, undefined, signal)).body!;
}

/** text reads a path as text. */
export async function text(path: string): Promise<string> {
  return (await send("GET", path, undefined)).text();
}

/** textOf returns what an error says. */
export function textOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}
