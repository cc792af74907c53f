/** The interface of the page for views of a document that run their cells. */
import type { DoneMessage, Outcome } from "../kernel/protocol.js";
import type { Outputs } from "../documents/outputs.js";
import type { Editor } from "../editor/index.js";
import type { OutputArea } from "../output/area.js";

export interface CellRun {
  source: string;
  /** The name of the source in tracebacks. */
  filename: string;
  /** Start as a new interpreter would. */
  fresh: boolean;
  results: "text" | "rich";
  area: OutputArea;
  /** Shows the reader a line of the source. */
  goto(line: number): void;
  /** Called when the run begins: it may have waited for others. */
  started?(): void;
  /** Called when it has ended, with the line of its error, if any. */
  ended?(message: DoneMessage, line: number | null): void;
}

export interface Runner {
  run(run: CellRun): Promise<Outcome>;
}

/** A document on the page. */
export interface DocumentView {
  readonly element: HTMLElement;
  /** Runs all of it from a fresh start. */
  runAll(): Promise<void>;
  /** Runs the focused cell, or everything in a script. */
  runCurrent(): Promise<void>;
  clearOutputs(): void;
  /** The output of each cell, for files. */
  outputs(): Promise<Outputs>;
  /** The editor of a source, by its name in tracebacks; null if it is not here. */
  editorOf(filename: string): Editor | null;
  focus(): void;
  /** Removes its elements from the page. */
  dispose(): void;
}
