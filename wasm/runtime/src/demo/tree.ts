/** What the page knows of a program: each input and output by its path, with what the exporter said of it. */
import type { ArraySpec, Leaf, Signature, Tree, TypedArray } from "../../../src/weft_wasm/page/weft.js";

/** What `weft.export.web` says of an input or output beyond its type; kept in the page's HTML. */
export interface Remarks {
  about?: string;
  labels?: string[];
  range?: [number, number, number | null];
  form?: string;
}

export interface PageData {
  name: string;
  remarks: Record<string, Remarks>;
}

export interface Slot extends Remarks {
  path: string;
  spec: ArraySpec;
  /** The number of elements; complex ones count twice. */
  length: number;
}

function walk(tree: Tree, path: string, found: (index: number, path: string) => void): void {
  if (typeof tree === "number") return found(tree, path);
  if (tree === null) return;
  if (Array.isArray(tree)) return tree.forEach((branch, k) => walk(branch as Tree, `${path}[${k}]`, found));
  for (const [key, branch] of Object.entries(tree as Record<string, Tree>)) walk(branch, `${path}.${key}`, found);
}

const sizeOf = ({ dtype, shape }: ArraySpec): number =>
  shape.reduce((a, b) => a * b, dtype.startsWith("complex") ? 2 : 1);

function slots(trees: [string, Tree][], specs: readonly ArraySpec[], remarks: PageData["remarks"]): Slot[] {
  const all: Slot[] = [];
  for (const [name, tree] of trees)
    walk(tree, name, (index, path) => {
      const spec = specs[index]!;
      all[index] = { path, spec, length: sizeOf(spec), ...remarks[path] };
    });
  return all;
}

export function inputsOf({ args, inputs }: Signature, { remarks }: PageData): Slot[] {
  const trees = args.map(({ name, tree }): [string, Tree] => [name, tree]);
  return slots(trees, inputs, remarks);
}

export function outputsOf({ result, outputs }: Signature, { remarks }: PageData): Slot[] {
  return slots([["result", result]], outputs, remarks);
}

/** A tree with leaves in the place of their numbers. */
export function fill(tree: Tree, leaves: readonly unknown[]): unknown {
  if (typeof tree === "number") return leaves[tree];
  if (tree === null) return null;
  if (Array.isArray(tree)) return tree.map((branch) => fill(branch as Tree, leaves));
  return Object.fromEntries(Object.entries(tree).map(([key, branch]) => [key, fill(branch as Tree, leaves)]));
}

/** The leaves of a result, by their numbers. */
export function leavesOf(tree: Tree, value: unknown, leaves: Leaf[] = []): Leaf[] {
  if (typeof tree === "number") leaves[tree] = value as Leaf;
  else if (Array.isArray(tree)) tree.forEach((branch, k) => leavesOf(branch as Tree, (value as unknown[])[k], leaves));
  else if (tree !== null)
    for (const [key, branch] of Object.entries(tree as Record<string, Tree>))
      leavesOf(branch, (value as Record<string, unknown>)[key], leaves);
  return leaves;
}

type ArrayClass = { new (length: number): TypedArray; readonly name: string };

const CLASSES: Record<string, ArrayClass> = {
  bool: Uint8Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float32: Float32Array,
  float64: Float64Array,
  complex64: Float32Array,
  complex128: Float64Array,
};

export const classOf = ({ dtype }: ArraySpec): ArrayClass => CLASSES[dtype]!;

export const isWhole = ({ dtype }: ArraySpec): boolean => !/^(float|complex)/.test(dtype);

const isBig = (spec: ArraySpec): boolean => isWhole(spec) && spec.dtype.endsWith("64");

/** Numbers as an array of the slot's type; a RangeError names those that it has no value for. */
export function arrayOf({ spec, length, path }: Slot, numbers: ArrayLike<number>): TypedArray {
  if (numbers.length !== length) throw new RangeError(`${path} takes ${length} numbers; ${numbers.length} are given.`);
  const array = new (classOf(spec))(length);
  for (let k = 0; k < length; k++) {
    const value = numbers[k]!;
    const whole = isWhole(spec);
    if (whole && !Number.isInteger(value)) throw new RangeError(`${path} takes whole numbers; ${value} is none.`);
    array[k] = (isBig(spec) ? BigInt(value) : value) as never;
    if (whole && Number(array[k]) !== value)
      throw new RangeError(`${path} holds ${spec.dtype}, which has no ${value}.`);
  }
  return array;
}

/** A leaf as the program takes it: arrays without axes are plain values. */
export function leafOf({ spec }: Slot, array: TypedArray): Leaf {
  if (spec.shape.length || spec.dtype.startsWith("complex")) return array;
  return spec.dtype === "bool" ? array[0] !== 0 : array[0]!;
}

/** How an array lies in memory if it is a picture. */
export interface Frame {
  width: number;
  height: number;
  channels: number;
  /** Channels come before rows. */
  first: boolean;
}

/** The picture that an array may be: of two axes, or with one, three or four channels before or behind them. */
export function picture({ dtype, shape }: ArraySpec): Frame | null {
  if (!/^(u?int8|float32|float64|int32)$/.test(dtype)) return null;
  const axes = shape[0] === 1 && shape.length > 2 ? shape.slice(1) : shape;
  const [a = 0, b = 0, c = 0] = axes;
  if (axes.length === 2 && a >= 8 && b >= 8) return { height: a, width: b, channels: 1, first: false };
  if (axes.length !== 3) return null;
  if ([1, 3, 4].includes(c) && a >= 8 && b >= 8) return { height: a, width: b, channels: c, first: false };
  if ([1, 3, 4].includes(a) && b >= 8 && c >= 8) return { height: b, width: c, channels: a, first: true };
  return null;
}

/** The same, also for a square grey picture that lies flat in one axis. */
export function frameOf(spec: ArraySpec): Frame | null {
  const axes = spec.shape.filter((size) => size !== 1);
  const side = Math.sqrt(axes[0] ?? 0);
  const isFlat = axes.length === 1 && Number.isInteger(side) && side >= 4;
  return picture(spec) ?? (isFlat ? { width: side, height: side, channels: 1, first: false } : null);
}

export const typeOf = ({ dtype, shape }: ArraySpec): string => `${dtype}[${shape.join(", ")}]`;
