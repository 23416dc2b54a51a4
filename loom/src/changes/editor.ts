// The text editor, loaded when a text is opened.

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Annotation, Compartment, EditorState } from "@codemirror/state";
import { tags } from "@lezer/highlight";
import { EditorView } from "@codemirror/view";

import { nonce } from "../ui/nonce";
import { basics, yaml } from "../ui/textbasics";
import { mark, marks } from "../ui/textmarks";
import type { Problem } from "./texts";

const outside = Annotation.define<boolean>();

const look = EditorView.theme({
  "&": { maxHeight: "60vh", color: "var(--text)", backgroundColor: "var(--ground)", border: "1px solid var(--line)", borderRadius: "6px" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { font: "13px/1.45 var(--mono)", overflow: "auto" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--dim)", border: "0" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 10%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-panels, .cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
});
const highlight = HighlightStyle.define([
  { tag: tags.atom, color: "var(--accent)" },
  { tag: tags.comment, color: "var(--dim)", fontStyle: "italic" },
]);

export interface Editor {
  set(text: string): void;
  lock(locked: boolean): void;
  /** problems marks the lines that are wrong. */
  problems(all: Problem[]): void;
  /** go moves to a line. */
  go(line: number): void;
  close(): void;
}

/** span returns where a line is; the last one if there are not as many. */
const span = (view: EditorView, line: number) => view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));

/** open makes an editor in an element; typed hears what the user types. */
export function open(parent: HTMLElement, label: string, text: string, typed: (text: string) => void): Editor {
  const locks = new Compartment();
  const view = new EditorView({
    parent,
    doc: text,
    extensions: [
      basics,
      EditorView.cspNonce.of(nonce()),
      yaml,
      look,
      syntaxHighlighting(highlight),
      locks.of([]),
      marks,
      EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
      EditorView.updateListener.of((u) => {
        if (u.docChanged && !u.transactions.some((t) => t.annotation(outside))) typed(u.state.doc.toString());
      }),
    ],
  });
  return {
    problems(all) {
      mark(view, all);
    },
    go(line) {
      const { from, to } = span(view, line);
      view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      view.focus();
    },
    set(next) {
      if (view.state.doc.toString() !== next) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next }, annotations: outside.of(true) });
    },
    lock: (locked) => view.dispatch({ effects: locks.reconfigure(EditorState.readOnly.of(locked)) }),
    close: () => view.destroy(),
  };
}
