/** The real site, with the real language: `make web` builds it. */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { close, serve } from "../../tools/web/serve.mjs";
import { expect, Playground, test as base } from "../fixtures/site.js";

const folder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../build/site");

const test = base.extend<object, { realSite: string }>({
  realSite: [
    async ({}, use) => {
      const { server, url } = await serve(folder);
      await use(url);
      await close(server);
    },
    { scope: "worker" },
  ],
  playground: async ({ page, realSite }, use) => use(new Playground(page, realSite)),
});

test("the first result, from this server alone", async ({ playground, requests, realSite }) => {
  await playground.open();
  expect(await playground.runToEnd("import weft\nweft.numpy.arange(3) + 1")).toBe("Array([1, 2, 3], dtype=int32)\n");
  expect(requests.filter((url) => !url.startsWith(realSite))).toEqual([]);
});

test("float, print and tolist simply work", async ({ playground }) => {
  await playground.open();
  const text = await playground.runToEnd(
    "import weft.numpy as jnp\nx = jnp.arange(4.0)\nprint(float(x.sum()), x.tolist())\nprint(x * 2)\nprint(x.devices())",
  );
  expect(text).toContain("6.0 [0.0, 1.0, 2.0, 3.0]\n[0. 2. 4. 6.]\n");
  expect(text.toLowerCase()).toContain("wasm");
});

test("a shape error names both shapes and marks the user's line", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd("import weft.numpy as jnp\nx = jnp.ones(3)\ny = x + jnp.ones(4)\n", "Failed");
  await expect(page.locator(".failure")).toContainText("(3,)");
  await expect(page.locator(".failure")).toContainText("(4,)");
  await expect(page.locator(".cm-error-line")).toHaveText("y = x + jnp.ones(4)");
});

test("every example runs to its end", async ({ playground, page }) => {
  test.setTimeout(240_000);
  await playground.open();
  const names = await page.locator("#examples option:not([hidden])").allTextContents();
  expect(names).toHaveLength(5);
  for (const name of names) {
    await page.locator("#examples").selectOption(name);
    await page.locator("#run").click();
    await expect(page.locator("#state")).toHaveText(/^(Done on Wasm|Failed)$/, { timeout: 120_000 });
    expect(await page.locator(".failure").allTextContents(), name).toEqual([]);
    await expect(page.locator("figure").first()).toBeVisible();
  }
});
