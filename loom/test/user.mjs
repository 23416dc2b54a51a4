// What a new user does, by what the pages show; and by keys alone.
import { sleep, until } from "./rig.mjs";
import { discovered, expect, open } from "./workflows.mjs";

/** tabTo presses Tab until what fits a selector has the focus. */
async function tabTo(page, selector, key = "Tab") {
  for (let i = 0; i < 80; i++) {
    if (await page.evaluate((s) => document.activeElement?.matches(s), selector)) return;
    await page.keyboard.press(key);
  }
  throw new Error(`${key} does not lead to ${selector}`);
}

async function keys(page, ...all) {
  for (const key of all) await page.keyboard.press(key);
}

/** forgotten waits until a lab is down, and has the controller forget its switches. */
async function forgotten(rig, name) {
  await until("the lab taken down", async () => !(await rig.get("/v1/lab/labs")).labs.some((l) => l.name === name));
  rig.labs.delete(name);
  await until("its switches gone", async () => (await rig.get("/v1/switches")).switches.filter((s) => s.connected).length === 4);
  for (const s of (await rig.get("/v1/switches")).switches.filter((s) => !s.connected)) await fetch(`${rig.origin}/v1/switches/${s.dpid}:forget`, { method: "POST", body: "{}" });
}

export const user = [
  {
    name: "by keys alone two switches and two hosts are drawn, linked, deployed, pinged and taken down",
    async run(rig) {
      const page = await open(rig, "");
      await page.getByTestId("status").getByText("Connected").waitFor();
      await page.keyboard.press("Control+k");
      await page.keyboard.type("draw and deploy");
      await page.getByRole("option", { name: /Draw and deploy a network/ }).waitFor();
      await page.keyboard.press("Enter");
      await page.getByTestId("canvas").waitFor();
      await tabTo(page, "[data-testid=canvas]");
      await keys(page, "1", "1", "3", "3"); // h2 is chosen
      await keys(page, "n", "c", "n", "c"); // s1 and s2
      await keys(page, "n", "c", "p", "p", "c"); // h1 and s1
      await keys(page, "p", "c", "p", "p", "c"); // h2 and s2
      await keys(page, "Control+a", "ArrowRight", "ArrowDown", "Escape", "f");
      const canvas = page.getByTestId("canvas");
      expect((await canvas.getAttribute("data-nodes")) === "4" && (await canvas.getAttribute("data-links")) === "3", `drawn: ${await canvas.getAttribute("data-nodes")} nodes, ${await canvas.getAttribute("data-links")} links, ${await page.getByTestId("said").innerText()}`);
      rig.labs.add("my-lab");
      await tabTo(page, "[data-testid=deploy] input", "Shift+Tab");
      await page.keyboard.type(`tcp:127.0.0.1:${rig.openflow}`);
      await tabTo(page, "[data-testid=deploy-button]", "Shift+Tab");
      await page.keyboard.press("Enter");
      await until("the lab up", async () => (await page.getByTestId("deploy-button").innerText()).includes("Apply") && (await page.getByTestId("progress").count()) === 0);
      await discovered(rig, 6, 5);
      await tabTo(page, "[aria-label='Of the lab'] [role=tab]");
      for (let i = 0; i < 10 && !(await page.evaluate(() => document.activeElement.textContent === "Ping and traffic")); i++) await page.keyboard.press("ArrowRight");
      await tabTo(page, "[data-testid=ping]");
      await until("a ping that is answered", async () => {
        await page.keyboard.press("Enter");
        await page.getByTestId("pings").getByText("3 of 3").first().waitFor({ timeout: 10000 });
        return true;
      });
      await tabTo(page, "[data-testid=deploy] button.danger", "Shift+Tab");
      await page.keyboard.press("Enter");
      await tabTo(page, "dialog button.danger");
      await page.keyboard.press("Enter");
      await forgotten(rig, "my-lab");
    },
  },
  {
    name: "the test of ten minutes: a ring is drawn, deployed and pinged, a link cut, and paths moved, by what the pages show",
    async run(rig) {
      const began = Date.now();
      const page = await open(rig, "");
      const click = (name, role = "button") => page.getByRole(role, { name }).first().click();
      await click("Lab", "link");
      await click("Generate…");
      await page.getByLabel("Form").selectOption({ label: (await page.getByLabel("Form").locator("option").allInnerTexts()).find((t) => /ring/i.test(t)) });
      await page.getByLabel(/^Switches/).fill("5");
      await page.getByRole("dialog").getByRole("button", { name: "Generate", exact: true }).click();
      rig.labs.add("ring-5");
      await page.getByLabel("Controller", { exact: true }).fill(`tcp:127.0.0.1:${rig.openflow}`);
      await click("Deploy");
      await page.getByText("the lab ring-5 is up").waitFor();
      await discovered(rig, 9, 9);
      const ping = async (seconds) => {
        await page.getByRole("tab", { name: "Ping and traffic" }).click();
        await until("a ping that is answered", async () => {
          const before = await page.getByTestId("pings").getByText("3 of 3").count();
          await click("Ping", "button");
          await until("its answer", async () => (await page.getByTestId("pings").getByText("3 of 3").count()) > before);
          return true;
        }, seconds);
      };
      await ping(45);
      await page.getByRole("tab", { name: "Nodes and links" }).click();
      await page.getByRole("table", { name: "Links" }).getByRole("button", { name: /^s1 – s2$/ }).click();
      await click("Cut (down)");
      await page.getByTestId("link-state").getByText("down").waitFor();
      await ping(30);
      await click("Services", "link");
      const { text } = await rig.get("/v1/plan");
      await page.locator('[data-service="paths"]').press("m");
      await page.getByRole("menuitem", { name: "stats" }).press("Enter");
      await page.locator('[data-worker="stats"]').getByText("moves here").waitFor();
      await click("Apply");
      await page.getByRole("heading", { name: "Applied", exact: true }).waitFor();
      await page.getByText(/Packets lost: 0\b/).waitFor();
      expect(/services: *\[(paths, *stats|stats, *paths)\]/.test((await rig.get("/v1/plan")).text), "paths is not beside stats");
      await click("Lab", "link");
      await ping(40);
      expect(Date.now() - began < 600_000, "it took longer than ten minutes");
      await click("Take down…");
      await page.getByRole("dialog").getByRole("button", { name: "Take down" }).click();
      await forgotten(rig, "ring-5");
      await rig.post("/v1/plan", { text });
      await until("all workers up", async () => (await rig.get("/v1/workers")).workers.every((w) => w.state === "up" && w.current));
    },
  },
];
