// Measures page Network with a simulated network:
//   node test/scale.mjs ../bin/weft SWITCHES LINKS [CHANGES]
// It prints seconds until the controller's state was read and until the map was drawn, frames per
// second while the map is moved, and milliseconds from an event's time to the next frame after it was drawn.
import { resolve } from "node:path";

import { Rig, sleep, until } from "./rig.mjs";

const [weft, switches = "1000", links = "3000", changes = "2"] = process.argv.slice(2);
const rig = new Rig(resolve(weft ?? "../bin/weft"));
const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(q * list.length))];
try {
  await rig.up("");
  rig.start("network", "bench", "network", "--controller", `127.0.0.1:${rig.openflow}`, "--switches", switches, "--links", links, "--changes", changes);
  await until("the network known", async () => {
    const up = (await rig.get("/v1/links")).links.filter((l) => l.state === "up").length;
    return up >= 2 * Number(links) * 0.9;
  }, 300);
  await sleep(5000);
  const began = Date.now();
  const page = await rig.page("#/network");
  await page.getByTestId("status").getByText("Connected").waitFor({ timeout: 120000 });
  const live = Date.now();
  await page.waitForFunction((n) => Number(document.querySelector("[data-drawn]")?.getAttribute("data-drawn") ?? 0) >= n * 0.9, Number(switches), { timeout: 120000 });
  const drawn = Date.now();
  await sleep(2000);
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
  await page.evaluate(() => {
    window.loomLate = [];
    addEventListener("loom-drawn", (e) => requestAnimationFrame(() => { for (const t of e.detail) window.loomLate.push(Date.now() - t); }));
  });
  await sleep(15000);
  const late = await page.evaluate(() => window.loomLate);
  console.log(JSON.stringify({
    switches: Number(switches), links: Number(links), state_s: (live - began) / 1000, map_after_state_s: (drawn - live) / 1000,
    frames_per_s: Math.round(frames), events: late.length, event_to_frame_p50_ms: quantile(late, 0.5), event_to_frame_p95_ms: quantile(late, 0.95),
  }, null, 2));
} finally {
  await rig.down();
}
