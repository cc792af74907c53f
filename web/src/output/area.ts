/** The output of a run, in order: text, values, errors. It is collected, and shown once for each frame. */
import { DARK_SVG, type Output } from "../documents/outputs.js";
import type { Bundle, ProgramError, Wanted } from "../kernel/protocol.js";
import { failure } from "./failure.js";
import { offer } from "./offer.js";
import { Text, type Stream } from "./text.js";
import { choose, type Renderer } from "./values.js";

/** More values than a reader looks at: the oldest are removed. */
const MOST_VALUES = 200;

interface Shown {
  mime: string;
  renderer: Renderer;
  bundle: Bundle;
}

export class OutputArea {
  private waiting: (() => void)[] = [];
  /** Text that waits for the frame; joined, since there may be much. */
  private text: { stream: Stream; text: string } | null = null;
  private scheduled = false;
  private clearFirst = false;
  private current: Text | null = null;
  private readonly shown = new Map<string, Shown>();
  private readonly errors = new WeakMap<Element, ProgramError>();

  /**
   * @param element holds what is shown, and scrolls.
   * @param wide where values of these MIME types go instead: figures stand above a script's text.
   */
  constructor(
    readonly element: HTMLElement,
    private readonly elsewhere: { element: HTMLElement; mimes: ReadonlySet<string> } | null = null,
  ) {}

  get empty(): boolean {
    return this.element.childElementCount === 0 && this.shown.size === 0;
  }

  /** The output, in order, in the form in which files store it. */
  async outputs(): Promise<Output[]> {
    this.flush();
    const values = new Map([...this.shown.values()].map((shown) => [shown.renderer.element as Element, shown]));
    const outputs: Output[] = [];
    for (const child of [...(this.elsewhere?.element.children ?? []), ...this.element.children]) {
      const value = values.get(child);
      const error = this.errors.get(child);
      if (value) outputs.push({ type: "display", data: await dataOf(value) });
      else if (error) {
        const { type, message, full, short } = error;
        outputs.push({ type: "error", name: type, message, traceback: full ?? short });
      } else if (child.classList.contains("text")) outputs.push(...streamsOf(child));
    }
    return outputs;
  }

  clear(wait = false): void {
    if (wait) {
      this.later(() => (this.clearFirst = true));
      return;
    }
    this.waiting = [];
    this.text = null;
    this.empties();
  }

  write(stream: Stream, text: string): void {
    if (this.text && this.text.stream !== stream) this.queueText();
    if (this.text) this.text.text += text;
    else this.text = { stream, text };
    this.schedule();
  }

  /** Shows a value of a run; an update replaces the value that the run showed under this name. */
  display(name: string, bundle: Bundle, update: boolean, run: number): void {
    this.later(() => this.show(name, bundle, update, run));
  }

  error(error: ProgramError, goto: (line: number) => void): void {
    this.later(() => {
      const element = failure(error, goto);
      this.errors.set(element, error);
      this.append(element);
    });
  }

  note(text: string): void {
    const note = document.createElement("div");
    note.className = "note";
    note.textContent = text;
    this.later(() => this.append(note));
  }

  /** A field for the line that the program waits for. */
  ask(answer: (line: string) => void): void {
    const form = document.createElement("form");
    form.className = "ask";
    const field = document.createElement("input");
    field.type = "text";
    field.autocomplete = "off";
    field.spellcheck = false;
    field.setAttribute("aria-label", "Line for the program, which waits for it");
    form.append(field);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      form.remove();
      this.write("stdout", `${field.value}\n`);
      answer(field.value);
    });
    this.later(() => {
      this.append(form);
      field.focus();
    });
    this.flush();
  }

  /** Asks whether to install packages that the site does not keep. */
  offer(wanted: readonly Wanted[], answer: (install: boolean) => void): void {
    const box = offer(wanted, answer);
    this.later(() => {
      this.append(box);
      box.scrollIntoView({ block: "nearest" });
    });
    this.flush();
  }

  /** Takes away what `ask` and `offer` show, if the program waits no longer. */
  endAsk(): void {
    this.element.querySelector("form.ask, .offer")?.remove();
  }

  /** Shows pending output without waiting for the next frame. */
  flush(): void {
    this.scheduled = false;
    this.queueText();
    // Follows the output unless its reader has scrolled up.
    const { scrollHeight, scrollTop, clientHeight } = this.element;
    const stick = scrollHeight - scrollTop - clientHeight < 40;
    for (const step of this.waiting.splice(0)) step();
    if (stick) this.element.scrollTop = this.element.scrollHeight;
  }

  private queueText(): void {
    const { text } = this;
    this.text = null;
    if (!text) return;
    this.waiting.push(() => {
      this.begin();
      if (!this.current) this.append((this.current = new Text()).element, true);
      this.current.write(text.stream, text.text);
    });
  }

  private later(step: () => void): void {
    this.queueText();
    this.waiting.push(step);
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    // A page in the background gets no frames.
    if (document.hidden) setTimeout(() => this.flush(), 100);
    else requestAnimationFrame(() => this.flush());
  }

  private begin(): void {
    if (!this.clearFirst) return;
    this.clearFirst = false;
    this.empties();
  }

  private empties(): void {
    this.current = null;
    for (const { renderer } of this.shown.values()) {
      renderer.dispose?.();
      renderer.element.remove();
    }
    this.shown.clear();
    this.element.replaceChildren();
  }

  private append(element: HTMLElement, isText = false): void {
    this.begin();
    if (!isText) this.current = null;
    this.element.append(element);
  }

  private show(name: string, bundle: Bundle, update: boolean, run: number): void {
    const { mime, make } = choose(bundle);
    const held = this.shown.get(name);
    if (held && update && held.mime === mime) {
      held.bundle = bundle;
      void held.renderer.show(bundle.data[mime], bundle.buffers, run);
      return;
    }
    const renderer = make();
    renderer.element.classList.add("shown");
    if (held) {
      held.renderer.dispose?.();
      held.renderer.element.replaceWith(renderer.element);
    } else if (this.elsewhere?.mimes.has(mime)) {
      this.begin();
      const { element } = this.elsewhere;
      // What came first stays where it is: figures stand above the text only if there was none yet.
      if (element.childElementCount === 0) element.classList.toggle("after", this.element.childElementCount > 0);
      element.append(renderer.element);
    } else this.append(renderer.element);
    this.shown.set(name, { mime, renderer, bundle });
    void renderer.show(bundle.data[mime] ?? bundle.data["text/plain"] ?? "", bundle.buffers, run);
    if (this.shown.size > MOST_VALUES) this.dropOldest();
  }

  private dropOldest(): void {
    const [name, oldest] = this.shown.entries().next().value!;
    oldest.renderer.dispose?.();
    oldest.renderer.element.remove();
    this.shown.delete(name);
  }
}

/** The parts of a value that a file can store: the types that other programs know, and drawings as SVG. */
async function dataOf({ bundle, renderer }: Shown): Promise<Record<string, unknown>> {
  const kept = Object.entries(bundle.data).filter(([type]) => !type.startsWith("application/vnd.weft."));
  const data: Record<string, unknown> = Object.fromEntries(kept);
  if (renderer.svg) {
    data["image/svg+xml"] = await renderer.svg(false);
    data[DARK_SVG] = await renderer.svg(true);
  }
  return data;
}

function streamsOf(text: Element): Output[] {
  const outputs: Extract<Output, { type: "stream" }>[] = [];
  for (const block of text.querySelectorAll(".block")) {
    const name = block.classList.contains("stderr") ? "stderr" : "stdout";
    const last = outputs.at(-1);
    if (last?.name === name) last.text += block.textContent;
    else outputs.push({ type: "stream", name, text: block.textContent ?? "" });
  }
  return outputs;
}
