/**
 * Python in a worker: boots Pyodide with our packages, runs one program at a time. web/CONTRACT.md says what
 * Python sees.
 */
import { createPage, type Page } from "@weft/runtime";
import { loadPyodide, type PyodideAPI } from "pyodide";
import { watchDownloads, type Watcher } from "./fetch.js";
import { lastWords } from "./last_words.js";
import { OutputQueue } from "./output_queue.js";
import { Packages } from "./packages.js";
import { INSPECT } from "./protocol.js";
import type {
  AskMessage,
  BootMessage,
  Bundle,
  ExecuteMessage,
  FileMessage,
  FromWorker,
  Outcome,
  ReadyMessage,
  SiteConfig,
  ToWorker,
  Wanted,
  WidgetMessage,
} from "./protocol.js";
import { Signals } from "./signals.js";

const scope = self as unknown as DedicatedWorkerGlobalScope;
const post = (message: FromWorker, transfer: Transferable[] = []): void => scope.postMessage(message, transfer);

/** Python's side of the kernel: the functions of web/python/weft_kernel.py. */
interface Kernel {
  warm_up: { callPromising(): Promise<string> };
  execute: { callPromising(request: string): Promise<string> };
  cancel(): void;
  answer(topic: string, about: string, session: string): string;
  inspect: { callPromising(topic: string, about: string): Promise<string> };
}

/** A Python function that may wait. */
interface Promising {
  callPromising(...arguments_: unknown[]): Promise<unknown>;
}

/** Python once it runs, and what runs beside it. */
interface Booted {
  pyodide: PyodideAPI;
  kernel: Kernel;
  page: Page;
  packages: Packages;
  site: SiteConfig;
  base: string;
  /** Names of the assets that are in the file system already. */
  fetched: Set<string>;
}

let booted: Promise<Booted> | null = null;
let timings: Record<string, number> = {};
/** The current run, or the last one. */
let run = 0;
let running = false;
/** Whether Python runs programs: what ends it before, is a start that failed. */
let isReady = false;
/** Whether the page knows that the start has failed: what follows from that is no news. */
let hasFailed = false;
/** Ends the wait for packages. */
let endWait: (() => void) | null = null;
/** Takes the reader's answer about packages. */
let consent: ((install: boolean) => void) | null = null;
let signals: Signals | null = null;
let isolating = false;
const queue = new OutputQueue<"stdout" | "stderr">((stream, text) => {
  post({ type: "output", run, stream, text });
  signals?.sent(text.length);
});

/** The members of `_weft_page` for Python, besides the devices. */
function hooks() {
  return {
    timing: (phase: string, ms: number) => void (timings[phase] = (timings[phase] ?? 0) + ms),
    display(name: string, data: string, views: Uint8Array[], update: boolean) {
      queue.flush();
      const buffers = Array.from(views, (view) => view.slice().buffer as ArrayBuffer);
      const bundle: Bundle = { data: JSON.parse(data) as Bundle["data"], buffers };
      post({ type: "display", run, name, bundle, update }, buffers);
    },
    clear(wait: boolean) {
      queue.flush();
      post({ type: "clear", run, wait });
    },
    interruptAgain: () => signals?.interruptAgain(),
    input(): string {
      if (!signals) {
        throw new Error(
          "input() needs memory that the page shares with Python, which needs headers of the page's server: " +
            "Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp. " +
            (isolating ? "Reload the page: from the second visit on it sets them itself" : "Send the page with them"),
        );
      }
      queue.flush();
      signals.expect();
      post({ type: "input", run });
      return `${signals.wait() ?? ""}\n`;
    },
  };
}

function forward(pyodide: PyodideAPI): void {
  const stream = (name: "stdout" | "stderr") => {
    const decoder = new TextDecoder();
    return {
      isatty: true, // Python then flushes at the end of each line
      write(bytes: Uint8Array): number {
        queue.write(name, decoder.decode(bytes.slice(), { stream: true }));
        return bytes.length;
      },
    };
  };
  pyodide.setStdout(stream("stdout"));
  pyodide.setStderr(stream("stderr"));
  pyodide.setStdin({ error: true });
}

/** Fetches a file while Python waits. */
function fetchNow(url: string, type: "arraybuffer" | "text"): unknown {
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  request.responseType = type;
  request.send();
  if (request.status !== 200) throw new Error(`the server answered ${request.status} for ${url}`);
  return request.response;
}

/** Lets Python fetch an archive while one of its imports waits, and docstrings while `help` does. */
function offerLater(pyodide: PyodideAPI, site: SiteConfig, base: string): void {
  const { install } = pyodide.pyimport("weft_later");
  for (const { url, folder, modules } of site.later) {
    const unpack = (): void => {
      const archive = fetchNow(base + url, "arraybuffer") as ArrayBuffer;
      pyodide.unpackArchive(archive, "zip", { extractDir: folder });
    };
    install(folder, modules, unpack);
  }
  pyodide.pyimport("weft_docstrings").install("weft", () => fetchNow(base + site.docstrings, "text"));
}

/** Says how far the first visit's downloads have come. */
function counter(total: number): NonNullable<Watcher["bytes"]> {
  let loaded = 0;
  let said = 0;
  return (bytes) => {
    loaded += bytes;
    if (loaded - said < total / 100) return;
    said = loaded;
    post({ type: "progress", what: "Loading Python", loaded, total });
  };
}

function failed(message: string): void {
  watchDownloads(null); // nor how far others have come
  if (!hasFailed) post({ type: "failed", message });
  hasFailed = true;
}

async function boot(message: BootMessage): Promise<Booted> {
  const { site, base, signals: shared, threads, memory64, report } = message;
  isolating = message.isolating ?? false;
  const started = performance.now();
  watchDownloads({ failed, ...(report && { bytes: counter(site.bootBytes) }) });
  signals = shared && new Signals(shared);
  const own = hooks();
  const [page, pyodide] = await Promise.all([
    createPage({ timing: own.timing, ...(threads && { threads }), ...(memory64 && { memory64 }) }),
    loadPyodide({
      indexURL: base + site.indexURL,
      stdLibURL: base + site.stdLibURL,
      lockFileURL: base + site.lockFile,
      packageBaseUrl: `${base}packages/`,
      packages: site.packages,
    }),
  ]);
  watchDownloads(null);
  pyodide.registerJsModule("_weft_page", Object.assign(page, own)); // one object: its GPU may change
  offerLater(pyodide, site, base);
  forward(pyodide);
  if (signals) pyodide.setInterruptBuffer(signals.interrupt);
  const kernel = pyodide.pyimport("weft_kernel") as Kernel;
  const described = await kernel.warm_up.callPromising();
  isReady = true;
  post({
    type: "ready",
    ...(JSON.parse(described) as Pick<ReadyMessage, "python" | "weft" | "canWait">),
    features: [...page.features],
    hasGpu: page.gpu !== null,
    deviceStop: page.device.interruptView(),
    bootMs: performance.now() - started,
  });
  const index = site.index === null ? "" : new URL(site.index, base).href;
  const progress = (what: string, loaded: number, total: number): void =>
    post({ type: "progress", what, loaded, total });
  const packages = new Packages(pyodide, `${base}packages/`, index, progress, askReader);
  return { pyodide, kernel, page, packages, site, base, fetched: new Set() };
}

/** Puts every asset that the program names into the folder of each run. */
async function fetchAssets({ pyodide, site, base, fetched }: Booted, source: string): Promise<void> {
  const wanted = site.assets.filter(({ name }) => source.includes(name) && !fetched.has(name));
  await Promise.all(
    wanted.map(async ({ name, url }) => {
      const response = await fetch(base + url);
      if (!response.ok) throw new Error(`the file ${name} could not be fetched (${response.status})`);
      give(pyodide, name, await response.arrayBuffer());
      fetched.add(name);
    }),
  );
}

function give(pyodide: PyodideAPI, name: string, data: ArrayBuffer): void {
  const state = pyodide.pyimport("weft_state");
  const bytes = pyodide.toPy(new Uint8Array(data));
  state.give(name, bytes.tobytes());
  bytes.destroy();
}

/** Asks the reader of the run, who may also stop it. */
function askReader(wanted: Wanted[]): Promise<boolean> {
  post({ type: "consent", run, wanted });
  return new Promise((resolve) => (consent = resolve));
}

/** Loads what the program imports; false if it was stopped meanwhile. Interrupts would break an installation. */
async function prepare({ pyodide, packages }: Booted, source: string): Promise<boolean> {
  const started = performance.now();
  pyodide.setInterruptBuffer(undefined as unknown as Uint8Array);
  const stopped = new Promise<boolean>((resolve) => (endWait = () => resolve(false)));
  try {
    return await Promise.race([packages.prepare(source).then(() => true), stopped]);
  } finally {
    endWait = null;
    if (signals) pyodide.setInterruptBuffer(signals.interrupt);
    const ms = performance.now() - started;
    if (ms >= 5) {
      timings["packages"] = ms;
      post({ type: "progress", what: "Running", loaded: 0, total: 0 });
    }
  }
}

async function execute(current: Booted, message: ExecuteMessage): Promise<void> {
  const { page, kernel } = current;
  ({ run } = message);
  timings = {};
  page.device.resetPeak();
  const started = performance.now();
  let outcome: Outcome;
  try {
    await fetchAssets(current, message.source);
    running = await prepare(current, message.source);
    signals?.clear();
    page.device.clearInterrupt();
    outcome = running
      ? (JSON.parse(await kernel.execute.callPromising(JSON.stringify(message))) as Outcome)
      : { status: "stopped" };
  } catch (error) {
    if (mourn(error)) return;
    const { name, message: text, type } = error as Error & { type?: string };
    // An interrupt that arrives between two programs' lines is raised here.
    const failure = { type: name, class: name, message: text, line: null, column: null, short: text, full: null };
    outcome = type === "KeyboardInterrupt" ? { status: "stopped" } : { status: "error", error: failure };
  }
  running = false;
  signals?.clear();
  queue.flush();
  const peakBytes = page.device.stats().peak;
  post({ type: "done", run, outcome, runMs: performance.now() - started, timings, peakBytes });
}

/** Ends a waiting program; a computing one is interrupted through the signals instead. */
function stop({ kernel }: Booted): void {
  endWait?.();
  consent?.(false);
  if (!running) return;
  kernel.cancel();
}

/** A file of the reader: a wheel goes into the packages, others into the folder of each run. */
async function take({ pyodide, packages }: Booted, { name, data }: FileMessage): Promise<void> {
  let problem = "";
  try {
    if (name.endsWith(".whl")) problem = await packages.takeWheel(name, data);
    else give(pyodide, name, data);
  } catch (error) {
    problem = (error as Error).message.trim().split("\n").at(-1) ?? "";
  }
  post({ type: "file", name, problem });
}

async function ask({ kernel }: Booted, { question, topic, session, about }: AskMessage): Promise<void> {
  let json = "null";
  try {
    const last = topic.startsWith(INSPECT) ? topic.slice(INSPECT.length) : null; // it may wait for a device
    json = last === null ? kernel.answer(topic, about, session) : await kernel.inspect.callPromising(last, about);
  } catch {
    // A question that has no answer is none of the reader's concern.
  }
  post({ type: "answer", question, json });
}

/** Runs the handlers of a widget; their output belongs to the run that showed the widget. */
async function widget({ pyodide }: Booted, { widget: name, run: of, event, buffers }: WidgetMessage): Promise<void> {
  const now = run;
  queue.flush();
  run = of;
  try {
    const { receive } = pyodide.pyimport("weft.widgets") as { receive: Promising };
    await receive.callPromising(name, event, pyodide.toPy(buffers.map((buffer) => new Uint8Array(buffer))));
  } finally {
    queue.flush();
    run = now;
    post({ type: "handled", widget: name });
  }
}

function receive(current: Booted, message: Exclude<ToWorker, BootMessage>): void {
  switch (message.type) {
    case "execute":
      return void execute(current, message);
    case "stop":
      return stop(current);
    case "ask":
      return void ask(current, message);
    case "widget":
      return void widget(current, message);
    case "consent":
      return consent?.(message.install);
    case "file":
      return void take(current, message);
  }
}

/** A program can end Python where nobody waits for it: in its event loop, or in a stack that is no longer there. */
function mourn(error: unknown): boolean {
  const words = isReady ? lastWords(error) : null;
  if (!words) return false;
  queue.flush();
  post({ type: "ended", error: words }); // the page then ends this worker
  return true;
}
scope.addEventListener("error", (event) => mourn(event.error) && event.preventDefault());
scope.addEventListener("unhandledrejection", (event) => mourn(event.reason) && event.preventDefault());

scope.addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === "boot") {
    booted = boot(data);
    booted.catch((error: unknown) => failed(String((error as Error)?.message ?? error)));
  } else {
    void booted?.then((current) => receive(current, data)).catch((error: unknown) => console.error(error));
  }
});
