/** Compiled programs in Chromium's WebGPU, against the values of the loop IR's interpreter. */
import { execFileSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "../../fixtures/site.js";

type RuntimePage = typeof import("../../fixtures/runtime_page.js");

interface Case {
  name: string;
  artifact: string;
  inputs: string[];
  outputs: { dtype: string; expected: string }[];
}

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");

function artifacts(): Case[] {
  const python = process.env["PYTHON"] ?? path.join(root, ".venv/bin/python");
  const sources = ["packages/weft/src", "wasm/src"].map((folder) => path.join(root, folder));
  const env = { ...process.env, PYTHONPATH: sources.join(":") };
  const script = path.join(root, "tests/webgpu/make_artifacts.py");
  return JSON.parse(execFileSync(python, [script], { encoding: "utf8", env })) as Case[];
}

test("artifacts give the interpreter's values, in one submit unless they read back", async ({ page, runtime }) => {
  await page.goto(runtime);
  const results = await page.evaluate(
    async ({ url, cases }) => {
      const { GpuDevice } = (await import(url)) as RuntimePage;
      const device = await GpuDevice.create();
      if (!device) return null;
      let submits = 0;
      const submit = device.device.queue.submit.bind(device.device.queue);
      device.device.queue.submit = (...args) => (submits++, submit(...args));
      const bytes = (text: string) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
      const results: { name: string; submits: number | null; worst: number; allocated: number }[] = [];
      for (const { name, artifact, inputs, outputs } of cases) {
        const before = device.stats().allocated;
        const id = await device.load(bytes(artifact));
        const handles = inputs.map((text) => {
          const data = bytes(text);
          const handle = device.alloc(data.length);
          device.write(handle, data);
          return handle;
        });
        submits = 0;
        const running = device.run(id, handles);
        const count = running instanceof Promise ? null : submits;
        const made = await running;
        let worst = 0;
        for (const [k, { dtype, expected }] of outputs.entries()) {
          const want = bytes(expected);
          const got = await device.read(made[k]!, want.length);
          const view = (b: Uint8Array) => (dtype === "f32" ? new Float32Array(b.buffer) : b);
          const [a, b] = [view(got), view(want)];
          a.forEach((x, i) => {
            const y = b[i]!;
            if (Object.is(x, y) || x === y) return;
            // a NaN on one side makes worst NaN, which is not below any bound
            worst = Math.max(worst, dtype === "f32" ? Math.abs(x - y) / (1 + Math.abs(y)) : 1);
          });
        }
        [...handles, ...made].forEach((handle) => device.free(handle));
        device.unload(id);
        results.push({ name, submits: count, worst, allocated: device.stats().allocated - before });
      }
      return results;
    },
    { url: `${runtime}runtime.js`, cases: artifacts() },
  );
  expect(results?.map(({ name, submits, allocated }) => [name, submits, allocated])).toEqual([
    ["functions", 1, 0],
    ["matmul", 1, 0],
    ["softmax", 1, 0],
    ["sort", 1, 0],
    ["control", null, 0],
  ]);
  for (const { name, worst } of results!) expect(worst, name).toBeLessThan(2e-6);
});
