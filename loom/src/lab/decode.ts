// Says in words what the headers of a packet are, one after the other.

import { bfd, dhcp, dns, gtp, http, lldp, openflow, ospf } from "./applications";
import { Cursor, ip4, ip6, mac } from "./cursor";
import { add, type Decoded, type Packet } from "./packet";

const icmp: Record<number, string> = { 0: "echo reply", 3: "unreachable", 5: "redirect", 8: "echo request", 11: "time exceeded" };
const icmp6: Record<number, string> = { 1: "unreachable", 2: "packet too big", 3: "time exceeded", 128: "echo request", 129: "echo reply", 133: "router solicitation", 134: "router advertisement", 135: "neighbour solicitation", 136: "neighbour advertisement", 143: "multicast listener report" };
const protocols: Record<number, string> = { 1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 47: "GRE", 58: "ICMPv6", 89: "OSPF", 112: "VRRP", 132: "SCTP" };
const types: Record<number, string> = { 0x0800: "IPv4", 0x0806: "ARP", 0x86dd: "IPv6", 0x8100: "802.1Q", 0x88a8: "802.1ad", 0x8847: "MPLS", 0x8848: "MPLS multicast", 0x88cc: "LLDP", 0x8942: "BDDP", 0x8809: "LACP", 0x6558: "Ethernet" };
const hex = (n: number, digits = 4) => `0x${n.toString(16).padStart(digits, "0")}`;
const typeName = (type: number) => `${hex(type)}${types[type] ? ` ${types[type]}` : ""}`;

/** decode says what a packet of a link type (1 Ethernet, 113 and 276 Linux cooked) is. */
export function decode(data: Uint8Array, link = 1): Decoded {
  const out: Packet = { src: "", dst: "", protocol: "", info: "", layers: [], within: [], deep: 0 };
  try {
    const c = new Cursor(data);
    if (link === 113 || link === 276) {
      const at = link === 113 ? 6 : 12;
      out.src = mac(data.subarray(at, at + 6));
      c.at = link === 113 ? 14 : 0;
      const type = c.u16();
      c.at = link === 113 ? 16 : 20;
      add(out, "Linux cooked capture", { From: out.src, Type: typeName(type) });
      network(c, type, out);
    } else if (link === 1) ethernet(c, out);
    else [out.protocol, out.info] = [`link type ${link}`, `${data.length} octets`];
  } catch (err) {
    if (!(err instanceof RangeError)) throw err;
    out.info = `${out.info} [cut short]`.trim();
  }
  if (out.within.length > 0) out.info = `${out.within.join(", ")}: ${out.info}`;
  return { src: out.src, dst: out.dst, protocol: out.protocol, info: out.info, layers: out.layers };
}

function ethernet(c: Cursor, out: Packet) {
  [out.dst, out.src] = [mac(c.take(6)), mac(c.take(6))];
  const type = c.u16();
  add(out, "Ethernet", { To: out.dst, From: out.src, [type < 0x600 ? "Length" : "Type"]: type < 0x600 ? type : typeName(type) });
  network(c, type, out);
}

function network(c: Cursor, type: number, out: Packet): void {
  switch (type) {
    case 0x8100:
    case 0x88a8: {
      if (out.within.length >= 12) throw new RangeError("too many tags");
      const tag = c.u16();
      const next = c.u16();
      out.within.push(`VLAN ${tag & 0xfff}`);
      add(out, type === 0x8100 ? "802.1Q" : "802.1ad", { VLAN: tag & 0xfff, Priority: tag >> 13, Type: typeName(next) });
      return network(c, next, out);
    }
    case 0x0800:
      return ipv4(c, out);
    case 0x86dd:
      return ipv6(c, out);
    case 0x0806:
      return arp(c, out);
    case 0x8847:
    case 0x8848:
      return mpls(c, out);
    case 0x88cc:
      return lldp(c, out);
    case 0x6558:
      return inner(c, out);
  }
  if (type < 0x600) [out.protocol, out.info] = ["802.3", `length ${type}`];
  else [out.protocol, out.info] = [types[type] ?? hex(type), `${c.left} octets`];
}

/** inner decodes a frame in a tunnel. */
function inner(c: Cursor, out: Packet) {
  if (++out.deep > 4) return;
  ethernet(c, out);
}

function mpls(c: Cursor, out: Packet) {
  const labels: number[] = [];
  for (let word = 0; (word & 0x100) === 0 && labels.length < 8; ) {
    word = c.u32();
    labels.push(word >>> 12);
    add(out, "MPLS", { Label: word >>> 12, "Traffic class": (word >> 9) & 7, "Bottom of stack": word & 0x100 ? "yes" : "no", TTL: word & 255 });
  }
  const said = `labels ${labels.join(", ")}`;
  [out.protocol, out.info] = ["MPLS", said];
  // Labels do not say what is behind them: a packet of IP that is as long as it says, else a frame, with a control word or without.
  const from = c.at;
  const at = (n: number) => (from + n < c.data.length ? c.data[from + n] : -1);
  const known = (n: number) => types[(at(n) << 8) | at(n + 1)] !== undefined;
  let then: (() => void) | undefined;
  if (c.left >= 20 && at(0) >> 4 === 4 && (at(0) & 15) >= 5 && ((at(2) << 8) | at(3)) <= c.left && !known(12)) then = () => ipv4(c, out);
  else if (c.left >= 40 && at(0) >> 4 === 6 && ((at(4) << 8) | at(5)) + 40 <= c.left && protocols[at(6)] && !known(12)) then = () => ipv6(c, out);
  else if (known(12)) then = () => inner(c, out);
  else if (at(0) >> 4 === 0 && known(16)) {
    then = () => {
      add(out, "Control word", { Sequence: c.u32() & 0xffff });
      inner(c, out);
    };
  }
  if (!then && c.left >= 4 && at(0) >> 4 === 1) {
    const channel = hex(c.u32() & 0xffff);
    add(out, "Associated channel", { Type: channel });
    out.info = `${said}, associated channel ${channel}`;
  }
  if (!then) return;
  out.within.push(said);
  out.info = "";
  then();
}

function arp(c: Cursor, out: Packet) {
  out.protocol = "ARP";
  c.take(6);
  const op = c.u16();
  const sender = mac(c.take(6));
  const from = ip4(c.take(4));
  const target = mac(c.take(6));
  const to = ip4(c.take(4));
  out.info = op === 1 ? `who has ${to}? ${from} asks` : op === 2 ? `${from} is at ${sender}` : `operation ${op}`;
  add(out, "ARP", { Operation: op === 1 ? "request" : op === 2 ? "reply" : op, "Sender's address": sender, Sender: from, "Target's address": target, Target: to });
}

function ipv4(c: Cursor, out: Packet) {
  out.protocol = "IPv4";
  const begin = c.at;
  const header = (c.u8() & 15) * 4;
  const tos = c.u8();
  const length = c.u16();
  const id = c.u16();
  const fragment = c.u16();
  const ttl = c.u8();
  const protocol = c.u8();
  c.take(2);
  [out.src, out.dst] = [ip4(c.take(4)), ip4(c.take(4))];
  add(out, "IPv4", { From: out.src, To: out.dst, Protocol: `${protocol}${protocols[protocol] ? ` ${protocols[protocol]}` : ""}`, TTL: ttl, DSCP: tos >> 2, ECN: tos & 3, Length: length, Identification: hex(id), Flags: [fragment & 0x4000 ? "do not fragment" : "", fragment & 0x2000 ? "more fragments" : ""].filter(Boolean).join(", ") || "none" });
  if (header < 20 || length < header) out.info = "malformed header";
  else if (fragment & 0x1fff) out.info = `fragment at ${(fragment & 0x1fff) * 8}`;
  else {
    // What stands behind the packet only fills the frame.
    const rest = c.upTo(begin + length);
    rest.at = begin + header;
    transport(rest, protocol, out, `TTL ${ttl}`);
  }
}

function ipv6(c: Cursor, out: Packet) {
  out.protocol = "IPv6";
  const first = c.u32();
  const length = c.u16();
  let next = c.u8();
  const hops = c.u8();
  [out.src, out.dst] = [ip6(c.take(16)), ip6(c.take(16))];
  add(out, "IPv6", { From: out.src, To: out.dst, "Next header": `${next}${protocols[next] ? ` ${protocols[next]}` : ""}`, "Hop limit": hops, "Traffic class": (first >>> 20) & 255, "Flow label": hex(first & 0xfffff, 5), Length: length });
  c = c.upTo(c.at + length);
  for (let n = 0; n < 8 && (next === 0 || next === 43 || next === 60 || next === 44); n++) {
    const here = next;
    next = c.u8();
    const more = c.u8();
    const fragment = here === 44 && c.u16() >> 3;
    if (fragment) {
      out.info = `fragment at ${fragment * 8}`;
      return;
    }
    c.take(here === 44 ? 4 : 6 + more * 8);
  }
  transport(c, next, out, `hop limit ${hops}`);
}

function transport(c: Cursor, protocol: number, out: Packet, hops: string) {
  switch (protocol) {
    case 1:
    case 58:
      return control(c, protocol, out, hops);
    case 6:
      return tcp(c, out);
    case 17:
      return udp(c, out);
    case 47:
      return gre(c, out);
    case 89:
      return ospf(c, out);
  }
  out.protocol = protocols[protocol] ?? `IP protocol ${protocol}`;
  out.info = `${c.left} octets`;
  if (protocol !== 132 || c.left < 12) return;
  const [from, to] = [c.u16(), c.u16()];
  out.info = `${from} → ${to}, ${c.left - 8} octets`;
  add(out, "SCTP", { From: from, To: to, "Verification tag": hex(c.u32(), 8) });
}

function control(c: Cursor, protocol: number, out: Packet, hops: string) {
  out.protocol = protocol === 1 ? "ICMP" : "ICMPv6";
  const [type, code] = [c.u8(), c.u8()];
  c.take(2);
  const name = (protocol === 1 ? icmp : icmp6)[type] ?? `type ${type}`;
  const fields: Record<string, string | number> = { Type: `${type} ${name}`, Code: code };
  out.info = name;
  if (name.startsWith("echo")) {
    [fields.Identifier, fields.Sequence] = [c.u16(), c.u16()];
    out.info += `, id ${fields.Identifier}, sequence ${fields.Sequence}`;
  } else if (protocol === 58 && (type === 135 || type === 136)) {
    c.take(4);
    fields.Target = ip6(c.take(16));
    out.info += ` for ${fields.Target}`;
  }
  out.info += `, ${hops}`;
  add(out, out.protocol, fields);
}

function gre(c: Cursor, out: Packet) {
  out.protocol = "GRE";
  const flags = c.u16();
  const type = c.u16();
  const fields: Record<string, string | number> = { Type: typeName(type) };
  if (flags & 0x8000) c.take(4);
  let key = "";
  if (flags & 0x2000) key = ` key ${(fields.Key = c.u32())}`;
  if (flags & 0x1000) fields.Sequence = c.u32();
  add(out, "GRE", fields);
  if (out.deep++ > 4) return;
  out.within.push(`GRE${key} ${out.src} → ${out.dst}`);
  network(c, type, out);
}

function udp(c: Cursor, out: Packet) {
  out.protocol = "UDP";
  const [from, to, length] = [c.u16(), c.u16(), c.u16()];
  c.take(2);
  add(out, "UDP", { From: from, To: to, Length: length });
  out.info = `${from} → ${to}, ${Math.max(length - 8, 0)} octets`;
  const at = (port: number) => from === port || to === port;
  if (at(53) || at(5353)) dns(c, out);
  else if (at(67) || at(68)) dhcp(c, out);
  else if (at(3784)) bfd(c, out);
  else if (at(2152)) gtp(c, out);
  else if (at(4789)) vxlan(c, out);
}

function vxlan(c: Cursor, out: Packet) {
  out.protocol = "VXLAN";
  c.take(4);
  const vni = c.u32() >>> 8;
  add(out, "VXLAN", { VNI: vni });
  if (c.left < 14) return;
  out.within.push(`VXLAN ${vni} ${out.src} → ${out.dst}`);
  inner(c, out);
}

function tcp(c: Cursor, out: Packet) {
  out.protocol = "TCP";
  const begin = c.at;
  const [from, to, sequence, ack] = [c.u16(), c.u16(), c.u32(), c.u32()];
  const header = (c.u8() >> 4) * 4;
  const flags = c.u8();
  const window = c.u16();
  const names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"].filter((_, i) => flags & (1 << i)).join(" ");
  c.at = begin + header;
  add(out, "TCP", { From: from, To: to, Flags: names || "none", Sequence: sequence, Acknowledged: flags & 16 ? ack : "–", Window: window, Octets: Math.max(c.left, 0) });
  out.info = `${from} → ${to} ${names} seq ${sequence}${flags & 16 ? ` ack ${ack}` : ""}, ${Math.max(c.left, 0)} octets`;
  if (header >= 20 && c.left >= 8 && !openflow(c, from, to, out)) http(c, out);
}
