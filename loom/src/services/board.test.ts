import { expect, test } from "vitest";

import { cards, costs } from "./board";
import type { PlanWorker } from "./planedit";

const worker = (name: string, ...services: string[]): PlanWorker => ({ name, services, replicas: 1, standby: 0, partition: "", machine: "" });

test("a moved service stands at its goal and, faded, where it was; a worker without services stops", () => {
  const now = [worker("forwarding", "forwarding"), worker("paths", "paths"), worker("rest", "hosts", "stats")];
  const then = [worker("forwarding", "paths", "forwarding"), worker("rest", "hosts"), worker("stats", "stats")];
  const said = cards(now, then).map((c) => `${c.worker.name} ${c.fate}: ${c.chips.map((s) => `${s.service} ${s.fate}`).join(", ")}`);
  expect(said).toEqual(["forwarding stays: paths comes, forwarding stays", "paths stops: paths goes", "rest stays: hosts stays, stats goes", "stats starts: stats comes"]);
  expect(cards(now, now).every((c) => c.fate === "stays" && c.chips.every((s) => s.fate === "stays"))).toBe(true);
});

test("costs are what the controller says, and latency only where it was measured", () => {
  const d = { old_size: { processes: 11, memory: String(300 << 20) }, new_size: { processes: 10, memory: String(187 << 20) } };
  const said = (more: object) => costs({ ...d, ...more }).map((c) => `${c.figure} ${c.what} ${c.mood}`);
  expect(said({})).toEqual(["−1 process good", "−113 MiB memory good"]);
  const crossing = (to: string, us: number, per_s: number, known = true) => ({ from: "forwarding", to, kind: "call", us, per_s, known });
  expect(said({ crossings: [crossing("hosts", 40, 1), crossing("paths", -124.2, 90), crossing("stats", -900, 90, false)] })[2]).toBe("−124 µs a call to paths good");
  expect(costs({ old_size: { processes: 1 }, new_size: { processes: 3 } })[0]).toMatchObject({ figure: "+2", what: "processes", mood: "bad" });
});
