/** The type of documents, and the check of every document that comes from a file, a link or storage. */

export const BACKENDS = ["wasm", "webgpu", "remote"] as const;

export interface Cell {
  /** Unique in its document; a cell's output is found by it. */
  id: string;
  kind: "code" | "markdown";
  source: string;
}

export interface DocumentOptions {
  backend: (typeof BACKENDS)[number];
  x64: boolean;
}

export interface Document {
  /** Unique in the library. */
  id: string;
  title: string;
  /** A script is one cell of code, shown beside its output; a notebook shows the output of each cell below it. */
  form: "script" | "notebook";
  cells: Cell[];
  options: DocumentOptions;
  /** The example or link that this is a copy of, if any. */
  origin: string | null;
}

/** Far more than people write, far less than a page can't hold. */
export const LIMITS = { characters: 16 * 2 ** 20, cells: 10_000, title: 200 } as const;

/** A value is not a valid document. The message names the place and the cause. */
export class DocumentError extends Error {
  override name = "DocumentError";
}

/** An id that nothing else has: 64 random bits. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function newCell(kind: Cell["kind"], source: string): Cell {
  return { id: newId(), kind, source };
}

/** A document of the given parts, with defaults for the others: an empty script for Wasm. */
export function newDocument(parts: Partial<Document> = {}): Document {
  const cells = parts.cells ?? (parts.form === "notebook" ? [] : [newCell("code", "")]);
  const options = parts.options ?? { backend: "wasm", x64: false };
  return { id: newId(), title: "Untitled", form: "script", origin: null, ...parts, cells, options };
}

/** A text of everything that a reader wrote or chose: documents with equal texts differ only in their ids. */
export function contentOf({ title, form, cells, options }: Document): string {
  const { backend, x64 } = options;
  return JSON.stringify({ title, form, options: { backend, x64 }, cells: cells.map((c) => [c.kind, c.source]) });
}

/**
 * A title in the form in which it is stored: one line without control characters, at most 200 characters, never
 * empty.
 */
export function tidyTitle(title: string): string {
  const line = title.replace(/[\p{Cc}\s]+/gu, " ").trim();
  return [...line].slice(0, LIMITS.title).join("").trim() || "Untitled";
}

/** A file name without extension for a title. */
export function fileStem(title: string): string {
  // Dots at the end, and characters that some file systems refuse.
  const stem = title.replace(/[\p{Cc}/\\:*?"<>|]+/gu, " ").replace(/\s+/g, " ");
  return stem.replace(/^[ .]+|[ .]+$/g, "").slice(0, 100) || "untitled";
}

type Fields = Record<string, unknown>;

export function fieldsOf(value: unknown, where: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new DocumentError(`${where} must be an object.`);
}

export function listOf(value: unknown, where: string, limit: number): unknown[] {
  if (!Array.isArray(value)) throw new DocumentError(`${where} must be a list.`);
  if (value.length > limit)
    throw new DocumentError(`${where} has ${value.length} items; at most ${limit} are allowed.`);
  return value;
}

export function textOf(value: unknown, where: string): string {
  if (typeof value !== "string") throw new DocumentError(`${where} must be text.`);
  return value;
}

export function choiceOf<T extends string>(value: unknown, choices: readonly T[], where: string): T {
  if (choices.includes(value as T)) return value as T;
  const known = choices.map((choice) => JSON.stringify(choice)).join(", ");
  throw new DocumentError(`${where} must be one of ${known}.`);
}

function flagOf(value: unknown, where: string): boolean {
  if (typeof value !== "boolean") throw new DocumentError(`${where} must be true or false.`);
  return value;
}

export function checkOptions(value: unknown, where: string): DocumentOptions {
  const { backend, x64 } = fieldsOf(value, where);
  return { backend: choiceOf(backend, BACKENDS, `${where}.backend`), x64: flagOf(x64, `${where}.x64`) };
}

/** Refuses a document that is larger than `LIMITS`, or a script that is not one cell of code. */
export function checkShape(form: Document["form"], cells: Cell[], where: string): Cell[] {
  if (form === "script" && (cells.length !== 1 || cells[0]!.kind !== "code")) {
    throw new DocumentError(`${where}.cells must be one cell of code, because the document is a script.`);
  }
  const characters = cells.reduce((sum, cell) => sum + cell.source.length, 0);
  if (characters > LIMITS.characters) {
    throw new DocumentError(`${where} has ${characters} characters; at most ${LIMITS.characters} are allowed.`);
  }
  return cells;
}

/**
 * A document made of a value that nobody vouches for, such as parsed JSON.
 *
 * Cells without an id, or with one that another has, get a new one. What a document doesn't have is left out.
 *
 * @param where Names the value in messages.
 * @throws DocumentError if a part is missing, has the wrong type or is too large.
 */
export function checkDocument(value: unknown, where = "document"): Document {
  const fields = fieldsOf(value, where);
  const form = choiceOf(fields["form"], ["script", "notebook"], `${where}.form`);
  const ids = new Set<string>();
  const cells = listOf(fields["cells"], `${where}.cells`, LIMITS.cells).map((item, index): Cell => {
    const at = `${where}.cells[${index}]`;
    const cell = fieldsOf(item, at);
    const given = cell["id"];
    const id = typeof given === "string" && /^[\w-]{1,64}$/.test(given) && !ids.has(given) ? given : newId();
    ids.add(id);
    const kind = choiceOf(cell["kind"], ["code", "markdown"], `${at}.kind`);
    return { id, kind, source: textOf(cell["source"], `${at}.source`) };
  });
  const { id, title, origin } = fields;
  return {
    id: typeof id === "string" && /^[\w-]{1,64}$/.test(id) ? id : newId(),
    title: tidyTitle(textOf(title, `${where}.title`)),
    form,
    cells: checkShape(form, cells, where),
    options: checkOptions(fields["options"], `${where}.options`),
    origin: typeof origin === "string" ? origin.slice(0, 500) : null,
  };
}

/**
 * A new document with the content that `contentOf` wrote.
 *
 * @throws DocumentError if the text is no such content.
 */
export function fromContent(text: string, where = "document"): Document {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new DocumentError(`${where} must be JSON.`, { cause: error });
  }
  const { title, form, options, cells } = fieldsOf(value, where);
  const pairs = listOf(cells, `${where}.cells`, LIMITS.cells).map((pair, index) => {
    const [kind, source] = listOf(pair, `${where}.cells[${index}]`, 2);
    return { kind, source };
  });
  return checkDocument({ title, form, options, cells: pairs }, where);
}
