// Commands in nodes whose output the page reads.

import { service } from "./service";

const most = 256 << 10;

/** run runs a command of a shell in a node, and returns what it wrote once it has ended. */
export async function run(lab: string, node: string, command: string, signal: AbortSignal): Promise<string> {
  // A wide terminal, so that lines stay whole.
  const { console: name = "" } = await service.open(lab, node, ["sh", "-c", command], 50, 400);
  const decoder = new TextDecoder();
  try {
    return await new Promise<string>((done, fail) => {
      const socket = new WebSocket(service.attach(name));
      socket.binaryType = "arraybuffer";
      let out = "";
      signal.addEventListener("abort", () => {
        socket.close();
        fail(new Error("stopped"));
      });
      socket.onmessage = (e) => {
        if (e.data instanceof ArrayBuffer) out = (out + decoder.decode(e.data, { stream: true })).slice(-most);
      };
      socket.onclose = (e) => {
        if (e.code !== 1000) fail(new Error("the connection to the command was lost"));
        else done(out.replaceAll("\r\n", "\n"));
      };
    });
  } finally {
    await service.close(name).catch(() => {}); // it has ended, or is forgotten soon
  }
}

/** Measurement is a command of the user's whose output has a number. */
export interface Measurement {
  name: string;
  from: string;
  to: string;
  command: string;
  pattern: string;
}

export const usual: Measurement = { name: "delay", from: "", to: "", command: "ping -c 5 -i 0.2 {to}", pattern: "= [0-9.]+/([0-9.]+)/" };

/** readMeasurements returns those of a lab's fields. */
export function readMeasurements(all: unknown): Measurement[] {
  if (!Array.isArray(all)) return [];
  const text = (v: unknown) => (typeof v === "string" || typeof v === "number" ? String(v) : "");
  return all.slice(0, 200).map((m: Record<string, unknown>) => ({ name: text(m?.name), from: text(m?.from), to: text(m?.to), command: text(m?.command), pattern: text(m?.pattern) }));
}

/** commandOf writes the names of both ends into a command. */
export const commandOf = (m: Measurement) => m.command.replaceAll("{from}", m.from).replaceAll("{to}", m.to);

/** numberIn returns the number that a pattern finds: its first group, or all of it. */
export function numberIn(pattern: string, output: string): number {
  let found: RegExpMatchArray | null;
  try {
    found = output.slice(-(64 << 10)).match(new RegExp(pattern, "m"));
  } catch (err) {
    throw new Error(`the pattern is no regular expression: ${err instanceof Error ? err.message : String(err)}`, { cause: err });
  }
  if (!found) throw new Error(`the pattern is not in what the command wrote: ${output.trim().slice(-200) || "nothing"}`);
  const value = Number(found[1] ?? found[0]);
  if (!Number.isFinite(value)) throw new Error(`${JSON.stringify(found[1] ?? found[0])} is no number`);
  return value;
}
