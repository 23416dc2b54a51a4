// Workflows of page Lab on a lab that runs.
import { spawnSync } from "node:child_process";

import { deployRing, discovered, expect, open } from "./workflows.mjs";
import { sleep, until } from "./rig.mjs";

/** provider is a lab of hybrid nodes beside the ring. */
const provider = `name: provider
switches:
  - {name: pe1, kind: hybrid, x-type: pe, dpid: "0000000000000101", loopback: 10.255.1.1, x-position: [0, 0]}
  - {name: cr1, kind: hybrid, x-type: cr, dpid: "0000000000000102", loopback: 10.255.1.2, x-position: [150, 0]}
  - {name: pe2, kind: hybrid, x-type: pe, dpid: "0000000000000103", loopback: 10.255.1.3, x-position: [300, 0]}
hosts:
  - {name: ce1, switch: pe1, x-type: ce, ipv4: 10.9.0.1/24, ipv6: none, mac: "02:00:00:00:09:01", x-position: [0, 120]}
  - {name: ce2, switch: pe2, x-type: ce, ipv4: 10.9.0.2/24, ipv6: none, mac: "02:00:00:00:09:02", x-position: [300, 120]}
  - {name: ce3, switch: pe1, x-type: ce, ipv4: 10.9.0.3/24, ipv6: none, mac: "02:00:00:00:09:03", x-position: [60, 120]}
  - {name: ce4, switch: pe2, x-type: ce, ipv4: 10.9.0.4/24, ipv6: none, mac: "02:00:00:00:09:04", x-position: [360, 120]}
links:
  - {a: pe1, b: cr1}
  - {a: cr1, b: pe2}
`;

/** running opens page Lab with the lab that the workflows before have deployed. */
export async function running(rig, tab = "") {
  const name = [...rig.labs][0];
  const page = await open(rig, `#/lab?name=${name}${tab ? "&tab=" + tab : ""}`);
  await until("the lab shown as running", async () => (await page.getByTestId("deploy-button").innerText()).includes("Apply"));
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
      // Colours that are set in place count, by the page's policy.
      await page.keyboard.type("printf '\\033[38;2;255;0;255mPI%s\\033[0m\\n' NK\n");
      const pink = page.getByTestId("terminal").first().locator("span", { hasText: /^PINK/ });
      await until("a text in its colour", async () => (await pink.first().evaluate((e) => getComputedStyle(e).color)) === "rgb(255, 0, 255)");
      await page.keyboard.type("echo kept-$((1+1))\n");
      await until("a second answer", async () => (await text()).includes("kept-2"));
      await page.context().close();
      page = await running(rig, "consoles");
      await page.getByRole("tab", { name: /^h1/ }).first().click().catch(() => {});
      await until("the scroll-back", async () => (await page.getByTestId("terminal").first().innerText()).includes("kept-2"));
      // What is typed goes to several, which are seen beside each other; Ctrl-C ends what runs in each; the size of each is its command's.
      await page.getByTestId("console-node").selectOption("h2");
      await page.getByTestId("console-open").click();
      await page.getByRole("tab", { name: /^h2/, selected: true }).waitFor();
      await page.getByLabel("type into several at once").check();
      const seen = page.getByTestId("terminal").locator("visible=true");
      await until("two consoles beside each other", async () => (await seen.count()) === 2);
      await seen.last().click();
      await sleep(500);
      await page.keyboard.type("sleep 1000\n");
      await sleep(500);
      await page.keyboard.press("Control+c");
      await page.keyboard.type("echo in-$WEFT_LAB_HOST-$?-$(stty size | tr ' ' x)\n");
      for (const [i, host] of ["h1", "h2"].entries()) await until(`an answer of ${host}`, async () => new RegExp(`in-${host}-130-[1-9]\\d*x[1-9]\\d*`).test(await seen.nth(i).innerText()));
      await page.getByLabel("type into several at once").uncheck();
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
      });
      await page.getByRole("table", { name: "Packets" }).getByRole("button").first().click();
      const layers = page.getByTestId("layers");
      for (const name of ["Ethernet", "IPv4", "ICMP"]) await layers.getByText(name, { exact: true }).first().waitFor();
      // However many packets come, few rows are drawn; the file has all, and others read it.
      await form.getByLabel("Filter").fill("udp");
      await page.getByTestId("capture-start").click();
      await page.getByText(/capturing/).waitFor();
      rig.command("lab", "traffic", "--name", [...rig.labs][0], "h1", "h2", "--rate", "4000", "--time", "2s");
      const count = async () => Number((await page.getByTestId("captured").innerText()).replace(/[^0-9 ]/g, "").trim().split(" ")[0]);
      await until("thousands of packets", async () => (await count()) > 4000);
      const drawn = await page.getByRole("table", { name: "Packets" }).locator("tr.packet").count();
      expect(drawn > 5 && drawn < 60, `${drawn} rows are drawn`);
      await page.getByRole("button", { name: "Stop" }).click();
      const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as pcapng" }).click()]);
      const read = spawnSync("tshark", ["-r", await file.path(), "-T", "fields", "-e", "frame.number"], { encoding: "utf8" });
      expect(read.stdout.trim().split("\n").length === (await count()), `tshark reads ${read.stdout.trim().split("\n").length} packets of ${await count()}: ${read.stderr}`);
    },
  },
  {
    name: "a changed text is applied as a difference to the running lab",
    async run(rig) {
      const page = await running(rig);
      const name = [...rig.labs][0];
      const before = (await rig.get(`/v1/lab/labs/${name}`)).graph.nodes.length;
      await page.getByRole("button", { name: "Add Host" }).or(page.getByRole("button", { name: /^Add .*host/i })).first().click();
      const box = await page.locator("canvas").first().boundingBox();
      await page.mouse.click(box.x + 40, box.y + box.height - 40);
      await page.locator("label", { hasText: /^From/ }).locator("select").first().selectOption({ label: "h5" });
      await page.locator("label", { hasText: /^To/ }).locator("select").first().selectOption({ label: "s1" });
      await page.getByRole("button", { name: "Connect", exact: true }).last().click();
      await page.getByTestId("deploy-button").click();
      await page.getByRole("dialog").getByText("h5").first().waitFor();
      await page.getByTestId("apply").click();
      await until("one node more", async () => (await rig.get(`/v1/lab/labs/${name}`)).graph.nodes.length === before + 1);
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
      });
      await page.getByRole("button", { name: "Take down…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Take down" }).click();
      await until("the lab taken down", async () => !(await rig.get("/v1/lab/labs")).labs.some((l) => l.name === name));
      rig.labs.delete(name);
      for (const s of (await rig.get("/v1/switches")).switches.filter((s) => !s.connected)) await fetch(`${rig.origin}/v1/switches/${s.dpid}:forget`, { method: "POST", body: "{}" });
    },
  },
  {
    name: "each switch's session with its controller is shown, with its role, and one that is drawn is written to the file",
    async run(rig) {
      const page = await running(rig, "controllers");
      await page.getByLabel("View", { exact: true }).selectOption("Controllers of each node");
      const table = page.getByRole("table", { name: "Controllers of each node" });
      await until("four sessions, connected, of a master", async () => (await table.getByRole("row", { name: /connected\s+master/ }).count()) === 4);
      await page.getByTestId("add-controller").click();
      await page.getByTestId("controller-address").fill("tcp:10.0.0.9:6653");
      await page.getByTestId("controller-address").blur();
      await page.getByRole("button", { name: "Text", exact: true }).click();
      await page.locator(".cm-content").getByText("tcp:10.0.0.9:6653").first().waitFor();
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/controllers.png` });
      await page.getByRole("button", { name: "Undo", exact: true }).click();
      await page.getByRole("button", { name: "Undo", exact: true }).click();
    },
  },
  {
    name: "a lab is mapped to two machines, a node placed by hand, and what a wrong resource file lacks is told",
    async run(rig) {
      const page = await running(rig, "testbed");
      await page.getByTestId("machines").fill("machines: [{name: m1}]");
      await page.getByTestId("map").click();
      await page.getByText(/the machines, line 1/).first().waitFor();
      await page.getByTestId("machines").fill("machines:\n  - {name: m1, ssh: root@192.0.2.1}\n  - {name: m2, ssh: root@192.0.2.2}\n");
      await page.getByTestId("map").click();
      expect(await page.getByTestId("deploy-testbed").isDisabled(), "a lab that runs can be deployed on machines as well");
      await page.getByText(/is up: Apply the difference/).waitFor();
      const mapping = page.getByTestId("mapping");
      await mapping.getByRole("row", { name: /^s1/ }).waitFor();
      const other = (await mapping.getByRole("row", { name: /^s1/ }).innerText()).includes("m1\t") ? "m2" : "m1";
      await page.getByLabel("Place s1").selectOption(other);
      await until("s1 on the other machine", async () => (await mapping.getByRole("row", { name: /^s1/ }).innerText()).includes(`${other}\t`));
      expect((await page.getByTestId("machines").inputValue()).includes("nodes: [s1]"), "the resource file does not say so");
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/testbed.png` });
      await page.getByLabel("Place s1").selectOption("automatically");
      await until("s1 left to the mapping", async () => !(await page.getByTestId("machines").inputValue()).includes("nodes"));
    },
  },
  {
    name: "nodes are grouped and a note is written, by the keyboard, and both are in the file",
    async run(rig) {
      const page = await running(rig);
      const canvas = page.getByTestId("canvas");
      await canvas.focus();
      await page.keyboard.press("Control+a");
      await page.keyboard.press("g");
      await page.getByTestId("group-name").fill("Site A");
      await page.getByTestId("group-name").blur();
      await canvas.focus();
      await page.keyboard.press("t");
      await page.getByTestId("note-text").fill("ring of the north <b>");
      await page.getByTestId("note-text").blur();
      const marks = page.getByRole("table", { name: "Groups and notes" });
      await marks.getByText("Site A").waitFor();
      await marks.getByText("ring of the north <b>").waitFor();
      await page.getByRole("button", { name: "Text", exact: true }).click();
      await page.locator(".cm-content").getByText("Site A").first().waitFor();
      await page.getByRole("button", { name: "Show all" }).click();
      await sleep(500);
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/groups.png` });
      await page.getByTestId("deploy-button").click();
      await page.getByRole("dialog").getByText("The running lab is as the text says.").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
      for (let i = 0; i < 4; i++) await page.getByRole("button", { name: "Undo", exact: true }).click();
      await until("both undone", async () => (await marks.count()) === 0);
    },
  },
  {
    name: "a traffic matrix sends between all pairs at once",
    async run(rig) {
      const page = await running(rig, "measure");
      await page.getByLabel("Packets/s of a pair").fill("20");
      await page.getByTestId("traffic-seconds").fill("1");
      await page.getByTestId("traffic-fill").click();
      const send = page.getByTestId("traffic-send");
      await until("a matrix", async () => /^Send between (12|20) pairs at once$/.test(await send.innerText()));
      await send.click();
      const cells = page.getByTestId("traffic").locator("td.number");
      await until("what became of it", async () => (await cells.count()) >= 16);
      const lost = (await cells.allInnerTexts()).filter((t) => t !== "");
      expect(lost.length >= 12 && lost.every((t) => Number(t) < 100), `some pair received nothing: ${lost}`);
      // What takes long is stopped, and what was measured stays.
      await page.getByTestId("traffic-seconds").fill("20");
      await send.click();
      await page.getByRole("button", { name: "Stop", exact: true }).locator("visible=true").click();
      await page.getByRole("alert").getByText(/^stopped/).waitFor();
      expect((await cells.count()) >= 16, "what was measured is gone");
    },
  },
  {
    name: "a VLL that is drawn is set, carries pings, and goes when it is deleted from the drawing",
    async run(rig) {
      const page = await open(rig, "#/lab");
      await page.getByTestId("file").setInputFiles({ name: "provider.yaml", mimeType: "text/yaml", buffer: Buffer.from(provider) });
      await page.getByLabel("View", { exact: true }).selectOption("VLLs");
      const join = async (a, b) => {
        await page.locator("label", { hasText: /^From/ }).locator("select").first().selectOption({ label: a });
        await page.locator("label", { hasText: /^To/ }).locator("select").first().selectOption({ label: b });
        await page.getByRole("button", { name: "Connect", exact: true }).last().click();
      };
      await join("ce1", "ce2");
      rig.labs.add("provider");
      await page.getByTestId("deploy").getByLabel("Controller").fill(`tcp:127.0.0.1:${rig.openflow}`);
      await page.getByTestId("deploy-button").click();
      await page.getByRole("tab", { name: /^Services/ }).click();
      const row = page.getByRole("table", { name: "Services of the lab" }).getByRole("row", { name: /^vll1/ });
      await until("the VLL up", async () => (await row.innerText()).includes("\tup\t"));
      expect((await row.innerText()).includes("pe1 → cr1 → pe2"), `its path is not shown: ${await row.innerText()}`);
      await page.getByRole("tab", { name: "Ping and traffic" }).click();
      await page.getByTestId("ping-from").selectOption("ce1");
      await page.getByTestId("ping-to").selectOption("ce2");
      await until("pings through the VLL", async () => {
        await page.getByTestId("ping").click();
        await page.getByTestId("pings").getByText("3 of 3").first().waitFor({ timeout: 10000 });
        return true;
      });
      const circuits = async () => (await rig.get("/v1/l2vpn")).circuits;
      const [before] = await circuits();
      rig.command("l2vpn", "add", "by-hand", "103:2", "101:2", "--server", rig.origin);
      // Once more changes nothing, and neither touches what others made.
      await page.getByRole("tab", { name: /^Services/ }).click();
      await page.getByTestId("set-services").click();
      await until("the services set", async () => page.getByTestId("set-services").isEnabled());
      const after = (await circuits()).find((c) => c.name === "loom.provider.vll1");
      expect(before.name === after.name && before.id === after.id && before.since === after.since, `the circuit has changed: ${JSON.stringify([before, after])}`);
      await row.getByRole("button", { name: "vll1" }).click();
      await page.getByRole("button", { name: "Delete vll1" }).click();
      await page.getByTestId("deploy-button").click();
      await page.getByRole("dialog").getByText("delete vpws vll1").waitFor();
      await page.getByTestId("apply").click();
      await until("only the other circuit left", async () => (await circuits()).map((c) => c.name).join() === "by-hand");
      await page.getByRole("button", { name: "Undo", exact: true }).click();
      await page.getByTestId("set-services").click();
      await until("the VLL up again", async () => (await row.innerText()).includes("\tup\t"));
      await page.getByRole("button", { name: "Take down…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Take down" }).click();
      await until("the lab and its circuits gone", async () => (await circuits()).length === 1 && !(await rig.get("/v1/lab/labs")).labs.some((l) => l.name === "provider"));
      rig.labs.delete("provider");
      rig.command("l2vpn", "delete", "by-hand", "--server", rig.origin);
      for (const s of (await rig.get("/v1/switches")).switches.filter((s) => !s.connected)) await fetch(`${rig.origin}/v1/switches/${s.dpid}:forget`, { method: "POST", body: "{}" });
    },
  },
];
