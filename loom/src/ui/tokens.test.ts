import { expect, test } from "vitest";

import css from "../app.css?raw";

/** tokens are the colours of app.css: what each is in the light, and in the dark. */
const tokens = new Map([...css.matchAll(/--([\w-]+): (?:light-dark\((#\w{6}), (#\w{6})\)|(#\w{6}));/g)].map(([, name, light, dark, both]) => [name, [light ?? both, dark ?? both]] as const));

const channel = (hex: string) => {
  const v = parseInt(hex, 16) / 255;
  return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
};
const luminance = (c: string) => 0.2126 * channel(c.slice(1, 3)) + 0.7152 * channel(c.slice(3, 5)) + 0.0722 * channel(c.slice(5, 7));

/** contrast is that of two tokens by WCAG 2.2, the lower of both themes. */
function contrast(a: string, b: string): number {
  return Math.min(
    ...[0, 1].map((theme) => {
      const [x, y] = [a, b].map((name) => luminance(tokens.get(name)![theme])).sort((p, q) => q - p);
      return (x + 0.05) / (y + 0.05);
    }),
  );
}

const surfaces = ["ground", "surface", "raised", "hover"];

test("words can be read on every surface, in both themes", () => {
  for (const word of ["text", "dim"]) for (const on of surfaces) expect(contrast(word, on), `${word} on ${on}`).toBeGreaterThanOrEqual(4.5);
  for (const word of ["accent", "good", "warn", "bad"]) for (const on of ["ground", "surface", "raised", `${word}-soft`]) expect(contrast(word, on), `${word} on ${on}`).toBeGreaterThanOrEqual(4.5);
  expect(contrast("on-accent", "accent-fill")).toBeGreaterThanOrEqual(4.5);
  expect(contrast("text", "accent-soft")).toBeGreaterThanOrEqual(4.5);
});

test("borders of inputs and links that carry something stand out", () => {
  for (const line of ["line-strong", "use-1", "use-2", "use-3", "use-4"]) for (const on of ["ground", "surface"]) expect(contrast(line, on), `${line} on ${on}`).toBeGreaterThanOrEqual(3);
});
