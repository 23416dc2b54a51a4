// Workflows of drawing: by the mouse, by models of one's own, in several pages at once; and
// of setting nodes up.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { running } from "./lab.mjs";
import { until } from "./rig.mjs";
import { open } from "./workflows.mjs";

const said = (page) => page.getByTestId("said").innerText();

/** sheet is the drawing, by points from its upper left corner. */
async function sheet(page) {
  const box = await page.getByTestId("canvas").boundingBox();
  const at = (x, y) => [box.x + x, box.y + y];
  return {
    async click(x, y, options) {
      await page.mouse.click(...at(x, y), options);
    },
    async add(type, x, y) {
      await page.getByRole("button", { name: type, exact: true }).click();
      await page.mouse.click(...at(x, y));
    },
    async drag([x, y], [toX, toY]) {
      await page.mouse.move(...at(x, y));
      await page.mouse.down();
      await page.mouse.move(...at((x + toX) / 2, (y + toY) / 2), { steps: 4 });
      await page.mouse.move(...at(toX, toY), { steps: 4 });
      await page.mouse.up();
    },
  };
}

/** more opens the menu of what a lab needs more rarely. */
async function more(page) {
  const menu = page.locator("details", { has: page.locator('summary[aria-label="More of the lab"]') });
  if (!(await menu.evaluate((e) => e.open))) await menu.locator("summary").click();
}

/** typed puts a text in place of all in the editor, as pasting does. */
async function typed(page, text) {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.locator(".cm-content").evaluate((e, text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    e.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}

export const design = [
  {
    name: "a lab is drawn by the mouse: links are pulled, refused with the reason, and several nodes copied to another draft",
    async run(rig) {
      const page = await open(rig, "#/lab");
      await page.getByLabel("Draft or running lab").selectOption("new");
      await more(page);
      await page.getByLabel("Model", { exact: true }).selectOption("oshi");
      const s = await sheet(page);
      await s.add("Add Core router", 200, 150);
      await s.add("Add Core router", 400, 150);
      await s.add("Add Customer edge for services", 300, 300);
      await page.getByRole("button", { name: "Connect", exact: true }).first().click();
      await s.drag([200, 150], [400, 150]);
      await until("a backbone link", async () => (await said(page)) === "cr1 and cr2 connected: Backbone link");
      await page.getByTestId("joins").selectOption("radio");
      await s.drag([200, 150], [400, 150]);
      await until("a microwave link", async () => (await said(page)) === "cr1 and cr2 connected: Microwave link");
      await s.drag([300, 300], [200, 150]);
      await until("a refusal", async () => (await said(page)).includes("a core router has no customers"));
      await s.drag([300, 300], [500, 400]);
      await until("a hint", async () => (await said(page)).includes("let go over the node"));
      // A frame chooses several; the keys are for what was clicked.
      await page.getByRole("button", { name: "Select" }).click();
      await s.click(30, 30);
      await page.keyboard.down("Shift");
      await s.drag([120, 60], [480, 230]);
      await page.keyboard.up("Shift");
      await page.getByTestId("properties").getByText(/chosen/).waitFor();
      await page.getByRole("button", { name: "In a row" }).click();
      await page.keyboard.press("Escape");
      await s.click(200, 150);
      await page.keyboard.press("Control+a");
      await page.keyboard.press("Control+c");
      await until("copied", async () => /^3 copied/.test(await said(page)));
      await page.getByLabel("Draft or running lab").selectOption("new");
      await page.getByTestId("canvas").focus();
      await page.keyboard.press("Control+v");
      await until("the reason why it does not fit another model", async () => (await said(page)).includes("not pasted: "));
      await more(page);
      await page.getByLabel("Model", { exact: true }).selectOption("oshi");
      await page.getByTestId("canvas").focus();
      await page.keyboard.press("Control+v");
      await until("three nodes and two links pasted", async () => (await page.getByTestId("canvas").getAttribute("data-nodes")) === "3");
      // The menu, by the keyboard.
      await page.keyboard.press("Escape");
      await page.keyboard.press("n");
      await page.keyboard.press("m");
      await page.getByRole("menuitem", { name: /^Console/ }).getByText("does not run").waitFor();
      await page.getByRole("menuitem", { name: "Delete" }).press("Enter");
      await until("one node less", async () => (await page.getByTestId("canvas").getAttribute("data-nodes")) === "2");
      await more(page);
      await page.getByRole("button", { name: "Delete the draft" }).click();
    },
  },
  {
    name: "a model of one's own is written, used, and told what is wrong with it; what the text breaks of it is listed by lines",
    async run(rig) {
      const page = await open(rig, "#/lab");
      await page.getByLabel("Draft or running lab").selectOption("new");
      await more(page);
      await page.getByTestId("model-file").click();
      const text = await page.getByTestId("model-text").inputValue();
      await page.getByTestId("model-text").fill(text.replace("between: [[switch, switch], ", "between: [[swich, switch], "));
      await page.getByRole("button", { name: "Use it for this lab" }).click();
      await page.getByRole("alert").getByText(/links\[0\]\.between\[0\]: "swich" is no type of node/).waitFor();
      const own = text.replace("prefix: s,", 'prefix: s, most: 2, why: "this rack has room for two", ').replace("name: openflow-mine", "name: rack");
      await page.getByTestId("model-text").fill(own);
      await page.getByRole("button", { name: "Use it for this lab" }).click();
      const s = await sheet(page);
      for (let i = 0; i < 3; i++) await s.add("Add OpenFlow switch", 150 + 100 * i, 150);
      await until("a third switch refused", async () => (await said(page)) === "a lab has at most 2 of the type OpenFlow switch: this rack has room for two");
      await page.getByRole("button", { name: "Text", exact: true }).click();
      await page.locator(".cm-content").getByText("this rack has room for two").first().waitFor();
      await typed(page, `x-model: rack\r\nswitches:\r\n  - {name: s1}\r\n  - {name: s2}\r\n  - {name: s3}\r\nlinks:\r\n  - {a: s1, b: s1}\r\n`);
      await page.getByRole("tab", { name: /^Problems \(2\)/ }).click();
      const problem = page.getByTestId("problems").getByRole("listitem").filter({ hasText: "at most 2 of the type" });
      await problem.getByRole("button", { name: "line 5" }).waitFor();
      await problem.getByRole("button", { name: "show" }).click();
      await until("the third switch chosen", async () => (await page.getByTestId("node-name").inputValue()) === "s3");
      await page.getByRole("button", { name: "Delete s3" }).click();
      await page.getByRole("tab", { name: /^Problems \(1\)/ }).waitFor();
      await more(page);
      await page.getByRole("button", { name: "Delete the draft" }).click();
    },
  },
  {
    name: "nodes are set up by the commands of the file, each with what it wrote, and one that fails is said",
    async run(rig) {
      const page = await running(rig, "setup");
      const name = [...rig.labs][0];
      const go = join(rig.dir, "go");
      const file = (await rig.get(`/v1/lab/labs/${name}`)).file;
      const of = (node, command) => (text) => text.replace(`{name: ${node},`, `{name: ${node}, x-setup: '${command}',`);
      const changed = [of("s1", "ovs-vsctl list-ports $WEFT_LAB_BRIDGE"), of("h1", "echo set up $WEFT_LAB_HOST"), of("h2", "echo no disk; exit 3"), of("h3", `while [ ! -e ${go} ]; do sleep 0.1; done`)].reduce((text, f) => f(text), file);
      await page.getByRole("button", { name: "Text", exact: true }).click();
      await typed(page, changed);
      const row = (node) => page.getByTestId("setups").getByRole("row", { name: new RegExp(`Pick ${node} `) });
      await row("h1").getByText("apply the difference").waitFor();
      await page.getByTestId("deploy-button").click();
      await page.getByRole("button", { name: "Keep this text with the lab" }).click();
      await until("all four known", async () => (await page.getByTestId("set-up-all").innerText()) === "Set up all 4");
      await page.getByTestId("set-up-all").click();
      // One waits: a page that is opened meanwhile shows how far it is.
      const other = await running(rig, "setup");
      for (const p of [page, other]) await p.getByText(/setting up… 3 of 4/).waitFor();
      writeFileSync(go, "");
      for (const p of [page, other]) await p.getByText(/^1 of 4 nodes are not set up/).waitFor();
      await row("h1").getByText("set up h1").first().waitFor();
      await row("h2").getByText(/^failed: .*exit status 3/).waitFor();
      await row("h2").getByText("no disk").first().waitFor();
      await row("h1").getByRole("checkbox").check();
      await page.getByTestId("set-up-some").click();
      await page.getByText(/^1 set up/).waitFor();
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/setup.png` });
    },
  },
  {
    name: "two pages draw one draft, deploy it, and say that the lab was taken down on the command line",
    async run(rig) {
      const page = await open(rig, "#/lab");
      await page.getByLabel("Draft or running lab").selectOption("new");
      await page.getByTestId("generate").click();
      await page.getByTestId("generator").selectOption("ring");
      await page.getByTestId("parameter-n").fill("9");
      await page.getByRole("button", { name: "Generate", exact: true }).click();
      await until("a draft that is kept", async () => page.evaluate(() => Object.keys(localStorage).some((k) => localStorage[k].includes("s9"))));
      const other = await page.context().newPage();
      await other.goto(rig.origin + "/#/lab");
      await until("the same drawing in the other page", async () => (await other.getByTestId("canvas").getAttribute("data-nodes")) === "18");
      await other.getByLabel("Name of the lab").fill("of-both");
      await other.getByLabel("Name of the lab").blur();
      await until("the other's edit in this page", async () => (await page.getByTestId("lab-name").inputValue()) === "of-both");
      rig.labs.add("of-both");
      await page.getByTestId("deploy").getByLabel("Controller").fill(`tcp:127.0.0.1:${rig.openflow}`);
      await page.getByTestId("deploy-button").click();
      for (const p of [page, other]) await until("the lab known in both pages", async () => (await p.getByTestId("deploy-button").innerText()) === "Apply the difference");
      rig.command("lab", "down", "of-both");
      rig.labs.delete("of-both");
      for (const p of [page, other]) {
        await until("the end of the lab said", async () => (await said(p)).includes("was taken down elsewhere; the drawing stays"));
        await until("deploying offered again", async () => (await p.getByTestId("deploy-button").innerText()) === "Deploy");
      }
      await more(other);
      await other.getByRole("button", { name: "Delete the draft" }).click();
      for (const s of (await rig.get("/v1/switches")).switches.filter((s) => !s.connected)) await fetch(`${rig.origin}/v1/switches/${s.dpid}:forget`, { method: "POST", body: "{}" });
    },
  },
];
