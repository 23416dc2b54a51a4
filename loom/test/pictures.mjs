// Makes the pictures of docs/images that show Loom, on a real controller and lab:
//   node loom/test/pictures.mjs bin/weft docs/images
import { join, resolve } from "node:path";

import { Rig, sleep, until } from "./rig.mjs";
import { discovered } from "./workflows.mjs";

const rig = new Rig(resolve(process.argv[2] ?? "bin/weft"));
const folder = resolve(process.argv[3] ?? "docs/images");
const view = { viewport: { width: 1280, height: 720 } };

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void rig.down().finally(() => process.exit(130)));
try {
  await rig.up("split");
  const lab = "pictures";
  rig.labs.add(lab);
  rig.command("lab", "up", "demo", "--name", lab, "--controller", `tcp:127.0.0.1:${rig.openflow}`);
  await discovered(rig, 10, 13);
  const ping = (from, to) => rig.command("lab", "ping", "--name", lab, from, to, "-c", "1", "--timeout", "10s");
  for (let i = 2; i <= 8; i++) ping("h1", `h${i}`);
  const picture = async (page, name) => {
    await page.screenshot({ path: join(folder, name), animations: "disabled" });
    await page.context().close();
  };

  const network = await rig.page("#/network?tab=path&from=10.0.0.1&to=10.0.0.4", view);
  await network.getByRole("table", { name: /trace|hop/i }).first().waitFor();
  await sleep(2500); // rates are of two readings
  await picture(network, "loom-network.png");

  const services = await rig.page("#/services", view);
  const over = services.getByRole("img", { name: "Messages between processes" });
  await services.locator('[data-worker="southbound"]').hover();
  await over.getByText(/\/s/).first().waitFor();
  await sleep(20000); // what the beginning brought is over
  await services.getByRole("checkbox", { name: "packets on their way" }).check();
  let pair = 0; // that has not talked yet
  await until("packets on the board", async () => {
    ping(`h${2 + (pair % 3)}`, `h${5 + (Math.floor(pair++ / 3) % 4)}`);
    return (await over.locator("circle").count()) > 1;
  }, 40);
  await sleep(600);
  await picture(services, "loom-services.png");

  const design = await rig.page(`#/lab?name=${lab}`, view);
  await until("the lab", async () => Number(await design.getByTestId("canvas").getAttribute("data-nodes")) === 18);
  await sleep(2500);
  await picture(design, "loom-lab.png");
} finally {
  await rig.down();
}
