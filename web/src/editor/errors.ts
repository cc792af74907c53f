/** The line that an error is at. */
import { StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, type DecorationSet } from "@codemirror/view";

export const markLine = StateEffect.define<number | null>();
const errorLine = Decoration.line({ class: "cm-error-line" });

/** The mark goes once the text changes. */
export const errorField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    let next = transaction.docChanged ? Decoration.none : marks;
    for (const effect of transaction.effects) {
      if (!effect.is(markLine)) continue;
      const known = effect.value !== null && effect.value >= 1 && effect.value <= transaction.state.doc.lines;
      next = known
        ? Decoration.set([errorLine.range(transaction.state.doc.line(effect.value!).from)])
        : Decoration.none;
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});
