/**
 * The `.weft` container: one compiled program as bytes.
 *
 * magic `weft 02 00 00 00`, the SHA-256 of all that follows, three little-endian u32 lengths (metadata, code,
 * constants), then the three byte strings.
 */
import { checkContents, type Metadata } from "./contents.js";
import { WeftRuntimeError } from "./errors.js";
import { sha256 } from "./sha256.js";

export interface Artifact {
  metadata: Metadata;
  code: Uint8Array;
  constants: Uint8Array;
}

const VERSION = 2;
const MAGIC = [0x77, 0x65, 0x66, 0x74, VERSION, 0, 0, 0];
const DIGEST = 32;
const HEADER = MAGIC.length + DIGEST + 12;

const bad = (what: string): WeftRuntimeError => new WeftRuntimeError(`${what}; compile the program again`);
const differs = (a: Uint8Array, b: Uint8Array): boolean => a.some((byte, i) => byte !== b[i]);

/**
 * Splits a container into its parts (views, not copies) and checks them; a plan, who runs it checks. `made`: the caller
 * has made these bytes, or has compared their checksum, which here takes longer than all else of a small program.
 */
export function parseArtifact(bytes: Uint8Array, made = false): Artifact {
  const version = bytes[4];
  if (MAGIC.every((byte, i) => i === 4 || bytes[i] === byte) && version !== VERSION) {
    throw bad(`an artifact of version ${version}, this runtime reads version ${VERSION}`);
  }
  if (bytes.length < HEADER) throw bad(`not a weft artifact: ${bytes.length} bytes are fewer than its header`);
  if (MAGIC.some((byte, i) => bytes[i] !== byte)) throw bad("not a weft artifact: wrong magic bytes");
  const header = new DataView(bytes.buffer, bytes.byteOffset + HEADER - 12, 12);
  const lengths = [0, 4, 8].map((offset) => header.getUint32(offset, true));
  const [metaLength, codeLength, constantsLength] = lengths as [number, number, number];
  const total = HEADER + metaLength + codeLength + constantsLength;
  if (total !== bytes.length)
    throw bad(`a truncated artifact: its header says ${total} bytes, there are ${bytes.length}`);
  const begin = MAGIC.length + DIGEST;
  if (!made && differs(sha256(bytes.subarray(begin)), bytes.subarray(MAGIC.length, begin))) {
    throw bad("a damaged artifact: its content is not what its checksum says. Copy the file again");
  }
  const codeStart = HEADER + metaLength;
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(HEADER, codeStart)));
  } catch (error) {
    throw bad(`the artifact's metadata is not JSON (${(error as Error).message})`);
  }
  const code = bytes.subarray(codeStart, codeStart + codeLength);
  const constants = bytes.subarray(codeStart + codeLength);
  return { metadata: checkContents(parsed, code, constants.length), code, constants };
}

/** The inverse of parseArtifact, for tests and for pages that store artifacts themselves. */
export function packArtifact(metadata: object, code: Uint8Array, constants: Uint8Array = new Uint8Array()): Uint8Array {
  const meta = new TextEncoder().encode(JSON.stringify(metadata));
  const bytes = new Uint8Array(HEADER + meta.length + code.length + constants.length);
  bytes.set(MAGIC);
  const header = new DataView(bytes.buffer, HEADER - 12, 12);
  [meta.length, code.length, constants.length].forEach((length, i) => header.setUint32(4 * i, length, true));
  bytes.set(meta, HEADER);
  bytes.set(code, HEADER + meta.length);
  bytes.set(constants, HEADER + meta.length + code.length);
  bytes.set(sha256(bytes.subarray(MAGIC.length + DIGEST)), MAGIC.length);
  return bytes;
}
