/** Docstrings, taken apart: paragraphs, sections such as `Args:`, lists, and code. */

export type Block =
  | { kind: "paragraph"; text: string }
  | { kind: "heading"; text: string }
  /** The entries of a section, or those of a list, which have no names. */
  | { kind: "items"; items: { name: string; text: string }[] }
  | { kind: "code"; text: string };

const SECTION =
  /^(Args|Arguments|Parameters|Returns|Yields|Raises|Attributes|Examples?|Notes?|References|See also): ?(.*)$/i;
const NAMED = new Set(["args", "arguments", "parameters", "raises", "attributes"]);
/** A name, or several, before a colon: `x: …`, `*args: …`, `lower, upper: …`. */
const ITEM = /^(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*(?: \([^)]*\))?): +(.*)$/;

const indentOf = (line: string) => line.length - line.trimStart().length;

/** The blocks of a docstring without indentation. */
export function parseDocstring(text: string): Block[] {
  return body(text.split("\n"), "");
}

/** The first paragraph, in one line. */
export function summaryOf(text: string): string {
  return /^(?:.|\n(?!\s*\n))*/.exec(text.trim())![0].replace(/\s+/g, " ");
}

/** The docstring's text about a parameter. */
export function parameterDoc(text: string, name: string): string {
  for (const block of parseDocstring(text)) {
    if (block.kind !== "items") continue;
    const item = block.items.find((entry) =>
      entry.name.split(/[ ,(]+/).some((part) => part.replace(/^\*+/, "") === name),
    );
    if (item) return item.text;
  }
  return "";
}

function body(lines: string[], section: string): Block[] {
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    const found = indentOf(line) === 0 ? SECTION.exec(line) : null;
    if (line.trim() === "") at++;
    else if (found && section === "") {
      let end = at + 1;
      while (end < lines.length && (lines[end]!.trim() === "" || indentOf(lines[end]!) > 0)) end++;
      blocks.push({ kind: "heading", text: found[1]! });
      const inside = dedent(lines.slice(at + 1, end));
      const first = found[2] ? [found[2], ...inside] : inside;
      blocks.push(...body(first, found[1]!.toLowerCase()));
      at = end;
    } else if (/^\s*[-=~]{3,}$/.test(lines[at + 1] ?? "") && indentOf(line) === 0) {
      blocks.push({ kind: "heading", text: line.trim() });
      at += 2;
    } else if (/^\s*>>> /.test(line)) {
      let end = at;
      while (end < lines.length && lines[end]!.trim() !== "") end++;
      blocks.push({ kind: "code", text: dedent(lines.slice(at, end)).join("\n") });
      at = end;
    } else if (indentOf(line) >= 4) {
      let end = at;
      while (end < lines.length && (lines[end]!.trim() === "" || indentOf(lines[end]!) >= 4)) end++;
      blocks.push({ kind: "code", text: dedent(lines.slice(at, end)).join("\n").trimEnd() });
      at = end;
    } else {
      let end = at + 1;
      while (end < lines.length && lines[end]!.trim() !== "" && !(section === "" && SECTION.test(lines[end]!))) end++;
      blocks.push(...passage(lines.slice(at, end), NAMED.has(section)));
      at = end;
    }
  }
  return blocks;
}

/** A run of lines without a blank one: a paragraph, the entries of a section, or a list. */
function passage(lines: string[], named: boolean): Block[] {
  const start = (line: string) => (named ? ITEM.exec(line) : /^(?<none>)(?:[-*] |\d+\. )(.*)$/.exec(line));
  const blocks: Block[] = [];
  for (const line of lines) {
    const last = blocks[blocks.length - 1];
    const found = indentOf(line) === 0 ? start(line) : null;
    if (found && last?.kind === "items") last.items.push({ name: found[1]!, text: found[2]! });
    else if (found) blocks.push({ kind: "items", items: [{ name: found[1]!, text: found[2]! }] });
    else if (last?.kind === "items" && (named || indentOf(line) > 0)) {
      const item = last.items[last.items.length - 1]!;
      item.text += ` ${line.trim()}`;
    } else if (last?.kind === "paragraph") last.text += ` ${line.trim()}`;
    else blocks.push({ kind: "paragraph", text: line.trim() });
  }
  return blocks;
}

function dedent(lines: string[]): string[] {
  const margin = Math.min(...lines.filter((line) => line.trim() !== "").map(indentOf));
  return Number.isFinite(margin) ? lines.map((line) => line.slice(Math.min(margin, indentOf(line)))) : lines;
}
