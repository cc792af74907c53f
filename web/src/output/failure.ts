/** An error of a program: its name, its message, the reader's lines; the rest is behind a click. */
import type { ProgramError } from "../kernel/protocol.js";
import { manual } from "./manual.js";

export function failure(error: ProgramError, goto: (line: number) => void): HTMLElement {
  const box = document.createElement("div");
  box.className = "failure";
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
  void explain(name, error);
  box.append(name, error.message ? `: ${withoutPlace(error)}` : "");
  const lines = error.short.split("\n");
  if (error.type === "SyntaxError") box.append(pre(lines.slice(1, -2).join("\n")));
  else {
    // Not the lines of the message, which are above.
    const frames = lines.filter((line) => /^(  File| {4})/.test(line)).join("\n");
    if (frames) box.append(pre(frames));
  }
  if (error.full) {
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "Full traceback";
    details.append(summary, pre(error.full));
    box.append(details);
  }
  return box;
}

/** Makes the name of an error a link to its page, where the site has one. */
async function explain(name: HTMLElement, error: ProgramError): Promise<void> {
  const address = (await manual())?.errors.get(error.class);
  if (!address) return;
  const link = document.createElement("a");
  link.href = address;
  link.target = "_blank";
  link.rel = "noopener";
  link.title = "What this error means, and what to do";
  link.textContent = error.type;
  name.replaceChildren(link);
}

/** A message without the place at its end, "(program.py, line 2)" or "at program.py:2 (f)": the button shows it. */
function withoutPlace({ type, message, line }: ProgramError): string {
  if (type === "SyntaxError") return message.replace(/ \([^()]*, line \d+\)$/, "");
  return line === null ? message : message.replace(/\n *at (program\.py|cell \d+):\d+ \([^\n]*\)$/, "");
}

function pre(text: string): HTMLElement {
  const element = document.createElement("pre");
  element.textContent = text;
  return element;
}
