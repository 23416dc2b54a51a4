import { place, type Place } from "../api/known";
import type { PortStats } from "../api/types.gen";
import { bitsText } from "./units";

/** Rates are the counters and rates of ports as they were read last, by place. */
export type Rates = Map<string, PortStats>;

/** sentText writes what a port sends, "" if that is not known. */
export function sentText(rates: Rates, p?: Place): string {
  const s = rates.get(place(p));
  return s ? bitsText(s.tx_bits_per_s ?? 0) : "";
}

/** sent is what a port sends, bits per second. */
export const sent = (rates: Rates, p?: Place) => rates.get(place(p))?.tx_bits_per_s ?? NaN;

/** dropsText says what a port has dropped and got wrong, "" if nothing. */
export function dropsText(s?: PortStats): string {
  const parts = (
    [
      ["rx_dropped", "in dropped"],
      ["tx_dropped", "out dropped"],
      ["rx_errors", "in errors"],
      ["tx_errors", "out errors"],
    ] as const
  ).flatMap(([key, what]) => (Number(s?.[key] ?? 0) > 0 ? [`${s![key]} ${what}`] : []));
  return parts.join(", ");
}

/** speedText writes the speed of a port. */
export const speedText = (kbps?: number) => (kbps ? bitsText(kbps * 1000) : "");
