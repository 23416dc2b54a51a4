import { ApiError } from "../api/client";
import type { LabDetails, ListLabsResponse, ListSwitchesResponse, Switch } from "../api/types.gen";

/** LabLinkOf is a link of a lab. */
export interface LabLinkOf {
  lab: string;
  link: string;
  down: boolean;
}

/** find returns the link of a lab that is the cable of the network, if it is. What the controller knows is of switches that are connected. */
export function find(lab: LabDetails, cable: string): LabLinkOf | undefined {
  const dpids = new Map((lab.graph?.nodes ?? []).filter((n) => n.control !== "disconnected").map((n) => [n.name, n.dpid]));
  for (const l of lab.graph?.links ?? []) {
    const a = `${dpids.get(l.a)}:${l.a_port}`;
    const b = `${dpids.get(l.b)}:${l.b_port}`;
    if (cable === `${a}-${b}` || cable === `${b}-${a}`) return { lab: lab.name ?? "", link: l.link ?? "", down: l.state === "down" };
  }
  return undefined;
}

/** portOf returns the port of an address: of 127.0.0.1:6653, or of a controller such as tcp:HOST:6653; "" if it has none. */
const portOf = (address = "") => /(?:^|^tcp:|^ssl:)(?:\[[^\]]*\]|[^:]*):(\d+)$/.exec(address)?.[1] ?? "";

/**
 * isHere reports whether a lab may be the network of this controller: each of its switches that is connected
 * somewhere is connected here, and to the address that this controller has for it.
 */
export function isHere(lab: LabDetails, switches: Map<string, Switch>): boolean {
  const connected = (lab.graph?.nodes ?? []).filter((n) => n.control === "connected");
  return connected.every((n) => {
    const s = switches.get(n.dpid ?? "");
    const [here, there] = [portOf(s?.local), (n.sessions ?? []).filter((o) => o.connected).map((o) => portOf(o.controller))];
    return s?.connected && (!here || there.some((port) => !port || port === here) || there.length === 0);
  });
}

/** labsHere asks the lab service for the labs that may be the network of this controller. */
export async function labsHere(get: <T>(path: string) => Promise<T>): Promise<LabDetails[]> {
  const { labs } = await get<ListLabsResponse>("v1/lab/labs");
  if (!labs?.length) return [];
  const switches = new Map(((await get<ListSwitchesResponse>("v1/switches")).switches ?? []).map((s) => [s.dpid ?? "", s]));
  const out: LabDetails[] = [];
  for (const summary of labs) {
    const lab = await get<LabDetails>(`v1/lab/labs/${encodeURIComponent(summary.name ?? "")}`).catch((err) => {
      if (err instanceof ApiError && err.status === 404) return undefined; // it has gone since
      throw err;
    });
    if (lab && isHere(lab, switches)) out.push(lab);
  }
  return out;
}

/**
 * labLinkOf returns the link of one of the labs that a cable of the network is. Labs of other
 * controllers may have switches of the same numbers: where two labs could be meant, it is none.
 */
export function labLinkOf(labs: LabDetails[], cable: string): LabLinkOf | undefined {
  const found = labs.flatMap((lab) => find(lab, cable) ?? []);
  if (found.length > 1) throw new Error(`labs ${found.map((l) => l.lab).join(" and ")} both have this link by its numbers: cut it on the page Lab`);
  return found[0];
}
