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

test("memories have addresses of 64 bits where the engine can", async ({ page, runtime }) => {
  await page.goto(runtime);
  const got = await page.evaluate(async (url) => {
    const { WasmDevice } = (await import(url)) as typeof import("../fixtures/runtime_page.js");
    const device = await WasmDevice.create({ memory64: true });
    const ptr = device.alloc(2 ** 27);
    device.write(ptr, Uint8Array.of(1, 2, 3));
    return {
      maximum: device.memory.maximum,
      bytes: Array.from(device.view(ptr, 3)),
      wide: device.features.includes("memory64"),
    };
  }, `${runtime}runtime.js`);
  expect(got).toEqual({ maximum: 2 ** 18, bytes: [1, 2, 3], wide: true });
});

test("ProgramCache keeps what was used last, within its limit", async ({ page, runtime }) => {
  await page.goto(runtime);
  const got = await page.evaluate(async (module) => {
    const { ProgramCache } = await import(module);
    const open = (limit = 100) => ProgramCache.open(limit, "cache-test");
    const bytes = (size: number, value: number) => new Uint8Array(size).fill(value);
    const settled = () => new Promise((resolve) => setTimeout(resolve, 100));
    const keys = (cache: any) => ["a", "b", "c", "d"].filter((key) => cache.get(key));
    const first = await open();
    const own = bytes(40, 1);
    first.put("a", own);
    own.fill(9); // the cache has a copy
    await settled();
    first.put("b", bytes(40, 2));
    await settled();
    const a = first.get("a")[0]; // from now on b is what was not used for longest
    await settled();
    first.put("c", bytes(40, 3)); // more than there is room for now: the next visit makes some
    first.put("d", bytes(200, 4)); // more than there will ever be
    await settled();
    const now = [first.get("c") === undefined, first.get("d") === undefined];
    const second = await open();
    const kept = keys(second);
    second.delete("a");
    second.get("e"); // which it never had: nothing is written
    await settled();
    const names: any = await new Promise((resolve) => {
      indexedDB.open("cache-test").onsuccess = ({ target }: any) =>
        (target.result.transaction("used").objectStore("used").getAllKeys().onsuccess = (found: any) => (
          target.result.close(),
          resolve(found.target.result)
        ));
    });
    const third = keys(await open());
    const without = await ProgramCache.open(100, {
      toString: () => {
        throw new Error("refused");
      },
    });
    return { a, now, kept, names, third, without };
  }, `${runtime}runtime.js`);
  expect(got).toEqual({ a: 1, now: [true, true], kept: ["a", "c"], names: ["c"], third: ["c"], without: null });
});
