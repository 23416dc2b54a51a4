// Which controllers the switches of a lab connect to: as the file says it, and as
// the switches say of a running lab.

import type { Lab, Node } from "./document";
import type { LabDetails } from "../api/types.gen";

/** otherwise is where switches connect if the file says nothing. */
const otherwise = "tcp:127.0.0.1:6653";

/** controllersOf returns the addresses of a lab's controllers. */
export const controllersOf = (lab: Lab): string[] => (lab.controllers.length > 0 ? lab.controllers : [otherwise]);

/** ruled reports whether a node connects to controllers. */
export const ruled = (n: Node): boolean => n.kind === "openflow" || n.kind === "hybrid";

/** addressProblem returns what is wrong with a controller's address; empty if nothing is. */
export function addressProblem(address: string): string {
  return /^((tcp|ssl):(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):[0-9]{1,5}|unix:\/[^\s]+|direct|none)$/.test(address) ? "" : `${JSON.stringify(address.slice(0, 80))} is no controller's address; allowed: tcp:HOST:PORT, ssl:HOST:PORT, unix:PATH, direct, none`;
}

/** unusedAddress returns an address on this machine that no controller of the lab has. */
export function unusedAddress(taken: string[]): string {
  let port = 6653;
  while (taken.includes(`tcp:127.0.0.1:${port}`)) port++;
  return `tcp:127.0.0.1:${port}`;
}

/** Session is what a switch has with a controller. */
export interface Session {
  node: string;
  controller: string;
  /** how says whether the switch's session goes over the nodes' own links. */
  how: string;
  /** state is connected, disconnected, or empty if the lab does not run. */
  state: string;
  /** role is that of the controller at the switch: master, slave or equal. */
  role: string;
}

/** sessions returns what each switch has with each controller: those of the running lab, if there is one, else of the file. */
export function sessions(lab: Lab, running: LabDetails | null): Session[] {
  const live = new Map((running?.graph?.nodes ?? []).map((n) => [n.name, n]));
  const all = running?.controllers?.length ? running.controllers : controllersOf(lab);
  return lab.nodes.filter(ruled).flatMap((n) => {
    const how = lab.at && n.kind === "hybrid" ? (n.name === lab.at ? "in band, linked here" : `in band, by ${lab.at}`) : "out of band";
    return all
      .filter((c) => c !== "none")
      .map((controller): Session => {
        const is = live.get(n.name)?.sessions?.find((s) => s.controller === controller);
        return { node: n.name, controller, how, state: is ? (is.connected ? "connected" : "disconnected") : "", role: is?.role ?? "" };
      });
  });
}
