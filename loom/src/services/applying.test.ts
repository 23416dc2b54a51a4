import { expect, test } from "vitest";

import { fates } from "./applying.svelte";

const worker = (process: string, pid: number, services: string[], state = "up") => ({ process, pid, state, services: services.map((name) => ({ name })) });

test("processes start, end, restart, change their services or stay", () => {
  const before = [worker("a", 1, ["x", "y"]), worker("b", 2, ["z"]), worker("c", 3, ["w"]), worker("d", 4, ["v"])];
  const now = [worker("a", 1, ["x"]), worker("c", 30, ["w"], "starting"), worker("d", 4, ["v"]), worker("e", 5, ["y"])];
  expect(fates(before, now).map((f) => [f.process, f.what, f.state])).toEqual([
    ["a", "changes", "up"],
    ["b", "ends", "ended"],
    ["c", "restarts", "starting"],
    ["d", "stays", "up"],
    ["e", "starts", "up"],
  ]);
  expect(fates(before, now)[0]).toMatchObject({ before: "pid 1: x, y", now: "pid 1: x" });
});
