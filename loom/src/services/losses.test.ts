import { expect, test } from "vitest";

import { counters, Ledger, reasons, total } from "./losses";

const text = (read: number, held: number, queue: number, process = "southbound", more = "") => `# HELP weft_deploy_packets_shed_total Packet-ins given up, by reason.
weft_southbound_packet_ins_read_total{process="${process}"} ${read}
weft_deploy_packets_shed_total{reason="held_too_long",process="hosts"} ${held}
weft_southbound_messages_shed_total{reason="queue_full",process="${process}"} ${queue}
weft_forwarding_packets_shed_total{reason="unreachable",process="forwarding"} 900
weft_southbound_shed_total{class="all",reason="port",process="${process}"} 0
weft_other_total{process="x"} 5
${more}`;

test("what is lost since is told by reason; what is refused for other reasons is no loss", () => {
  const l = new Ledger(counters(text(1000, 3, 0)));
  expect(total(l.take(counters(text(1000, 3, 0))).packets)).toBe(0);
  const now = l.take(counters(text(1500, 5, 4)));
  expect([now.read, total(now.packets), total(now.messages)]).toEqual([500, 2, 4]);
  expect([reasons(now.packets), reasons(now.messages)]).toEqual(["2 held too long", "4 queue full"]);
  const again = l.take(counters(text(1600, 5, 4)));
  expect([again.read, total(again.packets), total(again.messages)]).toEqual([600, 2, 4]);
});

test("a process that has taken the place of another counts anew, and one that is silent for once is not new", () => {
  const l = new Ledger(counters(text(1000, 3, 0)));
  l.take(counters(text(1100, 3, 2)));
  expect(l.take(counters(text(20, 1, 1))).read).toBe(120);
  l.take(counters("")); // no process answers
  const now = l.take(counters(text(20, 1, 1)));
  expect([now.read, total(now.packets), total(now.messages)]).toEqual([120, 1, 3]);
  expect(l.take(counters(text(7, 1, 0, "east"))).read).toBe(127); // of another name
});

test("floods that are shed on arrival are lost, too, and classes are summed up", () => {
  const l = new Ledger(counters(text(0, 0, 0)));
  const more = ["unicast", "multicast"].map((c) => `weft_southbound_shed_total{class="${c}",reason="port",process="southbound"} 4`).join("\n");
  expect([...l.take(counters(text(0, 0, 0, "southbound", more))).packets]).toEqual([["port", 8]]);
});
