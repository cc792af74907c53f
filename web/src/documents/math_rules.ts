/** Math in Markdown: `$…$` and `\(…\)` within a line, `$$…$$` and `\[…\]` on their own. */
import type { MarkdownIt, StateBlock, StateInline } from "markdown-it";

export const INLINE = "math_inline";
export const BLOCK = "math_block";

const PAIRS = [
  { open: "$$", close: "$$", display: true },
  { open: "\\[", close: "\\]", display: true },
  { open: "\\(", close: "\\)", display: false },
  { open: "$", close: "$", display: false },
] as const;

/** Patterns that do not occur in the rest of a text: each is searched for only once, whatever the text. */
interface Memory {
  text: string;
  absent: Set<string>;
}

const memories = new WeakMap<object, Memory>();

function memoryOf(env: object, text: string): Memory {
  let memory = memories.get(env);
  if (memory?.text !== text) memories.set(env, (memory = { text, absent: new Set() }));
  return memory;
}

/** The position of a delimiter that no backslash escapes; -1 if there is none. */
function find(text: string, delimiter: string, from: number, memory: Memory): number {
  if (memory.absent.has(delimiter)) return -1;
  for (let index = from; index < text.length; index++) {
    if (text.startsWith(delimiter, index)) return index;
    if (text[index] === "\\") index++;
  }
  memory.absent.add(delimiter);
  return -1;
}

function inline(state: StateInline, silent: boolean): boolean {
  const { src, pos } = state;
  const pair = PAIRS.find(({ open }) => src.startsWith(open, pos));
  if (!pair) return false;
  const start = pos + pair.open.length;
  const end = find(src, pair.close, start, memoryOf(state.env, src));
  const content = src.slice(start, end);
  if (end < 0 || content.trim() === "") return false;
  // Money: no formula begins or ends with a space, and no digit follows it.
  if (pair.open === "$" && (/^\s|\s$/.test(content) || /\d/.test(src[end + 1] ?? ""))) return false;
  if (!silent) {
    const token = state.push(pair.display ? BLOCK : INLINE, "math", 0);
    token.content = content;
  }
  state.pos = end + pair.close.length;
  return true;
}

function block(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  const lineAt = (line: number) => state.src.slice(state.bMarks[line]! + state.tShift[line]!, state.eMarks[line]);
  const first = lineAt(startLine);
  const pair = PAIRS.find(({ open, display }) => display && first.startsWith(open));
  if (!pair) return false;
  const memory = memoryOf(state.env, state.src);
  if (memory.absent.has(`\n${pair.close}`)) return false;
  const lines: string[] = [];
  for (let line = startLine; line < endLine; line++) {
    let text = line === startLine ? first.slice(pair.open.length) : lineAt(line);
    if (line > startLine && state.sCount[line]! < state.blkIndent && text !== "") return false;
    const ends = text.trimEnd().endsWith(pair.close);
    if (ends) text = text.trimEnd().slice(0, -pair.close.length);
    lines.push(text);
    if (!ends) {
      // A formula with text after it belongs to a paragraph.
      if (text.includes(pair.close)) return false;
      continue;
    }
    if (lines.join("").trim() === "") return false;
    if (silent) return true;
    const token = state.push(BLOCK, "math", 0);
    token.block = true;
    token.content = lines.join("\n").trim();
    token.map = [startLine, line + 1];
    state.line = line + 1;
    return true;
  }
  memory.absent.add(`\n${pair.close}`);
  return false;
}

/** Teaches a parser to recognise math; it makes tokens `INLINE` and `BLOCK`. */
export function mathRules(markdown: MarkdownIt): void {
  markdown.inline.ruler.before("escape", "math", inline);
  markdown.block.ruler.after("blockquote", "math", block, { alt: ["paragraph", "reference", "blockquote", "list"] });
}
