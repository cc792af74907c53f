/** Small modules, encoded by hand, of the artifact ABI. */
import { abiOf } from "../src/contents.js";
import { packArtifact, parseArtifact, type Metadata, type OutputSpec } from "../src/index.js";

const u32 = (value: number): number[] => {
  const bytes: number[] = [];
  do {
    bytes.push((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>>= 7;
  } while (value);
  return bytes;
};
const section = (id: number, body: number[]): number[] => [id, ...u32(body.length), ...body];
const text = (value: string): number[] => [value.length, ...new TextEncoder().encode(value)];

/** `main(table: i32) -> i32` with the given body (without its final `end`). */
export function module(body: number[]): Uint8Array {
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
    ...section(1, [1, 0x60, 1, 0x7f, 1, 0x7f]),
    ...section(2, [1, ...text("weft"), ...text("memory"), 2, 1, 1, ...u32(65536)]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...text("main"), 0, 0]),
    ...section(10, [1, ...u32(code.length), ...code]),
  ]);
}

export const i32Const = (value: number): number[] => [0x41, value];
/** The address in slot `slot` of the table. */
export const address = (slot: number): number[] => [0x20, 0, 0x28, 2, 4 * slot];
const load = [0xfd, 0x00, 4, 0];
const store = [0xfd, 0x0b, 4, 0];
const add = [0xfd, 0xe4, 0x01];
const mul = [0xfd, 0xe6, 0x01];
const one = [0x43, 0, 0, 0x80, 0x3f, 0xfd, 0x13];

const f32x4 = { dtype: "f32", shape: [4], bytes: 16 };
const out = (alias: number | null = null): OutputSpec => ({ ...f32x4, alias });

export const metadata = (inputs: number, outputs: (number | null)[], more: object = {}): object => ({
  abi: 1,
  kind: "wasm",
  name: "test",
  inputs: Array.from({ length: inputs }, () => f32x4),
  outputs: outputs.map(out),
  scratch: 0,
  features: [],
  errors: {},
  ...more,
});

/** An artifact whose code says what the metadata says. */
export function artifact(meta: object, code: Uint8Array, constants = new Uint8Array()): Uint8Array {
  const said = text("weft.abi").concat(
    Array.from(new TextEncoder().encode(JSON.stringify(abiOf(meta as Metadata, constants.length)))),
  );
  return packArtifact(meta, Uint8Array.of(...code, ...section(0, said)), constants);
}

/** x + 1 on f32[4]; its output may take the input's memory. */
export const addOne = artifact(
  metadata(1, [0], { features: ["simd128"] }),
  module([...address(1), ...address(0), ...load, ...one, ...add, ...store, ...i32Const(0)]),
);

/** (x + y, x * y) on f32[4], through 1 MiB of scratch for the sum. */
export const sumAndProduct = artifact(
  metadata(2, [null, null], { scratch: 2 ** 20 }),
  module([
    ...address(4),
    ...address(0),
    ...load,
    ...address(1),
    ...load,
    ...add,
    ...store,
    ...address(2),
    ...address(4),
    ...load,
    ...store,
    ...address(3),
    ...address(0),
    ...load,
    ...address(1),
    ...load,
    ...mul,
    ...store,
    ...i32Const(0),
  ]),
);

/** x + constant on f32[4]. */
export const addConstant = artifact(
  metadata(1, [null]),
  module([...address(1), ...address(0), ...load, ...address(3), ...load, ...add, ...store, ...i32Const(0)]),
  new Uint8Array(Float32Array.of(10, 20, 30, 40).buffer),
);

export const failing = artifact(metadata(1, [null], { errors: { 7: "index out of range" } }), module(i32Const(7)));
export const trapping = artifact(metadata(1, [0]), module([0x00]));
export const recursive = artifact(metadata(1, [0]), module([0x20, 0, 0x10, 0]));
export const needingThreads = artifact(metadata(0, [], { features: ["threads"] }), module(i32Const(0)));

/** The file that `weft.export.web` writes of an artifact: its code, with the metadata in a section. */
export function exported(bytes: Uint8Array): Uint8Array {
  const { metadata, code } = parseArtifact(bytes);
  return Uint8Array.of(
    ...code,
    ...section(0, text("weft.metadata").concat(Array.from(new TextEncoder().encode(JSON.stringify(metadata))))),
  );
}
