/** The features of this engine's WebAssembly, found by validating modules of one instruction. */

// One function () -> v128 whose body is given. 0xfd starts a SIMD instruction.
function vectorModule(body: number[]): Uint8Array<ArrayBuffer> {
  const code = [0, ...body, 0x0b];
  return new Uint8Array([
    0x00,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    1,
    5,
    1,
    0x60,
    0,
    1,
    0x7b, // type () -> v128
    3,
    2,
    1,
    0,
    10,
    code.length + 2,
    1,
    code.length,
    ...code,
  ]);
}

const I32_CONST_0 = [0x41, 0];
const I8X16_SPLAT = [0xfd, 0x0f];
const F32X4_SPLAT = [0xfd, 0x13];
const F32_CONST_0 = [0x43, 0, 0, 0, 0];
const F32X4_RELAXED_MADD = [0xfd, 0x85, 0x02];
const vector = [...F32_CONST_0, ...F32X4_SPLAT];

const PROBES: Record<string, Uint8Array<ArrayBuffer>> = {
  simd128: vectorModule([...I32_CONST_0, ...I8X16_SPLAT]),
  "relaxed-simd": vectorModule([...vector, ...vector, ...vector, ...F32X4_RELAXED_MADD]),
  memory64: new Uint8Array([0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 5, 3, 1, 0x04, 1]), // a memory of one page
};

/** The features compiled modules may use here, in the words of an artifact's metadata. */
export function detectFeatures(): string[] {
  return Object.keys(PROBES).filter((name) => WebAssembly.validate(PROBES[name]!));
}
