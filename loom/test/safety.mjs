// Workflows of rights, and of hostile text.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { accessible, expect, open } from "./workflows.mjs";
import { Rig, sleep, until } from "./rig.mjs";

const markup = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;
const kept = new Set(["@type", "subject", "dpid", "process", "instance", "kind", "role", "state", "epoch", "number", "time", "since", "revision", "console", "job"]);

/** spoil adds markup to every text of an answer that is not an identifier. */
function spoil(value, key = "") {
  if (Array.isArray(value)) return value.map((v) => spoil(v, key));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, spoil(v, k)]));
  if (typeof value === "string" && value !== "" && !kept.has(key) && !/^\d+$/.test(value) && key !== "text" && key !== "file") return value + markup;
  return value;
}

export const safety = [
  {
    name: "a token with the role read sees all, and may change nothing",
    async run(rig) {
      const token = rig.command("token", "create", "--name", "loom-reader", "--role", "read", "--server", rig.origin).match(/weft_[\w-]+/)[0];
      const page = await open(rig, "#/network");
      const r = await page.request.post(rig.origin + "/v1/session", { data: { token } });
      expect(r.ok(), `sign in: ${r.status()}`);
      await page.reload();
      await page.getByText("loom-reader (read)").waitFor();
      await page.getByTestId("counts").getByText("4 switches").waitFor();
      await page.goto(rig.origin + "/#/services");
      await page.getByText(/needs the role admin/).first().waitFor();
      expect(await page.getByLabel(/^Replicas of/).first().isDisabled(), "replicas may be changed");
      await page.goto(rig.origin + "/#/lab");
      await page.getByTestId("deploy-button").waitFor();
      await until("deploying refused", () => page.getByTestId("deploy-button").isDisabled());
      const refused = await page.request.post(rig.origin + "/v1/lab/labs:up", { data: { file: "name: x" }, headers: { Origin: rig.origin } });
      expect(refused.status() === 403, `the controller lets it through: ${refused.status()}`);
      rig.command("token", "revoke", "loom-reader", "--server", rig.origin);
    },
  },
  {
    name: "signing in, and a token that is withdrawn under an open page and a console: drafts and consoles are kept",
    async run(rig) {
      const other = new Rig(rig.weft);
      other.token = "a-token-of-the-test-only";
      try {
        await other.up("split", "--set", `gateway.token=${other.token}`);
        const env = ["--server", other.origin, "--token", other.token];
        const token = other.command("token", "create", "--name", "walter", "--role", "admin", ...env).match(/weft_[\w-]+/)[0];
        const page = await other.page("#/services");
        rig.pages.push(page);
        await page.getByLabel("Token").fill("wrong-wrong-wrong-wrong");
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("alert").getByText(/token is wrong/).waitFor();
        await accessible(page, "signing in");
        await page.getByLabel("Token").fill(token);
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByText("walter (admin)").waitFor();
        expect(!page.url().includes(token), "the token is in the address");
        expect(!(await page.evaluate(() => document.cookie)).includes("weft"), "scripts can read the cookie");
        await page.getByLabel("Replicas of forwarding").fill("2");
        await page.getByLabel("Replicas of forwarding").blur();
        await page.getByTestId("proposal").waitFor();
        const again = other.command("token", "create", "--name", "walters-next", "--role", "admin", ...env).match(/weft_[\w-]+/)[0];
        other.command("token", "revoke", "walter", ...env);
        await page.getByRole("dialog", { name: "Your sign-in has ended" }).waitFor();
        await accessible(page, "signing in again");
        await page.keyboard.press("Escape"); // to look at the page first
        await page.getByTestId("status").getByText("Your sign-in has ended").waitFor();
        await page.getByTestId("proposal").waitFor();
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByLabel("Token").fill(again);
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByTestId("proposal").waitFor(); // what was drafted
        const file = join(other.dir, "withdrawn.yaml");
        writeFileSync(file, `name: withdrawn\ncontroller: tcp:127.0.0.1:${other.openflow}\nswitches: [{name: s1}]\nhosts: [{name: h1, switch: s1}]\n`);
        other.labs.add("withdrawn");
        other.command("lab", "up", file);
        await page.goto(other.origin + "/#/lab?name=withdrawn&tab=consoles");
        await page.getByTestId("console-node").selectOption("h1");
        await page.getByTestId("console-open").click();
        await page.getByTestId("terminal").click();
        await sleep(300);
        await page.keyboard.type("echo kept-$((1+1))\n");
        const shown = () => page.getByTestId("terminal").getByText("kept-2").first().waitFor();
        await shown();
        const third = other.command("token", "create", "--name", "walters-third", "--role", "admin", ...env).match(/weft_[\w-]+/)[0];
        other.command("token", "revoke", "walters-next", ...env);
        await page.getByRole("dialog", { name: "Your sign-in has ended" }).waitFor();
        await page.getByLabel("Token").fill(third);
        await page.getByRole("button", { name: "Sign in" }).click();
        await shown();
      } finally {
        await other.down();
      }
    },
  },
  {
    name: "names with markup in them are text, on every page",
    async run(rig) {
      const page = await open(rig, "");
      await page.route("**/v1/**", async (route) => {
        if (route.request().url().endsWith("/v1/session")) return route.continue();
        try {
          const answer = await route.fetch();
          const body = await answer.text();
          try {
            await route.fulfill({ response: answer, body: JSON.stringify(spoil(JSON.parse(body))) });
          } catch {
            await route.fulfill({ response: answer, body });
          }
        } catch {
          await route.abort().catch(() => {});
        }
      });
      const lab = [...rig.labs][0];
      for (const hash of [
        ...["switches", "path", "hosts", "links", "events"].map((t) => `#/network?tab=${t}`), ...["flows", "ports", "errors"].map((t) => `#/network?switch=0000000000000001&part=${t}`),
        ...["plan", "processes", "services", "packets", "crossings"].map((t) => `#/services?tab=${t}`), ...["tables", "controllers", "measure", "consoles"].map((t) => `#/lab?name=${lab}&tab=${t}`),
        "#/experiments", "#/experiments?experiment=nf-model", ...["configuration", "plan", "audit", "flows&all=1", "firewall", "balancer"].map((t) => `#/changes?tab=${t}`), `#/changes?tab=audit&who=${markup}`, `#/network?switch=${markup}`, `#/experiments?run=${markup}`,
      ]) {
        await page.goto("about:blank");
        await page.goto(rig.origin + "/" + hash);
        await page.locator("h1").first().waitFor({ state: "attached" });
        await sleep(400);
        expect((await page.evaluate(() => window.hacked)) === undefined, `${hash}: markup ran`);
        expect((await page.locator("img[src=x]").count()) === 0, `${hash}: markup became an element`);
      }
      await page.goto(rig.origin + "/#/services?tab=services");
      await page.getByText("<img src=x").first().waitFor();
    },
  },
  {
    name: "addresses that no page has written show the page, and what is wrong with them",
    async run(rig) {
      const page = await open(rig, "");
      const own = "0000000000000001:1";
      for (const hash of [
        ...["tab=nonsense", "tab=&hosts=x&tree=x", `link=${own}-${own}`, "link=x", "host=x", "switch=%00", "switch=1&part=x&owner=x", "%E0%A4%A=1"].map((q) => `#/network?${q}`),
        ...["from=x&to=y&as=z&port=-1&way=x&watch=1", "from=10.0.0.1&to=10.0.0.1&as=tcp&port=1e9"].map((q) => `#/network?tab=path&${q}`),
        ...["tab=events&span=a-b&kinds=x", "tab=events&span=9-1&q=[(", "tab=flows&find=[(*", "tab=links&q=[(&q.by=-x"].map((q) => `#/network?${q}`),
        ...["tab=x&log=../..", "do=transport.ws_transport.ws&since=x", "do=move.a.b.c_move.a.b.c_replicas.x.1e9_link.*.*.x_link.*.*.y_x.y.z", "service=x&messages=x&packets=x"].map((q) => `#/services?${q}`),
      ]) {
        await page.goto("about:blank");
        await page.goto(rig.origin + "/" + hash);
        await page.locator('[role="tablist"], [aria-label="What is chosen"]').first().waitFor();
        await sleep(400);
        expect(page.faults.length === 0, `${hash}: ${page.faults[0]}`);
      }
      await page.getByRole("tab", { name: "Processes" }).click(); // the page goes on
      await page.getByRole("table", { name: "Processes" }).waitFor();
      await page.goto(rig.origin + "/#/services?do=move.a.b.c");
      await page.getByTestId("edits").getByText("cannot be made").waitFor();
      await page.getByRole("button", { name: "Take back: a from b to c" }).click();
    },
  },
];
