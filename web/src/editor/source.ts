/** Shows the source of a module at a line, to read. */
import { defaultKeymap } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { syntaxHighlighting } from "@codemirror/language";
import { search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { element } from "./describe.js";
import { colours } from "./theme.js";

/**
 * Opens a dialog over the page; it closes by Escape, by its button, and by a click beside it.
 *
 * @param place where it stands: what has the styles.
 */
export function showSource(module: string, line: number, text: string, place: Node = document.body): void {
  const close = Object.assign(document.createElement("button"), {
    type: "button",
    className: "icon",
    textContent: "×",
  });
  close.setAttribute("aria-label", "Close");
  const title = element("h2", "", module);
  title.id = "source-title";
  const dialog = element("dialog", "weft-source", element("header", "", title, close)) as HTMLDialogElement;
  dialog.setAttribute("aria-labelledby", title.id);
  const view = new EditorView({
    parent: dialog,
    state: EditorState.create({
      doc: text,
      extensions: [
        EditorState.readOnly.of(true),
        lineNumbers(),
        highlightSpecialChars(),
        python().language,
        syntaxHighlighting(colours),
        search({ top: true }),
        keymap.of([...defaultKeymap, ...searchKeymap]),
        highlightActiveLine(),
        EditorView.contentAttributes.of({ "aria-label": `Source of ${module}, to read`, tabindex: "0" }),
      ],
    }),
  });
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => {
    view.destroy();
    dialog.remove();
  });
  place.appendChild(dialog);
  dialog.showModal();
  const { from } = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
  view.dispatch({
    selection: { anchor: from },
    effects: EditorView.scrollIntoView(from, { y: "start", yMargin: 60 }),
  });
  view.focus();
}
