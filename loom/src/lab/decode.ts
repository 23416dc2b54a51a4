// Says in words what the headers of a packet are.

export interface Decoded {
  src: string;
  dst: string;
  protocol: string;
  info: string;
}

const openflow = ["HELLO", "ERROR", "ECHO_REQUEST", "ECHO_REPLY", "EXPERIMENTER", "FEATURES_REQUEST", "FEATURES_REPLY", "GET_CONFIG_REQUEST", "GET_CONFIG_REPLY", "SET_CONFIG", "PACKET_IN", "FLOW_REMOVED", "PORT_STATUS", "PACKET_OUT", "FLOW_MOD", "GROUP_MOD", "PORT_MOD", "TABLE_MOD", "MULTIPART_REQUEST", "MULTIPART_REPLY", "BARRIER_REQUEST", "BARRIER_REPLY", "QUEUE_GET_CONFIG_REQUEST", "QUEUE_GET_CONFIG_REPLY", "ROLE_REQUEST", "ROLE_REPLY", "GET_ASYNC_REQUEST", "GET_ASYNC_REPLY", "SET_ASYNC", "METER_MOD"];
const openflow10 = [...openflow.slice(0, 15), "PORT_MOD", "STATS_REQUEST", "STATS_REPLY", "BARRIER_REQUEST", "BARRIER_REPLY"];
const icmp: Record<number, string> = { 0: "echo reply", 3: "unreachable", 5: "redirect", 8: "echo request", 11: "time exceeded" };
const icmp6: Record<number, string> = { 1: "unreachable", 2: "packet too big", 3: "time exceeded", 128: "echo request", 129: "echo reply", 133: "router solicitation", 134: "router advertisement", 135: "neighbour solicitation", 136: "neighbour advertisement", 143: "multicast listener report" };
const protocols: Record<number, string> = { 2: "IGMP", 47: "GRE", 89: "OSPF", 112: "VRRP", 132: "SCTP" };

/** Cursor reads big-endian numbers, and fails behind the end. */
class Cursor {
  private readonly view: DataView;

  constructor(
    readonly data: Uint8Array,
    public at = 0,
  ) {
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  }
  u8 = () => this.view.getUint8(this.at++);
  u16() {
    this.at += 2;
    return this.view.getUint16(this.at - 2);
  }
  u32() {
    this.at += 4;
    return this.view.getUint32(this.at - 4);
  }
  take(n: number) {
    if (this.at + n > this.data.length) throw new RangeError("short");
    this.at += n;
    return this.data.subarray(this.at - n, this.at);
  }
  get left() {
    return this.data.length - this.at;
  }
}

const mac = (b: Uint8Array) => Array.from(b, (v) => v.toString(16).padStart(2, "0")).join(":");
const ip4 = (b: Uint8Array) => b.join(".");

/** ip6 writes an address as RFC 5952 says. */
export function ip6(b: Uint8Array): string {
  const words = Array.from({ length: 8 }, (_, i) => (b[2 * i] << 8) | b[2 * i + 1]);
  let [best, length] = [-1, 1];
  for (let i = 0; i < 8; i++) {
    let n = 0;
    while (i + n < 8 && words[i + n] === 0) n++;
    if (n > length) [best, length] = [i, n];
  }
  const hex = (w: number[]) => w.map((v) => v.toString(16)).join(":");
  return best < 0 ? hex(words) : `${hex(words.slice(0, best))}::${hex(words.slice(best + length))}`;
}

/** text makes octets a text without what does not print. */
const text = (b: Uint8Array) => new TextDecoder().decode(b.slice(0, 100)).replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, "·");

/** decode says what a packet of a link type (1 Ethernet, 113 and 276 Linux cooked) is. */
export function decode(data: Uint8Array, link = 1): Decoded {
  const out: Decoded = { src: "", dst: "", protocol: "", info: "" };
  try {
    const c = new Cursor(data);
    let type: number;
    if (link === 113) {
      c.at = 14;
      type = c.u16();
      out.src = mac(data.subarray(6, 12));
    } else if (link === 276) {
      type = c.u16();
      out.src = mac(data.subarray(12, 18));
      c.at = 20;
    } else if (link === 1) {
      out.dst = mac(c.take(6));
      out.src = mac(c.take(6));
      type = c.u16();
    } else return { ...out, protocol: `link type ${link}`, info: `${data.length} octets` };
    const tags: string[] = [];
    while ((type === 0x8100 || type === 0x88a8) && tags.length < 4) {
      tags.push(`VLAN ${c.u16() & 0xfff}`);
      type = c.u16();
    }
    network(c, type, out);
    if (tags.length > 0) out.info = `${tags.join(", ")}: ${out.info}`;
  } catch (err) {
    if (!(err instanceof RangeError)) throw err;
    out.info = `${out.info} [cut short]`.trim();
  }
  return out;
}

function network(c: Cursor, type: number, out: Decoded) {
  switch (type) {
    case 0x0800:
      return ipv4(c, out);
    case 0x86dd:
      return ipv6(c, out);
    case 0x0806:
      return arp(c, out);
    case 0x8847:
    case 0x8848: {
      const labels: number[] = [];
      for (let word = 0; (word & 0x100) === 0 && labels.length < 8; ) {
        word = c.u32();
        labels.push(word >>> 12);
      }
      out.protocol = "MPLS";
      out.info = `labels ${labels.join(", ")}`;
      return;
    }
    case 0x88cc:
      out.protocol = "LLDP";
      return lldp(c, out);
  }
  if (type < 0x600) [out.protocol, out.info] = ["802.3", `length ${type}`];
  else [out.protocol, out.info] = [type === 0x8942 ? "BDDP" : `0x${type.toString(16).padStart(4, "0")}`, `${c.left} octets`];
}

function arp(c: Cursor, out: Decoded) {
  out.protocol = "ARP";
  c.take(6);
  const op = c.u16();
  c.take(6);
  const from = ip4(c.take(4));
  c.take(6);
  const to = ip4(c.take(4));
  out.info = op === 1 ? `who has ${to}? ${from} asks` : op === 2 ? `${from} is at ${out.src}` : `operation ${op}`;
}

function ipv4(c: Cursor, out: Decoded) {
  out.protocol = "IPv4";
  const begin = c.at;
  const header = (c.u8() & 15) * 4;
  c.u8();
  const length = c.u16();
  c.take(2);
  const fragment = c.u16() & 0x1fff;
  const ttl = c.u8();
  const protocol = c.u8();
  c.take(2);
  [out.src, out.dst] = [ip4(c.take(4)), ip4(c.take(4))];
  if (header < 20 || length < header) {
    out.info = "malformed header";
    return;
  }
  if (fragment) {
    out.info = `fragment at ${fragment * 8}`;
    return;
  }
  // What stands behind the packet only fills the frame.
  transport(new Cursor(c.data.subarray(0, Math.min(begin + length, c.data.length)), begin + header), protocol, out, `TTL ${ttl}`);
}

function ipv6(c: Cursor, out: Decoded) {
  out.protocol = "IPv6";
  c.take(4);
  const length = c.u16();
  let next = c.u8();
  const hops = c.u8();
  [out.src, out.dst] = [ip6(c.take(16)), ip6(c.take(16))];
  c = new Cursor(c.data.subarray(0, Math.min(c.at + length, c.data.length)), c.at);
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

function transport(c: Cursor, protocol: number, out: Decoded, hops: string) {
  if (protocol === 1 || protocol === 58) {
    out.protocol = protocol === 1 ? "ICMP" : "ICMPv6";
    const type = c.u8();
    c.take(3);
    out.info = (protocol === 1 ? icmp : icmp6)[type] ?? `type ${type}`;
    if (out.info.startsWith("echo")) out.info += `, id ${c.u16()}, sequence ${c.u16()}`;
    out.info += `, ${hops}`;
  } else if (protocol === 6) tcp(c, out);
  else if (protocol === 17) {
    out.protocol = "UDP";
    const [from, to, length] = [c.u16(), c.u16(), c.u16()];
    const known = [from, to].includes(53) ? "DNS" : [from, to].includes(67) ? "DHCP" : [from, to].includes(4789) ? "VXLAN" : [from, to].includes(3784) ? "BFD" : "";
    if (known) out.protocol = known;
    out.info = `${from} → ${to}, ${Math.max(length - 8, 0)} octets`;
  } else {
    out.protocol = protocols[protocol] ?? `IP protocol ${protocol}`;
    out.info = `${c.left} octets`;
  }
}

function tcp(c: Cursor, out: Decoded) {
  out.protocol = "TCP";
  const begin = c.at;
  const [from, to, sequence, ack] = [c.u16(), c.u16(), c.u32(), c.u32()];
  const header = (c.u8() >> 4) * 4;
  const flags = c.u8();
  const names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"].filter((_, i) => flags & (1 << i));
  c.at = begin + header;
  out.info = `${from} → ${to} ${names.join(" ")} seq ${sequence}${flags & 16 ? ` ack ${ack}` : ""}, ${Math.max(c.left, 0)} octets`;
  if (header < 20 || c.left < 8 || ![from, to].some((p) => p === 6653 || p === 6633 || p === 6640 || p === 16653)) return;
  const types: string[] = [];
  while (c.left >= 8 && types.length < 8) {
    const at = c.at;
    const version = c.u8();
    const type = c.u8();
    const length = c.u16();
    if (version < 1 || version > 6 || length < 8) break;
    types.push((version === 1 ? openflow10 : openflow)[type] ?? `type ${type}`);
    c.at = at + length;
  }
  if (types.length === 0) return;
  out.protocol = "OpenFlow";
  out.info = `${types.join(", ")} (${from} → ${to})`;
}

function lldp(c: Cursor, out: Decoded) {
  const parts: string[] = [];
  while (c.left >= 2 && parts.length < 8) {
    const head = c.u16();
    const [type, value] = [head >> 9, c.take(head & 511)];
    if (type === 0) break;
    if (type === 1) parts.push(`chassis ${value[0] === 4 ? mac(value.subarray(1)) : text(value.subarray(1))}`);
    else if (type === 2) parts.push(`port ${value[0] === 3 ? mac(value.subarray(1)) : text(value.subarray(1))}`);
    else if (type === 5) parts.push(`name ${text(value)}`);
  }
  out.info = parts.join(", ");
}
