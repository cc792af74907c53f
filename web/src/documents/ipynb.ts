/** Documents as Jupyter notebooks: nbformat 4. */
import {
  checkOptions,
  checkShape,
  choiceOf,
  DocumentError,
  fieldsOf,
  fileStem,
  LIMITS,
  listOf,
  newDocument,
  newId,
  textOf,
  tidyTitle,
} from "./model.js";
import type { Cell, Document } from "./model.js";
import { commentMagics } from "./magics.js";
import type { Output, Outputs } from "./outputs.js";

/** Notebooks hold their outputs, with images; they are left out. */
const CHARACTERS = 128 * 2 ** 20;
const NOTICES = 20;

/** A text as notebooks keep it, so that differences show by line. */
function linesOf(text: string): string[] {
  const lines = text.split("\n");
  return lines.flatMap((line, index) => (index < lines.length - 1 ? [`${line}\n`] : line ? [line] : []));
}

function writeData(data: Record<string, unknown>): Record<string, unknown> {
  const isText = (type: string) => type.startsWith("text/") || type === "image/svg+xml";
  // Types with parameters are ours alone.
  const entries = Object.entries(data).filter(([type]) => !type.includes(";"));
  return Object.fromEntries(
    entries.map(([type, value]) => [type, typeof value === "string" && isText(type) ? linesOf(value) : value]),
  );
}

function writeOutput(output: Output): object {
  if (output.type === "stream") return { name: output.name, output_type: "stream", text: linesOf(output.text) };
  if (output.type === "display") return { data: writeData(output.data), metadata: {}, output_type: "display_data" };
  const { name, message, traceback } = output;
  return { ename: name, evalue: message, output_type: "error", traceback: traceback.split("\n") };
}

export function ipynbName(document: Document): string {
  return `${fileStem(document.title)}.ipynb`;
}

/** A document as the text of a notebook, with the outputs of its cells. */
export function toIpynb(document: Document, outputs: Outputs = new Map()): string {
  const { title, form, options } = document;
  const cells = document.cells.map(({ id, kind, source }) => {
    const common = { cell_type: kind, id, metadata: {}, source: linesOf(source) };
    if (kind === "markdown") return common;
    return { ...common, execution_count: null, outputs: (outputs.get(id) ?? []).map(writeOutput) };
  });
  const metadata = {
    kernelspec: { display_name: "Python 3", language: "python", name: "python3" },
    language_info: { name: "python" },
    title,
    weft: { form, ...options },
  };
  return `${JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1)}\n`;
}

function readVersion(notebook: Record<string, unknown>, name: string): void {
  const { nbformat, nbformat_minor: minor } = notebook;
  if (typeof nbformat !== "number" || !Number.isInteger(nbformat)) {
    throw new DocumentError(`${name} is no notebook: nbformat must be a whole number.`);
  }
  if (nbformat < 4) {
    const next = "Open it in Jupyter and save it there, which converts it.";
    throw new DocumentError(`${name} has the old notebook format ${nbformat}; this page reads format 4. ${next}`);
  }
  if (nbformat > 4) throw new DocumentError(`${name} has notebook format ${nbformat}; this page reads format 4.`);
  if (typeof minor !== "number" || !Number.isInteger(minor) || minor < 0) {
    throw new DocumentError(`${name}: nbformat_minor must be a whole number.`);
  }
}

function readSource(value: unknown, where: string): string {
  if (!Array.isArray(value)) return textOf(value, where);
  return value.map((line, index) => textOf(line, `${where}[${index}]`)).join("");
}

/**
 * The document in a notebook, and what a reader should know: what was changed or left out.
 *
 * Outputs are left out, raw cells become Markdown, and lines that are IPython's but not Python's become comments.
 *
 * @param name The file's name, for messages; a notebook without a title has its title from it.
 * @throws DocumentError if the text is no notebook of format 4, or is too large. The message names the place.
 */
export function fromIpynb(text: string, name: string): { document: Document; notices: string[] } {
  if (text.length > CHARACTERS) {
    const next = "Clear its outputs in Jupyter and save it.";
    throw new DocumentError(`${name} has ${text.length} characters; at most ${CHARACTERS} are allowed. ${next}`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new DocumentError(`${name} is not JSON, so it is no notebook: ${(error as Error).message}`, { cause: error });
  }
  const notebook = fieldsOf(value, name);
  readVersion(notebook, name);
  const metadata = fieldsOf(notebook["metadata"] ?? {}, `${name}: metadata`);
  const notices: string[] = [];
  const language = (metadata["kernelspec"] as { language?: unknown } | undefined | null)?.language;
  if (typeof language === "string" && language.toLowerCase() !== "python") {
    notices.push(`This notebook is written in ${language.slice(0, 50)}. This page runs Python.`);
  }
  let attachments = 0;
  const ids = new Set<string>();
  const cells = listOf(notebook["cells"], `${name}: cells`, LIMITS.cells).map((item, index): Cell => {
    const where = `${name}: cells[${index}]`;
    const cell = fieldsOf(item, where);
    const kind = choiceOf(cell["cell_type"], ["code", "markdown", "raw"], `${where}.cell_type`);
    let source = readSource(cell["source"], `${where}.source`);
    if (cell["attachments"]) attachments += Object.keys(fieldsOf(cell["attachments"], `${where}.attachments`)).length;
    if (kind === "code") {
      const commented = commentMagics(source);
      source = commented.source;
      for (const magic of commented.found) {
        const help = /^[!%]\s*(pip|conda|mamba)\b/.test(magic.text)
          ? "Packages are loaded when they are imported."
          : "This page runs Python without IPython's commands.";
        const shown = magic.text.length > 80 ? `${magic.text.slice(0, 79)}…` : magic.text;
        notices.push(`Cell ${index + 1}, line ${magic.line}: “${shown}” is now a comment. ${help}`);
      }
    }
    const given = cell["id"];
    const id = typeof given === "string" && /^[\w-]{1,64}$/.test(given) && !ids.has(given) ? given : newId();
    ids.add(id);
    return { id, kind: kind === "code" ? "code" : "markdown", source };
  });
  if (attachments) notices.push(`Images attached to cells are left out: ${attachments}.`);
  const more = notices.length - NOTICES;
  if (more > 0) notices.splice(NOTICES, more, `And ${more} more like these.`);
  const weft = fieldsOf(metadata["weft"] ?? {}, `${name}: metadata.weft`);
  const form = choiceOf(weft["form"] ?? "notebook", ["script", "notebook"], `${name}: metadata.weft.form`);
  const options = checkOptions({ backend: "wasm", x64: false, ...weft }, `${name}: metadata.weft`);
  const title = typeof metadata["title"] === "string" ? metadata["title"] : name.replace(/\.ipynb$/i, "");
  const document = newDocument({ title: tidyTitle(title), form, options, cells: checkShape(form, cells, name) });
  return { document, notices };
}
