/** Text to read, with search: line numbers, and lines that lead elsewhere. */
import { openSearchPanel } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { pointAt, pointField } from "./line_mark.js";
import { reading } from "./reading.js";

export interface ReaderOptions {
  parent: HTMLElement;
  text: string;
  label: string;
  /** The pointer or the cursor is at a line (from 1), or at none. */
  onLine?(line: number | null): void;
  /** A line was clicked, or Enter pressed in it. */
  onChoose?(line: number): void;
}

export interface Reader {
  search(): void;
  destroy(): void;
}

export function createReader({ parent, text, label, onLine, onChoose }: ReaderOptions): Reader {
  let shown: number | null = null;
  const at = (view: EditorView, event: MouseEvent): number | null => {
    const position = view.posAtCoords({ x: event.clientX, y: event.clientY });
    return position === null ? null : view.state.doc.lineAt(position).number;
  };
  const tell = (view: EditorView, line: number | null): void => {
    if (line === shown) return;
    shown = line;
    view.dispatch({ effects: pointAt.of(line) });
    onLine?.(line);
  };
  const cursor = (view: EditorView): number => view.state.doc.lineAt(view.state.selection.main.head).number;
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([{ key: "Enter", run: (view) => (onChoose?.(cursor(view)), onChoose !== undefined) }]),
        reading(label),
        onLine ? pointField : [],
        EditorView.domEventHandlers({
          mousemove: (event, view) => void (onLine && tell(view, at(view, event))),
          mouseleave: (_, view) => void (onLine && tell(view, null)),
          click(event, view) {
            const line = at(view, event);
            if (line !== null && view.state.selection.main.empty) onChoose?.(line);
          },
        }),
        EditorView.updateListener.of((update) => {
          if (onLine && update.selectionSet && !update.docChanged) {
            const line = cursor(update.view);
            queueMicrotask(() => tell(update.view, line));
          }
        }),
      ],
    }),
  });
  return {
    search: () => void openSearchPanel(view),
    destroy() {
      onLine?.(null);
      view.destroy();
    },
  };
}
