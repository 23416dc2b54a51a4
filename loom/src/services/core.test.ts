import { expect, test } from "vitest";

import { boxWide, picture, rowHigh, wide } from "./core";

const pairs = [
  { consumer: "10.0.1.1", consumer_type: "AMF", producer: "10.0.4.1:7777", type: "UDM", packets: "90", authorised: true },
  { consumer: "10.0.1.1", consumer_type: "AMF", producer: "10.0.4.1:7778", type: "UDM", packets: 9, direct: true, authorised: true },
  { consumer: "10.0.9.9", producer: "[fd00::3]:80", type: "AUSF" },
];

test("consumers are at the left, producers at the right, each once", () => {
  const { boxes, high } = picture(pairs);
  expect(boxes.map((b) => b.name)).toEqual(["AMF 10.0.1.1", "unregistered 10.0.9.9", "AUSF fd00::3", "UDM 10.0.4.1"]);
  expect(boxes.map((b) => b.x)).toEqual([0, 0, wide - boxWide, wide - boxWide]);
  expect(high).toBe(2 * rowHigh);
});

test("a line stands for all ports of a pair, by the end point or past it, and says what is special", () => {
  const { lines } = picture([...pairs, { ...pairs[0], producer: "10.0.4.1:7779", packets: 9 }]);
  expect(lines.map((l) => l.title)).toEqual([
    "AMF 10.0.1.1 to UDM 10.0.4.1: 99 packets",
    "AMF 10.0.1.1 to UDM 10.0.4.1: 9 packets, past the end point",
    "unregistered 10.0.9.9 to AUSF fd00::3: 0 packets, not authorised",
  ]);
  expect(lines[0].width).toBeCloseTo(3);
  expect(lines.map((l) => l.direct)).toEqual([false, true, false]);
  expect(lines[2].refused).toBe(true);
});

test("without pairs there is room for a line of text", () => {
  expect(picture([])).toEqual({ boxes: [], lines: [], high: rowHigh });
});
