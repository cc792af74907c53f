/** Markdown with math: `$…$` within a line, `$$…$$` over several. Loaded with the first cell of Markdown. */
import { pythonLanguage } from "@codemirror/lang-python";
import { markdown, markdownLanguage } from "@codemirror/lang-markdown";
import type { Extension } from "@codemirror/state";
import { Tag, tags } from "@lezer/highlight";
import type { MarkdownConfig } from "@lezer/markdown";

const DOLLAR = 36;
const BACKSLASH = 92;
const content = tags.special(tags.content);
const mark = Tag.define(tags.processingInstruction);

const math: MarkdownConfig = {
  defineNodes: [
    { name: "InlineMath", style: content },
    { name: "BlockMath", block: true, style: content },
    { name: "MathMark", style: mark },
  ],
  parseInline: [
    {
      name: "InlineMath",
      before: "Escape",
      parse(cx, next, pos) {
        if (next === BACKSLASH && cx.char(pos + 1) === DOLLAR) return pos + 2;
        if (next !== DOLLAR) return -1;
        const size = cx.char(pos + 1) === DOLLAR ? 2 : 1;
        const space = /\s/;
        if (size === 1 && space.test(cx.slice(pos + 1, pos + 2))) return -1;
        for (let end = pos + size; end + size <= cx.end; end++) {
          if (cx.char(end) === BACKSLASH) end++;
          else if (cx.char(end) === DOLLAR && (size === 1 || cx.char(end + 1) === DOLLAR)) {
            if (end === pos + size || (size === 1 && space.test(cx.slice(end - 1, end)))) return -1;
            const marks = [cx.elt("MathMark", pos, pos + size), cx.elt("MathMark", end, end + size)];
            return cx.addElement(cx.elt("InlineMath", pos, end + size, marks));
          }
        }
        return -1;
      },
    },
  ],
  parseBlock: [
    {
      name: "BlockMath",
      before: "FencedCode",
      parse(cx, line) {
        if (!/^\$\$\s*$/.test(line.text.slice(line.pos))) return false;
        const from = cx.lineStart + line.pos;
        const marks = [cx.elt("MathMark", from, from + 2)];
        let end = cx.lineStart + line.text.length;
        while (cx.nextLine()) {
          end = cx.lineStart + line.text.length;
          if (!/^\s*\$\$\s*$/.test(line.text)) continue;
          const at = cx.lineStart + line.text.indexOf("$$");
          marks.push(cx.elt("MathMark", at, at + 2));
          cx.nextLine();
          break;
        }
        cx.addElement(cx.elt("BlockMath", from, end, marks));
        return true;
      },
    },
  ],
};

export function markdownWithMath(): Extension {
  return markdown({
    base: markdownLanguage,
    extensions: [math],
    codeLanguages: (info) => (/^(py|python|pycon)?\b/i.test(info) ? pythonLanguage : null),
    completeHTMLTags: false,
    pasteURLAsLink: true,
  });
}
