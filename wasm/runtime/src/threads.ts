/**
 * Workers that share the loops of programs with the thread that runs them (the ABI's tasks, docs/artifact.md).
 *
 * All talk is through 64 words of the shared memory: the caller writes a job, counts JOB up and wakes the workers;
 * everybody takes runs of iterations from NEXT until none are left, and the caller waits for those who came in time.
 * Nothing goes through an event loop, so a program that never returns to it is served all the same.
 */
import { WeftInterrupted, WeftRuntimeError } from "./errors.js";
import { STOP, type Address } from "./memory.js";

/** Bytes of the shared memory that a pool talks through. */
export const CONTROL_BYTES = 256;

/** The data with which a worker is started. */
export interface Start {
  memory: WebAssembly.Memory;
  /** Address of the control words. */
  control: number;
  /** The worker's number; the caller is 0. */
  thread: number;
}

/**
 * Runs `source`, a classic script that takes one message, a Start, in a new worker. Returns a function that ends
 * the worker.
 */
export type Spawn = (source: string, start: Start) => () => void;

/** A program in the pool: its tasks in the caller's instance, and the address of its code in the shared memory. */
export interface SharedProgram {
  number: number;
  code: number;
  length: number;
  tasks: ((frame: Address, thread: number, begin: number, end: number) => void)[];
}

// NEXT and GATE, which all threads change, have separate cache lines. CODE and FRAME are addresses: their lower and
// upper half. WIDE: the frame is passed to tasks as a bigint.
const WORD = {
  JOB: 0,
  PROGRAM: 1,
  CODE: 2,
  LENGTH: 4,
  TASK: 5,
  FRAME: 6,
  EXTENT: 8,
  GRAIN: 9,
  FAILED: 10,
  READY: 11,
  WIDE: 12,
  NEXT: 16,
  GATE: 32,
  LEFT: 48,
} as const;
const CLOSED = 1 << 30; // in GATE, above the count of workers that have entered
const KEPT = 64; // programs that a worker keeps; it loads others again
// Looks at a word before a thread sleeps, a few hundred microseconds: waking takes about 50.
const SPINS = 20_000;

/** The life of a worker. Its source is all that a worker gets: it refers to nothing outside itself. */
function work(start: Start, word: typeof WORD, closed: number, kept: number, spins: number, stop: number): void {
  const { memory, control, thread } = start;
  const words = new Int32Array(memory.buffer, control, 64);
  const stopped = new Int32Array(memory.buffer, stop, 1);
  const programs = new Map<number, WebAssembly.Exports>();
  const nothing = (): number => 0;
  const address = (at: number): number => (words[at]! >>> 0) + words[at + 1]! * 2 ** 32;

  const load = (number: number): WebAssembly.Exports | undefined => {
    let program = programs.get(number);
    if (!program) {
      try {
        const code = new Uint8Array(memory.buffer, address(word.CODE), words[word.LENGTH]!).slice();
        const imports = { weft: { memory, share: nothing, call: nothing } };
        program = new WebAssembly.Instance(new WebAssembly.Module(code), imports).exports;
      } catch {
        return undefined; // no room for another instance: the others do without this worker
      }
      if (programs.size === kept) programs.delete(programs.keys().next().value!);
    }
    programs.delete(number);
    programs.set(number, program); // the last in the order of use
    return program;
  };

  let seen = 0;
  Atomics.add(words, word.READY, 1);
  for (;;) {
    for (let spin = 0; Atomics.load(words, word.JOB) === seen; spin++) {
      if (spin > spins) Atomics.wait(words, word.JOB, seen);
    }
    seen = Atomics.load(words, word.JOB);
    if (Atomics.add(words, word.GATE, 1) & closed) continue; // it was done without this worker
    const program = load(words[word.PROGRAM]!);
    if (program) {
      const task = program["task" + words[word.TASK]!] as SharedProgram["tasks"][0];
      const frame = words[word.WIDE] ? BigInt(address(word.FRAME)) : address(word.FRAME);
      const extent = words[word.EXTENT]!;
      const grain = words[word.GRAIN]!;
      try {
        for (;;) {
          const begin = Atomics.add(words, word.NEXT, grain) >>> 0;
          if (begin >= extent) break;
          if (Atomics.load(stopped, 0)) throw new Error();
          task(frame, thread, begin, Math.min(begin + grain, extent));
        }
      } catch {
        Atomics.store(words, word.FAILED, 1);
      }
    }
    Atomics.add(words, word.LEFT, 1);
    Atomics.notify(words, word.LEFT);
  }
}

/** The script of a worker: one message with a Start, then `work` until the worker ends. */
const settings = [JSON.stringify(WORD), CLOSED, KEPT, SPINS, STOP].join(", ");
const source = `onmessage = (event) => (${work.toString()})(event.data, ${settings});`;

/** Workers of a page or of a worker of it. */
const spawnInBrowser: Spawn = (text, start) => {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(url);
  worker.postMessage(start);
  return () => {
    worker.terminate();
    URL.revokeObjectURL(url);
  };
};

/** Whether threads can share memory here: only where it is cross-origin isolated. */
export function isolatedHere(): boolean {
  return (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated === true;
}

/** How many threads this place can have: 1 unless it is cross-origin isolated. */
export function threadsHere(): number {
  return isolatedHere() ? Math.min(navigator.hardwareConcurrency || 1, 8) : 1;
}

export class ThreadPool {
  private readonly words: Int32Array;
  private readonly stopped: Int32Array;
  private readonly ends: (() => void)[] = [];
  private programs = 0;

  /** Starts `threads - 1` workers; they take part from the moment `ready` is true. */
  constructor(
    memory: WebAssembly.Memory,
    control: number,
    readonly threads: number,
    spawn: Spawn = spawnInBrowser,
  ) {
    this.words = new Int32Array(memory.buffer, control, CONTROL_BYTES / 4);
    this.stopped = new Int32Array(memory.buffer, STOP, 1);
    this.words.fill(0);
    this.words[WORD.GATE] = CLOSED;
    for (let thread = 1; thread < threads; thread++) this.ends.push(spawn(source, { memory, control, thread }));
  }

  /** Whether every worker has started. */
  get ready(): boolean {
    return Atomics.load(this.words, WORD.READY) === this.threads - 1;
  }

  /** A number for a program, by which workers know it. */
  number(): number {
    return ++this.programs;
  }

  /**
   * Runs iterations 0 … extent-1 of a task on all threads, `grain` at a time. A worker that wakes too late is not
   * waited for.
   */
  run(program: SharedProgram, number: number, frame: Address, extent: number, grain: number): void {
    const { words } = this;
    const task = program.tasks[number]!;
    words[WORD.PROGRAM] = program.number;
    this.put(WORD.CODE, program.code);
    words[WORD.LENGTH] = program.length;
    words[WORD.TASK] = number;
    this.put(WORD.FRAME, Number(frame) < 0 ? Number(frame) + 2 ** 32 : Number(frame)); // an i32 is signed here
    words[WORD.WIDE] = typeof frame === "bigint" ? 1 : 0;
    words[WORD.EXTENT] = extent;
    words[WORD.GRAIN] = grain;
    words[WORD.FAILED] = 0;
    words[WORD.LEFT] = 0;
    words[WORD.NEXT] = 0;
    Atomics.store(words, WORD.GATE, 0);
    Atomics.add(words, WORD.JOB, 1);
    Atomics.notify(words, WORD.JOB);
    try {
      for (;;) {
        const begin = Atomics.add(words, WORD.NEXT, grain) >>> 0;
        if (begin >= extent) break;
        if (Atomics.load(this.stopped, 0)) break;
        task(frame, 0, begin, Math.min(begin + grain, extent));
      }
    } finally {
      this.join();
    }
    if (Atomics.load(this.stopped, 0)) throw new WeftInterrupted("stopped while threads shared a loop");
    if (Atomics.load(words, WORD.FAILED))
      throw new WeftRuntimeError("a worker trapped while it shared a loop; this is a bug of the compiler");
  }

  private put(at: number, address: number): void {
    this.words[at] = address % 2 ** 32;
    this.words[at + 1] = Math.floor(address / 2 ** 32);
  }

  /** Ends the workers. */
  close(): void {
    for (const end of this.ends) end();
    this.ends.length = 0;
    this.words[WORD.READY] = -1;
  }

  /** Lets no more workers in, and waits for those that are in. A page's main thread may not sleep, so it polls. */
  private join(): void {
    const { words } = this;
    const entered = Atomics.or(words, WORD.GATE, CLOSED);
    let left: number;
    for (let spin = 0; (left = Atomics.load(words, WORD.LEFT)) !== entered; spin++) {
      if (spin > SPINS && maySleep) {
        try {
          Atomics.wait(words, WORD.LEFT, left);
        } catch {
          maySleep = false;
        }
      }
    }
  }
}

let maySleep = true; // false on a page's main thread
