/** A short message beside a place in the text, until the next key. */
import { StateEffect, StateField, type Extension } from "@codemirror/state";
import { keymap, showTooltip, type EditorView, type Tooltip } from "@codemirror/view";
import { create } from "../elements.js";

const note = StateEffect.define<Tooltip | null>();

const field = StateField.define<Tooltip | null>({
  create: () => null,
  update(tooltip, transaction) {
    for (const effect of transaction.effects) if (effect.is(note)) return effect.value;
    return transaction.docChanged || transaction.selection ? null : tooltip;
  },
  provide: (self) => showTooltip.from(self),
});

export function say(view: EditorView, pos: number, text: string): void {
  const show = () => {
    const dom = create("div", "weft-note", text);
    dom.setAttribute("role", "status");
    return { dom: create("div", "", dom) };
  };
  view.dispatch({ effects: note.of({ pos, above: true, create: show }) });
}

export function notes(): Extension {
  const hide = (view: EditorView) => {
    if (!view.state.field(field)) return false;
    view.dispatch({ effects: note.of(null) });
    return true;
  };
  return [field, keymap.of([{ key: "Escape", run: hide }])];
}
