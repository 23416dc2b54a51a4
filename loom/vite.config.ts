import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import subset from "subset-font";
import { defineConfig, type Plugin } from "vitest/config";

/** theme names the script that runs before all others with a hash of its content: browsers keep files for a year. */
const theme: Plugin = {
  name: "theme",
  transformIndexHtml: {
    order: "post",
    handler: (html) => html.replace("theme.js", "theme.js?" + createHash("sha256").update(readFileSync("public/assets/theme.js")).digest("hex").slice(0, 8)),
  },
};

/** letters are those of Latin-1 and the signs that pages write; weights those of app.css. */
const letters = [...Array(0x60).keys()].map((i) => String.fromCharCode(0x20 + i) + String.fromCharCode(0xa0 + i)).join("") + "–—…‘’“”•→←↑↓⇄≥≤";
const ascii = letters.replace(/[\u0080-\u00ff]/g, "");
const weights = { wght: { min: 400, max: 600 } };

/** fonts leaves out of the fonts what no page uses: two fifths of them; addresses and code are of ASCII. */
const fonts: Plugin = {
  name: "fonts",
  async generateBundle(_, bundle) {
    for (const part of Object.values(bundle)) {
      if (part.type !== "asset" || !part.fileName.endsWith(".woff2")) continue;
      const sans = part.fileName.includes("wght");
      part.source = await subset(Buffer.from(part.source), sans ? letters : ascii, { targetFormat: "woff2", ...(sans ? { variationAxes: weights } : {}) });
    }
  },
};

/** parts of Cytoscape that nothing here uses, and what stands in their place. */
const unused: Record<string, string> = {
  "collection/algorithms/index.mjs": 'import search from "./bfs-dfs.mjs"; export default search;',
  "extensions/layout/index.mjs": 'import grid from "./grid.mjs"; import preset from "./preset.mjs"; import none from "./null.mjs"; export default [{ name: "grid", impl: grid }, { name: "preset", impl: preset }, { name: "null", impl: none }];',
  "extensions/renderer/canvas/webgl/drawing-redraw-webgl.mjs": "export default {};",
  "define/animation.mjs": "export default {};",
  "collection/animation.mjs": "export default { animated: () => false };",
  "core/animation/index.mjs": "export default { animated: () => false, addToAnimationPool() {}, startAnimationLoop() {}, stopAnimationLoop() {} };",
  "style/string-sheet.mjs": "export default {};",
  "extensions/renderer/canvas/arrow-shapes.mjs": "export default {};",
  "extensions/renderer/base/arrow-shapes.mjs": "export default { registerArrowShapes() { const no = () => false, zero = () => 0; this.arrowShapes = { none: { name: 'none', collide: no, roughCollide: no, draw() {}, spacing: zero, gap: zero } }; } };",
};

/** plain are the functions of lodash that Cytoscape reads and writes fields of data by: here no field is in another. */
const plain: Record<string, string> = {
  "lodash/get.js": "export default (o, k) => o?.[k];",
  "lodash/set.js": "export default (o, k, v) => ((o[k] = v), o);",
  "lodash/toPath.js": "export default (k) => [k];",
};

/** named are the colours that Cytoscape knows by name beside those of numbers: those of its own defaults. */
const named = "transparent: [0, 0, 0, 0], black: [0, 0, 0], white: [255, 255, 255], gray: [128, 128, 128]";

/** small builds Cytoscape of its sources without those parts, which are a quarter of it. */
const small: Plugin = {
  name: "small",
  enforce: "pre",
  apply: "build",
  config: () => ({ resolve: { alias: { cytoscape: fileURLToPath(new URL("node_modules/cytoscape/src/index.mjs", import.meta.url)) } } }),
  resolveId: (id) => (id in plain ? "\0" + id : undefined),
  load: (id) => plain[id.slice(1)] ?? unused[id.split("/cytoscape/src/")[1]],
  transform: (code, id) => (id.endsWith("/cytoscape/src/util/colors.mjs") ? code.replace(/(export const colors = \{)[^}]*/, `$1${named}`) : undefined),
};

// Everything is served by the controller from one folder, without inline
// scripts and styles, as its Content-Security-Policy wants. For npm run dev,
// WEFT names the controller's northbound.
export default defineConfig({
  base: "./",
  plugins: [svelte(), theme, fonts, small],
  build: { target: ["chrome123", "firefox120", "safari17.5"], outDir: "built", emptyOutDir: false, assetsInlineLimit: 0, modulePreload: { polyfill: false }, chunkSizeWarningLimit: 700, manifest: ".manifest.json" },
  server: { proxy: { "/v1": { target: process.env.WEFT ?? "http://127.0.0.1:8181", ws: true } } },
  // No test fails because the machine is busy. The files share two threads, and modules.
  test: { include: ["src/**/*.test.ts"], testTimeout: 120_000, pool: "threads", isolate: false, css: { include: [/app\.css/] } },
});
