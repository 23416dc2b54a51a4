/** Toast says what was done, and may take it back. */
export interface Toast {
  id: number;
  text: string;
  undo?: () => void;
}

const shown = 8000; // milliseconds that a toast stays
const most = 3; // at a time

class Toasts {
  all = $state.raw<Toast[]>([]);
  private last = 0;
  private timers = new Map<number, number>();

  /** say shows what was done; undo takes it back. */
  say(text: string, undo?: () => void) {
    const toast = { id: ++this.last, text, undo };
    for (const old of this.all.slice(0, -most + 1)) this.close(old.id);
    this.all = [...this.all, toast];
    this.start(toast.id);
  }

  /** start begins to count the time that a toast stays, anew. */
  start(id: number) {
    this.hold(id);
    this.timers.set(id, window.setTimeout(() => this.close(id), shown));
  }

  /** hold has a toast stay, such as while the mouse or the focus is on it. */
  hold(id: number) {
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
  }

  close(id: number) {
    this.hold(id);
    this.all = this.all.filter((t) => t.id !== id);
  }
}

export const toasts = new Toasts();
