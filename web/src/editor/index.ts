/** The program's editor: CodeMirror with Python, in the page's colours. */
import { indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, keymap, type DecorationSet } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.self], color: "var(--syntax-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--syntax-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--syntax-number)" },
  {
    tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)],
    color: "var(--syntax-name)",
    fontWeight: "600",
  },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.meta], color: "var(--syntax-name)" },
  { tag: tags.comment, color: "var(--syntax-comment)", fontStyle: "italic" },
]);

const markLine = StateEffect.define<number | null>();
const errorLine = Decoration.line({ class: "cm-error-line" });

/** The marked line moves with the text and goes once the text changes in it. */
const errorField = StateField.define<DecorationSet>({
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

/** Answers questions about the program; null while Python is busy or not ready. */
export interface Asker {
  ask(topic: "complete" | "hover" | "signature" | "definition" | "shapes", about: unknown): Promise<unknown>;
}

export type IndexSource = () => Promise<unknown>;

export interface EditorOptions {
  parent: HTMLElement;
  text: string;
  language: "python" | "markdown";
  label: string;
  onRun(how: "stay" | "advance"): void;
  onChange(text: string): void;
  asker: Asker | null;
  index: IndexSource;
  /** Sources of the cells before this one, whose names it may use. */
  before?(): string[];
  openSource?(module: string, line: number, text: string): void;
}

export interface Editor {
  text(): string;
  replace(text: string): void;
  /** Marks a line (from 1) as the place of an error, or none. */
  markError(line: number | null): void;
  goto(line: number): void;
  focus(): void;
  destroy(): void;
}

export function createEditor({ parent, text, language, label, onRun, onChange }: EditorOptions): Editor {
  const run = (how: "stay" | "advance") => () => {
    onRun(how);
    return true;
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(
          keymap.of([
            { key: "Mod-Enter", run: run("stay") },
            { key: "Shift-Enter", run: run("advance") },
          ]),
        ),
        basicSetup,
        keymap.of([indentWithTab]),
        indentUnit.of("    "),
        language === "python" ? python() : [],
        syntaxHighlighting(colours),
        errorField,
        EditorView.contentAttributes.of({ "aria-label": label }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    replace: (next) =>
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: next },
        selection: { anchor: 0 },
        scrollIntoView: true,
      }),
    markError: (line) => view.dispatch({ effects: markLine.of(line) }),
    goto(line) {
      const { from } = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
      view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      view.focus();
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
