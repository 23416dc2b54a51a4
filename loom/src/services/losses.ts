/** Losses are what the processes of the controller have counted: packet-ins that were read, and what was
 * given up, by reason. */
export interface Losses {
  read: number;
  packets: Map<string, number>; // packet-ins given up
  messages: Map<string, number>; // messages to switches that were not sent
}

type Counters = Map<string, number>; // by metric, reason and process

const read = "weft_southbound_packet_ins_read_total";
// What is refused for other reasons, such as that no path leads there, is not lost.
const lost: Record<string, { what: "packets" | "messages"; only?: string[] }> = {
  weft_deploy_packets_shed_total: { what: "packets" },
  weft_southbound_packet_ins_lost_total: { what: "packets" },
  weft_southbound_shed_total: { what: "packets" },
  weft_forwarding_packets_shed_total: { what: "packets", only: ["held_too_long", "path_queue_full", "path_too_late", "routes_full"] },
  weft_southbound_messages_shed_total: { what: "messages" },
};

const line = /^(\w+)\{([^}]*)\} (\S+)$/;

/** counters reads what counts here of the text that /metrics answers. */
export function counters(text: string): Counters {
  const out: Counters = new Map();
  for (const l of text.split("\n")) {
    if (!l.startsWith("weft_")) continue;
    const [, name, labels, value] = line.exec(l) ?? [];
    if (!name || (name !== read && !lost[name])) continue;
    const label = (key: string) => new RegExp(`(?:^|,)${key}="([^"]*)"`).exec(labels)?.[1] ?? "";
    const reason = label("reason");
    if (lost[name]?.only && !lost[name].only.includes(reason)) continue;
    const key = `${name} ${reason} ${label("process")}`;
    out.set(key, (out.get(key) ?? 0) + Number(value));
  }
  return out;
}

/**
 * Ledger sums up what was counted since it began, over processes that end and start: a counter
 * that is less than before, or new, is that of another process. What a process counted
 * after it was read last, and before it ended, is not in it.
 */
export class Ledger {
  private last: Counters;
  private sums: Counters = new Map();

  constructor(first: Counters) {
    this.last = first;
  }

  /** take takes what was read now. */
  take(now: Counters): Losses {
    for (const [key, n] of now) {
      const before = this.last.get(key) ?? 0;
      const more = n >= before ? n - before : n;
      if (more > 0) this.sums.set(key, (this.sums.get(key) ?? 0) + more);
    }
    this.last = new Map([...this.last, ...now]); // one that did not answer this time may the next
    const out: Losses = { read: 0, packets: new Map(), messages: new Map() };
    for (const [key, n] of this.sums) {
      const [name, reason] = key.split(" ");
      if (name === read) out.read += n;
      else out[lost[name].what].set(reason, (out[lost[name].what].get(reason) ?? 0) + n);
    }
    return out;
  }
}

/** total sums up what was lost for all reasons. */
export const total = (of: Map<string, number>) => [...of.values()].reduce((sum, n) => sum + n, 0);

/** reasons says how many there were of each reason. */
export const reasons = (of: Map<string, number>) => [...of].map(([reason, n]) => `${n} ${reason.replaceAll("_", " ")}`).join(", ");
