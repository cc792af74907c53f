/**
 * The `.weft` container: one compiled program as bytes.
 *
 * magic `weft 01 00 00 00`, three little-endian u32 lengths (metadata, code, constants), then the three byte strings.
 */
import { WeftRuntimeError } from "./errors.js";

export interface BufferSpec {
  dtype: string;
  shape: number[];
  bytes: number;
}

export interface OutputSpec extends BufferSpec {
  /** The input whose memory this output may take over when that input is donated. */
  alias: number | null;
}

export interface Metadata {
  abi: number;
  kind?: "wasm" | "webgpu";
  name: string;
  inputs: BufferSpec[];
  outputs: OutputSpec[];
  scratch: number;
  /** Of kind "wasm": the byte of the code that says how the memory is imported. */
  memory: number;
  features: string[];
  errors: Record<string, string>;
  /** For each function of the host that the program calls, how many addresses it is given. */
  calls?: number[];
  /** Where threads can share loops: how many there are, and each further thread's bytes of scratch. */
  tasks?: { count: number; private: number };
}

export interface Artifact {
  metadata: Metadata;
  code: Uint8Array;
  constants: Uint8Array;
}

export const ABI_VERSION = 1;
const MAGIC = [0x77, 0x65, 0x66, 0x74, 1, 0, 0, 0];
const HEADER = MAGIC.length + 12;

function bad(what: string): WeftRuntimeError {
  return new WeftRuntimeError(`not a weft artifact: ${what}; compile the program again`);
}

function isLength(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function checkBuffer(spec: BufferSpec | undefined, where: string): void {
  if (!spec || typeof spec.dtype !== "string" || !Array.isArray(spec.shape) || !isLength(spec.bytes)) {
    throw bad(`${where} needs dtype, shape and bytes`);
  }
}

/** Metadata that has been read, completed and checked. */
export function checkMetadata(value: unknown): Metadata {
  if (typeof value !== "object" || value === null) throw bad("its metadata is no object");
  const metadata = value as Metadata;
  if (metadata.abi !== ABI_VERSION) {
    throw new WeftRuntimeError(
      `the artifact has ABI version ${String(metadata.abi)}, this runtime reads ${ABI_VERSION}; ` +
        "use the compiler and the runtime of one release",
    );
  }
  if (!Array.isArray(metadata.inputs) || !Array.isArray(metadata.outputs)) throw bad("no list of inputs and outputs");
  metadata.inputs.forEach((spec, i) => checkBuffer(spec, `input ${i}`));
  metadata.outputs.forEach((spec, i) => {
    checkBuffer(spec, `output ${i}`);
    spec.alias ??= null;
    if (spec.alias === null) return;
    const input = metadata.inputs[spec.alias];
    if (!input) throw bad(`output ${i} aliases input ${spec.alias}, which does not exist`);
    if (input.bytes < spec.bytes) throw bad(`output ${i} is larger than input ${spec.alias}, which it aliases`);
    const first = metadata.outputs.findIndex((other) => other.alias === spec.alias);
    if (first !== i) throw bad(`outputs ${first} and ${i} alias the same input ${spec.alias}`);
  });
  metadata.scratch ??= 0;
  if (!isLength(metadata.scratch)) throw bad("scratch is no size");
  const { tasks } = metadata;
  if (tasks && !(isLength(tasks.count) && isLength(tasks.private))) throw bad("tasks needs count and private");
  metadata.memory ??= -1;
  metadata.features ??= [];
  metadata.errors ??= {};
  metadata.name ??= "program";
  return metadata;
}

/** Splits a container into its parts (views, not copies) and checks its metadata. */
export function parseArtifact(bytes: Uint8Array): Artifact {
  if (bytes.length < HEADER) throw bad(`${bytes.length} bytes are fewer than its header`);
  if (MAGIC.some((byte, i) => bytes[i] !== byte)) throw bad("wrong magic bytes");
  const header = new DataView(bytes.buffer, bytes.byteOffset + MAGIC.length, 12);
  const lengths = [0, 4, 8].map((offset) => header.getUint32(offset, true));
  const [metaLength, codeLength, constantsLength] = lengths as [number, number, number];
  const total = HEADER + metaLength + codeLength + constantsLength;
  if (total !== bytes.length) throw bad(`its header says ${total} bytes, there are ${bytes.length}`);
  const codeStart = HEADER + metaLength;
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(HEADER, codeStart)));
  } catch (error) {
    throw bad(`its metadata is not JSON (${(error as Error).message})`);
  }
  return {
    metadata: checkMetadata(parsed),
    code: bytes.subarray(codeStart, codeStart + codeLength),
    constants: bytes.subarray(codeStart + codeLength),
  };
}

/** The inverse of parseArtifact, for tests and for pages that keep artifacts of their own. */
export function packArtifact(metadata: object, code: Uint8Array, constants: Uint8Array = new Uint8Array()): Uint8Array {
  const meta = new TextEncoder().encode(JSON.stringify(metadata));
  const bytes = new Uint8Array(HEADER + meta.length + code.length + constants.length);
  bytes.set(MAGIC);
  const header = new DataView(bytes.buffer, MAGIC.length, 12);
  [meta.length, code.length, constants.length].forEach((length, i) => header.setUint32(4 * i, length, true));
  bytes.set(meta, HEADER);
  bytes.set(code, HEADER + meta.length);
  bytes.set(constants, HEADER + meta.length + code.length);
  return bytes;
}
