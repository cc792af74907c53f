/** The editor in the playground: the index that the site has, and what Python answers after a run. */
import { expect, type Page } from "@playwright/test";
import { test } from "../fixtures/weft.js";

const offered = (page: Page) => page.locator(".cm-tooltip-autocomplete li .cm-completionLabel");

/** Takes the completion that is offered, once the list takes keys: a moment after it has opened. */
async function accept(page: Page): Promise<void> {
  await page.waitForTimeout(100);
  await page.keyboard.press("Enter");
}

async function hover(page: Page, text: string, word: string): Promise<void> {
  await page.mouse.move(2, 2);
  const line = page.locator(".cm-line", { hasText: text }).first();
  const box = await line.evaluate((element, word) => {
    const range = document.createRange();
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const at = node.textContent!.indexOf(word);
      if (at < 0) continue;
      range.setStart(node, at);
      range.setEnd(node, at + word.length);
      break;
    }
    const { x, y, width, height } = range.getBoundingClientRect();
    return { x: x + width / 2, y: y + height / 2 };
  }, word);
  await page.mouse.move(box.x - 2, box.y);
  await page.mouse.move(box.x, box.y);
}

test("completes from the site's index, which no first visit waits for, also while a program runs", async ({
  page,
  playground,
}) => {
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await playground.open();
  expect(asked.filter((path) => /later\/(index|python-index|sources)|ruff|markdown-/.test(path))).toEqual([]);
  await playground.write("import jax.numpy as jnp\nwhile True:\n    pass\n");
  await page.locator("#run").click();
  await expect(page.locator("#state")).toHaveText(/Running/);
  await page.locator(".cm-content").click();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.type("jnp.linalg.ei", { delay: 20 });
  await expect(offered(page).first()).toHaveText("eig");
  await expect(page.locator(".cm-completionInfo")).toContainText("-> ");
  expect(asked.filter((path) => /later\/(index|python-index)-/.test(path))).toHaveLength(2);
  expect(asked.filter((path) => /later\/sources-|ruff/.test(path))).toEqual([]);
  await page.locator("#stop").click();
});

test("shows shapes after a run, and offers what Python holds", async ({ page, playground }) => {
  await playground.open();
  const program =
    'import weft.numpy as jnp\nx = jnp.ones((3, 4))\nparams = {"weights": x, "bias": 0.5}\nglobals()["late"] = x\n';
  await playground.runToEnd(program);
  await hover(page, "x = jnp", "x");
  await expect(page.locator(".cm-tooltip [role=tooltip]")).toHaveText("x: f32[3,4]");
  await hover(page, "params =", "params");
  await expect(page.locator(".cm-tooltip [role=tooltip]")).toHaveText("params: {'weights': f32[3,4], 'bias': 0.5}");
  await page.locator(".cm-content").click();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.type('params["');
  await page.keyboard.press("Control+Space");
  await expect(offered(page)).toHaveText(["bias", "weights"]);
  await accept(page);
  await page.keyboard.press("End");
  await page.keyboard.type("\nlate\nnever\n");
  await expect(page.locator(".cm-lintRange-error")).toHaveText(["never"]);
});

test("opens weft's source at the definition, and closes it by Escape", async ({ page, playground }) => {
  await playground.open();
  await playground.write("import weft\nweft.vmap");
  await page.keyboard.press("F12");
  const dialog = page.getByRole("dialog", { name: "weft.api.vmap" });
  await expect(dialog.locator(".cm-activeLine")).toContainText("def vmap(");
  await page.keyboard.type("x");
  await expect(dialog.locator(".cm-activeLine")).toContainText("def vmap(");
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
});

test("a notebook's cells know each other's names", async ({ page, playground }) => {
  await playground.open();
  await playground.write("# %%\nimport jax.numpy as jnp\nrate = jnp.ones(3)\n\n# %%\nprint(rate)\n");
  await playground.menu("Notebook of cells");
  const cells = page.locator(".cell .cm-content");
  await expect(cells).toHaveCount(2);
  await cells.nth(1).click();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.type("\nrate.cums", { delay: 20 });
  await expect(offered(page).first()).toHaveText("cumsum");
  await accept(page);
  await expect(page.locator(".cm-lintRange-error")).toHaveCount(0);
  for (let i = 0; i < 8; i++) await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("F2");
  await page.keyboard.type("speed");
  await page.keyboard.press("Enter");
  await expect(cells.nth(0)).toContainText("speed = jnp.ones(3)");
  await expect(cells.nth(1)).toContainText("print(speed)");
});
