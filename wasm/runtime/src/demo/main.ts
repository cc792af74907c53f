/**
 * The page that weft.export.web writes beside a program: fields for its inputs, its results, the time of a call, code to
 * use it, and the folder as one file. Bundled as weft_wasm/page/weft-page.js.
 */
import { zipSync } from "fflate";
import type { Backend, Files, Leaf, LoadOptions, Signature } from "../../../src/weft_wasm/page/weft.js";
import { download, make } from "./dom.js";
import { field, type Field } from "./inputs.js";
import { result } from "./outputs.js";
import { fill, inputsOf, leafOf, leavesOf, outputsOf, typeOf, type PageData, type Slot } from "./tree.js";

/** A program; what it gives is a promise if it was exported for WebGPU. */
interface Loaded {
  (...args: unknown[]): unknown;
  readonly backend: Backend;
  readonly reason: string;
}

/** A module that weft.export.web writes. */
interface Exported {
  signature: Signature;
  files: Files;
  load(options?: LoadOptions): Promise<Loaded>;
}

const NAMES: Record<Backend, string> = { webgpu: "WebGPU", wasm: "WebAssembly" };

/** Programs that take less run again as soon as an input changes. */
const LIVE_MS = 60;

const byId = (id: string): HTMLElement => document.getElementById(id)!;

function milliseconds(ms: number): string {
  return ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${ms.toFixed(ms < 10 ? 2 : 0)} ms`;
}

function useTheme(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  byId("theme").addEventListener("click", () => {
    const now = document.documentElement.style.colorScheme || (dark.matches ? "dark" : "light");
    document.documentElement.style.colorScheme = now === "dark" ? "light" : "dark";
  });
}

class Demo {
  private readonly inputs: Slot[];
  private readonly outputs: Slot[];
  private readonly fields: Field[];
  private readonly run = byId("run") as HTMLButtonElement;
  private readonly status = byId("status");
  private readonly results = byId("results");
  private lastMs = Infinity;
  private busy = false;
  private again = false;

  constructor(
    private readonly exported: Exported,
    private readonly program: Loaded,
    data: PageData,
  ) {
    const { signature } = exported;
    this.inputs = inputsOf(signature, data);
    this.outputs = outputsOf(signature, data);
    this.fields = this.inputs.map((slot) => field(slot, () => this.changed()));
    byId("inputs").replaceChildren(...this.inputs.map((slot, k) => this.framed(slot, this.fields[k]!)));
    this.run.addEventListener("click", () => void this.compute());
    this.run.disabled = false;
  }

  /** Runs the program on what the fields hold. */
  async compute(): Promise<void> {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    try {
      const leaves = this.fields.map(({ value }, k) => leafOf(this.inputs[k]!, value()));
      const { args, result: tree } = this.exported.signature;
      const values = args.map((arg) => fill(arg.tree, leaves));
      const started = performance.now();
      const got = await this.program(...values);
      this.lastMs = performance.now() - started;
      this.show(leavesOf(tree, got));
      this.say(`${milliseconds(this.lastMs)} on ${NAMES[this.program.backend]}`);
      this.explain();
    } catch (error) {
      this.say(error instanceof Error ? error.message : String(error), true);
    } finally {
      this.busy = false;
    }
    if (!this.again) return;
    this.again = false;
    await this.compute();
  }

  /** Why another backend than the first choice runs it. */
  private explain(): void {
    const { backend, reason } = this.program;
    const expected = backend === "webgpu" || !this.exported.signature.webgpu;
    byId("backend").textContent = expected ? "" : `Not on WebGPU: ${reason}.`;
    byId("status").title = reason;
  }

  private changed(): void {
    if (this.lastMs < LIVE_MS) void this.compute();
  }

  private show(leaves: Leaf[]): void {
    this.results.replaceChildren(...this.outputs.map((slot, k) => result(slot, leaves[k]!)));
  }

  private say(text: string, failed = false): void {
    this.status.textContent = text;
    this.status.classList.toggle("failed", failed);
  }

  private framed(slot: Slot, { element }: Field): HTMLElement {
    const type = make("code", { className: "type", textContent: typeOf(slot.spec) });
    const head = make("header", {}, make("h2", { textContent: slot.path }), type);
    const about = slot.about ? [make("p", { className: "about", textContent: slot.about })] : [];
    return make("section", { className: "input" }, head, ...about, element);
  }
}

/** Ten lines that use the program in another page. */
function usage({ signature }: Exported): string {
  const { name, args, inputs } = signature;
  const value = (tree: unknown): string => {
    if (typeof tree === "number") {
      const { dtype, shape } = inputs[tree]!;
      const length = shape.reduce((a, b) => a * b, dtype.startsWith("complex") ? 2 : 1);
      if (!shape.length && !dtype.startsWith("complex"))
        return dtype === "bool" ? "true" : /int64/.test(dtype) ? "0n" : "0";
      const known: Record<string, string> = { bool: "Uint8", int64: "BigInt64", uint64: "BigUint64" };
      const plain = dtype
        .replace("uint", "Uint")
        .replace("int", "Int")
        .replace("UInt", "Uint")
        .replace("float", "Float");
      const complex: Record<string, string> = { complex64: "Float32", complex128: "Float64" };
      return `new ${known[dtype] ?? complex[dtype] ?? plain}Array(${length})`;
    }
    if (tree === null) return "null";
    if (Array.isArray(tree)) return `[${tree.map(value).join(", ")}]`;
    const entries = Object.entries(tree as object).map(([key, branch]) => `${JSON.stringify(key)}: ${value(branch)}`);
    return `{ ${entries.join(", ")} }`;
  };
  const lines = args.map(({ name: argument, tree }) => `  const ${argument} = ${value(tree)};`);
  const wait = signature.webgpu ? "await " : "";
  return [
    '<script type="module">',
    `  import { load } from "./${name}.js";`,
    `  const ${name} = await load();`,
    ...lines,
    `  console.log(${wait}${name}(${args.map((argument) => argument.name).join(", ")}));`,
    "</script>",
  ].join("\n");
}

function useCode(exported: Exported): void {
  const text = usage(exported);
  byId("code").textContent = text;
  const copy = byId("copy");
  copy.addEventListener("click", () => {
    void navigator.clipboard?.writeText(text).then(() => {
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 1600);
    });
  });
}

/** All files of the program as one: what this page shows, somebody else can serve. */
async function folder({ signature, files }: Exported): Promise<Blob> {
  const { name } = signature;
  const own = [".js", ".d.ts", ".html"].map((ending) => name + ending);
  const runtime = signature.webgpu ? ["weft-gpu.js", "weft-gpu.d.ts"] : ["weft.js"];
  const shared = [...runtime, "weft.d.ts", "weft-page.js", "package.json"];
  const compiled = new Set(Object.values(files as unknown as Record<string, URL>).map(({ href }) => href));
  const addresses = [...own, ...shared].map((file) => new URL(file, location.href).href);
  const contents = await Promise.all(
    [...addresses, ...compiled].map(async (url): Promise<[string, Uint8Array]> => {
      const response = await fetch(url);
      const file = url.split("/").at(-1)!;
      if (!response.ok) throw new Error(`${file} could not be fetched (${response.status}).`);
      return [`${name}/${file}`, new Uint8Array(await response.arrayBuffer())];
    }),
  );
  return new Blob([zipSync(Object.fromEntries(contents)) as Uint8Array<ArrayBuffer>], { type: "application/zip" });
}

function useZip(exported: Exported): void {
  byId("zip").addEventListener("click", () => {
    folder(exported).then(
      (blob) => download(`${exported.signature.name}.zip`, blob),
      (error: Error) => {
        byId("status").textContent = error.message;
        byId("status").classList.add("failed");
      },
    );
  });
}

async function main(): Promise<void> {
  const data = JSON.parse(byId("program").textContent!) as PageData;
  const exported = (await import(new URL(`./${data.name}.js`, location.href).href)) as Exported;
  useCode(exported);
  useZip(exported);
  const demo = new Demo(exported, await exported.load(), data);
  await demo.compute();
}

useTheme();
main().catch((error: unknown) => {
  document.querySelectorAll(".waiting").forEach((text) => text.remove()); // nothing will come
  byId("status").textContent = error instanceof Error ? error.message : String(error);
  byId("status").classList.add("failed");
});
