// The workflows that make test runs.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { until } from "./rig.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** open opens a page of Loom, of which faults are reported. */
export async function open(rig, hash, options) {
  const page = await rig.page(hash, options);
  rig.pages.push(page);
  return page;
}

export function expect(is, what) {
  if (!is) throw new Error(what);
}

/** deployRing draws a ring by its generator and deploys it, by what the page shows. */
export async function deployRing(rig, page, size) {
  await page.getByTestId("generate").click();
  await page.getByTestId("generator").selectOption({ label: await optionOf(page.getByTestId("generator"), /ring/i) });
  const number = page.locator('[data-testid^="parameter-"]').first();
  await number.fill(String(size));
  await page.getByRole("button", { name: "Generate", exact: true }).click();
  const name = `ring-${size}`;
  rig.labs.add(name);
  await page.getByTestId("deploy").getByLabel("Controller").fill(`tcp:127.0.0.1:${rig.openflow}`);
  await page.getByTestId("deploy-button").click();
  await until("a lab that is up", async () => (await page.getByTestId("deploy-button").innerText()).includes("Apply") && (await page.getByTestId("progress").count()) === 0);
  return name;
}

async function optionOf(select, like) {
  const texts = await select.locator("option").allInnerTexts();
  const found = texts.find((t) => like.test(t));
  if (!found) throw new Error(`no option like ${like} in ${texts}`);
  return found;
}

/** discovered waits until the controller knows the network. */
export const discovered = (rig, switches, links) =>
  until(`${switches} switches and ${links} links known`, async () => {
    const up = (await rig.get("/v1/switches")).switches.filter((s) => s.connected).length;
    return up === switches && (await rig.get("/v1/links")).links.filter((l) => l.state === "up").length === 2 * links;
  });

/** flooded waits until broadcasts reach all switches and hosts' ports, so that a first ping is answered. */
const flooded = (rig, switches, hosts) =>
  until(`a broadcast tree over ${switches} switches, and ${hosts} ports of hosts`, async () => {
    const tree = await rig.get("/v1/flooding");
    const edges = (await rig.get("/v1/port-roles")).ports.filter((p) => p.role === "edge").length;
    return tree.wanted > 0 && tree.committed === tree.wanted && tree.ports.length === 2 * (switches - 1) && edges >= hosts;
  });

/** still waits until a page moves no more, but for what moves for ever. */
export async function still(page) {
  await page.waitForFunction(() => document.getAnimations().every((a) => a.playState !== "running" || a.effect.getTiming().iterations === Infinity));
}

const seriously = new Set(["serious", "critical"]);

/** accessible fails if axe-core has serious findings. */
export async function accessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter((v) => seriously.has(v.impact));
  expect(bad.length === 0, `${what}: ${bad.map((v) => `${v.id}: ${v.help} (${v.nodes.slice(0, 3).map((n) => n.target.join(" ")).join("; ")})`).join("\n")}`);
}

export const quick = [
  {
    name: "a ring is generated, deployed and pinged",
    needed: true,
    async run(rig) {
      const page = await open(rig, "#/lab");
      await deployRing(rig, page, 4);
      await discovered(rig, 4, 4);
      await flooded(rig, 4, 4);
      await page.getByRole("tab", { name: "Ping and traffic" }).click();
      await page.getByTestId("ping").click();
      await page.getByTestId("pings").getByText("3 of 3").first().waitFor();
    },
  },
  {
    name: "a packet is traced, its link cut, and the reroute seen with its milliseconds",
    async run(rig) {
      const page = await open(rig, "#/network");
      await page.getByTestId("counts").getByText("4 switches, 4 links").waitFor();
      const hosts = await until("two hosts known", async () => {
        const list = (await rig.get("/v1/hosts")).hosts;
        return list.length >= 2 ? list : undefined;
      });
      // Two hosts of neighbouring switches, that have talked.
      const route = await until("a route over a link", async () => (await rig.get("/v1/routes")).routes.find((r) => r.hops.length > 1));
      const ip = (mac) => hosts.find((h) => h.mac === mac).ipv4[0];
      await page.getByRole("button", { name: "Trace" }).first().click();
      await page.getByLabel("From", { exact: true }).fill(ip(route.src));
      await page.getByLabel("To", { exact: true }).fill(ip(route.dst));
      await page.getByLabel("To", { exact: true }).blur();
      await page.getByTestId("verdict").waitFor();
      await page.getByRole("button", { name: "Cut the link" }).first().click();
      await page.getByTestId("cut").getByText(/^\d+ routes? moved$/).waitFor();
      await page.getByTestId("cut").getByText(/^\d+\.\d ms$/).waitFor();
      await page.getByRole("button", { name: "Plug in" }).first().click();
      await discovered(rig, 4, 4);
    },
  },
  {
    name: "a packet that does not arrive is traced again once the hosts have talked",
    async run(rig) {
      const [lab] = rig.labs;
      const address = async (host) => (await rig.get(`/v1/lab/labs/${lab}`)).graph.nodes.find((n) => n.name === host).ipv4.split("/")[0];
      await rig.post(`/v1/lab/labs/${lab}/ping`, { from: "h2", to: "h3", count: 1 }); // both are known now
      const page = await open(rig, `#/network?tab=path&from=${await address("h1")}&to=${await address("h3")}`);
      const verdict = page.getByTestId("verdict");
      await verdict.getByText(/controller/).waitFor();
      await rig.post(`/v1/lab/labs/${lab}/ping`, { from: "h1", to: "h3", count: 1 });
      await verdict.getByText(/^arrives/).waitFor();
    },
  },
  {
    name: "no page has serious findings of axe-core",
    async run(rig) {
      const page = await open(rig, "");
      for (const hash of ["#/overview", "#/network", "#/services", "#/lab", "#/experiments", "#/changes"]) {
        await page.goto(rig.origin + "/" + hash);
        await page.locator("h1").first().waitFor({ state: "attached" });
        await still(page);
        await accessible(page, hash);
      }
    },
  },
];
