/**
 * One document in a frame of another page: `?embed#doc=…`. It has no library: what a reader changes goes with the
 * frame, or to the playground. Python starts with the first run, since a page may have many frames.
 *
 * `&run` runs it once it is in sight, `&theme=dark` or `light` chooses colours, `&hide=code` shows the output alone.
 */
import type { Document } from "../documents/model.js";
import { fromFragment, toFragment } from "../documents/share.js";
import { showSource } from "../editor/index.js";
import type { RunOptions } from "../kernel/protocol.js";
import { Python } from "../kernel/python.js";
import { PageConsents } from "../notebook/consents.js";
import { backendOf, KernelRunner } from "../notebook/kernel_runner.js";
import { NotebookView } from "../notebook/notebook.js";
import { useRenderers } from "../notebook/renderers.js";
import type { DocumentView } from "../notebook/runner.js";
import { ScriptView } from "../notebook/script.js";
import { onColours } from "../output/colours.js";
import { button, create } from "../elements.js";
import { byId } from "./dom.js";
import { boot } from "./first.js";
import { index } from "./language.js";
import { StatusWatcher } from "./run.js";
import { Status } from "./status.js";

const asked = new URLSearchParams(location.search);
const page = document.documentElement;
if (asked.has("theme")) page.dataset["theme"] = asked.get("theme")!;
if (asked.get("hide") === "code") page.classList.add("only-output");

const run = button("", () => void view?.runAll(), { className: "primary" });
run.append(create("span", { textContent: "Run" }));
const stop = button("Stop", () => started?.stop());
const elsewhere = button("", () => void openElsewhere(), { title: "Open a copy in the playground" });
elsewhere.append(create("span", { className: "wide", textContent: "Open in " }), "playground");
const title = create("h1", { className: "embed-title" });
const state = create("span", { id: "state", role: "status" });
const timings = create("dl", { hidden: true });
const place = byId("document");
document.querySelector(".bar")!.replaceChildren(run, stop, state, title, elsewhere);
for (const id of ["host", "notices", "library", "embed", "open-file"]) byId(id).remove();
document.querySelector("footer")!.remove();

let shown: Document | null = null;
let view: DocumentView | null = null;
let started: Python | null = null;

const status = new Status(state, timings, () => {
  const busy = status.current === "busy";
  run.disabled = !view || busy;
  stop.hidden = !busy;
});

function python(): Python {
  started ??= new Python(boot, {
    ready: () => undefined,
    failed(message) {
      status.show(`Python did not start: ${message}`, "error");
      started?.dispose();
      started = null;
    },
    progress(what, loaded, total) {
      // Python that starts again after a stop does so for nobody: "Stopped" stays.
      if (started?.busy) status.progress(what, loaded, total);
    },
    file: () => undefined,
    restarted(why) {
      if (view instanceof NotebookView) view.forget();
      if (why === "stuck") status.show("Stopped; Python was started again", "idle");
    },
  });
  return started;
}

const runOptions = (): RunOptions => {
  const { backend, x64 } = shown!.options;
  return { backend: backendOf(backend, started?.info ?? null), url: "", token: "", x64 };
};
const runner = new KernelRunner(python, new StatusWatcher(python, status), runOptions, new PageConsents());

function show(opened: Document): void {
  view?.dispose();
  shown = opened;
  document.title = title.textContent = opened.title;
  const options = {
    document: opened,
    runner,
    asker: { ask: async (topic: string, about: unknown) => (await started?.ask(topic, about)) ?? null },
    index,
    changed: () => undefined,
    openSource: (module: string, line: number, text: string) => showSource(module, line, text),
  };
  if (opened.form === "script") {
    const script = new ScriptView(options);
    script.welcome(["Press Run: Python starts then, in this page."]);
    view = script;
  } else view = new NotebookView(options);
  place.dataset["form"] = opened.form;
  place.replaceChildren(view.element);
  status.show("", "idle");
}

async function openElsewhere(): Promise<void> {
  const fragment = shown ? await toFragment(shown) : "";
  window.open(new URL(`./${fragment}`, location.href), "_blank", "noopener");
}

/** The document of the address: that of a link. */
async function asks(): Promise<void> {
  try {
    const linked = await fromFragment(location.hash);
    if (linked) return show(linked);
    say("This address holds no document. Make one in the playground: More, Embed in a page.");
  } catch (error) {
    say((error as Error).message);
  }
}

function say(text: string): void {
  place.replaceChildren(create("p", { className: "embed-note", textContent: text }));
  status.show("", "error");
}

function runOnceSeen(): void {
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    seen.disconnect();
    void view?.runAll();
  });
  seen.observe(place);
}

useRenderers(python, onColours);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented) void view?.runCurrent();
});
window.addEventListener("hashchange", () => void asks());
await asks();
if (asked.has("run")) runOnceSeen();
