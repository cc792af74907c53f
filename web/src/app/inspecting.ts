/** Opens the inspector, and gives it what it asks of the page. */
import type { Inspector, Choice, Measured, Surroundings } from "../inspector/index.js";
import { INSPECT, type Backend, type DoneMessage, type RunOptions } from "../kernel/protocol.js";
import type { Python } from "../kernel/python.js";
import { byId } from "./dom.js";
import type { Desk } from "./desk.js";
import { BACKEND_NAMES } from "./run.js";
import type { Status } from "./status.js";
import { onTheme } from "./theme.js";

export interface InspectingOptions {
  python(): Python;
  desk: Desk;
  status: Status;
  /** The options of a run, but for the backend. */
  options(): RunOptions;
  failed(message: string): void;
}

/** Ties the button, the keys and the drawer together. The inspector's script is fetched when it is first opened. */
export function useInspector(options: InspectingOptions): void {
  const drawer = byId("inspector");
  const toggle = byId("inspect");
  const isOpen = (): boolean => !drawer.hidden;
  const { desk } = options;
  let inspector: Inspector | null = null;
  let pointed: string | null = null;
  const around: Surroundings = {
    ask: (topic, about = {}) => options.python().ask(INSPECT + topic, about),
    point(file, line) {
      if (pointed !== null) desk.editorOf(pointed)?.point(null);
      pointed = line === null ? null : file;
      if (line !== null) desk.editorOf(file)?.point(line);
    },
    goto: (file, line) => desk.editorOf(file)?.goto(line),
    lineOf: (file, line) => desk.editorOf(file)?.text().split("\n")[line - 1] ?? "",
    backends: () => choices(options),
    measure: (backend) => measure(backend as Backend, options),
    onTheme,
    closed: () => void show(false),
  };

  async function show(open: boolean): Promise<void> {
    drawer.hidden = !open;
    toggle.setAttribute("aria-expanded", String(open));
    if (!open) {
      around.point("", null);
      if (drawer.contains(document.activeElement) || document.activeElement === document.body) toggle.focus();
      return;
    }
    try {
      const { Inspector } = await import("../inspector/index.js");
      inspector ??= new Inspector(drawer, around);
    } catch (error) {
      await show(false);
      return options.failed(`The inspector could not be loaded: ${(error as Error).message}.`);
    }
    await inspector.refresh();
  }

  toggle.addEventListener("click", () => void show(!isOpen()));
  document.addEventListener("keydown", (event) => {
    const isKey = event.altKey && !event.ctrlKey && !event.metaKey && event.code === "KeyI";
    if (isKey) {
      event.preventDefault();
      void show(!isOpen()).then(() => isOpen() && inspector?.focus());
    } else if (event.key === "Escape" && !event.defaultPrevented && drawer.contains(event.target as Node)) {
      void show(false);
    }
  });
  document.addEventListener("weft:done", () => {
    if (isOpen()) void inspector?.refresh();
  });
}

function choices({ python, options }: InspectingOptions): Choice[] {
  const host = options();
  return [
    { backend: "wasm", name: "Wasm", missing: "" },
    {
      backend: "webgpu",
      name: "WebGPU",
      missing: python().info?.hasGpu ? "" : "this browser offers no adapter",
    },
    { backend: "remote", name: "Host", missing: host.token ? "" : "choose Host above and give its address and token" },
  ];
}

/** Runs the open document from a fresh start, and keeps its text to itself. */
function measure(backend: Backend, { python, desk, status, options }: InspectingOptions): Promise<Measured> {
  const cells = desk.open?.cells.filter(({ kind }) => kind === "code") ?? [];
  let text = "";
  return new Promise((resolve) => {
    const ended = ({ outcome, runMs, timings }: DoneMessage): void => {
      status.show(outcome.status === "ok" ? `Compared on ${BACKEND_NAMES[backend]}` : "Comparison ended", "idle");
      document.dispatchEvent(new CustomEvent("weft:done", { detail: outcome.status }));
      const { error } = outcome;
      const message = error ? `${error.type}: ${error.message.split("\n")[0]}` : "";
      const compileMs = timings[backend === "remote" ? "host" : "compile"] ?? 0;
      resolve({ status: outcome.status, message, runMs, compileMs, text });
    };
    python().execute(
      {
        source: cells.map(({ source }) => source).join("\n\n"),
        filename: "program.py",
        fresh: true,
        session: "",
        results: "text",
        options: () => ({ ...options(), backend, inspected: false }),
      },
      {
        started: () => status.show(`Comparing on ${BACKEND_NAMES[backend]}`, "busy"),
        output(stream, more) {
          if (stream === "stdout") text += more;
        },
        display({ bundle }) {
          const plain = bundle.data["text/plain"];
          if (typeof plain === "string") text += `${plain}\n`;
        },
        clear: () => (text = ""),
        input: () => python().giveLine(""),
        consent: () => python().consent(false), // the program has run, and its reader was asked
        done: ended,
      },
    );
  });
}
