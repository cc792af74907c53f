/** Colours of Python and Markdown, from the page's variables. */
import { HighlightStyle } from "@codemirror/language";
import { tags } from "@lezer/highlight";

export const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.self], color: "var(--syntax-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--syntax-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--syntax-number)" },
  {
    tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)],
    color: "var(--syntax-name)",
    fontWeight: "600",
  },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.meta], color: "var(--syntax-name)" },
  { tag: tags.comment, color: "var(--syntax-comment)", fontStyle: "italic" },
  { tag: tags.heading, color: "var(--syntax-name)", fontWeight: "650" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strong, fontWeight: "650" },
  { tag: tags.strikethrough, textDecoration: "line-through" },
  { tag: [tags.link, tags.url], color: "var(--accent)" },
  { tag: tags.monospace, color: "var(--syntax-string)" },
  { tag: tags.quote, color: "var(--dim)" },
  { tag: tags.special(tags.content), color: "var(--syntax-number)" },
  { tag: [tags.processingInstruction, tags.contentSeparator], color: "var(--syntax-comment)" },
]);
