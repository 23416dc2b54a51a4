import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { network } from "./network.svelte";
import { session } from "./session.svelte";

// A page that is seen, and a controller that answers as the test says.
const page = { hidden: false, addEventListener: () => {}, removeEventListener: () => {} };
let asked: Array<{ wait_ms: number; position?: { number: number } }> = [];
let answers: Array<"hang" | "fail" | object> = [];

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  page.hidden = false;
  vi.stubGlobal("document", page);
  vi.stubGlobal("navigator", { onLine: true });
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("fetch", (_: string, { body, signal }: RequestInit) => {
    asked.push(JSON.parse(body as string));
    const next = answers.shift() ?? "hang";
    if (next === "fail") return Promise.reject(new TypeError("failed to fetch"));
    if (next !== "hang") return Promise.resolve(new Response(JSON.stringify(next)));
    return new Promise((_done, fail) => signal!.addEventListener("abort", () => fail(new DOMException("aborted", "AbortError"))));
  });
});
afterEach(() => {
  network.end();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const at = (number: number) => ({ position: { epoch: 1, number, state: 0 }, events: [] });

test("a controller that hangs is said to be lost, and is asked at once for what was missed when it is back", async () => {
  answers = [{ ...at(5), restarted: true }, "hang", at(5)];
  const anew = session.anew;
  network.follow();
  await vi.advanceTimersByTimeAsync(1000);
  expect([network.read, network.lost]).toEqual([true, ""]);
  await vi.advanceTimersByTimeAsync(19_100);
  expect(network.lost).toBe("the controller does not answer for 20 s");
  await vi.advanceTimersByTimeAsync(1000);
  expect([network.lost, network.resumed]).toEqual(["", "Reconnected; nothing was missed."]);
  expect(asked.map((a) => a.wait_ms)).toEqual([0, 15_000, 0, 15_000]);
  expect(asked[2].position?.number).toBe(5);
  expect(session.anew).toBe(anew + 1);
});

test("a page that nobody sees holds no connection", async () => {
  page.hidden = true;
  answers = [{ ...at(5), restarted: true }, at(5), at(5), at(5)];
  network.follow();
  await vi.advanceTimersByTimeAsync(11_000);
  expect(asked.every((a) => a.wait_ms === 0)).toBe(true);
  expect(asked.length).toBeLessThanOrEqual(3);
});

test("earlier events are read once, and again after a failure", async () => {
  const events = [{ number: 4, subject: "new.Event", event: { n: 4 } }, { number: 5, subject: "new.Event", event: { n: 5 } }];
  answers = [{ ...at(5), restarted: true, oldest: 4 }, "hang"];
  network.follow();
  await vi.advanceTimersByTimeAsync(100);
  const before = network.line.all.length;
  answers = ["fail"];
  await expect(network.recall()).rejects.toThrow();
  answers = [{ ...at(5), events }];
  await network.recall();
  await network.recall();
  expect(asked.slice(-2).map((a) => a.position?.number)).toEqual([3, 3]);
  expect(network.line.all.slice(0, 2).map((h) => h.text)).toEqual(['{"n":4}', '{"n":5}']);
  expect(network.line.all.length).toBe(before + 2);
});
