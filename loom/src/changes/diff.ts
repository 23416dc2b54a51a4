/** Line is a line of a difference: kept, gone or new, with its number before and after. */
export interface Line {
  kind: "same" | "old" | "new" | "gap";
  text: string;
  before?: number;
  after?: number;
}

/** mostCells bounds the work of a difference: larger texts are shown as replaced where they differ. */
const mostCells = 4_000_000;

/** diff returns how the lines of one text become those of another. */
export function diff(before: string, after: string): Line[] {
  const a = linesOf(before);
  const b = linesOf(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const out: Line[] = [];
  let i = 0;
  let j = 0;
  const same = () => out.push({ kind: "same", text: a[i], before: ++i, after: ++j });
  const gone = () => out.push({ kind: "old", text: a[i], before: ++i });
  const added = () => out.push({ kind: "new", text: b[j], after: ++j });
  while (i < head) same();
  const n = a.length - head - tail;
  const m = b.length - head - tail;
  if (n * m <= mostCells) {
    // The longest common subsequence, from the end.
    const width = m + 1;
    const common = new Uint32Array((n + 1) * width);
    for (let x = n - 1; x >= 0; x--)
      for (let y = m - 1; y >= 0; y--)
        common[x * width + y] = a[head + x] === b[head + y] ? common[(x + 1) * width + y + 1] + 1 : Math.max(common[(x + 1) * width + y], common[x * width + y + 1]);
    while (i < head + n && j < head + m) {
      const at = (i - head) * width + (j - head);
      if (a[i] === b[j]) same();
      else if (common[at + width] >= common[at + 1]) gone();
      else added();
    }
  }
  while (i < head + n) gone();
  while (j < head + m) added();
  while (i < a.length) same();
  return out;
}

function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  return lines;
}

/** brief leaves out what stays the same, but for some lines around changes. */
export function brief(all: Line[], around = 3): Line[] {
  const out: Line[] = [];
  const near = new Uint8Array(all.length);
  all.forEach((l, i) => {
    if (l.kind !== "same") near.fill(1, Math.max(0, i - around), Math.min(all.length, i + around + 1));
  });
  for (let i = 0; i < all.length; i++) {
    if (near[i]) {
      out.push(all[i]);
      continue;
    }
    let end = i;
    while (end < all.length && !near[end]) end++;
    out.push({ kind: "gap", text: end - i === 1 ? "1 line that stays" : `${end - i} lines that stay` });
    i = end - 1;
  }
  return out;
}
