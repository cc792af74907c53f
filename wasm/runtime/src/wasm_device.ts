/** Runs Wasm artifacts (ABI version 1) on its own linear memory. */
import { Allocator, type MemoryStats } from "./allocator.js";
import { parseArtifact } from "./container.js";
import type { Metadata } from "./contents.js";
import { WeftInterrupted, WeftMemoryError, WeftProgramError, WeftRuntimeError } from "./errors.js";
import { detectFeatures } from "./features.js";
import { LinearMemory, STOP, type Address } from "./memory.js";
import { CONTROL_BYTES, ThreadPool, type SharedProgram, type Spawn } from "./threads.js";

interface Program {
  metadata: Metadata;
  main: (table: Address) => number;
  /** Of a program with loops that threads can share. */
  shared?: Shared;
  /** Address of the argument table: inputs, outputs, scratch, constants. */
  table: number;
  constants: number;
  results: Uint32Array | Float64Array;
  /** For each call shape of donated inputs, the outputs that take an input's memory. */
  entries: Map<string, Entry>;
}

interface Shared extends SharedProgram {
  /** The module's count of threads: 1 until the workers have started. */
  threads: WebAssembly.Global<"i32">;
}

/** Runs a program: input addresses to the address of output 0; see WasmDevice.entry. */
export type Entry = (...inputs: number[]) => number;

/** A function of the host that programs call with addresses; a result other than 0 ends the program. */
export type HostCall = (number: number, addresses: Uint32Array | Float64Array) => number;

export interface WasmDeviceOptions {
  /** Pages of 64 KiB the memory begins with. */
  initialPages?: number;
  /**
   * Threads that share a program's loops, the caller among them; more than 1 needs a place that is cross-origin
   * isolated, see threadsHere.
   */
  threads?: number;
  /** Memory that other threads see, so that they can stop programs, also where it has no other threads: see isolatedHere. */
  shared?: boolean;
  /** Addresses of 64 bits, for more than 4 GiB, where the engine has them; programs run slower. */
  memory64?: boolean;
  /** How workers are started, where that is not a browser. */
  spawn?: Spawn;
}

const isOurs = (error: unknown): boolean =>
  error instanceof WeftProgramError || error instanceof WeftRuntimeError || error instanceof WeftMemoryError;

const SHARED = 2; // the bit of a memory import which says that threads share it

export class WasmDevice {
  readonly memory: LinearMemory;
  readonly features: readonly string[];
  /** The bytes that `fetch` copied last. */
  readonly small = new Uint8Array(64);
  private readonly allocator: Allocator;
  private readonly programs = new Map<number, Program>();
  private nextId = 1;
  private readonly pool: ThreadPool | null = null;
  private readonly stopped: Int32Array | null;

  private constructor(options: WasmDeviceOptions) {
    const found = detectFeatures();
    const { threads = 1, shared = threads > 1, initialPages = 64, memory64 = false } = options;
    if (memory64 && !found.includes("memory64"))
      throw new WeftRuntimeError("this engine has no memories of 64-bit addresses; make the device without memory64");
    this.features = found.filter((name) => memory64 || name !== "memory64");
    this.memory = new LinearMemory(memory64, initialPages, shared);
    this.stopped = this.interruptView();
    this.allocator = new Allocator(this.memory);
    if (threads > 1) this.pool = new ThreadPool(this.memory.memory, this.alloc(CONTROL_BYTES), threads, options.spawn);
  }

  /** Threads that run programs now: workers start in the background. */
  get threads(): number {
    return this.pool?.ready ? this.pool.threads : 1;
  }

  /**
   * The word that another thread sets (`Atomics.store(view, 0, 1)`) to end the running program, which then throws
   * WeftInterrupted and resets it to 0. It is null if memory can't be shared, so that no program can be stopped. It
   * stays valid when the memory grows: it may be stored, and sent to the page.
   */
  interruptView(): Int32Array | null {
    return this.memory.shared ? new Int32Array(this.memory.buffer, STOP, 1) : null;
  }

  /** Whether a stop was requested since the last one, or since the last `clearInterrupt`. */
  get interrupted(): boolean {
    return this.stopped !== null && Atomics.load(this.stopped, 0) !== 0;
  }

  /** Withdraws a request to stop: before a run begins. */
  clearInterrupt(): void {
    if (this.stopped) Atomics.store(this.stopped, 0, 0);
  }

  /** Ends the workers; programs continue with one thread. */
  close(): void {
    this.pool?.close();
    for (const { shared } of this.programs.values()) if (shared) shared.threads.value = 1;
  }

  static async create(options: WasmDeviceOptions = {}): Promise<WasmDevice> {
    return new WasmDevice(options);
  }

  alloc(bytes: number): number {
    return this.allocator.alloc(bytes);
  }

  free(ptr: number): void {
    this.allocator.free(ptr);
  }

  /** A fresh view of a live buffer. Growth of the memory detaches it: use it at once, do not keep it. */
  view(ptr: number, bytes: number): Uint8Array {
    const room = this.allocator.size(ptr);
    if (room === undefined)
      throw new WeftRuntimeError(`view(${ptr}): no buffer is allocated there; was it deleted or donated?`);
    if (bytes < 0 || bytes > room) throw new WeftRuntimeError(`view(${ptr}, ${bytes}): the buffer has ${room} bytes`);
    return new Uint8Array(this.memory.buffer, ptr, bytes);
  }

  /**
   * Copies up to 64 bytes of a live buffer to `small`, which stays where it is: cheaper from Python than a view of each
   * buffer.
   */
  fetch(ptr: number, bytes: number): void {
    this.small.set(this.view(ptr, bytes));
  }

  /** `view` for functions that a running program calls: of addresses inside its buffers or its scratch memory. */
  inside(ptr: number, bytes: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, ptr, bytes);
  }

  write(ptr: number, data: Uint8Array): void {
    this.view(ptr, data.length).set(data);
  }

  /**
   * Compiles a container without waiting. On a page's main thread engines refuse modules over 8 MB; in a worker they do
   * not. `host` is called by programs whose metadata has `calls`: number k with as many addresses as calls[k]. `made`:
   * the caller has made the container, or has compared its checksum.
   */
  load(bytes: Uint8Array, host?: HostCall, made = false): number {
    const { metadata, code, constants } = parseArtifact(bytes, made);
    return this.place(metadata, code, constants, host);
  }

  /** `load` of the parts of a container, which have been checked; the code may have been compiled before. */
  place(metadata: Metadata, code: Uint8Array | WebAssembly.Module, constants: Uint8Array, host?: HostCall): number {
    if (metadata.kind !== "wasm") {
      throw new WeftRuntimeError(`program ${metadata.name} was compiled for ${metadata.kind}; load it on that device`);
    }
    const missing = metadata.features.filter((feature) => !this.features.includes(feature));
    if (missing.length) {
      throw new WeftRuntimeError(
        `program ${metadata.name} uses ${missing.join(", ")}, which this engine lacks (it has ` +
          `${this.features.join(", ") || "none of them"}); compile it for the features of this device`,
      );
    }
    if (metadata.calls?.length && !host) {
      throw new WeftRuntimeError(
        `program ${metadata.name} calls functions of its host; load it with a host, from Python`,
      );
    }
    const { main, shared } = this.instantiate(metadata, code, host);
    const count = metadata.inputs.length + metadata.outputs.length + 2;
    const table = this.alloc(this.memory.addressBytes * count);
    let constantsPtr: number;
    try {
      constantsPtr = this.alloc(constants.length);
    } catch (error) {
      this.free(table);
      throw error;
    }
    this.write(constantsPtr, constants);
    const id = this.nextId++;
    const results = new (this.memory.wide ? Float64Array : Uint32Array)(metadata.outputs.length);
    this.programs.set(id, { metadata, main, shared, table, constants: constantsPtr, results, entries: new Map() });
    return id;
  }

  unload(id: number): void {
    const program = this.program(id);
    this.programs.delete(id);
    if (program.shared?.code) this.free(program.shared.code);
    this.free(program.table);
    this.free(program.constants);
  }

  metadata(id: number): Metadata {
    return this.program(id).metadata;
  }

  /** The addresses of all outputs of the last call of program `id`; each call overwrites the same array. */
  results(id: number): Uint32Array | Float64Array {
    return this.program(id).results;
  }

  /** Runs program `id` and returns the addresses of its outputs. See entry. */
  run(id: number, inputs: readonly number[], donated: readonly number[] = []): number[] {
    this.entry(id, ...donated)(...inputs);
    return Array.from(this.program(id).results);
  }

  /**
   * The call of program `id` as one function, to be kept: it takes the addresses of the inputs, allocates the outputs,
   * runs, and returns the address of output 0. `donated` are the indices of inputs that the call consumes: an output
   * whose metadata names one as its alias takes over its memory, the others are freed. A call that throws consumes
   * nothing.
   */
  entry(id: number, ...donated: number[]): Entry {
    const program = this.program(id);
    const key = donated.join();
    let entry = program.entries.get(key);
    if (!entry) program.entries.set(key, (entry = this.makeEntry(id, program, donated)));
    return entry;
  }

  stats(): MemoryStats {
    return this.allocator.stats();
  }

  /** From now on `stats().peak` is counted anew. */
  resetPeak(): void {
    this.allocator.resetPeak();
  }

  private makeEntry(id: number, program: Program, donated: readonly number[]): Entry {
    const { metadata, main, table, results } = program;
    const inputs = metadata.inputs.map((spec) => spec.bytes);
    const outputs = metadata.outputs.map((spec) => spec.bytes);
    const takes = metadata.outputs.map((spec) =>
      spec.alias !== null && donated.includes(spec.alias) ? spec.alias : -1,
    );
    const dropped = donated.filter((index) => !takes.includes(index));
    for (const index of donated) {
      if (!(index in inputs)) throw new WeftRuntimeError(`program ${metadata.name} has no input ${index} to donate`);
    }
    const { memory } = this;
    const start = memory.address(table);
    const scratchSlot = inputs.length + outputs.length;

    return (...args: number[]): number => {
      if (this.programs.get(id) !== program) throw new WeftRuntimeError(`program ${metadata.name} has been unloaded`);
      if (args.length !== inputs.length) {
        throw new WeftRuntimeError(`program ${metadata.name} takes ${inputs.length} inputs, ${args.length} given`);
      }
      for (let i = 0; i < args.length; i++) this.checkInput(metadata, i, args[i]!, inputs[i]!);
      for (const index of donated) this.checkDonation(metadata, index, args);
      let made = 0;
      let scratch = 0;
      let code: number;
      try {
        for (; made < outputs.length; made++) {
          const source = takes[made]!;
          results[made] = source < 0 ? this.allocator.alloc(outputs[made]!) : args[source]!;
        }
        const room = program.shared
          ? metadata.scratch + this.helpers(program.shared) * metadata.tasks!.private
          : metadata.scratch;
        if (room) scratch = this.allocator.alloc(room);
        for (let i = 0; i < args.length; i++) memory.put(table, i, args[i]!);
        for (let i = 0; i < outputs.length; i++) memory.put(table, inputs.length + i, results[i]!);
        memory.put(table, scratchSlot, scratch);
        memory.put(table, scratchSlot + 1, program.constants);
        code = main(start);
        if (code !== 0) {
          throw new WeftProgramError(
            metadata.errors[code] ?? `program ${metadata.name} failed with code ${code}`,
            code,
          );
        }
      } catch (error) {
        for (let i = 0; i < made; i++) if (takes[i]! < 0) this.allocator.free(results[i]!);
        if (scratch) this.allocator.free(scratch);
        if (this.interrupted && (error instanceof WebAssembly.RuntimeError || error instanceof WeftInterrupted)) {
          this.clearInterrupt();
          throw new WeftInterrupted(`program ${metadata.name} was stopped`);
        }
        if (!isOurs(error)) {
          throw new WeftProgramError(
            `program ${metadata.name} trapped: ${(error as Error).message}; this is a bug of the compiler`,
            0,
          );
        }
        throw error;
      }
      if (scratch) this.allocator.free(scratch);
      for (const index of dropped) this.allocator.free(args[index]!);
      return outputs.length ? results[0]! : 0;
    };
  }

  /** How many workers take part in a program: all, once all have started. */
  private helpers(shared: Shared): number {
    if (shared.threads.value === 1 && this.pool?.ready) shared.threads.value = this.pool.threads;
    return shared.threads.value - 1;
  }

  private checkInput(metadata: Metadata, index: number, ptr: number, bytes: number): void {
    const room = this.allocator.size(ptr);
    if (room === undefined || room < bytes) {
      const why =
        room === undefined
          ? "is not an allocated buffer; was it deleted or donated?"
          : `has ${room} bytes, not ${bytes}`;
      throw new WeftRuntimeError(`program ${metadata.name}: input ${index} (address ${ptr}) ${why}`);
    }
  }

  private checkDonation(metadata: Metadata, index: number, args: readonly number[]): void {
    const ptr = args[index]!;
    if (args.indexOf(ptr) !== index || args.lastIndexOf(ptr) !== index) {
      throw new WeftRuntimeError(
        `program ${metadata.name}: input ${index} is donated and also given as another input; ` +
          "pass a copy, or do not donate it",
      );
    }
  }

  private program(id: number): Program {
    const program = this.programs.get(id);
    if (!program) throw new WeftRuntimeError(`no program ${id} is loaded; was it unloaded?`);
    return program;
  }

  private instantiate(
    metadata: Metadata,
    code: Uint8Array | WebAssembly.Module,
    host?: HostCall,
  ): Pick<Program, "main" | "shared"> {
    const { name, calls, tasks } = metadata;
    if (this.memory.shared) {
      if (code instanceof WebAssembly.Module) {
        throw new WeftRuntimeError(
          `program ${name} is a module already, for a memory that nobody shares; ` +
            "give its bytes, or make the device with threads: 1 and shared: false",
        );
      }
      const bytes = (code = code.slice());
      bytes[metadata.memory!]! |= SHARED;
    }
    const program: SharedProgram = {
      number: this.pool?.number() ?? 0,
      code: 0,
      length: code instanceof WebAssembly.Module ? 0 : code.length,
      tasks: [],
    };
    const wrong = (what: string) =>
      new WeftProgramError(`program ${name} ${what}, which no program does; compile it again`, 0);
    const share = (number: number, frame: Address, extent: number, grain: number): void => {
      if (!this.pool || !(number in program.tasks) || extent < 0 || grain < 1)
        throw wrong(`shares loop ${number} of ${extent} by ${grain}`);
      this.pool.run(program, number, frame, extent, grain);
    };
    const call = (number: number, table: Address): number => {
      const count = calls?.[number];
      if (!host || count === undefined) throw wrong(`calls function ${number}`);
      const start = this.memory.unsigned(table);
      if (start % 4 || start + count * this.memory.addressBytes > this.memory.buffer.byteLength)
        throw wrong(`calls function ${number} with a table at ${start}`);
      return host(number, this.memory.addresses(start, count));
    };
    let instance: WebAssembly.Instance;
    try {
      const module =
        code instanceof WebAssembly.Module ? code : new WebAssembly.Module(code as Uint8Array<ArrayBuffer>);
      instance = new WebAssembly.Instance(module, { weft: { memory: this.memory.memory, call, share } });
    } catch (error) {
      throw new WeftRuntimeError(`program ${name} is not a module of this ABI: ${(error as Error).message}`);
    }
    const main = instance.exports["main"];
    if (typeof main !== "function")
      throw new WeftRuntimeError(`program ${name} has no function "main"; compile it again`);
    if (!tasks) return { main: main as Program["main"] };
    for (let k = 0; k < tasks.count; k++) program.tasks.push(instance.exports[`task${k}`] as SharedProgram["tasks"][0]);
    if (this.pool) {
      program.code = this.alloc(program.length);
      this.write(program.code, code as Uint8Array);
    }
    const threads = instance.exports["threads"] as WebAssembly.Global<"i32">;
    return { main: main as Program["main"], shared: Object.assign(program, { threads }) };
  }
}
