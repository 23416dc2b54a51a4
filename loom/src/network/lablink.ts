import { ApiError } from "../api/client";
import type { LabDetails, ListLabsResponse, ListSwitchesResponse } from "../api/types.gen";

/** LabLinkOf is a link of a lab. */
export interface LabLinkOf {
  lab: string;
  link: string;
  down: boolean;
}

/** find returns the link of a lab that is the cable of the network, if it is. */
export function find(lab: LabDetails, cable: string): LabLinkOf | undefined {
  const dpids = new Map((lab.graph?.nodes ?? []).map((n) => [n.name, n.dpid]));
  for (const l of lab.graph?.links ?? []) {
    const a = `${dpids.get(l.a)}:${l.a_port}`;
    const b = `${dpids.get(l.b)}:${l.b_port}`;
    if (cable === `${a}-${b}` || cable === `${b}-${a}`) return { lab: lab.name ?? "", link: l.link ?? "", down: l.state === "down" };
  }
  return undefined;
}

/** isHere reports whether a lab may be the network of this controller: no switch of it is connected that is not connected here. */
export function isHere(lab: LabDetails, connected: Set<string>): boolean {
  return (lab.graph?.nodes ?? []).every((n) => n.control !== "connected" || connected.has(n.dpid ?? ""));
}

/**
 * labLinkOf asks the lab service for the link that a cable of the network is. Labs of other
 * controllers may have switches of the same numbers: where two labs could be meant, it is none.
 */
export async function labLinkOf(get: <T>(path: string) => Promise<T>, cable: string): Promise<LabLinkOf | undefined> {
  const found: LabLinkOf[] = [];
  const { labs } = await get<ListLabsResponse>("v1/lab/labs");
  if (!labs?.length) return undefined;
  const connected = new Set(((await get<ListSwitchesResponse>("v1/switches")).switches ?? []).filter((s) => s.connected).map((s) => s.dpid ?? ""));
  for (const summary of labs) {
    const lab = await get<LabDetails>(`v1/lab/labs/${encodeURIComponent(summary.name ?? "")}`).catch((err) => {
      if (err instanceof ApiError && err.status === 404) return undefined; // it has gone since
      throw err;
    });
    const link = lab && isHere(lab, connected) ? find(lab, cable) : undefined;
    if (link) found.push(link);
  }
  if (found.length > 1) throw new Error(`labs ${found.map((l) => l.lab).join(" and ")} both have this link by its numbers: cut it on the page Lab`);
  return found[0];
}
