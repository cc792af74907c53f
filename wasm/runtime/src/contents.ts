/**
 * The permitted contents of an artifact (docs/artifact.md): its metadata, its module, and that these agree. The
 * compiler has the same rules (contents.py); plan_contents.ts has those for plans.
 */
import {
  ARRAYS,
  brief,
  Checker,
  COUNT,
  ints,
  isObject,
  list,
  NAME,
  OBJECT,
  orNull,
  SIZE,
  words,
  type Fields,
} from "./checks.js";
import { ModuleError, parts } from "./wasm_module.js";

export interface BufferSpec {
  dtype: string;
  shape: number[];
  bytes: number;
}

export interface OutputSpec extends BufferSpec {
  /** The input whose memory this output may take over when that input is donated. */
  alias: number | null;
}

export interface Metadata {
  abi: number;
  kind: "wasm" | "webgpu";
  name: string;
  inputs: BufferSpec[];
  outputs: OutputSpec[];
  scratch: number;
  /** Of kind "wasm": the byte of the code that says how the memory is imported. */
  memory?: number;
  features: string[];
  errors: Record<string, string>;
  /** For each function of the host that the program calls, how many addresses it is given. */
  calls?: number[];
  /** Where threads can share loops: how many there are, and each further thread's bytes of scratch. */
  tasks?: { count: number; private: number };
  /** Of an exported page: which export this is. */
  id?: string;
}

const ABI_VERSION = 1;
const WORD = 4; // bytes, of which buffers of a WebGPU device have a multiple
const MOST_CALLS = 1 << 16;
const MOST_FEATURES = 100;
const MOST_AXES = 64;
const ROOM_32 = 2 ** 32; // bytes of a memory
const ROOM_64 = 2 ** 34;

/** Bytes of an element in a Wasm memory; a part of a complex number is one. */
const BYTES: Record<string, number> = {
  ...of(
    1,
    "bool i8 u8 i2 u2 i4 u4 f4e2m1fn f8e3m4 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0fnu",
  ),
  ...of(2, "i16 u16 f16 bf16"),
  ...of(4, "i32 u32 f32 c64"),
  ...of(8, "i64 u64 f64 c128"),
};

function of(bytes: number, names: string): Record<string, number> {
  return Object.fromEntries(names.split(" ").map((name) => [name, bytes]));
}

const SPEC: Fields = { dtype: words(...Object.keys(BYTES)), shape: list(SIZE, MOST_AXES), bytes: SIZE };
const OUTPUT: Fields = { ...SPEC, alias: orNull(COUNT) };
const METADATA: Fields = {
  abi: { holds: (x) => x === ABI_VERSION, wanted: String(ABI_VERSION) },
  kind: words("wasm", "webgpu"),
  name: NAME,
  inputs: ARRAYS,
  outputs: ARRAYS,
  scratch: SIZE,
  features: list(NAME, MOST_FEATURES),
  errors: OBJECT,
};
const OPTIONAL: Fields = { calls: list(COUNT, MOST_CALLS), id: NAME };
const OPTIONAL_WASM: Fields = { ...OPTIONAL, memory: SIZE, tasks: OBJECT };

/**
 * The module's own description of its arguments and results, so that it is not run with the metadata of another
 * module.
 */
export function abiOf({ inputs, outputs, scratch, tasks, calls }: Metadata, constants: number): object {
  return {
    inputs: inputs.map((spec) => spec.bytes),
    outputs: outputs.map((spec) => [spec.bytes, spec.alias]),
    scratch,
    private: tasks?.private ?? 0,
    calls: calls ?? [],
    constants,
  };
}

/**
 * The metadata of an artifact with `constants` bytes of constants, and its module if it has one, checked. Throws
 * WeftRuntimeError, which names the place, if their contents are not permitted.
 */
export function checkContents(metadata: unknown, code: Uint8Array, constants: number): Metadata {
  return new Contents(metadata, code, constants).check();
}

class Contents extends Checker {
  private readonly metadata: Metadata;

  constructor(
    given: unknown,
    private readonly code: Uint8Array,
    private readonly constants: number,
  ) {
    super(given);
    this.metadata = given as Metadata; // as `check` finds
  }

  check(): Metadata {
    const m = this.metadata;
    if (isObject(m) && m.abi !== ABI_VERSION) {
      this.fail(`abi must be ${ABI_VERSION}, which this runtime has; got ${brief(m.abi)}`);
    }
    const wasm = isObject(m) && m.kind === "wasm";
    this.fields(m, "", METADATA, wasm ? OPTIONAL_WASM : OPTIONAL);
    for (const [key, text] of Object.entries(m.errors)) {
      if (!/^[0-9]{1,10}$/.test(key) || typeof text !== "string") {
        this.fail(`errors must have texts by numbers; got ${brief(key)}: ${brief(text)}`);
      }
    }
    const room = !wasm ? Number.MAX_SAFE_INTEGER : m.features.includes("memory64") ? ROOM_64 : ROOM_32;
    m.inputs.forEach((spec, k) => this.array(spec, `inputs[${k}]`, SPEC, room));
    m.outputs.forEach((spec, k) => this.array(spec, `outputs[${k}]`, OUTPUT, room));
    if (m.scratch > room) this.fail(`scratch must be at most ${room}, the size of a memory; got ${m.scratch}`);
    this.aliases();
    if (wasm) this.module();
    return m;
  }

  private array(spec: BufferSpec, place: string, fields: Fields, room: number): void {
    this.fields(spec, place, fields);
    const { dtype, shape, bytes } = spec;
    if (dtype[0] === "c" && shape.at(-1) !== 2)
      this.fail(`${place}.shape of ${dtype} must end with 2; got [${shape.join(", ")}]`);
    // A size may be 0 where others are beyond all numbers.
    const exact = shape.includes(0) ? 0 : shape.reduce((product, size) => product * size, BYTES[dtype]!);
    const wanted = this.metadata.kind === "wasm" ? exact : Math.ceil(exact / WORD) * WORD;
    if (bytes !== wanted) this.fail(`${place}.bytes must be ${wanted} for ${dtype}[${shape.join(", ")}]; got ${bytes}`);
    if (bytes > room) this.fail(`${place}.bytes must be at most ${room}, the size of a memory; got ${bytes}`);
  }

  private aliases(): void {
    const { inputs, outputs, kind } = this.metadata;
    const taken = new Map<number, number>();
    outputs.forEach(({ alias, bytes }, k) => {
      if (alias === null) return;
      if (kind !== "wasm") this.fail(`outputs[${k}].alias must be null in a plan; got ${alias}`);
      const input = inputs[alias] ?? this.fail(`outputs[${k}].alias names input ${alias}, which does not exist`);
      if (input.bytes !== bytes) {
        this.fail(`outputs[${k}].alias names input ${alias}, which has ${input.bytes} bytes, not ${bytes}`);
      }
      if (taken.has(alias)) this.fail(`outputs[${taken.get(alias)}] and outputs[${k}] both have alias ${alias}`);
      taken.set(alias, k);
    });
  }

  /** The module matches the metadata, and asks nothing else of its host. */
  private module(): void {
    const { tasks = { count: 0, private: 0 }, features, memory, calls } = this.metadata;
    this.fields(tasks, "tasks", { count: COUNT, private: ints(ROOM_64 - 1) });
    let found;
    try {
      found = parts(this.code);
    } catch (error) {
      if (!(error instanceof ModuleError)) throw error;
      this.fail(`its code is not a module of this ABI: ${error.message}`);
    }
    const wide = features.includes("memory64");
    if (found.wide !== wide) {
      this.fail(
        `features says addresses have ${wide ? 64 : 32} bits; those of its module have ${found.wide ? 64 : 32}`,
      );
    }
    if ((memory ?? found.memory) !== found.memory) {
      this.fail(`memory must be ${found.memory}, the byte of the module that says what its memory is; got ${memory}`);
    }
    if (found.imports.includes("call") !== !!calls?.length) {
      this.fail("calls and the module's import of call must both be there, or neither");
    }
    if (tasks.count !== found.tasks) {
      this.fail(`tasks.count must be ${found.tasks}, as many as the module exports; got ${tasks.count}`);
    }
    let said: unknown = null;
    try {
      said = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(found.abi ?? new Uint8Array()));
    } catch {
      // it doesn't say
    }
    if (!isObject(said)) this.fail("its code does not say what it takes and gives, in a section weft.abi");
    for (const [key, value] of Object.entries(abiOf(this.metadata, this.constants))) {
      const [own, theirs] = [value, said[key] ?? null].map((x) => JSON.stringify(x).slice(0, 200));
      if (own !== theirs) this.fail(`${key} must be ${theirs}, as its code says; got ${own}`);
    }
  }
}
