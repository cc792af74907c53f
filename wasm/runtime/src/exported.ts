/**
 * The runtime of the modules that weft.export.web writes for WebAssembly alone: one compiled program as a function of
 * typed arrays. Bundled as weft_wasm/page/weft.js; weft.d.ts beside it declares the interface for pages.
 */
import type { Files, Leaf, LoadOptions, Program, Signature } from "../../src/weft_wasm/page/weft.js";
import { WeftProgramError, WeftRuntimeError } from "./errors.js";
import { Held, layout, leavesOf, unflatten } from "./exported_values.js";
import { ALONE, Device, readWasm, WasmProgram } from "./exported_wasm.js";
import type { WasmDevice } from "./wasm_device.js";

class DeviceArray extends Held<WasmDevice> {
  read(): Leaf {
    return readWasm(this.device, this.at("this array"), this.spec);
  }
}

function read(tree: unknown): unknown {
  if (tree instanceof DeviceArray) return tree.read();
  if (typeof tree !== "object" || tree === null || ArrayBuffer.isView(tree)) return tree;
  if (Array.isArray(tree)) return tree.map(read);
  return Object.fromEntries(Object.entries(tree).map(([key, branch]) => [key, read(branch)]));
}

export async function load<Arguments extends unknown[], Result>(
  signature: Signature,
  files: Files,
  options: LoadOptions = {},
): Promise<Program<Arguments, Result>> {
  if (!files.wasm) {
    throw new WeftRuntimeError(
      `${signature.name} was exported for WebGPU alone; load it with loadAsync, or export it with target="auto"`,
    );
  }
  // The module that imports it declares the types.
  return callable(signature, await WasmProgram.open(signature, files, options)) as Program<Arguments, Result>;
}

/** The function that a page calls. */
function callable(signature: Signature, program: WasmProgram): unknown {
  const { name, args, result } = signature;
  const { device } = program;
  const inputs = signature.inputs.map(layout);
  const outputs = signature.outputs.map(layout);
  const donated = new Set(signature.donated);

  /** Addresses of all outputs, which belong to the caller. */
  function run(values: readonly unknown[]): number[] {
    const leaves = leavesOf(signature, inputs, values, device);
    const temporary: number[] = [];
    const kept: number[] = [];
    let outs: number[];
    try {
      const ptrs = leaves.map(([value, where], i) => {
        if (value instanceof Held) return value.at(where);
        const ptr = program.place(value);
        temporary.push(ptr);
        if (!donated.has(i)) kept.push(ptr);
        return ptr;
      });
      outs = program.run(ptrs);
    } catch (error) {
      temporary.forEach((ptr) => device.free(ptr)); // a call that throws consumes nothing
      throw error;
    }
    kept.forEach((ptr) => device.free(ptr));
    for (const index of donated) {
      const [value] = leaves[index]!;
      if (value instanceof Held) value.consume();
    }
    return outs;
  }

  const call = (...values: unknown[]): unknown => {
    const ptrs = run(values);
    const leaves = ptrs.map((ptr, i) => readWasm(device, ptr, outputs[i]!));
    ptrs.forEach((ptr) => device.free(ptr));
    return unflatten(result, leaves);
  };
  const onDevice = (...values: unknown[]): unknown =>
    unflatten(
      result,
      run(values).map((ptr, i) => new DeviceArray(device, ptr, outputs[i]!)),
    );
  const put = (...values: unknown[]): unknown => {
    const leaves = leavesOf(signature, inputs, values, device).map(([value], i) =>
      value instanceof Held ? value : new DeviceArray(device, program.place(value), inputs[i]!),
    );
    return args.map((arg) => unflatten(arg.tree, leaves));
  };
  const unload = (): void => program.unload();
  const reason = signature.webgpu ? "it was loaded for WebAssembly" : ALONE;
  const members = { onDevice, put, read, unload, signature, backend: "wasm", reason };
  return Object.defineProperty(Object.assign(call, members), "name", { value: name });
}

export { Device, WeftProgramError, WeftRuntimeError };
