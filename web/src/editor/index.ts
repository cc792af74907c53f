/** The editor of a cell or a script: CodeMirror with its extensions for Python and weft. */
import {
  acceptCompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  startCompletion,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentLess, indentMore, toggleComment } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, Prec, type Extension, type StateEffect } from "@codemirror/state";
import {
  drawSelection,
  dropCursor,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  rectangularSelection,
} from "@codemirror/view";
import { signatureHelp } from "./arguments.js";
import { completion } from "./complete.js";
import { formatted } from "./format.js";
import { hover } from "./hover.js";
import { Knowledge, knowledge, type Surroundings } from "./knowledge.js";
import { undefinedNames } from "./lint.js";
import { navigation } from "./navigate.js";
import { notes, say } from "./notes.js";
import { errorField, markLine, pointAt, pointField } from "./line_mark.js";
import { colours } from "./theme.js";

export type { Asker, IndexSource, Topic } from "./knowledge.js";
export { loadIndex, type LanguageIndex } from "./language.js";
export { showSource } from "./source.js";

export interface EditorOptions extends Surroundings {
  parent: HTMLElement;
  text: string;
  language: "python" | "markdown";
  /** Its name for screen readers. */
  label: string;
  /** To read, not to change. */
  readOnly?: boolean;
  /** Without line numbers and without marks for folding. */
  plain?: boolean;
  onRun(how: "stay" | "advance"): void;
  onChange(text: string): void;
}

export interface Editor {
  text(): string;
  replace(text: string): void;
  /** Marks a line (from 1) as the place of an error, or no line. */
  markError(line: number | null): void;
  /** Marks a line (from 1) as what something beside the editor speaks of, or no line. */
  point(line: number | null): void;
  goto(line: number): void;
  focus(): void;
  view: EditorView;
  /** Lays the program out as ruff does. */
  format(): Promise<void>;
  destroy(): void;
}

/** Tab accepts a completion, asks for one after a name, and indents otherwise. */
function tab(view: EditorView): boolean {
  if (acceptCompletion(view)) return true;
  const { main } = view.state.selection;
  const before = view.state.sliceDoc(Math.max(0, main.head - 1), main.head);
  const after = view.state.sliceDoc(main.head, main.head + 1);
  if (main.empty && /[\p{L}\p{N}_.]/u.test(before) && !/[\p{L}\p{N}_]/u.test(after)) return startCompletion(view);
  return indentMore(view);
}

// Shared by all editors: they are made once.
const common: Extension = [
  highlightSpecialChars(),
  history(),
  drawSelection(),
  dropCursor(),
  EditorState.allowMultipleSelections.of(true),
  rectangularSelection({ eventFilter: (event) => event.altKey && event.shiftKey && event.button === 0 }),
  indentOnInput(),
  indentUnit.of("    "),
  EditorState.tabSize.of(4),
  bracketMatching(),
  closeBrackets(),
  highlightActiveLine(),
  highlightSelectionMatches(),
  search({ top: true }),
  syntaxHighlighting(colours),
  notes(),
];

const keys: Extension = [
  keymap.of([
    { key: "Tab", run: tab, shift: indentLess },
    { key: "Mod-/", run: toggleComment },
  ]),
  keymap.of([
    ...closeBracketsKeymap,
    ...defaultKeymap,
    ...searchKeymap,
    ...historyKeymap,
    ...foldKeymap,
    ...completionKeymap,
    ...lintKeymap,
  ]),
];

const gutters: Extension = [lineNumbers(), highlightActiveLineGutter(), foldGutter()];

const forPython: Extension = [
  python().language,
  errorField,
  pointField,
  completion(),
  hover(),
  signatureHelp(),
  navigation(),
  undefinedNames(),
];

export function createEditor(options: EditorOptions): Editor {
  const { parent, label, language, onRun, onChange } = options;
  const later = new Compartment();
  const run = (how: "stay" | "advance") => () => {
    onRun(how);
    return true;
  };
  const view: EditorView = new EditorView({
    parent,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        Prec.highest(
          keymap.of([
            { key: "Mod-Enter", run: run("stay") },
            { key: "Shift-Enter", run: run("advance") },
          ]),
        ),
        knowledge.of(new Knowledge(options)),
        language === "python" && !options.plain ? gutters : [],
        EditorState.readOnly.of(options.readOnly ?? false),
        language === "python" ? [forPython, keymap.of([{ key: "Shift-Alt-f", run: () => (void format(), true) }])] : [],
        later.of(language === "markdown" ? EditorView.lineWrapping : []),
        common,
        keys,
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  if (language === "markdown")
    void import("./markdown.js").then(
      ({ markdownWithMath }) =>
        view.dispatch({ effects: later.reconfigure([EditorView.lineWrapping, markdownWithMath()]) }),
      () => undefined, // offline: without colours
    );

  async function format(): Promise<void> {
    if (language !== "python") return;
    const before = view.state.doc;
    let text: string;
    try {
      text = await formatted(before.toString());
    } catch (error) {
      return say(view, view.state.selection.main.head, error instanceof Error ? error.message : String(error));
    }
    if (view.state.doc === before) replaceChanged(view, text);
  }

  return {
    view,
    text: () => view.state.doc.toString(),
    replace: (text) =>
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: text },
        selection: { anchor: 0 },
        scrollIntoView: true,
      }),
    markError: (line) => view.dispatch({ effects: markLine.of(line) }),
    point(line) {
      const known = line !== null && line >= 1 && line <= view.state.doc.lines;
      const effects: StateEffect<unknown>[] = [pointAt.of(line)];
      if (known) effects.push(EditorView.scrollIntoView(view.state.doc.line(line).from, { y: "nearest", yMargin: 30 }));
      view.dispatch({ effects });
    },
    goto(line) {
      const { from } = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
      view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      view.focus();
    },
    focus: () => view.focus(),
    format,
    destroy: () => view.destroy(),
  };
}

/** Replaces the lines that differ; the cursor stays in its line and column. */
function replaceChanged(view: EditorView, text: string): void {
  const old = view.state.doc.toString();
  if (old === text) return;
  let start = 0;
  while (start < old.length && start < text.length && old[start] === text[start]) start++;
  let end = 0;
  while (end < Math.min(old.length, text.length) - start && old[old.length - 1 - end] === text[text.length - 1 - end])
    end++;
  const head = view.state.selection.main.head;
  const line = view.state.doc.lineAt(head);
  view.dispatch({
    changes: { from: start, to: old.length - end, insert: text.slice(start, text.length - end) },
    userEvent: "format",
  });
  const target = view.state.doc.line(Math.min(line.number, view.state.doc.lines));
  view.dispatch({ selection: { anchor: Math.min(target.from + head - line.from, target.to) } });
}
