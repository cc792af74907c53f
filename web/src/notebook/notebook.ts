/** A notebook: cells of Python and Markdown, each with its output below it. */
import { newCell, type Cell } from "../documents/model.js";
import type { Editor } from "../editor/index.js";
import type { Outcome } from "../kernel/protocol.js";
import type { Output, Outputs } from "../documents/outputs.js";
import { CellView, type Neighbours } from "./cell.js";
import type { DocumentView } from "./runner.js";
import type { ViewOptions } from "./script.js";

export class NotebookView implements DocumentView {
  readonly element = document.createElement("div");
  private cells: CellView[] = [];
  private selected: CellView | null = null;
  /** Runs since the last fresh start; a cell's number in tracebacks. */
  private count = 0;
  private hasRun = false;
  private readonly removed: { cell: Cell; at: number }[] = [];
  private pressed = "";

  constructor(private readonly options: ViewOptions) {
    this.element.className = "notebook";
    this.cells = options.document.cells.map((cell) => this.make(cell));
    this.element.append(...this.cells.map((each) => each.element));
    if (!this.cells.length) this.insert(null, "code");
    const more = document.createElement("div");
    more.className = "add-cell";
    for (const [kind, label] of [
      ["code", "+ Python"],
      ["markdown", "+ Markdown"],
    ] as const) {
      const add = Object.assign(document.createElement("button"), { type: "button", textContent: label });
      add.addEventListener("click", () => this.insert(this.cells.at(-1) ?? null, kind).focus());
      more.append(add);
    }
    this.element.append(more);
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  async runAll(): Promise<void> {
    this.count = 0;
    this.hasRun = false;
    const code = this.cells.filter(({ cell }) => cell.kind === "code");
    for (const each of code) {
      each.area!.clear();
      each.begin(null);
    }
    for (const each of this.cells) if (each.cell.kind === "markdown" && each.isEditing) void each.render();
    let failed = false;
    for (const each of code) {
      if (failed) each.end("stopped", 0, null);
      else failed = (await this.runCell(each)).status !== "ok";
    }
  }

  async runCurrent(): Promise<void> {
    const cell = this.selected ?? this.cells[0];
    if (cell) await this.run(cell, "stay");
  }

  clearOutputs(): void {
    for (const { area } of this.cells) area?.clear();
  }

  async outputs(): Promise<Outputs> {
    const outputs = new Map<Cell["id"], Output[]>();
    for (const { area, cell } of this.cells) if (area) outputs.set(cell.id, await area.outputs());
    return outputs;
  }

  /** The next run starts anew: Python was started again, or another document ran. */
  forget(): void {
    this.hasRun = false;
    this.count = 0;
  }

  focus(): void {
    (this.selected ?? this.cells[0])?.focus();
  }

  dispose(): void {
    for (const cell of this.cells) cell.dispose();
    this.element.remove();
  }

  editorOf(filename: string): Editor | null {
    return this.cells.find((cell) => cell.filename === filename)?.editor ?? null;
  }

  private readonly neighbours: Neighbours = {
    run: (cell, how) => void this.run(cell, how),
    changed: () => this.options.changed(),
    select: (cell) => this.select(cell),
    move: (cell, by) => this.move(cell, by),
    remove: (cell) => this.remove(cell),
    insert: (after, kind) => this.insert(after, kind).focus(),
    setKind: (cell, kind) => this.setKind(cell, kind),
    editors: () => this.cells.flatMap(({ cell, editor }) => (cell.kind === "code" && editor ? [editor] : [])),
  };

  private make(cell: Cell): CellView {
    return new CellView(cell, this.neighbours, this.options);
  }

  private async run(view: CellView, how: "stay" | "advance"): Promise<void> {
    if (how === "advance") {
      const next = this.cells[this.cells.indexOf(view) + 1] ?? this.insert(view, "code");
      next.focus();
      next.element.scrollIntoView({ block: "nearest" });
    }
    if (view.cell.kind === "markdown") return view.render();
    view.area!.clear();
    view.begin(null);
    await this.runCell(view);
  }

  private async runCell(view: CellView): Promise<Outcome> {
    const fresh = !this.hasRun;
    this.hasRun = true;
    const number = ++this.count;
    view.filename = `cell ${number}`;
    return this.options.runner.run({
      source: view.cell.source,
      filename: view.filename,
      fresh,
      results: "rich",
      area: view.area!,
      goto: (line) => view.goto(line),
      started: () => view.begin(number),
      ended: ({ outcome, runMs }, line) => view.end(outcome.status, runMs, line),
    });
  }

  private select(view: CellView): void {
    this.selected?.element.classList.remove("selected");
    this.selected = view;
    view.element.classList.add("selected");
  }

  private insert(after: CellView | null, kind: Cell["kind"], cell: Cell = newCell(kind, "")): CellView {
    const at = after ? this.cells.indexOf(after) + 1 : 0;
    const view = this.make(cell);
    this.cells.splice(at, 0, view);
    if (after) after.element.after(view.element);
    else this.element.prepend(view.element);
    this.store();
    return view;
  }

  private move(view: CellView, by: -1 | 1): void {
    const at = this.cells.indexOf(view);
    const other = this.cells[at + by];
    if (!other) return;
    this.cells[at] = other;
    this.cells[at + by] = view;
    if (by < 0) other.element.before(view.element);
    else other.element.after(view.element);
    this.store();
    view.focus();
  }

  private remove(view: CellView): void {
    const at = this.cells.indexOf(view);
    this.removed.push({ cell: view.cell, at });
    this.cells.splice(at, 1);
    view.dispose();
    if (!this.cells.length) this.insert(null, "code");
    const next = this.cells[Math.min(at, this.cells.length - 1)]!;
    this.select(next);
    next.element.focus();
    this.store();
  }

  private restore(): void {
    const last = this.removed.pop();
    if (!last) return;
    this.insert(this.cells[last.at - 1] ?? null, last.cell.kind, last.cell).element.focus();
  }

  private setKind(view: CellView, kind: Cell["kind"]): void {
    if (view.cell.kind === kind) return;
    const at = this.cells.indexOf(view);
    const next = this.make(Object.assign(view.cell, { kind }));
    this.cells[at] = next;
    view.element.replaceWith(next.element);
    view.dispose();
    this.store();
    next.focus();
  }

  private store(): void {
    this.options.document.cells = this.cells.map(({ cell }) => cell);
    this.options.changed();
  }

  /** Keys while a cell, not its text, has the focus: as in Jupyter. */
  private key(event: KeyboardEvent): void {
    const view = this.selected;
    if (!view || event.ctrlKey || event.metaKey) return;
    if (event.target !== view.element) {
      if (event.key === "Escape" && !event.defaultPrevented) view.element.focus();
      return;
    }
    const at = this.cells.indexOf(view);
    const twice = this.pressed === event.key;
    this.pressed = event.key;
    const actions: Record<string, () => void> = {
      Enter: () => (event.shiftKey ? void this.run(view, "advance") : view.edit(true)),
      ArrowUp: () => this.cells[at - 1]?.element.focus(),
      ArrowDown: () => this.cells[at + 1]?.element.focus(),
      k: () => this.cells[at - 1]?.element.focus(),
      j: () => this.cells[at + 1]?.element.focus(),
      a: () => this.insert(this.cells[at - 1] ?? null, "code").element.focus(),
      b: () => this.insert(view, "code").element.focus(),
      m: () => this.setKind(view, "markdown"),
      y: () => this.setKind(view, "code"),
      z: () => this.restore(),
      d: () => {
        if (!twice) return;
        this.pressed = "";
        this.remove(view);
      },
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}
