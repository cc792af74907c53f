/** What runs the programs that weft.export.web writes: types of weft.js. */

export type TypedArray =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/**
 * A value without structure: a typed array holds the elements in row-major order; arrays without axes are plain values.
 */
export type Leaf = TypedArray | number | bigint | boolean;

/** An array in the memory of a Device, until it is freed, consumed by a program that donates it, or garbage. */
export interface DeviceArray<T extends Leaf = Leaf, Wait extends boolean = false> {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** A copy of its elements; a promise of it where the program's results are promises. */
  read(): Wait extends true ? Promise<T> : T;
  /** Gives the memory back now. */
  free(): void;
}

/** A tree of values as it lies on the device. */
export type OnDevice<T, Wait extends boolean = false> = [T] extends [Leaf]
  ? DeviceArray<T, Wait>
  : T extends null
    ? null
    : { [K in keyof T]: OnDevice<T[K], Wait> };

/** What a program takes where its signature says T: the value, or an array that is on the device already. */
export type Accepted<T, Wait extends boolean = false> = [T] extends [Leaf]
  ? T | DeviceArray<T, Wait>
  : T extends null
    ? null
    : { [K in keyof T]: Accepted<T[K], Wait> };

/** The same of each argument. */
export type AcceptedAll<T extends unknown[], Wait extends boolean = false> = {
  [K in keyof T]: Accepted<T[K], Wait>;
};

/** The values of a tree that lies on the device. */
export type Read<T> =
  T extends DeviceArray<infer V, boolean> ? V : T extends Leaf | null ? T : { [K in keyof T]: Read<T[K]> };

export interface Program<Arguments extends unknown[], Result> {
  /** Runs on values (or on what `put` and `onDevice` returned) and returns values. */
  (...args: AcceptedAll<Arguments>): Result;
  /** The same, but the results stay on the device: for a loop whose state goes from call to call. */
  onDevice(...args: AcceptedAll<Arguments>): OnDevice<Result>;
  /** Checks the arguments of a call and copies them to the device. */
  put(...args: AcceptedAll<Arguments>): OnDevice<Arguments>;
  /** The values of a tree of device arrays. */
  read<T>(tree: T): Read<T>;
  /** Gives the program and its constants back; later calls throw. */
  unload(): void;
  readonly signature: Signature;
  readonly backend: "wasm";
  /** Why it runs there. */
  readonly reason: string;
}

export type Backend = "webgpu" | "wasm";

/** A program that was exported for WebGPU: the same functions, but all that may wait for a GPU gives promises. */
export interface AsyncProgram<Arguments extends unknown[], Result> {
  (...args: AcceptedAll<Arguments, true>): Promise<Result>;
  onDevice(...args: AcceptedAll<Arguments, true>): Promise<OnDevice<Result, true>>;
  put(...args: AcceptedAll<Arguments, true>): Promise<OnDevice<Arguments, true>>;
  read<T>(tree: T): Promise<Read<T>>;
  unload(): void;
  readonly signature: Signature;
  /**
   * What runs it now. If a WebGPU device is lost, WebAssembly runs the calls from then on; arrays that were on the
   * device are lost with it.
   */
  readonly backend: Backend;
  /** Why it runs there: what the browser has, or lacks. */
  readonly reason: string;
}

/** The memory that programs share; all of a page use one unless `load` is given another. */
export interface Device {
  /** How many threads run programs now; they start in the background. */
  readonly threads: number;
  /** Ends the threads; programs go on with one. */
  close(): void;
  /** What the engine has, of "simd128" and "relaxed-simd". */
  readonly features: readonly string[];
  stats(): { allocated: number; peak: number; free: number };
}

export const Device: {
  /**
   * threads: how many share the long loops of programs, at most; 1 where the page is not cross-origin isolated, and if
   * it is left out.
   */
  create(options?: { threads?: number }): Promise<Device>;
};

export interface LoadOptions {
  device?: Device;
  /** Fetches a file of the export; the default is fetch, and in Node the file system. */
  fetch?: (url: URL) => Promise<Uint8Array>;
}

export interface AsyncLoadOptions extends LoadOptions {
  /** "auto", the default: WebGPU where the browser and the export have it, and WebAssembly elsewhere. */
  backend?: Backend | "auto";
}

/** A tree whose leaves are positions in a list of arrays. */
export type Tree = number | null | readonly Tree[] | { readonly [key: string]: Tree };

export interface ArraySpec {
  readonly dtype: string;
  readonly shape: readonly number[];
}

export interface Signature {
  readonly name: string;
  /** Which export this is; the .wasm files carry it too. */
  readonly id: string;
  readonly args: readonly { readonly name: string; readonly tree: Tree }[];
  readonly result: Tree;
  readonly inputs: readonly ArraySpec[];
  readonly outputs: readonly ArraySpec[];
  /** Inputs whose memory a call takes over. */
  readonly donated: readonly number[];
  /** Sizes in bytes of the arrays in the .bin file, which lead the program's inputs. */
  readonly constants: readonly number[];
  /** Of an export for WebGPU: the sizes of its constants, or why the compiler refused it. */
  readonly webgpu?: { readonly constants?: readonly number[]; readonly refused?: string };
  /** The digests of the files, by their names in Files, in hexadecimal digits. */
  readonly sha256: { readonly [K in keyof Files]?: string };
}

export interface Files {
  /** Left out by exports for WebGPU alone. */
  readonly wasm?: URL;
  /** The same program for engines with relaxed SIMD, where that makes a difference. */
  readonly relaxed?: URL;
  readonly data?: URL;
  /** The program for WebGPU, and the arrays that lead its inputs. */
  readonly webgpu?: URL;
  readonly webgpuData?: URL;
  /** The program for accelerator hosts. */
  readonly host?: URL;
}

/** Used by the modules that weft.export.web writes. */
export function load<Arguments extends unknown[], Result>(
  signature: Signature,
  files: Files,
  options?: LoadOptions,
): Promise<Program<Arguments, Result>>;

/** A call's arguments don't fit the program's signature, or a file is missing. */
export class WeftRuntimeError extends Error {}

/** The program itself reported an error; `code` is the number, 0 for a trap. */
export class WeftProgramError extends Error {
  constructor(message: string, code: number);
  readonly code: number;
}
