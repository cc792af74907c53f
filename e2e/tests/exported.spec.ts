/** What weft.export.web writes, in pages without Python: a trained network and a transformer, against values of XLA. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect, test as base, type Page } from "@playwright/test";
import { python, root } from "../fixtures/weft.js";
import { close, serve } from "../../tools/web/serve.mjs";

const folder = path.join(root, "build/e2e/exports");

interface Values {
  given: Record<string, any>;
  want: Record<string, number[]>;
}
const values = (name: string): Values => JSON.parse(fs.readFileSync(path.join(folder, name, "values.json"), "utf8"));

const test = base.extend<object, { exports: string }>({
  exports: [
    async ({}, use) => {
      execFileSync(python, [path.join(root, "e2e/fixtures/make_exports.py"), folder], { stdio: "inherit" });
      for (const name of ["digits", "transformer"])
        fs.writeFileSync(path.join(folder, name, "blank.html"), "<!doctype html><title>blank</title>");
      fs.writeFileSync(path.join(folder, "transformer/worker.js"), WORKER);
      const { server, url } = await serve(folder, { isolated: false });
      await use(url);
      await close(server);
    },
    { scope: "worker", timeout: 180_000 },
  ],
});

const WORKER = `
import { load } from "./forward.js";
const forward = load();
onmessage = async ({ data }) => postMessage((await forward)(data));
`;

function difference(got: number[], want: number[]): number {
  expect(got).toHaveLength(want.length);
  const size = Math.max(...want.map(Math.abs));
  return Math.max(...got.map((x, i) => Math.abs(x - want[i]!))) / size;
}

test("a trained network answers as on XLA, from its folder alone", async ({ page, exports }) => {
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(`${exports}digits/blank.html`);
  const { given, want } = values("digits");
  const got = await page.evaluate(
    async ({ module, images }) => {
      const { load } = await import(module);
      const predict = await load();
      const { logits, digits } = predict(Float32Array.from(images));
      return { logits: Array.from(logits as Float32Array), digits: Array.from(digits as Int32Array) };
    },
    { module: `${exports}digits/predict.js`, images: given["test"] },
  );
  expect(difference(got.logits, want["logits"]!)).toBeLessThan(1e-5);
  const right = got.digits.filter((digit, i) => digit === want["labels"]![i]).length;
  expect(right / got.digits.length).toBeGreaterThanOrEqual(0.97);
  const files = requests.map((url) => url.replace(`${exports}digits/`, "")).filter((name) => !name.includes("favicon"));
  expect(files.sort()).toEqual(["blank.html", "predict.bin", "predict.js", "predict.relaxed.wasm", "weft.js"]);
});

test("training goes on in the page, its state on the device", async ({ page, exports }) => {
  await page.goto(`${exports}digits/blank.html`);
  const { given, want } = values("digits");
  const got = await page.evaluate(
    async ({ module, given }) => {
      const { load, Device } = await import(module);
      const device = await Device.create();
      const step = await load({ device });
      const zeros = (tree: Record<string, number[]>) =>
        Object.fromEntries(Object.entries(tree).map(([k, v]) => [k, new Float32Array(v.length)]));
      const params = Object.fromEntries(
        Object.entries(given["params"] as Record<string, number[]>).map(([k, v]) => [k, Float32Array.from(v)]),
      );
      let [state, key, images, labels] = step.put(
        [params, zeros(given["params"]), zeros(given["params"]), 0],
        Uint32Array.from(given["key"]),
        Float32Array.from(given["images"]),
        Int32Array.from(given["targets"]),
      );
      const losses: number[] = [];
      let loss, used;
      for (let i = 0; i < 50; i++) {
        [state, loss] = step.onDevice(state, key, images, labels);
        losses.push(loss.read());
        loss.free();
        used ??= device.stats().allocated;
      }
      return { losses, count: state[3].read(), grown: device.stats().allocated - used };
    },
    { module: `${exports}digits/step.js`, given },
  );
  expect(difference(got.losses, want["losses"]!)).toBeLessThan(1e-5);
  expect([got.count, got.grown]).toEqual([50, 0]);
});

test("a transformer answers as on XLA, in a worker and without relaxed vectors", async ({ page, exports }) => {
  await page.goto(`${exports}transformer/blank.html`);
  const { given, want } = values("transformer");
  const got = await page.evaluate(
    async ({ folder, tokens }) => {
      const worker = new Worker(`${folder}worker.js`, { type: "module" });
      const answer = new Promise<Float32Array>((resolve, reject) => {
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = (event) => reject(new Error(event.message));
      });
      worker.postMessage(Int32Array.from(tokens));
      const { load, Device } = await import(`${folder}forward.js`);
      const plain = Object.create(await Device.create(), { features: { value: ["simd128"] } });
      const asked: string[] = [];
      const fetched = async (url: URL) => (
        asked.push(url.pathname),
        new Uint8Array(await (await fetch(url)).arrayBuffer())
      );
      const forward = await load({ device: plain, fetch: fetched });
      return {
        worker: Array.from(await answer),
        plain: Array.from(forward(Int32Array.from(tokens)) as Float32Array),
        asked,
      };
    },
    { folder: `${exports}transformer/`, tokens: given["tokens"] },
  );
  expect(difference(got.worker, want["logits"]!)).toBeLessThan(2e-5);
  expect(difference(got.plain, want["logits"]!)).toBeLessThan(2e-5);
  expect(got.asked).toContain("/transformer/forward.wasm");
});

/** The losses of 20 steps of the transformer, on a device of so many threads; and how many it had. */
async function learn(page: Page, url: string, threads: number): Promise<[number[], number]> {
  await page.goto(`${url}transformer/blank.html`);
  return page.evaluate(
    async ({ module, given, threads }) => {
      const { load, Device } = await import(module);
      const device = await Device.create({ threads });
      const learn = await load({ device });
      if (crossOriginIsolated) while (device.threads < threads) await new Promise((resolve) => setTimeout(resolve, 10));
      const had = device.threads;
      const typed = (tree: any): any =>
        typeof (tree[0] ?? 0) === "number" && Array.isArray(tree)
          ? Float32Array.from(tree)
          : Array.isArray(tree)
            ? tree.map(typed)
            : Object.fromEntries(Object.entries(tree).map(([k, v]) => [k, typed(v)]));
      let [params, tokens] = learn.put(typed(given["params"]), Int32Array.from(given["tokens"]));
      const losses: number[] = [];
      for (let i = 0; i < 20; i++) {
        let loss;
        [params, loss] = learn.onDevice(params, tokens);
        losses.push(loss.read());
        if (i === 15) device.close();
      }
      return [losses, had];
    },
    { module: `${url}transformer/learn.js`, given: values("transformer").given, threads },
  );
}

test("a transformer learns as on XLA, with threads where the page is isolated", async ({ page, exports }) => {
  const want = values("transformer").want["losses"]!;
  const [losses, alone] = await learn(page, exports, 2);
  expect(difference(losses, want)).toBeLessThan(2e-5);
  expect(losses.at(-1)! / losses[0]!).toBeLessThan(0.8);
  const { server, url } = await serve(folder, { isolated: true });
  const [shared, both] = await learn(page, url, 2);
  await close(server);
  expect(difference(shared, want)).toBeLessThan(2e-5);
  expect([alone, both]).toEqual([1, 2]);
});

test("bad input is named, and the program goes on", async ({ page, exports }) => {
  await page.goto(`${exports}transformer/blank.html`);
  const got = await page.evaluate(async (module) => {
    const { load } = await import(module);
    const forward = await load();
    const calls = [
      [],
      [new Float32Array(48)],
      [new Int32Array(47)],
      [Array(48).fill(0)],
      [{}],
      [new Int32Array(48), 1],
    ];
    const told = calls.map((args) => {
      try {
        return String(forward(...args).length);
      } catch (error) {
        return String(error);
      }
    });
    // Tokens that the table does not have: gathers are clamped or filled as lax says, never out of the program's
    // memory.
    const wild = forward(Int32Array.from({ length: 48 }, (_, i) => (i % 2 ? -(2 ** 31) : 2 ** 31 - 1)));
    return [...told, String(wild.length), String(forward(new Int32Array(48)).every(Number.isFinite))];
  }, `${exports}transformer/forward.js`);
  const wanted = "TypeError: forward: tokens must be an Int32Array of length 48 for int32[48]; got";
  expect(got).toEqual([
    "TypeError: forward takes 1 argument (tokens); got 0",
    `${wanted} a Float32Array of length 48`,
    `${wanted} an Int32Array of length 47`,
    `${wanted} an array of 48`,
    `${wanted} an object with nothing`,
    "TypeError: forward takes 1 argument (tokens); got 2",
    String(48 * 64),
    "true",
  ]);
});

test("a file that is missing or of another export is named", async ({ page, exports }) => {
  await page.route("**/forward.bin", (route) => route.fulfill({ status: 404 }));
  await page.route("**/learn*.wasm", (route) => route.fulfill({ path: path.join(folder, "transformer/forward.wasm") }));
  await page.goto(`${exports}transformer/blank.html`);
  const told = await page.evaluate(
    (modules) => Promise.all(modules.map(async (module) => (await import(module)).load().catch(String))),
    ["forward", "learn"].map((name) => `${exports}transformer/${name}.js`),
  );
  expect(told[0]).toContain("forward.bin could not be fetched (404); serve all files of the export beside its module");
  expect(told[1]).toContain("the .wasm file of learn is not of the same export as its module");
});

test("the page of a program runs it on what is typed, and says what can't be", async ({ page, exports }) => {
  await page.goto(`${exports}transformer/forward.html`);
  const [status, results, area] = [page.locator("#status"), page.locator("#results"), page.locator("textarea")];
  await expect(status).toContainText("on WebAssembly");
  await expect(results.getByRole("img", { name: "result: a picture of 64 × 48" })).toBeVisible();
  await area.fill("1 2 3");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(status).toHaveText("tokens takes 48 numbers; 3 are given.");
  await area.fill(Array(48).fill("0.5").join(" "));
  await page.getByRole("button", { name: "Run" }).click();
  await expect(status).toHaveText("tokens takes whole numbers; 0.5 is none.");
  await area.fill(values("transformer").given["tokens"].join("\n"));
  await page.getByRole("button", { name: "Run" }).click();
  await expect(status).toContainText("on WebAssembly");
  const [saved] = await Promise.all([page.waitForEvent("download"), results.getByText(".npy").click()]);
  const npy = fs.readFileSync(await saved.path());
  const got = new Float32Array(
    npy.buffer.slice(npy.byteOffset + npy.length - 4 * 48 * 64, npy.byteOffset + npy.length),
  );
  expect(difference([...got], values("transformer").want["logits"]!)).toBeLessThan(1e-5);
  await page.goto(`${exports}digits/step.html`);
  await expect(status).toContainText("on WebAssembly");
  await expect(results.locator(".result h2").first()).toHaveText("result[0][0].b1");
});

test("the page chooses fields by type, as the exporter says, and draws the results", async ({ page, exports }) => {
  await page.goto(`${exports}shown/filter.html`);
  await expect(page.locator("h1")).toHaveText("A <filter> & more");
  await expect(page.locator(".top p")).toHaveText("What it does.");
  const [status, results] = [page.locator("#status"), page.locator("#results")];
  await expect(status).toContainText("on WebAssembly");
  const slider = page.getByRole("slider", { name: "gain" });
  await expect(slider).toHaveAttribute("max", "4");
  await slider.fill("3");
  await expect(results.locator("section", { hasText: "gain3" }).locator(".number")).toHaveText("9");
  await page.getByRole("checkbox", { name: "flip" }).check();
  // A picture of one colour, dropped as a file: its mean, and the picture that comes out.
  const png = await page.evaluate(() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 9, height: 7 });
    const context = canvas.getContext("2d")!;
    context.fillStyle = "rgb(51, 102, 204)";
    context.fillRect(0, 0, 9, 7);
    return canvas.toDataURL("image/png").split(",")[1]!;
  });
  const buffer = Buffer.from(png, "base64");
  await page.locator('input[type="file"]').first().setInputFiles({ name: "blue.png", mimeType: "image/png", buffer });
  await expect(page.getByText("blue.png, 9 × 7")).toBeVisible();
  await expect(results.locator("section", { hasText: "mean" }).locator("td, .bars output").first()).toHaveText("0.2");
  const out = results.locator("canvas").first();
  const pixel = () =>
    out.evaluate((canvas: HTMLCanvasElement) => [...canvas.getContext("2d")!.getImageData(5, 5, 1, 1).data]);
  expect(await pixel()).toEqual([204, 153, 51, 255]); // flipped
  await page.locator("textarea").fill("héllo");
  await expect(results.locator("section", { hasText: "upper" }).locator(".written")).toHaveText("HéLLO");
  // The classes by their scores.
  await expect(results.locator("section", { hasText: "scores" }).locator(".label")).toHaveText([
    "high",
    "middle",
    "low",
  ]);
  await expect(results.locator("section", { hasText: "best" }).locator(".number")).toHaveText("high");
});

test("what is drawn and what is in a NumPy file reach the program; the folder comes as one file", async ({
  page,
  exports,
}) => {
  await page.goto(`${exports}shown/grey.html`);
  const [status, results] = [page.locator("#status"), page.locator("#results")];
  await expect(status).toContainText("on WebAssembly");
  const sum = results.locator("section", { hasText: "ink" }).locator(".number");
  await expect(sum).toHaveText("0");
  const box = (await page.locator(".drawing").boundingBox())!;
  await page.mouse.move(box.x + 60, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 190, box.y + 190, { steps: 6 });
  await page.mouse.up();
  expect(Number(await sum.textContent())).toBeGreaterThan(5);
  await page.getByRole("button", { name: "Clear" }).click();
  await expect(sum).toHaveText("0");
  const file = fs.readFileSync(path.join(folder, "shown/numbers.npy"));
  const input = page.locator('input[type="file"]').last();
  await input.setInputFiles({ name: "numbers.npy", mimeType: "application/octet-stream", buffer: file });
  await expect(results.locator("section", { hasText: "total" }).locator(".number")).toHaveText(
    String((999 * 1000) / 2),
  );
  await input.setInputFiles({ name: "short.json", mimeType: "application/json", buffer: Buffer.from("[1, [2, 3]]") });
  await expect(page.getByText("numbers takes 1000 numbers; 3 are given.")).toBeVisible();

  await page.locator("summary").click();
  await expect(page.locator("#code")).toContainText('import { load } from "./grey.js";');
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#zip").click()]);
  const target = path.join(folder, "unpacked");
  fs.rmSync(target, { recursive: true, force: true });
  execFileSync(python, ["-m", "zipfile", "-e", await download.path(), target]);
  const code = (await page.locator("#code").textContent())!.replace("console.log(", "document.title = JSON.stringify(");
  fs.writeFileSync(path.join(target, "grey/own.html"), `<!doctype html><link rel="icon" href="data:,">${code}`);
  const { server, url } = await serve(target, { isolated: false });
  await page.goto(`${url}grey/grey.html`);
  await expect(status).toContainText("on WebAssembly");
  await page.goto(`${url}grey/own.html`);
  await expect(page).toHaveTitle('{"ink":0,"total":0}');
  await close(server);
});

test("the page is dark where the reader wants it, and fits a narrow window", async ({ page, exports }) => {
  await page.setViewportSize({ width: 375, height: 700 });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(`${exports}shown/filter.html`);
  await expect(page.locator("#status")).toContainText("on WebAssembly");
  const [background, width] = await page.evaluate(() => [
    getComputedStyle(document.body).backgroundColor,
    document.documentElement.scrollWidth,
  ]);
  expect([background, width]).toEqual(["rgb(21, 23, 27)", 375]);
  await page.locator("#theme").click();
  expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe("rgb(246, 244, 238)");
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
});

test("the declarations type-check, and refuse what the program does", async ({ exports: _ }) => {
  const check = path.join(folder, "digits/check.ts");
  const lines = [
    'import { load } from "./step.js";',
    "const step = await load();",
    "const biases = { b1: new Float32Array(128), b2: new Float32Array(10) };",
    "const w = { ...biases, w1: new Float32Array(8192), w2: new Float32Array(1280) };",
    "const data = [new Uint32Array(2), new Float32Array(96000), new Int32Array(1500)] as const;",
    "const [[params, , , t], loss] = step([w, w, w, 0], ...data);",
    "const sum: number = t + loss + params.w1[0]!;",
    "const [state, last] = step.onDevice(step.put([w, w, w, 0], ...data)[0], ...data);",
    "const read: Float32Array = step.read(state)[0].w1, value: number = last.read();",
    "// @ts-expect-error: an array of doubles",
    "step([{ ...w, b1: new Float64Array(128) }, w, w, 0], ...data);",
    "// @ts-expect-error: an argument is missing",
    "step([w, w, w, 0]);",
    "export { sum, read, value };",
  ];
  fs.writeFileSync(check, lines.join("\n"));
  const flags = [
    "--noEmit",
    "--strict",
    "--noUncheckedIndexedAccess",
    "--target",
    "es2022",
    "--module",
    "esnext",
    "--moduleResolution",
    "bundler",
    "--lib",
    "es2022,dom",
  ];
  execFileSync(path.join(root, "node_modules/.bin/tsc"), [...flags, "--ignoreConfig", check], {
    stdio: "pipe",
    encoding: "utf8",
  });
});
