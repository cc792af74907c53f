/** Exported programs as functions that run on a host: the interface is that of programs in the page. */
import type { ArraySpec, Leaf, Signature, TypedArray } from "../../../src/weft_wasm/page/weft.js";
import { WeftRuntimeError } from "../errors.js";
import {
  bytesOf,
  described,
  hasLayout,
  Held,
  layout,
  leavesOf,
  unflatten,
  valueOf,
  type Layout,
  type Memory,
} from "../exported_values.js";
import { sha256 } from "../sha256.js";
import type { ExportedFile } from "./file.js";
import type { Session } from "./session.js";

/** A device of a host, and the arrays of this session on it. */
export class HostDevice implements Memory {
  constructor(
    readonly session: Session,
    /** Its number on the host. */
    readonly id: number,
    readonly platform: string,
    readonly kind: string,
  ) {}

  get lost(): string | null {
    return this.session.failure?.message ?? null;
  }

  free(handle: number): void {
    this.session.free(handle);
  }
}

/** An array on a host. */
export class HostArray extends Held<HostDevice> {
  /** A copy of its elements. Rejects with the error of the computation that should have made it. */
  async read(): Promise<Leaf> {
    return fetched(this.device, this.at("this array"), this.spec);
  }
}

async function fetched({ session }: HostDevice, handle: number, spec: Layout): Promise<Leaf> {
  const bytes = await session.request("Fetch", { handle }, bytesOf(spec));
  return valueOf(bytes.buffer, spec);
}

/** Results of so many bytes together come in one reply. */
const TOGETHER = 64 << 10;

const aval = ({ dtype, shape }: ArraySpec) => ({ dtype, weak: false, shape });
const viewed = (array: TypedArray | Uint8Array): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** The layout of an argument or result, which must have a typed array. */
function held(spec: ArraySpec, name: string): Layout {
  if (hasLayout(spec)) return layout(spec);
  const advice = spec.dtype.startsWith("key<")
    ? "export the numbers of keys (random.key_data)"
    : "convert it with astype";
  throw new WeftRuntimeError(`${name} takes or returns ${described(spec)}, which has no typed array; ${advice}`);
}

/** A program on a device, ready to be called. */
export class HostProgram {
  private readonly inputs: readonly Layout[];
  private readonly outputs: readonly Layout[];

  constructor(
    readonly device: HostDevice,
    readonly signature: Signature,
    readonly handle: number,
    readonly constants: readonly number[],
  ) {
    const { name, inputs, outputs } = signature;
    [this.inputs, this.outputs] = [inputs.map((spec) => held(spec, name)), outputs.map((spec) => held(spec, name))];
  }

  /**
   * Sends the program and its constants, and has it compiled; nothing waits for the host. `shape` says how arguments
   * and results are built of arrays, if the file does not.
   */
  static async open(
    device: HostDevice,
    file: ExportedFile,
    donated: readonly number[],
    shape: Pick<Signature, "args" | "result"> = file,
  ): Promise<HostProgram> {
    const { session } = device;
    const { name, inputs, outputs, constants, program } = file;
    const { args, result } = shape;
    [...inputs, ...outputs].forEach((spec) => held(spec, name));
    for (const index of donated)
      if (!(index in inputs))
        throw new RangeError(`${name} has ${inputs.length} arrays in its arguments; donate is ${index}`);
    const hash = sha256(program);
    await session.send(hash, program);
    const given = await Promise.all(constants.map((c) => session.put(c.data, aval(c), device.id)));
    const handle = session.newHandle();
    const gives = [...constants.map(() => false), ...inputs.map((_, i) => donated.includes(i))];
    session.operate("Compile", { handle, program: hash, device: device.id, name, donated: gives });
    const sizes = constants.map((c) => c.data.length);
    const signature = { name, id: "", args, result, inputs, outputs, donated, constants: sizes, sha256: {} };
    return new HostProgram(device, signature, handle, given);
  }

  /** The handles of its arguments, once all are on their way, and what frees those that nobody else has. */
  private async given(values: readonly unknown[]): Promise<{ handles: number[]; free: () => void }> {
    const { session } = this.device;
    const leaves = leavesOf(this.signature, this.inputs, values, this.device);
    const donated = new Set(this.signature.donated);
    const temporary: [handle: number, bytes: number][] = [];
    const handles = await Promise.all(
      leaves.map(async ([value, where], i) => {
        if (value instanceof Held) return donated.has(i) ? value.consume() : value.at(where);
        const handle = await session.put(viewed(value), aval(this.inputs[i]!), this.device.id);
        if (!donated.has(i)) temporary.push([handle, value.byteLength]);
        return handle;
      }),
    );
    const free = (): void => temporary.forEach(([handle, bytes]) => session.free(handle, bytes));
    return { handles: [...this.constants, ...handles], free };
  }

  /** Calls it; the handles of its results belong to the caller. */
  private async run(values: readonly unknown[]): Promise<number[]> {
    const { session } = this.device;
    const { handles, free } = await this.given(values);
    const results = this.outputs.map(() => session.newHandle());
    session.operate("Execute", { program: this.handle, arguments: handles, results });
    free();
    return results;
  }

  async call(...values: unknown[]): Promise<unknown> {
    const { session } = this.device;
    const sizes = this.outputs.map(bytesOf);
    const size = sizes.reduce((sum, bytes) => sum + bytes, 0);
    if (sizes.length > 1 && size > TOGETHER) return this.callAndFetch(values);
    const { handles, free } = await this.given(values);
    const results = this.outputs.map(() => session.newHandle());
    const fetched = results.map((_, i) => i);
    const reply = session.request(
      "ExecuteFetching",
      { program: this.handle, arguments: handles, results, fetched },
      size,
    );
    free();
    try {
      const { buffer } = await reply;
      let at = 0;
      const leaves = this.outputs.map((spec, i) =>
        valueOf(sizes.length === 1 ? buffer : buffer.slice(at, (at += sizes[i]!)), spec),
      );
      return unflatten(this.signature.result, leaves);
    } finally {
      results.forEach((handle, i) => session.free(handle, sizes[i]));
    }
  }

  /** The same for large results: each takes its own way, so that none waits for another to be copied. */
  private async callAndFetch(values: readonly unknown[]): Promise<unknown> {
    const results = await this.run(values);
    try {
      const leaves = await Promise.all(results.map((handle, i) => fetched(this.device, handle, this.outputs[i]!)));
      return unflatten(this.signature.result, leaves);
    } finally {
      results.forEach((handle) => this.device.free(handle));
    }
  }

  async onDevice(...values: unknown[]): Promise<unknown> {
    const results = await this.run(values);
    const arrays = results.map((handle, i) => new HostArray(this.device, handle, this.outputs[i]!));
    return unflatten(this.signature.result, arrays);
  }

  async put(...values: unknown[]): Promise<unknown> {
    const leaves = leavesOf(this.signature, this.inputs, values, this.device);
    const arrays = await Promise.all(
      leaves.map(async ([value], i) => {
        if (value instanceof Held) return value;
        const spec = this.inputs[i]!;
        return new HostArray(
          this.device,
          await this.device.session.put(viewed(value), aval(spec), this.device.id),
          spec,
        );
      }),
    );
    return this.signature.args.map((arg) => unflatten(arg.tree, arrays));
  }

  /** Gives the program and its constants back. */
  unload(): void {
    [this.handle, ...this.constants].forEach((handle) => this.device.free(handle));
  }
}

/** The values of a tree of arrays on the host. */
export async function read(tree: unknown): Promise<unknown> {
  if (tree instanceof HostArray) return tree.read();
  if (typeof tree !== "object" || tree === null || ArrayBuffer.isView(tree)) return tree;
  if (Array.isArray(tree)) return Promise.all(tree.map(read));
  const entries = Object.entries(tree).map(async ([key, branch]) => [key, await read(branch)] as const);
  return Object.fromEntries(await Promise.all(entries));
}
