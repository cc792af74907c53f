/** A line of the text that is marked: one that an error is at, or that something beside the editor speaks of. */
import { StateEffect, StateField, type StateEffectType } from "@codemirror/state";
import { Decoration, EditorView, type DecorationSet } from "@codemirror/view";

export interface LineMark {
  /** Marks the line of this number, from 1, and no other; null, or a line that is not there, marks none. */
  mark: StateEffectType<number | null>;
  field: StateField<DecorationSet>;
}

/** A mark that goes once the text changes. */
export function lineMark(className: string): LineMark {
  const mark = StateEffect.define<number | null>();
  const marked = Decoration.line({ class: className });
  const field = StateField.define<DecorationSet>({
    create: () => Decoration.none,
    update(marks, transaction) {
      let next = transaction.docChanged ? Decoration.none : marks;
      const { doc } = transaction.state;
      for (const effect of transaction.effects) {
        if (!effect.is(mark)) continue;
        const known = effect.value !== null && effect.value >= 1 && effect.value <= doc.lines;
        next = known ? Decoration.set([marked.range(doc.line(effect.value!).from)]) : Decoration.none;
      }
      return next;
    },
    provide: (field) => EditorView.decorations.from(field),
  });
  return { mark, field };
}

/** The line that an error is at. */
export const { mark: markLine, field: errorField } = lineMark("cm-error-line");

/** The line that something beside the editor speaks of. */
export const { mark: pointAt, field: pointField } = lineMark("cm-pointed-line");
