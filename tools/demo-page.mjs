#!/usr/bin/env node
// Trains examples/digits in the built playground, in headless Chromium, on Wasm, and prints one line of JSON:
// {"accuracy", "first": seconds from navigation to the first step, "rate": steps per second, "losses": the first 50}
//
//   node tools/demo-page.mjs [--site build/site] [--steps 700]
import { parseArgs } from "node:util";
import { digitsProgram, runAtOnce, visitToEnd, withSite } from "./web/visit.mjs";

const { values: options } = parseArgs({
  options: { site: { type: "string", default: "build/site" }, steps: { type: "string", default: "700" } },
});
const steps = Number(options.steps);

const program = digitsProgram(`
import json
from js import performance
losses, times = [], []

def watch(i, value, _):
    losses.append(value)
    if i in (0, ${steps - 1}):
        value.block_until_ready()
        times.append(performance.timeOrigin + performance.now())

accuracy = digits.train(${steps}, watch)
seconds = (times[1] - times[0]) / 1000
print(json.dumps({"accuracy": accuracy, "first": times[0] / 1000, "rate": ${steps - 1} / seconds,
                  "losses": [float(x) for x in losses[:50]]}))
`);

try {
  if (!Number.isInteger(steps) || steps < 2)
    throw new Error(`--steps ${options.steps}: give a whole number of at least 2`);
  /** @param {import("./web/visit.mjs").Visit} visit */
  const demonstrate = async ({ context, url }) => {
    await runAtOnce(context, program);
    const { page, text } = await visitToEnd(context, url);
    const result = JSON.parse(text.trim().split("\n").at(-1) ?? "");
    result.first -= (await page.evaluate(() => performance.timeOrigin)) / 1000;
    console.log(JSON.stringify(result));
  };
  await withSite(options.site, demonstrate, { install: false });
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
