import { expect, test } from "vitest";

import { ip6 } from "./cursor";
import { decode } from "./decode";
import { commandOf, numberIn, readMeasurements, usual } from "./exec";
import { Reader, type Packet } from "./pcapng";
import { Random } from "./random";

const hex = (s: string) => Uint8Array.from(s.replace(/\s/g, "").match(/../g) ?? [], (b) => parseInt(b, 16));
const eth = "020000000002 020000000001 ";
const v4 = (protocol: string, length: number) => `4500 ${length.toString(16).padStart(4, "0")} 0000 0000 40 ${protocol} 0000 0a000001 0a000002 `;

/** file writes packets as pcapng. */
function file(packets: Packet[], little: boolean, nano: boolean): Uint8Array {
  const out: number[] = [];
  const u = (v: number, size: number) => {
    const b = Array.from({ length: size }, (_, i) => Math.floor(v / 2 ** (8 * i)) & 255);
    out.push(...(little ? b : b.reverse()));
  };
  const block = (type: number, body: () => void) => {
    u(type, 4);
    const at = out.length;
    u(0, 4);
    body();
    while (out.length % 4) out.push(0);
    const length = out.length - at + 8;
    const end = out.length;
    u(length, 4);
    out.splice(at, 4, ...out.slice(end));
  };
  block(0x0a0d0d0a, () => (u(0x1a2b3c4d, 4), u(1, 2), u(0, 2), u(0xffffffff, 4), u(0xffffffff, 4)));
  block(1, () => (u(1, 2), u(0, 2), u(0, 4), u(2, 2), u(3, 2), out.push(97, 98, 99, 0), nano && (u(9, 2), u(1, 2), out.push(9, 0, 0, 0)), u(0, 4)));
  block(5, () => u(7, 4));
  for (const p of packets) {
    const units = Math.round(p.time * (nano ? 1e9 : 1e6));
    block(6, () => (u(0, 4), u(Math.floor(units / 2 ** 32), 4), u(units % 2 ** 32, 4), u(p.data.length, 4), u(p.length, 4), out.push(...p.data)));
  }
  return Uint8Array.from(out);
}

test("property: packets come out as they went in, in whatever pieces", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const r = new Random(seed);
    const packets = Array.from({ length: r.below(20) }, (_, i): Packet => ({ time: 1000 + i / 4, length: 2000, link: 1, data: Uint8Array.from({ length: r.below(90) }, () => r.below(256)) }));
    const all = file(packets, r.next() < 0.5, r.next() < 0.5);
    const reader = new Reader();
    const got: Packet[] = [];
    for (let at = 0; at < all.length; ) {
      const n = 1 + r.below(50);
      got.push(...reader.push(all.subarray(at, at + n)));
      at += n;
    }
    expect(got).toEqual(packets);
  }
});

test("what is no pcapng, or a block too large, is refused", () => {
  expect(() => new Reader().push(new Uint8Array(20))).toThrow("not pcapng");
  const bad = file([], true, false);
  new DataView(bad.buffer).setUint32(4, 0x7fffffff, true);
  expect(() => new Reader().push(bad)).toThrow("a block of");
});

test("headers are said in words", () => {
  const of = (h: string, link = 1) => decode(hex(h), link);
  expect(of(`ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002`)).toMatchObject({ protocol: "ARP", info: "who has 10.0.0.2? 10.0.0.1 asks" });
  expect(of(`${eth} 0800 ${v4("01", 28)} 0800 0000 0007 0003`)).toMatchObject({ src: "10.0.0.1", dst: "10.0.0.2", protocol: "ICMP", info: "echo request, id 7, sequence 3, TTL 64" });
  expect(of(`${eth} 8100 0064 0800 ${v4("11", 30)} 03e8 0035 000a 0000 0000`)).toMatchObject({ protocol: "DNS", info: "VLAN 100: 1000 → 53, 2 octets" });
  expect(of(`${eth} 0800 ${v4("06", 40)} 1234 0050 00000001 00000000 5002 0000 0000 0000 000000000000`)).toMatchObject({ protocol: "TCP", info: "4660 → 80 SYN seq 1, 0 octets" });
  expect(of(`${eth} 0800 ${v4("06", 56)} 1234 19fd 00000001 00000002 5018 0000 0000 0000 04020008 00000001 040d0008 00000002`)).toMatchObject({ protocol: "OpenFlow", info: "ECHO_REQUEST, PACKET_OUT (4660 → 6653)" });
  expect(of(`${eth} 86dd 60000000 0008 3a ff fe80000000000000 0000000000000001 ff02000000000000 0000000000000002 85000000 00000000`)).toMatchObject({ src: "fe80::1", dst: "ff02::2", protocol: "ICMPv6", info: "router solicitation, hop limit 255" });
  expect(of(`0180c200000e 020000000001 88cc 0207 04 020000000001 0405 07 3c623e01 0a03 733132 0000`)).toMatchObject({ protocol: "LLDP", info: "chassis 02:00:00:00:00:01, port <b>·, name s12" });
  expect(of(`${eth} 8847 0003e040 000641ff 45`)).toMatchObject({ protocol: "MPLS", info: "labels 62, 100" });
  // What is in tunnels is said, too: in labels with and without a frame or control word, in VXLAN, GRE and GTP.
  expect(of(`${eth} 8847 0003e1ff 10007ff8 01010000`)).toMatchObject({ protocol: "MPLS", info: "labels 62, associated channel 0x7ff8" });
  const echo = `${v4("01", 28)} 0800 0000 0007 0003`;
  const said = { src: "10.0.0.1", dst: "10.0.0.2", protocol: "ICMP" };
  expect(of(`${eth} 8847 0003e1ff ${echo}`)).toMatchObject({ ...said, info: "labels 62: echo request, id 7, sequence 3, TTL 64" });
  expect(of(`${eth} 8847 0003e1ff 460000000002 420000000001 8100 0007 0800 ${echo}`)).toMatchObject({ ...said, info: "labels 62, VLAN 7: echo request, id 7, sequence 3, TTL 64" });
  expect(of(`${eth} 8847 0003e1ff 00000009 ${eth} 0800 ${echo}`)).toMatchObject(said);
  expect(of(`${eth} 0800 ${v4("11", 78)} c001 12b5 003a 0000 08000000 00000500 ${eth} 0800 ${echo}`)).toMatchObject({ ...said, info: "VXLAN 5 10.0.0.1 → 10.0.0.2: echo request, id 7, sequence 3, TTL 64" });
  expect(of(`${eth} 0800 ${v4("2f", 70)} 2000 6558 00000005 ${eth} 0800 ${echo}`)).toMatchObject({ ...said, info: "GRE key 5 10.0.0.1 → 10.0.0.2: echo request, id 7, sequence 3, TTL 64" });
  expect(of(`${eth} 0800 ${v4("11", 64)} 0868 0868 002c 0000 30ff 001c 00000009 ${echo}`)).toMatchObject({ protocol: "GTP", info: "tunnel 9, user data from 10.0.0.1 to 10.0.0.2" });
  expect(of(`${eth} 8847 0003e1ff 460000000002 420000000001 8100 0007 0800 ${echo}`).layers.map((l) => l.name)).toEqual(["Ethernet", "MPLS", "Ethernet", "802.1Q", "IPv4", "ICMP"]);
  expect(of(`${eth} 88a8 0064 8100 0007 0800 ${echo}`).layers[1]).toEqual({ name: "802.1ad", fields: [["VLAN", "100"], ["Priority", "0"], ["Type", "0x8100 802.1Q"]] });
  // What runs on hybrid nodes and in a core.
  expect(of(`${eth} 0800 ${v4("59", 64)} 0201 002c 0aff0001 00000000 0000 0000 ${"00".repeat(28)}`)).toMatchObject({ protocol: "OSPF", info: "hello of 10.255.0.1, area 0.0.0.0" });
  expect(of(`${eth} 0800 ${v4("11", 52)} c000 0ec8 0020 0000 20c00318 00000001 00000002 0000c350 0000c350 00000000`)).toMatchObject({ protocol: "BFD", info: "up, every 50 ms × 3" });
  expect(of(`${eth} 0800 ${v4("11", 57)} c000 0035 0025 0000 0007 0100 0001 0000 0000 0000 036e7266 03356763 00 0001 0001`)).toMatchObject({ protocol: "DNS", info: "asks for A nrf.5gc" });
  expect(of(`${eth} 0800 ${v4("06", 64)} 1234 1e61 00000001 00000000 5018 0000 0000 0000 474554202f6e6e72662048545450 2f312e310d0a`)).toMatchObject({ protocol: "HTTP", info: "GET /nnrf HTTP/1.1" });
  // OpenFlow at any port, where messages fill the segment.
  expect(of(`${eth} 0800 ${v4("06", 56)} 1234 5dc1 00000001 00000002 5018 0000 0000 0000 04020008 00000001 040d0008 00000002`)).toMatchObject({ protocol: "OpenFlow", info: "ECHO_REQUEST, PACKET_OUT (4660 → 24001)" });
  expect(of(`${eth} 0800 ${v4("06", 52)} 1234 5dc1 00000001 00000002 5018 0000 0000 0000 04020009 00000001 040d0008`)).toMatchObject({ protocol: "TCP" });
  expect(of(`0000 0001 0006 020000000001 0000 0800 ${v4("59", 20)}`, 113)).toMatchObject({ protocol: "OSPF", dst: "10.0.0.2" });
  expect(of("00", 147).protocol).toBe("link type 147");
  expect(ip6(hex("20010db8000000000000000000000001"))).toBe("2001:db8::1");
  expect(ip6(new Uint8Array(16))).toBe("::");
});

test("property: no packet, however cut or broken, fails", () => {
  const r = new Random(5);
  const good = [`${eth} 0800 ${v4("06", 56)} 1234 19fd 00000001 00000002 5018 0000 0000 0000 04020008 00000001`, `${eth} 86dd 60000000 0010 00 ff ${"00".repeat(32)} 3a000000 00000000 80000000 00000000`, `${eth} 88cc 0207 04 020000000001 ffff 00`,
    `${eth} 8847 0003e1ff ${eth} 8100 0007 0800 ${v4("11", 78)} c001 12b5 003a 0000 08000000 00000500 ${eth} 0800 ${v4("2f", 40)} 2000 6558 00000005 ${eth} 0800`,
    ...["0035", "0043", "0ec8", "0868"].map((port) => `${eth} 0800 ${v4("11", 300)} ${port} ${port} 0118 0000 ${"02".repeat(250)}`),
    `${eth} 0800 ${v4("59", 64)} 0201 002c 0aff0001 00000000`].map(hex);
  for (let i = 0; i < 6000; i++) {
    const b = r.pick(good).slice(0, r.below(r.pick([80, 320])));
    for (let k = r.below(4); k > 0 && b.length > 0; k--) b[r.below(b.length)] = r.below(256);
    expect(typeof decode(b, r.pick([1, 1, 113, 276])).info).toBe("string");
  }
});

test("measurements find their number, and say when they do not", () => {
  expect(readMeasurements([{ name: "a", command: "x", pattern: 7 }, null])[0]).toEqual({ name: "a", from: "", to: "", command: "x", pattern: "7" });
  expect(readMeasurements("x")).toEqual([]);
  expect(commandOf({ ...usual, from: "h1", to: "h2" })).toBe("ping -c 5 -i 0.2 h2");
  expect(numberIn(usual.pattern, "rtt min/avg/max/mdev = 0.031/0.042/0.05/0.1 ms")).toBe(0.042);
  expect(numberIn("[0-9]+", "a 12 b")).toBe(12);
  expect(() => numberIn("x", "y")).toThrow("not in what the command wrote: y");
  expect(() => numberIn("(", "y")).toThrow("no regular expression");
  expect(() => numberIn(".", "y")).toThrow("no number");
});
