/** The inspector of programs on WebGPU, on Chromium's software adapter. */
import { expect } from "../fixtures/site.js";
import { test } from "../fixtures/weft.js";

test("each pane of a program on WebGPU", async ({ playground, page }) => {
  test.setTimeout(120_000);
  await playground.open();
  await page.getByRole("radio", { name: "WebGPU" }).check();
  const source = [
    "import jax, jax.numpy as jnp",
    "f = jax.jit(lambda x: jnp.exp(x) / jnp.exp(x).sum())",
    "x = jnp.arange(6.0)",
    "print(f(x).sum())",
  ];
  await playground.runToEnd(source.join("\n"), "Done on WebGPU");
  await page.getByRole("button", { name: "Inspect" }).click();
  const drawer = page.locator("#inspector");
  await drawer.getByRole("option", { name: "<lambda>" }).first().click();
  await expect(drawer.getByRole("tabpanel")).toContainText(/Backend\s*webgpu/);
  await expect(drawer.getByRole("tabpanel")).toContainText("The tab Kernels has the GPU's.");
  const holds: [name: string, text: string | RegExp][] = [
    ["Jaxpr", "reduce_sum"],
    ["Groups", "group 0"],
    ["IR", "program <lambda>"],
    ["WGSL", "@compute"],
    ["StableHLO", "StableHLO is the form that XLA compiles"],
    ["Memory", /: f32\[\d*\], \d+ bytes at \d+, used from step \d+ to \d+/],
  ];
  const tabs = await drawer.getByRole("tab").allTextContents();
  expect(tabs).toEqual(["Overview", ...holds.map(([name]) => name), "Kernels"]);
  for (const [name, text] of holds) {
    await drawer.getByRole("tab", { name, exact: true }).click();
    await expect(drawer.getByRole("tabpanel"), name).toContainText(text);
  }
  await drawer.getByRole("tab", { name: "Kernels" }).click();
  await drawer.getByRole("button", { name: "Time kernels" }).click();
  await expect(drawer.getByRole("table", { name: "Time of each kernel" })).toContainText("%");
  await expect(drawer.getByRole("tabpanel")).toContainText("Its arguments were those of the last timed call.");
  await drawer.getByText("Devices", { exact: true }).click();
  const facts = drawer.getByRole("table", { name: "The device webgpu" });
  await expect(facts).toContainText(/Adapter\s*\w+/);
  await expect(facts).toContainText(/Memory in use\s*[1-9][\d,]* bytes/);
  await expect(facts).toContainText(/Arrays alive\s*[1-9]\d* of [\d,]+ bytes/);
  await expect(facts).toContainText(/maxStorageBufferBindingSize\s*[\d,]+/);
});
