// What a visitor waits for, in Chromium, beside what is allowed: the start of the page, compilations, and a cell of one
// line from Run to its output. `make bench-page` runs it.
//
//   node bench/browser/page.mjs [--site build/site] [--runs 5]
//
// Medians are printed. How fast the machine was in the same minutes is told by a loop of Python, in the page and
// natively.
import { execFileSync } from "node:child_process";
import os from "node:os";
import { parseArgs } from "node:util";
import { runAtOnce, visitToEnd, withSite } from "../../tools/web/visit.mjs";
import { boots } from "./boot.mjs";
import { compiling } from "./compile.mjs";
import { digits } from "./digits.mjs";

const { values: options } = parseArgs({
  options: { site: { type: "string", default: "build/site" }, runs: { type: "string", default: "5" } },
});
const runs = Number(options.runs);

const LOOP = `
import time
def loop():
    start, total = time.perf_counter(), 0
    for k in range(1_000_000):
        total += k & 7
    return time.perf_counter() - start
print(1e3 * min(loop() for _ in range(5)))`;
const CELL = "import random\nrandom.random()";

/** @param {number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

/** Milliseconds of a loop of Python in the page. */
const loop = () =>
  withSite(options.site, async ({ context, url }) => {
    await runAtOnce(context, LOOP);
    return Number((await visitToEnd(context, url)).text);
  });

/** Milliseconds from a click on Run to the output of one line. */
const cells = () =>
  withSite(options.site, async ({ context, url }) => {
    await runAtOnce(context, CELL);
    const { page } = await visitToEnd(context, url);
    const times = [];
    for (let i = 0; i < 4 * runs; i++) {
      await page.waitForSelector("#run:not([disabled])");
      times.push(
        await page.evaluate(
          () =>
            new Promise((/** @type {(ms: number) => void} */ resolve) => {
              const area = document.querySelector(".output");
              const run = document.getElementById("run");
              if (!area || !run) throw new Error("the page has no output or no button");
              const old = area.textContent;
              const observer = new MutationObserver(() => {
                const text = area.textContent ?? "";
                if (text === old || !text.includes("0.")) return;
                observer.disconnect();
                resolve(performance.now() - start);
              });
              observer.observe(area, { childList: true, subtree: true, characterData: true });
              const start = performance.now();
              run.click();
            }),
        ),
      );
    }
    return median(times);
  });

const ENDLESS = [
  "print('started')\nwhile True: pass",
  "import weft\nprint('started')\nweft.jit(lambda n: weft.lax.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 7, n))(0)",
];

/** Milliseconds from a click on Stop to "Stopped": the longer of those of a loop in Python and of a compiled one. */
const stops = () =>
  withSite(options.site, async ({ context, url }) => {
    const page = await context.newPage();
    await page.goto(url);
    const medians = [];
    for (const program of ENDLESS) {
      const times = [];
      for (let i = 0; i < runs; i++) {
        await page.waitForSelector("#run:not([disabled])");
        await page.locator(".cm-content").click();
        await page.keyboard.press("ControlOrMeta+a");
        await page.keyboard.insertText(program);
        await page.locator("#run").click();
        await page.locator(".output", { hasText: "started" }).waitFor();
        await page.waitForTimeout(500); // it is compiled, and runs
        times.push(
          await page.evaluate(
            () =>
              new Promise((/** @type {(ms: number) => void} */ resolve) => {
                const state = document.getElementById("state");
                const stop = document.getElementById("stop");
                if (!state || !stop) throw new Error("the page has no state or no button");
                const observer = new MutationObserver(() => {
                  if (state.textContent !== "Stopped") return;
                  observer.disconnect();
                  resolve(performance.now() - start);
                });
                observer.observe(state, { childList: true, subtree: true, characterData: true });
                const start = performance.now();
                stop.click();
              }),
          ),
        );
      }
      medians.push(median(times));
    }
    return Math.max(...medians);
  });

console.log("| | measured | allowed | |\n|---|---:|---:|---|");
/** @type {(name: string, value: number, most: number, unit: string, digits?: number) => void} */
const row = (name, value, most, unit, digits = 0) =>
  console.log(
    `| ${name} | ${value.toFixed(digits)} ${unit} | ${most} ${unit} | ${value <= most ? "met" : "not met"} |`,
  );

const { cold, warm } = await boots(options.site, runs);
row("first visit, transferred", cold.megabytes, 7, "MB", 2);
row("first visit, Python ready", cold.ready, 2500, "ms");
row("later visit, Python ready", warm.ready, 1000, "ms");
row("a line, from Run to its output", await cells(), 30, "ms", 1);
row("an endless loop, from Stop to its end", await stops(), 300, "ms");
const { trace, compile, first, kernels } = await compiling(options.site, runs, 12);
row(`the step of 12 layers (${kernels} kernels), compiled`, 1e3 * compile, 1000, "ms");
row("first eager sin", 1e3 * (first["sin"] ?? NaN), 2, "ms", 1);
const step = await digits(options.site, runs, 500);
row("the digits' step, compiled", 1e3 * step.compile, 80, "ms");
console.log(`
Tracing the 12 layers takes ${(1e3 * trace).toFixed(0)} ms. The digits' step is found compiled at a later visit in \
${(1e3 * step.found).toFixed(0)} ms, and runs ${step.rate.toFixed(0)} times a second.`);
const native = Number(execFileSync(process.env["PYTHON"] ?? ".venv/bin/python", ["-c", LOOP], { encoding: "utf8" }));
const inPage = await loop();
console.log(`A million iterations of Python take ${inPage.toFixed(0)} ms in the page, ${native.toFixed(0)} natively.`);
const load = os.loadavg().map((x) => x.toFixed(2));
console.log(`${os.cpus().length} processors (${os.cpus()[0]?.model}), load average ${load.join(" ")}.`);
