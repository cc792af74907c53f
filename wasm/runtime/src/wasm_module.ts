/**
 * The imports and exports of a WebAssembly module, read from its bytes before the engine sees them (wasm_module.py has
 * the same rules). The engine checks the code of the functions.
 */

const HEAD = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
const SECTION = { custom: 0, types: 1, imports: 2, functions: 3, globals: 6, exports: 7, code: 10 } as const;
const KNOWN: readonly number[] = Object.values(SECTION);
const NAMES: Record<number, string> = {
  4: "tables",
  5: "memories",
  8: "a start",
  9: "elements",
  11: "data",
  12: "a count of data",
  13: "tags",
};
const ABI = "weft.abi";
const MOST_FUNCTIONS = 1 << 20;
const I32 = 0x7f;
const I64 = 0x7e;
const THREADS = [1, I32, 1, 0x41, 1, 0x0b]; // the only global: the number of threads
const SHARED = 2; // the bit of a memory that threads share
const PAGES: Record<number, number> = { 1: 1 << 16, 5: 1 << 18 };
const text = (name: string): number[] => [name.length, ...Array.from(name, (c) => c.charCodeAt(0))];
const MEMORY_IMPORT = [...text("weft"), ...text("memory"), 2];

/** Bytes as text, to be compared; they may be of a Buffer of Node, whose toString is another. */
const key = (bytes: Iterable<number>): string => Array.from(bytes).join();
const signature = (params: number[], results: number[]): string =>
  key([0x60, params.length, ...params, results.length, ...results]);

/** The functions that hosts have, by the type of addresses. */
const host = (pointer: number): Record<string, string> => ({
  call: signature([I32, pointer], [I32]),
  share: signature([I32, pointer, I32, I32], []),
});

/** Bytes that are not a module of the ABI. */
export class ModuleError extends Error {}

export interface Parts {
  /** The byte of the memory's flags. */
  memory: number;
  /** Whether addresses have 64 bits. */
  wide: boolean;
  /** Of functions. */
  imports: string[];
  /** How many are exported. */
  tasks: number;
  /** The contents of the section of that name: the compiler's description of the module's arguments and results. */
  abi: Uint8Array | null;
}

/** A part of the module, read from its beginning. */
class Reader {
  constructor(
    private readonly data: Uint8Array,
    public at: number,
    readonly end: number,
  ) {}

  byte(): number {
    if (this.at >= this.end) throw new ModuleError(`it breaks off at byte ${this.at}`);
    return this.data[this.at++]!;
  }

  /** A number below 2^32. */
  unsigned(): number {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 28; scale *= 128) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) {
        if (value >= 2 ** 32) break;
        return value;
      }
    }
    throw new ModuleError(`the number before byte ${this.at} is too large`);
  }

  take(count: number): Uint8Array {
    if (count > this.end - this.at) {
      throw new ModuleError(`it breaks off at byte ${this.end}, ${count} bytes are wanted at ${this.at}`);
    }
    this.at += count;
    return this.data.subarray(this.at - count, this.at);
  }

  /** The bytes read since a position, as text. */
  since(start: number): string {
    return key(this.data.subarray(start, this.at));
  }

  name(): string {
    return Array.from(this.take(this.unsigned()), (byte) => String.fromCharCode(byte)).join("");
  }

  done(): void {
    if (this.at !== this.end) throw new ModuleError(`${this.end - this.at} bytes are left at byte ${this.at}`);
  }
}

const shown = (name: string): string => JSON.stringify(name.slice(0, 40));

/** The imports and exports of a module. Throws ModuleError for a module that no compiler of this ABI writes. */
export function parts(code: Uint8Array): Parts {
  if (HEAD.some((byte, i) => code[i] !== byte)) throw new ModuleError("it does not begin as a module does");
  const found: Parts = { memory: -1, wide: false, imports: [], tasks: 0, abi: null };
  const sections = split(code, found);
  const types = signatures(sections.get(SECTION.types));
  const functions = imports(sections.get(SECTION.imports), types, found);
  const own = sections.get(SECTION.functions);
  if (own) {
    const count = own.unsigned();
    if (count > MOST_FUNCTIONS) throw new ModuleError(`it has ${count} functions`);
    for (let k = 0; k < count; k++) functions.push(own.unsigned());
    own.done();
  }
  const globals = sections.get(SECTION.globals);
  if (globals && key(globals.take(globals.end - globals.at)) !== key(THREADS)) {
    throw new ModuleError("it has globals other than the number of threads");
  }
  exports(
    sections.get(SECTION.exports),
    functions.map((k) => types[k] ?? ""),
    globals !== undefined,
    found,
  );
  return found;
}

function split(code: Uint8Array, parts: Parts): Map<number, Reader> {
  const whole = new Reader(code, HEAD.length, code.length);
  const found = new Map<number, Reader>();
  while (whole.at < whole.end) {
    const number = whole.byte();
    const size = whole.unsigned();
    const start = whole.at;
    whole.take(size);
    if (!KNOWN.includes(number))
      throw new ModuleError(`it has ${NAMES[number] ?? `a section ${number}`}, which no program has`);
    if (number === SECTION.custom) {
      const custom = new Reader(code, start, start + size);
      if (custom.name() !== ABI) continue;
      if (parts.abi) throw new ModuleError(`it has a section ${ABI} twice`);
      parts.abi = custom.take(custom.end - custom.at);
      continue;
    }
    if (found.has(number)) throw new ModuleError(`it has section ${number} twice`);
    found.set(number, new Reader(code, start, start + size));
  }
  return found;
}

/** The types of functions, as text. */
function signatures(section: Reader | undefined): string[] {
  if (!section) return [];
  const found: string[] = [];
  for (let count = section.unsigned(); count > 0; count--) {
    const start = section.at;
    if (section.byte() !== 0x60) throw new ModuleError(`the type at byte ${start} is not that of a function`);
    section.take(section.unsigned());
    section.take(section.unsigned());
    found.push(section.since(start));
  }
  section.done();
  return found;
}

/** Reads the memory and the functions that are imported; the numbers of these functions' types. */
function imports(section: Reader | undefined, types: readonly string[], found: Parts): number[] {
  if (!section) throw new ModuleError("it imports no memory");
  const count = section.unsigned();
  const first = section.take(Math.min(MEMORY_IMPORT.length, section.end - section.at));
  if (count < 1 || key(first) !== key(MEMORY_IMPORT))
    throw new ModuleError("its first import is not the memory of weft");
  found.memory = section.at;
  const kind = section.byte() & ~SHARED;
  const least = section.unsigned();
  const most = section.unsigned();
  if (least > 1 || most !== PAGES[kind])
    throw new ModuleError(`its memory is of kind ${kind} with ${least} to ${most} pages`);
  found.wide = kind === 5;
  const offered = host(found.wide ? I64 : I32);
  const used: number[] = [];
  for (let k = 1; k < count; k++) {
    const module = section.name();
    const name = section.name();
    const sort = section.byte();
    const number = section.unsigned();
    if (module !== "weft" || !Object.hasOwn(offered, name) || sort !== 0 || found.imports.includes(name)) {
      throw new ModuleError(`it imports ${shown(module)} ${shown(name)}, which no host has`);
    }
    if (types[number] !== offered[name]) throw new ModuleError(`it imports ${name} as a function of another type`);
    found.imports.push(name);
    used.push(number);
  }
  section.done();
  return used;
}

function exports(section: Reader | undefined, functions: readonly string[], threads: boolean, found: Parts): void {
  const pointer = found.wide ? I64 : I32;
  const main = signature([pointer], [I32]);
  const task = signature([pointer, I32, I32, I32], []);
  const exported = new Map<string, [kind: number, number: number]>();
  for (let count = section?.unsigned() ?? 0; count > 0; count--) {
    const name = section!.name();
    const kind = section!.byte();
    const number = section!.unsigned();
    if (exported.has(name)) throw new ModuleError(`it exports ${shown(name)} twice`);
    exported.set(name, [kind, number]);
  }
  section?.done();
  for (const [name, [kind, number]] of exported) {
    if (name === "threads") {
      if (kind !== 3 || number !== 0 || !threads) throw new ModuleError("it exports threads, which is not its global");
    } else if (kind !== 0 || functions[number] !== (name === "main" ? main : task)) {
      throw new ModuleError(`it exports ${shown(name)}, which is not a function of the type that hosts call`);
    } else if (name !== "main") found.tasks++;
  }
  const missing = Array.from({ length: found.tasks }, (_, k) => `task${k}`).filter((name) => !exported.has(name));
  if (!exported.has("main") || missing.length) {
    const names = [...exported.keys()].sort().join(", ").slice(0, 80);
    throw new ModuleError(`it exports ${names || "nothing"}, not main and tasks by their numbers`);
  }
  if (found.tasks && !(exported.has("threads") && found.imports.includes("share"))) {
    throw new ModuleError("it has tasks, and does not import share and export threads");
  }
}
