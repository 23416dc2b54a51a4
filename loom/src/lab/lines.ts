// A text and what an editor shows of it: the editor's lines end with \n alone, those
// of the text as they were written.

import { eolOf } from "./yamltext";

/** Change is what was typed in place of what the editor showed from one offset to another. */
export interface Change {
  from: number;
  to: number;
  insert: string;
}

/** shown returns a text as the editor shows it. */
export const shown = (text: string): string => (text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text);

/** retyped makes in a text the changes that were made in what is shown of it; they are in order. */
export function retyped(text: string, changes: Change[]): string {
  const eol = eolOf(text);
  const even = !text.includes("\r");
  let [at, seen] = [0, 0]; // the same place in the text and in what is shown
  const to = (offset: number) => {
    if (even) [at, seen] = [offset, offset];
    for (; seen < offset; seen++) at += text[at] === "\r" && text[at + 1] === "\n" ? 2 : 1;
    return at;
  };
  let out = "";
  let done = 0;
  for (const c of changes) {
    out += text.slice(done, to(c.from)) + (eol === "\n" ? c.insert : c.insert.replace(/\n/g, eol));
    done = to(c.to);
  }
  return out + text.slice(done);
}
