import { afterEach, expect, test, vi } from "vitest";

import { ApiError, del, doubtful, get, onRefused, post, sessionPath, signedIn } from "./client";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  signedIn();
  onRefused(() => {});
});

const failure = async (f: Promise<unknown>): Promise<ApiError> => {
  try {
    await f;
  } catch (err) {
    return err as ApiError;
  }
  throw new Error("it does not fail");
};

/** silent is a controller that takes calls and never answers. */
function silent() {
  const fetch = vi.fn((_: string, { signal }: RequestInit) => new Promise<Response>((_done, fail) => signal!.addEventListener("abort", () => fail(new DOMException("aborted", "AbortError")))));
  vi.stubGlobal("fetch", fetch);
  return fetch;
}

test("a controller that hangs is given up, and whether a change was made is doubtful", async () => {
  vi.useFakeTimers();
  silent();
  const [read, change, ping] = [failure(get("v1/hosts")), failure(post("v1/config")), failure(post("v1/lab/labs/x/ping"))];
  await vi.advanceTimersByTimeAsync(30_000);
  expect((await read).message).toBe("the controller does not answer for 30 s");
  await vi.advanceTimersByTimeAsync(65_000);
  expect((await change).status).toBe(0);
  expect(doubtful(await change)).toContain("whether the change was made is not known");
  await vi.advanceTimersByTimeAsync(600_000);
  expect((await ping).message).toContain("630 s");
});

test("an answer that breaks off, or hangs, is no answer", async () => {
  vi.useFakeTimers();
  vi.stubGlobal("fetch", async (_: string, { signal }: RequestInit) =>
    new Response(new ReadableStream({ start: (c) => (c.enqueue(new TextEncoder().encode('{"a":')), signal!.addEventListener("abort", () => c.error(new DOMException("aborted", "AbortError")))) })));
  const broken = failure(get("v1/hosts"));
  await vi.advanceTimersByTimeAsync(30_000);
  expect(await broken).toMatchObject({ status: 0, message: "the controller does not answer for 30 s" });
  vi.stubGlobal("fetch", async () => new Response("<html>of a proxy</html>"));
  expect((await failure(get("v1/hosts"))).message).toContain("is no JSON");
});

test("what the caller ends is no failure of the controller", async () => {
  silent();
  const stop = new AbortController();
  const read = failure(get("v1/hosts", stop.signal));
  stop.abort();
  expect(await read).not.toBeInstanceOf(ApiError);
});

test("when the sign-in has ended no call is made until the next one: each would count as a wrong token", async () => {
  const fetch = vi.fn(async () => new Response('{"message": "the token is wrong"}', { status: 401 }));
  vi.stubGlobal("fetch", fetch);
  const refused = vi.fn();
  onRefused(refused);
  expect((await failure(get("v1/hosts"))).message).toContain("your sign-in has ended");
  expect((await failure(del("v1/x"))).status).toBe(401);
  expect(fetch).toHaveBeenCalledTimes(1);
  expect(refused.mock.calls).toEqual([[401]]);
  expect((await failure(post(sessionPath, {}))).message).toBe("the token is wrong");
  fetch.mockImplementation(async () => new Response("{}"));
  signedIn();
  expect(await get("v1/hosts")).toEqual({});
});

test("a role that does not suffice is said, and asked for again", async () => {
  vi.stubGlobal("fetch", async () => new Response('{"message": "needs admin"}', { status: 403 }));
  const refused = vi.fn();
  onRefused(refused);
  expect((await failure(post("v1/config"))).message).toBe("needs admin");
  expect(refused.mock.calls).toEqual([[403]]);
});
