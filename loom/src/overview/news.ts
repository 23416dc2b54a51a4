// What has happened, in a few sentences: events that belong together are one.

import { portText, type Known } from "../api/known";
import type { Happening } from "../api/happenings";
import { write } from "../ui/route";
import { linkText, switchText } from "./health";

export type Sign = "switch" | "host" | "plug" | "cut" | "route" | "error";

/** News is something that has happened. */
export interface News {
  key: string;
  at: number; // milliseconds since 1970, of its last event
  sign: Sign;
  mood: "good" | "warn" | "bad" | "dim";
  head: string;
  words: string;
  href: string;
}

interface Group {
  subject: string;
  change: string;
  first: Happening;
  last: number;
  about: Map<string, Happening>; // each thing once
  moved: number; // routes that moved as a link went down
  slowest: number; // milliseconds
}

const near = 5000; // milliseconds between events that belong together
const swift = 3000; // and between the end of a link and the routes that move for it

const told: Record<string, Set<string>> = {
  "southbound.SwitchChanged": new Set(["connected", "gone"]),
  "discovery.LinkChanged": new Set(["down", "up"]),
  "hosts.HostChanged": new Set(["learnt", "moved", "gone"]),
  "forwarding.RouteChanged": new Set(["rerouted", "failed"]),
};

const id = (h: Happening) => h.about.link ?? h.about.host ?? (h.about.from ? `${h.about.from} ${h.about.to}` : h.dpid || h.key);

/** news returns what has happened last, at most some; happenings come oldest first. */
export function news(all: readonly Happening[], known: Known, most: number): News[] {
  const groups: Group[] = [];
  for (const h of all) {
    const change = h.kind === "errors" ? "error" : (h.change ?? "");
    if (h.kind !== "errors" && !told[h.subject]?.has(change)) continue;
    if (h.subject === "forwarding.RouteChanged" && change === "rerouted") {
      const cut = groups.findLast((g) => g.subject === "discovery.LinkChanged" && g.change === "down");
      if (cut && h.at - cut.last <= swift) {
        cut.moved++;
        cut.slowest = Math.max(cut.slowest, h.took ?? 0);
        continue;
      }
    }
    const same = groups.findLast((g) => g.subject === h.subject && g.change === change);
    if (same && h.at - same.last <= near) {
      same.last = h.at;
      same.about.set(id(h), h);
    } else groups.push({ subject: h.subject, change, first: h, last: h.at, about: new Map([[id(h), h]]), moved: 0, slowest: 0 });
  }
  return groups
    .sort((a, b) => b.last - a.last)
    .slice(0, most)
    .map((g) => say(g, known));
}

const few = 4; // names that are listed

function names(list: string[]): string {
  return list.length > few + 1 ? `${list.slice(0, few).join(", ")} and ${list.length - few} more` : list.join(", ");
}

function say(g: Group, known: Known): News {
  const things = [...g.about.values()];
  const [h] = things;
  const n = things.length;
  const one = { key: g.first.key, at: g.last, href: n === 1 && Object.keys(h.about).length > 0 ? write("network", h.about) : write("network", { tab: "events" }) };
  const links = () => names(things.map((t) => linkText(known, t.about.link)));
  const hosts = () => things.map((t) => known.hosts.get(t.about.host));
  switch (`${g.subject} ${g.change}`) {
    case "southbound.SwitchChanged connected":
    case "southbound.SwitchChanged gone": {
      const gone = g.change === "gone";
      const all = things.map((t) => switchText(known, t.dpid)).sort(new Intl.Collator("en", { numeric: true }).compare);
      const does = gone ? (n === 1 ? "is gone" : "are gone") : "connected";
      const reason = gone && n === 1 ? (known.switches.get(h.dpid)?.reason ?? "") : "";
      return { ...one, sign: "switch", mood: gone ? "bad" : "good", head: n === 1 ? `${sentence(all[0])} ${does}` : `${n} switches ${does}`, words: n === 1 ? reason : names(all) };
    }
    case "discovery.LinkChanged down": {
      const moved = g.moved > 0 ? `${g.moved} ${g.moved === 1 ? "route" : "routes"} moved in ${g.slowest.toFixed(1)} ms.` : "";
      return { ...one, sign: "cut", mood: "bad", head: n === 1 ? `Link ${links()} went down` : `${n} links went down`, words: [moved, n > 1 ? links() : ""].filter(Boolean).join(" ") };
    }
    case "discovery.LinkChanged up":
      return { ...one, sign: "plug", mood: "good", head: n === 1 ? `Link ${links()} is up` : `${n} links are up`, words: n > 1 ? links() : "" };
    case "forwarding.RouteChanged rerouted":
      return { ...one, sign: "route", mood: "dim", head: n === 1 ? "A route moved" : `${n} routes moved`, words: n === 1 ? `${h.about.from} to ${h.about.to}` : "" };
    case "forwarding.RouteChanged failed":
      return { ...one, sign: "route", mood: "bad", head: n === 1 ? "A route could not be made" : `${n} routes could not be made`, words: n === 1 ? h.text : "" };
  }
  if (g.subject === "hosts.HostChanged") {
    const does = { learnt: "appeared", moved: "moved", gone: n === 1 ? "is gone" : "are gone" }[g.change] ?? g.change;
    const at = hosts()[0]?.at;
    const called = things.map((t, i) => hosts()[i]?.ipv4?.[0] ?? t.about.host.split("/")[0]);
    return { ...one, sign: "host", mood: "dim", head: n === 1 ? `Host ${called[0]} ${does}` : `${n} hosts ${does}`, words: n > 1 ? names(called) : at && g.change !== "gone" ? `At ${switchText(known, at.dpid)}, port ${portText(at.port)}` : "" };
  }
  return { ...one, sign: "error", mood: "bad", head: n === 1 ? "An error" : `${n} errors`, words: h.text };
}

const sentence = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1);
