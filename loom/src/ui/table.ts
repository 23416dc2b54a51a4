/** Column is a column of a table: its title and the text of a row in it. */
export interface Column<T> {
  title: string;
  text: (row: T) => string;
  /** number aligns it right, and sorts by value. */
  number?: boolean;
  class?: (row: T) => string;
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
  if (by < 0) return kept;
  const c = columns[by];
  const order = (a: T, b: T) => (c.number ? parseFloat(c.text(a)) - parseFloat(c.text(b)) || 0 : collator.compare(c.text(a), c.text(b)));
  return [...kept].sort((a, b) => (down ? -order(a, b) : order(a, b)));
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
