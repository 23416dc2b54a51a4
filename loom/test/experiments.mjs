// Workflows of page Experiments, and of measurements of one's own.
import { readFileSync } from "node:fs";

import { expect, open } from "./workflows.mjs";
import { running } from "./lab.mjs";
import { until } from "./rig.mjs";

/** saved returns what a click saves. */
async function saved(page, click) {
  const [file] = await Promise.all([page.waitForEvent("download"), click()]);
  return readFileSync(await file.path(), "utf8");
}

async function run(page, rounds) {
  await page.getByRole("button", { name: "Run oshi-steiner, quick" }).click();
  await page.getByLabel("Rounds").fill(String(rounds));
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await until("a run that is done", async () => (await page.getByTestId("run-state").innerText()).startsWith("done"));
  return page.locator("section h2").first().innerText();
}

export const experiments = [
  {
    name: "an experiment is run, plotted beside the paper, compared with another run, and saved as CSV and SVG",
    async run(rig) {
      const page = await open(rig, "#/experiments");
      const first = await run(page, 1);
      await page.getByRole("tab", { name: "Figures and claims" }).click();
      await page.getByText("The paper:").first().waitFor();
      const plot = page.locator(".plot canvas").first();
      await until("a plot with something in it", () => plot.evaluate((c) => new Set(c.getContext("2d").getImageData(0, 0, c.width, c.height).data).size > 2));
      expect((await saved(page, () => page.getByRole("link", { name: "All samples as CSV" }).click())).split("\n").length > 3, "the samples are empty");
      expect((await saved(page, () => page.getByRole("link", { name: "All figures as SVG" }).click())).includes("<svg"), "the figures are no SVG");
      await page.getByRole("tab", { name: "Values" }).click();
      expect((await saved(page, () => page.getByRole("button", { name: "Save as CSV" }).first().click())).startsWith("panel,series,x,y"), "the values are no CSV");
      const second = await run(page, 2);
      expect(first !== second, `both runs are ${first}`);
      await page.getByRole("tab", { name: "Compare" }).click();
      await page.getByLabel("Beside the run").selectOption(first);
      const claims = page.getByRole("table", { name: "Claims of both runs" });
      await claims.locator("tbody tr").nth(1).waitFor();
      await page.reload(); // its address restores it
      await claims.locator("tbody tr").nth(1).waitFor();
      expect((await saved(page, () => page.getByRole("button", { name: "Save as CSV" }).click())).startsWith(`what,unit,${second},${first}`), "the comparison is no CSV");
    },
  },
  {
    name: "a long experiment shows its progress, and is cancelled",
    async run(rig) {
      const page = await open(rig, "#/experiments");
      await page.getByRole("button", { name: "Run nf-model, full" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
      await page.getByRole("progressbar", { name: "Samples taken" }).waitFor();
      await page.getByRole("tab", { name: "Log" }).click();
      await page.getByLabel("Log", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Cancel" }).click();
      await until("cancelled", async () => (await page.getByTestId("run-state").innerText()).startsWith("cancelled"));
    },
  },
  {
    name: "a measurement of one's own is kept in the file, run, saved as CSV, and a pattern that is not found is told",
    async run(rig) {
      const page = await running(rig, "measurements");
      const form = page.locator("form", { has: page.getByRole("button", { name: "Keep it" }) });
      await form.getByLabel("Name", { exact: true }).fill("delay");
      await form.locator("select").first().selectOption("h1");
      await form.locator("select").last().selectOption("h2");
      await page.getByLabel("Command").fill("ping -c 2 -i 0.2 10.0.0.2; echo {from} {to}");
      await page.getByRole("button", { name: "Keep it" }).click();
      await page.getByRole("button", { name: "Run all" }).click();
      const row = page.getByRole("table", { name: "Results" }).getByRole("row", { name: /delay\s+h1\s+h2/ });
      await until("a number", async () => Number((await row.first().innerText()).split("\t")[4]) > 0);
      await page.getByRole("table", { name: "Measurements" }).getByRole("button", { name: "Edit" }).click();
      await page.getByLabel("Pattern").fill("never (there)");
      await page.getByRole("button", { name: "Keep it" }).click();
      await page.getByRole("button", { name: "Run all" }).click();
      await page.getByRole("table", { name: "Results" }).getByText(/the pattern is not in what the command wrote/).waitFor();
      expect(/^time,name,from,to,value,error\r\n.*delay,h1,h2,[\d.]+,\r\n/.test(await saved(page, () => page.getByRole("button", { name: "Save as CSV" }).click())), "the CSV has no value");
      await page.getByRole("button", { name: "Text", exact: true }).click();
      await page.locator(".cm-content").getByText("x-measurements").first().waitFor();
    },
  },
];
