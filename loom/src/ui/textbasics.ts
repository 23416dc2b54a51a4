// What both text editors have: lines with numbers, undo, folding, search. There is no completion.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, foldService, StreamLanguage } from "@codemirror/language";
import { yaml as mode } from "@codemirror/legacy-modes/mode/yaml";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import type { EditorState, Extension } from "@codemirror/state";
import { drawSelection, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";

export const basics: Extension = [
  lineNumbers(),
  foldGutter(),
  highlightActiveLineGutter(),
  highlightActiveLine(),
  highlightSpecialChars(),
  history(),
  drawSelection(),
  bracketMatching(),
  highlightSelectionMatches(),
  keymap.of([...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap]),
];

const blank = /^\s*(#|$)/;
const depth = (text: string) => text.search(/\S/);

/** below returns where the lines end that are indented deeper than the one that begins at an offset; null if there are none. */
function below(state: EditorState, start: number): { from: number; to: number } | null {
  const head = state.doc.lineAt(start);
  if (blank.test(head.text)) return null;
  let to = head.to;
  for (let n = head.number + 1; n <= state.doc.lines; n++) {
    const line = state.doc.line(n);
    if (blank.test(line.text)) continue;
    if (depth(line.text) <= depth(head.text)) break;
    to = line.to;
  }
  return to > head.to ? { from: head.to, to } : null;
}

/** yaml is the language of all texts: its parts are told apart by colour, and folded by indentation. */
export const yaml: Extension = [StreamLanguage.define(mode), foldService.of(below)];
