import { expect, test } from "vitest";

import { Reroute, sayCut } from "./reroute";

const [s1, s2] = ["0000000000000001", "0000000000000002"];

test("a cut counts the routes that the controller moved since, and the slowest of them", () => {
  const r = new Reroute();
  const event = (subject: string, ms: number, e: object) => ({ subject, time: new Date(1e12 + ms).toISOString(), event: e as Record<string, unknown> });
  const link = (port = 1) => ({ src: { dpid: s1, port }, dst: { dpid: s2, port }, state: "up" });
  const down = (ms: number, port = 1) => event("discovery.LinkChanged", ms, { removed: true, link: link(port) });
  const moved = (ms: number, took_us: string, change = "rerouted") => event("forwarding.RouteChanged", ms, { change, took_us });
  expect(r.seen(moved(0, "9"))).toBe(undefined); // for no cut that was seen
  expect(r.seen(down(100))).toMatchObject({ cables: [`${s1}:1-${s2}:1`], here: false, moved: 0 });
  expect(r.seen(moved(104, "2500"))).toMatchObject({ moved: 1, ms: 2.5 });
  expect(r.seen(down(105))).toBe(undefined); // its other direction
  expect(r.seen(moved(109, "1500"))).toMatchObject({ moved: 2, ms: 2.5 });
  expect(r.seen(event("discovery.LinkChanged", 150, { link: link() }))).toMatchObject({ moved: 2, back: true });
  const first = r.cutting();
  expect(first).toMatchObject({ here: true, cables: [] });
  expect(r.seen(down(9200))).toMatchObject({ id: first.id, here: true, cables: [`${s1}:1-${s2}:1`] });
  expect(r.seen(down(9201, 2))?.cables.length).toBe(2);
  expect(r.seen(moved(9208, "0", "failed"))).toMatchObject({ moved: 0, failed: 1 });
  expect(r.seen(moved(9210, "3100"))).toMatchObject({ moved: 1, failed: 1, ms: 3.1 });
  expect(r.seen(moved(19_000, "700"))).toBe(undefined); // another story
  expect(r.seen(down(20_000))?.id).toBeGreaterThan(first.id);
});

test("a cut is said in words, and nothing is said that the controller has not", () => {
  const cut = { id: 1, cables: ["x"], here: true, back: false, moved: 0, failed: 0, ms: 0 };
  const said = (c: object, late = false, traced = false) => {
    const s = sayCut({ ...cut, ...c }, "s1 – s3", late, traced);
    return [s.ms, s.head, s.words, s.mood];
  };
  expect(said({ moved: 5, ms: 1.62 })).toEqual(["1.6", "5 routes moved", "Link s1 – s3 was cut.", "accent"]);
  expect(said({ moved: 1, failed: 2, ms: 3, here: false })).toEqual(["3.0", "1 route moved", "Link s1 – s3 went down. 2 routes found no other path.", "accent"]);
  expect(said({ failed: 1 })).toEqual(["", "No other path", "Link s1 – s3 was cut. 1 route found no other path.", "warn"]);
  expect(said({})).toEqual(["", "Waiting for routes to move", "Link s1 – s3 was cut.", "dim"]);
  expect(said({}, true, true)[1]).toBe("No new path yet");
  expect(said({ cables: ["a", "b"] }, true)).toEqual(["", "No route moved", "2 links went down.", "dim"]);
});
