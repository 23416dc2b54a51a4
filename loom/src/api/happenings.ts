import { cableKey, empty, hostKey, hostName, placeText, titled, type Known, type Place } from "./known";
import type { Host, Link, LoggedEvent } from "./types.gen";

/** kinds of happenings, in the order in which they are shown. */
export const kinds = ["switches", "ports", "links", "hosts", "routes", "errors", "other"] as const;
export type Kind = (typeof kinds)[number];

/** Happening is an event as the time line shows it. */
export interface Happening {
  key: string; // one in all runs of the gateway
  at: number; // milliseconds since 1970
  subject: string;
  kind: Kind;
  text: string;
  dpid: string; // the switch that it is about; "" if it is of none
  about: Record<string, string>; // what page Network shows of it; empty: nothing
  change?: string; // what has become of it, in one word, where the event says that
  took?: number; // milliseconds that the controller took for it
}

const kindOf: Record<string, Kind> = {
  "southbound.SwitchChanged": "switches",
  "southbound.SwitchForgotten": "switches",
  "heartbeat.HeartbeatChanged": "switches",
  "southbound.PortChanged": "ports",
  "discovery.PortRoleChanged": "ports",
  "discovery.LinkChanged": "links",
  "hosts.HostChanged": "hosts",
  "hosts.HostClaimed": "errors",
  "forwarding.RouteChanged": "routes",
  "paths.PathsConverged": "routes",
  "southbound.SwitchError": "errors",
  "southbound.FloodChanged": "errors",
  "flowrules.FlowFailed": "errors",
};

const most = 160; // characters of an event that has no words of its own
const ms = (us: unknown) => `${(Number(us ?? 0) / 1000).toFixed(1)} ms`;
const count = (n: number, what: string) => `${n} ${what}${n === 1 ? "" : "s"}`;

/** happening returns what an event tells, by the names that switches have now. */
export function happening(logged: LoggedEvent, epoch: string, known = empty()): Happening {
  const subject = logged.subject ?? "";
  const event = logged.event ?? {};
  const { text, dpid = "", about = dpid ? { switch: dpid } : {} } = say(subject, event, known);
  return { key: `${epoch}/${logged.number}`, at: Date.parse(logged.time ?? "") || 0, subject, kind: kindOf[subject] ?? "other", text, dpid, about, ...changeOf(subject, event) };
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any
function changeOf(subject: string, e: any): { change?: string; took?: number } {
  switch (subject) {
    case "southbound.SwitchChanged":
      return { change: e.switch.connected ? "connected" : "gone" };
    case "discovery.LinkChanged":
      return { change: e.removed ? "down" : e.link.state };
    case "hosts.HostChanged":
      return { change: e.change };
    case "forwarding.RouteChanged":
      return { change: e.change, took: Number(e.took_us ?? 0) / 1000 };
  }
  return {};
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any
function say(subject: string, e: any, known: Known): { text: string; dpid?: string; about?: Record<string, string> } {
  const name = (dpid?: string) => titled(known, dpid);
  const at = (p?: Place) => placeText(known, p);
  switch (subject) {
    case "southbound.SwitchChanged":
      return { text: e.switch.connected ? `switch ${name(e.switch.dpid)} connected from ${e.switch.address}` : `switch ${name(e.switch.dpid)} is gone: ${e.switch.reason}`, dpid: e.switch.dpid };
    case "southbound.SwitchForgotten":
      return { text: `switch ${name(e.dpid)} is forgotten`, about: {} };
    case "heartbeat.HeartbeatChanged":
      return { text: `switch ${name(e.dpid)} ${e.state}${e.reason ? `: ${e.reason}` : ""}`, dpid: e.dpid };
    case "southbound.PortChanged":
      return { text: `port ${at(e.port)} ${e.port.name ?? ""} ${e.removed ? "removed" : e.port.up ? "up" : "down"}`, dpid: e.port.dpid };
    case "discovery.PortRoleChanged":
      return { text: `port ${at(e.port.at)} is ${e.gone ? "no more" : e.port.role}`, dpid: e.port.at?.dpid };
    case "discovery.LinkChanged": {
      const l = e.link as Link;
      return { text: `link ${at(l.src)} → ${at(l.dst)} ${e.removed ? "down" : l.state} (${e.cause})`, dpid: l.src?.dpid, about: { link: cableKey(l) } };
    }
    case "hosts.HostChanged": {
      const h = e.host as Host;
      return { text: `host ${hostName(h)} ${e.change} at ${at(h.at)}${e.from ? `, from ${at(e.from)}` : ""}`, dpid: h.at?.dpid, about: { host: hostKey(h) } };
    }
    case "hosts.HostClaimed":
      return { text: `${e.claimant} at ${at(e.at)} claims ${e.ip || "the place"} of ${e.mac}${e.holder ? ` at ${at(e.holder)}` : ""}: ${e.outcome}`, dpid: e.at?.dpid, about: { host: `${e.mac}/${e.vlan ?? 0}` } };
    case "forwarding.RouteChanged": {
      const r = e.route ?? {};
      const way = ((r.hops ?? []) as Place[]).map((h) => name(h.dpid)).join(" → ");
      return {
        text: `route ${r.src ?? ""} → ${r.dst ?? ""} ${e.change}${way && e.change !== "removed" ? ` over ${way}` : ""}${e.reason ? `: ${e.reason}` : ""}${Number(e.took_us) > 0 ? `, ${ms(e.took_us)}` : ""}`,
        dpid: r.hops?.[0]?.dpid,
        about: { tab: "path", from: r.src ?? "", to: r.dst ?? "" },
      };
    }
    case "paths.PathsConverged":
      return { text: `paths computed in ${ms(e.took_us)}: ${count((e.lost ?? []).length, "direction")} lost, ${(e.gained ?? []).length} gained${e.tree_changed ? "; the broadcast tree changed" : ""}` };
    case "southbound.SwitchError":
      return { text: `switch ${name(e.dpid)} refused ${e.cookie ? `the entry with cookie ${e.cookie}` : `message ${e.xid}`}: ${e.text}`, dpid: e.dpid };
    case "southbound.FloodChanged":
      return { text: `port ${at(e.limit)} ${e.ended ? `floods no more; ${e.limit?.shed ?? 0} packets were shed` : `floods: ${Math.round(e.limit?.offered ?? 0)} packets a second, ${Math.round(e.limit?.limit ?? 0)} let through`}`, dpid: e.limit?.dpid };
    case "southbound.FlowRemoved":
      return { text: `entry of ${e.flow?.owner || "nobody"} removed from table ${e.flow?.table ?? 0} of switch ${name(e.flow?.dpid)}: ${e.reason}`, dpid: e.flow?.dpid };
    case "flowrules.FlowsObserved":
      return { text: `switch ${name(e.dpid)} has ${(e.flows ?? []).length} entries of ${e.owner}`, dpid: e.dpid };
  }
  const { "@type": _, ...rest } = e;
  const text = JSON.stringify(rest);
  return { text: text.length > most ? text.slice(0, most) + "…" : text };
}

/** kept is how many happenings a time line keeps. */
export const kept = 10_000;

/** TimeLine keeps the last happenings, in their order. */
export class TimeLine {
  private list: Happening[] = [];
  /** added is how many were ever added. */
  added = 0;

  /** all are the happenings, the oldest first. */
  get all(): readonly Happening[] {
    return this.list;
  }

  /** add adds what has happened since. */
  add(fresh: Happening[]) {
    this.list.push(...fresh);
    this.added += fresh.length;
    if (this.list.length > 1.2 * kept) this.list.splice(0, this.list.length - kept);
  }

  /** before puts older ones before those that are there, as far as there is room. */
  before(older: Happening[]) {
    const has = new Set(this.list.map((h) => h.key));
    this.list = [...older.filter((h) => !has.has(h.key)), ...this.list].slice(-kept);
  }
}

/** Bin is a stretch of time, with how many happenings of each kind are in it. */
export interface Bin {
  from: number;
  to: number;
  counts: Partial<Record<Kind, number>>;
  total: number;
}

/** bins divides the time of happenings into at most n equal parts of whole seconds. */
export function bins(list: readonly Happening[], n: number): Bin[] {
  if (list.length === 0) return [];
  const first = Math.floor(list[0].at / 1000) * 1000;
  const last = list[list.length - 1].at;
  const step = Math.max(1000, Math.ceil((last - first + 1) / n / 1000) * 1000);
  const out: Bin[] = Array.from({ length: Math.max(1, Math.ceil((last - first + 1) / step)) }, (_, i) => ({ from: first + i * step, to: first + (i + 1) * step, counts: {}, total: 0 }));
  for (const h of list) {
    const b = out[Math.min(out.length - 1, Math.max(0, Math.floor((h.at - first) / step)))];
    b.counts[h.kind] = (b.counts[h.kind] ?? 0) + 1;
    b.total++;
  }
  return out;
}
