// Time of one call of Wasm artifacts in Chromium, on random float32 inputs, one thread; several files are measured in
// turn.
//
//   node bench/browser/artifact.mjs [--calls 20] [--flops N] FILE.weft …
//
// With --flops (floating-point operations of one call) also GFLOP/s. bench/browser/gemm.py makes the artifacts of
// matrix products.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "@playwright/test";
import { build } from "esbuild";
import { FLAGS } from "../../e2e/launch.mjs";
import { findBrowser } from "../../tools/find-browser.mjs";
import { close, serve } from "../../tools/web/serve.mjs";

const { values: options, positionals: files } = parseArgs({
  allowPositionals: true,
  options: { calls: { type: "string", default: "20" }, flops: { type: "string" } },
});

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "weft-artifacts-"));
fs.writeFileSync(path.join(folder, "index.html"), "<!doctype html><title>artifacts</title>");
const entry = path.resolve(
  import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname),
  "../../wasm/runtime/src/index.ts",
);
await build({
  entryPoints: [entry],
  bundle: true,
  format: "esm",
  outfile: path.join(folder, "runtime.js"),
  logLevel: "warning",
});
files.forEach((file, i) => fs.copyFileSync(file, path.join(folder, `${i}.weft`)));
const { server, url } = await serve(folder);
const browser = await chromium.launch({ executablePath: await findBrowser(), args: FLAGS });

/**
 * Runs in a worker, as in the playground: a page's own thread may not compile large modules. All programs in turn, a
 * few calls each.
 * @param {{ url: string, count: number, calls: number, warm: number, turn: number }} settings
 * @returns {Promise<{ load: number, times: number[] }[]>}
 */
const measure = async ({ url, count, calls, warm, turn }) => {
  const source = `
    import { WasmDevice } from "${url}runtime.js";
    const device = await WasmDevice.create();
    const run = ({ id, pointers, times }) => {
      const before = performance.now();
      const outputs = device.run(id, pointers);
      times.push(performance.now() - before);
      outputs.forEach((ptr) => device.free(ptr));
    };
    const programs = [];
    for (let index = 0; index < ${count}; index++) {
      const bytes = new Uint8Array(await (await fetch("${url}" + index + ".weft")).arrayBuffer());
      const start = performance.now();
      const id = device.load(bytes);
      const load = performance.now() - start;
      const pointers = device.metadata(id).inputs.map((spec) => {
        const ptr = device.alloc(spec.bytes);
        if (spec.dtype === "float32" || spec.dtype === "f32") {
          const values = Float32Array.from({ length: spec.bytes / 4 }, () => Math.random() - 0.5);
          device.write(ptr, new Uint8Array(values.buffer));
        }
        return ptr;
      });
      const program = { id, load, pointers, times: [] };
      for (let k = 0; k < ${warm}; k++) run(program);
      programs.push({ ...program, times: [] });
    }
    await new Promise((resolve) => setTimeout(resolve, 200)); // for the engine to finish compiling
    for (let k = 0; k < ${calls}; k += ${turn})
      for (const program of programs) for (let i = 0; i < ${turn}; i++) run(program);
    postMessage(programs.map(({ load, times }) => ({ load, times })));`;
  const script = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  return new Promise((resolve, reject) => {
    const worker = new Worker(script, { type: "module" });
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
  });
};

try {
  const page = await browser.newPage();
  await page.goto(url);
  const results = await page.evaluate(measure, {
    url,
    count: files.length,
    calls: Number(options.calls),
    warm: 5,
    turn: 5,
  });
  for (const [index, { load, times }] of results.entries()) {
    const file = files[index] ?? "";
    const best = Math.min(...times);
    const rate = options.flops ? `   ${(Number(options.flops) / best / 1e6).toFixed(1)} GFLOP/s` : "";
    const median = [...times].sort((a, b) => a - b)[times.length >> 1] ?? NaN;
    const figures = `best ${best.toFixed(3)} ms, median ${median.toFixed(3)} ms, load ${load.toFixed(1)} ms`;
    console.log(`${path.basename(file)}: ${figures}${rate}`);
  }
} finally {
  await browser.close();
  await close(server);
  fs.rmSync(folder, { recursive: true, force: true });
}
