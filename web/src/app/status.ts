/** The line below the page: Python's state, the times of the last run, the available platforms. */
import { milliseconds } from "../numbers.js";

export type State = "boot" | "idle" | "busy" | "error";

export type Phase = "boot" | "packages" | "connect" | "trace" | "lower" | "compile" | "run";

export class Status {
  private readonly shown = new Map<string, string>();

  constructor(
    private readonly state: HTMLElement,
    private readonly timings: HTMLElement,
    private readonly changed: () => void,
  ) {}

  get current(): State {
    return this.state.dataset["state"] as State;
  }

  show(text: string, state: State): void {
    this.state.textContent = text;
    this.state.dataset["state"] = state;
    this.changed();
  }

  /** The progress of something that takes time. */
  progress(what: string, loaded: number, total: number): void {
    const share = total > 0 ? ` ${Math.min(99, Math.round((100 * loaded) / total))} %` : "";
    this.show(`${what}${share}`, this.current === "busy" ? "busy" : "boot");
  }

  time(phase: Phase, ms: number | undefined): void {
    if (ms === undefined) this.shown.delete(phase);
    else this.shown.set(phase, milliseconds(ms));
    this.draw();
  }

  memory(bytes: number): void {
    const mebibytes = bytes / 2 ** 20;
    if (mebibytes < 0.1) this.shown.delete("peak memory");
    else this.shown.set("peak memory", `${mebibytes.toFixed(mebibytes < 10 ? 1 : 0)} MiB`);
    this.draw();
  }

  private draw(): void {
    this.timings.replaceChildren(
      ...[...this.shown].map(([name, value]) => {
        const row = document.createElement("div");
        row.append(Object.assign(document.createElement("dt"), { textContent: name }));
        row.append(Object.assign(document.createElement("dd"), { textContent: value }));
        return row;
      }),
    );
  }
}
