/** The page's end of the worker: boot, execute, stop, questions. */
import type { Booting } from "./boot.js";
import type {
  DoneMessage,
  ExecuteMessage,
  FromWorker,
  Outcome,
  ReadyMessage,
  RunOptions,
  ToWorker,
  Wanted,
} from "./protocol.js";
import type { Signals } from "./signals.js";

/** What a run gives while it lasts. */
export interface RunEvents {
  /** The run begins: those before it have ended. */
  started(): void;
  output(stream: "stdout" | "stderr", text: string): void;
  display(message: Extract<FromWorker, { type: "display" }>): void;
  clear(wait: boolean): void;
  /** The program waits for a line: answer with `giveLine`. */
  input(): void;
  /** The program imports packages that only the package index has: answer with `consent`. */
  consent(wanted: Wanted[]): void;
  done(message: DoneMessage): void;
}

/** What concerns no run. */
export interface KernelEvents {
  ready(info: ReadyMessage): void;
  failed(message: string): void;
  progress(what: string, loaded: number, total: number): void;
  /** A file that was given is there; if there is a problem, it is not. */
  file(name: string, problem: string): void;
  /**
   * The worker was replaced, and Python boots again: its names and packages are gone. "asked": the reader wanted it;
   * "stuck": it did not react to a stop; "ended": a program has ended Python, and its run says so.
   */
  restarted(why: "asked" | "stuck" | "ended"): void;
}

/** How often Python is interrupted until it ends: one interrupt may fall into code that swallows it. */
const AGAIN_MS = 100;
/** How long a stop may take before the worker is replaced, which costs seconds and all of Python's state. */
const GRACE_MS = 2000;

/** Runs whose widgets are still heard. */
const MOST_PAST = 200;

/** Options are asked for when the run begins: only then is it known what there is. */
type Request = Omit<ExecuteMessage, "type" | "run" | "options"> & { options(): RunOptions };

interface Run {
  request: Request;
  events: RunEvents;
}

export class Python {
  private worker!: Worker;
  private signals: Signals | null = null;
  private ready: ReadyMessage | null = null;
  private readonly waiting: Run[] = [];
  private current: (Run & { number: number }) | null = null;
  private runs = 0;
  private stopping: { again: ReturnType<typeof setInterval>; grace: ReturnType<typeof setTimeout> } | null = null;
  private questions = 0;
  private taken = 0;
  /** Files of the reader, which a new worker gets too. */
  private readonly files = new Map<string, ArrayBuffer>();
  private readonly handled = new Map<string, () => void>();
  /** Runs that have ended, but may have widgets whose handlers show something. */
  private readonly past = new Map<number, RunEvents>();
  private readonly asked = new Map<number, (json: string | null) => void>();

  /**
   * @param boot starts a worker, now and whenever one is replaced.
   * @param first one that boots already.
   */
  constructor(
    private readonly boot: () => Booting,
    private readonly events: KernelEvents,
    first: Booting | null = null,
  ) {
    this.attach(first ?? boot());
  }

  get busy(): boolean {
    return this.current !== null || this.waiting.length > 0;
  }

  /** Whether Stop can end a program without replacing the worker: pages that are not isolated share no memory. */
  get canInterrupt(): boolean {
    return this.signals !== null;
  }

  get info(): ReadyMessage | null {
    return this.ready;
  }

  /** Runs a program after those that wait already. */
  execute(request: Request, events: RunEvents): void {
    this.waiting.push({ request, events });
    this.next();
  }

  /** Stops the program, and forgets those that wait. */
  stop(): void {
    for (const { events } of this.waiting.splice(0)) events.done(notRun({ status: "stopped" }));
    if (!this.current || this.stopping) return;
    if (!this.signals) return this.replace("stuck");
    this.stopping = {
      again: setInterval(() => this.interrupt(), AGAIN_MS),
      grace: setTimeout(() => this.replace("stuck"), GRACE_MS),
    };
    this.interrupt();
  }

  consent(install: boolean): void {
    this.send({ type: "consent", install });
  }

  giveLine(line: string): void {
    this.signals?.give(line);
  }

  /** Asks Python about the program. Resolves to null at once while it is busy. */
  ask(topic: string, about: unknown, session = ""): Promise<unknown> {
    if (!this.ready || this.busy) return Promise.resolve(null);
    const question = ++this.questions;
    return new Promise((resolve) => {
      this.asked.set(question, (json) => resolve(json === null ? null : JSON.parse(json)));
      this.send({ type: "ask", question, topic, session, about: JSON.stringify(about) });
    });
  }

  giveFile(name: string, data: ArrayBuffer): void {
    this.files.set(name, data);
    this.send({ type: "file", name, data });
  }

  /** Sends what the reader did with a widget; resolves once its handlers have run. */
  tellWidget(run: number, widget: string, event: unknown, buffers: ArrayBuffer[] = []): Promise<void> {
    this.send({ type: "widget", widget, run, event: JSON.stringify(event), buffers }, buffers);
    return new Promise((resolve) => this.handled.set(widget, resolve));
  }

  /** Replaces the worker: all of Python's state is gone. */
  restart(): void {
    this.replace("asked");
  }

  private replace(why: "asked" | "stuck" | "ended", outcome: Outcome = { status: "stopped" }): void {
    this.endStop();
    this.worker.terminate();
    const ended = this.current;
    this.current = null;
    for (const resolve of this.asked.values()) resolve(null);
    this.asked.clear();
    this.past.clear();
    for (const resolve of this.handled.values()) resolve();
    this.handled.clear();
    this.attach(this.boot());
    for (const [name, data] of this.files) this.send({ type: "file", name, data });
    ended?.events.done(notRun(outcome));
    this.events.restarted(why);
  }

  /** Ends the worker for good. */
  dispose(): void {
    this.endStop();
    this.worker.terminate();
  }

  private keep(run: number, events: RunEvents): void {
    this.past.set(run, events);
    if (this.past.size > MOST_PAST) this.past.delete(this.past.keys().next().value!);
  }

  private send(message: ToWorker, transfer: Transferable[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  private interrupt(): void {
    this.signals?.raise();
    // A compiled program looks at a word of its own.
    if (this.ready?.deviceStop) Atomics.store(this.ready.deviceStop, 0, 1);
    this.send({ type: "stop" });
  }

  private endStop(): void {
    if (!this.stopping) return;
    clearInterval(this.stopping.again);
    clearTimeout(this.stopping.grace);
    this.stopping = null;
  }

  private next(): void {
    if (!this.ready || this.current) return;
    const run = this.waiting.shift();
    if (!run) return;
    this.current = { ...run, number: ++this.runs };
    run.events.started();
    this.send({ type: "execute", run: this.runs, ...run.request, options: run.request.options() });
  }

  /** Tells the worker that text was taken once the page has had the time to show it. */
  private take(characters: number): void {
    if (this.taken === 0) {
      const { signals } = this;
      const tell = (): void => {
        signals?.take(this.taken);
        this.taken = 0;
      };
      // A page in the background gets no frames.
      if (document.hidden) setTimeout(tell, 50);
      else requestAnimationFrame(() => setTimeout(tell));
    }
    this.taken += characters;
  }

  private attach({ worker, signals, early }: Booting): void {
    this.ready = null;
    this.worker = worker;
    this.signals = signals;
    const heard = early();
    worker.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => this.receive(data));
    worker.addEventListener("error", (event) =>
      this.events.failed(event.message || "the worker's script could not be loaded"),
    );
    // The handlers of a first worker may use this object, which the caller does not have yet.
    queueMicrotask(() => heard.forEach((message) => this.receive(message)));
  }

  private receive(message: FromWorker): void {
    switch (message.type) {
      case "ready":
        this.ready = message;
        this.events.ready(message);
        return this.next();
      case "ended":
        return this.replace("ended", { status: "error", error: message.error });
      case "failed":
        return this.events.failed(message.message);
      case "progress":
        return this.events.progress(message.what, message.loaded, message.total);
      case "answer":
        this.asked.get(message.question)?.(message.json);
        this.asked.delete(message.question);
        return;
      case "handled":
        this.handled.get(message.widget)?.();
        this.handled.delete(message.widget);
        return;
      case "file":
        if (message.problem) this.files.delete(message.name);
        return this.events.file(message.name, message.problem);
      case "done": {
        if (this.current?.number !== message.run) return;
        this.endStop();
        const { events } = this.current;
        this.keep(message.run, events);
        this.current = null;
        this.next();
        return events.done(message);
      }
      default: {
        if (message.type === "output") this.take(message.text.length);
        const events = this.current?.number === message.run ? this.current.events : this.past.get(message.run);
        if (events) tell(events, message);
      }
    }
  }
}

function tell(
  events: RunEvents,
  message: Extract<FromWorker, { type: "output" | "display" | "clear" | "input" | "consent" }>,
): void {
  switch (message.type) {
    case "output":
      return events.output(message.stream, message.text);
    case "display":
      return events.display(message);
    case "clear":
      return events.clear(message.wait);
    case "input":
      return events.input();
    case "consent":
      return events.consent(message.wanted);
  }
}

function notRun(outcome: Outcome): DoneMessage {
  return { type: "done", run: 0, outcome, runMs: 0, timings: {}, peakBytes: 0 };
}
