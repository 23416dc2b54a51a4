// Tests Loom in a real Chromium against a real controller and lab:
//   node test/browser.mjs ../bin/weft [--quick] [--only WORDS|WORDS]
// It prints a report as JSON: {"passed": N, "failed": N, "workflows": [...]}.
// --quick runs the three workflows of make test; it needs root, as labs do.
import { copyFileSync, mkdirSync } from "node:fs";
import { resolve } from "node:path";

import { changes } from "./changes.mjs";
import { design } from "./design.mjs";
import { experiments } from "./experiments.mjs";
import { more } from "./more.mjs";
import { Rig } from "./rig.mjs";
import { lab } from "./lab.mjs";
import { safety } from "./safety.mjs";
import { outage } from "./outage.mjs";
import { overview } from "./overview.mjs";
import { testbed } from "./testbed.mjs";
import { user } from "./user.mjs";
import { quick } from "./workflows.mjs";

/** shown returns the text of a page as a reader has it before them, at most 2,000 characters. */
async function shown(page) {
  const text = await page.locator("body").innerText({ timeout: 5000 }).catch((err) => String(err));
  return text.replace(/\n\s*\n+/g, "\n").slice(0, 2000);
}

const flags = process.argv.slice(2);
const only = flags.includes("--only") ? flags[flags.indexOf("--only") + 1] : "";
const rig = new Rig(resolve(flags[0] ?? "../bin/weft"));
const chosen = [...quick, ...(flags.includes("--quick") ? [] : [...overview, ...lab, ...design, ...more, ...changes, ...experiments, ...outage, ...testbed, ...user, ...safety])].filter((w) => w.needed || only.split("|").some((words) => w.name.includes(words)));
const report = { passed: 0, failed: 0, workflows: [] };
const began = Date.now();

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void rig.down().finally(() => process.exit(130)));
try {
  await rig.up("split");
  for (const w of chosen) {
    const start = Date.now();
    const result = { name: w.name, passed: true, seconds: 0 };
    rig.pages = [];
    try {
      await Promise.race([w.run(rig), new Promise((_, fail) => setTimeout(() => fail(new Error("it took more than ten minutes")), 600_000).unref())]);
      const faults = rig.pages.flatMap((p) => p.faults);
      if (faults.length > 0) throw new Error(`the page reported: ${faults.slice(0, 3).join("; ")}`);
    } catch (err) {
      result.passed = false;
      result.error = String(err?.message ?? err).slice(0, 2000);
      for (const p of rig.pages) result.error += `\n${[...p.faults, `${p.url()} shows:`, await shown(p)].join("\n")}`;
      if (process.env.SHOTS) {
        mkdirSync(process.env.SHOTS, { recursive: true });
        for (const log of ["controller", "lab", "experiments"]) copyFileSync(rig.logFile(log), `${process.env.SHOTS}/${w.name.replace(/\W+/g, "-")}-${log}.log`);
        for (const [i, p] of rig.pages.entries()) await p.screenshot({ path: `${process.env.SHOTS}/${w.name.replace(/\W+/g, "-")}-${i}.png` }).catch(() => {});
      }
    }
    for (const p of rig.pages) await p.context().close().catch(() => {});
    result.seconds = Math.round((Date.now() - start) / 100) / 10;
    report.workflows.push(result);
    report[result.passed ? "passed" : "failed"]++;
    process.stderr.write(`${result.passed ? "ok    " : "FAILED"} ${result.seconds.toFixed(1).padStart(6)} s  ${w.name}${result.error ? ": " + result.error : ""}\n`);
  }
} catch (err) {
  report.failed++;
  report.workflows.push({ name: "controller, lab service and browser start", passed: false, seconds: 0, error: String(err?.message ?? err) + "\n" + rig.log("controller") + rig.log("lab") });
  process.stderr.write(`FAILED ${report.workflows.at(-1).error}\n`);
} finally {
  await rig.down();
}
report.seconds = Math.round((Date.now() - began) / 100) / 10;
console.log(JSON.stringify(report, null, 2));
process.exit(report.failed > 0 ? 1 : 0);
