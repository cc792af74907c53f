// What calls across the border between Python and the runtime cost in Chromium, in microseconds.
//
//   node bench/browser/calls.mjs [--site build/site]
import os from "node:os";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { chromium } from "@playwright/test";
import { build } from "esbuild";
import { FLAGS, WEBGPU } from "../../e2e/launch.mjs";
import { findBrowser } from "../../tools/find-browser.mjs";
import { close, serve } from "../../tools/web/serve.mjs";

const { values: options } = parseArgs({ options: { site: { type: "string", default: "build/site" } } });
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "weft-calls-"));
const bundle = path.join(folder, "programs.mjs");
await build({
  entryPoints: ["wasm/runtime/test/programs.ts"],
  bundle: true,
  format: "esm",
  outfile: bundle,
  logLevel: "warning",
});
const programs = await import(pathToFileURL(bundle).href);
/** @param {Uint8Array} bytes */
const literal = (bytes) => `bytes.fromhex("${Buffer.from(bytes).toString("hex")}")`;

const SOURCE = `
import time
from array import array
from pyodide.ffi import to_js, run_sync
import js
import _weft_page as page

device = page.device
def measure(name, f, n=20000):
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(n):
            f()
        best = min(best, time.perf_counter() - start)
    print(f"{name:<52} {best / n * 1e6:8.2f}")

def nothing(): pass
measure("an empty Python function", nothing)
x, y = device.alloc(16), device.alloc(16)
one = device.load(to_js(${literal(programs.addOne)}))
two = device.load(to_js(${literal(programs.sumAndProduct)}))
donating = device.entry(one, 0)
measure("f(x), x donated", lambda: donating(x))
f, free = device.entry(one), device.free
measure("f(x) and free of its output", lambda: free(f(x)))
g, results, out = device.entry(two), device.results(two), array("I", [0, 0])
def both():
    g(x, y)
    results.assign_to(out)
    a, b = out
    free(a); free(b)
measure("f(x, y), two outputs read and freed", both)
data, view = bytearray(64), device.view
z = device.alloc(1 << 20)
measure("write 64 bytes", lambda: view(z, 64).assign(data))
measure("read 64 bytes", lambda: view(z, 64).assign_to(data))
big = bytearray(1 << 20)
measure("write 1 MiB", lambda: view(z, 1 << 20).assign(big), 200)
measure("read 1 MiB", lambda: view(z, 1 << 20).assign_to(big), 200)
artifact = to_js(${literal(programs.addOne)})
measure("load and unload a small program", lambda: device.unload(device.load(artifact)), 500)
measure("run_sync of a resolved promise", lambda: run_sync(js.Promise.resolve(1)), 500)
if page.gpu:
    gpu = page.gpu
    h = gpu.alloc(64)
    measure("WebGPU: read of 64 bytes (software adapter)", lambda: run_sync(gpu.read(h, 64)), 100)
`;

const { server, url } = await serve(path.resolve(options.site));
const browser = await chromium.launch({ executablePath: await findBrowser(), args: [...FLAGS, WEBGPU] });
try {
  const page = await browser.newPage();
  await page.addInitScript((source) => localStorage.setItem("weft:source", source), SOURCE);
  await page.goto(url);
  await page.waitForFunction(() => document.getElementById("state")?.textContent === "Ready");
  await page.locator("#run").click();
  await page.waitForFunction(() => /Done|Failed/.test(document.getElementById("state")?.textContent ?? ""), null, {
    timeout: 120_000,
  });
  console.log(await page.locator(".output").textContent());
} finally {
  await browser.close();
  await close(server);
  fs.rmSync(folder, { recursive: true, force: true });
}
