/** Python with colours, as text: classes `tok-…` around the tokens that the editor's parser finds. */
import { classHighlighter, highlightCode } from "@lezer/highlight";
import { parser } from "@lezer/python";

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text as HTML, for between tags and in attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character]!);
}

export function highlightPython(source: string): string {
  let html = "";
  highlightCode(
    source,
    parser.parse(source),
    classHighlighter,
    (text, classes) => (html += classes ? `<span class="${classes}">${escapeHtml(text)}</span>` : escapeHtml(text)),
    () => (html += "\n"),
  );
  return html;
}
