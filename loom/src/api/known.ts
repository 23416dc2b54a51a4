import type { Host, Link, LoggedEvent, Port, PortRole, Switch } from "./types.gen";

/** Segment is a virtual network, as SegmentChanged tells of it. */
export interface Segment {
  vlan: number; // of its frames
  tenant: string;
  network: string;
}

/** GoneLink is a direction of a link that was there, and may come again. */
export interface GoneLink {
  link: Link;
  at: number; // milliseconds since 1970
  cause: string;
}

/** Known is the network as events tell it. Keys are those of the events. */
export interface Known {
  switches: Map<string, Switch>; // by DPID
  ports: Map<string, Map<number, Port>>; // by DPID and number
  links: Map<string, Link>; // one direction each, by linkKey
  gone: Map<string, GoneLink>; // likewise; what has nothing in its place
  hosts: Map<string, Host>; // by hostKey
  roles: Map<string, PortRole>; // by place
  segments: Map<number, Segment>; // virtual networks, by the VLAN of their frames
  names: Map<string, string>; // of switches, as the controller takes them in requests, by DPID
}

export function empty(): Known {
  return { switches: new Map(), ports: new Map(), links: new Map(), gone: new Map(), hosts: new Map(), roles: new Map(), segments: new Map(), names: new Map() };
}

/** clear drops all that events tell; names are read apart, and stay. */
export function clear(k: Known) {
  for (const m of Object.values(k) as Array<Map<unknown, unknown>>) if (m !== k.names) m.clear();
}

export interface Place {
  dpid?: string;
  port?: number;
}

export const place = (p?: Place) => `${p?.dpid ?? "?"}:${p?.port ?? 0}`;
export const linkKey = (l: Link) => `${place(l.src)}-${place(l.dst)}`;
export const hostKey = (h: Host) => `${h.mac}/${h.vlan ?? 0}`;

/** cableKey names both directions of a link. */
export function cableKey(l: Link): string {
  const [a, b] = [place(l.src), place(l.dst)];
  return a < b ? `${a}-${b}` : `${b}-${a}`;
}

/** cableEnds returns the places of a link's two ends. */
export const cableEnds = (cable: string) => cable.split("-") as [string, string];

/** short returns a DPID without its leading zeros. */
export const short = (dpid?: string) => (dpid ?? "").replace(/^0+(?=.)/, "");

/** nameOf returns what whoever runs a switch has called it, "" if nothing. */
export const nameOf = (s: Switch) => (s.description && s.description !== "None" ? s.description : "");

/** called returns what people call a switch: by the name that the controller takes for it, else as it calls itself, with its
 * number if others do so, too; "" if it has no name. */
export function called(k: Known, dpid = ""): string {
  const own = k.names.get(dpid);
  if (own) return own;
  const s = k.switches.get(dpid);
  const name = s ? nameOf(s) : "";
  if (!name) return "";
  for (const other of k.switches.values()) if (other.dpid !== dpid && nameOf(other) === name) return `${name} (${short(dpid)})`;
  return name;
}

/** calledAll returns what each switch is called, or its number. */
export function calledAll(k: Known): Map<string, string> {
  const many = new Map<string, number>();
  for (const s of k.switches.values()) many.set(nameOf(s), (many.get(nameOf(s)) ?? 0) + 1);
  return new Map([...k.switches].map(([dpid, s]) => [dpid, k.names.get(dpid) ?? (!nameOf(s) ? short(dpid) : many.get(nameOf(s)) === 1 ? nameOf(s) : `${nameOf(s)} (${short(dpid)})`)]));
}

/** titled returns what a switch is called, or its number. */
export const titled = (k: Known, dpid?: string) => called(k, dpid) || short(dpid);

/** placeText returns a port with what its switch is called. */
export const placeText = (k: Known, p?: Place) => `${titled(k, p?.dpid)}:${portText(p?.port)}`;

/** cableText names a link by its two ports. */
export const cableText = (k: Known, cable: string) =>
  cableEnds(cable)
    .map((end) => placeText(k, { dpid: end.split(":")[0], port: Number(end.split(":")[1]) }))
    .join(" – ");

/** portText writes the number of a port, or the name of one that is reserved. */
export const portText = (port?: number) => (port === 0xfffffffe ? "LOCAL" : String(port ?? ""));

/** hostName returns the address by which people know a host. */
export const hostName = (h: Host) => h.ipv4?.[0] ?? h.ipv6?.find((a) => !a.startsWith("fe80")) ?? h.mac ?? "?";

/** hostNames returns how each host is asked for: by its name, or by its Ethernet address
 * where several have that name, as in virtual networks. */
export function hostNames(k: Known): Map<string, string> {
  const many = new Map<string, number>();
  for (const h of k.hosts.values()) many.set(hostName(h), (many.get(hostName(h)) ?? 0) + 1);
  return new Map([...k.hosts].map(([key, h]) => [key, many.get(hostName(h)) === 1 ? hostName(h) : h.mac!]));
}

const keptGone = 10 * 60_000; // how long a link that is gone is shown, milliseconds

/** apply brings one event into what is known. */
export function apply(k: Known, logged: LoggedEvent) {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  const e = logged.event as any;
  if (!e) return;
  switch (logged.subject) {
    case "southbound.SwitchChanged": {
      const s = e.switch as Switch;
      k.switches.set(s.dpid!, s);
      if (s.connected) {
        k.ports.set(s.dpid!, new Map(((e.ports ?? []) as Port[]).map((p) => [p.port!, p])));
        forget(k, (at) => at?.dpid === s.dpid && !k.ports.get(s.dpid!)!.has(at?.port ?? 0));
      }
      break;
    }
    case "southbound.SwitchForgotten":
      k.switches.delete(e.dpid);
      k.ports.delete(e.dpid);
      forget(k, (at) => at?.dpid === e.dpid);
      break;
    case "southbound.PortChanged": {
      const p = e.port as Port;
      let of = k.ports.get(p.dpid!);
      if (!of) k.ports.set(p.dpid!, (of = new Map()));
      if (e.removed) {
        of.delete(p.port!);
        forget(k, (at) => place(at) === place(p));
      } else of.set(p.port!, p);
      break;
    }
    case "discovery.LinkChanged": {
      const l = e.link as Link;
      if (e.removed) {
        k.links.delete(linkKey(l));
        k.gone.set(linkKey(l), { link: l, at: Date.parse(logged.time ?? "") || Date.now(), cause: e.cause ?? "" });
      } else {
        k.links.set(linkKey(l), l);
        const ends = [place(l.src), place(l.dst)];
        forget(k, (at) => ends.includes(place(at)), cableKey(l));
        k.gone.delete(linkKey(l));
      }
      break;
    }
    case "hosts.HostChanged":
      if (e.change === "gone") k.hosts.delete(hostKey(e.host));
      else k.hosts.set(hostKey(e.host), e.host);
      break;
    case "discovery.PortRoleChanged":
      if (e.gone) k.roles.delete(place(e.port.at));
      else k.roles.set(place(e.port.at), e.port);
      if (e.port.role === "edge") forget(k, (at) => place(at) === place(e.port.at));
      break;
    case "tenants.SegmentChanged":
      if (e.removed) k.segments.delete(e.segment.vlan);
      else k.segments.set(e.segment.vlan, e.segment);
      break;
  }
}

/** forget drops links that are gone and have an end that is no place for them any more,
 * but for one cable. */
function forget(k: Known, no: (at?: Place) => boolean, but = "") {
  for (const [key, g] of k.gone) if ((no(g.link.src) || no(g.link.dst)) && cableKey(g.link) !== but) k.gone.delete(key);
}

/** prune drops links that are gone for long, and reports whether there were any. */
export function prune(k: Known, now: number): boolean {
  let any = false;
  for (const [key, g] of k.gone) {
    if (now - g.at < keptGone) continue;
    k.gone.delete(key);
    any = true;
  }
  return any;
}
