import { expect, test } from "vitest";

import { boxWide, byType, meanOf, noteOf, picture, rowHigh, wayOf, wide } from "./core";

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

const relayed = { ...pairs[0], packets: 0, requests: "30", errors: 3, mean_ms: 4, front: true };

test("requests that the front has passed on have a line of their own", () => {
  const { lines } = picture([...pairs, relayed]);
  expect(lines.map((l) => l.title)[3]).toBe("AMF 10.0.1.1 to UDM 10.0.4.1: 30 requests by the front");
  expect([...pairs, relayed].map(wayOf)).toEqual(["end point", "its own address", "end point", "the front"]);
});

test("pairs are added up by types, and times are weighted by requests", () => {
  const more = { ...relayed, consumer: "10.0.1.2", requests: 10, errors: 0, mean_ms: 12 };
  const [amf, other] = byType([...pairs, relayed, more]);
  expect(amf).toMatchObject({ consumer: "AMF", producer: "UDM", pairs: 4, packets: 99, requests: 40, errors: 3, meanMs: 6 });
  expect(other).toMatchObject({ consumer: "unregistered", producer: "AUSF", requests: 0, meanMs: NaN });
  expect([0.25, 6, 240, NaN].map(meanOf)).toEqual(["0.3", "6.0", "240", ""]);
});

test("a pair says why connections were refused, and that its requests are of samples", () => {
  expect(pairs.map(noteOf)).toEqual(["", "", ""]);
  expect(noteOf({ ...pairs[0], sampled: true })).toBe("requests of samples");
  expect(noteOf({ ...pairs[1], refused: 3, reason: "forbidden by its policy", sampled: true })).toBe("requests of samples; refused: forbidden by its policy");
});

test("without pairs there is room for a line of text", () => {
  expect(picture([])).toEqual({ boxes: [], lines: [], high: rowHigh });
});
