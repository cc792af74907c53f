/** One cell: its editor, its output, and its runs. */
import type { CellHost, RunEvent } from "@weft/cell/contract";
import { createEditor, showSource, type Editor, type LanguageIndex } from "../editor/index.js";
import type { Consents } from "../notebook/consents.js";
import type { Bundle, DoneMessage, RunOptions } from "../kernel/protocol.js";
import type { Python } from "../kernel/python.js";
import { backendOf, KernelRunner } from "../notebook/kernel_runner.js";
import { milliseconds } from "../numbers.js";
import { OutputArea } from "../output/area.js";

/** The other cells of the page, as a view uses them. */
export interface Surroundings {
  python(): Python;
  /** Python, if it can answer questions. */
  readonly ready: Python | null;
  readonly consents: Consents;
  index(): Promise<LanguageIndex>;
  count(session: string): { number: number; fresh: boolean };
  inSession(host: CellHost): View[];
}

/** More of a program's output than a listener needs. */
const MOST_TEXT = 1_000_000;
const ENDS = { ok: "", stopped: "Stopped", error: "Failed" } as const;

export class View {
  private readonly editor: Editor;
  private readonly area: OutputArea;
  private text_ = "";
  private values: Bundle["data"][] = [];
  private running = false;
  private failed = false;

  constructor(
    private readonly host: CellHost,
    private readonly page: Surroundings,
  ) {
    host.output.classList.add("output");
    this.area = new OutputArea(host.output);
    this.editor = createEditor({
      parent: host.source,
      text: host.code,
      language: "python",
      label: "Python cell. Escape, then Tab, leaves the editor.",
      plain: true,
      readOnly: host.readonly,
      onRun: () => host.run(),
      onChange: (text) => {
        host.code = text;
        host.changed(text);
      },
      asker: { ask: async (topic, about) => (await page.ready?.ask(topic, about, host.session)) ?? null },
      index: () => page.index(),
      cells: () => page.inSession(host).map(({ editor }) => editor),
      openSource: (module, line, text) => showSource(module, line, text, host.root),
    });
  }

  /** The element that contains the editor, by which cells are identified. */
  get place(): HTMLElement {
    return this.host.source;
  }

  get text(): string {
    return this.editor.text();
  }

  write(code: string): void {
    this.editor.replace(code);
  }

  focus(): void {
    this.editor.focus();
  }

  async run(): Promise<RunEvent> {
    const { host, page, area, editor } = this;
    area.clear();
    editor.markError(null);
    this.text_ = "";
    this.values = [];
    this.running = true;
    this.failed = false;
    const { number, fresh } = page.count(host.session);
    let ended: DoneMessage | null = null;
    const { status, error } = await this.runner().run({
      source: editor.text(),
      filename: `cell ${number}`,
      fresh,
      results: "rich",
      area,
      goto: (line) => editor.goto(line),
      ended: (message, line) => {
        ended = message;
        if (message.outcome.status === "stopped" && !page.python().canInterrupt) area.note(RESTARTED);
        editor.markError(line);
      },
    });
    this.running = false;
    const { type, message, line } = error ?? {};
    const told = type === undefined ? {} : { error: { type, message: message ?? "", line: line ?? null } };
    return { status, ms: ended!.runMs, text: this.text_, values: this.values, ...told };
  }

  progress(text: string): void {
    if (this.running) this.host.say(text, "busy");
  }

  fail(message: string): void {
    if (!this.running) return;
    this.failed = true;
    this.host.say("Python did not start", "error");
    this.area.note(message);
  }

  dispose(): void {
    this.area.clear();
    this.editor.destroy();
  }

  private runner(): KernelRunner {
    const { host, page } = this;
    const python = page.python();
    const watcher = {
      waiting: () => host.say(python.info ? "Waiting" : "Starting Python", "busy"),
      started: () => host.say("Running", "busy"),
      asking: () => host.say("Waiting for your answer", "busy"),
      output: (stream: string, text: string) => {
        if (stream === "stdout" && this.text_.length < MOST_TEXT) this.text_ += text;
      },
      display: ({ data }: Bundle) => void this.values.push(data),
      done: ({ outcome, runMs }: DoneMessage, { backend }: RunOptions) => {
        const { status } = outcome;
        if (this.failed) return;
        const where = backend === host.backend ? "" : " on Wasm: this browser has no WebGPU adapter";
        host.say((ENDS[status] || milliseconds(runMs)) + where, status === "error" ? "error" : "idle");
      },
    };
    const options = () => ({ backend: backendOf(host.backend, python.info), url: "", token: "", x64: host.x64 });
    return new KernelRunner(() => python, watcher, options, page.consents, host.session);
  }
}

const RESTARTED =
  "Python was started again, and what the cells defined is gone: this page is not cross-origin isolated, so a " +
  "running program can't be interrupted.";
