import { expect, test, vi } from "vitest";

import { Design } from "./design.svelte";
import { draw, sketch, templates } from "./templates";

test("every template makes a network, drawn in small inside of its box", () => {
  for (const t of templates) {
    const s = sketch(t);
    expect(s.switches.length, t.title).toBeGreaterThan(1);
    for (const [x, y] of [...s.switches, ...s.hosts]) expect(x >= 0 && x <= 100 && y >= 0 && y <= 62, t.title).toBe(true);
    expect(s.lines.length).toBeGreaterThanOrEqual(s.switches.length - 1);
    expect(s.facts).toMatch(/^\d+ switches/);
  }
});

const store = new Map<string, string>();
vi.stubGlobal("localStorage", { getItem: (k: string) => store.get(k) ?? null, setItem: (k: string, v: string) => void store.set(k, v), removeItem: (k: string) => void store.delete(k), key: (i: number) => [...store.keys()][i] ?? null, get length() { return store.size; } });

test("a template is drawn without problems, and in a draft of its own if something is drawn", () => {
  const d = new Design();
  for (const t of templates) {
    const before = d.draft.id;
    const had = d.lab.nodes.length;
    draw(d, t);
    expect(d.draft.id !== before, t.title).toBe(had > 0);
    expect(d.model.name, t.title).toBe(t.model);
    expect(d.problems.filter((p) => !p.lacks), t.title).toEqual([]);
  }
});
