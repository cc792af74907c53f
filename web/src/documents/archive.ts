/** All documents of a library in one JSON file. */
import { checkDocument, contentOf, DocumentError, fieldsOf, fromContent, listOf, newId, textOf } from "./model.js";
import type { Document } from "./model.js";

const FORMAT = "weft-library";
const VERSION = 1;
const LIMITS = { characters: 256 * 2 ** 20, documents: 100_000 };

export function writeArchive(documents: Document[]): string {
  const items = documents.map((each) => ({ ...(JSON.parse(contentOf(each)) as object), origin: each.origin }));
  return JSON.stringify({ format: FORMAT, version: VERSION, documents: items }, null, 1);
}

/**
 * The documents in such a file, with new ids.
 *
 * @throws DocumentError if it is none, is too large, or one of its documents is none.
 */
export function readArchive(text: string): Document[] {
  if (text.length > LIMITS.characters) {
    throw new DocumentError(`The file has ${text.length} characters; at most ${LIMITS.characters} are allowed.`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new DocumentError("The file is not JSON, so it is no library of documents.", { cause: error });
  }
  const { format, version, documents } = fieldsOf(value, "The file");
  if (format !== FORMAT) throw new DocumentError(`The file is no library of documents: its format is not "${FORMAT}".`);
  if (version !== VERSION) {
    const known = `this page reads version ${VERSION}`;
    throw new DocumentError(`The file has version ${JSON.stringify(version)}, and ${known}. Reload the page.`);
  }
  return listOf(documents, "documents", LIMITS.documents).map((item, index) => {
    const where = `documents[${index}]`;
    const { origin } = fieldsOf(item, where);
    const content = fromContent(JSON.stringify(item), where);
    return checkDocument({
      ...content,
      id: newId(),
      origin: origin === null ? null : textOf(origin, `${where}.origin`),
    });
  });
}
