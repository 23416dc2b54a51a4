// The text editor, loaded when it is opened.

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Annotation, Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import { nonce } from "../ui/nonce";
import { basics, yaml } from "../ui/textbasics";
import { mark, marks } from "../ui/textmarks";
import type { Problem } from "./document";
import { retyped, shown, type Change } from "./lines";

const outside = Annotation.define<boolean>();

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--ground)", border: "1px solid var(--line)", borderRadius: "6px" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { font: "13px/1.45 var(--mono)", overflow: "auto" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--dim)", border: "0" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 10%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection": { backgroundColor: "color-mix(in srgb, var(--accent) 30%, transparent) !important" },
  ".cm-panels, .cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
});
const highlight = HighlightStyle.define([
  { tag: tags.atom, color: "var(--accent)" },
  { tag: tags.comment, color: "var(--dim)", fontStyle: "italic" },
  { tag: tags.string, color: "var(--text)" },
]);

export interface Editor {
  /** set shows another text, and leaves the cursor where it is. */
  set(text: string): void;
  problems(all: Problem[]): void;
  /** go moves to a line. */
  go(line: number): void;
  close(): void;
}

/** open makes an editor in an element; typed hears what the user types. */
export function open(parent: HTMLElement, text: string, typed: (text: string) => void, undo: () => void, redo: () => void): Editor {
  const turn = (f: () => void) => () => {
    f();
    return true;
  };
  let exact = text;
  const view = new EditorView({
    parent,
    doc: text,
    extensions: [
      Prec.highest(
        keymap.of([
          { key: "Mod-z", run: turn(undo), preventDefault: true },
          { key: "Mod-y", run: turn(redo), preventDefault: true },
          { key: "Mod-Shift-z", run: turn(redo), preventDefault: true },
        ]),
      ),
      basics,
      EditorView.cspNonce.of(nonce()),
      yaml,
      marks,
      look,
      syntaxHighlighting(highlight),
      EditorView.contentAttributes.of({ "aria-label": "Text of the lab file", tabindex: "0" }),
      EditorView.updateListener.of((u) => {
        if (!u.docChanged || u.transactions.some((t) => t.annotation(outside))) return;
        const changes: Change[] = [];
        u.changes.iterChanges((from, to, _from, _to, insert) => changes.push({ from, to, insert: insert.toString() }));
        typed((exact = retyped(exact, changes)));
      }),
    ],
  });
  return {
    set(whole) {
      exact = whole;
      const next = shown(whole);
      const is = view.state.doc.toString();
      if (is === next) return;
      let from = 0;
      const least = Math.min(is.length, next.length);
      while (from < least && is[from] === next[from]) from++;
      let tail = 0;
      while (tail < least - from && is[is.length - 1 - tail] === next[next.length - 1 - tail]) tail++;
      view.dispatch({ changes: { from, to: is.length - tail, insert: next.slice(from, next.length - tail) }, annotations: outside.of(true), effects: EditorView.scrollIntoView(Math.min(from, next.length)) });
    },
    problems(all) {
      mark(view, all.slice(0, 100).map((p) => ({ line: p.line, text: p.text + (p.allowed ? `; allowed: ${p.allowed}` : "") })));
    },
    go(line) {
      const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
      view.dispatch({ selection: { anchor: at.from, head: at.to }, effects: EditorView.scrollIntoView(at.from, { y: "center" }) });
      view.focus();
    },
    close: () => view.destroy(),
  };
}
