/** Step is one change of a text: what stood at an offset, and what stands there now. */
interface Step {
  at: number;
  was: string;
  is: string;
  what: string;
  time: number;
}

const mostSteps = 500;
const mostCharacters = 16 << 20;
const together = 800; // milliseconds in which what is typed is one step

/** History undoes and does again the changes of a text. */
export class History {
  private done: Step[] = [];
  private undone: Step[] = [];
  private held = 0;

  constructor(public text: string) {}

  /** undoes and redoes say what undo and redo would do; empty if nothing. */
  get undoes(): string {
    return this.done.at(-1)?.what ?? "";
  }
  get redoes(): string {
    return this.undone.at(-1)?.what ?? "";
  }

  /** change makes text the newest; false if it is the same. Typing goes into one step. */
  change(text: string, what: string, time = Date.now()): boolean {
    const was = this.text;
    if (text === was) return false;
    let from = 0;
    const least = Math.min(was.length, text.length);
    while (from < least && was[from] === text[from]) from++;
    let tail = 0;
    while (tail < least - from && was[was.length - 1 - tail] === text[text.length - 1 - tail]) tail++;
    const step: Step = { at: from, was: was.slice(from, was.length - tail), is: text.slice(from, text.length - tail), what, time };
    const last = this.done.at(-1);
    if (last && what === "typing" && last.what === what && time - last.time < together && step.at === last.at + last.is.length && step.was === "") {
      last.is += step.is;
      last.time = time;
    } else {
      this.done.push(step);
    }
    this.held += step.was.length + step.is.length;
    for (const s of this.undone) this.held -= s.was.length + s.is.length;
    this.undone = [];
    while (this.done.length > 1 && (this.done.length > mostSteps || this.held > mostCharacters)) {
      const s = this.done.shift()!;
      this.held -= s.was.length + s.is.length;
    }
    this.text = text;
    return true;
  }

  /** undo takes the last change back; false if there is none. */
  undo(): boolean {
    const s = this.done.pop();
    if (!s) return false;
    this.text = this.text.slice(0, s.at) + s.was + this.text.slice(s.at + s.is.length);
    this.undone.push(s);
    return true;
  }

  /** redo makes the last change again that was taken back; false if there is none. */
  redo(): boolean {
    const s = this.undone.pop();
    if (!s) return false;
    this.text = this.text.slice(0, s.at) + s.is + this.text.slice(s.at + s.was.length);
    this.done.push(s);
    return true;
  }
}
