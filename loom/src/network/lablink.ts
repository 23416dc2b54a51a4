import type { LabDetails, ListLabsResponse } from "../api/types.gen";

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

/** labLinkOf asks the lab service for the link that a cable of the network is. */
export async function labLinkOf(get: <T>(path: string) => Promise<T>, cable: string): Promise<LabLinkOf | undefined> {
  for (const summary of (await get<ListLabsResponse>("v1/lab/labs")).labs ?? []) {
    const found = find(await get<LabDetails>(`v1/lab/labs/${encodeURIComponent(summary.name ?? "")}`), cable);
    if (found) return found;
  }
  return undefined;
}
