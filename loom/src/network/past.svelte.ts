/** kept is how far back figures are kept, in milliseconds. */
export const kept = 300_000;

/** Moment is what a figure was at a time. */
export interface Moment {
  at: number; // milliseconds since 1970
  value: number;
}

/** Figure names a number of the whole network. */
export type Figure = "switches" | "traffic" | "busiest" | "changes";

/** Past keeps figures that the controller does not: they begin when Loom is opened. */
class Past {
  all = $state.raw<Record<Figure, Moment[]>>({ switches: [], traffic: [], busiest: [], changes: [] });

  /** take notes what figures are now; what is not known is left out. */
  take(figures: Partial<Record<Figure, number>>, now = Date.now()) {
    const all = { ...this.all };
    for (const [name, value] of Object.entries(figures) as Array<[Figure, number]>) {
      if (Number.isFinite(value)) all[name] = [...all[name].filter((m) => m.at > now - kept), { at: now, value }];
    }
    this.all = all;
  }
}

export const past = new Past();
