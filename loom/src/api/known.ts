import type { Host, Link, LoggedEvent, Port, PortRole, Switch } from "./types.gen";

/** Known is the network as events tell it. Keys are those of the events. */
export interface Known {
  switches: Map<string, Switch>; // by DPID
  ports: Map<string, Map<number, Port>>; // by DPID and number
  links: Map<string, Link>; // one direction each, by linkKey
  hosts: Map<string, Host>; // by hostKey
  roles: Map<string, PortRole>; // by place
}

export function empty(): Known {
  return { switches: new Map(), ports: new Map(), links: new Map(), hosts: new Map(), roles: new Map() };
}

export function clear(k: Known) {
  for (const m of Object.values(k) as Array<Map<unknown, unknown>>) m.clear();
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

/** short returns a DPID without its leading zeros. */
export const short = (dpid?: string) => (dpid ?? "").replace(/^0+(?=.)/, "");

/** hostName returns the address by which people know a host. */
export const hostName = (h: Host) => h.ipv4?.[0] ?? h.ipv6?.find((a) => !a.startsWith("fe80")) ?? h.mac ?? "?";

/** apply brings one event into what is known. */
export function apply(k: Known, logged: LoggedEvent) {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  const e = logged.event as any;
  if (!e) return;
  switch (logged.subject) {
    case "southbound.SwitchChanged": {
      const s = e.switch as Switch;
      k.switches.set(s.dpid!, s);
      if (e.ports?.length > 0) k.ports.set(s.dpid!, new Map((e.ports as Port[]).map((p) => [p.port!, p])));
      break;
    }
    case "southbound.SwitchForgotten":
      k.switches.delete(e.dpid);
      k.ports.delete(e.dpid);
      break;
    case "southbound.PortChanged": {
      const p = e.port as Port;
      let of = k.ports.get(p.dpid!);
      if (!of) k.ports.set(p.dpid!, (of = new Map()));
      if (e.removed) of.delete(p.port!);
      else of.set(p.port!, p);
      break;
    }
    case "discovery.LinkChanged":
      if (e.removed) k.links.delete(linkKey(e.link));
      else k.links.set(linkKey(e.link), e.link);
      break;
    case "hosts.HostChanged":
      if (e.change === "gone") k.hosts.delete(hostKey(e.host));
      else k.hosts.set(hostKey(e.host), e.host);
      break;
    case "discovery.PortRoleChanged":
      if (e.gone) k.roles.delete(place(e.port.at));
      else k.roles.set(place(e.port.at), e.port);
      break;
  }
}

/** subjectText says what an event tells, in a line. */
export function subjectText(logged: LoggedEvent): string {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  const e = logged.event as any;
  switch (logged.subject) {
    case "southbound.SwitchChanged":
      return e.switch.connected ? `switch ${short(e.switch.dpid)} connected from ${e.switch.address}` : `switch ${short(e.switch.dpid)} is gone: ${e.switch.reason}`;
    case "southbound.PortChanged":
      return `port ${short(e.port.dpid)}:${e.port.port} ${e.port.name} ${e.removed ? "removed" : e.port.up ? "up" : "down"}`;
    case "discovery.LinkChanged":
      return `link ${short(e.link.src?.dpid)}:${e.link.src?.port} → ${short(e.link.dst?.dpid)}:${e.link.dst?.port} ${e.removed ? "down" : e.link.state} (${e.cause})`;
    case "hosts.HostChanged":
      return `host ${hostName(e.host)} ${e.change} at ${short(e.host.at?.dpid)}:${e.host.at?.port}`;
    case "forwarding.RouteChanged":
      return `route ${e.route?.src ?? ""} → ${e.route?.dst ?? ""} ${e.change}${e.reason ? ": " + e.reason : ""}${Number(e.took_us) > 0 ? `, ${(Number(e.took_us) / 1000).toFixed(1)} ms` : ""}`;
  }
  const { "@type": _, ...rest } = e ?? {};
  const text = JSON.stringify(rest);
  return text.length > 160 ? text.slice(0, 160) + "…" : text;
}
