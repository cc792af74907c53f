// What two threads are worth in a page: the same programs in a page with one thread and in one with two, in turn.
//
//   node bench/browser/threads.mjs [--site build/site] [--only attention,…] [--rounds 3] [--calls 15]
//
// Prints the least time of a call with each, their ratio, and the load average. The machine should have two idle cores:
// what else runs takes one of them.
import fs from "node:fs";
import os from "node:os";
import { parseArgs } from "node:util";
import { runAtOnce, visitToEnd, withSite } from "../../tools/web/visit.mjs";

const { values: options } = parseArgs({
  options: {
    site: { type: "string", default: "build/site" },
    only: {
      type: "string",
      default: "matmul_512,matmul_2048,mlp_forward,mlp_train,conv_56,conv_28,attention,chain_1m,chain_16m,softmax,fft",
    },
    rounds: { type: "string", default: "3" },
    calls: { type: "string", default: "15" },
  },
});
const workloads = fs.readFileSync(new URL("peers/workloads.py", import.meta.url), "utf8");

const program = `
import json, time, types
import weft, weft.numpy as jnp

workloads = types.ModuleType("workloads")
exec(compile(${JSON.stringify(workloads)}, "workloads.py", "exec"), workloads.__dict__)
LAYERS = [(784, 512), (512,), (512, 512), (512,), (512, 10), (10,)]
SHAPES = {"matmul_256": [(256, 256)] * 2, "matmul_512": [(512, 512)] * 2,
          "matmul_1024": [(1024, 1024)] * 2, "matmul_2048": [(2048, 2048)] * 2,
          "mlp_forward": [*LAYERS, (128, 784)], "mlp_train": [*LAYERS, (128, 784), (128, 10)],
          "conv_56": [(1, 56, 56, 64), (3, 3, 64, 64)], "conv_28": [(32, 28, 28, 32), (3, 3, 32, 64)],
          "attention": [(8, 512, 64)] * 3, "chain_1m": [(1 << 20,)], "chain_16m": [(1 << 24,)],
          "softmax": [(4096, 1024)], "fft": [(1 << 18,)] * 2}
device, end = weft.devices()[0], time.time() + 5
while "threads=1" not in ASKED and device.threads == 1 and time.time() < end:
    pass
best = {}
for name in ${JSON.stringify(options.only)}.split(","):
    arrays = [weft.random.normal(weft.random.key(k), shape) for k, shape in enumerate(SHAPES[name])]
    workloads.prepare(name, arrays)
    best[name] = min(workloads.measure(name, 1) for _ in range(${Number(options.calls)}))
    workloads.forget(name)
    del arrays
print(json.dumps({"threads": device.threads, "best": best}))
`;

const load = () =>
  os
    .loadavg()
    .map((x) => x.toFixed(2))
    .join(" ");
const before = load();
/** @type {[Record<string, number>, Record<string, number>]} */
const [one, two] = [{}, {}];
for (let round = 0; round < Number(options.rounds); round++) {
  for (const [threads, best] of /** @type {[number, Record<string, number>][]} */ ([
    [1, one],
    [2, two],
  ])) {
    await withSite(options.site, async ({ context, url }) => {
      await runAtOnce(context, program.replace("ASKED", JSON.stringify(`threads=${threads}`)));
      const { text } = await visitToEnd(context, `${url}?threads=${threads}`, 120_000);
      const found = JSON.parse(text.trim().split("\n").at(-1) ?? "");
      if (found.threads !== threads) throw new Error(`the page has ${found.threads} threads, not ${threads}`);
      for (const [name, ms] of Object.entries(/** @type {Record<string, number>} */ (found.best)))
        best[name] = Math.min(ms, best[name] ?? Infinity);
    });
  }
}
console.log("| | one thread, ms | two, ms | times |\n|---|---:|---:|---:|");
for (const [name, alone] of Object.entries(one)) {
  const shared = two[name] ?? NaN;
  console.log(`| ${name} | ${alone.toFixed(2)} | ${shared.toFixed(2)} | ${(alone / shared).toFixed(2)} |`);
}
console.log(`Load average ${before} before, ${load()} after; ${os.cpus().length} cores.`);
