// How wide the sheet at the right of a page is, in pixels; the browser keeps it.

export const [least, usual, most] = [300, 396, 640];

const stored = "loom.sheet";

/** bounded returns the nearest width that a sheet may have. */
export const bounded = (width: number) => Math.min(most, Math.max(least, Math.round(width) || usual));

/** readWidth returns the width that was chosen last. */
export function readWidth(): number {
  try {
    return bounded(Number(localStorage.getItem(stored) ?? usual));
  } catch {
    return usual; // the browser keeps nothing
  }
}

export function writeWidth(width: number) {
  try {
    localStorage.setItem(stored, String(width));
  } catch {
    // No room: it is that of this visit.
  }
}
