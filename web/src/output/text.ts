/**
 * Text as a terminal shows it: colours by ANSI escape sequences, and carriage returns that write over a line, as
 * progress bars do.
 */
import Anser, { type AnserJsonEntry } from "anser";

export type Stream = "stdout" | "stderr";

/** Characters of a line that are laid out; longer lines are cut. */
const MOST_IN_LINE = 20_000;
/**
 * Characters that are stored; the oldest blocks are removed first, so that endless output does not fill the page's
 * memory.
 */
const KEEP = 200_000;
/** Characters of one block, which is dropped whole. */
const BLOCK = 8_000;

const COLOURS: Record<string, string> = {
  black: "var(--ink)",
  red: "var(--error)",
  green: "var(--good)",
  yellow: "var(--thread)",
  blue: "var(--accent)",
  magenta: "var(--syntax-keyword)",
  cyan: "var(--syntax-name)",
  white: "var(--dim)",
};
const STEPS = [0, 95, 135, 175, 215, 255] as const;

/** The text of a line after its carriage returns have overwritten earlier text. */
export function overwritten(line: string): string {
  if (!line.includes("\r")) return line;
  let shown = "";
  for (const part of line.split("\r")) {
    // Escape sequences have no width: where there are some, all of the line is replaced.
    const keeps = !part.includes("\x1b") && !shown.includes("\x1b");
    if (part) shown = keeps ? part + shown.slice(part.length) : part;
  }
  return shown;
}

/** The CSS colour of one that anser names: one of 16, of the palette of 256, or three numbers. */
export function colour(name: string | null, numbers: string | null): string | null {
  if (!name) return null;
  if (name === "ansi-truecolor") return numbers && `rgb(${numbers})`;
  const palette = /^ansi-palette-(\d+)$/.exec(name);
  if (!palette) return COLOURS[name.replace(/^ansi-(bright-)?/, "")] ?? null;
  const index = Number(palette[1]);
  if (index >= 232)
    return `rgb(${Array(3)
      .fill(8 + 10 * (index - 232))
      .join()})`;
  const cube = index - 16;
  return `rgb(${[Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((step) => STEPS[step]).join()})`;
}

/** A part of a line in its colours. */
function span(part: AnserJsonEntry): Node {
  if (!part.was_processed && !part.fg && !part.bg && !part.decorations?.length) {
    return document.createTextNode(part.content);
  }
  const element = document.createElement("span");
  element.textContent = part.content;
  element.style.color = colour(part.fg, part.fg_truecolor) ?? "";
  element.style.backgroundColor = colour(part.bg, part.bg_truecolor) ?? "";
  const decorations = new Set<string>(part.decorations ?? []);
  if (decorations.has("bold")) element.style.fontWeight = "650";
  if (decorations.has("italic")) element.style.fontStyle = "italic";
  if (decorations.has("underline")) element.style.textDecoration = "underline";
  if (decorations.has("dim")) element.style.opacity = "0.7";
  return element;
}

/** Text of both streams in the order in which it came. */
export class Text {
  readonly element = document.createElement("div");
  private block: HTMLElement | null = null;
  private blockLength = 0;
  private kept = 0;
  private cut = false;
  /** The unfinished line, and the elements that show it. */
  private line = "";
  private tail: HTMLElement | null = null;
  private stream: Stream = "stdout";
  private readonly colours: Record<Stream, Anser> = { stdout: new Anser(), stderr: new Anser() };

  constructor() {
    this.element.className = "text";
  }

  write(stream: Stream, text: string): void {
    if (stream !== this.stream) {
      this.endLine("");
      this.block = null;
      this.stream = stream;
    }
    // Of longer text only the end is ever seen.
    const recent = text.length > KEEP ? text.slice(text.indexOf("\n", text.length - KEEP) + 1) : text;
    if (recent !== text) this.cut = true;
    const lines = (this.line + recent).split("\n");
    this.line = lines.pop()!;
    this.tail?.remove();
    this.tail = null;
    if (lines.some((line) => line.includes("\x1b"))) for (const line of lines) this.append(line, "\n");
    else {
      // In some thousand characters at once, so that blocks stay small.
      for (let at = 0; at < lines.length; at += 100) {
        this.append(
          lines
            .slice(at, at + 100)
            .map(overwritten)
            .join("\n"),
          "\n",
        );
      }
    }
    if (this.line) this.showTail();
    this.drop();
  }

  private endLine(end: string): void {
    this.tail?.remove();
    this.tail = null;
    if (this.line) this.append(this.line, end);
    this.line = "";
  }

  private append(line: string, end: string): void {
    const block = this.current();
    const colours = this.colours[this.stream];
    if (line.includes("\x1b")) {
      const parts = colours.ansiToJson(overwritten(line), { use_classes: true, remove_empty: true, json: true });
      block.append(...parts.map(span), end);
    } else block.append(cut(overwritten(line)) + end);
    this.blockLength += line.length + 1;
    this.kept += line.length + 1;
  }

  private showTail(): void {
    const line = overwritten(this.line);
    this.tail = document.createElement("span");
    if (line.includes("\x1b")) {
      // The colours continue from here after the line has ended.
      const colours = Object.assign(new Anser(), this.colours[this.stream]);
      this.tail.append(...colours.ansiToJson(line, { use_classes: true, remove_empty: true, json: true }).map(span));
    } else this.tail.append(cut(line));
    this.current().append(this.tail);
  }

  private current(): HTMLElement {
    if (!this.block || this.blockLength > BLOCK) {
      // Lines end where a block does, so that blocks can be laid out apart, and only those in view.
      this.block = document.createElement("div");
      this.block.className = `block ${this.stream}`;
      this.blockLength = 0;
      this.element.append(this.block);
    }
    return this.block;
  }

  private drop(): void {
    while (this.kept > KEEP && this.element.childElementCount > 1) {
      const first = this.element.firstElementChild!;
      if (!first.classList.contains("note")) this.kept -= first.textContent?.length ?? 0;
      first.remove();
      this.cut = true;
    }
    if (!this.cut || this.element.firstElementChild?.classList.contains("note")) return;
    const note = document.createElement("div");
    note.className = "note";
    note.textContent = "… earlier output is not kept …";
    this.element.prepend(note);
  }
}

function cut(text: string): string {
  if (text.length <= MOST_IN_LINE) return text;
  return text
    .split("\n")
    .map((line) =>
      line.length <= MOST_IN_LINE ? line : `${line.slice(0, MOST_IN_LINE)} … (${line.length} characters)`,
    )
    .join("\n");
}
