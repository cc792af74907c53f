/** The file of an exported program (`Exported.serialize()` in Python): what a client must know of it. */
import type { ArraySpec, Tree } from "../../../src/weft_wasm/page/weft.js";
import { WeftRuntimeError } from "../errors.js";
import { sha256 } from "../sha256.js";
import { Reader } from "./bytes.js";

const MAGIC = "weftexp\0";
const VERSION = 1;
const SYMBOLIC = 2;
const DEPTH = 100;
const PROGRAM = "weft\0";
const CALLBACKS = ["debug_report", "remote_callback"]; // operations that call functions of a client in Python

export interface ExportedFile {
  readonly name: string;
  readonly args: readonly { readonly name: string; readonly tree: Tree }[];
  readonly result: Tree;
  readonly inputs: readonly ArraySpec[];
  readonly outputs: readonly ArraySpec[];
  /** The arrays that lead the program's arguments. */
  readonly constants: readonly (ArraySpec & { readonly data: Uint8Array })[];
  /** The program as hosts take it. */
  readonly program: Uint8Array;
}

/** Reads a file. Nothing of it is trusted; the host checks the program itself. */
export function parseExported(bytes: Uint8Array): ExportedFile {
  const r = new Reader(bytes);
  if (r.left < MAGIC.length || new TextDecoder().decode(r.bytes(MAGIC.length)) !== MAGIC)
    r.fail("these are not the bytes of an exported program", 0);
  const version = r.byte();
  if (version !== VERSION) r.fail(`the file has format ${version}, and this runtime reads ${VERSION}`);
  const digest = r.bytes(32);
  const found = sha256(bytes.subarray(r.at));
  if (digest.some((byte, i) => byte !== found[i])) r.fail("the file is damaged or incomplete; export it again");
  const name = r.string();
  r.unsigned(); // the calling convention of its function in Python
  const flags = r.byte();
  r.list(() => r.string()); // platforms
  r.list(() => r.string()); // checks that are left out
  if (flags & SYMBOLIC)
    throw new WeftRuntimeError(`${name} has symbolic sizes; export it once for each size, with numbers`);
  const args = new Leaves(r).tree(0);
  const result = new Leaves(r).tree(0);
  const inputs = r.list(() => aval(r, name));
  const outputs = r.list(() => aval(r, name));
  r.list(() => r.unsigned()); // the arguments that its function keeps
  const constants = r.list(() => ({ dtype: r.string(), shape: r.list(() => r.unsigned(), 64), data: r.bytes() }));
  const program = r.bytes();
  if (stringsOf(program).some((text) => CALLBACKS.includes(text)))
    throw new WeftRuntimeError(
      `${name} prints or calls Python functions while it runs, which only a client in Python has; ` +
        "export it without debug.print and callbacks",
    );
  // a derivative may follow
  const [positional, keywords] = args as [readonly Tree[], Record<string, Tree>];
  const named = positional.map((tree, i) => ({ name: `argument ${i}`, tree }));
  if (Object.keys(keywords).length) named.push({ name: "keywords", tree: keywords });
  return { name, args: named, result, inputs, outputs, constants, program };
}

/** The texts that a program holds, among them the names of its operations. The host checks the rest of it. */
function stringsOf(program: Uint8Array): readonly string[] {
  if (new TextDecoder().decode(program.subarray(0, PROGRAM.length)) !== PROGRAM) return [];
  const r = new Reader(program);
  r.at = PROGRAM.length + 2; // version and flags
  return r.list(() => r.string());
}

function aval(r: Reader, name: string): ArraySpec {
  const dtype = r.string();
  r.bool(); // whether its type is weak
  const shape = r.list(() => {
    const start = r.at;
    const size = r.unsigned();
    return size % 2 ? r.fail(`${name} has a size that is no number`, start) : size / 2;
  }, 64);
  return { dtype, shape };
}

/** Reads a structure, whose leaves are numbered in order. */
class Leaves {
  private count = 0;

  constructor(private readonly r: Reader) {}

  tree(depth: number): Tree {
    const { r } = this;
    if (depth > DEPTH) r.fail(`a structure is nested more than ${DEPTH} deep`);
    const start = r.at;
    switch (r.byte()) {
      case 0:
        return this.count++;
      case 1:
        return null;
      case 2: // a tuple
      case 3: // a list
        return r.list(() => this.tree(depth + 1));
      case 4: {
        const keys = r.list(() => r.string());
        if (keys.includes("__proto__")) r.fail("a dict has a key that JavaScript objects can't have", start);
        return Object.fromEntries(keys.map((key) => [key, this.tree(depth + 1)]));
      }
      case 5: // a class of the exporter, whose children are in order
        r.string();
        r.bytes();
        return r.list(() => this.tree(depth + 1));
      default:
        return r.fail("there is no such structure", start);
    }
  }
}
