// Checks how much browsers get, compressed: at most 600 kB in all, of which at most 300 kB before the pages
// Overview and Network are shown. Prints both; exits with 1 if one is too much.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { gzipSync } from "node:zlib";

const built = new URL("built/", import.meta.url);
const size = (file) => gzipSync(readFileSync(new URL(file, built)), { level: 9 }).length;
const sum = (files) => [...files].reduce((n, file) => n + size(file), 0);

const all = readdirSync(built, { recursive: true }).filter((f) => !f.startsWith(".") && statSync(new URL(f, built)).isFile());

const manifest = JSON.parse(readFileSync(new URL(".manifest.json", built), "utf8"));
const first = new Set(["index.html", ...all.filter((f) => f.endsWith(".woff2") || f.endsWith("theme.js"))]);
function load(part) {
  const { file, css = [], assets = [], imports = [] } = manifest[part];
  if (first.has(file)) return;
  for (const f of [file, ...css, ...assets]) first.add(f);
  imports.forEach(load);
}
["index.html", "src/pages/Overview.svelte", "src/pages/Network.svelte"].filter((part) => manifest[part]).forEach(load);

let failed = false;
for (const [what, octets, most] of [["in all", sum(all), 600_000], ["before Overview and Network are shown", sum(first), 300_000]]) {
  const over = octets > most;
  failed ||= over;
  console.log(`loom: ${octets} octets compressed ${what}${over ? `; at most ${most}: load less, or load it when it is opened` : ""}`);
}
process.exit(failed ? 1 : 0);
