/** The playground page: ties editor, worker, output and controls together. */
import { firstWorker, site } from "./boot.js";
import { Console } from "./console.js";
import { createEditor } from "./editor.js";
import { Figures } from "./figures.js";
import { milliseconds } from "./numbers.js";
import { PythonWorker } from "./python_worker.js";
import type { Backend, Outcome, ReadyMessage } from "./protocol.js";
import { decodeProgram, encodeProgram } from "./share.js";

const element = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

/** Settings survive a reload where the browser lets them. */
const stored = {
  get: (key: string, storage: Storage = localStorage): string | null => {
    try {
      return storage.getItem(`weft:${key}`);
    } catch {
      return null;
    }
  },
  set: (key: string, value: string, storage: Storage = localStorage): void => {
    try {
      storage.setItem(`weft:${key}`, value);
    } catch {
      // Private windows may refuse; the page works without.
    }
  },
};

const runButton = element<HTMLButtonElement>("run");
const stopButton = element<HTMLButtonElement>("stop");
const state = element("state");
const figures = new Figures(element("figures"));
const output = new Console(element("console"));
const timingsShown = new Map<string, string>();
/** Whether the program draws its own curve "loss". */
let drawsLosses = false;
// A printed "step 40  loss 0.31" extends the curve, so that a program needs nothing of the page to be watched.
const LOSS_LINE = /\bstep\b\D{0,8}(\d+)\b.*?\bloss\b[\s:=]{0,8}([-+]?\d[\d.]*(?:e[-+]?\d+)?)/i;
let partialLine = "";

function show(text: string, kind: "boot" | "idle" | "busy" | "error"): void {
  state.textContent = text;
  state.dataset["state"] = kind;
  runButton.disabled = kind === "busy";
  stopButton.disabled = kind !== "busy";
}

function showTimings(): void {
  element("timings").replaceChildren(
    ...[...timingsShown].map(([name, value]) => {
      const row = document.createElement("div");
      row.append(Object.assign(document.createElement("dt"), { textContent: name }));
      row.append(Object.assign(document.createElement("dd"), { textContent: value }));
      return row;
    }),
  );
}

// ---- Python ----

const BACKEND_NAMES: Record<Backend, string> = { wasm: "Wasm", webgpu: "WebGPU", remote: "host" };

function chosenBackend(): Backend {
  return document.querySelector<HTMLInputElement>("input[name=backend]:checked")!.value as Backend;
}

function ready(info: ReadyMessage): void {
  timingsShown.set("boot", milliseconds(info.bootMs));
  showTimings();
  const features = info.features.length ? ` (${info.features.join(", ")})` : "";
  element("engine").textContent = `Python ${info.python} · Wasm${features}${info.hasGpu ? " · WebGPU" : ""}`;
  const gpu = document.querySelector<HTMLInputElement>("input[value=webgpu]")!;
  gpu.disabled = !info.hasGpu;
  gpu.parentElement!.title = info.hasGpu
    ? "The GPU of this machine, through WebGPU"
    : "This browser offers no WebGPU adapter";
  if (!info.hasGpu && gpu.checked) document.querySelector<HTMLInputElement>("input[value=wasm]")!.checked = true;
  if (!info.canWait) {
    output.note(
      "This browser can't suspend WebAssembly (JSPI): " +
        "write `await x` where a program waits for a WebGPU or host result.",
    );
  }
  if (!python.busy) show("Ready", "idle");
  else show("Running", "busy");
  performance.mark("weft:ready");
}

function readLosses(text: string): void {
  const lines = (partialLine + text).split("\n");
  partialLine = lines.pop()!.slice(-500);
  for (const line of lines) {
    const match = LOSS_LINE.exec(line);
    if (match && !drawsLosses) figures.live("loss", Number(match[1]), Number(match[2]));
  }
}

function done(outcome: Outcome, runMs: number, timings: Record<string, number>, peakBytes: number): void {
  output.flush();
  for (const phase of ["trace", "compile"]) {
    if (phase in timings) timingsShown.set(phase, milliseconds(timings[phase]!));
    else timingsShown.delete(phase);
  }
  timingsShown.set("run", milliseconds(runMs));
  const mebibytes = peakBytes / 2 ** 20;
  if (mebibytes >= 0.1 && chosenBackend() === "wasm") {
    timingsShown.set("peak memory", `${mebibytes.toFixed(mebibytes < 10 ? 1 : 0)} MiB`);
  } else timingsShown.delete("peak memory");
  showTimings();
  if (outcome.status === "stopped") output.note("Stopped.");
  if (outcome.error) {
    output.error(outcome.error, (line) => editor.goto(line));
    editor.markError(outcome.error.line);
  }
  const ends = { ok: `Done on ${BACKEND_NAMES[chosenBackend()]}`, stopped: "Stopped", error: "Failed" } as const;
  show(ends[outcome.status], outcome.status === "error" ? "error" : "idle");
  document.dispatchEvent(new CustomEvent("weft:done", { detail: outcome.status }));
}

const python = new PythonWorker(firstWorker, {
  ready,
  failed(message) {
    output.clear();
    output.note(`Python did not start: ${message}`);
    show("Python did not start; reload the page", "error");
  },
  output(stream, text) {
    output.write(stream, text);
    if (stream === "stdout") readLosses(text);
    if (!performance.getEntriesByName("weft:first-output").length) performance.mark("weft:first-output");
  },
  live(label, x, y) {
    drawsLosses ||= label === "loss";
    figures.live(label, x, y);
  },
  plot: ({ kind, label, x, y }) => figures.plot(kind, label, x, y),
  done,
  restarted() {
    output.flush();
    output.note("Stopped; Python was started again.");
    show("Starting Python", "boot");
  },
});

function run(): void {
  if (python.busy) return;
  editor.markError(null);
  figures.clear();
  output.clear();
  partialLine = "";
  drawsLosses = false;
  show("Running", "busy");
  const url = element<HTMLInputElement>("host-url").value.trim();
  const token = element<HTMLInputElement>("host-token").value.trim();
  python.run({ source: editor.text(), backend: chosenBackend(), url, token });
}

// ---- Program ----

const examples = element<HTMLSelectElement>("examples");
examples.append(...site.examples.map(({ id, title }) => new Option(title, id)));
examples.append(Object.assign(new Option("Your program", ""), { hidden: true }));

function describe(source: string): void {
  const example = site.examples.find((each) => each.source === source);
  examples.value = example?.id ?? "";
  element("summary").textContent = example?.summary ?? "";
}

const shared = await decodeProgram(location.hash);
const initial = shared ?? stored.get("source") ?? site.examples[0]?.source ?? "";
const editor = createEditor(element("editor"), initial, run, (text) => {
  stored.set("source", text);
  describe(text);
});
describe(initial);

examples.addEventListener("change", () => {
  const example = site.examples.find(({ id }) => id === examples.value);
  if (example) editor.replace(example.source);
});

// ---- Controls ----

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);
element("run-key").textContent = isMac ? "⌘ ↵" : "Ctrl ↵";
runButton.setAttribute("aria-keyshortcuts", isMac ? "Meta+Enter" : "Control+Enter");
runButton.addEventListener("click", run);
stopButton.addEventListener("click", () => python.stop());
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented) run();
});

element("share").addEventListener("click", async () => {
  history.replaceState(null, "", await encodeProgram(editor.text()));
  const copied = await navigator.clipboard?.writeText(location.href).then(
    () => true,
    () => false,
  );
  const before = element("share").textContent;
  element("share").textContent = copied ? "Copied" : "In the address";
  setTimeout(() => (element("share").textContent = before), 1600);
});

const hostForm = element<HTMLFormElement>("host");
const hostUrl = element<HTMLInputElement>("host-url");
const hostToken = element<HTMLInputElement>("host-token");
// `make play` prints an address whose fragment holds the host it started. A token is a secret: it leaves the address
// at once and lives as long as the tab.
const given = new URLSearchParams(location.hash.slice(1));
if (given.has("host")) {
  stored.set("host", given.get("host")!);
  stored.set("token", given.get("token") ?? "", sessionStorage);
  history.replaceState(null, "", location.pathname + location.search);
}
hostUrl.value = stored.get("host") ?? "ws://127.0.0.1:8765";
hostToken.value = stored.get("token", sessionStorage) ?? "";
hostUrl.addEventListener("change", () => stored.set("host", hostUrl.value));
hostToken.addEventListener("change", () => stored.set("token", hostToken.value, sessionStorage));
hostForm.addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
element("backends").addEventListener("change", () => (hostForm.hidden = chosenBackend() !== "remote"));

const THEMES = ["system", "light", "dark"] as const;
function setTheme(theme: string): void {
  document.documentElement.dataset["theme"] = theme;
  element("theme").setAttribute("aria-label", `Colours: ${theme === "system" ? "as the system" : theme}`);
  element("theme").title = element("theme").getAttribute("aria-label")!;
  stored.set("theme", theme);
  figures.recolour();
}
setTheme(stored.get("theme") ?? "system");
element("theme").addEventListener("click", () => {
  // The first click always changes what one sees.
  const dark =
    getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (document.documentElement.dataset["theme"] === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  const now = document.documentElement.dataset["theme"];
  setTheme(now === "system" ? (dark ? "light" : "dark") : THEMES[(THEMES.indexOf(now as "dark") + 1) % THEMES.length]!);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => figures.recolour());

const divider = element("divider");
let split = Number(stored.get("split") ?? 52);
function setSplit(percent: number): void {
  split = Math.min(Math.max(percent, 25), 75);
  document.documentElement.style.setProperty("--split", `${split}%`);
  divider.setAttribute("aria-valuenow", String(Math.round(split)));
  stored.set("split", String(split));
}
setSplit(split);
divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
divider.addEventListener("pointermove", (event) => {
  if (!divider.hasPointerCapture(event.pointerId)) return;
  const { left, width } = divider.parentElement!.getBoundingClientRect();
  setSplit((100 * (event.clientX - left)) / width);
});
divider.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
  if (step) setSplit(split + step);
});

const welcome = document.createElement("div");
welcome.className = "placeholder";
for (const text of [
  "Python runs in this page; nothing you write leaves it.",
  `Press ${isMac ? "⌘" : "Ctrl"}-Enter to run the program.`,
]) {
  welcome.append(Object.assign(document.createElement("p"), { textContent: text }));
}
element("console").append(welcome);
// Run may be pressed from now on, and waits for Python; until here nothing would have heard it.
if (state.dataset["state"] === "boot") show("Starting Python", "boot");

if (!crossOriginIsolated && "serviceWorker" in navigator) {
  // Takes effect with the next visit; Stop restarts Python until then.
  navigator.serviceWorker.register("service-worker.js").catch(() => {});
}
