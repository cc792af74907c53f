/** The page's end of the worker: boot, run, stop. */
import type { FromWorker, Outcome, ReadyMessage, RunMessage } from "./protocol.js";
import { bootWorker, type Booting } from "./boot.js";

export interface PythonEvents {
  ready(info: ReadyMessage): void;
  failed(message: string): void;
  output(stream: "stdout" | "stderr", text: string): void;
  live(label: string, x: number, y: number): void;
  plot(message: Extract<FromWorker, { type: "plot" }>): void;
  done(outcome: Outcome, runMs: number, timings: Record<string, number>, peakBytes: number): void;
  /** The worker did not react and was replaced; Python boots again. */
  restarted(): void;
}

/** How long an interrupt may take before the worker is replaced. A single compiled program can't be interrupted. */
const GRACE_MS = 1500;

export class PythonWorker {
  private worker!: Worker;
  private interrupt: Uint8Array | null = null;
  private running = false;
  private pending: RunMessage | null = null;
  private isReady = false;
  private grace: ReturnType<typeof setTimeout> | undefined;

  constructor(
    first: Booting,
    private readonly events: PythonEvents,
  ) {
    this.attach(first);
  }

  get busy(): boolean {
    return this.running || this.pending !== null;
  }

  /** Runs a program; before Python is ready it waits for it. */
  run(message: Omit<RunMessage, "type">): void {
    if (this.busy) return;
    const request: RunMessage = { type: "run", ...message };
    if (this.isReady) this.send(request);
    else this.pending = request;
  }

  stop(): void {
    if (this.pending) {
      this.pending = null;
      this.events.done({ status: "stopped" }, 0, {}, 0);
      return;
    }
    if (!this.running) return;
    if (!this.interrupt) return this.restart();
    this.interrupt[0] = 2;
    this.grace ??= setTimeout(() => this.restart(), GRACE_MS);
  }

  private send(request: RunMessage): void {
    this.running = true;
    this.worker.postMessage(request);
  }

  private attach({ worker, interrupt, early }: Booting): void {
    this.isReady = false;
    this.worker = worker;
    this.interrupt = interrupt;
    worker.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => this.receive(data));
    worker.addEventListener("error", (event) => this.events.failed(event.message || "the worker could not be loaded"));
    // The handlers of a first worker may use this object, which the caller does not have yet.
    queueMicrotask(() => early.splice(0).forEach(({ data }) => this.receive(data)));
  }

  private restart(): void {
    clearTimeout(this.grace);
    this.grace = undefined;
    this.worker.terminate();
    this.running = false;
    this.attach(bootWorker());
    this.events.restarted();
  }

  private receive(message: FromWorker): void {
    switch (message.type) {
      case "ready":
        this.isReady = true;
        this.events.ready(message);
        if (this.pending) {
          const request = this.pending;
          this.pending = null;
          this.send(request);
        }
        break;
      case "failed":
        this.events.failed(message.message);
        break;
      case "output":
        this.events.output(message.stream, message.text);
        break;
      case "live":
        this.events.live(message.label, message.x, message.y);
        break;
      case "plot":
        this.events.plot(message);
        break;
      case "done":
        clearTimeout(this.grace);
        this.grace = undefined;
        this.running = false;
        this.events.done(message.outcome, message.runMs, message.timings, message.peakBytes);
        break;
    }
  }
}
