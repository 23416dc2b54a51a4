// Workflows of page Lab on a lab that runs.
import { deployRing, discovered, open } from "./workflows.mjs";
import { sleep, until } from "./rig.mjs";

/** running opens page Lab with the lab that the workflows before have deployed. */
export async function running(rig, tab = "") {
  const name = [...rig.labs][0];
  const page = await open(rig, `#/lab?name=${name}${tab ? "&tab=" + tab : ""}`);
  await until("the lab shown as running", async () => (await page.getByTestId("deploy-button").innerText()).includes("Apply"), 30);
  return page;
}

export const lab = [
  {
    name: "a console in a host answers, and outlives the page",
    async run(rig) {
      let page = await running(rig, "consoles");
      await page.getByTestId("console-node").selectOption("h1");
      await page.getByTestId("console-open").click();
      await page.getByTestId("terminal").first().click();
      await sleep(500);
      await page.keyboard.type("echo $((6*7))-$(hostname -I | wc -w)\n");
      const text = () => page.getByTestId("terminal").first().innerText();
      await until("an answer at the console", async () => /42-\d/.test(await text()));
      await page.keyboard.type("echo kept-$((1+1))\n");
      await until("a second answer", async () => (await text()).includes("kept-2"));
      await page.context().close();
      page = await running(rig, "consoles");
      await page.getByRole("tab", { name: /^h1/ }).first().click().catch(() => {});
      await until("the scroll-back", async () => (await page.getByTestId("terminal").first().innerText()).includes("kept-2"));
    },
  },
  {
    name: "a capture shows pings, decoded, and a wrong filter is told",
    async run(rig) {
      const page = await running(rig, "capture");
      const form = page.locator("form", { has: page.getByTestId("capture-start") });
      await form.getByRole("combobox").first().selectOption("h1");
      await form.getByLabel("Filter").fill("no such filter");
      await page.getByTestId("capture-start").click();
      await page.getByRole("alert").first().waitFor();
      await form.getByLabel("Filter").fill("icmp");
      await page.getByTestId("capture-start").click();
      await page.getByText(/capturing/).waitFor();
      await until("an ICMP packet shown", async () => {
        rig.command("lab", "ping", "--name", [...rig.labs][0], "h1", "h2", "-c", "2");
        return (await page.getByRole("table", { name: "Packets" }).getByText("ICMP").count()) > 0;
      }, 40);
      await page.getByRole("button", { name: "Stop" }).click();
    },
  },
  {
    name: "a changed text is applied as a difference to the running lab",
    async run(rig) {
      const page = await running(rig);
      const name = [...rig.labs][0];
      const before = (await rig.get(`/v1/lab/labs/${name}`)).graph.nodes.length;
      await page.getByRole("button", { name: "+ Host" }).or(page.getByRole("button", { name: /^\+ .*host/i })).first().click();
      const box = await page.locator("canvas").first().boundingBox();
      await page.mouse.click(box.x + 40, box.y + box.height - 40);
      await page.locator("label", { hasText: /^From/ }).locator("select").first().selectOption({ label: "h5" });
      await page.locator("label", { hasText: /^To/ }).locator("select").first().selectOption({ label: "s1" });
      await page.getByRole("button", { name: "Connect", exact: true }).last().click();
      await page.getByTestId("deploy-button").click();
      await page.getByRole("dialog").getByText("h5").first().waitFor();
      await page.getByTestId("apply").click();
      await until("one node more", async () => (await rig.get(`/v1/lab/labs/${name}`)).graph.nodes.length === before + 1, 40);
      await discovered(rig, 4, 4);
    },
  },
  {
    name: "a second lab at the same controller gets numbers of its own, and answers",
    async run(rig) {
      const page = await open(rig, "#/lab");
      const name = await deployRing(rig, page, 3);
      await discovered(rig, 7, 7);
      await page.getByRole("tab", { name: "Ping and traffic" }).click();
      await until("a ping that is answered", async () => {
        await page.getByTestId("ping").click();
        await page.getByTestId("pings").getByText("3 of 3").first().waitFor({ timeout: 15000 });
        return true;
      }, 45);
      await page.getByRole("button", { name: "Take down…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Take down" }).click();
      await until("the lab taken down", async () => !(await rig.get("/v1/lab/labs")).labs.some((l) => l.name === name), 30);
      rig.labs.delete(name);
      for (const s of (await rig.get("/v1/switches")).switches.filter((s) => !s.connected)) await fetch(`${rig.origin}/v1/switches/${s.dpid}:forget`, { method: "POST", body: "{}" });
    },
  },
];
