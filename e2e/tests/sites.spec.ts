/** The example sites of the packages: built packages in `node_modules`, plain HTML, no bundler. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect, test as base } from "@playwright/test";
import { python, root } from "../fixtures/weft.js";
import { close, serve } from "../../tools/web/serve.mjs";

const folder = path.join(root, "build/e2e/sites");

/** Copies an example, and puts the built package where npm would. */
function place(name: string, workspace: string, sources: string): void {
  execFileSync("npm", ["run", "--silent", "build", "-w", workspace], { cwd: root, stdio: "inherit" });
  const target = path.join(folder, name);
  fs.rmSync(target, { recursive: true, force: true });
  fs.cpSync(path.join(root, "examples/sites", name), target, { recursive: true });
  fs.cpSync(path.join(root, sources, "dist"), path.join(target, "node_modules", workspace, "dist"), {
    recursive: true,
  });
}

const test = base.extend<object, { sites: string }>({
  sites: [
    async ({}, use) => {
      place("cell", "@weft/cell", "cell");
      fs.cpSync(path.join(root, "build/site"), path.join(folder, "cell/weft"), { recursive: true });
      place("runtime", "@weft/runtime", "wasm/runtime");
      execFileSync(python, [path.join(folder, "runtime/export.py")], { stdio: "inherit" });
      const { server, url } = await serve(folder, { isolated: false });
      await use(url);
      await close(server);
    },
    { scope: "worker", timeout: 180_000 },
  ],
});

test("the cells of the example compute, draw and say what is wrong", async ({ page, sites }) => {
  await page.goto(`${sites}cell/`);
  await page.locator("#figure .run").click();
  await expect(page.locator("weft-cell").first().locator(".output")).toContainText("0.3366");
  await expect(page.locator("#figure .figure-legend button")).toHaveText(["f", "its slope"]);
  await expect(page.locator("#figure canvas").first()).toBeVisible();
  await page.locator("#error .run").click();
  await expect(page.locator("#error .failure")).toContainText("contracting dimensions differ");
  await expect(page.locator("#error .cm-error-line")).toHaveText("a @ b");
});

test("the exported program of the example draws what NumPy would", async ({ page, sites }) => {
  await page.goto(`${sites}runtime/`);
  await expect(page.locator("#time")).toContainText("ms for a picture");
  await page.locator("#real").fill("0.285");
  await page.locator("#imaginary").fill("0.01");
  // How long points near the middle, and far from it, stay: computed here in doubles, one point at a time.
  const counts = await page.evaluate(() => {
    const { data } = document.querySelector("canvas")!.getContext("2d")!.getImageData(0, 0, 320, 320);
    return [160 * 320 + 160, 160 * 320 + 100, 100 * 320 + 200, 0].map((at) => data[4 * at]!);
  });
  const expected = [
    [160, 160],
    [160, 100],
    [100, 200],
    [0, 0],
  ].map(([row, column]) => {
    let [x, y, count] = [(3.2 * column!) / 319 - 1.6, (3.2 * row!) / 319 - 1.6, 0];
    for (let step = 0; step < 60 && x * x + y * y < 4; step++, count++)
      [x, y] = [x * x - y * y + 0.285, 2 * x * y + 0.01];
    return Math.floor(255 * (count / 60) ** 0.7);
  });
  for (const [k, value] of counts.entries()) expect(Math.abs(value - expected[k]!)).toBeLessThanOrEqual(4);
  expect(new Set(expected).size).toBeGreaterThan(1);
});
