// The digits program in Chromium on Wasm: trace and compile time of its training step, also where an earlier visit has
// compiled it, and steps per second.
//
//   node bench/browser/digits.mjs [--site build/site] [--runs 3] [--steps 2000]
//
// Every run is a new visit to the page; medians are printed. The program itself is examples/digits/digits.py.
import { parseArgs } from "node:util";
import { digitsProgram, runAtOnce, visitToEnd, withSite } from "../../tools/web/visit.mjs";

/** @param {number} steps */
const programOf = (steps) =>
  digitsProgram(`
import json, time
import weft, weft.numpy as jnp
from weft import random

clock = time.perf_counter
weft.config.update("jax_enable_compilation_cache", False)
images, labels = digits.load()
train_set = images[:1500], labels[:1500]
params = digits.init(random.key(0))
zeros = weft.tree.map(jnp.zeros_like, params)
state, key = (params, zeros, zeros, jnp.int32(0)), random.PRNGKey(1)
times = [clock()]
traced = digits.step.trace(state, key, *train_set)
times.append(clock())
traced.lower().compile()
times.append(clock())
state, value = digits.step(state, key, *train_set)
value.block_until_ready()
times.append(clock())
for _ in range(${steps}):
    state, value = digits.step(state, key, *train_set)
value.block_until_ready()
times.append(clock())
weft.config.update("jax_enable_compilation_cache", True)
lowered = weft.jit(digits.step.__wrapped__).lower(state, key, *train_set)
times.append(clock())
lowered.compile()
times.append(clock())
trace, compiled, first, steps, _, found = (b - a for a, b in zip(times, times[1:]))
print(json.dumps({"trace": trace, "compile": compiled, "first": first, "found": found,
                  "rate": ${steps} / steps}))
`);

/** @typedef {Record<"trace" | "compile" | "first" | "found" | "rate", number>} Figures */

/** @param {number[]} values */
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

/**
 * Medians: seconds for tracing and compiling the step, its first call, and its compilation at a later visit, of which
 * there is always one; steps in a second.
 * @param {string} site
 * @param {number} runs
 * @param {number} steps
 */
export async function digits(site, runs, steps) {
  /** @type {Figures[]} */
  const results = [];
  await withSite(site, async ({ context, url }) => {
    await runAtOnce(context, programOf(steps));
    for (let i = 0; i < Math.max(runs, 2); i++) {
      const { page, text } = await visitToEnd(context, url);
      results.push(JSON.parse(text.trim().split("\n").at(-1) ?? ""));
      await page.close();
    }
  });
  /** @type {(name: keyof Figures) => number} */
  const of = (name) => median(results.map((result) => result[name]));
  const again = results.slice(1).map(({ found }) => found); // the first visit compiles
  return { trace: of("trace"), compile: of("compile"), first: of("first"), rate: of("rate"), found: median(again) };
}

if (import.meta.filename === process.argv[1]) {
  const { values: options } = parseArgs({
    options: {
      site: { type: "string", default: "build/site" },
      runs: { type: "string", default: "3" },
      steps: { type: "string", default: "2000" },
    },
  });
  const found = await digits(options.site, Number(options.runs), Number(options.steps));
  const [trace, compile] = [found.trace, found.compile].map((seconds) => (1e3 * seconds).toFixed(0));
  console.log(`trace ${trace} ms   compile ${compile} ms   first call ${(1e3 * found.first).toFixed(1)} ms`);
  console.log(`compile, at a later visit ${(1e3 * found.found).toFixed(1)} ms`);
  console.log(`${found.rate.toFixed(0)} steps/s`);
}
