// Measures what Loom costs the controller, and how late a console answers:
//   node test/marks.mjs ../bin/weft [ROUNDS [SECONDS]]
// It prints, as JSON, with 95 % intervals over rounds of both turns in one run: what it costs `weft bench
// throughput` that somebody watches one packet in 1,000 and, while links change 100 times a second, that
// a client follows the events; and how long 200 keys typed into a console take to come back. A cost is told by the
// packets that are answered in a second, and by the controller's processor time for each, which other work
// on the machine disturbs less.
import { spawn } from "node:child_process";
import { cpus, loadavg } from "node:os";
import { resolve } from "node:path";

import { Rig, sleep, until } from "./rig.mjs";

const [weft, roundsText = "12", secondsText = "4"] = process.argv.slice(2);
const [rounds, seconds] = [Number(roundsText), Number(secondsText)];
if (!(rounds >= 2 && seconds >= 1)) throw new Error("want at least 2 rounds, of at least 1 s");
const rig = new Rig(resolve(weft ?? "../bin/weft"));
if (cpus().length > 1) {
  rig.through = { controller: ["taskset", "-c", "0"] };
  for (const name of ["load", "network", "watcher", "lab"]) rig.through[name] = ["taskset", "-c", "1"];
}

async function counters() {
  const r = await fetch(rig.origin + "/metrics");
  const text = await r.text();
  const at = performance.now() / 1000;
  const of = (name) => [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))].reduce((sum, m) => sum + Number(m[1]), 0);
  return { at, packets: of("weft_southbound_packet_ins_total"), cpu: of("process_cpu_seconds_total") };
}

/** turn measures the controller for some seconds. */
async function turn() {
  const before = await counters();
  await sleep(seconds * 1000);
  const after = await counters();
  const packets = after.packets - before.packets;
  if (packets < 1000) throw new Error(`only ${packets} packet-ins came in ${seconds} s: ${rig.log("load")}`);
  return { rate: packets / (after.at - before.at), cpu: (after.cpu - before.cpu) / packets };
}

const student = [12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.1, 2.09, 2.09];

/** cost returns by how many percent the second of pairs is worse, and the 95 % interval of that. */
function cost(pairs) {
  const list = pairs.map(([without, beside]) => Math.log(without / beside));
  const mean = list.reduce((a, b) => a + b, 0) / list.length;
  const deviation = Math.sqrt(list.reduce((a, b) => a + (b - mean) ** 2, 0) / (list.length - 1));
  const half = ((student[list.length - 2] ?? 2.05) * deviation) / Math.sqrt(list.length);
  const percent = (x) => Number(((1 - Math.exp(-x)) * 100).toFixed(2));
  return { percent: percent(mean), interval: [percent(mean - half), percent(mean + half)] };
}

/** compare measures rounds without and with something, in changing order. */
async function compare(begin, end) {
  const rate = [];
  const cpu = [];
  for (let n = 0; n < rounds; n++) {
    const got = [];
    for (const beside of n % 2 ? [true, false] : [false, true]) {
      if (beside) await begin();
      else await end();
      got[beside ? 1 : 0] = await turn();
    }
    rate.push(got.map((g) => g.rate));
    cpu.push(got.map((g) => 1 / g.cpu));
    console.error(`round ${n + 1}: ${got.map((g) => `${Math.round(g.rate)} packets/s, ${(g.cpu * 1e6).toFixed(3)} µs each`).join("; ")}`);
  }
  await end();
  return { mark_percent: 2, packets_per_s: Math.round(rate.reduce((sum, r) => sum + r[0], 0) / rounds), cost_by_rate: cost(rate), cost_by_processor_time: cost(cpu) };
}

/** watcher watches one packet in 1,000. */
function watcher() {
  let child;
  let shown = 0;
  return {
    shown: () => shown,
    async begin() {
      if (child) return;
      const [command, ...args] = [...(rig.through?.watcher ?? []), rig.weft, "get", "packets", "--one-in", "1000", "-o", "json", "--server", rig.origin];
      const own = (child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] }));
      rig.children.push(own);
      own.on("exit", (code) => (own.ended = code ?? -1));
      child.stdout.on("data", (d) => (shown += d.toString().split("\n").length - 1));
      const from = shown;
      await until("a packet is shown", () => shown > from);
    },
    async end() {
      if (!child) return;
      child.kill("SIGTERM");
      child = undefined;
      await sleep(4000); // the processes sample for 3 s more
    },
  };
}

/** follower follows the events, as Loom's pages do. */
function follower() {
  let stop;
  let seen = 0;
  return {
    seen: () => seen,
    async begin() {
      if (stop) return;
      const now = (stop = new AbortController());
      const from = seen;
      (async () => {
        let position;
        while (!now.signal.aborted) {
          const r = await fetch(rig.origin + "/v1/events:read", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ position, wait_ms: position ? 15000 : 0 }), signal: now.signal });
          if (!r.ok) throw new Error(`events: ${r.status} ${await r.text()}`);
          const answer = await r.json();
          seen += (answer.events ?? []).length;
          position = answer.position;
        }
      })().catch((err) => now.signal.aborted || console.error(String(err)));
      await until("events come", () => seen > from);
    },
    async end() {
      stop?.abort();
      stop = undefined;
      await sleep(300);
    },
  };
}

/** echo types keys into a console, one after the other, and returns how long each took to come back. */
async function echo(keys) {
  rig.labs.add("marks");
  rig.command("lab", "up", "linear:1", "--name", "marks", "--controller", `tcp:127.0.0.1:${rig.openflow}`);
  const { console: name } = await rig.post("/v1/lab/labs/marks/consoles", { node: "h1", command: ["cat"], rows: 24, cols: 80 });
  const page = await rig.page("#/lab");
  return page.evaluate(
    async ([name, keys]) => {
      const socket = new WebSocket(new URL(`v1/lab/consoles/${encodeURIComponent(name)}`, document.baseURI));
      socket.binaryType = "arraybuffer";
      await new Promise((done, fail) => ([socket.onopen, socket.onclose] = [done, () => fail(new Error("the console has ended"))]));
      const late = [];
      for (let n = 0; n < keys; n++) {
        const began = performance.now();
        const back = new Promise((done) => (socket.onmessage = (e) => e.data instanceof ArrayBuffer && done()));
        socket.send(new TextEncoder().encode(n % 50 === 49 ? "\n" : "x"));
        await back;
        late.push(performance.now() - began);
        await new Promise((done) => setTimeout(done, 20));
      }
      socket.close();
      return late;
    },
    [name, keys],
  );
}

try {
  const load = loadavg()[0];
  await rig.up("");
  const late = (await echo(200)).sort((a, b) => a - b);
  const ms = (q) => Number(late[Math.min(late.length - 1, Math.floor(q * late.length))].toFixed(2));
  await rig.browser.close();
  rig.command("lab", "down", "marks"); // the load has a switch of the same number
  rig.start("load", "bench", "throughput", "--controller", `127.0.0.1:${rig.openflow}`, "--floor=false", "--rounds", "1", "--duration", "1h");
  await until("the load runs", async () => (await counters()).packets > 100_000); // every host has spoken
  await sleep(10_000);
  const packets = watcher();
  const watch = await compare(packets.begin, packets.end);
  rig.start("network", "bench", "network", "--controller", `127.0.0.1:${rig.openflow}`, "--topology", "linear", "--switches", "40", "--hosts", "0", "--first", "1001", "--changes", "100");
  const log = follower();
  await until("the network known", async () => (await rig.get("/v1/links")).links.filter((l) => l.state === "up").length >= 60);
  await sleep(3000);
  const began = performance.now();
  const events = await compare(log.begin, log.end);
  console.log(JSON.stringify({
    processors: cpus().length, load_before: load, rounds, turn_s: seconds,
    watch: { ...watch, packets_shown: packets.shown() },
    events: { ...events, events_seen: log.seen(), took_s: Math.round((performance.now() - began) / 1000) },
    console: { mark_ms: 50, keys: late.length, p50_ms: ms(0.5), p95_ms: ms(0.95), p99_ms: ms(0.99), max_ms: ms(1) },
  }, null, 2));
} finally {
  await rig.down();
}
