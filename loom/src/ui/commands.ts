// What a page does, as a command of weft.

/** word writes an argument as a shell takes it. */
const word = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** command returns a command of weft with its arguments. */
export const command = (...args: Array<string | number>) => ["weft", ...args.map((a) => word(String(a)))].join(" ");

/** traceCommand traces a packet, as TracePacket is asked for one (packet.ts). */
export function traceCommand(from: string, to: string, as: string, port: number): string {
  const flags: Record<string, string[]> = { ping6: ["-6"], arp: ["--arp"], tcp: ["--tcp-dst", String(port)], udp: ["--udp-dst", String(port)] };
  return command("trace", from, to, ...(flags[as] ?? []));
}

/** linkCommand cuts a link of a lab, or plugs it in; link is its name, such as s1:2-s2:3. */
export function linkCommand(lab: string, link: string, down: boolean): string {
  const [, a, b] = /^(.+:\d+)-(.+)$/.exec(link) ?? ["", link, ""];
  return command("lab", "link", "--name", lab, a, b, down ? "down" : "up");
}
