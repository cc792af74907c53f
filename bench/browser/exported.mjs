// What the second module of an export is worth: sizes, and milliseconds of a call with and without relaxed vectors, in
// Chromium.
//
//   node bench/browser/exported.mjs [--exports build/e2e/exports] [--python .venv/bin/python]
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import zlib from "node:zlib";
import { chromium } from "@playwright/test";
import { FLAGS } from "../../e2e/launch.mjs";
import { findBrowser } from "../../tools/find-browser.mjs";
import { close, serve } from "../../tools/web/serve.mjs";

const { values: options } = parseArgs({
  options: {
    exports: { type: "string", default: "build/e2e/exports" },
    python: { type: "string", default: ".venv/bin/python" },
  },
});
const folder = path.resolve(options.exports);
execFileSync(options.python, ["e2e/fixtures/make_exports.py", folder]);
fs.writeFileSync(path.join(folder, "blank.html"), "<!doctype html><title>blank</title>");

/**
 * In the page: the time of a call whose state stays on the device, the least of several runs.
 * @param {{ url: string, plain: boolean }} which
 */
async function measure({ url, plain }) {
  const { load, Device, signature } = await import(url);
  let device = await Device.create();
  if (plain) device = Object.create(device, { features: { value: ["simd128"] } });
  const start = performance.now();
  const program = await load({ device });
  const loading = performance.now() - start;
  /** @type {Record<string, Float32ArrayConstructor | Int32ArrayConstructor | Uint32ArrayConstructor>} */
  const types = { float32: Float32Array, int32: Int32Array, uint32: Uint32Array };
  /** @type {(tree: any) => any} */
  const fill = (tree) => {
    if (typeof tree !== "number")
      return Array.isArray(tree)
        ? tree.map(fill)
        : Object.fromEntries(Object.entries(tree).map(([k, v]) => [k, fill(v)]));
    const { dtype, shape } = signature.inputs[tree];
    const array = types[dtype];
    if (!array) throw new Error(`inputs of dtype ${dtype} are not made here`);
    const length = /** @type {number[]} */ (shape).reduce((a, b) => a * b, 1);
    const values = new array(length);
    for (let i = 0; i < length; i++) values[i] = dtype === "float32" ? 0.1 * Math.sin(i) : i % 8;
    return values;
  };
  let args = program.put(...signature.args.map((/** @type {{ tree: any }} */ { tree }) => fill(tree)));
  const call = () => {
    const result = program.onDevice(...args);
    /** @type {(tree: any) => void} */
    const free = (tree) => (tree.read ? tree.free() : Object.values(tree).forEach(free));
    if (!signature.donated.length) return free(result);
    args = [result[0], ...args.slice(1)];
    free(result[1]);
  };
  for (let i = 0; i < 20; i++) call();
  let best = Infinity;
  for (let run = 0; run < 5; run++) {
    const began = performance.now();
    let calls = 0;
    for (; performance.now() - began < 200; calls++) call();
    best = Math.min(best, (performance.now() - began) / calls);
  }
  return { loading, best };
}

const { server, url } = await serve(folder, { isolated: false });
const browser = await chromium.launch({ executablePath: await findBrowser(), headless: true, args: FLAGS });
/** @param {string} file */
const kB = (file) => {
  const bytes = fs.readFileSync(file);
  return `${(bytes.length / 1e3).toFixed(1)} (${(zlib.gzipSync(bytes).length / 1e3).toFixed(1)} gzip)`;
};
try {
  const page = await browser.newPage();
  console.log(`weft.js: ${kB(path.join(folder, "digits/weft.js"))} kB`);
  for (const name of ["digits/predict", "digits/step", "transformer/forward", "transformer/learn"]) {
    for (const plain of [false, true]) {
      await page.goto(`${url}blank.html`);
      const { loading, best } = await page.evaluate(measure, { url: `${url}${name}.js`, plain });
      const size = kB(path.join(folder, `${name}${plain ? "" : ".relaxed"}.wasm`));
      const times = `loaded in ${loading.toFixed(0)} ms, ${best.toFixed(3)} ms a call`;
      console.log(`${name}, ${plain ? "baseline" : "relaxed"}: ${size} kB, ${times}`);
    }
  }
} finally {
  await browser.close();
  await close(server);
}
