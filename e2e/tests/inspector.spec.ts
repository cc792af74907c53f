/** The inspector: what the last run compiled, when, why, and into what. */
import type { Page } from "@playwright/test";
import { expect } from "../fixtures/site.js";
import { test } from "../fixtures/weft.js";

const SOURCE = [
  "import jax, jax.numpy as jnp",
  "",
  "def softmax(x):",
  "    z = jnp.exp(x - x.max())",
  "    return z / z.sum()",
  "",
  "f = jax.jit(softmax)",
  "f(jnp.ones(4))",
  "print(f(jnp.arange(6.0)).tolist())",
  "print(jax.make_jaxpr(softmax)(jnp.ones(4)))",
].join("\n");

const drawer = (page: Page) => page.locator("#inspector");
const tab = (page: Page, name: string) => drawer(page).getByRole("tab", { name, exact: true });
const text = async (page: Page): Promise<string> =>
  (await drawer(page).locator(".cm-line").allTextContents()).join("\n");

async function open(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Inspect" }).click();
  await expect(drawer(page).getByRole("heading", { name: "See what happens" })).toBeVisible();
}

test("each tab shows what the program became", async ({ playground, page }) => {
  const problems: string[] = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  await playground.open();
  await open(page);
  await expect(drawer(page)).toContainText("No program was compiled yet");
  const output = await playground.runToEnd(SOURCE);
  const programs = drawer(page).getByRole("option");
  await expect(programs.first()).toContainText("(f32[4]) → f32[4]");
  await expect(programs.first()).toContainText("line 8, 1 call");
  await programs.first().click();

  await tab(page, "Jaxpr").click();
  await expect(drawer(page).locator(".cm-content")).toContainText("reduce_max");
  expect(await text(page)).toBe(output.slice(output.indexOf("{")).trimEnd());

  await tab(page, "Groups").click();
  await expect(drawer(page).locator(".cm-content")).toContainText("group 0: reduce");
  await tab(page, "IR").click();
  await expect(drawer(page).locator(".cm-content")).toContainText("program softmax(in0: f32[4])");
  await tab(page, "Wasm").click();
  await expect(drawer(page).locator(".cm-content")).toContainText('(import "weft" "memory"');
  await tab(page, "StableHLO").click();
  await expect(drawer(page).getByRole("tabpanel")).toContainText("StableHLO is the form that XLA compiles");
  await tab(page, "Memory").click();
  await expect(drawer(page).locator(".map span").first()).toHaveAttribute("title", /bytes at/);
  await tab(page, "Kernels").click();
  await drawer(page).getByRole("button", { name: "Time kernels" }).click();
  await expect(drawer(page).getByRole("table", { name: "Time of each kernel" })).toContainText("%");
  expect(problems).toEqual([]);
});

test("a line of the jaxpr shows the program's line, and leads there", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd(SOURCE);
  await open(page);
  await tab(page, "Jaxpr").click();
  await drawer(page).locator(".cm-line", { hasText: "exp" }).hover();
  await expect(page.locator("#document .cm-pointed-line")).toHaveText("    z = jnp.exp(x - x.max())");
  await expect(drawer(page).locator(".where")).toHaveText("program.py, line 4 z = jnp.exp(x - x.max())");
  await drawer(page).locator(".cm-line", { hasText: "div" }).click();
  await expect(page.locator("#document .cm-activeLine")).toHaveText("    return z / z.sum()");
});

test("why a function was compiled again", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd(SOURCE);
  await open(page);
  await drawer(page).getByRole("option").first().click();
  await expect(drawer(page).getByRole("tabpanel")).toContainText("Traced at program.py:8 (<module>): the first call.");
  await drawer(page).getByRole("option", { name: "f32[6]" }).first().click();
  await expect(drawer(page).getByRole("tabpanel")).toContainText(
    "the shape of x changed: it is f32[6] and was f32[4].",
  );
});

test("timeline and devices", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd(SOURCE);
  await open(page);
  const timeline = drawer(page).getByRole("img", { name: /^Timeline of/ });
  await expect(timeline).toHaveAttribute(
    "aria-label",
    /Trace [1-9]\d*, Compile [1-9]\d*, Run [1-9]\d*, Transfer [1-9]/,
  );
  await timeline.focus();
  await page.keyboard.press("ArrowRight");
  await expect(drawer(page).locator(".detail")).toContainText("after the start");
  await timeline.hover();
  await page.mouse.wheel(0, -400);
  await drawer(page).getByText("Devices", { exact: true }).click();
  const facts = drawer(page).getByRole("table", { name: "The device wasm" });
  await expect(facts).toContainText(/Memory in use\s*[\d,]+ bytes/);
  await expect(facts).toContainText("Threads");
});

test("backends are compared", async ({ playground, page }) => {
  await playground.open();
  await playground.write(SOURCE);
  await open(page);
  await drawer(page).getByText("Compare", { exact: true }).click();
  await drawer(page).getByRole("button", { name: "Compare backends" }).click();
  const table = drawer(page).getByRole("table", { name: "The document on each backend" });
  await expect(table.getByRole("rowheader")).toHaveText(["Wasm", "WebGPU", "Host"], { timeout: 60_000 });
  await expect(table.getByRole("row", { name: /^Wasm/ })).toContainText("it is the reference");
  await expect(table.getByRole("row", { name: /^Host/ })).toContainText("address and token");
  await expect(drawer(page).getByRole("button", { name: "Compare backends" })).toBeEnabled({ timeout: 60_000 });
});

test("a program that fails shows what it did; keys open and close the drawer", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd(`${SOURCE}\n1 / 0`, "Failed");
  await page.keyboard.press("Alt+i");
  await expect(drawer(page).getByRole("option").first()).toContainText("softmax");
  await tab(page, "Overview").focus();
  await page.keyboard.press("ArrowRight");
  await expect(tab(page, "Jaxpr")).toBeFocused();
  await expect(tab(page, "Jaxpr")).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("Escape");
  await expect(drawer(page)).toBeHidden();
});

test("a cell of a notebook is pointed at; the drawer fits a narrow window", async ({ playground, page }) => {
  await playground.open();
  await playground.write(SOURCE);
  await playground.menu("Notebook of cells");
  await page.locator("#run").click();
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await page.setViewportSize({ width: 375, height: 740 });
  await open(page);
  await tab(page, "Jaxpr").click();
  // The drawer scrolls to the line, which may move under the pointer meanwhile.
  await expect(async () => {
    await drawer(page).locator(".cm-line", { hasText: "exp" }).hover();
    const pointed = page.locator("#document .cm-pointed-line");
    await expect(pointed).toHaveText("    z = jnp.exp(x - x.max())", { timeout: 1000 });
  }).toPass();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
});
