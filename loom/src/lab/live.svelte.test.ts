import { beforeEach, expect, test, vi } from "vitest";

import { memory } from "./memory";

vi.stubGlobal("localStorage", memory());
vi.stubGlobal("document", { hidden: false });
const { Design } = await import("./design.svelte");
const { Live } = await import("./live.svelte");
const { session } = await import("../api/session.svelte");

/** machine is the lab service of a machine, as far as pages see it. */
class Machine {
  labs = new Map<string, { file: string; state: string; revision: string }>();
  job: { job: string; kind: string; lab: string; done: boolean; error?: string; steps: Array<{ node: string; state: string; output?: string }> } | null = null;
  away = false;
  asked: string[] = [];

  answer(path: string, body: Record<string, unknown>): unknown {
    const at = path.replace("v1/lab", "");
    this.asked.push(at);
    if (at === "") return { allowed: ["up", "down", "exec"] };
    if (at === "/labs") return { labs: [...this.labs].map(([name, l]) => ({ name, state: l.state })) };
    if (at === "/jobs") return { jobs: this.job ? [{ ...this.job, steps: [] }] : [] };
    if (at === "/labs:check") return { name: "net", problems: [], graph: { nodes: [] } };
    if (at === "/labs:apply") return { lab: "net", added: [], deleted: [], changed: [] };
    if (at.endsWith(":setup")) {
      this.job = { job: "7", kind: "setup", lab: "net", done: false, steps: [{ node: "h1", state: "working" }] };
      return { job: "7" };
    }
    if (at.startsWith("/jobs/") && this.job?.job === at.slice("/jobs/".length)) return this.job;
    const lab = this.labs.get(at.slice("/labs/".length));
    if (lab?.state === "up") return { name: "net", ...lab, graph: { nodes: [], links: [] }, body };
    if (path === "v1/l2vpn") return {};
    return null;
  }
}

let machine: Machine;
beforeEach(() => {
  vi.useFakeTimers();
  localStorage.clear();
  machine = new Machine();
  session.role = "admin";
  vi.stubGlobal("fetch", async (path: string, init: { body?: string }) => {
    if (machine.away) throw new TypeError("away");
    const said = machine.answer(path, JSON.parse(init.body ?? "{}"));
    return said ? new Response(JSON.stringify(said)) : new Response(JSON.stringify({ message: "there is none" }), { status: 404 });
  });
});

function pageOf(text = "name: net\nswitches: [{name: s1}]\n") {
  const design = new Design();
  design.restore();
  design.start(text);
  return { design, live: new Live(design) };
}
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test("a page that is opened while its lab is brought up shows how far that is, and then the lab", async () => {
  const { design, live } = pageOf();
  machine.labs.set("net", { file: design.lab.text, state: "half made", revision: "r1" });
  machine.job = { job: "3", kind: "up", lab: "net", done: false, steps: [{ node: "s1", state: "working" }] };
  await live.look();
  await pass(0);
  expect([live.busy !== "", live.job?.steps?.length]).toEqual([true, 1]);
  await live.look(); // nor is it followed twice
  machine.job.steps[0].state = "done";
  machine.job.done = true;
  machine.labs.get("net")!.state = "up";
  await pass(700);
  expect([live.busy, live.lab?.name, design.said]).toEqual(["", "net", "the lab net is up"]);
  expect([design.draft.lab, design.draft.revision]).toEqual(["net", "r1"]); // it is the text that runs
  live.end();
});

test("one that failed says why, and a service that was started anew is not asked for ever", async () => {
  const { live } = pageOf();
  machine.job = { job: "3", kind: "up", lab: "net", done: true, error: "no room", steps: [] };
  machine.job.done = false;
  await live.look();
  await pass(0);
  machine.job.done = true;
  await pass(700);
  expect([live.busy, live.error]).toEqual(["", "no room"]);
  machine.job = { job: "4", kind: "up", lab: "net", done: false, steps: [] };
  await live.look();
  await pass(0);
  machine.job = null;
  await pass(700);
  expect([live.busy, live.error]).toEqual(["", "there is none"]);
  live.end();
});

test("a service that is away is asked again, and the drawing stays", async () => {
  const { design, live } = pageOf();
  machine.job = { job: "3", kind: "up", lab: "net", done: false, steps: [] };
  await live.look();
  machine.away = true;
  await pass(3000);
  expect(live.busy).not.toBe("");
  machine.away = false;
  machine.job.done = true;
  machine.labs.set("net", { file: "name: net\n", state: "up", revision: "r2" });
  await pass(1000);
  expect([live.busy, live.error, design.said]).toEqual(["", "", "the lab net is up"]);
  expect(design.draft.revision).toBe(""); // what runs is another text
  live.end();
});

test("a lab that is taken down elsewhere: the page says so once", async () => {
  const { design, live } = pageOf();
  machine.labs.set("net", { file: design.lab.text, state: "up", revision: "r1" });
  await live.look();
  void live.follow("net");
  await pass(100);
  expect(live.lab?.name).toBe("net");
  machine.labs.clear();
  await pass(2500);
  expect([live.lab, design.bad, design.said]).toEqual([null, true, "the lab net was taken down elsewhere; the drawing stays"]);
  expect(live.labs).toEqual([]);
  live.end();
});

test("nodes are set up, and a page that is opened meanwhile follows", async () => {
  const one = pageOf();
  machine.labs.set("net", { file: "", state: "up", revision: "" });
  void one.live.setUp("net", ["h1"]);
  await pass(100);
  expect(one.live.settingUp).toBe(true);
  const two = pageOf();
  await two.live.look();
  await pass(100);
  expect([two.live.settingUp, two.live.busy]).toEqual([true, ""]);
  machine.job!.done = true;
  machine.job!.steps[0] = { node: "h1", state: "done", output: "x\n" };
  await pass(700);
  for (const { live } of [one, two]) {
    expect([live.settingUp, live.setup?.steps?.[0].output]).toEqual([false, "x\n"]);
    live.end();
  }
});
