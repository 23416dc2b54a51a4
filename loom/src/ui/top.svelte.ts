import type { Snippet } from "svelte";

/** Bar is what a page adds to the bar above it: facts behind the title, and its actions at the right. */
export interface Bar {
  facts?: Snippet;
  actions?: Snippet;
}

class Top {
  bar = $state.raw<Bar>({});

  /** show shows what a page adds, until the function that it returns is called. */
  show(bar: Bar): () => void {
    this.bar = bar;
    return () => {
      if (this.bar === bar) this.bar = {};
    };
  }
}

export const top = new Top();
