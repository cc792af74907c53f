/**
 * Programs that weft.export.web writes for WebGPU, on Chromium's software adapter: against values of XLA, and on
 * WebAssembly where there is no adapter, or no longer.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect, test as base, type Page } from "@playwright/test";
import { violations } from "../fixtures/axe.js";
import { python, root } from "../fixtures/weft.js";
import { close, serve } from "../../tools/web/serve.mjs";

const folder = path.join(root, "build/e2e/gpu-exports");
const values = (): any => JSON.parse(fs.readFileSync(path.join(folder, "values.json"), "utf8"));

const test = base.extend<object, { exports: string }>({
  exports: [
    async ({}, use) => {
      execFileSync(python, [path.join(root, "e2e/fixtures/make_gpu_exports.py"), folder], { stdio: "inherit" });
      const { server, url } = await serve(folder, { isolated: false });
      await use(url);
      await close(server);
    },
    { scope: "worker", timeout: 180_000 },
  ],
});

/** Without an adapter, as browsers are on machines whose drivers they don't trust; without WebGPU; or as they are. */
type Browser = "no adapter" | "no WebGPU" | "WebGPU";

/** A page on which `lose()` loses the WebGPU devices that it made, as a driver does that was reset. */
async function open(page: Page, url: string, browser: Browser = "WebGPU"): Promise<void> {
  await page.addInitScript((browser) => {
    const { gpu } = navigator;
    if (browser === "no WebGPU") Object.defineProperty(navigator, "gpu", { value: undefined });
    if (browser === "no adapter") gpu.requestAdapter = async () => null;
    const devices: GPUDevice[] = [];
    const { requestDevice } = GPUAdapter.prototype;
    GPUAdapter.prototype.requestDevice = async function (...args) {
      const device = await requestDevice.apply(this, args);
      devices.push(device);
      return device;
    };
    Object.assign(globalThis, { lose: () => devices.forEach((device) => device.destroy()) });
  }, browser);
  await page.goto(url);
}

function difference(got: number[], want: number[]): number {
  expect(got).toHaveLength(want.length);
  const size = Math.max(...want.map(Math.abs));
  return Math.max(...got.map((x, i) => Math.abs(x - want[i]!))) / size;
}

/** What `predict` gives, on what it runs, and why. */
async function predict(page: Page, url: string, options = {}): Promise<[number[], string, string]> {
  return page.evaluate(
    async ({ module, x, options }) => {
      const { load } = await import(module);
      const predict = await load(options);
      return [Array.from((await predict(Float32Array.from(x))) as Float32Array), predict.backend, predict.reason] as [
        number[],
        string,
        string,
      ];
    },
    { module: `${url}predict.js`, x: values().given.x, options },
  );
}

test("a network answers as on XLA, on WebGPU, from the files that it needs", async ({ page, exports }) => {
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url().replace(exports, "")));
  await open(page, `${exports}blank.html`);
  const [got, backend, reason] = await predict(page, exports);
  expect(difference(got, values().want.predict)).toBeLessThan(1e-5);
  expect(backend).toBe("webgpu");
  expect(reason).toMatch(/^the browser has an adapter for WebGPU/);
  expect(requests.sort()).toEqual(["blank.html", "predict.bin", "predict.js", "predict.webgpu.weft", "weft-gpu.js"]);
});

for (const [browser, why] of [
  ["no adapter", "the browser has WebGPU, but no adapter for it"],
  ["no WebGPU", "there is no WebGPU here (navigator.gpu is missing)"],
] as const) {
  test(`a network answers as on XLA, on WebAssembly with ${browser}`, async ({ page, exports }) => {
    await open(page, `${exports}blank.html`, browser);
    const [got, backend, reason] = await predict(page, exports);
    expect(difference(got, values().want.predict)).toBeLessThan(1e-5);
    expect([backend, reason]).toEqual(["wasm", why]);
    const told = await page.evaluate(
      async ([predict, collatz]) => [
        String(await (await import(predict!)).load({ backend: "webgpu" }).catch(String)),
        String(await (await import(collatz!)).load().catch(String)),
        String(await (await import(collatz!)).load({ backend: "wasm" }).catch(String)),
      ],
      [`${exports}predict.js`, `${exports}collatz.js`],
    );
    expect(told).toEqual([
      `WeftRuntimeError: predict does not run on WebGPU: ${why}; load it with backend: "auto", which falls back to` +
        " WebAssembly",
      `WeftRuntimeError: collatz does not run on WebGPU: ${why}; use a browser and a machine that have it, or export` +
        ' the program with target="auto"',
      'WeftRuntimeError: collatz was exported for WebGPU alone; load it with backend: "auto"',
    ]);
  });
}

test("the caller chooses WebAssembly where both run, and hears of other words", async ({ page, exports }) => {
  await open(page, `${exports}blank.html`);
  const [got, backend, reason] = await predict(page, exports, { backend: "wasm" });
  expect(difference(got, values().want.predict)).toBeLessThan(1e-5);
  expect([backend, reason]).toEqual(["wasm", 'it was loaded with backend: "wasm"']);
  await expect(predict(page, exports, { backend: "cuda" })).rejects.toThrow(
    'TypeError: backend must be "auto", "webgpu" or "wasm"; got cuda',
  );
});

for (const backend of ["webgpu", "wasm"]) {
  test(`training goes on on the device: ${backend}`, async ({ page, exports }) => {
    await open(page, `${exports}blank.html`);
    const { given, want } = values();
    const got = await page.evaluate(
      async ({ module, given, backend }) => {
        const { load } = await import(module);
        const step = await load({ backend });
        const typed = (a: number[]) => Float32Array.from(a);
        const first = { w1: typed(given.params.w1), w2: typed(given.params.w2) };
        let [state, x, y] = await step.put(first, typed(given.x), typed(given.y));
        const old = state.w1;
        const losses: number[] = [];
        for (let i = 0; i < 20; i++) {
          let loss;
          [state, loss] = await step.onDevice(state, x, y);
          losses.push(await loss.read());
          loss.free();
        }
        const again = String(await step(state, x).catch(String));
        const consumed = [String(await old.read().catch(String))];
        // Two calls at once want to consume the same arrays: the second is refused, the first goes on.
        const both = await Promise.allSettled([step.onDevice(state, x, y), step.onDevice(state, x, y)]);
        const { w1 } = await step.read((both[0] as PromiseFulfilledResult<any>).value[0]);
        consumed.push(String((both[1] as PromiseRejectedResult).reason));
        return { losses, again, consumed, length: w1.length, dtype: y.dtype, shape: y.shape };
      },
      { module: `${exports}step.js`, given, backend },
    );
    expect(difference(got.losses, want.losses)).toBeLessThan(1e-5);
    expect(got.again).toBe("TypeError: step takes 3 arguments (params, x, y); got 2");
    expect(got.consumed[0]).toContain("this array was freed, or donated to an earlier call");
    expect(got.consumed[1]).toContain("step: params.w1 was freed, or donated to an earlier call");
    expect([got.length, got.dtype, got.shape]).toEqual([256, "float32", [64, 1]]);
  });
}

for (const backend of ["webgpu", "wasm"]) {
  test(`values of all kinds come back as they do on XLA: ${backend}`, async ({ page, exports }) => {
    await open(page, `${exports}blank.html`);
    const { given, want } = values();
    const got = await page.evaluate(
      async ({ module, key, backend }) => {
        const kinds = await (await import(module)).load({ backend });
        const short = Uint16Array.of(0, 1, 40000).subarray(1); // not at the beginning of its memory
        const args = [Int8Array.of(-128, 1, 127), short, Uint8Array.of(7, 0), Float32Array.of(1, 2, 4, -3)];
        const all = await kinds(...args, Uint32Array.from(key));
        const classes = Object.values(all).map((v) => (v as Float32Array).constructor.name);
        return {
          all: Object.fromEntries(Object.entries(all).map(([k, v]) => [k, Array.from(v as Float32Array)])),
          classes,
        };
      },
      { module: `${exports}kinds.js`, key: given.key, backend },
    );
    for (const [name, numbers] of Object.entries(want.kinds)) expect(got.all[name], name).toEqual(numbers);
    expect(got.classes.sort()).toEqual(
      ["Float32Array", "Float32Array", "Float32Array", "Int8Array", "Uint16Array", "Uint32Array", "Uint8Array"].sort(),
    );
  });
}

test("loops that the data end run on WebGPU, several at once", async ({ page, exports }) => {
  await open(page, `${exports}blank.html`);
  const got = await page.evaluate(async (module) => {
    const collatz = await (await import(module)).load();
    const steps = await Promise.all([1, 6, 27, 97].map((n) => collatz(n)));
    collatz.unload();
    return [steps, collatz.backend, String(await collatz(1).catch(String))];
  }, `${exports}collatz.js`);
  expect(got.slice(0, 2)).toEqual([[0, 8, 111, 118], "webgpu"]);
  expect(got[2]).toContain("is loaded; was it unloaded?");
});

test("calls go on on WebAssembly when the device is lost, also while they run", async ({ page, exports }) => {
  await open(page, `${exports}blank.html`);
  const { given, want } = values();
  const got = await page.evaluate(
    async ({ url, given }) => {
      const [{ load }, other] = [await import(`${url}step.js`), await import(`${url}predict.js`)];
      const step = await load();
      const predict = await other.load();
      const x = Float32Array.from(given.x);
      const [there] = await predict.put(x);
      const before = [step.backend, predict.backend];
      const running = predict(x); // the device is lost under it
      (globalThis as unknown as { lose(): void }).lose();
      const results = [await running, await predict(x)].map((y) => Array.from(y as Float32Array));
      const lost = [String(await predict(there).catch(String)), String(await there.read().catch(String))];
      const [again] = await predict.put(x); // on WebAssembly now
      results.push(Array.from(await (await predict.onDevice(again)).read()));
      const typed = (a: number[]) => Float32Array.from(a);
      const [, loss] = await step({ w1: typed(given.params.w1), w2: typed(given.params.w2) }, x, typed(given.y));
      const after = [step.backend, predict.backend, predict.reason];
      const anew = await other.load(); // on a new device
      return { before, results, lost, loss, after, anew: [anew.backend, Array.from(await anew(x))] };
    },
    { url: exports, given },
  );
  for (const result of [...got.results, got.anew[1] as number[]])
    expect(difference(result, want.predict)).toBeLessThan(1e-5);
  expect(got.loss).toBeCloseTo(want.losses[0], 4);
  expect(got.before).toEqual(["webgpu", "webgpu"]);
  expect(got.after.slice(0, 2)).toEqual(["wasm", "wasm"]);
  expect(got.after[2]).toMatch(/^the WebGPU device was lost \(.+\)$/);
  expect(got.anew[0]).toBe("webgpu");
  expect(got.lost[0]).toMatch(/^WeftRuntimeError: predict: x was lost with its device \(.+\); compute it again$/);
  expect(got.lost[1]).toMatch(/^WeftRuntimeError: this array was lost with its device/);
});

test("a program for WebGPU alone says that the device was lost", async ({ page, exports }) => {
  await open(page, `${exports}blank.html`);
  const [before, told, again] = await page.evaluate(async (module) => {
    const { load } = await import(module);
    const collatz = await load();
    const before = await collatz(6);
    (globalThis as unknown as { lose(): void }).lose();
    return [before, String(await collatz(6).catch(String)), await (await load())(6)];
  }, `${exports}collatz.js`);
  expect([before, again]).toEqual([8, 8]);
  expect(told).toMatch(
    /^WeftRuntimeError: collatz does not run on WebGPU: the WebGPU device was lost \(.+\); load it again$/,
  );
});

test("a device that refuses the program leaves it to WebAssembly", async ({ page, exports }) => {
  await page.addInitScript(() => {
    GPUDevice.prototype.createComputePipelineAsync = async () => {
      throw new Error("too large for this machine");
    };
  });
  await open(page, `${exports}blank.html`);
  const [got, backend, reason] = await predict(page, exports);
  expect(difference(got, values().want.predict)).toBeLessThan(1e-5);
  expect(backend).toBe("wasm");
  expect(reason).toMatch(/^program predict: kernel \w+ was refused: too large for this machine$/);
});

test("a file that is damaged or missing is no reason to run elsewhere", async ({ page, exports }) => {
  await page.route("**/step.webgpu.weft", (route) => route.fulfill({ path: path.join(folder, "kinds.webgpu.weft") }));
  await page.route("**/predict.webgpu.weft", (route) => route.fulfill({ status: 404 }));
  await page.route("**/kinds.bin", (route) => route.fulfill({ body: "other" }));
  await open(page, `${exports}blank.html`);
  const told = await page.evaluate(
    (modules) => Promise.all(modules.map(async (module) => (await import(module)).load().catch(String))),
    ["step", "predict", "kinds"].map((name) => `${exports}${name}.js`),
  );
  expect(told[0]).toContain("the .weft file of step is not of the same export as its module, or was damaged");
  expect(told[1]).toContain("predict.webgpu.weft could not be fetched (404)");
  expect(told[2]).toContain("the .bin file of kinds is not of the same export as its module, or was damaged");
});

test("the page says what runs the program, and why it is not WebGPU", async ({ page, exports }) => {
  await open(page, `${exports}predict.html`);
  const [status, backend] = [page.locator("#status"), page.locator("#backend")];
  await expect(status).toContainText("on WebGPU");
  await expect(backend).toHaveText("");
  await expect(page.locator("#inputs").getByRole("button", { name: "Zeros" })).toBeVisible(); // no picture to draw
  await page.locator("summary").click();
  await expect(page.locator("#code")).toContainText("await predict(");
  await page.evaluate(() => (globalThis as unknown as { lose(): void }).lose());
  await page.getByRole("button", { name: "Run" }).click();
  await expect(status).toContainText("on WebAssembly");
  await expect(backend).toHaveText(/^Not on WebGPU: the WebGPU device was lost \(.+\)\.$/);
  await page.goto(`${exports}wide.html`);
  await expect(status).toContainText("on WebAssembly");
  await expect(backend).toHaveText("Not on WebGPU: x has dtype float64 (f64[2]), which WebGPU devices do not have.");
  const download = page.waitForEvent("download");
  await page.locator("summary").click();
  await page.locator("#zip").click();
  const listed = execFileSync(python, ["-m", "zipfile", "-l", await (await download).path()], { encoding: "utf8" });
  for (const file of ["wide.wasm", "weft-gpu.js", "weft-gpu.d.ts", "weft.d.ts", "weft-page.js"])
    expect(listed).toContain(`wide/${file}`);
});

test("the page of a program for WebGPU alone says what is missing, and waits for nothing", async ({
  page,
  exports,
}) => {
  await open(page, `${exports}collatz.html`, "no adapter");
  await expect(page.locator("#status")).toHaveText(
    "collatz does not run on WebGPU: the browser has WebGPU, but no adapter for it; use a browser and a machine that " +
      'have it, or export the program with target="auto"',
  );
  await expect(page.locator(".waiting")).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Run" })).toBeDisabled();
  await page.setViewportSize({ width: 375, height: 700 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(375);
  expect(await violations(page, "exported program for WebGPU")).toEqual([]);
});

test("the declarations of a program for WebGPU type-check, and refuse what it does", async ({ exports: _ }) => {
  const check = path.join(folder, "check.ts");
  const lines = [
    'import { load } from "./step.js";',
    'const step = await load({ backend: "auto" });',
    "const w = { w1: new Float32Array(256), w2: new Float32Array(32) };",
    "const data = [new Float32Array(512), new Float32Array(64)] as const;",
    "const [params, loss] = await step(w, ...data);",
    "const sum: number = loss + params.w1[0]!;",
    "const [state, last] = await step.onDevice((await step.put(w, ...data))[0], ...data);",
    "const read: Float32Array = (await step.read(state)).w1, value: number = await last.read();",
    'const where: "webgpu" | "wasm" = step.backend, why: string = step.reason;',
    "// @ts-expect-error: a promise",
    "const now: number = step(w, ...data)[1];",
    "// @ts-expect-error: no such backend",
    'await load({ backend: "cuda" });',
    "export { sum, read, value, where, why, now };",
  ];
  fs.writeFileSync(check, lines.join("\n"));
  const flags =
    "--noEmit --strict --noUncheckedIndexedAccess --target es2022 --module esnext --moduleResolution bundler";
  const all = [...flags.split(" "), "--lib", "es2022,dom", "--ignoreConfig", check];
  execFileSync(path.join(root, "node_modules/.bin/tsc"), all, { stdio: "pipe", encoding: "utf8" });
});
