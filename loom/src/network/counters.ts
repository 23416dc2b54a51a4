import type { TraceStep } from "../api/types.gen";
import { entryKey } from "./entry";

/** Rate is what an entry has met in a second. */
export interface Rate {
  packets: number;
  bits: number;
}

const keyOf = (s: TraceStep) => `${s.switch} ${s.in_port} ${s.entry ? entryKey(s.entry) : s.table}`;

/** stepRates returns what the entry of each step has met in a second between two traces; undefined where
 * it was not in the trace before, or has begun to count anew. */
export function stepRates(before: TraceStep[], now: TraceStep[], seconds: number): Array<Rate | undefined> {
  const was = new Map(before.map((s) => [keyOf(s), s]));
  return now.map((s) => {
    const old = was.get(keyOf(s));
    if (!old?.entry || !s.entry || seconds <= 0) return undefined;
    const [packets, bytes] = [Number(s.entry.packets ?? 0) - Number(old.entry.packets ?? 0), Number(s.entry.bytes ?? 0) - Number(old.entry.bytes ?? 0)];
    return packets < 0 ? undefined : { packets: packets / seconds, bits: (8 * bytes) / seconds };
  });
}
