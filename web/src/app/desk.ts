/** The document that is open, and its view. */
import { newCell, type Document } from "../documents/model.js";
import type { Outputs } from "../documents/outputs.js";
import { fromPercent, toPercent } from "../documents/percent.js";
import type { Asker, Editor, IndexSource } from "../editor/index.js";
import { NotebookView } from "../notebook/notebook.js";
import type { DocumentView, Runner } from "../notebook/runner.js";
import { ScriptView } from "../notebook/script.js";

export interface DeskOptions {
  parent: HTMLElement;
  title: HTMLInputElement;
  runner: Runner;
  asker: Asker;
  index: IndexSource;
  /** The reader has changed the document. */
  changed(document: Document): void;
  /** Another document is open, or another form of it. */
  opened(document: Document): void;
  openSource(module: string, line: number, text: string): void;
  /** Shown in the place of the output before the first run. */
  welcome: string[];
}

export class Desk {
  private document: Document | null = null;
  private view: DocumentView | null = null;

  constructor(private readonly options: DeskOptions) {
    const { title } = options;
    title.addEventListener("change", () => {
      if (!this.document) return;
      this.document.title = title.value.trim() || "Untitled";
      title.value = this.document.title;
      this.options.changed(this.document);
      this.name();
    });
  }

  get open(): Document | null {
    return this.document;
  }

  /** Replaces the document on the page. */
  show(document: Document, focus = false): void {
    this.view?.dispose();
    this.document = document;
    this.options.title.value = document.title;
    this.name();
    const { runner, asker, index, openSource, parent } = this.options;
    const changed = (): void => this.options.changed(document);
    const view = { document, runner, asker, index, openSource, changed };
    if (document.form === "script") {
      const script = new ScriptView(view);
      script.welcome(this.options.welcome);
      this.view = script;
    } else this.view = new NotebookView(view);
    parent.dataset["form"] = document.form;
    parent.replaceChildren(this.view.element);
    this.options.opened(document);
    if (focus) this.view.focus();
  }

  /** Shows a script as cells, or cells as one script. */
  changeForm(): void {
    const { document } = this;
    if (!document) return;
    const { title } = document;
    if (document.form === "script") {
      const cells = fromPercent(document.cells[0]!.source, title).cells;
      Object.assign(document, { form: "notebook", cells });
    } else {
      const { cells } = document;
      const only = cells.length === 1 && cells[0]!.kind === "code" ? cells[0]!.source : null;
      const source = only ?? toPercent({ ...document, title });
      Object.assign(document, { form: "script", cells: [newCell("code", source)] });
    }
    this.options.changed(document);
    this.show(document, true);
  }

  /** Shows the new title of the open document. */
  retitle(): void {
    this.options.title.value = this.document?.title ?? "";
    this.name();
  }

  runAll(): void {
    void this.view?.runAll();
  }

  runCurrent(): void {
    void this.view?.runCurrent();
  }

  async outputs(): Promise<Outputs> {
    return (await this.view?.outputs()) ?? new Map();
  }

  clearOutputs(): void {
    this.view?.clearOutputs();
  }

  /** The editor of a source that ran, by its name in tracebacks. */
  editorOf(filename: string): Editor | null {
    return this.view?.editorOf(filename) ?? null;
  }

  /** Python was restarted, so the definitions of cells are gone. */
  forget(): void {
    if (this.view instanceof NotebookView) this.view.forget();
  }

  private name(): void {
    document.title = `${this.document?.title ?? "weft"} · weft playground`;
  }
}
