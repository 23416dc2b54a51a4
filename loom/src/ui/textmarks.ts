// Lines of a text that are wrong: marked in the margin and underlined, with what is wrong as a tooltip.

import { RangeSetBuilder, StateEffect, StateField, type EditorState, type Extension, type RangeSet } from "@codemirror/state";
import { Decoration, EditorView, gutter, GutterMarker, type DecorationSet } from "@codemirror/view";

/** Wrong is a line, counted from 1, and what is wrong with it. */
export interface Wrong {
  line: number;
  text: string;
}

class Sign extends GutterMarker {
  constructor(readonly text: string) {
    super();
  }
  eq(other: Sign) {
    return other.text === this.text;
  }
  toDOM() {
    const sign = document.createElement("span");
    sign.className = "cm-lint-marker-error";
    sign.title = this.text;
    sign.textContent = "!";
    return sign;
  }
}

interface Marks {
  signs: RangeSet<GutterMarker>;
  lines: DecorationSet;
}

const replaced = StateEffect.define<Wrong[]>();

function marksOf(state: EditorState, all: Wrong[]): Marks {
  const texts = new Map<number, string>();
  for (const { line, text } of all) {
    const at = Math.min(Math.max(line, 1), state.doc.lines);
    texts.set(at, texts.has(at) ? `${texts.get(at)}\n${text}` : text);
  }
  const [signs, lines] = [new RangeSetBuilder<GutterMarker>(), new RangeSetBuilder<Decoration>()];
  for (const [n, text] of [...texts].sort((a, b) => a[0] - b[0])) {
    const { from } = state.doc.line(n);
    signs.add(from, from, new Sign(text));
    lines.add(from, from, Decoration.line({ class: "cm-wrong", attributes: { title: text } }));
  }
  return { signs: signs.finish(), lines: lines.finish() };
}

const field = StateField.define<Marks>({
  create: (state) => marksOf(state, []),
  update(marks, tr) {
    const fresh = tr.effects.find((e) => e.is(replaced));
    return fresh ? marksOf(tr.state, fresh.value as Wrong[]) : { signs: marks.signs.map(tr.changes), lines: marks.lines.map(tr.changes) };
  },
  provide: (f) => EditorView.decorations.from(f, (marks) => marks.lines),
});

/** marks lets an editor mark lines. */
export const marks: Extension = [
  field,
  gutter({ class: "cm-gutter-wrong", markers: (view) => view.state.field(field).signs }),
  EditorView.theme({
    ".cm-gutter-wrong": { width: "1.2em" },
    ".cm-lint-marker-error": { color: "var(--bad)", fontWeight: "600", paddingLeft: "4px" },
    ".cm-wrong": { textDecoration: "underline wavy var(--bad)", textDecorationSkipInk: "none" },
  }),
];

/** mark marks lines, and no others. */
export const mark = (view: EditorView, all: Wrong[]) => view.dispatch({ effects: replaced.of(all) });
