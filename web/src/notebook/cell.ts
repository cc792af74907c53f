/** One cell of a notebook: its source, a bar of actions, and its output. */
import type { Cell } from "../documents/model.js";
import { createEditor, type Editor } from "../editor/index.js";
import { milliseconds } from "../numbers.js";
import { OutputArea } from "../output/area.js";
import { showMarkdown } from "../output/prose.js";
import type { ViewOptions } from "./script.js";

/** The interface of the notebook for its cells. */
export interface Neighbours {
  run(cell: CellView, how: "stay" | "advance"): void;
  changed(): void;
  select(cell: CellView): void;
  move(cell: CellView, by: -1 | 1): void;
  remove(cell: CellView): void;
  insert(after: CellView, kind: Cell["kind"]): void;
  setKind(cell: CellView, kind: Cell["kind"]): void;
  /** The editors of all code cells, in order. */
  editors(): Editor[];
}

function button(label: string, text: string, action: () => void): HTMLButtonElement {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = text;
  element.title = label;
  element.setAttribute("aria-label", label);
  element.addEventListener("click", action);
  return element;
}

export class CellView {
  readonly element = document.createElement("section");
  readonly area: OutputArea | null = null;
  editor: Editor | null = null;
  /** The name of its source in the last run. */
  filename = "";
  private readonly source = document.createElement("div");
  private readonly rendered = document.createElement("div");
  private readonly count = document.createElement("span");
  private readonly state = document.createElement("span");

  constructor(
    readonly cell: Cell,
    private readonly neighbours: Neighbours,
    private readonly options: ViewOptions,
  ) {
    const { element } = this;
    element.className = `cell ${cell.kind}`;
    element.tabIndex = -1;
    element.dataset["cell"] = cell.id;
    this.source.className = "source";
    this.rendered.className = "rendered prose";
    this.count.className = "count";
    this.state.className = "state";
    element.append(this.bar(), this.source, this.rendered);
    if (cell.kind === "code") {
      const output = document.createElement("div");
      output.className = "output";
      output.setAttribute("role", "log");
      output.setAttribute("aria-label", "Output of this cell");
      element.append(output);
      this.area = new OutputArea(output);
      this.edit();
    } else {
      this.rendered.addEventListener("dblclick", () => this.edit(true));
      if (cell.source.trim()) void this.render();
      else this.edit();
    }
    element.addEventListener("focusin", () => neighbours.select(this));
  }

  get isEditing(): boolean {
    return this.editor !== null && !this.source.hidden;
  }

  /** Opens the source of a Markdown cell; that of a code cell is always open. */
  edit(focus = false): void {
    this.rendered.hidden = true;
    this.source.hidden = false;
    this.editor ??= createEditor({
      parent: this.source,
      text: this.cell.source,
      language: this.cell.kind === "code" ? "python" : "markdown",
      label: `${this.cell.kind === "code" ? "Python" : "Markdown"} cell. Escape, then Tab, leaves the editor.`,
      onRun: (how) => this.neighbours.run(this, how),
      onChange: (text) => {
        this.cell.source = text;
        this.neighbours.changed();
      },
      asker: this.cell.kind === "code" ? this.options.asker : null,
      index: this.options.index,
      cells: () => this.neighbours.editors(),
      openSource: this.options.openSource,
    });
    if (focus) this.editor.focus();
  }

  /** Shows a Markdown cell as text. */
  async render(): Promise<void> {
    await showMarkdown(this.rendered, this.cell.source || "*Nothing here yet*");
    this.rendered.hidden = false;
    this.source.hidden = true;
  }

  focus(): void {
    if (this.isEditing) this.editor!.focus();
    else this.element.focus();
  }

  goto(line: number): void {
    this.editor?.goto(line);
  }

  replace(text: string): void {
    this.edit();
    this.editor!.replace(text);
  }

  /** The run has been asked for, and waits or has begun. */
  begin(count: number | null): void {
    this.editor?.markError(null);
    this.element.dataset["running"] = count === null ? "waiting" : "running";
    this.count.textContent = count === null ? "[ ]" : `[${count}]`;
    this.state.textContent = count === null ? "waits" : "runs";
  }

  end(status: "ok" | "stopped" | "error", ms: number, line: number | null): void {
    delete this.element.dataset["running"];
    this.element.dataset["status"] = status;
    this.state.textContent = { ok: milliseconds(ms), stopped: "stopped", error: "failed" }[status];
    this.editor?.markError(line);
  }

  dispose(): void {
    this.area?.clear();
    this.editor?.destroy();
    this.element.remove();
  }

  private bar(): HTMLElement {
    const { cell, neighbours } = this;
    const bar = document.createElement("div");
    bar.className = "cell-bar";
    const isCode = cell.kind === "code";
    if (isCode)
      bar.append(
        button("Run this cell", "▶", () => neighbours.run(this, "stay")),
        this.count,
      );
    const actions = document.createElement("div");
    actions.className = "cell-actions";
    actions.append(
      this.state,
      button(isCode ? "Make it Markdown" : "Make it Python", isCode ? "M↓" : "Python", () =>
        neighbours.setKind(this, isCode ? "markdown" : "code"),
      ),
      button("Move up", "↑", () => neighbours.move(this, -1)),
      button("Move down", "↓", () => neighbours.move(this, 1)),
      button("Insert a cell below", "+", () => neighbours.insert(this, "code")),
      button("Delete this cell", "×", () => neighbours.remove(this)),
    );
    bar.append(actions);
    return bar;
  }
}
