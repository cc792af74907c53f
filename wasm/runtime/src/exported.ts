/**
 * The runtime of the modules that weft.export.web writes: one compiled program as a function of typed arrays. Bundled
 * as weft_wasm/page/weft.js; weft.d.ts beside it declares the interface for pages.
 */
import type {
  ArraySpec,
  Files,
  Leaf,
  LoadOptions,
  Program,
  Signature,
  Tree,
  TypedArray,
} from "../../src/weft_wasm/page/weft.js";
import { checkContents, type Metadata } from "./contents.js";
import { WeftProgramError, WeftRuntimeError } from "./errors.js";
import { sha256 } from "./sha256.js";
import { threadsHere } from "./threads.js";
import { WasmDevice } from "./wasm_device.js";

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

interface Layout extends ArraySpec {
  constructor_: Constructor;
  length: number;
  /** One plain value: no axes, and a type for which JavaScript has values. */
  scalar: boolean;
}

function layout({ dtype, shape }: ArraySpec): Layout {
  const [constructor_, parts] = ARRAYS[dtype]!;
  const length = shape.reduce((product, size) => product * size, parts);
  return { dtype, shape, constructor_, length, scalar: shape.length === 0 && parts === 1 };
}

const described = ({ dtype, shape }: ArraySpec): string => `${dtype}[${shape.join(",")}]`;

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
  if (value instanceof DeviceArray) return `a device array ${described(value)}`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (value === null || value === undefined) return String(value);
  return typeof value === "object"
    ? `an object with ${Object.keys(value).join(", ") || "nothing"}`
    : `${typeof value} ${String(value)}`;
}

const bad = (where: string, want: string, value: unknown): TypeError =>
  new TypeError(`${where} must be ${want}; got ${given(value)}`);

/** Memory of arrays that are not referenced any more. */
const garbage = new FinalizationRegistry(({ device, ptr }: { device: WasmDevice; ptr: number }) => device.free(ptr));

class DeviceArray {
  constructor(
    readonly device: WasmDevice,
    /** Its address; 0 once the memory has been given back, or away. */
    private ptr: number,
    private readonly spec: Layout,
  ) {
    garbage.register(this, { device, ptr }, this);
  }

  get dtype(): string {
    return this.spec.dtype;
  }

  get shape(): readonly number[] {
    return this.spec.shape;
  }

  address(where: string): number {
    if (!this.ptr)
      throw new WeftRuntimeError(
        `${where} was freed, or donated to an earlier call; use that call's result, or put it again`,
      );
    return this.ptr;
  }

  /** Gives up the memory, which now belongs to another object. */
  consume(): number {
    const ptr = this.ptr;
    this.ptr = 0;
    garbage.unregister(this);
    return ptr;
  }

  read(): Leaf {
    return fetched(this.device, this.address("this array"), this.spec);
  }

  free(): void {
    if (this.ptr) this.device.free(this.consume());
  }
}

/** The value of the array at an address. */
function fetched(device: WasmDevice, ptr: number, spec: Layout): Leaf {
  const bytes = spec.length * bytesPerElement(spec);
  const array = new spec.constructor_(device.view(ptr, bytes).slice().buffer as ArrayBuffer);
  if (!spec.scalar) return array;
  return spec.dtype === "bool" ? array[0] !== 0 : array[0]!;
}

const bytesPerElement = (spec: Layout): number => (spec.constructor_ as unknown as typeof Uint8Array).BYTES_PER_ELEMENT;

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

function unflatten(tree: Tree, leaves: readonly unknown[]): unknown {
  if (typeof tree === "number") return leaves[tree];
  if (tree === null) return null;
  if (Array.isArray(tree)) return tree.map((branch) => unflatten(branch as Tree, leaves));
  return Object.fromEntries(Object.entries(tree).map(([key, branch]) => [key, unflatten(branch as Tree, leaves)]));
}

function read(tree: unknown): unknown {
  if (tree instanceof DeviceArray) return tree.read();
  if (typeof tree !== "object" || tree === null || ArrayBuffer.isView(tree)) return tree;
  if (Array.isArray(tree)) return tree.map(read);
  return Object.fromEntries(Object.entries(tree).map(([key, branch]) => [key, read(branch)]));
}

async function bytesOf(url: URL): Promise<Uint8Array> {
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) {
    throw new WeftRuntimeError(
      `${url} could not be fetched (${response.status}); serve all files of the export beside its module`,
    );
  }
  return new Uint8Array(await response.arrayBuffer());
}

let shared: Promise<WasmDevice> | undefined;

/**
 * The bytes of a file of an export, which must be unchanged: a single wrong bit would be another number.
 */
async function whole(
  signature: Signature,
  kind: keyof Files,
  url: URL,
  fetch_: (url: URL) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const bytes = await fetch_(url);
  const { crypto } = globalThis as { crypto?: Crypto }; // pages of insecure origins have no digests
  const digest = crypto?.subtle
    ? new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>))
    : sha256(bytes);
  if (Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("") !== signature.sha256[kind]) {
    throw new WeftRuntimeError(
      `the ${kind === "data" ? ".bin" : ".wasm"} file of ${signature.name} is not of the same export as its module, ` +
        "or was damaged; copy all files that weft.export.web wrote, and reload without the cache",
    );
  }
  return bytes;
}

/** The module of an export, its metadata and its own constants, which are custom sections of it. */
async function compiled(bytes: Uint8Array): Promise<[WebAssembly.Module, Metadata, Uint8Array]> {
  const module = await WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>);
  const section = (name: string) =>
    new Uint8Array(WebAssembly.Module.customSections(module, name)[0] ?? new ArrayBuffer(0));
  const found: unknown = JSON.parse(new TextDecoder().decode(section("weft.metadata")));
  const constants = section("weft.constants");
  return [module, checkContents(found, bytes, constants.length), constants];
}

export async function load<Arguments extends unknown[], Result>(
  signature: Signature,
  files: Files,
  options: LoadOptions = {},
): Promise<Program<Arguments, Result>> {
  const device = (options.device as unknown as WasmDevice) ?? (await (shared ??= WasmDevice.create()));
  const fetch_ = options.fetch ?? bytesOf;
  if (!device.features.includes("simd128")) {
    throw new WeftRuntimeError(
      `${signature.name} needs an engine whose WebAssembly has vectors (simd128); all current browsers do`,
    );
  }
  const relaxed = files.relaxed && device.features.includes("relaxed-simd");
  const [code, data] = await Promise.all([
    whole(signature, relaxed ? "relaxed" : "wasm", relaxed ? files.relaxed! : files.wasm, fetch_),
    files.data ? whole(signature, "data", files.data, fetch_) : new Uint8Array(),
  ]);
  const [module, metadata, own] = await compiled(code);
  // Threads each compile the module for themselves, for the memory that they share.
  const program =
    device.memory.buffer instanceof ArrayBuffer
      ? device.place(metadata, module, own)
      : device.place(metadata, code, own);
  let at = 0;
  const constants = signature.constants.map((bytes) => {
    const ptr = device.alloc(bytes);
    device.write(ptr, data.subarray(at, (at += bytes)));
    return ptr;
  });
  // The module that imports it declares the types.
  return callable(device, signature, program, constants) as Program<Arguments, Result>;
}

/** The function that a page calls. */
function callable(device: WasmDevice, signature: Signature, program: number, constants: readonly number[]): unknown {
  const { name, args, result } = signature;
  const inputs = signature.inputs.map(layout);
  const outputs = signature.outputs.map(layout);
  const donated = new Set(signature.donated);
  const entry = device.entry(program, ...signature.donated.map((index) => index + constants.length));
  const results = device.results(program);

  function flat(values: readonly unknown[]): [unknown, string][] {
    if (values.length !== args.length) {
      const names = args.map((arg) => arg.name).join(", ");
      throw new TypeError(`${name} takes ${many(args.length, "argument")} (${names}); got ${values.length}`);
    }
    const leaves: [unknown, string][] = [];
    args.forEach((arg, i) => flatten(arg.tree, values[i], `${name}: ${arg.name}`, leaves));
    // All are checked before any is copied.
    return leaves.map(([value, where], i) => {
      const spec = inputs[i]!;
      if (!(value instanceof DeviceArray)) return [checked(value, spec, where), where];
      if (value.device !== device)
        throw new WeftRuntimeError(`${where} is on another device; read it, and put it on this one`);
      if (described(value) !== described(spec)) throw bad(where, wanted(spec), value);
      value.address(where);
      return [value, where];
    });
  }

  function placed(array: TypedArray): number {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    const ptr = device.alloc(bytes.length);
    device.write(ptr, bytes);
    return ptr;
  }

  /** Addresses of all outputs, which belong to the caller. */
  function run(values: readonly unknown[]): number[] {
    const leaves = flat(values);
    const temporary: number[] = [];
    const kept: number[] = [];
    try {
      const ptrs = leaves.map(([value, where], i) => {
        if (value instanceof DeviceArray) return value.address(where);
        const ptr = placed(value as TypedArray);
        temporary.push(ptr);
        if (!donated.has(i)) kept.push(ptr);
        return ptr;
      });
      entry(...constants, ...ptrs);
    } catch (error) {
      temporary.forEach((ptr) => device.free(ptr)); // a call that throws consumes nothing
      throw error;
    }
    kept.forEach((ptr) => device.free(ptr));
    for (const index of donated)
      if (leaves[index]![0] instanceof DeviceArray) (leaves[index]![0] as DeviceArray).consume();
    return Array.from(results);
  }

  const call = (...values: unknown[]): unknown => {
    const ptrs = run(values);
    const leaves = ptrs.map((ptr, i) => fetched(device, ptr, outputs[i]!));
    ptrs.forEach((ptr) => device.free(ptr));
    return unflatten(result, leaves);
  };
  const onDevice = (...values: unknown[]): unknown =>
    unflatten(
      result,
      run(values).map((ptr, i) => new DeviceArray(device, ptr, outputs[i]!)),
    );
  const put = (...values: unknown[]): unknown => {
    const leaves = flat(values).map(([value], i) =>
      value instanceof DeviceArray ? value : new DeviceArray(device, placed(value as TypedArray), inputs[i]!),
    );
    return args.map((arg) => unflatten(arg.tree, leaves));
  };
  const unload = (): void => {
    device.unload(program);
    constants.forEach((ptr) => device.free(ptr));
  };
  return Object.defineProperty(Object.assign(call, { onDevice, put, read, unload, signature }), "name", {
    value: name,
  });
}

/** The devices of exported programs. If threads are not available, programs run with one. */
const Device = {
  create: ({ threads = 1 }: { threads?: number } = {}): Promise<WasmDevice> =>
    WasmDevice.create({ threads: Math.min(threads, threadsHere()) }),
};

export { Device, WeftProgramError, WeftRuntimeError };
