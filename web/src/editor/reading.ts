/** What all text to read has: no changes, numbers of lines, search by keys. */
import { defaultKeymap } from "@codemirror/commands";
import { search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";

/** @param label what the text is, for readers of a screen. */
export function reading(label: string): Extension {
  return [
    EditorState.readOnly.of(true),
    lineNumbers(),
    highlightSpecialChars(),
    search({ top: true }),
    keymap.of([...searchKeymap, ...defaultKeymap]),
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
  ];
}
