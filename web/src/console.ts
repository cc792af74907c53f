/** The output pane: text as it comes, errors, notes. Text is collected and shown once for each frame. */
import type { ProgramError } from "./protocol.js";

/** Characters kept; the oldest go first, so that an endless print does not fill the page's memory. */
const KEEP = 400_000;

export class Console {
  private waiting: { stream: "stdout" | "stderr"; text: string }[] = [];
  private scheduled = false;
  private kept = 0;

  constructor(private readonly element: HTMLElement) {}

  clear(): void {
    this.waiting = [];
    this.kept = 0;
    this.element.replaceChildren();
  }

  write(stream: "stdout" | "stderr", text: string): void {
    const last = this.waiting.at(-1);
    if (last?.stream === stream) last.text += text;
    else this.waiting.push({ stream, text });
    if (this.scheduled) return;
    this.scheduled = true;
    // A page in the background gets no frames.
    if (document.hidden) setTimeout(() => this.flush(), 100);
    else requestAnimationFrame(() => this.flush());
  }

  note(text: string): void {
    this.append("div", "note", text);
  }

  error(error: ProgramError, goto: (line: number) => void): void {
    const box = this.append("div", "failure", "");
    if (error.line !== null) {
      const { line } = error;
      const link = document.createElement("button");
      link.type = "button";
      link.textContent = `line ${line}`;
      link.addEventListener("click", () => goto(line));
      box.append(link);
    }
    const name = document.createElement("strong");
    name.textContent = error.type;
    box.append(name, error.message ? `: ${error.message}` : "");
    const frames = error.short
      .split("\n")
      .filter((line) => /^(  File| {4})/.test(line)) // not the lines of the message, which stand above
      .join("\n");
    if (frames && error.type !== "SyntaxError") box.append(pre(frames));
    if (error.type === "SyntaxError") box.append(pre(error.short.split("\n").slice(1, -2).join("\n")));
    if (error.full) {
      const details = document.createElement("details");
      const summary = document.createElement("summary");
      summary.textContent = "Full traceback";
      details.append(summary, pre(error.full));
      box.append(details);
    }
    box.scrollIntoView({ block: "nearest" });
  }

  flush(): void {
    this.scheduled = false;
    // Follows the output unless its reader has scrolled up.
    const { scrollHeight, scrollTop, clientHeight } = this.element;
    const stick = scrollHeight - scrollTop - clientHeight < 40;
    for (const { stream, text } of this.waiting.splice(0)) {
      const last = this.element.lastElementChild;
      // Whole lines go into spans of some size, so that old ones can be dropped.
      if (last?.className === stream && (last.textContent?.length ?? 0) < 4000) last.append(text);
      else this.element.append(span(stream, text));
      this.kept += text.length;
    }
    while (this.kept > KEEP && this.element.childElementCount > 1) {
      const first = this.element.firstElementChild!;
      this.kept -= first.textContent?.length ?? 0;
      first.remove();
    }
    if (stick) this.element.scrollTop = this.element.scrollHeight;
  }

  private append(tag: string, className: string, text: string): HTMLElement {
    this.flush();
    const element = document.createElement(tag);
    element.className = className;
    element.textContent = text;
    this.element.append(element);
    element.scrollIntoView({ block: "nearest" });
    return element;
  }
}

function span(className: string, text: string): HTMLElement {
  const element = document.createElement("span");
  element.className = className;
  element.textContent = text;
  return element;
}

function pre(text: string): HTMLElement {
  const element = document.createElement("pre");
  element.textContent = text;
  return element;
}
