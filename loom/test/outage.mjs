// Workflows of bad input, and of what breaks off under an open page.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { running } from "./lab.mjs";
import { sleep, until } from "./rig.mjs";
import { expect, open } from "./workflows.mjs";

const markup = "<img src=x onerror=window.hacked=1>";

/** lldp sends frames from a host, whose chassis, port and system name are markup. */
const lldp = `import socket, struct, time
def tlv(kind, value):
    return struct.pack("!H", kind << 9 | len(value)) + value
text = b"${markup}"
frame = bytes.fromhex("0180c200000e02000000aabb88cc") + tlv(1, b"\\x07" + text) + tlv(2, b"\\x07" + text) + tlv(3, b"\\x00\\x78") + tlv(5, text) + tlv(6, text) + tlv(0, b"")
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("eth0", 0))
for _ in range(5):
    out.send(frame)
    time.sleep(0.1)
`;

/** opened opens a console in a host and waits for its prompt. */
/** terminal is the console that is shown. */
const terminal = (page) => page.getByTestId("terminal").locator("visible=true");

async function opened(page, node) {
  await page.getByTestId("console-node").selectOption(node);
  await page.getByTestId("console-open").click();
  await page.getByRole("tab", { name: new RegExp(`^${node}(: \\S+)?$`), selected: true }).waitFor();
  await terminal(page).click();
  await typed(page, "echo here-$((2*3))", "here-6");
}

async function typed(page, command, answer) {
  await sleep(300);
  await page.keyboard.type(command + "\n");
  await until(`${answer} at the console`, async () => (await terminal(page).innerText()).includes(answer));
}

async function captured(page, filter) {
  const form = page.locator("form", { has: page.getByTestId("capture-start") });
  await form.getByRole("combobox").first().selectOption("h1");
  await form.getByLabel("Filter").fill(filter);
  await page.getByTestId("capture-start").click();
  await page.getByText(/capturing/).waitFor();
}

export const outage = [
  {
    name: "real LLDP frames whose names are markup are shown as text, and nothing of them runs",
    async run(rig) {
      const page = await running(rig, "capture");
      await captured(page, "ether proto 0x88cc");
      await until("an LLDP frame of the host", async () => {
        rig.command("lab", "exec", "--name", [...rig.labs][0], "h1", "--", "python3", "-c", lldp);
        return (await page.getByRole("table", { name: "Packets" }).getByText(`name ${markup}`).count()) > 0;
      });
      const [network] = await Promise.all([open(rig, "#/network?tab=events"), sleep(2000)]);
      await network.getByRole("tab", { name: "Hosts" }).click();
      for (const p of [page, network]) {
        expect((await p.evaluate(() => window.hacked)) === undefined, "markup ran");
        expect((await p.locator("img[src=x]").count()) === 0, "markup became an element");
      }
      expect((await rig.get("/v1/links")).links.length === 8, "a frame of a host became a link");
    },
  },
  {
    name: "a file of a million nodes is refused in place, and the drawing stays",
    async run(rig) {
      const page = await running(rig);
      const path = join(rig.dir, "million.yaml");
      writeFileSync(path, "name: million\nswitches:\n" + Array.from({ length: 1e6 }, (_, i) => `  - {name: s${i}}\n`).join(""));
      await page.getByTestId("file").setInputFiles(path);
      await page.getByTestId("said").getByText(/million\.yaml was not read: it has [\d,]+ octets, and at most 8,388,608/).waitFor();
      expect(await page.getByTestId("canvas").getAttribute("data-nodes") > 0, "the drawing is gone");
      // As text it is refused, too, and can be taken back.
      await page.getByRole("button", { name: "Text", exact: true }).click();
      await page.locator(".cm-content").click();
      await page.keyboard.press("Control+a");
      await page.locator(".cm-content").evaluate((e, text) => {
        const clipboardData = new DataTransfer();
        clipboardData.setData("text/plain", text);
        e.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
      }, readFileSync(path, "utf8").slice(0, 2 << 20));
      await page.getByRole("alert").getByText(/at most 1,048,576/).waitFor();
      await page.getByRole("button", { name: "Back to what is drawn" }).click();
      await page.locator(".cm-content").getByText("s1, x-position").first().waitFor();
    },
  },
  {
    name: "a browser that has no room for a draft: the page says so, and the drawing stays",
    async run(rig) {
      const page = await running(rig);
      await page.evaluate(() => {
        for (let size = 1 << 20; size > 0; size >>= 1)
          try {
            for (let i = 0; ; i++) localStorage.setItem(`full-${size}-${i}`, "x".repeat(size));
          } catch {
            // less fits
          }
      });
      await page.getByTestId("canvas").focus();
      await page.keyboard.press("t");
      await page.getByTestId("note-text").fill("kept in the page");
      await page.getByTestId("note-text").blur();
      await page.getByRole("alert").getByText(/the browser has no room for this draft/).waitFor();
      await page.getByRole("table", { name: "Groups and notes" }).getByText("kept in the page").waitFor();
    },
  },
  {
    name: "the lab service is killed under a capture and a console: the page says so, keeps what came, and goes on with the next",
    async run(rig) {
      const page = await running(rig, "consoles");
      await opened(page, "h2");
      await page.getByRole("tab", { name: "Capture", exact: true }).click();
      await captured(page, "icmp");
      await until("a packet", async () => {
        rig.command("lab", "ping", "--name", [...rig.labs][0], "h1", "h2", "-c", "1");
        return /[1-9]\d* packets/.test(await page.getByTestId("captured").innerText());
      });
      rig.lab.kill("SIGKILL");
      await page.getByText(/the capture broke off|the capture has ended/).waitFor();
      const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as pcapng" }).click()]);
      expect(readFileSync(await file.path()).readUInt32LE(0) === 0x0a0d0d0a, "what was captured is no pcapng");
      await page.getByRole("tab", { name: "Consoles" }).click();
      await page.getByText(/the connection was lost: trying again/).locator("visible=true").waitFor();
      rig.serveLabs();
      await page.getByText(/it has ended, as the lab service was started again/).locator("visible=true").waitFor();
      await page.getByRole("button", { name: "Close the console of h2" }).click();
      await opened(page, "h2");
    },
  },
  {
    name: "a lab that is changed on the command line meanwhile: the page says so, and no work is lost",
    async run(rig) {
      const page = await running(rig);
      const name = [...rig.labs][0];
      const before = (await rig.get(`/v1/lab/labs/${name}`)).file;
      await page.getByTestId("canvas").focus();
      await page.keyboard.press("t");
      await page.getByTestId("note-text").fill("my work");
      await page.getByTestId("note-text").blur();
      const path = join(rig.dir, "changed.yaml");
      writeFileSync(path, before.replace(/^hosts:\n/m, "hosts:\n  - {name: h9, switch: s2}\n"));
      rig.command("lab", "apply", path);
      await page.getByTestId("deploy-button").click();
      await page.getByText(/The lab was changed elsewhere since this draft was made/).waitFor();
      await page.getByRole("table", { name: "Groups and notes" }).getByText("my work").waitFor();
      await page.getByTestId("deploy-button").click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(/h9/).first().waitFor();
      await page.getByTestId("apply").click();
      await until("the lab as it is drawn", async () => !(await rig.get(`/v1/lab/labs/${name}`)).graph.nodes.some((n) => n.name === "h9"));
      expect((await rig.get(`/v1/lab/labs/${name}`)).file.includes("my work"), "the draft is not in the lab's file");
    },
  },
];
