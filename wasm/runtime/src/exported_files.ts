/** The files of an export, fetched and compared with their digests. */
import type { Files, Signature } from "../../src/weft_wasm/page/weft.js";
import { WeftRuntimeError } from "./errors.js";
import { sha256 } from "./sha256.js";

/** The bytes at an address; in Node also those of a file. */
export async function fetched(url: URL, advice: string): Promise<Uint8Array> {
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) {
    throw new WeftRuntimeError(`${url} could not be fetched (${response.status}); ${advice}`);
  }
  return new Uint8Array(await response.arrayBuffer());
}

const ENDINGS: Record<keyof Files, string> = {
  wasm: ".wasm",
  relaxed: ".wasm",
  data: ".bin",
  webgpu: ".weft",
  webgpuData: ".bin",
  host: ".weft",
};

/**
 * The bytes of a file of an export, which must be unchanged: a single wrong bit would be another number.
 */
export async function whole(
  signature: Signature,
  files: Files,
  kind: keyof Files,
  fetch_: (url: URL) => Promise<Uint8Array> = (url) => fetched(url, "serve all files of the export beside its module"),
): Promise<Uint8Array> {
  const bytes = await fetch_(files[kind]!);
  const { crypto } = globalThis as { crypto?: Crypto }; // pages of insecure origins have no digests
  const digest = crypto?.subtle
    ? new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>))
    : sha256(bytes);
  if (Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("") !== signature.sha256[kind]) {
    throw new WeftRuntimeError(
      `the ${ENDINGS[kind]} file of ${signature.name} is not of the same export as its module, ` +
        "or was damaged; copy all files that weft.export.web wrote, and reload without the cache",
    );
  }
  return bytes;
}
