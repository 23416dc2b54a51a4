// The workflows that make loom-test runs besides.
import { accessible, discovered, expect, open } from "./workflows.mjs";
import { sleep, until } from "./rig.mjs";

let strangers = 0;

/** stranger pings from an Ethernet address that no entry is about yet. */
function stranger(rig) {
  const address = `02:00:00:00:aa:${(strangers++ % 256).toString(16).padStart(2, "0")}`;
  const script = `was=$(cat /sys/class/net/eth0/address); ip link set dev eth0 address ${address}; ping -c 1 -W 1 10.0.0.3; ip link set dev eth0 address $was`;
  rig.command("lab", "exec", "--name", [...rig.labs][0], "h1", "--", "sh", "-c", script);
}

export const more = [
  {
    name: "no page, tab and dialog in the dark has serious findings of axe-core, and dialogs give the focus back",
    async run(rig) {
      const page = await open(rig, "", { colorScheme: "dark" });
      for (const hash of [
        ...["switches", "path", "links", "hosts", "events"].map((t) => `#/network?tab=${t}`), "#/network?switch=0000000000000001&part=flows",
        ...["plan", "processes", "services", "packets", "crossings"].map((t) => `#/services?tab=${t}`),
        ...["tables", "controllers", "testbed", "problems", "measure", "consoles", "capture", "measurements"].map((t) => `#/lab?name=${[...rig.labs][0]}&tab=${t}`), `#/lab?name=${[...rig.labs][0]}&text=1`,
        "#/experiments", ...["configuration", "plan", "audit", "flows", "firewall", "balancer"].map((t) => `#/changes?tab=${t}`),
      ]) {
        await page.goto(rig.origin + "/" + hash);
        await sleep(400);
        await accessible(page, hash);
      }
      await page.goto(rig.origin + "/#/changes?tab=flows");
      await page.locator("#flows-dpid").fill("1");
      await page.locator("#flows-actions").fill("output:1");
      for (const open of [() => page.getByTestId("try").press("Enter"), () => page.keyboard.press("Control+k")]) {
        await open();
        const dialog = page.getByRole("dialog");
        await dialog.waitFor();
        await accessible(page, "dialog");
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
        await until("the focus where it was", () => page.evaluate(() => document.activeElement?.dataset.testid === "try"));
      }
    },
  },
  {
    name: "Ctrl-K finds a switch, and its flow tables are shown with owners",
    async run(rig) {
      const page = await open(rig, "");
      await page.getByTestId("status").getByText("Connected").waitFor();
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Find" }).fill("switch 1");
      await page.keyboard.press("Enter");
      await page.getByRole("tab", { name: "Flow tables" }).click();
      await page.getByRole("table", { name: /Entries of table/ }).first().getByText("discovery").first().waitFor();
      await page.reload();
      await page.getByRole("table", { name: /Entries of table/ }).first().waitFor(); // its link restores it
    },
  },
  {
    name: "a service is moved to another worker, and no packet is lost",
    async run(rig) {
      const page = await open(rig, "#/services");
      const service = page.locator('[data-service="paths"]');
      await service.waitFor();
      await service.dragTo(page.locator('[data-worker="forwarding"]'));
      // It stands at its goal and, faded, where it was; what it costs is in the bar.
      await page.locator('[data-worker="forwarding"]').getByText("moves here").waitFor();
      await page.locator('[data-worker="paths"]').getByText("stops").waitFor();
      const bar = page.getByTestId("proposal");
      await bar.getByText("−1", { exact: true }).waitFor();
      await bar.getByText("process", { exact: true }).waitFor();
      await bar.getByRole("button", { name: "Details" }).click();
      await page.getByTestId("changes").waitFor();
      await page.getByTestId("costs").getByText("call", { exact: true }).first().waitFor();
      await page.getByRole("button", { name: "Apply" }).click();
      await page.getByRole("heading", { name: "Applied", exact: true }).waitFor();
      await page.getByText(/Packets lost: 0\b/).waitFor();
      const plan = await rig.get("/v1/plan");
      expect(/services: *\[(paths, *forwarding|forwarding, *paths)\]/.test(plan.text), `the plan in force: ${plan.text}`);
      await until("all workers up", async () => (await rig.get("/v1/workers")).workers.every((w) => w.state === "up" && w.current));
      await discovered(rig, 4, 4);
    },
  },
  {
    name: "the plan before is compared with the one in force, and put back",
    async run(rig) {
      const before = Number((await rig.get("/v1/plan")).generation);
      await rig.post("/v1/plan", { text: (await rig.get("/v1/plan")).text.replace(/^name: .*$/m, "name: other") });
      const page = await open(rig, "#/changes?tab=plan");
      const history = page.getByRole("table", { name: "History of the plan" });
      await history.getByRole("row", { name: /in-force .*other/ }).waitFor();
      const former = (await rig.get("/v1/plan/history")).plans[1];
      expect(Number(former.generation) <= before, `the plan before: ${JSON.stringify(former)}`);
      await page.getByLabel("Before").selectOption(String(former.generation));
      await page.getByLabel("After").selectOption(String(before + 1));
      await page.getByRole("table", { name: /^From/ }).getByText("name: other").waitFor();
      await page.getByRole("button", { name: /Go back to/ }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(`~ name: other -> ${former.name}`).waitFor();
      await dialog.getByRole("button", { name: "Go back" }).click();
      await history.getByRole("row", { name: /in-force roll-back/ }).waitFor();
      const plan = await rig.get("/v1/plan");
      expect(plan.text.includes(`name: ${former.name}`), `the plan in force: ${plan.text}`);
      await until("all workers up", async () => (await rig.get("/v1/workers")).workers.every((w) => w.state === "up" && w.current));
    },
  },
  {
    name: "packets are watched as they walk through the processes",
    async run(rig) {
      const page = await open(rig, "#/services?tab=packets");
      await page.getByRole("button", { name: "Watch" }).click();
      await page.getByText("watching").waitFor();
      await until("a packet that walked", async () => {
        stranger(rig);
        return (await page.getByRole("region", { name: "The way of a packet" }).count()) > 0;
      });
      await page.getByRole("region", { name: "The way of a packet" }).getByText("forwarding").first().waitFor();
    },
  },
  {
    name: "rates and latencies between services are shown",
    async run(rig) {
      const page = await open(rig, "#/services?tab=crossings");
      await page.getByRole("table", { name: "Messages between services" }).getByText("grpc").first().waitFor();
      const board = await open(rig, "#/services");
      const over = board.getByRole("img", { name: "Messages between processes" });
      await board.locator('[data-worker="southbound"]').hover();
      await over.getByText(/\/s/).first().waitFor();
      await board.getByRole("checkbox", { name: "packets on their way" }).check();
      await until("a packet on the board", async () => {
        stranger(rig);
        return (await over.locator("circle").count()) > 0;
      });
    },
  },
  {
    name: "two browsers at once see the same",
    async run(rig) {
      const [a, b] = await Promise.all([open(rig, "#/network?tab=events"), open(rig, "#/network?tab=events")]);
      await Promise.all([a, b].map((p) => p.getByTestId("status").getByText("Connected").waitFor()));
      const lab = [...rig.labs][0];
      rig.command("lab", "link", "--name", lab, "s1", "s2", "down");
      await Promise.all([a, b].map((p) => p.getByText(/link .* down/).first().waitFor()));
      rig.command("lab", "link", "--name", lab, "s1", "s2", "up");
      await discovered(rig, 4, 4);
    },
  },
  {
    name: "the gateway is killed under an open page: it says so, and goes on",
    async run(rig) {
      const page = await open(rig, "#/network");
      await page.getByTestId("status").getByText("Connected").waitFor();
      const worker = (await rig.get("/v1/workers")).workers.find((w) => w.services.some((s) => s.name === "gateway"));
      process.kill(worker.pid, "SIGKILL");
      await page.getByTestId("status").getByText(/Retrying/).waitFor();
      await page.getByText(/Reconnected/).waitFor();
      await page.getByTestId("counts").getByText("4 switches, 4 links").waitFor();
      await until("all workers up", async () => (await rig.get("/v1/workers")).workers.every((w) => w.state === "up"));
    },
  },
  {
    name: "a lost network is said, and what was drafted is kept",
    async run(rig) {
      const page = await open(rig, "#/services");
      await page.locator('[data-service="stats"]').waitFor();
      await page.getByLabel("Replicas of forwarding").fill("2");
      await page.getByLabel("Replicas of forwarding").blur();
      await page.getByTestId("proposal").waitFor();
      await page.context().setOffline(true);
      await page.getByTestId("status").getByText(/Retrying/).waitFor();
      await page.context().setOffline(false);
      await page.getByText(/Reconnected/).waitFor();
      expect((await page.getByTestId("proposal").count()) === 1, "the draft is gone");
      await page.getByRole("button", { name: "Discard" }).click();
    },
  },
];
