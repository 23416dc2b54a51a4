import ChartLine from "@lucide/svelte/icons/chart-line";
import FlaskConical from "@lucide/svelte/icons/flask-conical";
import History from "@lucide/svelte/icons/history";
import House from "@lucide/svelte/icons/house";
import Network from "@lucide/svelte/icons/network";
import Boxes from "@lucide/svelte/icons/boxes";
import type { Component } from "svelte";

/** Page is one of Loom's, loaded when opened. */
export interface Page {
  id: string;
  title: string;
  icon: typeof Network;
  load: () => Promise<{ default: Component }>;
}

/** pages are those of Loom; the first is the start. */
export const pages: Page[] = [
  { id: "overview", title: "Overview", icon: House, load: () => import("../pages/Overview.svelte") },
  { id: "network", title: "Network", icon: Network, load: () => import("../pages/Network.svelte") },
  { id: "services", title: "Services", icon: Boxes, load: () => import("../pages/Services.svelte") },
  { id: "lab", title: "Lab", icon: FlaskConical, load: () => import("../pages/Lab.svelte") },
  { id: "experiments", title: "Experiments", icon: ChartLine, load: () => import("../pages/Experiments.svelte") },
  { id: "changes", title: "Changes", icon: History, load: () => import("../pages/Changes.svelte") },
];
