// A lab that is drawn in the page runs on several machines, which ssh reaches.
import { until } from "./rig.mjs";
import { Site } from "./site.mjs";
import { expect, open } from "./workflows.mjs";

const net = `name: spread
controller: none
switches:
  - {name: s1, fail_mode: standalone, x-position: [0, 0], x-setup: 'echo bridge of $WEFT_LAB'}
  - {name: s2, fail_mode: standalone, x-position: [200, 0]}
hosts:
  - {name: h1, switch: s1, x-position: [0, 100], x-setup: 'echo $WEFT_LAB_HOST of $WEFT_LAB'}
  - {name: h2, switch: s2, x-position: [200, 100], x-setup: 'echo no disk >&2; exit 3'}
links:
  - {a: s1, b: s2}
`;

export const testbed = [
  {
    name: "a lab is mapped to two machines by hand, deployed on them over ssh, pinged across, set up there and taken down",
    async run(rig) {
      const site = new Site(rig);
      try {
        const machines = await site.up("m1", "m2");
        await site.serve();
        const page = await open(rig, "#/lab?tab=testbed");
        await page.getByTestId("file").setInputFiles({ name: "spread.yaml", mimeType: "text/yaml", buffer: Buffer.from(net) });
        await page.getByTestId("machines").fill(machines);
        await page.getByTestId("map").click();
        const mapping = page.getByTestId("mapping");
        for (const [node, machine] of [["s1", "m1"], ["h1", "m1"], ["s2", "m2"], ["h2", "m2"]]) {
          await page.getByLabel(`Place ${node}`).selectOption(machine);
          await mapping.getByRole("row", { name: new RegExp(`^${node} ${machine}`) }).waitFor();
        }
        await page.getByTestId("loads").getByRole("row", { name: /^m2 2 1/ }).waitFor();
        await page.getByTestId("deploy-testbed").click();
        await until("the lab up on both machines", async () => (await page.getByTestId("said").innerText()) === "the lab spread is up");
        await page.getByRole("tab", { name: "Ping and traffic" }).click();
        await page.getByTestId("ping-from").selectOption("h1");
        await page.getByTestId("ping-to").selectOption("h2");
        await until("a ping from machine to machine", async () => {
          await page.getByTestId("ping").click();
          await page.getByTestId("pings").getByText("3 of 3").first().waitFor({ timeout: 15000 });
          return true;
        });
        await page.getByRole("tab", { name: "Set-up" }).click();
        await page.getByTestId("set-up-all").click();
        await page.getByText(/^1 of 3 nodes are not set up/).waitFor();
        const row = async (node) => (await page.getByTestId("setups").getByRole("row", { name: new RegExp(`Pick ${node} `) }).innerText()).replace(/\s+/g, " ");
        for (const [node, want] of [["s1", /m1 .*done.*bridge of spread-m1/], ["h1", /m1 .*done.*h1 of spread-m1/], ["h2", /m2 .*failed.*no disk/]]) expect(want.test(await row(node)), await row(node));
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/testbed-setup.png` });
        await page.getByRole("button", { name: "Take down…" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Take down" }).click();
        await until("the lab taken down", async () => (await page.getByTestId("said").innerText()) === "the lab spread is down");
      } finally {
        await site.down();
      }
    },
  },
];
