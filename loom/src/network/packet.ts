/** packets are what can be traced: what the page calls them, and what TracePacket calls them. */
export const packets: Array<{ id: string; title: string; port?: boolean }> = [
  { id: "", title: "ping" },
  { id: "ping6", title: "ping over IPv6" },
  { id: "arp", title: "ARP request" },
  { id: "tcp", title: "TCP to port", port: true },
  { id: "udp", title: "UDP to port", port: true },
];

/** request returns what TracePacket is asked for a packet of these. */
export function request(src: string, dst: string, as: string, port: number): Record<string, unknown> {
  const of: Record<string, Record<string, unknown>> = { ping6: { ipv6: true }, arp: { arp: true }, tcp: { tcp_dst: port }, udp: { udp_dst: port } };
  return { src, dst, ...of[as] };
}
