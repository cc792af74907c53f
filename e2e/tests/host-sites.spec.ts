/** The example apps on a host: plain HTML and JavaScript, the built package, no Python in the page. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect, type Page } from "@playwright/test";
import { python, root, test as base, type Host } from "../fixtures/weft.js";
import { close, serve } from "../../tools/web/serve.mjs";

const folder = path.join(root, "build/e2e/host-sites");

const test = base.extend<object, { site: string }>({
  site: [
    async ({}, use) => {
      execFileSync("npm", ["run", "--silent", "build", "-w", "@weft/runtime"], { cwd: root, stdio: "inherit" });
      fs.rmSync(folder, { recursive: true, force: true });
      fs.cpSync(path.join(root, "examples/sites/host"), folder, { recursive: true });
      fs.cpSync(path.join(root, "wasm/runtime/dist"), path.join(folder, "node_modules/@weft/runtime/dist"), {
        recursive: true,
      });
      const env = { ...process.env, DIGITS: path.join(root, "examples/digits/digits.bin") };
      execFileSync(python, [path.join(folder, "export.py")], { stdio: "inherit", env });
      const { server, url } = await serve(folder, { isolated: false });
      await use(url);
      await close(server);
    },
    { scope: "worker", timeout: 180_000 },
  ],
});

async function connected(page: Page, site: string, name: string, host: Host): Promise<void> {
  await page.goto("about:blank"); // else a page that is there already only gets another fragment
  await page.goto(`${site}${name}.html#${new URLSearchParams({ address: host.url, token: host.token }).toString()}`);
  await expect.poll(() => page.url()).not.toContain(host.token);
  await page.getByRole("button", { name: "Connect" }).click();
}

test("a digit is known in the page, and on the host once there is one", async ({ page, site, host }) => {
  await page.goto(`${site}classify.html`);
  const pad = page.locator("#pad");
  const stroke = async (...points: [number, number][]): Promise<void> => {
    const box = (await pad.boundingBox())!;
    const at = ([x, y]: [number, number]): [number, number] => [box.x + box.width * x, box.y + box.height * y];
    await page.mouse.move(...at(points[0]!));
    await page.mouse.down();
    for (const point of points) await page.mouse.move(...at(point), { steps: 6 });
    await page.mouse.up();
  };
  const one: [number, number][] = [
    [0.5, 0.1],
    [0.5, 0.9],
  ];
  await stroke(...one);
  await expect(page.locator("#status")).toHaveText(/^computed by (wasm|webgpu): no device of a host was given$/);
  const best = () =>
    page.locator("meter").evaluateAll((meters) => {
      const values = meters.map((meter) => (meter as HTMLMeterElement).value);
      return values.indexOf(Math.max(...values));
    });
  expect(await best()).toBe(1);
  await connected(page, site, "classify", host);
  await expect(page.locator("#status")).toContainText(/connected|computed/);
  // While one call is under way only the last of the strokes waits, so that a slow machine needs more of them.
  await expect(async () => {
    await stroke(...one);
    await expect(page.locator("#status")).toHaveText(
      /^computed by (host|wasm|webgpu): a call takes [\d.]+ ms on the host and [\d.]+ ms in the page$/,
      { timeout: 2000 },
    );
  }).toPass({ timeout: 60_000 });
  expect(await best()).toBe(1);
});

const steps = async (page: Page): Promise<number> => parseInt((await page.locator("#count").textContent())!);

test("a training shows its loss, goes on after a reload, and learns", async ({ page, site, host }) => {
  await connected(page, site, "train", host);
  await expect(page.locator("#status")).toContainText("connected: cpu");
  await page.getByRole("button", { name: "Train" }).click();
  await expect.poll(() => steps(page), { timeout: 30_000 }).toBeGreaterThan(500);
  await page.reload();
  await expect(page.locator("#status")).toContainText("taken up again");
  const before = await steps(page);
  expect(before).toBeGreaterThan(0);
  await page.getByRole("button", { name: "Train" }).click();
  await expect.poll(() => steps(page), { timeout: 60_000 }).toBeGreaterThan(3000);
  await page.getByRole("button", { name: "Stop" }).click();
  await expect(page.getByRole("button", { name: "Train" })).toBeEnabled();
  const said = (await page.locator("#curve").getAttribute("aria-label"))!;
  expect(Number(/now ([\d.]+)/.exec(said)![1])).toBeLessThan(0.2);
});

test("a text comes letter by letter, and stops when it is told to", async ({ page, site, host }) => {
  await connected(page, site, "write", host);
  await expect(page.locator("#status")).toContainText("connected: cpu");
  await page.locator("#heat").fill("0");
  await page.locator("#start").fill("the wind went on to ");
  await page.getByRole("button", { name: "Write" }).click();
  await expect(page.locator("#text")).toContainText("the wind went on to tell the hill, the hill to tell the tree");
  await page.getByRole("button", { name: "Stop" }).click();
  await expect(page.getByRole("button", { name: "Write" })).toBeEnabled();
  await expect(page.locator("#speed")).toHaveText(/^\d+ letters a second$/);
});

test("a wrong token says so, and the page can be used on", async ({ page, site, host }) => {
  await connected(page, site, "write", { ...host, token: "guess" });
  await expect(page.locator("#status")).toContainText("does not know this token");
  await expect(page.getByRole("button", { name: "Connect" })).toBeEnabled();
});
