/** What the page and its worker say to each other. */
import type { PlotKind } from "@weft/runtime";

/** Where the site keeps things, relative to its root; made by tools/web/build_site.mjs. */
export interface SiteConfig {
  indexURL: string;
  stdLibURL: string;
  lockFile: string;
  packages: string[];
  /** Archives that are fetched, and unpacked into a folder, when a program imports one of their modules. */
  later: { url: string; folder: string; modules: string[] }[];
  /** The language's docstrings, which are fetched when a program first asks for help. */
  docstrings: string;
  assets: { name: string; url: string }[];
}

export interface SiteData extends SiteConfig {
  worker: string;
  examples: { id: string; title: string; summary: string; source: string }[];
}

export type Backend = "wasm" | "webgpu" | "remote";

export interface BootMessage {
  type: "boot";
  site: SiteConfig;
  base: string;
  /** One byte that Python looks at; 2 interrupts it. Null where memory can't be shared. */
  interrupt: SharedArrayBuffer | null;
  /** Threads that share the loops of programs; all that the page can have, if left out. */
  threads?: number;
  /** Addresses of 64 bits, for more than 4 GiB. */
  memory64?: boolean;
}

export interface RunMessage {
  type: "run";
  source: string;
  backend: Backend;
  url: string;
  token: string;
}

export type ToWorker = BootMessage | RunMessage;

export interface ProgramError {
  type: string;
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

export interface ReadyMessage {
  type: "ready";
  python: string;
  weft: string;
  features: string[];
  hasGpu: boolean;
  canWait: boolean;
  bootMs: number;
}

export type FromWorker =
  | ReadyMessage
  | { type: "failed"; message: string }
  | { type: "output"; stream: "stdout" | "stderr"; text: string }
  | { type: "live"; label: string; x: number; y: number }
  | { type: "plot"; kind: PlotKind; label: string; x: Float64Array; y: Float64Array }
  | { type: "done"; outcome: Outcome; runMs: number; timings: Record<string, number>; peakBytes: number };
