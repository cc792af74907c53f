/**
 * Memory that the page and Python's worker share, so that the page reaches Python while it runs: a byte that interrupts
 * it, and the line that `input()` waits for.
 */

/** Python looks at this byte between operations; 2 stands for Ctrl-C. */
const INTERRUPT = 2;

const enum Line {
  none,
  given,
  cancelled,
}

const MOST_BYTES = 1 << 16;
/** Where the line begins, after the interrupt's word and three others. */
const TEXT = 16;
/** How many characters the worker may be ahead of the text that the page has shown. */
const MOST_AHEAD = 1 << 19;
const WAIT_MS = 50;

/** The words after the interrupt's: the state of the line, its length, and how much text the page has taken. */
const enum Word {
  line,
  length,
  taken,
}

export class Signals {
  readonly interrupt: Uint8Array;
  private readonly words: Int32Array;
  private ahead = 0;

  constructor(readonly shared: SharedArrayBuffer) {
    this.interrupt = new Uint8Array(shared, 0, 1);
    this.words = new Int32Array(shared, 4, 3);
  }

  /** Null where the page may not share memory. */
  static create(): Signals | null {
    return crossOriginIsolated ? new Signals(new SharedArrayBuffer(TEXT + MOST_BYTES)) : null;
  }

  /** Interrupts Python, and ends its wait for a line. */
  raise(): void {
    this.interruptAgain();
    this.answer(Line.cancelled);
  }

  /** Interrupts Python without ending a wait for a line. */
  interruptAgain(): void {
    Atomics.store(this.interrupt, 0, INTERRUPT);
  }

  clear(): void {
    Atomics.store(this.interrupt, 0, 0);
  }

  /** Gives the line that `input()` waits for. */
  give(line: string): void {
    const bytes = new TextEncoder().encode(line).subarray(0, MOST_BYTES);
    new Uint8Array(this.shared, TEXT).set(bytes);
    Atomics.store(this.words, Word.length, bytes.length);
    this.answer(Line.given);
  }

  /** Forgets earlier answers; the worker calls it before it asks. */
  expect(): void {
    Atomics.store(this.words, Word.line, Line.none);
  }

  /** Waits for a line; null if the wait was cancelled. Only a worker may wait. */
  wait(): string | null {
    Atomics.wait(this.words, Word.line, Line.none);
    if (Atomics.load(this.words, Word.line) !== Line.given) return null;
    // A copy: a decoder takes no shared memory.
    const bytes = new Uint8Array(this.shared, TEXT, Atomics.load(this.words, Word.length)).slice();
    return new TextDecoder().decode(bytes);
  }

  /**
   * Counts text on its way to the page, and waits while the page is far behind: a program that prints without end would
   * keep it from everything else. Only a worker may wait.
   */
  sent(characters: number): void {
    this.ahead += characters;
    for (;;) {
      const taken = Atomics.exchange(this.words, Word.taken, 0);
      this.ahead = Math.max(0, this.ahead - taken);
      if (this.ahead <= MOST_AHEAD || Atomics.load(this.interrupt, 0) !== 0) return;
      if (taken === 0) Atomics.wait(this.words, Word.taken, 0, WAIT_MS);
    }
  }

  /** The page has shown so much text. */
  take(characters: number): void {
    Atomics.add(this.words, Word.taken, characters);
    Atomics.notify(this.words, Word.taken);
  }

  private answer(state: Line): void {
    Atomics.store(this.words, Word.line, state);
    Atomics.notify(this.words, Word.line);
  }
}
