import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// Everything is served by the controller from one folder, without inline
// scripts and styles, as its Content-Security-Policy wants. For npm run dev,
// WEFT names the controller's northbound.
export default defineConfig({
  base: "./",
  plugins: [svelte()],
  build: { outDir: "built", emptyOutDir: false, assetsInlineLimit: 0, modulePreload: { polyfill: false }, chunkSizeWarningLimit: 700 },
  server: { proxy: { "/v1": { target: process.env.WEFT ?? "http://127.0.0.1:8181", ws: true } } },
  // No test fails because the machine is busy. The files share two threads, and modules.
  test: { include: ["src/**/*.test.ts"], testTimeout: 120_000, pool: "threads", isolate: false },
});
