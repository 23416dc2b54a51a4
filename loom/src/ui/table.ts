/** Column is a column of a table: its title and the text of a row in it. */
export interface Column<T> {
  title: string;
  text: (row: T) => string;
  /** number aligns it right, and sorts by value. */
  number?: boolean;
  /** value is what a number is sorted by, unless it is its text. */
  value?: (row: T) => number;
  class?: (row: T) => string;
  /** less leaves the column out where there is room for five. */
  less?: boolean;
  /** wrap lets long text take several lines; else its end is cut, and a tooltip has it. */
  wrap?: boolean;
  /** href leads to what the cell names; "" is nowhere. */
  href?: (row: T) => string;
}

const collator = new Intl.Collator("en", { numeric: true });

/** sorted returns the rows that contain a text, in the order of a column; -1 keeps theirs. */
export function sorted<T>(rows: T[], columns: Array<Column<T>>, by: number, down: boolean, filter: string): T[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  let kept = rows;
  if (words.length > 0) {
    kept = rows.filter((row) => {
      const text = columns.map((c) => c.text(row)).join("\n").toLowerCase();
      return words.every((w) => text.includes(w));
    });
  }
  const c = columns[by];
  if (!c) return kept;
  const sign = down ? -1 : 1;
  if (c.number) {
    const value = c.value ?? ((row: T) => parseFloat(c.text(row)));
    const keyed = kept.map((row) => ({ row, at: value(row) }));
    // What has no value is last.
    keyed.sort((a, b) => (Number.isNaN(a.at) || Number.isNaN(b.at) ? Number(Number.isNaN(a.at)) - Number(Number.isNaN(b.at)) : sign * (a.at - b.at)));
    return keyed.map((k) => k.row);
  }
  const keyed = kept.map((row) => ({ row, at: c.text(row) }));
  keyed.sort((a, b) => sign * collator.compare(a.at, b.at));
  return keyed.map((k) => k.row);
}

/** Order is how a table is sorted, as an address keeps it: the title of a column, with - before it if it is sorted down. */
export function orderOf<T>(columns: Array<Column<T>>, text: string): { by: number; down: boolean } {
  const down = text.startsWith("-");
  return { by: columns.findIndex((c) => c.title === (down ? text.slice(1) : text)), down };
}

/** keyed returns rows with keys that differ: one that is there again gets a number. */
export function keyed<T>(rows: T[], key: (row: T) => string): Array<[string, T]> {
  const seen = new Map<string, number>();
  return rows.map((row) => {
    const k = key(row);
    const n = seen.get(k) ?? 0;
    seen.set(k, n + 1);
    return [n ? `${k} #${n}` : k, row];
  });
}

/** clock writes a time as it is here, to the second; "–" if there is none. */
export function clock(time: string | undefined): string {
  const t = new Date(time ?? "");
  return Number.isNaN(t.getTime()) ? "–" : t.toLocaleString("sv-SE"); // as ISO 8601 has it, so that order is that of time
}

const narrowest = 56; // pixels that a column of text keeps

/** widths divides the width of a table among its columns: numbers get what they need, text what is left, the longest
 * giving way first. All is in pixels; the sum is more than total only if not even narrow columns have room. */
export function widths(needs: number[], number: boolean[], total: number): number[] {
  const text = needs.filter((_, i) => !number[i]).sort((a, b) => a - b);
  let left = total - needs.reduce((sum, n, i) => sum + (number[i] ? n : 0), 0);
  const room = left - text.reduce((sum, n) => sum + n, 0);
  if (room >= 0) {
    const more = text.length > 0 ? room / text.length : room / needs.length;
    return needs.map((n, i) => (text.length > 0 && number[i] ? n : n + more));
  }
  // Those that need less than an equal share leave theirs to the others.
  let most = narrowest;
  for (const [i, n] of text.entries()) {
    most = Math.max(narrowest, left / (text.length - i));
    if (n > most) break;
    left -= n;
  }
  return needs.map((n, i) => (number[i] ? n : Math.min(n, most)));
}
