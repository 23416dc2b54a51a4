import { expect, test } from "vitest";

import { brief, diff } from "./diff";

const back = (before: string, after: string) => {
  const all = diff(before, after);
  return [all.filter((l) => l.kind !== "new").map((l) => l.text), all.filter((l) => l.kind !== "old").map((l) => l.text)];
};

test("a difference has both texts in it, whatever they are", () => {
  const word = (seed: number) => "abc\n"[seed % 4];
  for (let seed = 1; seed < 150; seed++) {
    let x = seed;
    const make = () => Array.from({ length: seed % 37 }, () => word(Math.floor((x = (x * 48271) % 2147483647) / 7))).join("\n");
    const [a, b] = [make(), make()];
    const lines = (t: string) => { const l = t.split("\n"); if (l[l.length - 1] === "") l.pop(); return l; };
    expect(back(a, b)).toEqual([lines(a), lines(b)]);
  }
});

test("a change is shown among the lines that stay", () => {
  const all = diff("a\nb\nc\n", "a\nx\nc\n");
  expect(all.map((l) => l.kind)).toEqual(["same", "old", "new", "same"]);
  expect(all[3]).toEqual({ kind: "same", text: "c", before: 3, after: 3 });
});

test("what stays far from changes is left out", () => {
  const text = Array.from({ length: 100 }, (_, i) => `line ${i}`);
  const other = [...text];
  other[50] = "changed";
  const short = brief(diff(text.join("\n"), other.join("\n")));
  expect(short).toHaveLength(10);
  expect(short[0]).toEqual({ kind: "gap", text: "47 lines that stay" });
});

test("large texts that differ everywhere take no time", () => {
  const a = Array.from({ length: 20000 }, (_, i) => `a${i}`).join("\n");
  const b = Array.from({ length: 20000 }, (_, i) => `b${i}`).join("\n");
  const began = performance.now();
  expect(diff(a, b)).toHaveLength(40000);
  expect(performance.now() - began).toBeLessThan(2000);
});
