/** packets are what can be traced: what the page calls them, and what TracePacket calls them. */
export const packets: Array<{ id: string; title: string; port?: boolean }> = [
  { id: "", title: "ping" },
  { id: "ping6", title: "ping over IPv6" },
  { id: "arp", title: "ARP request" },
  { id: "tcp", title: "TCP to port", port: true },
  { id: "udp", title: "UDP to port", port: true },
];

/** wrong returns why a packet cannot be traced; empty if it can. */
export function wrong(as: string, port: number): string {
  const packet = packets.find((p) => p.id === as);
  if (!packet) return `no packets are called ${JSON.stringify(as.slice(0, 40))}; choose one of the list`;
  return packet.port && !(Number.isInteger(port) && port >= 1 && port <= 65535) ? "the port is a number from 1 to 65535" : "";
}

/** request returns what TracePacket is asked for a packet of these. */
export function request(src: string, dst: string, as: string, port: number): Record<string, unknown> {
  const of: Record<string, Record<string, unknown>> = { ping6: { ipv6: true }, arp: { arp: true }, tcp: { tcp_dst: port }, udp: { udp_dst: port } };
  return { src, dst, ...of[as] };
}
