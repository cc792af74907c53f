/** `<weft-cell>` in pages of its own: on the site's origin, and on another. */
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import zlib from "node:zlib";
import type { Locator, Page } from "@playwright/test";
import { cell, pageOf, show } from "../fixtures/cells.js";
import { expect, test } from "../fixtures/site.js";
import { close, serve } from "../../tools/web/serve.mjs";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const told = (page: Page): Promise<any[]> => page.evaluate("told");

async function replace(page: Page, editor: Locator, text: string): Promise<void> {
  await editor.click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

test("the element shows code at once and costs little; Python comes with the first run", async ({
  page,
  site,
  requests,
}) => {
  await show(page, '<weft-cell id="a"><pre>\n    x = 6\n    print(x * 7)\n</pre></weft-cell>', { at: site });
  const { at, run, output } = cell(page, "a");
  await expect(at.locator("code")).toHaveText("x = 6\nprint(x * 7)");
  await page.waitForLoadState("networkidle");
  const names = requests.map((url) => url.replace(site, "")).filter((url) => !url.startsWith("data:"));
  expect(names.filter((name) => name !== "cells.html")).toEqual(["weft-cell.js"]);
  const script = fs.readFileSync(path.join(root, "build/e2e/site/weft-cell.js"));
  expect(zlib.gzipSync(script).length).toBeLessThan(15_000);
  await run.click();
  await expect(output).toHaveText("42\n");
});

test("running a cell runs those before it, in order, and each once", async ({ page, site }) => {
  const cells = ["n = 1", "n = n + 1\nprint('second')", "n * 10", "print(n)"];
  const tags = cells.map((code, k) => `<weft-cell id="c${k}">${code}</weft-cell>`).join("");
  await show(page, `${tags}<weft-cell id="other" session="apart">print("n" in globals())</weft-cell>`, { at: site });
  await cell(page, "c2").run.click();
  await expect(cell(page, "c2").output).toHaveText("20");
  await expect(cell(page, "c1").output).toHaveText("second\n");
  await cell(page, "c3").run.click();
  await expect(cell(page, "c3").output).toHaveText("2\n");
  await cell(page, "other").run.click();
  await expect(cell(page, "other").output).toHaveText("False\n");
  const runs = (await told(page)).filter(({ name }) => name === "weft-run").map(({ id }) => id);
  expect(runs).toEqual(["c0", "c1", "c2", "c3", "other"]);
  const [, , result] = (await told(page)).filter(({ name }) => name === "weft-result");
  expect(result).toMatchObject({ id: "c2", status: "ok", text: "", values: [{ "text/plain": "20" }] });
  expect(result.ms).toBeGreaterThan(0);
});

test("an error marks its line, ends what was to follow, and is told", async ({ page, site }) => {
  const first = '<weft-cell id="a">print("before")\nmissing\nprint("after")</weft-cell>';
  await show(page, `${first}<weft-cell id="b">print("b")</weft-cell>`, { at: site });
  await cell(page, "b").run.click();
  await expect(cell(page, "a").output.locator(".failure")).toContainText("NameError");
  await expect(cell(page, "a").at.locator(".cm-error-line")).toHaveText("missing");
  await expect(cell(page, "b").state).toHaveText("A cell before this one failed");
  expect(await told(page)).toContainEqual({
    name: "weft-error",
    id: "a",
    type: "NameError",
    message: "name 'missing' is not defined",
    line: 2,
  });
  await cell(page, "a").output.getByRole("button", { name: "line 2" }).click();
  await expect(cell(page, "a").editor).toBeFocused();
  await cell(page, "b").run.click();
  await expect(cell(page, "b").output).toHaveText("b\n");
});

test("Stop ends a program and keeps the names of an isolated page", async ({ page, site }) => {
  const loop = '<weft-cell id="b">print("on")\nwhile True: pass</weft-cell>';
  await show(page, `<weft-cell id="a">kept = 5</weft-cell>${loop}<weft-cell id="c">kept</weft-cell>`, { at: site });
  const { run, stop, output, state } = cell(page, "b");
  await expect(stop).toBeHidden();
  await run.click();
  await expect(output).toHaveText("on\n");
  await stop.click();
  await expect(state).toHaveText("Stopped");
  await expect(stop).toBeHidden();
  await replace(page, cell(page, "b").editor, "pass");
  await cell(page, "c").run.click();
  await expect(cell(page, "c").output).toHaveText("5");
  await expect(cell(page, "b").at.locator(".reset")).toBeVisible();
  await page.evaluate(() => (document.querySelector("#a") as any).restart());
  await replace(page, cell(page, "c").editor, "print('kept' in globals())");
  await page.evaluate(() => document.querySelector("#a")!.remove());
  await page.evaluate(() => document.querySelector("#b")!.remove());
  await cell(page, "c").run.click();
  await expect(cell(page, "c").output).toHaveText("False\n");
});

test("a page of another origin runs cells; what needs isolation says so", async ({ page, sharedSite }) => {
  // A server of its own: browsers let no page that a test made up ask loopback.
  const folder = path.join(root, "build/e2e/cells");
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  const cells = [
    `<weft-cell id="a" site="${sharedSite}">import weft.numpy\nweft.numpy.arange(3) + 1</weft-cell>`,
    `<weft-cell id="b" site="${sharedSite}" session="loop">while True: pass</weft-cell>`,
    `<weft-cell id="c" site="${sharedSite}" session="line">input("Name? ")</weft-cell>`,
  ].join("");
  fs.writeFileSync(path.join(folder, "index.html"), pageOf(cells, sharedSite));
  const { server, url } = await serve(folder, { isolated: false });
  await page.goto(url);
  await cell(page, "a").run.click();
  await expect(cell(page, "a").output).toContainText("1, 2, 3");
  await cell(page, "c").run.click();
  await expect(cell(page, "c").output).toContainText("Cross-Origin-Opener-Policy: same-origin");
  await expect(cell(page, "c").output).toContainText("Send the page with them");
  await cell(page, "b").run.click();
  await expect(cell(page, "b").state).toHaveText("Running");
  await cell(page, "b").stop.click();
  await expect(cell(page, "b").output).toContainText("this page is not cross-origin isolated");
  // Python is another one now: what came before runs again.
  await page.evaluate(() => (document.querySelector("#b") as any).remove());
  await cell(page, "a").run.click();
  await expect(cell(page, "a").output).toContainText("1, 2, 3");
  await close(server);
});

test("a site that can't be read is named, with what to do", async ({ page, site, plainSite }) => {
  const body = [
    `<weft-cell id="a" site="${plainSite}">1</weft-cell>`,
    '<weft-cell id="b" site="nowhere/" session="2">1</weft-cell>',
    '<weft-cell id="c" session="3">1</weft-cell>',
  ].join("");
  await page.route(`${site}site.json`, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), cell: { version: 999 } } });
  });
  await show(page, body, { at: site });
  for (const [id, text] of [
    ["a", "the server must send Access-Control-Allow-Origin"],
    ["b", "nowhere/site.json can't be fetched: the server answered 404"],
    ["c", "has version 999 of what this element needs"],
  ] as const) {
    await cell(page, id).run.click();
    await expect(cell(page, id).output).toContainText(text);
  }
  expect((await told(page)).filter(({ name }) => name === "weft-error")).toHaveLength(3);
  await page.unroute(`${site}site.json`);
  await cell(page, "c").run.click();
  await expect(cell(page, "c").output).toHaveText("1");
});

test("attributes: read only, hidden code, height, theme, autorun", async ({ page, site }) => {
  const lines = Array.from({ length: 40 }, (_, k) => `x${k} = ${k}`).join("\n");
  const body = [
    `<weft-cell id="fixed" readonly theme="dark" height="120">${lines}</weft-cell>`,
    '<weft-cell id="hidden" hidden-code>print("hidden")</weft-cell><div style="height: 3000px"></div>',
    '<weft-cell id="auto" autorun session="own">print("by itself")</weft-cell>',
  ].join("");
  await show(page, body, { at: site });
  const fixed = cell(page, "fixed");
  const size = async () => (await fixed.at.locator(".source").boundingBox())!.height;
  expect(await size()).toBe(120);
  expect(await fixed.at.evaluate((element) => getComputedStyle(element).colorScheme)).toBe("dark");
  await fixed.at.locator("pre").click();
  await expect(fixed.editor).toBeFocused();
  await page.keyboard.type("print(1)");
  expect(await fixed.at.evaluate((element: any) => element.code)).toBe(lines);
  expect(await size()).toBe(120);
  const hidden = cell(page, "hidden");
  await expect(hidden.at.locator("pre")).toBeHidden();
  await hidden.at.getByRole("button", { name: "Show code" }).click();
  await expect(hidden.at.locator("pre")).toBeVisible();
  expect((await told(page)).length).toBe(0); // nothing has run: it was out of sight
  await page.locator("#auto").scrollIntoViewIfNeeded();
  await expect(cell(page, "auto").output).toHaveText("by itself\n");
});

test("keys alone suffice: Enter edits, Shift+Enter runs, Escape and Tab leave", async ({ page, site }) => {
  await show(page, '<weft-cell id="a">print(1)</weft-cell>', { at: site });
  const { editor, output, run } = cell(page, "a");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(editor).toBeFocused();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText("print(2)");
  await page.keyboard.press("Shift+Enter");
  await expect(output).toHaveText("2\n");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  await expect(run).toBeFocused();
  expect(await output.getAttribute("aria-live")).toBe("polite");
});

test("a cell opens in the playground with what the reader has made of it", async ({ page, site, visitor }) => {
  await show(page, '<weft-cell id="a">print(1)</weft-cell>', { at: site });
  const { at, editor } = cell(page, "a");
  await at.locator("pre").click();
  await replace(page, editor, "print('carried over')");
  const [opened] = await Promise.all([visitor.waitForEvent("page"), at.locator(".open").click()]);
  await expect(opened.locator(".cm-content")).toHaveText("print('carried over')");
  await opened.close();
});

test("without JavaScript the code is there to read", async ({ browser, site }) => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await show(page, '<weft-cell id="a"><pre>print("plain")</pre></weft-cell>', { at: site });
  await expect(page.locator("#a pre")).toBeVisible();
  await expect(page.locator("#a pre")).toHaveText('print("plain")');
  await context.close();
});
