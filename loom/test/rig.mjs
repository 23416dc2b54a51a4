// What the tests in a browser stand on: a controller in the processes of a plan,
// the lab service of the machine and Chromium, all real, and their end.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** patience is how many seconds anything is waited for that is to come, however busy the machine is. */
export const patience = 120;

/** until waits until f returns something. */
export async function until(what, f, seconds = patience) {
  const end = Date.now() + seconds * 1000;
  let last;
  for (;;) {
    try {
      const got = await f();
      if (got) return got;
    } catch (err) {
      if (err.final) throw err;
      last = err;
    }
    if (Date.now() > end) throw new Error(`after ${seconds} s: not ${what}${last ? `: ${last.message}` : ""}`);
    await sleep(100);
  }
}

/** freePort finds a port that no program listens at, below those that tests in Go and the system take. */
async function freePort() {
  for (let i = 0; i < 100; i++) {
    const port = 12000 + Math.floor(Math.random() * 4384);
    const free = await new Promise((done) => {
      const server = createServer();
      server.on("error", () => done(false));
      server.listen(port, "127.0.0.1", () => server.close(() => done(true)));
    });
    if (free) return port;
  }
  throw new Error("no port is free");
}

/** Rig is one controller with its lab service, and a browser. */
export class Rig {
  constructor(weft) {
    this.weft = weft;
    this.dir = mkdtempSync(join(tmpdir(), "loom-test-"));
    chmodSync(this.dir, 0o755); // the controller becomes another user
    this.socket = join(this.dir, "lab.sock");
    this.experiments = join(this.dir, "experiments.sock");
    this.children = [];
    this.labs = new Set();
  }

  logFile(name) {
    return join(this.dir, name + ".log");
  }

  start(name, ...args) {
    const log = openSync(this.logFile(name), "a");
    const [command, ...rest] = [...(this.through?.[name] ?? []), this.weft, ...args]; // such as taskset
    const child = spawn(command, rest, { stdio: ["ignore", log, log] });
    child.on("exit", (code) => (child.ended = code ?? -1));
    this.children.push(child);
    return child;
  }

  log(name) {
    try {
      return readFileSync(this.logFile(name), "utf8").split("\n").slice(-15).join("\n");
    } catch {
      return "";
    }
  }

  /** up starts everything; further are flags of weft up. */
  async up(plan, ...further) {
    this.openflow = await freePort();
    this.http = await freePort();
    this.origin = `http://127.0.0.1:${this.http}`;
    const args = ["up", ...(plan ? [plan] : []), "--listen", `127.0.0.1:${this.openflow}`, "--http", `127.0.0.1:${this.http}`, "--data-dir", join(this.dir, "data"), "--set", `gateway.lab=${this.socket}`, "--set", `gateway.experiments=${this.experiments}`, ...further];
    this.controllerArgs = args;
    this.controller = this.start("controller", ...args);
    this.serveLabs();
    this.start("experiments", "experiment", "serve", "--socket", this.experiments, "--dir", join(this.dir, "experiments"));
    await this.answers();
    this.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--no-proxy-server", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
  }

  serveLabs() {
    this.lab = this.start("lab", "lab", "serve", "--socket", this.socket, "--allow", "up,down,exec,capture,run");
  }

  async answers() {
    await until("a controller that answers", async () => {
      if (this.controller.ended !== undefined) throw Object.assign(new Error(`the controller ended with ${this.controller.ended}: ${this.log("controller")}`), { final: true });
      const r = await fetch(this.origin + "/v1/workers", { headers: this.token ? { Authorization: "Bearer " + this.token } : {} });
      if (!r.ok) return false;
      return (await r.json()).workers.every((w) => w.state === "up");
    });
  }

  /** page opens a page of Loom in a context of its own. What the page logs as an
   * error, and what its policy forbids, is kept in page.faults. */
  async page(hash = "", options = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1400, height: 950 }, ...options });
    context.setDefaultTimeout(patience * 1000);
    const page = await context.newPage();
    page.faults = [];
    page.on("pageerror", (err) => page.faults.push(String(err)));
    page.on("console", (m) => {
      if (m.type() === "error" && /Content Security Policy|Uncaught/.test(m.text())) page.faults.push(`${m.text()} ${m.location().url}:${m.location().lineNumber}:${m.location().columnNumber}`);
    });
    await page.goto(this.origin + "/" + hash);
    return page;
  }

  /** get asks the controller, as the machine's user. */
  async get(path) {
    const r = await fetch(this.origin + path);
    if (!r.ok) throw new Error(`${path}: ${r.status} ${await r.text()}`);
    return r.json();
  }

  /** post tells the controller, as the machine's user. */
  async post(path, body) {
    const r = await fetch(this.origin + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (!r.ok) throw new Error(`${path}: ${r.status} ${await r.text()}`);
    return r.json();
  }

  /** command runs weft to its end. */
  command(...args) {
    const r = spawnSync(this.weft, args, { encoding: "utf8", timeout: 120000 });
    if (r.status !== 0) throw new Error(`weft ${args.join(" ")}: ${r.stderr || r.error}`);
    return r.stdout;
  }

  /** down ends everything, and leaves nothing. */
  async down() {
    await this.browser?.close().catch(() => {});
    for (const name of this.labs) spawnSync(this.weft, ["lab", "down", name, "--ignore-not-found"], { timeout: 60000 });
    for (const child of this.children) if (child.ended === undefined) child.kill("SIGTERM");
    const end = Date.now() + 15000;
    while (this.children.some((c) => c.ended === undefined) && Date.now() < end) await sleep(50);
    for (const child of this.children) if (child.ended === undefined) child.kill("SIGKILL");
    rmSync(this.dir, { recursive: true, force: true });
  }
}
