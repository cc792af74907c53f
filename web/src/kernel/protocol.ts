/** What the page and its worker say to each other. */

/** Where the site keeps things, relative to its root; made by tools/web/build_site.mjs. */
export interface SiteConfig {
  indexURL: string;
  stdLibURL: string;
  lockFile: string;
  /** The packages that Python starts with; the lock file has more, which programs load. */
  packages: string[];
  /** The package index, absolute or relative to the site; null for micropip's own. */
  index: string | null;
  /** The size of what a first visit loads of Python, before compression. */
  bootBytes: number;
  /** Archives that are fetched, and unpacked into a folder, when a program imports one of their modules. */
  later: { url: string; folder: string; modules: string[] }[];
  /** The language's docstrings, which are fetched when a program first asks for help. */
  docstrings: string;
  assets: { name: string; url: string }[];
}

export interface SiteData extends SiteConfig {
  worker: string;
  /** What the editor knows of modules, which it fetches when it is first asked, and the language's sources. */
  language: { index: string[]; sources: string };
  examples: { id: string; title: string; summary: string; source: string }[];
  /** Documents of the gallery, with the addresses of their texts and pictures. */
  gallery: GalleryEntry[];
}

export interface GalleryEntry {
  id: string;
  title: string;
  summary: string;
  group: string;
  /** How long it takes to read. */
  minutes: number;
  url: string;
  thumbnail: string;
}

export type Backend = "wasm" | "webgpu" | "remote";

export interface BootMessage {
  type: "boot";
  site: SiteConfig;
  base: string;
  /** Memory that both sides see (`signals.ts`): null where it can't be shared. */
  signals: SharedArrayBuffer | null;
  /** Threads that share the loops of programs; all that the page can have, if left out. */
  threads?: number;
  /** Addresses of 64 bits, for more than 4 GiB. */
  memory64?: boolean;
  /** Say how far downloads have come: on a first visit they take long. */
  report?: boolean;
  /** The page isolates itself with its next visit, where the server does not. */
  isolating?: boolean;
}

/** What a run needs besides its source. */
export interface RunOptions {
  backend: Backend;
  /** The host, where the backend is "remote". */
  url: string;
  token: string;
  /** 64-bit types, as `jax_enable_x64`. */
  x64: boolean;
  /** The inspector is open: each call of a program is timed, and not only the first ones. */
  inspected?: boolean;
}

export interface ExecuteMessage {
  type: "execute";
  /** Names this run in what the worker says of it. */
  run: number;
  /** The file name of the source in tracebacks: "program.py", or "cell 3". */
  filename: string;
  source: string;
  /** Start as a new interpreter would, or go on in the namespace of the runs before. */
  fresh: boolean;
  /** Runs of one session share a namespace; "" where a page has but one. */
  session: string;
  /** How the value of a last expression is shown: as a console prints it, or as a notebook shows it. */
  results: "text" | "rich";
  options: RunOptions;
}

/** What topics of the inspector's questions begin with. */
export const INSPECT = "inspect.";

/**
 * A question about the program, answered between runs: completion, hover, shapes. `editor` and `inspector` know what
 * they mean.
 */
export interface AskMessage {
  type: "ask";
  question: number;
  topic: string;
  session: string;
  /** JSON. */
  about: string;
}

/** What the reader did with a widget; its handlers run between runs. */
export interface WidgetMessage {
  type: "widget";
  widget: string;
  /** The run that showed it. */
  run: number;
  /** JSON; bulk data stands in `buffers`. */
  event: string;
  buffers: ArrayBuffer[];
}

/** A file that the reader gave: into the current folder of each run, or, for a wheel, into the packages. */
export interface FileMessage {
  type: "file";
  name: string;
  data: ArrayBuffer;
}

/** A package that is in no lock file of the site, and the host that it would come from. */
export interface Wanted {
  name: string;
  from: string;
}

/** Whether to install the packages that a "consent" asked about. */
export interface ConsentMessage {
  type: "consent";
  install: boolean;
}

/** Ends a program that waits for something; `signals` interrupts one that computes. */
export interface StopMessage {
  type: "stop";
}

export type ToWorker =
  BootMessage | ExecuteMessage | StopMessage | AskMessage | WidgetMessage | FileMessage | ConsentMessage;

export interface ProgramError {
  type: string;
  /** The module and the name of the class. */
  class: string;
  message: string;
  line: number | null;
  column: number | null;
  short: string;
  full: string | null;
}

export interface Outcome {
  status: "ok" | "stopped" | "error";
  error?: ProgramError;
}

/** A value to show: data by MIME type, and the bulk data that it refers to by position. */
export interface Bundle {
  data: Record<string, unknown>;
  buffers: ArrayBuffer[];
}

/** The MIME types of our own. */
export const FIGURE = "application/vnd.weft.figure+json";
export const WIDGET = "application/vnd.weft.widget+json";
export const ARRAY = "application/vnd.weft.array+json";
export const FILE = "application/vnd.weft.file+json";
export const TREE = "application/vnd.weft.tree+json";

export interface ReadyMessage {
  type: "ready";
  python: string;
  weft: string;
  features: string[];
  hasGpu: boolean;
  canWait: boolean;
  bootMs: number;
  /** A word in the device's memory that ends the compiled program that runs; null where memory can't be shared. */
  deviceStop: Int32Array | null;
}

/** How a run ended, and what it cost. */
export interface DoneMessage {
  type: "done";
  run: number;
  outcome: Outcome;
  runMs: number;
  /** Milliseconds by phase: "trace", "compile", "connect", "packages". */
  timings: Record<string, number>;
  peakBytes: number;
}

export type FromWorker =
  | ReadyMessage
  | { type: "failed"; message: string }
  /** Python is beyond use: the program ended it, or a fault did. */
  | { type: "ended"; error: ProgramError }
  /** How far something that takes time has come, in bytes or pieces; `total` is 0 where it is not known. */
  | { type: "progress"; what: string; loaded: number; total: number }
  | { type: "output"; run: number; stream: "stdout" | "stderr"; text: string }
  /** A value to show; one with the name of an earlier one replaces it if `update` is true. */
  | { type: "display"; run: number; name: string; bundle: Bundle; update: boolean }
  /** Clears what the run has shown; with `wait`, once it shows something again. */
  | { type: "clear"; run: number; wait: boolean }
  /** `input()` waits for a line, which goes into `signals`. */
  | { type: "input"; run: number }
  /** The run needs packages that no lock file has; it waits for a `ConsentMessage`. */
  | { type: "consent"; run: number; wanted: Wanted[] }
  /** A file was taken, or, with a problem, it was not. */
  | { type: "file"; name: string; problem: string }
  | { type: "answer"; question: number; json: string }
  /** Handlers of a widget have run: it may send what was done with it since. */
  | { type: "handled"; widget: string }
  | DoneMessage;
