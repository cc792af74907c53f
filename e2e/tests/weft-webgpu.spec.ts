/** The real language on WebGPU in Chromium, on its software adapter. */
import { digits, difference, test } from "../fixtures/weft.js";
import { expect } from "../fixtures/site.js";

test("a program gives the same numbers on WebGPU as on Wasm", async ({ playground, page }) => {
  await playground.open();
  const source = [
    "import weft, weft.numpy as jnp",
    "x = jnp.linspace(-1.0, 1.0, 64).reshape(8, 8)",
    "f = weft.jit(weft.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2)))",
    "print([round(v, 5) for v in f(x.T).sum(axis=0).tolist()])",
  ].join("\n");
  const onWasm = await playground.runToEnd(source);
  await page.getByRole("radio", { name: "WebGPU" }).check();
  expect(await playground.runToEnd(source, "Done on WebGPU")).toBe(onWasm);
  const where = "import weft.numpy as jnp\nprint((jnp.ones(3) + 1).devices())";
  expect(await playground.runToEnd(where, "Done on WebGPU")).toBe("{WebGpuDevice(id=0)}\n");
});

test("the digits learn the same on WebGPU as on Wasm", async ({ playground, page }) => {
  test.setTimeout(120_000);
  await playground.open();
  const onWasm = await playground.runToEnd(digits(20));
  await page.getByRole("radio", { name: "WebGPU" }).check();
  await playground.run(digits(20));
  await expect(page.locator("#state")).toHaveText("Done on WebGPU", { timeout: 90_000 });
  expect(difference((await playground.output.textContent())!, onWasm)).toBeLessThan(1e-4);
});

test("programs on WebGPU call Python functions, in loops too, and their errors arrive", async ({
  playground,
  page,
}) => {
  await playground.open();
  await page.getByRole("radio", { name: "WebGPU" }).check();
  const source = [
    "import weft, weft.numpy as jnp",
    "from weft import lax",
    "def body(i, c):",
    "    weft.debug.print('{i} {c}', i=i, c=c)",
    "    return c + weft.pure_callback(lambda v: v * 2, weft.ShapeDtypeStruct((2,), 'float32'), c)",
    "print(weft.jit(lambda x: lax.fori_loop(0, 3, body, x))(jnp.ones(2)))",
    "try:",
    "    weft.jit(lambda x: weft.pure_callback(lambda v: {}[3], weft.ShapeDtypeStruct((), 'float32'), x))(1.0)",
    "except weft.errors.JaxRuntimeError as e:",
    "    print(e)",
  ].join("\n");
  const printed = "0 [1. 1.]\n1 [3. 3.]\n2 [9. 9.]\n[27. 27.]\nKeyError: 3\n";
  expect(await playground.runToEnd(source, "Done on WebGPU")).toBe(printed);
});

test("a program leaves the device with the function that held it", async ({ playground, page }) => {
  await playground.open();
  const source = [
    "import gc, weft, weft.numpy as jnp",
    "def held():",
    "    gc.collect()",
    "    return weft.devices()[0].memory_stats()['allocated']",
    "x = jnp.arange(1000.0)",
    "f = weft.jit(lambda x: jnp.abs(jnp.fft.fft(x)))",
    "g = weft.jit(lambda x: weft.pure_callback(lambda v: v + 1, x, x)[:2] * 3)",
    "print(float(f(x)[0]), g(x))",
    "with_f = held()",
    "del f",
    "weft.clear_caches()",
    "print(held() < with_f, g(x))",
  ].join("\n");
  const printed = "499500.0 [3. 6.]\nTrue [3. 6.]\n";
  expect(await playground.runToEnd(source)).toBe(printed);
  await page.getByRole("radio", { name: "WebGPU" }).check();
  expect(await playground.runToEnd(source, "Done on WebGPU")).toBe(printed);
});

test("what WebGPU lacks is refused with the dtype's name", async ({ playground, page }) => {
  await playground.open();
  await page.getByRole("radio", { name: "WebGPU" }).check();
  const source = "import weft, weft.numpy as jnp\nwith weft.enable_x64(True):\n    x = jnp.arange(3.0)\n    print(x)";
  await playground.runToEnd(source, "Failed");
  await expect(page.locator(".failure")).toContainText("float64");
  expect(await playground.runToEnd("1 + 1", "Done on WebGPU")).toBe("2\n");
});

test("a stop ends a loop whose condition the GPU computes, and the device goes on", async ({ playground, page }) => {
  await playground.open();
  await page.getByRole("radio", { name: "WebGPU" }).check();
  const source = [
    "import weft, weft.numpy as jnp, _weft_page as page",
    "from js import Atomics, setTimeout",
    "from pyodide.ffi import create_once_callable",
    "f = weft.jit(lambda n: weft.lax.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 7, n)).lower(jnp.int32(0)).compile()",
    "n, view = jnp.int32(0), page.device.interruptView()",
    "setTimeout(create_once_callable(lambda: Atomics.store(view, 0, 1)), 300)",
    "try:",
    "    f(n)",
    "except KeyboardInterrupt:",
    "    print('stopped', page.device.interrupted, n + 1)",
  ].join("\n");
  expect(await playground.runToEnd(source, "Done on WebGPU")).toBe("stopped False 1\n");
});

test("a device that is lost says so at the line; what was read is still there, and a new one goes on", async ({
  playground,
  page,
}) => {
  await playground.open();
  await page.getByRole("radio", { name: "WebGPU" }).check();
  const losing = [
    "import asyncio, weft.numpy as jnp, _weft_page",
    "import weft",
    "double = weft.jit(lambda v: 2 * v)",
    "read, x = jnp.arange(3.0), jnp.arange(4.0)",
    "print(double(read), read)",
    "_weft_page.gpu.device.destroy()",
    "await asyncio.sleep(0.3)",
    "print(double(read), jnp.ones(2))",
    "print(x + 1)  # here",
  ];
  await playground.runToEnd(losing.join("\n"), "Failed");
  await expect(page.locator(".failure")).toContainText("f32[4], was lost with its WebGPU device");
  await expect(page.locator(".failure")).toContainText("Compute it again");
  await expect(page.locator(".output").first()).toContainText("[0. 2. 4.] [0. 1. 2.]\n[0. 2. 4.] [1. 1.]");
  await expect(page.locator(".cm-error-line")).toHaveText("print(x + 1)  # here");
  const sum = "import weft.numpy as jnp\nprint(jnp.arange(4.0) + 1)";
  expect(await playground.runToEnd(sum, "Done on WebGPU")).toBe("[1. 2. 3. 4.]\n");
});
