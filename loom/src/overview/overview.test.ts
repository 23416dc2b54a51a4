import { expect, test, vi } from "vitest";

import { happening } from "../api/happenings";
import { apply, empty, type Known } from "../api/known";
import type { LoggedEvent } from "../api/types.gen";
import { loads } from "./load";

vi.stubGlobal("location", { hash: "" });
const { healthOf } = await import("./health");
const { news } = await import("./news");
const { addresses } = await import("./start");

const [s1, s2] = ["0000000000000001", "0000000000000002"];
const link = { src: { dpid: s1, port: 1 }, dst: { dpid: s2, port: 2 }, state: "up" };
const back = { src: link.dst, dst: link.src, state: "up" };

/** told brings events into what is known; each is a subject, what it says, and its second. */
function told(list: Array<[string, Record<string, unknown>, number]>): [ReturnType<typeof happening>[], Known] {
  const known = empty();
  const events = list.map(([subject, event, second], number): LoggedEvent => ({ number, subject, event, time: new Date(1000 * second).toISOString() }));
  for (const e of events) apply(known, e);
  return [events.map((e) => happening(e, "1")), known];
}
const connected = (dpid: string, description: string, second: number): [string, Record<string, unknown>, number] => ["southbound.SwitchChanged", { switch: { dpid, description, connected: true }, ports: [{ dpid, port: 1 }, { dpid, port: 2 }] }, second];
const up = (second: number): Array<[string, Record<string, unknown>, number]> => [link, back].map((l) => ["discovery.LinkChanged", { link: l, cause: "probe" }, second]);
const down = (second: number): Array<[string, Record<string, unknown>, number]> => [link, back].map((l) => ["discovery.LinkChanged", { link: l, removed: true, cause: "port_status" }, second]);
const moved = (src: string, ms: number, second: number): [string, Record<string, unknown>, number] => ["forwarding.RouteChanged", { route: { src, dst: "b" }, change: "rerouted", took_us: String(1000 * ms) }, second];

test("what belongs together is one piece of news: both directions of a link, and the routes that move for it", () => {
  const [all, known] = told([connected(s1, "s1", 1), connected(s2, "s2", 2), ...up(3), ...down(60), moved("a", 1.6, 60.1), moved("c", 1.2, 60.2), ...up(90)]);
  expect(news(all, known, 10).map((n) => [n.head, n.words])).toEqual([
    ["Link s1 – s2 is up", ""],
    ["Link s1 – s2 went down", "2 routes moved in 1.6 ms."],
    ["Link s1 – s2 is up", ""],
    ["2 switches connected", "s1, s2"],
  ]);
  expect(news(all, known, 2)).toHaveLength(2);
});

test("hosts and errors are news, what changes all the time is none", () => {
  const host = { mac: "02:00:00:00:00:01", ipv4: ["10.0.0.1"], at: { dpid: s1, port: 4 } };
  const [all, known] = told([connected(s1, "", 1), ["hosts.HostChanged", { host, change: "learnt" }, 20], ["southbound.PortChanged", { port: { dpid: s1, port: 1 } }, 30], ["southbound.SwitchError", { dpid: s1, text: "TABLE_FULL" }, 40]]);
  expect(news(all, known, 10).map((n) => [n.head, n.words])).toEqual([
    ["An error", "switch 1 refused message undefined: TABLE_FULL"],
    ["Host 10.0.0.1 appeared", "At switch 1, port 4"],
    ["Switch 1 connected", ""],
  ]);
});

test("the health of the network is a sentence, and names the one thing that is wrong", () => {
  expect(healthOf(empty(), undefined, [])).toMatchObject({ mood: "none", sentence: "No switch is connected yet." });
  const [, well] = told([connected(s1, "s1", 1), connected(s2, "s2", 1), ...up(2)]);
  expect(healthOf(well, { workers: [{ process: "paths", state: "up" }] }, [])).toMatchObject({ mood: "good", sentence: "The network is well.", facts: "2 switches, 1 link and 0 hosts. All 7 checks pass." });
  const [, cut] = told([connected(s1, "s1", 1), connected(s2, "s2", 1), ...up(2), ...down(3)]);
  expect(healthOf(cut, undefined, [])).toMatchObject({ mood: "bad", sentence: "Link s1 – s2 is down.", facts: "2 switches, 0 links and 0 hosts. 6 of 7 checks pass." });
  const held = { at: { dpid: s1, port: 1 }, cause: "held", reason: "its link is held." };
  expect(healthOf(well, undefined, [held])).toMatchObject({ mood: "warn", sentence: "Port s1:1: its link is held." });
  expect(healthOf(cut, { workers: [{ process: "paths", state: "down" }] }, [held])).toMatchObject({ mood: "bad", sentence: "3 things need a look." });
});

test("the address that switches connect to is that of the configuration or plan, or the usual one", () => {
  const at = (config: Parameters<typeof addresses>[0], plan = "", host = "controller.example") => addresses(config, plan, host);
  expect(at({})).toEqual(["tcp:127.0.0.1:6653"]);
  expect(at({ overrides: ["gateway.lab=/x", 'southbound.listen=["tcp:127.0.0.1:12653"]'] })).toEqual(["tcp:127.0.0.1:12653"]);
  expect(at({ text: "stats: {interval: 2s}\nsouthbound:\n  listen:\n    - tcp::6633\n    - ssl:[::]:6654\n  echo: 5s\n" }, "", "fd00::1")).toEqual(["tcp:[fd00::1]:6633", "ssl:[fd00::1]:6654"]);
  expect(at({ text: "{}\n" }, 'name: x\nsettings:\n  southbound: {listen: ["tcp:192.0.2.1:6653"], plain: true}\n')).toEqual(["tcp:192.0.2.1:6653"]);
});

test("the load of a process is that of one run between two readings, the busiest first and what is not up before it", () => {
  const workers = [{ process: "a", state: "up" }, { process: "b", state: "up" }, { process: "c", state: "down" }];
  const reading = (a: number, b: number, run: string) => ({ processes: [{ process: "a", run: "1", cpu_seconds: a, work: [{ rate: 3 }, { rate: 4 }] }, { process: "b", run, cpu_seconds: b }] });
  expect(loads(workers, reading(1, 1, "1"), reading(1.5, 3, "1"), 4)).toEqual([
    { process: "c", state: "down", share: NaN, rate: 0 },
    { process: "b", state: "up", share: 0.5, rate: 0 },
    { process: "a", state: "up", share: 0.125, rate: 7 },
  ]);
  expect(loads(workers, reading(1, 9, "1"), reading(1.5, 3, "2"), 4).find((l) => l.process === "b")?.share).toBe(NaN);
});
