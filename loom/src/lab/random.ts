/** Random is a source of numbers that are the same for the same seed. */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** next returns a number from 0 up to 1 (mulberry32). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  /** below returns a whole number from 0 up to n. */
  below(n: number): number {
    return Math.floor(this.next() * n);
  }

  pick<T>(of: readonly T[]): T {
    return of[this.below(of.length)];
  }

  /** shuffle returns the items in another order. */
  shuffle<T>(of: readonly T[]): T[] {
    const out = [...of];
    for (let i = out.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [out[i], out[j]] = [out[j], out[i]];
    }
    return out;
  }
}
