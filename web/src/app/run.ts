/** Shows the state of runs in the status line. */
import type { DoneMessage, RunOptions } from "../kernel/protocol.js";
import type { Python } from "../kernel/python.js";
import type { Watcher } from "../notebook/kernel_runner.js";
import type { Status } from "./status.js";

export const BACKEND_NAMES: Record<RunOptions["backend"], string> = { wasm: "Wasm", webgpu: "WebGPU", remote: "host" };

export class StatusWatcher implements Watcher {
  constructor(
    private readonly python: () => Python,
    private readonly status: Status,
  ) {}

  waiting(): void {
    if (this.python().info) this.status.show("Running", "busy");
    else this.status.show("Starting Python; the program runs then", "busy");
  }

  started(): void {
    this.status.show("Running", "busy");
  }

  asking(): void {
    this.status.show("Waiting for your answer", "busy");
  }

  output(): void {
    if (!performance.getEntriesByName("weft:first-output").length) performance.mark("weft:first-output");
  }

  done({ outcome, runMs, timings, peakBytes }: DoneMessage, { backend }: RunOptions): void {
    // After those that wait for this run have received its outcome.
    setTimeout(() => document.dispatchEvent(new CustomEvent("weft:done", { detail: outcome.status })));
    for (const phase of ["packages", "connect", "trace"] as const) this.status.time(phase, timings[phase]);
    // A host compiles while the program goes on: the page only makes what it sends there.
    const onHost = backend === "remote";
    this.status.time("lower", onHost ? timings["compile"] : undefined);
    this.status.time("compile", onHost ? timings["host"] : timings["compile"]);
    this.status.time("run", runMs);
    this.status.memory(backend === "wasm" ? peakBytes : 0);
    const python = this.python();
    if (python.busy || !python.info) return;
    const ends = { ok: `Done on ${BACKEND_NAMES[backend]}`, stopped: "Stopped", error: "Failed" } as const;
    this.status.show(ends[outcome.status], outcome.status === "error" ? "error" : "idle");
  }
}
