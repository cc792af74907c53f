/** An exported program on a WebAssembly device. */
import type { Files, Leaf, LoadOptions, Signature, TypedArray } from "../../src/weft_wasm/page/weft.js";
import { checkContents, type Metadata } from "./contents.js";
import { WeftRuntimeError } from "./errors.js";
import { whole } from "./exported_files.js";
import { bytesOf, valueOf, type Layout } from "./exported_values.js";
import { threadsHere } from "./threads.js";
import { WasmDevice, type Entry } from "./wasm_device.js";

/** Why a program runs on WebAssembly that has no other form. */
export const ALONE = "it was exported for WebAssembly alone";

let shared: Promise<WasmDevice> | undefined;

/** The devices of exported programs. If threads are not available, programs run with one. */
export const Device = {
  create: ({ threads = 1 }: { threads?: number } = {}): Promise<WasmDevice> =>
    WasmDevice.create({ threads: Math.min(threads, threadsHere()) }),
};

/** The module of an export, its metadata and its own constants, which are custom sections of it. */
async function compiled(bytes: Uint8Array): Promise<[WebAssembly.Module, Metadata, Uint8Array]> {
  const module = await WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>);
  const section = (name: string) =>
    new Uint8Array(WebAssembly.Module.customSections(module, name)[0] ?? new ArrayBuffer(0));
  const found: unknown = JSON.parse(new TextDecoder().decode(section("weft.metadata")));
  const constants = section("weft.constants");
  return [module, checkContents(found, bytes, constants.length), constants];
}

/** The value of the array at an address. */
export function readWasm(device: WasmDevice, ptr: number, spec: Layout): Leaf {
  return valueOf(device.view(ptr, bytesOf(spec)).slice().buffer as ArrayBuffer, spec);
}

export class WasmProgram {
  private readonly entry: Entry;

  private constructor(
    readonly device: WasmDevice,
    signature: Signature,
    private readonly id: number,
    private readonly constants: readonly number[],
  ) {
    this.entry = device.entry(id, ...signature.donated.map((index) => index + constants.length));
  }

  static async open(signature: Signature, files: Files, options: LoadOptions): Promise<WasmProgram> {
    const device = (options.device as unknown as WasmDevice) ?? (await (shared ??= WasmDevice.create()));
    if (!device.features.includes("simd128")) {
      throw new WeftRuntimeError(
        `${signature.name} needs an engine whose WebAssembly has vectors (simd128); all current browsers do`,
      );
    }
    const relaxed = files.relaxed && device.features.includes("relaxed-simd");
    const [code, data] = await Promise.all([
      whole(signature, files, relaxed ? "relaxed" : "wasm", options.fetch),
      files.data ? whole(signature, files, "data", options.fetch) : new Uint8Array(),
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
    return new WasmProgram(device, signature, program, constants);
  }

  /** The address of a copy. */
  place(array: TypedArray): number {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    const ptr = this.device.alloc(bytes.length);
    this.device.write(ptr, bytes);
    return ptr;
  }

  /** From the addresses of the inputs to those of the outputs, which belong to the caller. */
  run(inputs: readonly number[]): number[] {
    this.entry(...this.constants, ...inputs);
    return Array.from(this.device.results(this.id));
  }

  unload(): void {
    this.device.unload(this.id);
    this.constants.forEach((ptr) => this.device.free(ptr));
  }
}
