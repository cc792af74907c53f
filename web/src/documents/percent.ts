/**
 * Documents as Python files in the percent format, which Jupytext, VS Code, PyCharm and Spyder know.
 *
 * A script is its own text where that text reads back as the same document; else it follows a header. A notebook is a
 * header and cells. What a reader wrote comes back to the letter. Two things serve that alone:
 *
 * - A cell that holds a line like a marker says how many lines it has: `# %% lines=12`.
 * - In our own files exactly one blank line stands between cells; in others, blank lines at the end of a cell go.
 */
import {
  checkOptions,
  checkShape,
  choiceOf,
  contentOf,
  DocumentError,
  fileStem,
  LIMITS,
  newCell,
  newDocument,
  tidyTitle,
} from "./model.js";
import type { Cell, Document } from "./model.js";

const MARKER = /^#[ \t]*%%(?=\s|\[|$)([^]*)$/;
const FENCE = "# ---";

interface Header {
  title?: string;
  /** The contents of `weft:`, if the file is ours. */
  weft?: Map<string, string>;
  /** How many lines it takes. */
  lines: number;
}

function comment(line: string): string {
  return line === "" ? "#" : `# ${line}`;
}

function uncomment(line: string): string {
  return line.startsWith("# ") ? line.slice(2) : line.slice(1);
}

function writeHeader({ title, form, options }: Document): string {
  const lines = [`title: ${JSON.stringify(title)}`, "weft:", `  form: ${form}`];
  lines.push(`  backend: ${options.backend}`, `  x64: ${options.x64}`);
  return [FENCE, ...lines.map(comment), FENCE, "", ""].join("\n");
}

/** A scalar of the YAML that people write in headers: quoted text, or a word. */
function scalar(text: string): string {
  const value = text.trim();
  if (/^'.*'$/.test(value)) return value.slice(1, -1).replaceAll("''", "'");
  if (!/^".*"$/.test(value)) return value.replace(/\s+#.*$/, "");
  try {
    return String(JSON.parse(value));
  } catch {
    return value.slice(1, -1);
  }
}

/** The header of a file, or null if it does not begin with one of ours or of Jupytext's. */
function readHeader(lines: string[]): Header | null {
  if (lines[0]?.trimEnd() !== FENCE) return null;
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === FENCE);
  if (end < 0 || end > 1000) return null;
  const header: Header = { lines: end + 1 };
  let known = false;
  let section = "";
  for (const line of lines.slice(1, end)) {
    if (!line.startsWith("#") || line.length > 4000) return null;
    const match = /^( *)([\w-]+):(.*)$/.exec(uncomment(line).trimEnd());
    if (!match) continue;
    const [, indent, key, value] = match as unknown as [string, string, string, string];
    if (indent === "") {
      section = key;
      known ||= key === "jupyter" || key === "weft";
      if (key === "weft") header.weft = new Map();
      if (key === "title" && value.trim()) header.title = scalar(value);
    } else if (section === "weft" && header.weft) header.weft.set(key, scalar(value));
  }
  if (lines[header.lines]?.trim() === "") header.lines++;
  return known ? header : null;
}

/** The parts after `# %%`: a kind in brackets, a title, and metadata. */
function readMarker(line: string): { kind: Cell["kind"]; title: string; lines: number | null } {
  const rest = MARKER.exec(line)![1]!.slice(0, 1000);
  const value = String.raw`(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\{[^}]*\}|[^\s"[{]+)`;
  const metadata = new RegExp(String.raw`(?:\s+[\w.-]+=${value})+\s*$|\s+\{.*\}\s*$`).exec(` ${rest}`);
  const visible = metadata ? rest.slice(0, Math.max(metadata.index - 1, 0)) : rest;
  const bracket = /\[(\w+)\]/.exec(visible);
  const kind = bracket && ["markdown", "md", "raw"].includes(bracket[1]!.toLowerCase()) ? "markdown" : "code";
  const lines = /\slines=(\d{1,7})(?=\s|$)/.exec(metadata?.[0] ?? "");
  const title = (bracket ? visible.replace(bracket[0], " ") : visible).replace(/\s+/g, " ").trim();
  return { kind, title, lines: lines ? Number(lines[1]) : null };
}

function readMarkdown(body: string): string {
  const lines = body.split("\n");
  if (lines.every((line) => line.startsWith("#"))) return lines.map(uncomment).join("\n");
  // Jupytext also writes Markdown as a string.
  const text = body.trim();
  for (const quotes of ['"""', "'''"]) {
    if (text.length >= 6 && text.startsWith(quotes) && text.endsWith(quotes)) return text.slice(3, -3).trim();
  }
  return lines.map((line) => (line.startsWith("#") ? uncomment(line) : line)).join("\n");
}

function readCell(marker: ReturnType<typeof readMarker>, lines: string[], ours: boolean): Cell {
  let body = lines.join("\n");
  if (!ours) body = body.replace(/^(?:[ \t]*\n)+/, "").trimEnd();
  const { kind, title } = marker;
  const source = kind === "markdown" ? readMarkdown(body) : body;
  if (!title) return newCell(kind, source);
  // A document's cells have no titles: a title becomes text that a reader sees at the same place.
  return newCell(kind, kind === "markdown" ? `## ${title}\n\n${source}`.trimEnd() : `# ${title}\n${source}`.trimEnd());
}

/** The lines of the cells of a file; the last line is the text after the last line break. */
function readCells(lines: string[], ours: boolean): Cell[] {
  const markers = lines.flatMap((line, index) => (MARKER.test(line) ? [index] : []));
  const cells: Cell[] = [];
  const first = markers[0] ?? lines.length;
  if (lines.slice(0, first).some((line) => line.trim() !== "")) {
    cells.push(readCell({ kind: "code", title: "", lines: null }, lines.slice(0, first), false));
  }
  let start = first;
  while (start < lines.length) {
    if (cells.length >= LIMITS.cells) throw new DocumentError(`The file has more than ${LIMITS.cells} cells.`);
    const marker = readMarker(lines[start]!);
    let body: string[];
    // After a count that was made wrong by an edit elsewhere, neither a cell nor the end follows.
    const after = start + 1 + (marker.lines ?? Infinity);
    const atEnd = after === lines.length || (after === lines.length - 1 && lines[after] === "");
    if (atEnd || (lines[after] === "" && MARKER.test(lines[after + 1] ?? ""))) {
      body = lines.slice(start + 1, after);
      start = atEnd ? lines.length : after + 1;
    } else {
      while (markers.length && markers[0]! <= start) markers.shift();
      const end = markers[0] ?? lines.length;
      body = lines.slice(start + 1, end);
      if (body.at(-1) === "") body.pop();
      start = end;
    }
    cells.push(readCell(marker, body, ours));
  }
  return cells;
}

function writeCell({ kind, source }: Cell): string {
  const lines = kind === "markdown" ? source.split("\n").map(comment) : source.split("\n");
  const marker = kind === "markdown" ? "# %% [markdown]" : "# %%";
  const count = lines.some((line) => MARKER.test(line)) ? ` lines=${lines.length}` : "";
  return [marker + count, ...lines, ""].join("\n");
}

/** The name under which a document is saved. */
export function percentName(document: Document): string {
  return `${fileStem(document.title)}.py`;
}

/**
 * A document as the text of a Python file.
 *
 * `fromPercent(toPercent(document), percentName(document))` has the same title, form, options and cells, but for the
 * cells' ids.
 */
export function toPercent(document: Document): string {
  if (document.form === "script") {
    const plain = document.cells[0]!.source;
    if (contentOf(fromPercent(plain, percentName(document))) === contentOf(document)) return plain;
    return writeHeader(document) + plain;
  }
  return writeHeader(document) + document.cells.map(writeCell).join("\n");
}

/**
 * The document in a Python file: a notebook if its header says so or it has `# %%` lines, else a script.
 *
 * @param name The file's name, from which a document without a title has its title.
 * @throws DocumentError if the file is too large, or its header has options that don't exist.
 */
export function fromPercent(text: string, name: string): Document {
  if (text.length > LIMITS.characters) {
    throw new DocumentError(`${name} has ${text.length} characters; at most ${LIMITS.characters} are allowed.`);
  }
  const title = tidyTitle(name.replace(/\.py$/i, ""));
  let file = text.replace(/^\uFEFF/, "");
  let lines = file.split("\n");
  let header = readHeader(lines);
  const windows = lines.length > 1 && lines.slice(0, -1).every((line) => line.endsWith("\r"));
  if (windows && (header || lines.some((line) => MARKER.test(line)))) {
    file = file.replaceAll("\r\n", "\n");
    lines = file.split("\n");
    header = readHeader(lines);
  }
  const body = header ? lines.slice(header.lines) : lines;
  const settings = header?.weft;
  const marked = body.some((line) => MARKER.test(line)) ? "notebook" : "script";
  const where = `the header of ${name}`;
  const form = choiceOf(settings?.get("form") ?? marked, ["script", "notebook"], `${where}: form`);
  const x64 = settings?.get("x64") ?? "false";
  const options = checkOptions(
    { backend: settings?.get("backend") ?? "wasm", x64: x64 === "true" ? true : x64 === "false" ? false : x64 },
    where,
  );
  const cells = form === "script" ? [newCell("code", body.join("\n"))] : readCells(body, settings !== undefined);
  return newDocument({
    title: header?.title === undefined ? title : tidyTitle(header.title),
    form,
    cells: checkShape(form, cells, name),
    options,
  });
}
