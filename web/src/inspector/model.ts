/** What the inspector asks of Python (`python/weft_inspect.py`) and of the page around it. */

export interface Program {
  id: number;
  name: string;
  kind: "function" | "operation";
  backend: string;
  file: string;
  line: number;
  signature: string;
  calls: number;
  /** Whether each call was counted and timed: those after the first are not while the inspector is closed. */
  all: boolean;
  seconds: number;
  /** Seconds of "trace", "lower", "compile", of its part "load", and of "host", which compiles later. */
  phases: Record<string, number>;
}

export interface Details extends Program {
  memory: Record<string, number>;
  why: { phase: string; where: string; why: string }[];
  stages: Stage[];
}

export type Stage = "jaxpr" | "groups" | "ir" | "wat" | "wgsl" | "stablehlo" | "hlo" | "plan";

export interface Slot {
  name: string;
  type: string;
  nbytes: number;
  offset: number;
  first: number;
  last: number;
}

export interface Text {
  text: string;
  /** For each line the user's file and line. */
  lines?: ([string, number] | null)[];
  slots?: Slot[];
}

/** Lane, name, start and duration in milliseconds, detail. */
export type Event = [lane: Lane, name: string, start: number, duration: number, detail: string];
export type Lane = "trace" | "compile" | "run" | "transfer";

export interface Timeline {
  events: Event[];
  length: number;
  dropped: number;
  /** How many programs have calls that were not timed. */
  untimed: number;
}

export interface KernelTimes {
  kernels: [name: string, seconds: number, calls: number][];
  /** A sentence that says which arguments the program ran on. */
  arguments: string;
}

export interface DeviceFacts {
  name: string;
  facts: [string, string][];
}

/** An answer, a sentence why there is none, or null while a program runs. */
export type Answer<T> = T | { problem: string } | null;

export interface Measured {
  status: "ok" | "stopped" | "error";
  /** Of an error. */
  message: string;
  runMs: number;
  compileMs: number;
  /** The text that the run has shown. */
  text: string;
}

export interface Choice {
  backend: string;
  name: string;
  /** Why it can't be compared; "" if it can. */
  missing: string;
}

/** The page around the inspector. */
export interface Surroundings {
  ask(topic: string, about?: unknown): Promise<unknown>;
  /** Marks a line of the document, or none. */
  point(file: string, line: number | null): void;
  goto(file: string, line: number): void;
  /** The text of a line of the document; "" if it is not there. */
  lineOf(file: string, line: number): string;
  backends(): Choice[];
  /** Runs the document on a backend, without showing its output. */
  measure(backend: string): Promise<Measured>;
  onTheme(listener: () => void): () => void;
  closed(): void;
}

export const BUSY = "A program is running. The inspector answers when it has ended.";

/** The sentence that stands for an answer that is not there. */
export function problemOf(answer: Answer<unknown>): string | null {
  if (answer === null) return BUSY;
  const problem = (answer as { problem?: unknown }).problem;
  return typeof problem === "string" && Object.keys(answer as object).length === 1 ? problem : null;
}
