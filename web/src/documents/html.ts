/**
 * A document with what it showed, as one HTML file that opens anywhere: without a network, without scripts.
 *
 * The file also holds the document itself, so that the playground can open it again. Whatever a program has made, its
 * HTML and SVG too, is kept from acting: images stand in image elements, HTML in frames without rights, and the file's
 * policy allows no script and no request.
 */
import { FILE_STYLES } from "./html_styles.js";
import { escapeHtml, highlightPython } from "./highlight.js";
import { mathStyles, renderMarkdown } from "./markdown.js";
import { contentOf, DocumentError, fileStem, fromContent } from "./model.js";
import type { Cell, Document } from "./model.js";
import { DARK_SVG, type Output, type Outputs } from "./outputs.js";
import { LinkError, toFragment } from "./share.js";

const TYPE = "application/vnd.weft.document+json";
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
/** Files with outputs, images among them. */
const CHARACTERS = 256 * 2 ** 20;

export function htmlName(document: Document): string {
  return `${fileStem(document.title)}.html`;
}

function svgAddress(svg: string): string {
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function picture(address: string, dark: string | null, label: string): string {
  const image = `<img src="${escapeHtml(address)}" alt="${escapeHtml(label)}">`;
  if (dark === null) return `<p class="figure light">${image}</p>`;
  const source = `<source media="(prefers-color-scheme: dark)" srcset="${escapeHtml(dark)}">`;
  return `<p class="figure"><picture>${source}${image}</picture></p>`;
}

/** HTML of a program, in a frame that may do nothing. A frame can't know its height, so it is guessed from the rows. */
function frame(html: string, label: string): string {
  const rows = (html.match(/<(?:tr|p|br|li|div|h\d)\b/gi) ?? []).length;
  const height = Math.min(Math.max(rows, 2), 20) * 1.9 + 1;
  const scheme = '<meta name="color-scheme" content="light dark">';
  const rules = "body { font: 14px system-ui, sans-serif; margin: 4px } table { border-collapse: collapse }";
  const styles = `<style>${rules} td, th { padding: 3px 10px; text-align: right }</style>`;
  const page = escapeHtml(`<!doctype html>${scheme}${styles}${html}`);
  const title = escapeHtml(label || "Table");
  return `<iframe sandbox="" title="${title}" style="height: ${height.toFixed(1)}em" srcdoc="${page}"></iframe>`;
}

function jsonText(value: unknown): string {
  const text = JSON.stringify(value, null, 2);
  return text === undefined ? "" : text;
}

/** The richest form of a value that a file can show. */
async function showData(data: Record<string, unknown>): Promise<string> {
  const text = (type: string) => (typeof data[type] === "string" ? data[type] : null);
  const plain = text("text/plain") ?? "";
  const label = plain.replace(/\s+/g, " ").slice(0, 200);
  const svg = text("image/svg+xml");
  if (svg !== null) {
    const dark = text(DARK_SVG);
    return picture(svgAddress(svg), dark === null ? null : svgAddress(dark), label || "Figure");
  }
  for (const type of ["image/png", "image/jpeg", "image/gif", "image/webp"]) {
    const base64 = text(type)?.replace(/\s+/g, "");
    if (base64 && /^[A-Za-z0-9+/]+=*$/.test(base64)) {
      return picture(`data:${type};base64,${base64}`, null, label || "Figure");
    }
  }
  const html = text("text/html");
  if (html !== null) return frame(html, label);
  const markdown = text("text/markdown");
  if (markdown !== null) return `<div class="markdown">${await renderMarkdown(markdown)}</div>`;
  const latex = text("text/latex");
  if (latex !== null) {
    const formula = latex.trim().replace(/^\$+([^]*?)\$+$/, "$1");
    return `<div class="markdown">${await renderMarkdown(`$$\n${formula}\n$$`)}</div>`;
  }
  if (plain) return `<pre class="value">${escapeHtml(plain)}</pre>`;
  const json = Object.entries(data).find(([type]) => type === "application/json");
  return json ? `<pre class="value">${escapeHtml(jsonText(json[1]))}</pre>` : "";
}

/** Text as a terminal would show it in the end, without its colours. */
function settled(text: string): string {
  const plain = text.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, "").replace(/\r\n/g, "\n");
  return plain
    .split("\n")
    .map((line) => line.replace(/\r+$/, "").replace(/^[^]*\r/, ""))
    .join("\n");
}

async function showOutput(output: Output): Promise<string> {
  if (output.type === "display") return showData(output.data);
  if (output.type === "stream") return `<pre class="${output.name}">${escapeHtml(settled(output.text))}</pre>`;
  const { name, message, traceback } = output;
  return `<pre class="error">${escapeHtml(settled(traceback || `${name}: ${message}`))}</pre>`;
}

async function showCell(cell: Cell, outputs: readonly Output[]): Promise<string> {
  if (cell.kind === "markdown") return `<div class="markdown">${await renderMarkdown(cell.source)}</div>`;
  const code = cell.source === "" ? "" : `<pre class="code"><code>${highlightPython(cell.source)}</code></pre>`;
  const shown = [];
  for (const output of outputs) shown.push(await showOutput(output));
  const results = shown.join("\n");
  return `<div class="cell">${code}${results ? `\n<div class="output">\n${results}\n</div>` : ""}</div>`;
}

/** A link that opens the document in the playground, or the way to do so by hand. */
async function invitation(document: Document, playground: string): Promise<string> {
  let address: URL;
  try {
    address = new URL(playground);
  } catch (error) {
    throw new DocumentError(`The playground's address "${playground}" is no address.`, { cause: error });
  }
  if (!/^https?:$/.test(address.protocol)) return "";
  address.hash = "";
  try {
    const link = escapeHtml(`${address.href}${await toFragment(document)}`);
    return `<a class="open" href="${link}" rel="noopener">Open in the playground</a>`;
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
    const link = escapeHtml(address.href);
    return `<span class="open">To run it, open this file in the <a href="${link}" rel="noopener">playground</a></span>`;
  }
}

/**
 * The file.
 *
 * @param outputs What the cells showed. Figures have SVG among their data, and `DARK_SVG` for dark pages.
 * @param playground The address of the playground, to which the file links.
 */
export async function toHtml(document: Document, outputs: Outputs, playground: string): Promise<string> {
  const cells = [];
  for (const cell of document.cells) cells.push(await showCell(cell, outputs.get(cell.id) ?? []));
  const body = cells.join("\n\n");
  const math = body.includes("<math") ? await mathStyles() : "";
  // Within a script element only "</script" and "<!--" mean something.
  const content = contentOf(document).replaceAll("<", "\\u003c");
  const title = escapeHtml(document.title);
  const first = document.cells.find(({ source }) => source.trim() !== "");
  const titled = first?.kind === "markdown" && /^\s*# /.test(first.source);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="weft">
<title>${title}</title>
<style>${FILE_STYLES}${math}</style>
</head>
<body>
<header><span class="title">${title}</span> ${await invitation(document, playground)}</header>
<main>
${titled ? "" : `<h1>${title}</h1>\n`}${body}
</main>
<script type="${TYPE}">${content}</script>
</body>
</html>
`;
}

/**
 * The document in such a file, with a new id; null if the file holds none.
 *
 * @throws DocumentError if it holds one that is damaged, or the file is too large.
 */
export function fromHtml(text: string, name: string): Document | null {
  if (text.length > CHARACTERS) {
    throw new DocumentError(`${name} has ${text.length} characters; at most ${CHARACTERS} are allowed.`);
  }
  const start = text.lastIndexOf(`<script type="${TYPE}">`);
  if (start < 0) return null;
  const from = text.indexOf(">", start) + 1;
  const end = text.indexOf("</script>", from);
  if (end < 0) throw new DocumentError(`${name} ends within the document that it holds: download it again.`);
  return fromContent(text.slice(from, end), `the document in ${name}`);
}
