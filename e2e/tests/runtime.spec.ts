import { expect, test } from "../fixtures/site.js";

test("WasmDevice runs programs in the browser, with relaxed SIMD known", async ({ page, runtime }) => {
  await page.goto(runtime);
  const result = await page.evaluate(async (url) => {
    const { WasmDevice, GpuDevice, programs } = (await import(url)) as typeof import("../fixtures/runtime_page.js");
    const device = await WasmDevice.create();
    const floats = (ptr: number) => Array.from(new Float32Array(device.view(ptr, 16).slice().buffer));
    const put = (...values: number[]) => {
      const ptr = device.alloc(16);
      device.write(ptr, new Uint8Array(Float32Array.from(values).buffer));
      return ptr;
    };
    const [a, b] = [put(1, 2, 3, 4), put(5, 6, 7, 8)];
    const [sum, product] = device.run(device.load(programs.sumAndProduct), [a, b]);
    return { sum: floats(sum!), product: floats(product!), features: device.features, gpu: await GpuDevice.create() };
  }, `${runtime}runtime.js`);
  expect(result.sum).toEqual([6, 8, 10, 12]);
  expect(result.product).toEqual([5, 12, 21, 32]);
  expect(result.features).toEqual(["simd128", "relaxed-simd"]);
  expect(result.gpu).toBeNull();
});
