// Measures page Network with a simulated network:
//   node test/scale.mjs ../bin/weft SWITCHES LINKS [CHANGES [BASELINE [ROUNDS]]]
// It prints, as JSON, medians over rounds: milliseconds from navigation until the map was drawn, frames per second
// and processor time for each while the map is moved by keys, the shift of the layout, and milliseconds from an event's time to the next
// frame after it was drawn. With BASELINE, a folder with another build of Loom, both pages are measured by turns
// in each round.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, resolve } from "node:path";

import { Rig, sleep, until } from "./rig.mjs";

const [weft, switches = "1000", links = "3000", changes = "2", baseline = "", rounds = "3"] = process.argv.slice(2);
const rig = new Rig(resolve(weft ?? "../bin/weft"));
const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(q * list.length))];
const types = { ".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml", ".woff2": "font/woff2" };

/** opened opens page Network, as built in a folder; both pages' files come by the same way, so that they cost the same. */
async function opened(folder) {
  const context = await rig.browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.route((url) => !url.pathname.startsWith("/v1"), (route) => {
    const path = new URL(route.request().url()).pathname;
    const file = join(folder, path === "/" ? "index.html" : path);
    return existsSync(file) ? route.fulfill({ body: readFileSync(file), contentType: types[extname(file)] ?? "application/octet-stream" }) : route.abort();
  });
  await page.addInitScript(() => {
    window.loomShift = 0;
    new PerformanceObserver((list) => {
      for (const e of list.getEntries()) if (!e.hadRecentInput) window.loomShift += e.value;
    }).observe({ type: "layout-shift", buffered: true });
    const look = () => {
      if (!window.loomDrawn && document.querySelector("[data-drawn]")) requestAnimationFrame(() => setTimeout(() => (window.loomDrawn ||= performance.now())));
      if (!window.loomDrawn) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await page.goto(`${rig.origin}/#/network`);
  await page.waitForFunction((n) => window.loomDrawn && Number(document.querySelector("[data-drawn]")?.getAttribute("data-drawn") ?? 0) >= n * 0.9, Number(switches), { timeout: 120000 });
  return page;
}

/** work returns the processor time that the browser has used so far, in seconds: what else runs on the machine changes it little. */
function work() {
  const stats = readdirSync("/proc").filter((d) => /^\d+$/.test(d)).flatMap((pid) => {
    try {
      const text = readFileSync(`/proc/${pid}/stat`, "utf8");
      const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
      return [{ pid: Number(pid), parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]), browser: text.includes("(chrom") }];
    } catch {
      return []; // it has ended
    }
  });
  const own = new Set([process.pid]);
  for (let grown = 0; grown !== own.size; ) {
    grown = own.size;
    for (const s of stats) if (own.has(s.parent)) own.add(s.pid);
  }
  return stats.filter((s) => s.browser && own.has(s.pid)).reduce((sum, s) => sum + s.ticks, 0) / 100;
}

/** measure measures a page once. */
async function measure(folder) {
  const page = await opened(folder);
  await sleep(3000);
  const shift = await page.evaluate(() => window.loomShift);
  const before = work();
  const frames = await page.evaluate(async () => {
    const map = document.querySelector('[role="img"]');
    map.focus();
    let count = 0;
    const end = performance.now() + 5000;
    await new Promise((done) => {
      const step = () => {
        count++;
        map.dispatchEvent(new KeyboardEvent("keydown", { key: count % 40 < 20 ? "ArrowLeft" : "ArrowRight", bubbles: true }));
        if (performance.now() < end) requestAnimationFrame(step);
        else done();
      };
      requestAnimationFrame(step);
    });
    return count / 5;
  });
  const cost = (1000 * (work() - before)) / Math.max(1, 5 * frames);
  await page.evaluate(() => {
    window.loomLate = [];
    addEventListener("loom-drawn", (e) => requestAnimationFrame(() => { for (const t of e.detail) window.loomLate.push(Date.now() - t); }));
  });
  await sleep(Number(changes) > 0 ? 8000 : 0);
  const got = { map: await page.evaluate(() => window.loomDrawn), frames, cost, shift, late: await page.evaluate(() => window.loomLate) };
  await page.context().close();
  return got;
}

try {
  await rig.up("");
  rig.start("network", "bench", "network", "--controller", `127.0.0.1:${rig.openflow}`, "--switches", switches, "--links", links, "--changes", changes);
  await until("the network known", async () => {
    const up = (await rig.get("/v1/links")).links.filter((l) => l.state === "up").length;
    return up >= 2 * Number(links) * 0.9;
  }, 300);
  await sleep(5000);
  const pages = { ...(baseline ? { baseline: resolve(baseline) } : {}), page: resolve(new URL("../built", import.meta.url).pathname) };
  const all = Object.fromEntries(Object.keys(pages).map((name) => [name, []]));
  for (let round = 0; round < Number(rounds); round++) {
    for (const [name, folder] of round % 2 ? Object.entries(pages).reverse() : Object.entries(pages)) {
      all[name].push(await measure(folder));
      const m = all[name].at(-1);
      console.error(`round ${round + 1}, ${name}: map ${Math.round(m.map)} ms, ${m.frames} frames/s of ${m.cost.toFixed(1)} ms of the processor each, shift ${m.shift.toFixed(4)}`);
    }
  }
  const report = { switches: Number(switches), links: Number(links) };
  for (const [name, list] of Object.entries(all)) {
    const late = list.flatMap((m) => m.late);
    const median = (key) => quantile(list.map((m) => m[key]), 0.5);
    report[name] = { map_ms: Math.round(median("map")), frames_per_s: median("frames"), frame_cpu_ms: Math.round(10 * median("cost")) / 10, shift: Number(median("shift").toFixed(4)), events: late.length, event_to_frame_p50_ms: quantile(late, 0.5), event_to_frame_p95_ms: quantile(late, 0.95) };
  }
  console.log(JSON.stringify(report, null, 2));
} finally {
  await rig.down();
}
