/** The line that something beside the editor speaks of. */
import { StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, type DecorationSet } from "@codemirror/view";

export const pointAt = StateEffect.define<number | null>();
const pointed = Decoration.line({ class: "cm-pointed-line" });

/** The mark goes once the text changes. */
export const pointField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    let next = transaction.docChanged ? Decoration.none : marks;
    const { doc } = transaction.state;
    for (const effect of transaction.effects) {
      if (!effect.is(pointAt)) continue;
      const known = effect.value !== null && effect.value >= 1 && effect.value <= doc.lines;
      next = known ? Decoration.set([pointed.range(doc.line(effect.value!).from)]) : Decoration.none;
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});
