/** Figures of `weft.plot` in the real page: from Python through its worker to the chart. */
import { expect } from "../fixtures/site.js";
import { test } from "../fixtures/weft.js";

test("figures of all kinds are shown once, the last value too", async ({ playground, page }) => {
  await playground.open();
  const text = await playground.runToEnd(
    [
      "import weft.numpy as jnp",
      "from weft import plot",
      "a = jnp.linspace(-2, 2, 20)",
      "z = a[:, None] ** 2 + a**2",
      "plot.line(a, {'up': a**3, 'down': -a**3}, title='cubes').band(a, a**3 - 1, a**3 + 1, label='up')",
      "plot.figure(title='grid', columns=2)",
      "plot.panel(title='picture').image(jnp.stack([z, z, z], -1) / 8)",
      "plot.panel(title='levels').contour(a, a, z, filled=True).quiver(a[::4], a[::4], z[::4, ::4], z[::4, ::4])",
      "plot.panel(title='counts').histogram(z)",
      "plot.panel(title='cells').heatmap(z[:4, :4], annotate=True)",
      "plot.figure(title='bars').bar({'x': 1.0, 'y': jnp.float32(2)})",
    ].join("\n"),
  );
  expect(text).toBe("");
  await expect(page.locator(".weft-figure")).toHaveCount(3);
  await expect(page.locator(".figure-panel .figure-name")).toHaveText([
    "cubes",
    "picture",
    "levels",
    "counts",
    "cells",
    "",
  ]);
  await expect(page.locator(".figure-plot canvas")).toHaveCount(6);
  await expect(page.locator(".figure-legend button")).toHaveText(["up", "down"]);
  await expect(page.locator(".figure-failure:visible")).toHaveCount(0);
  await expect(page.getByRole("application", { name: /bars: 2, from 1 to 2/ })).toBeVisible();
});

test("a curve grows while the program runs, and is whole at its end", async ({ playground, page }) => {
  await playground.open();
  await playground.run(
    [
      "import time",
      "from weft import plot",
      "for step in range(200):",
      "    plot.curve('loss', step, {'train': 1 / (step + 1), 'test': 2 / (step + 1)}, yscale='log')",
      "    if step == 100: print('half'); input()",
      "for step in range(200, 5000):",
      "    plot.curve('loss', step, {'train': 1 / (step + 1), 'test': 2 / (step + 1)})",
    ].join("\n"),
  );
  await expect(playground.output).toContainText("half");
  await expect(page.getByRole("application", { name: /"train": (100|101) points/ })).toBeVisible();
  await page.locator(".ask input, form.ask input").first().press("Enter");
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await expect(page.getByRole("application", { name: /"train": 5000 points, .*"test": 5000 points/ })).toBeVisible();
  await expect(page.locator(".weft-figure")).toHaveCount(1);
});

test("a curve fed without end keeps the page awake, and Stop ends it", async ({ playground, page }) => {
  await playground.open();
  const source = "from weft import plot\nstep = 0\nwhile True:\n    plot.curve('loss', step, step % 7)\n    step += 1";
  await playground.run(source);
  await expect(page.getByRole("application", { name: /\d{4,} points/ })).toBeVisible();
  const frames = await page.evaluate(async () => {
    const began = performance.now();
    let count = 0;
    for (; performance.now() < began + 1000; count++) await new Promise(requestAnimationFrame);
    return count;
  });
  expect(frames).toBeGreaterThan(3); // the page still draws
  await page.locator("#stop").click();
  await expect(page.locator("#state")).toHaveText("Stopped");
  await expect(page.getByRole("application", { name: /\d{4,} points/ })).toBeVisible();
  expect(await playground.runToEnd("1 + 1")).toBe("2\n");
});

test("what can't be drawn is an error at the line", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd("from weft import plot\nplot.scatter([1, 2], [1])", "Failed");
  await expect(page.locator(".failure")).toContainText("plot.scatter: x has 2 numbers and y has 1 numbers");
  await expect(page.locator(".cm-error-line")).toHaveText("plot.scatter([1, 2], [1])");
});

test("the four functions of weft_page draw into figures by their labels", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd(
    [
      "from weft_page import curve, image, line, scatter",
      "for i in range(50): curve('accuracy', i, i / 50)",
      "line([0, 1, 2], [3, 1, 2], label='wave: fit')",
      "scatter([0.5, 1, 2.5], [3, float('nan'), 2], label='wave: data')",
      "image([[0, 1], [2, 3], [4, 5]], label='matrix')",
    ].join("\n"),
  );
  await expect(page.locator(".weft-figure > figcaption b")).toHaveText(["accuracy", "wave", "matrix"]);
  await expect(page.locator(".figure-legend button")).toHaveText(["fit", "data"]);
});
