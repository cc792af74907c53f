/** A script beside its output. */
import type { Document } from "../documents/model.js";
import type { Outputs } from "../documents/outputs.js";
import { createEditor, type Asker, type Editor, type IndexSource } from "../editor/index.js";
import { FIGURE } from "../kernel/protocol.js";
import { OutputArea } from "../output/area.js";
import type { DocumentView, Runner } from "./runner.js";

const FILENAME = "program.py";
const IMAGES = ["image/png", "image/jpeg", "image/svg+xml"];

export interface ViewOptions {
  document: Document;
  runner: Runner;
  asker: Asker;
  index: IndexSource;
  /** The document's text has changed. */
  changed(): void;
  openSource(module: string, line: number, text: string): void;
}

function section(className: string, label: string): HTMLElement {
  const element = document.createElement("section");
  element.className = className;
  element.setAttribute("aria-label", label);
  return element;
}

export class ScriptView implements DocumentView {
  readonly element = document.createElement("div");
  private readonly editor: Editor;
  private readonly area: OutputArea;
  private readonly divider = new Divider();

  constructor(private readonly options: ViewOptions) {
    this.element.className = "script";
    const source = section("pane source", "Program");
    const result = section("pane result", "Result");
    const figures = document.createElement("div");
    figures.className = "figures";
    const console = document.createElement("div");
    console.className = "console output";
    console.setAttribute("role", "log");
    console.setAttribute("aria-label", "Output");
    console.tabIndex = 0;
    result.append(figures, console);
    this.element.append(source, this.divider.element, result);
    this.area = new OutputArea(console, { element: figures, mimes: new Set([FIGURE, ...IMAGES]) });
    const cell = options.document.cells[0]!;
    this.editor = createEditor({
      parent: source,
      text: cell.source,
      language: "python",
      label: "Python program. Escape, then Tab, leaves the editor.",
      onRun: () => void this.runAll(),
      onChange: (text) => {
        cell.source = text;
        options.changed();
      },
      asker: options.asker,
      index: options.index,
      openSource: options.openSource,
    });
  }

  /** Says something in the place of the output, until the first run. */
  welcome(lines: string[]): void {
    const box = document.createElement("div");
    box.className = "placeholder";
    box.append(...lines.map((line) => Object.assign(document.createElement("p"), { textContent: line })));
    this.area.element.append(box);
  }

  async runAll(): Promise<void> {
    const { area, editor } = this;
    editor.markError(null);
    area.clear();
    await this.options.runner.run({
      source: editor.text(),
      filename: FILENAME,
      fresh: true,
      results: "text",
      area,
      goto: (line) => editor.goto(line),
      ended: (_, line) => editor.markError(line),
    });
  }

  runCurrent(): Promise<void> {
    return this.runAll();
  }

  clearOutputs(): void {
    this.area.clear();
    this.editor.markError(null);
  }

  async outputs(): Promise<Outputs> {
    return new Map([[this.options.document.cells[0]!.id, await this.area.outputs()]]);
  }

  editorOf(filename: string): Editor | null {
    return filename === FILENAME ? this.editor : null;
  }

  focus(): void {
    this.editor.focus();
  }

  dispose(): void {
    this.area.clear();
    this.editor.destroy();
    this.element.remove();
  }
}

/** The bar between program and result, which can be moved. */
class Divider {
  readonly element = document.createElement("div");
  private static percent = 52;

  constructor() {
    const { element } = this;
    element.className = "divider";
    element.tabIndex = 0;
    element.setAttribute("role", "separator");
    element.setAttribute("aria-orientation", "vertical");
    element.setAttribute("aria-label", "Width of the program");
    element.setAttribute("aria-valuemin", "25");
    element.setAttribute("aria-valuemax", "75");
    this.set(Divider.percent);
    element.addEventListener("pointerdown", (event) => element.setPointerCapture(event.pointerId));
    element.addEventListener("pointermove", (event) => {
      if (!element.hasPointerCapture(event.pointerId)) return;
      const { left, width } = element.parentElement!.getBoundingClientRect();
      this.set((100 * (event.clientX - left)) / width);
    });
    element.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
      if (step) this.set(Divider.percent + step);
    });
  }

  private set(percent: number): void {
    Divider.percent = Math.min(Math.max(percent, 25), 75);
    document.documentElement.style.setProperty("--split", `${Divider.percent}%`);
    this.element.setAttribute("aria-valuenow", String(Math.round(Divider.percent)));
  }
}
