import type { ScpPair } from "../api/types.gen";

/** Box is a function of a 5G core in the picture. */
export interface Box {
  name: string; // its type and address
  x: number; // of its left edge
  y: number; // of its middle
}

/** Line is a pair of functions that talk. */
export interface Line {
  path: string; // of an SVG
  width: number;
  direct: boolean;
  refused: boolean;
  title: string;
}

export const [wide, boxWide, rowHigh] = [760, 250, 34];

const host = (address: string) => address.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
const named = (type: string | undefined, address: string) => `${type || "unregistered"} ${address}`;

/** wayOf is how a consumer reaches its producer. */
export const wayOf = (p: ScpPair) => (p.direct ? "its own address" : p.front ? "the front" : "end point");

/** noteOf says what is special about the figures of a pair. */
export const noteOf = (p: ScpPair) => [p.sampled ? "requests of samples" : "", p.reason ? `refused: ${p.reason}` : ""].filter(Boolean).join("; ");

/** Kind is what the pairs of a type of consumer and a type of producer have exchanged. */
export interface Kind {
  consumer: string;
  producer: string;
  pairs: number;
  packets: number; // by the switches
  octets: number;
  requests: number; // by the front, or in samples
  errors: number;
  meanMs: number; // until its answers; NaN if there is no request
}

/** meanOf is the mean time until the answers of a pair, in milliseconds, as text; empty if none has passed the front. */
export const meanOf = (ms: number) => (Number.isFinite(ms) ? ms.toFixed(ms < 10 ? 1 : 0) : "");

/** byType adds pairs up by the types of consumer and producer, in the order of these. */
export function byType(pairs: ScpPair[]): Kind[] {
  const kinds = new Map<string, Kind & { ms: number }>();
  for (const p of pairs) {
    const [consumer, producer] = [p.consumer_type || "unregistered", p.type || "unregistered"];
    const key = `${consumer} ${producer}`;
    const k = kinds.get(key) ?? { consumer, producer, pairs: 0, packets: 0, octets: 0, requests: 0, errors: 0, meanMs: NaN, ms: 0 };
    k.pairs++;
    k.packets += Number(p.packets ?? 0);
    k.octets += Number(p.bytes ?? 0);
    k.requests += Number(p.requests ?? 0);
    k.errors += Number(p.errors ?? 0);
    k.ms += Number(p.requests ?? 0) * (p.mean_ms ?? 0);
    k.meanMs = k.requests > 0 ? k.ms / k.requests : NaN;
    kinds.set(key, k);
  }
  return [...kinds.keys()].sort().map((key) => kinds.get(key)!);
}

/** picture draws consumers at the left and producers at the right, each side by type and address;
 * the more packets a pair has exchanged, the wider its line. What goes past an end point has a line of its own. */
export function picture(pairs: ScpPair[]): { boxes: Box[]; lines: Line[]; high: number } {
  const left = (p: ScpPair) => named(p.consumer_type, p.consumer ?? "");
  const right = (p: ScpPair) => named(p.type, host(p.producer ?? ""));
  const column = (names: string[], x: number) =>
    new Map([...new Set(names)].sort().map((name, i): [string, Box] => [name, { name, x, y: rowHigh * (i + 0.5) }]));
  const consumers = column(pairs.map(left), 0);
  const producers = column(pairs.map(right), wide - boxWide);
  const together = new Map<string, { from: Box; to: Box; packets: number; requests: number; direct: boolean; front: boolean; refused: boolean }>();
  for (const p of pairs) {
    const key = `${left(p)}>${right(p)} ${wayOf(p)}`;
    const one = together.get(key) ?? { from: consumers.get(left(p))!, to: producers.get(right(p))!, packets: 0, requests: 0, direct: !!p.direct, front: !!p.front, refused: false };
    one.packets += Number(p.packets ?? 0);
    one.requests += Number(p.requests ?? 0);
    one.refused ||= !p.authorised;
    together.set(key, one);
  }
  const lines = [...together.values()].map(({ from, to, packets, requests, direct, front, refused }): Line => {
    const [x1, x2] = [from.x + boxWide, to.x];
    const middle = (x1 + x2) / 2;
    const [y1, y2] = [from.y, to.y].map((y) => y + (direct ? 6 : front ? -6 : 0));
    const notes = [front ? `${requests} requests by the front` : `${packets} packets`, ...(direct ? ["past the end point"] : []), ...(refused ? ["not authorised"] : [])];
    return {
      path: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`,
      width: 1 + Math.min(6, Math.log10(1 + packets + requests)),
      direct,
      refused,
      title: `${from.name} to ${to.name}: ${notes.join(", ")}`,
    };
  });
  return { boxes: [...consumers.values(), ...producers.values()], lines, high: rowHigh * Math.max(1, consumers.size, producers.size) };
}
