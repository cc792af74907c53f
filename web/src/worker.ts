/**
 * Python in a worker: boots Pyodide with our packages, runs one program at a time. web/CONTRACT.md says what
 * Python sees.
 */
import { createPage, type Page } from "@weft/runtime";
import { loadPyodide, type PyodideAPI } from "pyodide";
import type { BootMessage, FromWorker, Outcome, ReadyMessage, RunMessage, SiteConfig, ToWorker } from "./protocol.js";

const scope = self as unknown as DedicatedWorkerGlobalScope;
const post = (message: FromWorker): void => scope.postMessage(message);

interface Session {
  pyodide: PyodideAPI;
  page: Page;
  site: SiteConfig;
  base: string;
  /** Names of the assets that are in the file system already. */
  fetched: Set<string>;
  interrupt: Uint8Array | null;
}

let session: Promise<Session> | null = null;
let timings: Record<string, number> = {};

function hooks() {
  return {
    timing: (phase: string, ms: number) => void (timings[phase] = (timings[phase] ?? 0) + ms),
    live: (label: string, x: number, y: number) => post({ type: "live", label, x, y }),
    // Python's typed arrays may be views of its memory: the message carries copies.
    plot: (kind: "line" | "scatter" | "image", label: string, x: Float64Array, y: Float64Array) =>
      post({ type: "plot", kind, label, x: x.slice(), y: y.slice() }),
  };
}

function forward(pyodide: PyodideAPI): void {
  const stream = (name: "stdout" | "stderr") => {
    const decoder = new TextDecoder();
    return {
      isatty: true, // Python then flushes at the end of each line
      write(bytes: Uint8Array): number {
        post({ type: "output", stream: name, text: decoder.decode(bytes.slice(), { stream: true }) });
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

async function boot({ site, base, interrupt, threads, memory64 }: BootMessage): Promise<Session> {
  const started = performance.now();
  const [page, pyodide] = await Promise.all([
    createPage({ ...hooks(), ...(threads && { threads }), ...(memory64 && { memory64 }) }),
    loadPyodide({
      indexURL: base + site.indexURL,
      stdLibURL: base + site.stdLibURL,
      lockFileURL: base + site.lockFile,
      packageBaseUrl: `${base}packages/`,
      packages: site.packages,
    }),
  ]);
  pyodide.registerJsModule("_weft_page", page);
  offerLater(pyodide, site, base);
  forward(pyodide);
  const flags = interrupt && new Uint8Array(interrupt);
  if (flags) pyodide.setInterruptBuffer(flags);
  const code = "import weft_playground\nweft_playground.warm_up()";
  const described = String(await pyodide.runPythonAsync(code, { filename: "weft_boot.py" }));
  post({
    type: "ready",
    ...(JSON.parse(described) as Pick<ReadyMessage, "python" | "weft" | "canWait">),
    features: [...page.features],
    hasGpu: page.gpu !== null,
    bootMs: performance.now() - started,
  });
  return { pyodide, page, site, base, fetched: new Set(), interrupt: flags };
}

/** Puts every asset that the program names into the current directory. */
async function fetchAssets({ pyodide, site, base, fetched }: Session, source: string): Promise<void> {
  const wanted = site.assets.filter(({ name }) => source.includes(name) && !fetched.has(name));
  await Promise.all(
    wanted.map(async ({ name, url }) => {
      const response = await fetch(base + url);
      if (!response.ok) throw new Error(`the file ${name} could not be fetched (${response.status})`);
      pyodide.FS.writeFile(name, new Uint8Array(await response.arrayBuffer()));
      fetched.add(name);
    }),
  );
}

async function run(current: Session, { source, backend, url, token }: RunMessage): Promise<void> {
  const { pyodide, page, interrupt } = current;
  timings = {};
  page.device.resetPeak();
  const started = performance.now();
  let outcome: Outcome;
  try {
    await fetchAssets(current, source);
    if (interrupt) interrupt[0] = 0;
    const locals = pyodide.toPy({ source, backend, url, token });
    try {
      const result = await pyodide.runPythonAsync(
        "import weft_playground\nawait weft_playground.run(source, backend, url, token)",
        { globals: locals, filename: "weft_run.py" },
      );
      outcome = JSON.parse(String(result)) as Outcome;
    } finally {
      locals.destroy();
    }
  } catch (error) {
    const { name, message } = error as Error & { type?: string };
    // An interrupt that comes between two programs' lines surfaces here.
    const interrupted = (error as { type?: string }).type === "KeyboardInterrupt";
    outcome = interrupted
      ? { status: "stopped" }
      : { status: "error", error: { type: name, message, line: null, column: null, short: message, full: null } };
  }
  post({ type: "done", outcome, runMs: performance.now() - started, timings, peakBytes: page.device.stats().peak });
}

scope.addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === "boot") {
    session = boot(data);
    session.catch((error: unknown) => post({ type: "failed", message: String((error as Error)?.message ?? error) }));
  } else {
    void session?.then((current) => run(current, data)).catch(() => {});
  }
});
