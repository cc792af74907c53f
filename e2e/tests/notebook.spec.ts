/** Documents of cells: run, edit, order, Markdown, keys. */
import type { Page } from "@playwright/test";
import { expect, test, type Playground } from "../fixtures/site.js";

async function newNotebook(playground: Playground): Promise<void> {
  await playground.open();
  await playground.menu("New notebook");
  await expect(playground.page.locator(".cell")).toHaveCount(1);
}

async function write(page: Page, cell: number, text: string): Promise<void> {
  const content = page.locator(".cell").nth(cell).locator(".cm-content");
  await content.click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(text);
}

test("cells share names, show their last value, and Run all starts anew", async ({ playground, page }) => {
  await newNotebook(playground);
  await write(page, 0, "x = globals().get('x', 0) + 1\nx");
  await page.keyboard.press("Shift+Enter");
  await expect(page.locator(".cell")).toHaveCount(2);
  await write(page, 1, "print('printed', x)\n{'x': x}");
  await page.keyboard.press("ControlOrMeta+Enter");
  const outputs = page.locator(".cell .output");
  await expect(outputs.nth(0)).toHaveText("1");
  await expect(outputs.nth(1)).toHaveText("printed 1\n{'x': 1}");
  await expect(page.locator(".cell .count")).toHaveText(["[1]", "[2]"]);
  await page.locator(".cell").nth(0).getByRole("button", { name: "Run this cell" }).click();
  await expect(outputs.nth(0)).toHaveText("2");
  await page.locator("#run").click();
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await expect(outputs.nth(0)).toHaveText("1");
  await expect(page.locator(".cell .count")).toHaveText(["[1]", "[2]"]);
});

test("an error is shown in its cell and marks its line; the cells after it do not run", async ({
  playground,
  page,
}) => {
  await newNotebook(playground);
  await write(page, 0, "def f(x):\n    return 1 / x");
  await page.keyboard.press("Shift+Enter");
  await write(page, 1, "y = 0\nf(y)");
  await page.keyboard.press("Shift+Enter");
  await write(page, 2, "print('never')");
  await page.locator("#run").click();
  await expect(page.locator("#state")).toHaveText("Failed");
  const failure = page.locator(".cell").nth(1).locator(".failure");
  await expect(failure).toContainText("ZeroDivisionError");
  await expect(failure).toContainText('File "cell 1", line 2');
  await expect(failure).toContainText('File "cell 2", line 2');
  await expect(page.locator(".cell").nth(1).locator(".cm-error-line")).toHaveText("f(y)");
  await expect(page.locator(".cell").nth(2).locator(".output")).toHaveText("");
});

test("Markdown cells are shown as text with formulas, and opened by a double click", async ({ playground, page }) => {
  await newNotebook(playground);
  await page.getByRole("button", { name: "+ Markdown" }).click();
  await write(page, 1, "# Title\n\nText with $x^2$ and <script>alert(1)</script>.");
  await page.keyboard.press("ControlOrMeta+Enter");
  const text = page.locator(".cell.markdown .rendered");
  await expect(text.locator("h1")).toHaveText("Title");
  await expect(text.locator("math")).toHaveCount(1);
  await expect(text.locator("script")).toHaveCount(0);
  await text.dblclick();
  await expect(page.locator(".cell.markdown .cm-content")).toBeVisible();
});

test("cells are inserted, moved, changed and deleted by keys, and a deleted one comes back", async ({
  playground,
  page,
}) => {
  await newNotebook(playground);
  await write(page, 0, "first = 1");
  await page.keyboard.press("Escape"); // closes what completion proposes
  await page.keyboard.press("Escape");
  await page.keyboard.press("b");
  await page.keyboard.press("Enter");
  await page.keyboard.insertText("second = 2");
  await expect(page.locator(".cell")).toHaveCount(2);
  await page.locator(".cell").nth(1).getByRole("button", { name: "Move up" }).click();
  await expect(page.locator(".cell .cm-content")).toHaveText(["second = 2", "first = 1"]);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.keyboard.press("d");
  await page.keyboard.press("d");
  await expect(page.locator(".cell .cm-content")).toHaveText(["first = 1"]);
  await page.keyboard.press("z");
  await expect(page.locator(".cell .cm-content")).toHaveText(["second = 2", "first = 1"]);
  await page.keyboard.press("m");
  await expect(page.locator(".cell").nth(0)).toHaveClass(/markdown/);
});

test("a script becomes cells at its markers, and cells one script again", async ({ playground, page }) => {
  await playground.open();
  await playground.menu("New script");
  await playground.write("# %% [markdown]\n# # Hello\n\n# %%\nx = 1\n\n# %%\nx + 1\n");
  await playground.menu("Notebook of cells");
  await expect(page.locator(".cell")).toHaveCount(3);
  await expect(page.locator(".cell.markdown h1")).toHaveText("Hello");
  await page.locator("#run").click();
  await expect(page.locator(".cell .output").last()).toHaveText("2");
  await playground.menu("Notebook of cells");
  await expect(page.locator(".cm-content")).toContainText("# %% [markdown]");
});
