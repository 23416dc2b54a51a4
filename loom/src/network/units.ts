/** bitsText writes a rate for people. */
export function bitsText(bits: number): string {
  for (const [unit, of] of [["Gb/s", 1e9], ["Mb/s", 1e6], ["kb/s", 1e3]] as const) {
    if (bits >= 0.9995 * of) return `${figures(bits / of)} ${unit}`;
  }
  return `${Math.round(bits)} b/s`;
}

/** figures writes a number with three figures, never as a power of ten. */
function figures(n: number): string {
  return n >= 100 ? n.toFixed(0) : n.toPrecision(3);
}

/** timeText writes a moment of a day with milliseconds, and the day unless it is that of now. */
export function timeText(at: number, now = Date.now()): string {
  const d = new Date(at);
  const two = (n: number, width = 2) => String(n).padStart(width, "0");
  const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${two(d.getMilliseconds(), 3)}`;
  return d.toDateString() === new Date(now).toDateString() ? time : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${time}`;
}

/** ago writes how long ago a moment is. */
export function ago(time: string | undefined, now = Date.now()): string {
  const s = Math.round((now - Date.parse(time ?? "")) / 1000);
  if (!Number.isFinite(s)) return "";
  if (s < 60) return `${Math.max(0, s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86_400)} days ago`;
}
