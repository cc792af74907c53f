/** The playground page: ties documents, Python and controls together. */
import { newCell, newDocument } from "../documents/model.js";
import { showSource } from "../editor/index.js";
import type { ReadyMessage, RunOptions } from "../kernel/protocol.js";
import { Python, type KernelEvents } from "../kernel/python.js";
import { KernelRunner } from "../notebook/kernel_runner.js";
import { useRenderers } from "../notebook/renderers.js";
import { manual, useManual } from "../output/manual.js";
import { byId } from "./dom.js";
import { DocumentConsents } from "./consents.js";
import { Desk } from "./desk.js";
import { EmbedDialog } from "./embed_dialog.js";
import { Examples } from "./examples.js";
import { dropFiles, Files } from "./files.js";
import { boot, firstWorker, site } from "./first.js";
import { BackendChoice } from "./host.js";
import { useInspector } from "./inspecting.js";
import { index } from "./language.js";
import { LibraryPanel } from "./library_panel.js";
import { useMenu } from "./menu.js";
import { Notices } from "./notices.js";
import { StatusWatcher } from "./run.js";
import { Shelf } from "./shelf.js";
import { settings } from "./settings.js";
import { Status } from "./status.js";
import { onTheme, useTheme } from "./theme.js";

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);
const modifier = isMac ? "⌘" : "Ctrl";
/** A device that is only touched has no such keys, as far as one can tell. */
const hasKeys = matchMedia("(any-hover: hover)").matches;
const runButton = byId<HTMLButtonElement>("run");
const stopButton = byId<HTMLButtonElement>("stop");
const notices = new Notices(byId("notices"));
const status = new Status(byId("state"), byId("timings"), enable);

/** What can be pressed: a script runs once at a time, while cells of a notebook may wait for each other. */
function enable(): void {
  const busy = status.current === "busy";
  runButton.disabled = !desk.open || (busy && desk.open.form === "script");
  stopButton.disabled = !busy;
}

// ---- Python ----

function ready(info: ReadyMessage): void {
  status.time("boot", info.bootMs);
  const features = info.features.length ? ` (${info.features.join(", ")})` : "";
  byId("engine").textContent = `Python ${info.python} · Wasm${features}${info.hasGpu ? " · WebGPU" : ""}`;
  choice.ready(info);
  if (!info.canWait) {
    notices.show(
      "This browser can't suspend WebAssembly (JSPI): " +
        "write `await x` where a program waits for a WebGPU or host result.",
    );
  }
  status.show(python.busy ? "Running" : "Ready", python.busy ? "busy" : "idle");
  performance.mark("weft:ready");
  settings.set("visited", "yes");
  keepForOffline();
}

/**
 * From the next visit on the page needs no network, and is isolated also where its host can't send the headers. Begins
 * once Python is ready, so that it takes nothing from the first visit's start.
 */
function keepForOffline(): void {
  // In a private window, or from an address that is not secure, a browser refuses: the page works as it did.
  navigator.serviceWorker?.register("service-worker.js", { updateViaCache: "none" }).catch(() => undefined);
}

const events: KernelEvents = {
  ready,
  failed(message) {
    status.show("Python did not start", "error");
    notices.show(`Python did not start: ${message}. Your document is safe.`, {
      text: "Try again",
      run: () => python.restart(),
    });
  },
  file: (name, problem) => files.given(name, problem),
  progress: (what, loaded, total) => status.progress(what, loaded, total),
  restarted(why) {
    desk.forget();
    if (why === "stuck") {
      notices.show("Stopped. Python did not react, so it was started again; what your cells defined is gone.");
    }
    status.show("Starting Python", "boot");
  },
};
const python = new Python(boot, events, firstWorker);

// ---- Documents ----

useRenderers(() => python, onTheme);
useManual(document.baseURI);

const choice = new BackendChoice(
  () => desk.runAll(),
  (backend) => {
    if (!desk.open) return;
    desk.open.options.backend = backend;
    shelf.changed(desk.open);
  },
);

const options = (): RunOptions => ({
  backend: choice.backend,
  ...choice.host,
  x64: desk.open?.options.x64 ?? false,
  inspected: !byId("inspector").hidden,
});
const consents = new DocumentConsents(() => desk.open?.id ?? "");
const runner = new KernelRunner(() => python, new StatusWatcher(() => python, status), options, consents);

const desk = new Desk({
  parent: byId("document"),
  title: byId<HTMLInputElement>("title"),
  runner,
  asker: { ask: (topic, about) => python.ask(topic, about) },
  index,
  changed: (document) => shelf.changed(document),
  opened(document) {
    choice.backend = document.options.backend;
    enable();
    runButton.title = document.form === "script" ? "Run the program" : "Run all cells from a fresh start";
    byId("run-key").hidden = document.form !== "script"; // there the keys run a cell
    runButton.querySelector("span")!.textContent = document.form === "script" ? "Run" : "Run all";
    // A loose document has no place yet that a reload could open.
    if (!document.origin || shelf.isKept(document)) settings.set("document", document.id);
  },
  openSource: (module, line, text) => showSource(module, line, text),
  welcome: [
    "Python runs in this page; nothing you write leaves it.",
    hasKeys ? `Press ${modifier}-Enter to run the program.` : "Press Run to run the program.",
  ],
});

const examples = new Examples(site, document.baseURI);
const shelf = await Shelf.open(notices, desk, (id) => examples.open(id));

const panel = new LibraryPanel(byId<HTMLDialogElement>("library"), {
  shelf,
  examples,
  open: (document) => desk.show(document, true),
  openExample: (id) => void shelf.openLink(`#example=${id}`),
});
const embedding = new EmbedDialog(byId<HTMLDialogElement>("embed"));
const files = new Files(shelf, desk, python, notices);

desk.show(await shelf.first(settings.get("document"), () => examples.first()));
window.addEventListener("hashchange", () => void shelf.openLink(location.hash));

// ---- Controls ----

byId("run-key").textContent = isMac ? "⌘ ↵" : "Ctrl ↵";
runButton.setAttribute("aria-keyshortcuts", isMac ? "Meta+Enter" : "Control+Enter");
runButton.addEventListener("click", () => desk.runAll());
stopButton.addEventListener("click", () => stop());
document.addEventListener("keydown", (event) => {
  const held = event.ctrlKey || event.metaKey;
  if (event.key === "Enter" && held && !event.defaultPrevented) desk.runCurrent();
  if (event.key === "s" && held) {
    event.preventDefault();
    void shelf.save().then(() => notices.show("Every change is kept as you type.", undefined, 2500));
  }
});
byId("documents").addEventListener("click", () => panel.show());
useTheme(byId("theme"));
useInspector({ python: () => python, desk, status, options, failed: (message) => notices.show(message) });
dropFiles(document.body, (list) => void files.take(list));

function stop(): void {
  status.show("Stopping", "busy");
  python.stop();
}

byId("share").addEventListener("click", async () => {
  if (!desk.open) return;
  const link = await shelf.link(desk.open);
  if (link === null) return;
  history.replaceState(null, "", link);
  const copied = await navigator.clipboard?.writeText(location.href).then(
    () => true,
    () => false,
  );
  const share = byId("share");
  share.textContent = copied ? "Copied" : "In the address";
  setTimeout(() => (share.textContent = "Share"), 1600);
});

/** The first page of the documentation, once it is known to be there. */
let home: string | null = null;
byId("menu").addEventListener("beforetoggle", () => {
  if (home) return;
  void manual().then((found) => {
    home = found?.home ?? null;
    if (home) refillMenu();
  });
});

const refillMenu = useMenu(byId("menu"), () => [
  {
    title: "New",
    entries: [
      { text: "New script", run: () => void shelf.adopt(newDocument()).then((each) => desk.show(each, true)) },
      {
        text: "New notebook",
        run: () => {
          const cells = [newCell("code", "")];
          void shelf.adopt(newDocument({ form: "notebook", cells })).then((each) => desk.show(each, true));
        },
      },
      { text: "Open file…", run: () => byId("open-file").click() },
    ],
  },
  {
    title: "Save as",
    entries: [
      { text: "Download .py", run: () => void files.save("py") },
      { text: "Download .ipynb", run: () => void files.save("ipynb") },
      { text: "Download .html with outputs", run: () => void files.save("html") },
      { text: "Download all documents", run: () => void files.save("all") },
    ],
  },
  {
    title: "Share",
    entries: [
      {
        text: "Embed in a page…",
        run: () => {
          if (desk.open) void embedding.show(desk.open).catch((error: Error) => notices.show(error.message));
        },
      },
    ],
  },
  {
    title: "Document",
    entries: [
      {
        text: "Notebook of cells",
        checked: () => desk.open?.form === "notebook",
        run: () => desk.changeForm(),
      },
      {
        text: "64-bit types",
        checked: () => desk.open?.options.x64 ?? false,
        run: () => {
          if (!desk.open) return;
          desk.open.options.x64 = !desk.open.options.x64;
          shelf.changed(desk.open);
        },
      },
      { text: "Clear outputs", run: () => desk.clearOutputs() },
      { text: "Restart Python", run: () => python.restart() },
    ],
  },
  ...(home === null
    ? []
    : [{ title: "Help", entries: [{ text: "Documentation", run: () => void open(home!, "_blank", "noopener") }] }]),
]);

const opener = byId<HTMLInputElement>("open-file");
opener.addEventListener("change", () => {
  void files.take([...(opener.files ?? [])]);
  opener.value = "";
});
