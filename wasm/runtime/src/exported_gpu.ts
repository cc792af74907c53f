/** An exported program on a WebGPU device. */
import type { Files, Leaf, LoadOptions, Signature, TypedArray } from "../../src/weft_wasm/page/weft.js";
import { whole } from "./exported_files.js";
import { valueOf, type Layout } from "./exported_values.js";
import { GpuDevice } from "./gpu_device.js";

let shared: Promise<GpuDevice | null> | undefined;

/** The device that all programs of a page share, or why there is none. A device that was lost is replaced. */
export async function gpuHere(): Promise<GpuDevice | string> {
  const { isSecureContext, navigator } = globalThis as { isSecureContext?: boolean; navigator?: Navigator };
  if (!navigator?.gpu) {
    return isSecureContext === false
      ? "WebGPU needs a secure page: https, or localhost"
      : "there is no WebGPU here (navigator.gpu is missing)";
  }
  const device = await (shared ??= GpuDevice.create());
  if (device?.lost === null) return device;
  shared = undefined;
  return device ? gpuHere() : "the browser has WebGPU, but no adapter for it";
}

/** The value of an array of the device. */
export async function readGpu(device: GpuDevice, handle: number, spec: Layout): Promise<Leaf> {
  const itemsize = (spec.constructor_ as unknown as typeof Uint8Array).BYTES_PER_ELEMENT;
  return valueOf((await device.read(handle, itemsize * spec.length)).buffer as ArrayBuffer, spec);
}

export class GpuProgram {
  private constructor(
    readonly device: GpuDevice,
    private readonly id: number,
    private readonly constants: readonly number[],
    private readonly donated: readonly number[],
  ) {}

  /** Loads the files of a program, which `device` may refuse. */
  static async open(
    signature: Signature,
    [program, data]: readonly [Uint8Array, Uint8Array],
    device: GpuDevice,
  ): Promise<GpuProgram> {
    const id = await device.load(program);
    const { inputs } = device.metadata(id);
    let at = 0;
    const constants = signature.webgpu!.constants!.map((bytes, k) => {
      const handle = device.alloc(inputs[k]!.bytes);
      device.write(handle, data.subarray(at, at + bytes));
      at += bytes;
      return handle;
    });
    return new GpuProgram(
      device,
      id,
      constants,
      signature.donated.map((index) => index + constants.length),
    );
  }

  /** The files that `open` takes. */
  static async files(signature: Signature, files: Files, options: LoadOptions): Promise<[Uint8Array, Uint8Array]> {
    return Promise.all([
      whole(signature, files, "webgpu", options.fetch),
      files.webgpuData ? whole(signature, files, "webgpuData", options.fetch) : new Uint8Array(),
    ]);
  }

  /** The handle of a copy. */
  place(array: TypedArray): number {
    const handle = this.device.alloc(array.byteLength);
    this.device.write(handle, new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return handle;
  }

  /** From the handles of the inputs to those of the outputs, which belong to the caller. */
  async run(inputs: readonly number[]): Promise<number[]> {
    return this.device.run(this.id, [...this.constants, ...inputs], this.donated);
  }

  unload(): void {
    this.device.unload(this.id);
    this.constants.forEach((handle) => this.device.free(handle));
  }
}
