/**
 * The runtime of the modules that weft.export.web writes for WebGPU: the same functions as exported.ts makes, but their
 * results are promises, since a page can't wait for a GPU; and WebAssembly runs them where WebGPU can't. Bundled as
 * weft_wasm/page/weft-gpu.js.
 */
import type {
  AsyncLoadOptions,
  AsyncProgram,
  Backend,
  Files,
  Leaf,
  Signature,
  TypedArray,
} from "../../src/weft_wasm/page/weft.js";
import { WeftRuntimeError } from "./errors.js";
import { GpuProgram, gpuHere, readGpu } from "./exported_gpu.js";
import { Held, layout, leavesOf, unflatten } from "./exported_values.js";
import { ALONE, readWasm, WasmProgram } from "./exported_wasm.js";
import { GpuDevice } from "./gpu_device.js";
import type { WasmDevice } from "./wasm_device.js";

type AnyDevice = GpuDevice | WasmDevice;

const readFrom = async (device: AnyDevice, handle: number, spec: Held["spec"]): Promise<Leaf> =>
  device instanceof GpuDevice ? readGpu(device, handle, spec) : readWasm(device, handle, spec);

class AsyncArray extends Held<AnyDevice> {
  async read(): Promise<Leaf> {
    return readFrom(this.device, this.at("this array"), this.spec);
  }
}

/** A program where it runs, and why there. */
interface Placed {
  program: GpuProgram | WasmProgram;
  reason: string;
}

const OTHERWISE = 'load it with backend: "auto", which falls back to WebAssembly';

/** Chooses where a program runs, and moves it from a WebGPU device that is lost to WebAssembly. */
class Choice {
  private moving: Promise<Placed> | null = null;

  private constructor(
    private readonly signature: Signature,
    private readonly files: Files,
    private readonly options: AsyncLoadOptions,
    public now: Placed,
  ) {}

  static async open(signature: Signature, files: Files, options: AsyncLoadOptions): Promise<Choice> {
    const choice = new Choice(signature, files, options, null!);
    choice.now = await choice.first();
    return choice;
  }

  /** Where the next call runs. */
  async next(): Promise<Placed> {
    const { device } = this.now.program;
    if (!(device instanceof GpuDevice) || device.lost === null) return this.now;
    this.moving ??= this.onWasm(`the WebGPU device was lost (${device.lost})`, "load it again").finally(
      () => (this.moving = null),
    );
    return (this.now = await this.moving);
  }

  private async first(): Promise<Placed> {
    const { backend = "auto" } = this.options;
    if (!["auto", "webgpu", "wasm"].includes(backend))
      throw new TypeError(`backend must be "auto", "webgpu" or "wasm"; got ${String(backend)}`);
    const { signature, files, options } = this;
    if (backend === "wasm" && files.wasm) return this.onWasm('it was loaded with backend: "wasm"', "");
    if (backend === "wasm")
      throw new WeftRuntimeError(`${signature.name} was exported for WebGPU alone; load it with backend: "auto"`);
    if (!files.webgpu) return this.onWasm(signature.webgpu?.refused ?? ALONE, OTHERWISE);
    const device = await gpuHere();
    const elsewhere = 'use a browser and a machine that have it, or export the program with target="auto"';
    if (typeof device === "string") return this.onWasm(device, files.wasm ? OTHERWISE : elsewhere);
    // A file that is missing or damaged is an error, and no reason to run elsewhere.
    const contents = await GpuProgram.files(signature, files, options);
    try {
      const { adapter } = device;
      const reason = `the browser has an adapter for WebGPU${adapter && ` (${adapter})`}`;
      return { program: await GpuProgram.open(signature, contents, device), reason };
    } catch (error) {
      if (!(error instanceof WeftRuntimeError)) throw error;
      return this.onWasm(error.message, files.wasm ? OTHERWISE : elsewhere);
    }
  }

  /** The program on WebAssembly for a reason, or an error with this reason and what to do. */
  private async onWasm(reason: string, advice: string): Promise<Placed> {
    const { signature, files, options } = this;
    if (options.backend === "webgpu" || !files.wasm)
      throw new WeftRuntimeError(`${signature.name} does not run on WebGPU: ${reason}; ${advice}`);
    return { program: await WasmProgram.open(signature, files, options), reason };
  }
}

/** Whether a call failed because the device was lost, which the browser may say a moment later. */
async function isLost({ device }: GpuProgram | WasmProgram): Promise<boolean> {
  if (!(device instanceof GpuDevice)) return false;
  if (device.lost === null) await new Promise((resolve) => setTimeout(resolve));
  return device.lost !== null;
}

export async function loadAsync<Arguments extends unknown[], Result>(
  signature: Signature,
  files: Files,
  options: AsyncLoadOptions = {},
): Promise<AsyncProgram<Arguments, Result>> {
  // The module that imports it declares the types.
  return callable(signature, await Choice.open(signature, files, options)) as AsyncProgram<Arguments, Result>;
}

/** The function that a page calls. */
function callable(signature: Signature, choice: Choice): unknown {
  const { name, args, result } = signature;
  const inputs = signature.inputs.map(layout);
  const outputs = signature.outputs.map(layout);
  const donated = new Set(signature.donated);

  /** Handles of all outputs, which belong to the caller. */
  async function run(program: GpuProgram | WasmProgram, values: readonly unknown[]): Promise<number[]> {
    const { device } = program;
    const leaves = leavesOf(signature, inputs, values, device);
    const [temporary, kept]: number[][] = [[], []];
    const given: [Held, number][] = []; // arrays that the call consumes: another call must not take them meanwhile
    try {
      const handles = leaves.map(([value, where], i) => {
        if (value instanceof Held) {
          const handle = value.at(where);
          if (donated.has(i)) given.push([value, value.consume()]);
          return handle;
        }
        const handle = program.place(value);
        temporary!.push(handle);
        if (!donated.has(i)) kept!.push(handle);
        return handle;
      });
      const outs = await program.run(handles);
      kept!.forEach((handle) => device.free(handle));
      return outs;
    } catch (error) {
      temporary!.forEach((handle) => device.free(handle)); // a call that throws consumes nothing
      given.forEach(([array, handle]) => array.restore(handle));
      throw error;
    }
  }

  /** What `work` gives where the program runs; again on WebAssembly if the device is lost while it runs. */
  async function there<T>(work: (program: GpuProgram | WasmProgram) => Promise<T>): Promise<T> {
    const { program } = await choice.next();
    try {
      return await work(program);
    } catch (error) {
      if (!(await isLost(program))) throw error;
      return work((await choice.next()).program);
    }
  }

  const call = (...values: unknown[]): Promise<unknown> =>
    there(async (program) => {
      const { device } = program;
      const handles = await run(program, values);
      try {
        const leaves = await Promise.all(handles.map((handle, i) => readFrom(device, handle, outputs[i]!)));
        return unflatten(result, leaves);
      } finally {
        handles.forEach((handle) => device.free(handle));
      }
    });
  const onDevice = (...values: unknown[]): Promise<unknown> =>
    there(async (program) => {
      const handles = await run(program, values);
      const arrays = handles.map((handle, i) => new AsyncArray(program.device, handle, outputs[i]!));
      return unflatten(result, arrays);
    });
  const put = (...values: unknown[]): Promise<unknown> =>
    there(async (program) => {
      const { device } = program;
      const leaves = leavesOf(signature, inputs, values, device).map(([value], i) =>
        value instanceof Held ? value : new AsyncArray(device, program.place(value as TypedArray), inputs[i]!),
      );
      return args.map((arg) => unflatten(arg.tree, leaves));
    });
  const unload = (): void => choice.now.program.unload();
  const members = { onDevice, put, read, unload, signature };
  return Object.defineProperties(Object.assign(call, members), {
    name: { value: name },
    backend: { get: (): Backend => (choice.now.program.device instanceof GpuDevice ? "webgpu" : "wasm") },
    reason: { get: (): string => choice.now.reason },
  });
}

async function read(tree: unknown): Promise<unknown> {
  if (tree instanceof AsyncArray) return tree.read();
  if (typeof tree !== "object" || tree === null || ArrayBuffer.isView(tree)) return tree;
  if (Array.isArray(tree)) return Promise.all(tree.map(read));
  const entries = Object.entries(tree).map(async ([key, branch]) => [key, await read(branch)] as const);
  return Object.fromEntries(await Promise.all(entries));
}

export { Device, load, WeftProgramError, WeftRuntimeError } from "./exported.js";
