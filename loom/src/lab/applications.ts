// What is carried by frames, UDP and TCP in these networks, in words.

import { Cursor, ip4, ip6, mac, text } from "./cursor";
import { add, type Packet } from "./packet";

const messages = ["HELLO", "ERROR", "ECHO_REQUEST", "ECHO_REPLY", "EXPERIMENTER", "FEATURES_REQUEST", "FEATURES_REPLY", "GET_CONFIG_REQUEST", "GET_CONFIG_REPLY", "SET_CONFIG", "PACKET_IN", "FLOW_REMOVED", "PORT_STATUS", "PACKET_OUT", "FLOW_MOD", "GROUP_MOD", "PORT_MOD", "TABLE_MOD", "MULTIPART_REQUEST", "MULTIPART_REPLY", "BARRIER_REQUEST", "BARRIER_REPLY", "QUEUE_GET_CONFIG_REQUEST", "QUEUE_GET_CONFIG_REPLY", "ROLE_REQUEST", "ROLE_REPLY", "GET_ASYNC_REQUEST", "GET_ASYNC_REPLY", "SET_ASYNC", "METER_MOD"];
const messages10 = [...messages.slice(0, 15), "PORT_MOD", "STATS_REQUEST", "STATS_REPLY", "BARRIER_REQUEST", "BARRIER_REPLY"];
const usual = [6653, 6633, 16653];

/** openflow reads messages of OpenFlow; false if these are none. Of other ports than the usual ones they fill the segment. */
export function openflow(c: Cursor, from: number, to: number, out: Packet): boolean {
  const known = usual.includes(from) || usual.includes(to);
  const found: Array<{ name: string; fields: Record<string, string | number> }> = [];
  const begin = c.at;
  while (c.left >= 8 && found.length < 32) {
    const at = c.at;
    const [version, type, length, xid] = [c.u8(), c.u8(), c.u16(), c.u32()];
    if (version < 1 || version > 6 || length < 8 || (!known && (version === 1 ? messages10 : messages)[type] === undefined)) {
      c.at = at;
      break;
    }
    const name = (version === 1 ? messages10 : messages)[type] ?? `type ${type}`;
    found.push({ name, fields: { Version: version === 1 ? "1.0" : `1.${version - 1}`, Length: length, "Transaction id": xid } });
    c.at = at + length;
  }
  if (found.length === 0 || (!known && c.left !== 0)) {
    c.at = begin;
    return false;
  }
  out.protocol = "OpenFlow";
  out.info = `${found.slice(0, 8).map((m) => m.name).join(", ")} (${from} → ${to})`;
  for (const m of found.slice(0, 8)) add(out, `OpenFlow ${m.name}`, m.fields);
  return true;
}

/** http reads the first line of a request or an answer, or that HTTP/2 begins. */
export function http(c: Cursor, out: Packet) {
  const begin = new TextDecoder("latin1").decode(c.data.subarray(c.at, c.at + 200));
  const line = /^((?:GET|POST|PUT|DELETE|PATCH|HEAD|OPTIONS|CONNECT) \S+ HTTP\/1\.[01]|HTTP\/1\.[01] [0-9]{3}[^\r\n]*)/.exec(begin)?.[1];
  if (line) {
    [out.protocol, out.info] = ["HTTP", text(new TextEncoder().encode(line))];
    add(out, "HTTP", { "First line": out.info });
  } else if (begin.startsWith("PRI * HTTP/2.0")) {
    out.protocol = "HTTP/2";
    out.info = `begins (${out.info})`;
    add(out, "HTTP/2", { "Connection preface": "PRI * HTTP/2.0" });
  }
}

export function lldp(c: Cursor, out: Packet) {
  out.protocol = "LLDP";
  const fields: Record<string, string | number> = {};
  const parts: string[] = [];
  for (let n = 0; c.left >= 2 && n < 30; n++) {
    const head = c.u16();
    const [type, value] = [head >> 9, c.take(head & 511)];
    if (type === 0) break;
    const id = (mark: number) => (value[0] === mark ? mac(value.subarray(1)) : text(value.subarray(1)));
    if (type === 1) parts.push(`chassis ${(fields.Chassis = id(4))}`);
    else if (type === 2) parts.push(`port ${(fields.Port = id(3))}`);
    else if (type === 3) fields.TTL = (value[0] << 8) | value[1];
    else if (type === 5) parts.push(`name ${(fields.Name = text(value))}`);
    else if (type === 6) fields.Description = text(value);
  }
  out.info = parts.join(", ");
  add(out, "LLDP", fields);
}

const recordTypes: Record<number, string> = { 1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 33: "SRV", 65: "HTTPS" };

export function dns(c: Cursor, out: Packet) {
  out.protocol = "DNS";
  if (c.left < 12) return;
  const [id, flags, questions, answers] = [c.u16(), c.u16(), c.u16(), c.u16()];
  c.take(4);
  const labels: string[] = [];
  for (let n = questions > 0 ? c.u8() : 0; n > 0 && n < 64 && labels.length < 32; n = c.u8()) labels.push(text(c.take(n)));
  const name = labels.join(".") || ".";
  const type = questions > 0 ? c.u16() : 0;
  const asked = questions > 0 ? `${recordTypes[type] ?? `type ${type}`} ${name}` : "";
  const code = flags & 15;
  out.info = flags & 0x8000 ? `answer${code ? ` ${["", "format error", "server failure", "no such name", "not implemented", "refused"][code] ?? `code ${code}`}` : `, ${answers} records`} for ${asked}` : `asks for ${asked}`;
  add(out, "DNS", { Identification: id, Kind: flags & 0x8000 ? "answer" : "question", Question: asked, Answers: answers, Code: code });
}

const dhcpTypes = ["", "discover", "offer", "request", "decline", "acknowledge", "refuse", "release", "inform"];

export function dhcp(c: Cursor, out: Packet) {
  out.protocol = "DHCP";
  if (c.left < 240) return;
  const at = c.at;
  c.at = at + 4;
  const xid = c.u32();
  c.at = at + 16;
  const yours = ip4(c.take(4));
  c.at = at + 28;
  const client = mac(c.take(6));
  c.at = at + 240;
  let type = 0;
  for (let option = c.u8(); option !== 255 && !type; option = c.u8()) {
    if (option === 0) continue;
    const value = c.take(c.u8());
    if (option === 53) type = value[0];
  }
  out.info = `${dhcpTypes[type] ?? `type ${type}`} of ${client}${yours === "0.0.0.0" ? "" : `: ${yours}`}`;
  add(out, "DHCP", { Type: dhcpTypes[type] ?? type, "Client's address": client, "Your address": yours, "Transaction id": xid });
}

export function bfd(c: Cursor, out: Packet) {
  out.protocol = "BFD";
  if (c.left < 24) return;
  const [first, flags, multiplier] = [c.u8(), c.u8(), c.u8()];
  c.take(1);
  const [mine, yours, transmit, receive] = [c.u32(), c.u32(), c.u32(), c.u32()];
  const state = ["admin down", "down", "init", "up"][flags >> 6];
  out.info = `${state}${first & 31 ? `, diagnostic ${first & 31}` : ""}, every ${transmit / 1000} ms × ${multiplier}`;
  add(out, "BFD", { State: state, Diagnostic: first & 31, Multiplier: multiplier, "My discriminator": mine, "Your discriminator": yours, "Transmits every": `${transmit / 1000} ms`, "Receives every": `${receive / 1000} ms` });
}

/** ospf reads OSPF of both versions. */
export function ospf(c: Cursor, out: Packet) {
  out.protocol = "OSPF";
  out.info = `${c.left} octets`;
  if (c.left < 16) return;
  const [version, type, length] = [c.u8(), c.u8(), c.u16()];
  const [router, area] = [ip4(c.take(4)), ip4(c.take(4))];
  const name = ["", "hello", "database description", "link state request", "link state update", "link state acknowledgement"][type] || `type ${type}`;
  out.info = `${name} of ${router}, area ${area}`;
  add(out, version === 3 ? "OSPFv3" : "OSPF", { Type: name, Router: router, Area: area, Length: length });
}

/** gtp reads the header of GTP-U, and the packet in it. */
export function gtp(c: Cursor, out: Packet) {
  out.protocol = "GTP";
  if (c.left < 8) return;
  const [flags, type, length, tunnel] = [c.u8(), c.u8(), c.u16(), c.u32()];
  add(out, "GTP-U", { Type: type === 255 ? "user data" : type, "Tunnel id": tunnel, Length: length });
  out.info = `tunnel ${tunnel}, ${type === 255 ? "user data" : `type ${type}`}`;
  if (type !== 255) return;
  if (flags & 7) c.take(4);
  const version = c.left > 20 ? c.data[c.at] >> 4 : 0;
  if (version !== 4 && version !== 6) return;
  const at = c.at;
  const [from, to] = version === 4 ? [ip4(c.data.subarray(at + 12, at + 16)), ip4(c.data.subarray(at + 16, at + 20))] : [ip6(c.data.subarray(at + 8, at + 24)), ip6(c.data.subarray(at + 24, at + 40))];
  out.info += ` from ${from} to ${to}`;
}
