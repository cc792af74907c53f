/** Runs cells on Python, and says in the status line what becomes of them. */
import type { DoneMessage, Outcome, RunOptions } from "../kernel/protocol.js";
import type { Python } from "../kernel/python.js";
import type { CellRun, Runner } from "../notebook/runner.js";
import type { Status } from "./status.js";

export const BACKEND_NAMES: Record<RunOptions["backend"], string> = { wasm: "Wasm", webgpu: "WebGPU", remote: "host" };

export class PageRunner implements Runner {
  constructor(
    private readonly python: Python,
    private readonly status: Status,
    private readonly options: () => RunOptions,
  ) {}

  run({ source, filename, fresh, results, area, goto, started, ended }: CellRun): Promise<Outcome> {
    const options = this.options();
    if (this.python.info) this.status.show("Running", "busy");
    else this.status.show("Starting Python; the program runs then", "busy");
    return new Promise((resolve) => {
      this.python.execute(
        { source, filename, fresh, results, options },
        {
          started: () => {
            this.status.show("Running", "busy");
            started?.();
          },
          output: (stream, text) => {
            area.write(stream, text);
            if (!performance.getEntriesByName("weft:first-output").length) performance.mark("weft:first-output");
          },
          display: ({ name, bundle, update, run }) => area.display(name, bundle, update, run),
          clear: (wait) => area.clear(wait),
          input: () => area.ask((line) => this.python.giveLine(line)),
          done: (message) => {
            area.endAsk();
            this.done(message, options);
            const { outcome } = message;
            if (outcome.status === "stopped") area.note("Stopped.");
            if (outcome.error) area.error(outcome.error, goto);
            area.flush();
            ended?.(message, outcome.error?.line ?? null);
            resolve(outcome);
            document.dispatchEvent(new CustomEvent("weft:done", { detail: outcome.status }));
          },
        },
      );
    });
  }

  private done({ outcome, runMs, timings, peakBytes }: DoneMessage, { backend }: RunOptions): void {
    for (const phase of ["packages", "connect", "trace", "compile"] as const) this.status.time(phase, timings[phase]);
    this.status.time("run", runMs);
    this.status.memory(backend === "wasm" ? peakBytes : 0);
    if (this.python.busy || !this.python.info) return;
    const ends = { ok: `Done on ${BACKEND_NAMES[backend]}`, stopped: "Stopped", error: "Failed" } as const;
    this.status.show(ends[outcome.status], outcome.status === "error" ? "error" : "idle");
  }
}
