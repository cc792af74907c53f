// Made from wasm/runtime/src/exported.ts of weft by `npm run build:exported -w @weft/runtime`. Apache-2.0.

// src/errors.ts
var WeftRuntimeError = class extends Error {
  name = "WeftRuntimeError";
};
var WeftMemoryError = class extends Error {
  name = "WeftMemoryError";
};
var WeftProgramError = class extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
  code;
  name = "WeftProgramError";
};

// src/container.ts
var ABI_VERSION = 1;
var MAGIC = [119, 101, 102, 116, 1, 0, 0, 0];
var HEADER = MAGIC.length + 12;
function bad(what) {
  return new WeftRuntimeError(`not a weft artifact: ${what}; compile the program again`);
}
function isLength(value) {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
function checkBuffer(spec, where) {
  if (!spec || typeof spec.dtype !== "string" || !Array.isArray(spec.shape) || !isLength(spec.bytes)) {
    throw bad(`${where} needs dtype, shape and bytes`);
  }
}
function checkMetadata(value) {
  if (typeof value !== "object" || value === null) throw bad("its metadata is no object");
  const metadata = value;
  if (metadata.abi !== ABI_VERSION) {
    throw new WeftRuntimeError(
      `the artifact has ABI version ${String(metadata.abi)}, this runtime reads ${ABI_VERSION}; use the compiler and the runtime of one release`
    );
  }
  if (!Array.isArray(metadata.inputs) || !Array.isArray(metadata.outputs)) throw bad("no list of inputs and outputs");
  metadata.inputs.forEach((spec, i) => checkBuffer(spec, `input ${i}`));
  metadata.outputs.forEach((spec, i) => {
    checkBuffer(spec, `output ${i}`);
    spec.alias ??= null;
    if (spec.alias === null) return;
    const input = metadata.inputs[spec.alias];
    if (!input) throw bad(`output ${i} aliases input ${spec.alias}, which does not exist`);
    if (input.bytes < spec.bytes) throw bad(`output ${i} is larger than input ${spec.alias}, which it aliases`);
    const first = metadata.outputs.findIndex((other) => other.alias === spec.alias);
    if (first !== i) throw bad(`outputs ${first} and ${i} alias the same input ${spec.alias}`);
  });
  metadata.scratch ??= 0;
  if (!isLength(metadata.scratch)) throw bad("scratch is no size");
  const { tasks } = metadata;
  if (tasks && !(isLength(tasks.count) && isLength(tasks.private))) throw bad("tasks needs count and private");
  metadata.memory ??= -1;
  metadata.features ??= [];
  metadata.errors ??= {};
  metadata.name ??= "program";
  return metadata;
}
function parseArtifact(bytes) {
  if (bytes.length < HEADER) throw bad(`${bytes.length} bytes are fewer than its header`);
  if (MAGIC.some((byte, i) => bytes[i] !== byte)) throw bad("wrong magic bytes");
  const header = new DataView(bytes.buffer, bytes.byteOffset + MAGIC.length, 12);
  const lengths = [0, 4, 8].map((offset) => header.getUint32(offset, true));
  const [metaLength, codeLength, constantsLength] = lengths;
  const total = HEADER + metaLength + codeLength + constantsLength;
  if (total !== bytes.length) throw bad(`its header says ${total} bytes, there are ${bytes.length}`);
  const codeStart = HEADER + metaLength;
  let parsed;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(HEADER, codeStart)));
  } catch (error) {
    throw bad(`its metadata is not JSON (${error.message})`);
  }
  return {
    metadata: checkMetadata(parsed),
    code: bytes.subarray(codeStart, codeStart + codeLength),
    constants: bytes.subarray(codeStart + codeLength)
  };
}

// src/threads.ts
var CONTROL_BYTES = 256;
var WORD = { JOB: 0, PROGRAM: 1, CODE: 2, LENGTH: 3, TASK: 4, FRAME: 5, EXTENT: 6, GRAIN: 7, FAILED: 8, READY: 9, NEXT: 16, GATE: 32, LEFT: 48 };
var CLOSED = 1 << 30;
var KEPT = 64;
var SPINS = 2e4;
function work(start, word, closed, kept, spins) {
  const { memory, control, thread } = start;
  const words = new Int32Array(memory.buffer, control, 64);
  const programs = /* @__PURE__ */ new Map();
  const nothing = () => 0;
  const load2 = (number) => {
    let program = programs.get(number);
    if (!program) {
      try {
        const code = new Uint8Array(memory.buffer, words[word.CODE], words[word.LENGTH]).slice();
        const imports = { weft: { memory, share: nothing, call: nothing } };
        program = new WebAssembly.Instance(new WebAssembly.Module(code), imports).exports;
      } catch {
        return void 0;
      }
      if (programs.size === kept) programs.delete(programs.keys().next().value);
    }
    programs.delete(number);
    programs.set(number, program);
    return program;
  };
  let seen = 0;
  Atomics.add(words, word.READY, 1);
  for (; ; ) {
    for (let spin = 0; Atomics.load(words, word.JOB) === seen; spin++) {
      if (spin > spins) Atomics.wait(words, word.JOB, seen);
    }
    seen = Atomics.load(words, word.JOB);
    if (Atomics.add(words, word.GATE, 1) & closed) continue;
    const program = load2(words[word.PROGRAM]);
    if (program) {
      const task = program["task" + words[word.TASK]];
      const frame = words[word.FRAME];
      const extent = words[word.EXTENT];
      const grain = words[word.GRAIN];
      try {
        for (; ; ) {
          const begin = Atomics.add(words, word.NEXT, grain) >>> 0;
          if (begin >= extent) break;
          task(frame, thread, begin, Math.min(begin + grain, extent));
        }
      } catch {
        Atomics.store(words, word.FAILED, 1);
      }
    }
    Atomics.add(words, word.LEFT, 1);
    Atomics.notify(words, word.LEFT);
  }
}
var source = `onmessage = (event) => (${work.toString()})(event.data, ${JSON.stringify(WORD)}, ${CLOSED}, ${KEPT}, ${SPINS});`;
var spawnInBrowser = (text, start) => {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(url);
  worker.postMessage(start);
  return () => {
    worker.terminate();
    URL.revokeObjectURL(url);
  };
};
function threadsHere() {
  const isolated = globalThis.crossOriginIsolated === true;
  return isolated ? Math.min(navigator.hardwareConcurrency || 1, 8) : 1;
}
var ThreadPool = class {
  /** Starts `threads - 1` workers; they take part from the moment `ready` is true. */
  constructor(memory, control, threads, spawn = spawnInBrowser) {
    this.threads = threads;
    this.words = new Int32Array(memory.buffer, control, CONTROL_BYTES / 4);
    this.words.fill(0);
    this.words[WORD.GATE] = CLOSED;
    for (let thread = 1; thread < threads; thread++) this.ends.push(spawn(source, { memory, control, thread }));
  }
  threads;
  words;
  ends = [];
  programs = 0;
  /** Whether every worker has started. */
  get ready() {
    return Atomics.load(this.words, WORD.READY) === this.threads - 1;
  }
  /** A number for a program, by which workers know it. */
  number() {
    return ++this.programs;
  }
  /** Runs iterations 0 … extent-1 of a task on all threads, `grain` at a time. A worker that wakes too late is not waited for. */
  run(program, number, frame, extent, grain) {
    const { words } = this;
    const task = program.tasks[number];
    words[WORD.PROGRAM] = program.number;
    words[WORD.CODE] = program.code;
    words[WORD.LENGTH] = program.length;
    words[WORD.TASK] = number;
    words[WORD.FRAME] = frame;
    words[WORD.EXTENT] = extent;
    words[WORD.GRAIN] = grain;
    words[WORD.FAILED] = 0;
    words[WORD.LEFT] = 0;
    words[WORD.NEXT] = 0;
    Atomics.store(words, WORD.GATE, 0);
    Atomics.add(words, WORD.JOB, 1);
    Atomics.notify(words, WORD.JOB);
    try {
      for (; ; ) {
        const begin = Atomics.add(words, WORD.NEXT, grain) >>> 0;
        if (begin >= extent) break;
        task(frame, 0, begin, Math.min(begin + grain, extent));
      }
    } finally {
      this.join();
    }
    if (Atomics.load(words, WORD.FAILED)) throw new WeftRuntimeError("a worker trapped while it shared a loop; this is a bug of the compiler");
  }
  /** Ends the workers. */
  close() {
    for (const end of this.ends) end();
    this.ends.length = 0;
    this.words[WORD.READY] = -1;
  }
  /** Lets no more workers in and waits for those that are. A page's main thread may not sleep: it looks until then. */
  join() {
    const { words } = this;
    const entered = Atomics.or(words, WORD.GATE, CLOSED);
    let left;
    for (let spin = 0; (left = Atomics.load(words, WORD.LEFT)) !== entered; spin++) {
      if (spin > SPINS && maySleep) {
        try {
          Atomics.wait(words, WORD.LEFT, left);
        } catch {
          maySleep = false;
        }
      }
    }
  }
};
var maySleep = true;

// src/allocator.ts
var ALIGN = 64;
var SMALL = 8192;
var SLAB = 65536;
var PAGE = 65536;
var MAX_PAGES = 65536;
function roundUp(value, multiple) {
  return Math.ceil(value / multiple) * multiple;
}
function sizeClass(bytes) {
  const size = Math.max(ALIGN, roundUp(bytes, ALIGN));
  if (size <= 1024) return size;
  if (size > SMALL) return size;
  return roundUp(size, 2 ** (Math.floor(Math.log2(size - 1)) - 2));
}
var Allocator = class {
  /** `base` bytes at the beginning of the memory stay untouched, so that address 0 is never a buffer. */
  constructor(memory, base = ALIGN) {
    this.memory = memory;
    this.release(base, memory.buffer.byteLength - base);
  }
  memory;
  small = /* @__PURE__ */ new Map();
  sizes = /* @__PURE__ */ new Map();
  free_ = [];
  allocated = 0;
  peak = 0;
  alloc(bytes) {
    if (!Number.isSafeInteger(bytes) || bytes < 0) {
      throw new WeftRuntimeError(`alloc(${bytes}): a buffer's size is a whole number of bytes, 0 or more`);
    }
    const size = sizeClass(bytes);
    const ptr = size <= SMALL ? this.takeSmall(size) : this.takeLarge(size);
    this.sizes.set(ptr, size);
    this.allocated += size;
    this.peak = Math.max(this.peak, this.allocated);
    return ptr;
  }
  free(ptr) {
    const size = this.sizes.get(ptr);
    if (size === void 0) {
      throw new WeftRuntimeError(
        `free(${ptr}): no buffer is allocated there; it was freed already, or never allocated`
      );
    }
    this.sizes.delete(ptr);
    this.allocated -= size;
    if (size <= SMALL) this.small.get(size).push(ptr);
    else this.release(ptr, size);
  }
  /** The room of a live buffer, or undefined. */
  size(ptr) {
    return this.sizes.get(ptr);
  }
  stats() {
    return { allocated: this.allocated, peak: this.peak, free: this.memory.buffer.byteLength - this.allocated };
  }
  resetPeak() {
    this.peak = this.allocated;
  }
  takeSmall(size) {
    let list = this.small.get(size);
    if (!list) this.small.set(size, list = []);
    const ptr = list.pop();
    if (ptr !== void 0) return ptr;
    const slab = this.takeLarge(SLAB);
    for (let at = slab + SLAB - SLAB % size - size; at > slab; at -= size) list.push(at);
    return slab;
  }
  takeLarge(size) {
    let best = -1;
    for (let i = 0; i < this.free_.length; i++) {
      const room = this.free_[i].size;
      if (room >= size && (best < 0 || room < this.free_[best].size)) best = i;
    }
    if (best < 0) {
      this.grow(size);
      return this.takeLarge(size);
    }
    const block = this.free_[best];
    const ptr = block.start;
    block.start += size;
    block.size -= size;
    if (block.size === 0) this.free_.splice(best, 1);
    return ptr;
  }
  release(start, size) {
    let low = 0;
    let high = this.free_.length;
    while (low < high) {
      const middle = low + high >> 1;
      if (this.free_[middle].start < start) low = middle + 1;
      else high = middle;
    }
    const before = this.free_[low - 1];
    const after = this.free_[low];
    const joinsBefore = before !== void 0 && before.start + before.size === start;
    const joinsAfter = after !== void 0 && start + size === after.start;
    if (joinsBefore) {
      before.size += size + (joinsAfter ? after.size : 0);
      if (joinsAfter) this.free_.splice(low, 1);
    } else if (joinsAfter) {
      after.start = start;
      after.size += size;
    } else {
      this.free_.splice(low, 0, { start, size });
    }
  }
  /** Makes a free block of at least `size` at the end of the memory; grows by a quarter at once where it can. */
  grow(size) {
    const end = this.memory.buffer.byteLength;
    const last = this.free_.at(-1);
    const atEnd = last && last.start + last.size === end ? last.size : 0;
    const need = Math.ceil((size - atEnd) / PAGE);
    const pages = end / PAGE;
    const generous = Math.min(Math.max(need, Math.ceil(pages / 4)), MAX_PAGES - pages);
    for (const delta of /* @__PURE__ */ new Set([generous, need])) {
      if (delta < need) continue;
      try {
        this.memory.grow(delta);
      } catch {
        continue;
      }
      this.release(end, delta * PAGE);
      return;
    }
    const { allocated } = this.stats();
    const limit = need > MAX_PAGES - pages ? "a 32-bit memory ends at 4 GiB" : "the engine refused to grow the memory";
    throw new WeftMemoryError(
      `out of device memory: ${size} bytes asked for, ${allocated} in use; ${limit}. Delete arrays that are no longer needed, donate inputs, or use smaller batches`
    );
  }
};

// src/features.ts
function vectorModule(body) {
  const code = [0, ...body, 11];
  return new Uint8Array([
    0,
    97,
    115,
    109,
    1,
    0,
    0,
    0,
    1,
    5,
    1,
    96,
    0,
    1,
    123,
    // type () -> v128
    3,
    2,
    1,
    0,
    10,
    code.length + 2,
    1,
    code.length,
    ...code
  ]);
}
var I32_CONST_0 = [65, 0];
var I8X16_SPLAT = [253, 15];
var F32X4_SPLAT = [253, 19];
var F32_CONST_0 = [67, 0, 0, 0, 0];
var F32X4_RELAXED_MADD = [253, 133, 2];
var vector = [...F32_CONST_0, ...F32X4_SPLAT];
var PROBES = {
  simd128: vectorModule([...I32_CONST_0, ...I8X16_SPLAT]),
  "relaxed-simd": vectorModule([...vector, ...vector, ...vector, ...F32X4_RELAXED_MADD])
};
function detectFeatures() {
  return Object.keys(PROBES).filter((name) => WebAssembly.validate(PROBES[name]));
}

// src/wasm_device.ts
var MAX_PAGES2 = 65536;
var SHARED_MEMORY = 3;
var WasmDevice = class _WasmDevice {
  memory;
  features;
  allocator;
  programs = /* @__PURE__ */ new Map();
  nextId = 1;
  words;
  pool = null;
  constructor(options) {
    this.features = detectFeatures();
    const { threads = 1, initialPages: initial = 64 } = options;
    this.memory = new WebAssembly.Memory({ initial, maximum: MAX_PAGES2, shared: threads > 1 });
    this.allocator = new Allocator(this.memory);
    this.words = new Uint32Array(this.memory.buffer);
    if (threads > 1) this.pool = new ThreadPool(this.memory, this.alloc(CONTROL_BYTES), threads, options.spawn);
  }
  /** Threads that run programs now: workers start in the background. */
  get threads() {
    return this.pool?.ready ? this.pool.threads : 1;
  }
  /** Ends the workers; programs go on with one thread. */
  close() {
    this.pool?.close();
    for (const { shared: shared2 } of this.programs.values()) if (shared2) shared2.threads.value = 1;
  }
  static async create(options = {}) {
    return new _WasmDevice(options);
  }
  alloc(bytes) {
    return this.allocator.alloc(bytes);
  }
  free(ptr) {
    this.allocator.free(ptr);
  }
  /** A fresh view of a live buffer. Growth of the memory detaches it: use it at once, do not keep it. */
  view(ptr, bytes) {
    const room = this.allocator.size(ptr);
    if (room === void 0)
      throw new WeftRuntimeError(`view(${ptr}): no buffer is allocated there; was it deleted or donated?`);
    if (bytes < 0 || bytes > room) throw new WeftRuntimeError(`view(${ptr}, ${bytes}): the buffer has ${room} bytes`);
    return new Uint8Array(this.memory.buffer, ptr, bytes);
  }
  /** `view` for functions that a running program calls: what lies inside its buffers, its scratch for one. */
  inside(ptr, bytes) {
    return new Uint8Array(this.memory.buffer, ptr, bytes);
  }
  write(ptr, data) {
    this.view(ptr, data.length).set(data);
  }
  /**
   * Compiles a container, at once; on a page's main thread engines refuse modules over 8 MB, in a worker they
   * do not. `host` is what a program calls whose metadata has `calls`: number k with as many addresses as calls[k].
   */
  load(bytes, host) {
    const { metadata, code, constants } = parseArtifact(bytes);
    return this.place(metadata, code, constants, host);
  }
  /** `load` of the parts of a container; the code may have been compiled before. */
  place(metadata, code, constants, host) {
    if ((metadata.kind ?? "wasm") !== "wasm") {
      throw new WeftRuntimeError(`program ${metadata.name} was compiled for ${metadata.kind}; load it on that device`);
    }
    const missing = metadata.features.filter((feature) => !this.features.includes(feature));
    if (missing.length) {
      throw new WeftRuntimeError(
        `program ${metadata.name} uses ${missing.join(", ")}, which this engine lacks (it has ${this.features.join(", ") || "none of them"}); compile it for the features of this device`
      );
    }
    if (metadata.calls?.length && !host) {
      throw new WeftRuntimeError(`program ${metadata.name} calls functions of its host; load it with a host, from Python`);
    }
    const { main, shared: shared2 } = this.instantiate(metadata, code, host);
    const count = metadata.inputs.length + metadata.outputs.length + 2;
    const table = this.alloc(4 * count);
    let constantsPtr;
    try {
      constantsPtr = this.alloc(constants.length);
    } catch (error) {
      this.free(table);
      throw error;
    }
    this.write(constantsPtr, constants);
    const id = this.nextId++;
    const results = new Uint32Array(metadata.outputs.length);
    this.programs.set(id, { metadata, main, shared: shared2, table, constants: constantsPtr, results, entries: /* @__PURE__ */ new Map() });
    return id;
  }
  unload(id) {
    const program = this.program(id);
    this.programs.delete(id);
    if (program.shared?.code) this.free(program.shared.code);
    this.free(program.table);
    this.free(program.constants);
  }
  metadata(id) {
    return this.program(id).metadata;
  }
  /** The addresses of all outputs of the last call of program `id`; each call overwrites the same array. */
  results(id) {
    return this.program(id).results;
  }
  /** Runs program `id` and returns the addresses of its outputs. See entry. */
  run(id, inputs, donated = []) {
    this.entry(id, ...donated)(...inputs);
    return Array.from(this.program(id).results);
  }
  /**
   * The call of program `id` as one function, to be kept: it takes the addresses of the inputs, allocates the outputs,
   * runs, and returns the address of output 0. `donated` are the indices of inputs that the call consumes: an output
   * whose metadata names one as its alias takes over its memory, the others are freed. A call that throws consumes
   * nothing.
   */
  entry(id, ...donated) {
    const program = this.program(id);
    const key = donated.join();
    let entry = program.entries.get(key);
    if (!entry) program.entries.set(key, entry = this.makeEntry(id, program, donated));
    return entry;
  }
  stats() {
    return this.allocator.stats();
  }
  /** From now on `stats().peak` is counted anew. */
  resetPeak() {
    this.allocator.resetPeak();
  }
  makeEntry(id, program, donated) {
    const { metadata, main, table, results } = program;
    const inputs = metadata.inputs.map((spec) => spec.bytes);
    const outputs = metadata.outputs.map((spec) => spec.bytes);
    const takes = metadata.outputs.map(
      (spec) => spec.alias !== null && donated.includes(spec.alias) ? spec.alias : -1
    );
    const dropped = donated.filter((index) => !takes.includes(index));
    for (const index of donated) {
      if (!(index in inputs)) throw new WeftRuntimeError(`program ${metadata.name} has no input ${index} to donate`);
    }
    const slot = table >>> 2;
    const scratchSlot = slot + inputs.length + outputs.length;
    return (...args) => {
      if (this.programs.get(id) !== program) throw new WeftRuntimeError(`program ${metadata.name} has been unloaded`);
      if (args.length !== inputs.length) {
        throw new WeftRuntimeError(`program ${metadata.name} takes ${inputs.length} inputs, ${args.length} given`);
      }
      for (let i = 0; i < args.length; i++) this.checkInput(metadata, i, args[i], inputs[i]);
      for (const index of donated) this.checkDonation(metadata, index, args);
      let made = 0;
      let scratch = 0;
      let code;
      try {
        for (; made < outputs.length; made++) {
          const source2 = takes[made];
          results[made] = source2 < 0 ? this.allocator.alloc(outputs[made]) : args[source2];
        }
        const room = program.shared ? metadata.scratch + this.helpers(program.shared) * metadata.tasks.private : metadata.scratch;
        if (room) scratch = this.allocator.alloc(room);
        if (this.words.buffer !== this.memory.buffer) this.words = new Uint32Array(this.memory.buffer);
        const words = this.words;
        for (let i = 0; i < args.length; i++) words[slot + i] = args[i];
        for (let i = 0; i < outputs.length; i++) words[slot + inputs.length + i] = results[i];
        words[scratchSlot] = scratch;
        words[scratchSlot + 1] = program.constants;
        code = main(table);
        if (code !== 0) {
          throw new WeftProgramError(
            metadata.errors[code] ?? `program ${metadata.name} failed with code ${code}`,
            code
          );
        }
      } catch (error) {
        for (let i = 0; i < made; i++) if (takes[i] < 0) this.allocator.free(results[i]);
        if (scratch) this.allocator.free(scratch);
        if (error instanceof WebAssembly.RuntimeError) {
          throw new WeftProgramError(
            `program ${metadata.name} trapped: ${error.message}; this is a bug of the compiler`,
            0
          );
        }
        throw error;
      }
      if (scratch) this.allocator.free(scratch);
      for (const index of dropped) this.allocator.free(args[index]);
      return outputs.length ? results[0] : 0;
    };
  }
  /** How many workers take part in a program: all, once all have started. */
  helpers(shared2) {
    if (shared2.threads.value === 1 && this.pool?.ready) shared2.threads.value = this.pool.threads;
    return shared2.threads.value - 1;
  }
  checkInput(metadata, index, ptr, bytes) {
    const room = this.allocator.size(ptr);
    if (room === void 0 || room < bytes) {
      const why = room === void 0 ? "is not an allocated buffer; was it deleted or donated?" : `has ${room} bytes, not ${bytes}`;
      throw new WeftRuntimeError(`program ${metadata.name}: input ${index} (address ${ptr}) ${why}`);
    }
  }
  checkDonation(metadata, index, args) {
    const ptr = args[index];
    if (args.indexOf(ptr) !== index || args.lastIndexOf(ptr) !== index) {
      throw new WeftRuntimeError(
        `program ${metadata.name}: input ${index} is donated and also given as another input; pass a copy, or do not donate it`
      );
    }
  }
  program(id) {
    const program = this.programs.get(id);
    if (!program) throw new WeftRuntimeError(`no program ${id} is loaded; was it unloaded?`);
    return program;
  }
  instantiate(metadata, code, host) {
    const { name, calls, tasks } = metadata;
    if (this.pool) {
      if (code instanceof WebAssembly.Module) {
        throw new WeftRuntimeError(`program ${name} is a module already, for a memory of one thread; give its bytes, or make the device with threads: 1`);
      }
      const bytes = code = code.slice();
      bytes[metadata.memory] = SHARED_MEMORY;
    }
    const program = { number: this.pool?.number() ?? 0, code: 0, length: code instanceof WebAssembly.Module ? 0 : code.length, tasks: [] };
    const share = (number, frame, extent, grain) => this.pool.run(program, number, frame, extent, grain);
    const call = (number, table) => host(number, new Uint32Array(this.memory.buffer, table, calls[number]).slice());
    let instance;
    try {
      const module = code instanceof WebAssembly.Module ? code : new WebAssembly.Module(code);
      instance = new WebAssembly.Instance(module, { weft: { memory: this.memory, call, share } });
    } catch (error) {
      throw new WeftRuntimeError(`program ${name} is not a module of this ABI: ${error.message}`);
    }
    const main = instance.exports["main"];
    if (typeof main !== "function")
      throw new WeftRuntimeError(`program ${name} has no function "main"; compile it again`);
    if (!tasks) return { main };
    for (let k = 0; k < tasks.count; k++) program.tasks.push(instance.exports[`task${k}`]);
    if (this.pool) {
      program.code = this.alloc(program.length);
      this.write(program.code, code);
    }
    const threads = instance.exports["threads"];
    return { main, shared: Object.assign(program, { threads }) };
  }
};

// src/exported.ts
var ARRAYS = {
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
  complex128: [Float64Array, 2]
};
function layout({ dtype, shape }) {
  const [constructor_, parts] = ARRAYS[dtype];
  const length = shape.reduce((product, size) => product * size, parts);
  return { dtype, shape, constructor_, length, scalar: shape.length === 0 && parts === 1 };
}
var described = ({ dtype, shape }) => `${dtype}[${shape.join(",")}]`;
var article = (noun) => /^[AEIO]/.test(noun) ? `an ${noun}` : `a ${noun}`;
var many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
function wanted(spec) {
  const array = `${article(spec.constructor_.name)} of length ${spec.length} for ${described(spec)}`;
  if (!spec.scalar) return array;
  const kind = spec.dtype === "bool" ? "boolean" : spec.dtype.endsWith("64") && spec.dtype[0] !== "f" ? "bigint" : "number";
  return `a ${kind}, or ${array}`;
}
function given(value) {
  if (ArrayBuffer.isView(value)) return `${article(value.constructor.name)} of length ${value.length ?? value.byteLength}`;
  if (value instanceof DeviceArray) return `a device array ${described(value)}`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (value === null || value === void 0) return String(value);
  return typeof value === "object" ? `an object with ${Object.keys(value).join(", ") || "nothing"}` : `${typeof value} ${String(value)}`;
}
var bad2 = (where, want, value) => new TypeError(`${where} must be ${want}; got ${given(value)}`);
var garbage = new FinalizationRegistry(({ device, ptr }) => device.free(ptr));
var DeviceArray = class {
  constructor(device, ptr, spec) {
    this.device = device;
    this.ptr = ptr;
    this.spec = spec;
    garbage.register(this, { device, ptr }, this);
  }
  device;
  ptr;
  spec;
  get dtype() {
    return this.spec.dtype;
  }
  get shape() {
    return this.spec.shape;
  }
  address(where) {
    if (!this.ptr) throw new WeftRuntimeError(`${where} was freed, or donated to an earlier call; use that call's result, or put it again`);
    return this.ptr;
  }
  /** Lets go of the memory, which now belongs to somebody else. */
  consume() {
    const ptr = this.ptr;
    this.ptr = 0;
    garbage.unregister(this);
    return ptr;
  }
  read() {
    return fetched(this.device, this.address("this array"), this.spec);
  }
  free() {
    if (this.ptr) this.device.free(this.consume());
  }
};
function fetched(device, ptr, spec) {
  const bytes = spec.length * bytesPerElement(spec);
  const array = new spec.constructor_(device.view(ptr, bytes).slice().buffer);
  if (!spec.scalar) return array;
  return spec.dtype === "bool" ? array[0] !== 0 : array[0];
}
var bytesPerElement = (spec) => spec.constructor_.BYTES_PER_ELEMENT;
function checked(value, spec, where) {
  let array;
  if (value instanceof spec.constructor_) {
    array = value;
  } else if (spec.scalar && ["number", "bigint", "boolean"].includes(typeof value)) {
    array = new spec.constructor_(1);
    const big = array instanceof BigInt64Array || array instanceof BigUint64Array;
    if (big ? typeof value !== "bigint" : typeof value === "bigint") throw bad2(where, wanted(spec), value);
    array[0] = spec.dtype === "bool" || typeof value === "boolean" ? Number(Boolean(value)) : value;
    const whole = !spec.dtype.startsWith("float");
    if (whole && spec.dtype !== "bool" && array[0] != value) throw bad2(where, `${spec.dtype} (the number does not fit)`, value);
    return array;
  } else {
    throw bad2(where, wanted(spec), value);
  }
  if (array.length !== spec.length) throw bad2(where, wanted(spec), value);
  return spec.dtype === "bool" ? array.map((x) => x ? 1 : 0) : array;
}
function flatten(tree, value, where, leaves) {
  if (typeof tree === "number") {
    leaves[tree] = [value, where];
  } else if (tree === null) {
    if (value !== null && value !== void 0) throw bad2(where, "null", value);
  } else if (Array.isArray(tree)) {
    if (!Array.isArray(value) || value.length !== tree.length) throw bad2(where, `an array of ${tree.length}`, value);
    tree.forEach((branch, i) => flatten(branch, value[i], `${where}[${i}]`, leaves));
  } else {
    const keys = Object.keys(tree);
    const object = typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
    const has = object ? Object.keys(value) : [];
    if (!object || keys.length !== has.length || keys.some((key) => !(key in value))) {
      throw bad2(where, `an object with ${keys.join(", ") || "nothing"}`, value);
    }
    for (const key of keys) {
      const path = /^[A-Za-z_$][\w$]*$/.test(key) ? `${where}.${key}` : `${where}[${JSON.stringify(key)}]`;
      flatten(tree[key], value[key], path, leaves);
    }
  }
}
function unflatten(tree, leaves) {
  if (typeof tree === "number") return leaves[tree];
  if (tree === null) return null;
  if (Array.isArray(tree)) return tree.map((branch) => unflatten(branch, leaves));
  return Object.fromEntries(Object.entries(tree).map(([key, branch]) => [key, unflatten(branch, leaves)]));
}
function read(tree) {
  if (tree instanceof DeviceArray) return tree.read();
  if (typeof tree !== "object" || tree === null || ArrayBuffer.isView(tree)) return tree;
  if (Array.isArray(tree)) return tree.map(read);
  return Object.fromEntries(Object.entries(tree).map(([key, branch]) => [key, read(branch)]));
}
async function bytesOf(url) {
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) {
    throw new WeftRuntimeError(`${url} could not be fetched (${response.status}); serve all files of the export beside its module`);
  }
  return new Uint8Array(await response.arrayBuffer());
}
var shared;
async function compiled(signature, bytes) {
  const module = await WebAssembly.compile(bytes);
  const section = (name) => new Uint8Array(WebAssembly.Module.customSections(module, name)[0] ?? new ArrayBuffer(0));
  const text = new TextDecoder().decode(section("weft.metadata"));
  const metadata = text ? JSON.parse(text) : void 0;
  if (metadata?.id !== signature.id) {
    throw new WeftRuntimeError(
      `the .wasm file of ${signature.name} is not of the same export as its module; copy all files that weft.export.web wrote, and reload without the cache`
    );
  }
  return [module, checkMetadata(metadata), section("weft.constants")];
}
async function load(signature, files, options = {}) {
  const device = options.device ?? await (shared ??= WasmDevice.create());
  const fetch_ = options.fetch ?? bytesOf;
  if (!device.features.includes("simd128")) {
    throw new WeftRuntimeError(`${signature.name} needs an engine whose WebAssembly has vectors (simd128); all current browsers do`);
  }
  const [code, data] = await Promise.all([
    fetch_(files.relaxed && device.features.includes("relaxed-simd") ? files.relaxed : files.wasm),
    files.data ? fetch_(files.data) : new Uint8Array()
  ]);
  const total = signature.constants.reduce((sum, bytes) => sum + bytes, 0);
  if (data.length !== total) {
    throw new WeftRuntimeError(`the .bin file of ${signature.name} has ${data.length} bytes, not ${total}; copy all files of one export`);
  }
  const [module, metadata, own] = await compiled(signature, code);
  const program = device.memory.buffer instanceof ArrayBuffer ? device.place(metadata, module, own) : device.place(metadata, code, own);
  let at = 0;
  const constants = signature.constants.map((bytes) => {
    const ptr = device.alloc(bytes);
    device.write(ptr, data.subarray(at, at += bytes));
    return ptr;
  });
  return callable(device, signature, program, constants);
}
function callable(device, signature, program, constants) {
  const { name, args, result } = signature;
  const inputs = signature.inputs.map(layout);
  const outputs = signature.outputs.map(layout);
  const donated = new Set(signature.donated);
  const entry = device.entry(program, ...signature.donated.map((index) => index + constants.length));
  const results = device.results(program);
  function flat(values) {
    if (values.length !== args.length) {
      const names = args.map((arg) => arg.name).join(", ");
      throw new TypeError(`${name} takes ${many(args.length, "argument")} (${names}); got ${values.length}`);
    }
    const leaves = [];
    args.forEach((arg, i) => flatten(arg.tree, values[i], `${name}: ${arg.name}`, leaves));
    return leaves.map(([value, where], i) => {
      const spec = inputs[i];
      if (!(value instanceof DeviceArray)) return [checked(value, spec, where), where];
      if (value.device !== device) throw new WeftRuntimeError(`${where} is on another device; read it, and put it on this one`);
      if (described(value) !== described(spec)) throw bad2(where, wanted(spec), value);
      value.address(where);
      return [value, where];
    });
  }
  function placed(array) {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    const ptr = device.alloc(bytes.length);
    device.write(ptr, bytes);
    return ptr;
  }
  function run(values) {
    const leaves = flat(values);
    const temporary = [];
    const kept = [];
    try {
      const ptrs = leaves.map(([value, where], i) => {
        if (value instanceof DeviceArray) return value.address(where);
        const ptr = placed(value);
        temporary.push(ptr);
        if (!donated.has(i)) kept.push(ptr);
        return ptr;
      });
      entry(...constants, ...ptrs);
    } catch (error) {
      temporary.forEach((ptr) => device.free(ptr));
      throw error;
    }
    kept.forEach((ptr) => device.free(ptr));
    for (const index of donated) if (leaves[index][0] instanceof DeviceArray) leaves[index][0].consume();
    return Array.from(results);
  }
  const call = (...values) => {
    const ptrs = run(values);
    const leaves = ptrs.map((ptr, i) => fetched(device, ptr, outputs[i]));
    ptrs.forEach((ptr) => device.free(ptr));
    return unflatten(result, leaves);
  };
  const onDevice = (...values) => unflatten(
    result,
    run(values).map((ptr, i) => new DeviceArray(device, ptr, outputs[i]))
  );
  const put = (...values) => {
    const leaves = flat(values).map(
      ([value], i) => value instanceof DeviceArray ? value : new DeviceArray(device, placed(value), inputs[i])
    );
    return args.map((arg) => unflatten(arg.tree, leaves));
  };
  const unload = () => {
    device.unload(program);
    constants.forEach((ptr) => device.free(ptr));
  };
  return Object.defineProperty(Object.assign(call, { onDevice, put, read, unload, signature }), "name", { value: name });
}
var Device = {
  create: ({ threads = 1 } = {}) => WasmDevice.create({ threads: Math.min(threads, threadsHere()) })
};
export {
  Device,
  WeftProgramError,
  WeftRuntimeError,
  load
};
