/** Shows the source of a module at a line, to read. */
import { python } from "@codemirror/lang-python";
import { syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine } from "@codemirror/view";
import { create } from "../elements.js";
import { reading } from "./reading.js";
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
  const title = create("h2", "", module);
  title.id = "source-title";
  const dialog = create("dialog", "weft-source", create("header", "", title, close)) as HTMLDialogElement;
  dialog.setAttribute("aria-labelledby", title.id);
  const view = new EditorView({
    parent: dialog,
    state: EditorState.create({
      doc: text,
      extensions: [
        reading(`Source of ${module}, to read`),
        python().language,
        syntaxHighlighting(colours),
        highlightActiveLine(),
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
