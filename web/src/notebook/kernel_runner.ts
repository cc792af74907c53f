/** Runs cells on Python, and shows their output. */
import type { Bundle, DoneMessage, Outcome, ReadyMessage, RunOptions } from "../kernel/protocol.js";
import type { Python } from "../kernel/python.js";
import type { Consents } from "./consents.js";
import type { CellRun, Runner } from "./runner.js";

/** A listener for the state of runs: a status line. */
export interface Watcher {
  waiting(): void;
  started(): void;
  output?(stream: "stdout" | "stderr", text: string): void;
  display?(bundle: Bundle): void;
  /** The reader is asked something. */
  asking?(): void;
  done(message: DoneMessage, options: RunOptions): void;
}

/** The backend of a page that can't ask its reader: WebGPU where there is an adapter, and else Wasm. */
export function backendOf(wanted: RunOptions["backend"], info: ReadyMessage | null): "wasm" | "webgpu" {
  return wanted === "webgpu" && info?.hasGpu ? "webgpu" : "wasm";
}

export class KernelRunner implements Runner {
  /**
   * @param python is asked for at each run: a page may start it with the first.
   * @param options of a run, asked for when it begins.
   * @param consents what the reader has let the document install.
   * @param session names the namespace of the runs.
   */
  constructor(
    private readonly python: () => Python,
    private readonly watcher: Watcher,
    private readonly options: () => RunOptions,
    private readonly consents: Consents,
    private readonly session = "",
  ) {}

  run({ source, filename, fresh, results, area, goto, started, ended }: CellRun): Promise<Outcome> {
    const { watcher, session, consents } = this;
    const python = this.python();
    let chosen: RunOptions | null = null;
    const options = (): RunOptions => (chosen = this.options());
    watcher.waiting();
    return new Promise((resolve) => {
      python.execute(
        { source, filename, fresh, session, results, options },
        {
          started: () => {
            watcher.started();
            started?.();
          },
          output: (stream, text) => {
            area.write(stream, text);
            watcher.output?.(stream, text);
          },
          display: ({ name, bundle, update, run }) => {
            watcher.display?.(bundle);
            area.display(name, bundle, update, run);
          },
          clear: (wait) => area.clear(wait),
          input: () => area.ask((line) => python.giveLine(line)),
          consent: (wanted) => {
            if (wanted.every((each) => consents.has(each))) return python.consent(true);
            watcher.asking?.();
            area.offer(wanted, (install) => {
              if (install) consents.add(wanted);
              python.consent(install);
            });
          },
          done: (message) => {
            area.endAsk();
            watcher.done(message, chosen ?? this.options());
            const { outcome } = message;
            if (outcome.status === "stopped") area.note("Stopped.");
            if (outcome.error) area.error(outcome.error, goto);
            area.flush();
            ended?.(message, outcome.error?.line ?? null);
            resolve(outcome);
          },
        },
      );
    });
  }
}
