import { expect, test, vi } from "vitest";

import { poll } from "./poll";

test("a slow answer is waited for, and what has stopped says nothing more", async () => {
  vi.useFakeTimers();
  try {
    let under = 0;
    let most = 0;
    let calls = 0;
    const said: string[] = [];
    const stop = poll(
      1000,
      async (signal) => {
        most = Math.max(most, ++under);
        await new Promise((done) => setTimeout(done, 5000));
        under--;
        if (signal.aborted) throw new Error("stopped");
        if (++calls === 2) throw new Error("no answer");
      },
      (error) => said.push(error),
    );
    await vi.advanceTimersByTimeAsync(5000 + 15000 + 5000 + 15000 + 100); // a quarter of the time
    expect([most, calls, said]).toEqual([1, 2, ["", "no answer"]]);
    stop();
    await vi.advanceTimersByTimeAsync(60000);
    expect([calls, said.length]).toEqual([2, 2]);
  } finally {
    vi.useRealTimers();
  }
});

test("it goes on at the pace that is asked for if answers are quick", async () => {
  vi.useFakeTimers();
  try {
    let calls = 0;
    const stop = poll(1000, async () => void calls++);
    await vi.advanceTimersByTimeAsync(4500);
    expect(calls).toBe(5);
    stop();
  } finally {
    vi.useRealTimers();
  }
});
