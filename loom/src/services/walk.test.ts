import { expect, test } from "vitest";

import { confirmations, picture, place } from "./walk";

const packet = {
  stages: [
    { service: "discovery", process: "southbound", transport: "inproc", start_us: 10, duration_us: 5, verdict: "next" },
    { service: "hosts", process: "hosts", transport: "grpc", start_us: 300, duration_us: 40, verdict: "next" },
    { service: "forwarding", process: "southbound", transport: "inproc", start_us: 700, duration_us: 100, verdict: "done", operations: ["flow-mod s1"] },
  ],
};

test("a process is drawn once, with all its stages", () => {
  const p = picture(packet);
  expect(p.boxes.map((b) => [b.process, b.stages.length])).toEqual([["southbound", 2], ["hosts", 1]]);
  expect(p.steps[2].text).toContain("flow-mod s1");
  expect(p.steps[1].text).toContain("by grpc");
});

test("the packet goes from stage to stage in time", () => {
  const { steps } = picture(packet);
  expect(place(steps, 0).step).toBe(0);
  expect(place(steps, 12)).toMatchObject({ x: steps[0].x, step: 0 });
  const between = place(steps, 200);
  expect(between.x).toBeGreaterThan(steps[0].x);
  expect(between.x).toBeLessThan(steps[1].x);
  expect(place(steps, 320).step).toBe(1);
  expect(place(steps, 1e9).step).toBe(2);
  let last = 0;
  for (let us = 0; us < 900; us += 7) {
    expect(place(steps, us).x).toBeGreaterThanOrEqual(last);
    last = place(steps, us).x;
  }
});

test("a packet without stages is no harm", () => {
  expect(picture({}).boxes).toEqual([]);
  expect(place([], 5).step).toBe(-1);
});

test("what the switches have said is told, each with its time", () => {
  const list = confirmations({
    entries: [
      { dpid: "0000000000000002", operation: "add flow", state: "confirmed", error: "", at_us: 812.4 },
      { dpid: "000000000000000a", operation: "add flow", state: "refused", error: "table full", at_us: 900 },
    ],
  });
  expect(list.map((c) => c.text)).toEqual(["812 µs: switch 2: confirmed: add flow", "900 µs: switch a: refused: add flow (table full)"]);
  expect(confirmations({})).toEqual([]);
});
