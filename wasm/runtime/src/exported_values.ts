/** The values that exported programs take and return: typed arrays in trees, checked against a signature. */
import type { ArraySpec, Leaf, Signature, Tree, TypedArray } from "../../src/weft_wasm/page/weft.js";
import { WeftRuntimeError } from "./errors.js";

type Constructor = { new (buffer: ArrayBuffer): TypedArray; new (length: number): TypedArray; readonly name: string };

/** The typed array of a dtype, and how many of its elements one element takes. */
const ARRAYS: Record<string, [Constructor, number]> = {
  bool: [Uint8Array, 1],
  int8: [Int8Array, 1],
  uint8: [Uint8Array, 1],
  int16: [Int16Array, 1],
  uint16: [Uint16Array, 1],
  int32: [Int32Array, 1],
  uint32: [Uint32Array, 1],
  int64: [BigInt64Array, 1],
  uint64: [BigUint64Array, 1],
  float32: [Float32Array, 1],
  float64: [Float64Array, 1],
  complex64: [Float32Array, 2],
  complex128: [Float64Array, 2],
};

export interface Layout extends ArraySpec {
  constructor_: Constructor;
  length: number;
  /** One plain value: no axes, and a type for which JavaScript has values. */
  scalar: boolean;
}

/** Whether a dtype has typed arrays. */
export const hasLayout = ({ dtype }: ArraySpec): boolean => Object.hasOwn(ARRAYS, dtype);

export function layout({ dtype, shape }: ArraySpec): Layout {
  const [constructor_, parts] = ARRAYS[dtype]!;
  const length = shape.reduce((product, size) => product * size, parts);
  return { dtype, shape, constructor_, length, scalar: shape.length === 0 && parts === 1 };
}

export const described = ({ dtype, shape }: ArraySpec): string => `${dtype}[${shape.join(",")}]`;

const article = (noun: string): string => (/^[AEIO]/.test(noun) ? `an ${noun}` : `a ${noun}`);
const many = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

function wanted(spec: Layout): string {
  const array = `${article(spec.constructor_.name)} of length ${spec.length} for ${described(spec)}`;
  if (!spec.scalar) return array;
  const kind =
    spec.dtype === "bool" ? "boolean" : spec.dtype.endsWith("64") && spec.dtype[0] !== "f" ? "bigint" : "number";
  return `a ${kind}, or ${array}`;
}

function given(value: unknown): string {
  if (ArrayBuffer.isView(value))
    return `${article(value.constructor.name)} of length ${(value as TypedArray).length ?? value.byteLength}`;
  if (value instanceof Held) return `a device array ${described(value)}`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (value === null || value === undefined) return String(value);
  return typeof value === "object"
    ? `an object with ${Object.keys(value).join(", ") || "nothing"}`
    : `${typeof value} ${String(value)}`;
}

const bad = (where: string, want: string, value: unknown): TypeError =>
  new TypeError(`${where} must be ${want}; got ${given(value)}`);

/** What holds arrays by handles. */
export interface Memory {
  free(handle: number): void;
  /** Why it holds nothing any more. */
  readonly lost?: string | null;
}

/** Memory of arrays that are not referenced any more. */
const garbage = new FinalizationRegistry(({ device, handle }: { device: Memory; handle: number }) =>
  device.free(handle),
);

/** An array in the memory of a device. */
export class Held<D extends Memory = Memory> {
  constructor(
    readonly device: D,
    /** 0 once the memory has been given back, or away. */
    private handle: number,
    readonly spec: Layout,
  ) {
    garbage.register(this, { device, handle }, this);
  }

  get dtype(): string {
    return this.spec.dtype;
  }

  get shape(): readonly number[] {
    return this.spec.shape;
  }

  /** Its handle; `where` says in errors which array it is. */
  at(where: string): number {
    const { lost } = this.device;
    if (lost) throw new WeftRuntimeError(`${where} was lost with its device (${lost}); compute it again`);
    if (!this.handle)
      throw new WeftRuntimeError(
        `${where} was freed, or donated to an earlier call; use that call's result, or put it again`,
      );
    return this.handle;
  }

  /** Gives up the memory, which now belongs to another object. */
  consume(): number {
    const { handle } = this;
    this.handle = 0;
    garbage.unregister(this);
    return handle;
  }

  /** Takes back what it gave up to a call that failed. */
  restore(handle: number): void {
    this.handle = handle;
    garbage.register(this, { device: this.device, handle }, this);
  }

  free(): void {
    if (this.handle) this.device.free(this.consume());
  }
}

/** A value of the elements, which fill the buffer. */
export function valueOf(buffer: ArrayBuffer, spec: Layout): Leaf {
  const array = new spec.constructor_(buffer);
  if (!spec.scalar) return array;
  return spec.dtype === "bool" ? array[0] !== 0 : array[0]!;
}

export const bytesOf = (spec: Layout): number =>
  spec.length * (spec.constructor_ as unknown as typeof Uint8Array).BYTES_PER_ELEMENT;

/** A value as a typed array of the layout, or a TypeError. */
function checked(value: unknown, spec: Layout, where: string): TypedArray {
  let array: TypedArray;
  if (value instanceof spec.constructor_) {
    array = value as TypedArray;
  } else if (spec.scalar && ["number", "bigint", "boolean"].includes(typeof value)) {
    array = new spec.constructor_(1);
    const big = array instanceof BigInt64Array || array instanceof BigUint64Array;
    if (big ? typeof value !== "bigint" : typeof value === "bigint") throw bad(where, wanted(spec), value);
    array[0] = (spec.dtype === "bool" || typeof value === "boolean" ? Number(Boolean(value)) : value) as never;
    const whole = !spec.dtype.startsWith("float");
    if (whole && spec.dtype !== "bool" && array[0] != value)
      throw bad(where, `${spec.dtype} (the number does not fit)`, value);
    return array;
  } else {
    throw bad(where, wanted(spec), value);
  }
  if (array.length !== spec.length) throw bad(where, wanted(spec), value);
  return spec.dtype === "bool" ? (array as Uint8Array).map((x) => (x ? 1 : 0)) : array;
}

/** Puts the members of `value` at which `tree` has numbers into `leaves`, with the path of each. */
function flatten(tree: Tree, value: unknown, where: string, leaves: [unknown, string][]): void {
  if (typeof tree === "number") {
    leaves[tree] = [value, where];
  } else if (tree === null) {
    if (value !== null && value !== undefined) throw bad(where, "null", value);
  } else if (Array.isArray(tree)) {
    if (!Array.isArray(value) || value.length !== tree.length) throw bad(where, `an array of ${tree.length}`, value);
    tree.forEach((branch, i) => flatten(branch, value[i], `${where}[${i}]`, leaves));
  } else {
    const keys = Object.keys(tree);
    const object = typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
    const has = object ? Object.keys(value) : [];
    if (!object || keys.length !== has.length || keys.some((key) => !(key in value))) {
      throw bad(where, `an object with ${keys.join(", ") || "nothing"}`, value);
    }
    for (const key of keys) {
      const path = /^[A-Za-z_$][\w$]*$/.test(key) ? `${where}.${key}` : `${where}[${JSON.stringify(key)}]`;
      flatten((tree as Record<string, Tree>)[key]!, (value as Record<string, unknown>)[key], path, leaves);
    }
  }
}

export function unflatten(tree: Tree, leaves: readonly unknown[]): unknown {
  if (typeof tree === "number") return leaves[tree];
  if (tree === null) return null;
  if (Array.isArray(tree)) return tree.map((branch) => unflatten(branch as Tree, leaves));
  return Object.fromEntries(Object.entries(tree).map(([key, branch]) => [key, unflatten(branch as Tree, leaves)]));
}

/** The leaves of a call's arguments, and where each is; all are checked before any is copied. */
export function leavesOf(
  { name, args }: Signature,
  inputs: readonly Layout[],
  values: readonly unknown[],
  device: Memory,
): [TypedArray | Held, string][] {
  if (values.length !== args.length) {
    const names = args.map((arg) => arg.name).join(", ");
    throw new TypeError(`${name} takes ${many(args.length, "argument")} (${names}); got ${values.length}`);
  }
  const leaves: [unknown, string][] = [];
  args.forEach((arg, i) => flatten(arg.tree, values[i], `${name}: ${arg.name}`, leaves));
  return leaves.map(([value, where], i) => {
    const spec = inputs[i]!;
    if (!(value instanceof Held)) return [checked(value, spec, where), where];
    value.at(where);
    if (value.device !== device)
      throw new WeftRuntimeError(`${where} is on another device; read it, and put it on this one`);
    if (described(value) !== described(spec)) throw bad(where, wanted(spec), value);
    return [value, where];
  });
}
