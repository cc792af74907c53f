/** Arrays in files: NumPy's .npy, JSON, and text with numbers. */
import { classOf, type Slot } from "./tree.js";
import type { TypedArray } from "../../../src/weft_wasm/page/weft.js";

type Reader = (view: DataView, at: number) => number;

/** By NumPy's names: bytes of an element, and how one is read. */
const READERS: Record<string, [number, Reader]> = {
  "|b1": [1, (view, at) => view.getUint8(at)],
  "|u1": [1, (view, at) => view.getUint8(at)],
  "|i1": [1, (view, at) => view.getInt8(at)],
  "<u2": [2, (view, at) => view.getUint16(at, true)],
  "<i2": [2, (view, at) => view.getInt16(at, true)],
  "<u4": [4, (view, at) => view.getUint32(at, true)],
  "<i4": [4, (view, at) => view.getInt32(at, true)],
  "<u8": [8, (view, at) => Number(view.getBigUint64(at, true))],
  "<i8": [8, (view, at) => Number(view.getBigInt64(at, true))],
  "<f4": [4, (view, at) => view.getFloat32(at, true)],
  "<f8": [8, (view, at) => view.getFloat64(at, true)],
};

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

/** The numbers of a .npy file, row by row. */
export function readNpy(name: string, bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = bytes[6] === 1 ? 10 : 12;
  const size = bytes[6] === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  const header = new TextDecoder().decode(bytes.subarray(start, start + size));
  const dtype = /'descr':\s*'([^']+)'/.exec(header)?.[1] ?? "";
  if (/'fortran_order':\s*True/.test(header))
    throw new Error(`${name} is in Fortran order; save np.ascontiguousarray(x).`);
  const [width, read] = READERS[dtype] ?? [0, null];
  if (!read) throw new Error(`${name} holds the dtype ${dtype || "of a record"}; save real numbers, such as float32.`);
  const count = Math.floor((bytes.length - start - size) / width);
  return Array.from({ length: count }, (_, k) => read(view, start + size + k * width));
}

export async function readNumbers(file: File): Promise<number[]> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (MAGIC.every((byte, k) => bytes[k] === byte)) return readNpy(file.name, bytes);
  return parseNumbers(new TextDecoder().decode(bytes));
}

/** Numbers between spaces, commas, brackets or line ends: as people type them, as CSV and as JSON have them. */
export function parseNumbers(text: string): number[] {
  const words = text.split(/[\s,;[\]()]+/).filter(Boolean);
  return words.map((word) => {
    const value = word === "true" ? 1 : word === "false" ? 0 : Number(word);
    if (Number.isNaN(value) && !/^[-+]?nan$/i.test(word)) throw new Error(`“${word.slice(0, 40)}” is no number.`);
    return value;
  });
}

const CODES: Record<string, string> = {
  Int8Array: "|i1",
  Uint8Array: "|u1",
  Int16Array: "<i2",
  Uint16Array: "<u2",
  Int32Array: "<i4",
  Uint32Array: "<u4",
  BigInt64Array: "<i8",
  BigUint64Array: "<u8",
  Float32Array: "<f4",
  Float64Array: "<f8",
};
const OTHERS: Record<string, string> = { complex64: "<c8", complex128: "<c16", bool: "|b1" };

/** An array as a file of NumPy. */
export function writeNpy({ spec }: Slot, array: TypedArray): Blob {
  const code = OTHERS[spec.dtype] ?? CODES[classOf(spec).name];
  const axes = spec.shape.map((size) => `${size}, `).join("");
  const text = `{'descr': '${code}', 'fortran_order': False, 'shape': (${axes}), }`;
  const whole = Math.ceil((text.length + 11) / 64) * 64; // with the ten bytes before it, and a newline
  const header = `${text.padEnd(whole - 11)}\n`;
  const lead = new Uint8Array([...MAGIC, 1, 0, header.length & 255, header.length >> 8]);
  return new Blob([lead, header, array as unknown as BlobPart]);
}
