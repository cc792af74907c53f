// Compile times in Chromium on Wasm, from the jaxpr to the instantiated module: the gradient step of
// bench/transformer_program.py, and single operations.
//
//   node bench/browser/compile.mjs [--site build/site] [--runs 3] [--layers 12]
//
// Nothing comes from the cache of compiled programs. Medians are printed.
import fs from "node:fs";
import { parseArgs } from "node:util";
import { runAtOnce, visitToEnd, withSite } from "../../tools/web/visit.mjs";

// Its host arrays need NumPy, which a page does not have; shapes are enough here.
const source = fs
  .readFileSync(new URL("../transformer_program.py", import.meta.url), "utf8")
  .replace("import numpy as np\n", "");

/** @param {number} layers */
const programOf = (layers) => `
import json, time, types
import weft.as_jax
import jax, jax.numpy as jnp

jax.config.update("jax_enable_compilation_cache", False)
model = types.ModuleType("model")
exec(compile(${JSON.stringify(source)}, "transformer_program.py", "exec"), model.__dict__)
clock = time.perf_counter

def matrix(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)

width = model.WIDTH
layer = {"norm1": matrix(width), "qkv": matrix(width, 3 * width), "out": matrix(width, width), "norm2": matrix(width),
         "up": matrix(width, 4 * width), "down": matrix(4 * width, width)}
params = {"embedding": matrix(model.VOCABULARY, width), "positions": matrix(model.LENGTH, width),
          "layers": [layer] * ${layers}, "norm": matrix(width)}
times = [clock()]
traced = model.step.trace(params, jax.ShapeDtypeStruct((model.BATCH, model.LENGTH), jnp.int32))
times.append(clock())
compiled = traced.lower().compile()
times.append(clock())

x = jnp.arange(4.0).block_until_ready()
operations = {"x + 1": lambda: x + 1, "sin": lambda: jnp.sin(x), "sum": lambda: x.sum(), "x @ x": lambda: x @ x,
              "sort": lambda: jnp.sort(x), "where": lambda: jnp.where(x > 1, x, 0),
              "softmax": lambda: jax.nn.softmax(x), "x[1:3]": lambda: x[1:3]}
first = {}
for name, f in operations.items():
    start = clock()
    f().block_until_ready()
    first[name] = clock() - start
analysis = compiled.cost_analysis()
print(json.dumps({"trace": times[1] - times[0], "compile": times[2] - times[1], "first": first,
                  "bytes": analysis["code bytes"], "kernels": analysis["kernels"]}))
`;

/**
 * @typedef {{ trace: number, compile: number, first: Record<string, number>, bytes: number, kernels: number }} Figures
 */

/** @param {number[]} values */
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
/** @param {number} seconds */
const ms = (seconds) => (1e3 * seconds).toFixed(seconds < 0.1 ? 1 : 0);

/**
 * Medians: seconds for tracing and compiling the step, and for the first call of each operation; its size.
 * @param {string} site
 * @param {number} runs
 * @param {number} layers
 */
export async function compiling(site, runs, layers) {
  /** @type {Figures[]} */
  const results = [];
  await withSite(site, async ({ context, url }) => {
    await runAtOnce(context, programOf(layers));
    for (let i = 0; i < runs; i++) {
      const { page, text } = await visitToEnd(context, url, 120_000);
      results.push(JSON.parse(text.trim().split("\n").at(-1) ?? ""));
      await page.close();
    }
  });
  const [one] = results;
  if (!one) throw new Error("--runs 0: give a number above 0");
  /** @param {(figures: Figures) => number} pick */
  const of = (pick) => median(results.map(pick));
  const first = Object.keys(one.first).map((name) => /** @type {const} */ ([name, of((r) => r.first[name] ?? NaN)]));
  return { ...one, trace: of((r) => r.trace), compile: of((r) => r.compile), first: Object.fromEntries(first) };
}

if (import.meta.filename === process.argv[1]) {
  const { values: options } = parseArgs({
    options: {
      site: { type: "string", default: "build/site" },
      runs: { type: "string", default: "3" },
      layers: { type: "string", default: "12" },
    },
  });
  const found = await compiling(options.site, Number(options.runs), Number(options.layers));
  const times = `trace ${ms(found.trace)} ms   compile ${ms(found.compile)} ms`;
  const size = `${found.kernels} kernels, ${found.bytes} bytes of code`;
  console.log(`transformer step, ${options.layers} layers: ${times}   ${size}`);
  for (const [name, seconds] of Object.entries(found.first)) console.log(`first ${name.padEnd(8)} ${ms(seconds)} ms`);
}
