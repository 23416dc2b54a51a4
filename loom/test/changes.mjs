// Workflows of page Changes.
import { expect, open } from "./workflows.mjs";
import { until } from "./rig.mjs";

/** tried fills in a form, tries it, and returns what the dry run says it would do. */
async function tried(page, fields) {
  for (const [id, value] of Object.entries(fields)) {
    const field = page.locator(`#${id}`);
    if (await field.evaluate((e) => e.tagName === "SELECT")) await field.selectOption(value);
    else await field.fill(value);
  }
  await page.locator("form", { has: page.locator(`#${Object.keys(fields)[0]}`) }).getByTestId("try").click();
  return page.getByTestId("proposed").innerText();
}

const agreed = async (page) => {
  await page.getByTestId("agree").click();
  await page.getByTestId("effects").first().waitFor();
};

/** removed chooses a row and deletes what is chosen, after its dry run. */
async function removed(page, row, there) {
  if (row) await row.click();
  await page.getByTestId("chosen").getByRole("button", { name: "Delete…" }).click();
  await page.getByTestId("proposed").getByText("deleted").first().waitFor();
  expect(await there(), "the dry run has deleted it");
  await page.getByTestId("agree").click();
  await until("it is deleted", async () => !(await there()));
}

/** written replaces the text in the editor. */
async function written(page, text) {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}

const received = async (rig, from, to) => (await rig.post(`/v1/lab/labs/${[...rig.labs][0]}/ping`, { from, to, count: 1 })).received ?? 0;

export const changes = [
  {
    name: "a flow rule is tried, applied, found and deleted again, and a wrong field is marked",
    async run(rig) {
      const page = await open(rig, "#/changes?tab=flows");
      const there = async () => (await rig.get("/v1/flows")).flows.some((w) => w.flow?.priority === 40777);
      const form = { "flows-dpid": "1", "flows-priority": "40777", "flows-match": "eth_type=0x0800\nipv4_dst=10.9.9.9", "flows-actions": "output:99999999999" };
      for (const [id, value] of Object.entries(form)) await page.locator(`#${id}`).fill(value);
      await page.getByTestId("try").click();
      await page.getByTestId("field-error").waitFor();
      expect(await tried(page, { ...form, "flows-actions": "" }).then((t) => /added/.test(t) && /ipv4_dst/.test(t)), "the dry run does not show it");
      expect(!(await there()), "the dry run has added it");
      await agreed(page);
      await until("the rule in force", there);
      const row = page.getByRole("button", { name: /^40777 / });
      await row.waitFor();
      await removed(page, row, there);
    },
  },
  {
    name: "a firewall rule cuts pings and its deletion lets them through; a default is set and put back",
    async run(rig) {
      const page = await open(rig, "#/changes?tab=firewall");
      const there = async () => ((await rig.get("/v1/firewall/rules")).rules ?? []).some((r) => r.id === "no-pings");
      expect(/added/.test(await tried(page, { "firewall-id": "no-pings", "firewall-action": "deny", "firewall-match": "ip_proto=1", "firewall-comment": "<b>of a test</b>" })), "the dry run does not say added");
      expect(!(await there()), "the dry run has added it");
      await agreed(page);
      await until("pings that are cut", async () => (await received(rig, "h1", "h2")) === 0);
      await removed(page, page.getByRole("button", { name: "no-pings" }), there);
      await until("pings that pass", async () => (await received(rig, "h1", "h2")) === 1);
      expect(/replaced/.test(await tried(page, { "firewall-default-dpid": "2", "firewall-default-action": "block" })), "the dry run of the default");
      await agreed(page);
      const own = async () => (await rig.get("/v1/firewall/status")).switches?.some((s) => s.own_default);
      await until("a default of switch 2", own);
      await removed(page, page.getByRole("button", { name: /^switch 0*2$/ }), own);
    },
  },
  {
    name: "a virtual IP is tried, applied, changed and deleted",
    async run(rig) {
      const page = await open(rig, "#/changes?tab=balancer");
      const now = async () => ((await rig.get("/v1/balancer/vips")).vips ?? []).find((v) => v.name === "web");
      const form = { "balancer-name": "web", "balancer-address": "10.0.0.100", "balancer-port": "80", "balancer-pool": "10.0.0.1:80\n10.0.0.2:80@2" };
      expect(/added/.test(await tried(page, form)), "the dry run does not say added");
      expect(!(await now()), "the dry run has added it");
      await agreed(page);
      await until("the virtual IP", now);
      await page.getByRole("button", { name: "web", exact: true }).click();
      await page.getByTestId("chosen").getByRole("button", { name: "Edit" }).click();
      await page.locator("#balancer-policy").selectOption("least");
      await page.getByTestId("try").click();
      await page.getByTestId("proposed").getByText("replaced").first().waitFor();
      await agreed(page);
      await until("the other policy", async () => (await now()).policy === "least");
      await removed(page, undefined, async () => !!(await now()));
    },
  },
  {
    name: "a network that is lost under forms: it is said in place, and what was typed is kept",
    async run(rig) {
      const page = await open(rig, "#/changes?tab=flows");
      await page.locator("#flows-dpid").fill("1");
      await page.locator("#flows-match").fill("in_port=1");
      await page.context().setOffline(true);
      await page.getByTestId("status").getByText(/no answer|does not answer/i).waitFor();
      await page.getByTestId("try").click();
      await page.locator("form").getByRole("alert").getByText(/does not answer/).waitFor();
      await page.getByRole("tab", { name: "Firewall" }).click();
      await page.locator("#firewall-id").fill("kept");
      await page.getByRole("tab", { name: "Flow rules" }).click();
      expect((await page.locator("#flows-match").inputValue()) === "in_port=1", "the flow rule is gone");
      await page.context().setOffline(false);
      await page.getByText(/Reconnected/).waitFor();
      await page.getByTestId("try").click();
      await page.getByTestId("proposed").getByText("in_port=1").first().waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Empty", exact: true }).click();
      await page.getByRole("button", { name: "Back to what was typed" }).click();
      expect((await page.locator("#flows-match").inputValue()) === "in_port=1", "what was typed cannot be taken back");
      await page.reload();
      await page.getByRole("tab", { name: "Firewall" }).click();
      expect((await page.locator("#firewall-id").inputValue()) === "kept", "the firewall rule is gone");
    },
  },
  {
    name: "a configuration is tried, applied and rolled back, and the audit log shows who did it",
    async run(rig) {
      const page = await open(rig, "#/changes");
      const text = async () => (await rig.get("/v1/config")).text ?? "";
      await page.getByTestId("hint").getByRole("button").click();
      await page.getByTestId("try").click();
      await page.getByTestId("effects").getByText("stats.interval").waitFor();
      expect(!(await text()).includes("interval"), "the dry run is in force");
      await page.getByTestId("apply").click();
      await page.getByTestId("effects").getByText("Applied:").waitFor();
      expect((await text()).includes("interval: 2s"), `the first is not in force: ${await text()}`);
      const first = String((await rig.get("/v1/config")).number);
      await written(page, "stats:\n  interval: 4s\nno-such-service: {key: 1}\n");
      await page.getByTestId("try").click();
      await page.getByRole("alert").getByText("no-such-service").first().waitFor();
      await page.locator(".cm-lint-marker-error").first().waitFor(); // its line is marked
      expect(await page.getByTestId("apply").isDisabled(), "what was not tried can be applied");
      await written(page, "stats:\n  interval: 4s\n");
      // Somebody else is faster: the draft stays, and is based on theirs.
      await rig.post("/v1/config", { text: "stats:\n  interval: 3s\n" });
      await page.getByTestId("try").click();
      await page.getByTestId("rebase").click();
      await page.getByRole("table", { name: "Difference to what is in force" }).getByText("interval: 3s").waitFor();
      await page.getByTestId("try").click();
      await page.getByTestId("effects").getByText("3s → 4s").waitFor();
      await page.getByTestId("apply").click();
      await until("the second in force", async () => (await text()).includes("interval: 4s"));
      const history = page.getByRole("table", { name: "History of the configuration" });
      await history.getByRole("row", { name: new RegExp(`^${Number(first) + 2} in-force`) }).waitFor();
      await history.getByRole("button", { name: first, exact: true }).click();
      await page.getByRole("table", { name: /^From/ }).getByText("interval: 4s").waitFor();
      await page.getByRole("button", { name: /^Go back to/ }).click();
      await page.getByRole("dialog").getByText(/4s → 2s/).waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Go back" }).click();
      await until("the first in force again", async () => (await text()).includes("interval: 2s"));
      await page.getByRole("tab", { name: "Audit" }).click();
      const log = page.getByRole("table", { name: "Audit log" });
      await log.getByRole("row", { name: /loopback.*Rollback.*OK/ }).first().waitFor();
      await log.getByRole("row", { name: /loopback.*Apply.*OK/ }).first().waitFor();
    },
  },
];
