// Workflows of the start page, and of what all pages share: the theme, the sheet, messages, and that nothing is cut.
import { until } from "./rig.mjs";
import { accessible, discovered, expect, open, still } from "./workflows.mjs";

/** cut returns what has more text than it shows, but for what says so by an ellipsis with a tooltip, and what scrolls. */
const cut = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("body *")]
      .filter((e) => {
        const style = getComputedStyle(e);
        const high = e.tagName === "BUTTON" && e.scrollHeight > e.clientHeight + 1;
        if ((e.scrollWidth <= e.clientWidth + 1 && !high) || e.clientWidth <= 1 || style.display === "inline" || style.clipPath !== "none") return false;
        return !["INPUT", "SELECT", "TEXTAREA"].includes(e.tagName) && !["auto", "scroll"].includes(style.overflowX) && !e.closest("svg, .cm-editor, .xterm") && !e.closest("[data-ellipsis][title]");
      })
      .map((e) => `${e.tagName.toLowerCase()}.${e.className} has ${e.scrollWidth} × ${e.scrollHeight} in ${e.clientWidth} × ${e.clientHeight} pixels: ${e.textContent.slice(0, 60)}`),
  );

const pages = ["#/overview", "#/network", "#/network?switch=0000000000000001", "#/network?tab=switches", "#/network?tab=links", "#/network?tab=path", "#/services", "#/lab", "#/experiments", "#/changes"];

export const overview = [
  {
    name: "the start page says how the network is, a cut link at once, and what happened to it",
    async run(rig) {
      const page = await open(rig, "");
      const [lab] = rig.labs;
      await page.getByTestId("health").getByText("The network is well.").waitFor();
      await page.getByRole("region", { name: "Figures" }).getByText("4 all connected").waitFor();
      await page.getByRole("region", { name: "Controller" }).getByRole("link", { name: "southbound" }).waitFor();
      rig.command("lab", "link", "--name", lab, "s1", "s2", "down");
      await page.getByTestId("health").getByText("Link s1 – s2 is down.").waitFor();
      await page.getByRole("link", { name: "Link s1 – s2 went down" }).first().waitFor();
      rig.command("lab", "link", "--name", lab, "s1", "s2", "up");
      await page.getByTestId("health").getByText("The network is well.").waitFor();
      await page.getByRole("link", { name: "Link s1 – s2 went down" }).first().click();
      await page.getByRole("heading", { name: "Link s1 – s2" }).waitFor();
      await discovered(rig, 4, 4);
    },
  },
  {
    name: "switches are told where to connect, by the address that the controller listens at",
    async run(rig) {
      const page = await open(rig, "");
      await page.getByRole("button", { name: "Connect switches" }).click();
      await page.getByRole("dialog").getByText(`ovs-vsctl set-controller br0 tcp:127.0.0.1:${rig.openflow}`).waitFor();
      await page.getByRole("dialog").getByTestId("address").getByText(`tcp:127.0.0.1:${rig.openflow}`).waitFor();
    },
  },
  {
    name: "a network to try is brought up from the start page, and taken down by Undo",
    async run(rig) {
      rig.labs.add("try");
      const page = await open(rig, "");
      await page.getByRole("button", { name: "Try the demo" }).click();
      await page.getByRole("button", { name: "Bring it up" }).click();
      await page.getByText("The demo is up").hover(); // it stays meanwhile
      await discovered(rig, 10, 12);
      const again = await open(rig, "");
      await again.getByRole("button", { name: "Try the demo" }).click();
      await again.getByText("It runs already.").waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await until("no network to try", async () => !(await rig.get("/v1/lab/labs")).labs.some((l) => l.name === "try"));
      await until("the four switches of the ring", async () => (await rig.get("/v1/switches")).switches.filter((s) => s.connected).length === 4);
      for (const s of (await rig.get("/v1/switches")).switches.filter((s) => !s.connected)) await rig.post(`/v1/switches/${s.dpid}:forget`, {});
    },
  },
  {
    name: "a link that was cut is plugged in again by Undo",
    async run(rig) {
      const link = (await rig.get("/v1/links")).links.find((l) => l.state === "up");
      const end = (p) => `${p.dpid}:${p.port}`;
      const page = await open(rig, `#/network?link=${[end(link.src), end(link.dst)].sort().join("-")}`);
      await page.getByRole("button", { name: /^Cut the link/ }).click();
      const message = page.getByRole("region", { name: "What was done" });
      await message.getByText(/was cut\.$/).waitFor();
      await message.getByRole("button", { name: "Undo" }).click();
      await discovered(rig, 4, 4);
    },
  },
  {
    name: "a theme and the width of the sheet are chosen by keys, and kept",
    async run(rig) {
      const page = await open(rig, "#/network", { colorScheme: "light" });
      const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      const wide = () => page.locator(".sheet").evaluate((e) => e.getBoundingClientRect().width);
      const light = await ground();
      await page.getByRole("button", { name: "Settings" }).press("Enter");
      await page.getByRole("radio", { name: "System" }).focus();
      await page.keyboard.press("ArrowUp");
      await until("a dark page", async () => (await ground()) !== light);
      await page.keyboard.press("Escape");
      await page.getByRole("separator", { name: "Width of the sheet" }).press("ArrowLeft");
      await until("a wider sheet", async () => (await wide()) === 416);
      await page.reload();
      await page.getByTestId("counts").waitFor();
      expect((await ground()) !== light && (await wide()) === 416, "theme or width are not kept");
    },
  },
  {
    name: "nothing is cut at 1440 and 900, in the light and in the dark, and axe-core has no findings",
    async run(rig) {
      for (const [colorScheme, width, height] of [["light", 1440, 900], ["dark", 900, 700]]) {
        const page = await open(rig, "", { colorScheme, viewport: { width, height }, reducedMotion: "reduce" });
        for (const hash of pages) {
          await page.goto(rig.origin + "/" + hash);
          await page.locator("h1").first().waitFor({ state: "attached" });
          await page.evaluate(() => document.fonts.ready);
          await still(page);
          await until(`nothing cut at ${width} on ${hash}`, async () => {
            const list = await cut(page);
            if (list.length > 0) throw new Error(list.slice(0, 3).join("; "));
            return true;
          }, 10);
          await accessible(page, `${hash} at ${width}`);
        }
      }
    },
  },
];
