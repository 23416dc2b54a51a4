import type { Component } from "svelte";

/** pages are those of Loom, loaded when opened. */
export const pages: Array<{ id: string; title: string; load: () => Promise<{ default: Component }> }> = [
  { id: "network", title: "Network", load: () => import("../pages/Network.svelte") },
  { id: "services", title: "Services", load: () => import("../pages/Services.svelte") },
  { id: "lab", title: "Lab", load: () => import("../pages/Lab.svelte") },
  { id: "experiments", title: "Experiments", load: () => import("../pages/Experiments.svelte") },
  { id: "changes", title: "Changes", load: () => import("../pages/Changes.svelte") },
];
