/**
 * The interface between the element and a site's script. The element is small; the editor, the kernel and the figures
 * come from the site when a reader first uses a cell, so that they always fit the site's Python.
 */

/** The version of this contract. A site and an element of different versions report that, and do nothing. */
export const VERSION = 1;

/** The part of a site's `site.json` that the element reads. */
export interface SiteFile {
  cell?: { version: number; script: string; styles: string };
}

export type Status = "ok" | "stopped" | "error";

export type State = "idle" | "busy" | "error";

/** How a run of one cell ended. */
export interface RunEvent {
  status: Status;
  /** Milliseconds that it took. */
  ms: number;
  /** What it printed to standard output. */
  text: string;
  /** The values that it showed, each by MIME type. */
  values: Record<string, unknown>[];
  error?: { type: string; message: string; line: number | null };
}

/** A cell, as the site's script sees it. */
export interface CellHost {
  root: ShadowRoot;
  /** The parent of the editor. */
  source: HTMLElement;
  /** The parent of the output. */
  output: HTMLElement;
  code: string;
  readonly: boolean;
  session: string;
  backend: "wasm" | "webgpu";
  /** 64-bit types, as `jax_enable_x64`. */
  x64: boolean;
  /** The reader has changed the text. */
  changed(code: string): void;
  /** The reader has pressed the keys for Run. */
  run(): void;
  say(text: string, state: State): void;
  /** The cells of the same session, in the order of the page. */
  neighbours(): CellHost[];
}

/** A cell with an editor. */
export interface LiveCell {
  run(): Promise<RunEvent>;
  /** The text in the editor. */
  write(code: string): void;
  focus(): void;
  /** The address of the playground with this cell's text. */
  link(): Promise<string>;
  dispose(): void;
}

/** One interpreter and the cells that it runs. */
export interface Cells {
  attach(host: CellHost): LiveCell;
  /** Ends the running program, and drops those that wait. */
  stop(): void;
  /** Replaces the interpreter. Everything that cells defined is lost. */
  restart(): void;
}

/** What the site's script exports. */
export interface SiteScript {
  /**
   * @param base the site's address, with a slash at its end.
   * @param site the contents of its `site.json`.
   * @param forgotten is called when a new interpreter has taken the place of another.
   */
  open(base: string, site: SiteFile, forgotten: () => void): Cells;
}
