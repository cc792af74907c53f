/**
 * A whole document in the fragment of an address. The fragment never leaves the browser.
 *
 * `#doc=1.…` is JSON, deflated, in URL-safe base64. The zlib format ends in a checksum, so that a link with one wrong
 * letter is damaged rather than another document. `#code=…`, of earlier versions, is a script, deflated without one.
 */
import { contentOf, fromContent, LIMITS, newCell, newDocument } from "./model.js";
import type { Document, DocumentError } from "./model.js";
import { compress, DataError, decompress } from "./compression.js";

const VERSION = 1;
/** Firefox refuses addresses over 1 MiB; the other browsers take more. */
const LINK_CHARACTERS = 1_000_000;

/** Why a link can't be made or opened. */
export class LinkError extends Error {
  override name = "LinkError";

  constructor(
    readonly kind: "damaged" | "too-large" | "newer",
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

function damaged(why: string, cause?: unknown): LinkError {
  const next = "Ask for the link again, and copy it whole.";
  return new LinkError("damaged", `This link is damaged: ${why} ${next}`, { cause });
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let start = 0; start < bytes.length; start += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  }
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64(text: string): Uint8Array {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** 64 bits that distinguish texts: for comparing one's own documents, not against forgery. */
function digest(text: string): string {
  let [a, b] = [0x811c9dc5, 0x9e3779b9];
  for (let index = 0; index < text.length; index++) {
    a = Math.imul(a ^ text.charCodeAt(index), 0x01000193);
    b = Math.imul(b ^ text.charCodeAt(index), 0x85ebca6b) ^ (a >>> 15);
  }
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}

/**
 * The fragment that holds a document: title, form, cells and options, not its id or its history.
 *
 * @throws LinkError of kind "too-large" if browsers would refuse the address.
 */
export async function toFragment(document: Document): Promise<string> {
  const content = contentOf(document);
  const fragment = `#doc=${VERSION}.${toBase64(await compress(content, "deflate"))}`;
  if (fragment.length <= LINK_CHARACTERS && new Blob([content]).size <= LIMITS.characters) return fragment;
  const size = `${(fragment.length / 1e6).toFixed(1)} million characters`;
  throw new LinkError(
    "too-large",
    `This document is too large for a link, which would have ${size}. Send it as a file instead.`,
  );
}

async function inflate(payload: string, format: CompressionFormat): Promise<string> {
  // The punctuation after a link in a sentence is often taken for a part of it.
  const text = payload.replace(/[^\w-]{1,10}$/, "");
  if (!/^[\w-]+$/.test(text)) throw damaged("it has characters that no link of this page has.");
  if (text.length > 4 * LINK_CHARACTERS) throw new LinkError("too-large", "This link is too long to be opened.");
  try {
    return await decompress(fromBase64(text), format, LIMITS.characters);
  } catch (error) {
    if (error instanceof DataError && error.kind === "too-large") {
      throw new LinkError("too-large", `The document in this link is too large to be opened: ${error.message}`);
    }
    throw damaged("a part of it is missing or has been changed.", error);
  }
}

/**
 * The document in a fragment, with a new id and the link as its origin; null if the fragment has none.
 *
 * The origin is equal for equal links, so that a library can find the copies of a link.
 *
 * @throws LinkError if there is one, but it is damaged, too large, or written by a newer version of the page.
 */
export async function fromFragment(fragment: string): Promise<Document | null> {
  const match = /^#(doc|code)=([^]*)$/.exec(fragment);
  if (!match) return null;
  if (match[1] === "code") {
    const source = await inflate(match[2]!, "deflate-raw");
    return newDocument({ title: "Shared program", cells: [newCell("code", source)], origin: `link:${digest(source)}` });
  }
  const parts = /^(\d{1,9})\.([^]*)$/.exec(match[2]!);
  if (!parts) throw damaged("it doesn't say how it is written.");
  if (Number(parts[1]) > VERSION) {
    throw new LinkError("newer", "This link was made by a newer version of this page. Reload the page to get it.");
  }
  if (Number(parts[1]) < 1) throw damaged("it doesn't say how it is written.");
  const text = await inflate(parts[2]!, "deflate");
  try {
    return { ...fromContent(text), origin: `link:${digest(text)}` };
  } catch (error) {
    throw damaged((error as DocumentError).message, error);
  }
}
