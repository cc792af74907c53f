/** Figures by the keyboard: what is shown is also said. */
import type { Page } from "@playwright/test";
import { expect, inPage, test } from "../fixtures/figures.js";
import type { Case } from "../fixtures/figures_page.js";

test.use({ colorScheme: "light" });

async function open(page: Page, each: Case): Promise<void> {
  await inPage(page, (figures, given) => figures.mount().draw(given!), each);
  await page.locator(".figure-plot").focus();
}

const said = (page: Page) => page.getByRole("status");

test("arrow keys go from value to value and from series to series", async ({ page, cases }) => {
  await open(page, cases["several"]!);
  const plot = page.getByRole("application", { name: /Two heights/ });
  await expect(plot).toBeFocused();
  await expect(plot).toHaveAttribute("aria-description", /Arrow keys go from value to value/);
  const steps: [key: string, text: string][] = [
    ["ArrowRight", "low: x 0, y 0"],
    ["ArrowRight", "low: x 1, y 1"],
    ["ArrowRight", "low: x 2, y 0"],
    ["ArrowRight", "low: x 2, y 0"], // the last
    ["ArrowDown", "high: x 2, y 50"],
    ["ArrowLeft", "high: x 1, y 100"],
    ["Home", "high: x 0, y 50"],
    ["PageUp", "low: x 0, y 0"],
    ["End", "low: x 2, y 0"],
  ];
  for (const [key, text] of steps) {
    await page.keyboard.press(key);
    await expect(said(page), key).toHaveText(text);
  }
  await expect(page.locator(".figure-tip")).toHaveText("lowx2y0");
  await expect(page.locator(".figure-dot")).toBeVisible();
});

test("plus zooms at the value, which stays shown, and 0 shows all", async ({ page, cases }) => {
  await open(page, cases["several"]!);
  const reset = page.getByRole("button", { name: "Show the whole figure again" });
  const texts = () => inPage(page, async (figures) => (await figures.mounted!.file()).texts, null);
  const whole = await texts();
  await page.keyboard.press("End");
  await page.keyboard.press("End");
  for (let k = 0; k < 8; k++) await page.keyboard.press("+");
  await expect(reset).toBeVisible();
  await expect(page.locator(".figure-tip")).toHaveText("lowx2y0");
  const near = (await texts()).map(Number).filter((value) => !Number.isNaN(value));
  expect(Math.max(...near)).toBeLessThan(40); // the upper series is out of view
  await page.keyboard.press("PageDown");
  await page.keyboard.press("ArrowLeft"); // comes into view
  await expect(said(page)).toHaveText("high: x 1, y 100");
  expect(await texts()).toContain("100");
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("-");
  await page.keyboard.press("0");
  await expect(reset).toBeHidden();
  expect(await texts()).toEqual(whole);
  await page.locator("body").click({ position: { x: 2, y: 2 } });
  await expect(page.locator(".figure-tip")).toBeHidden();
});

test("every kind of figure is read by keys", async ({ page, cases }) => {
  const read: [name: string, keys: string[], text: string][] = [
    ["gaps", ["Home", "ArrowRight", "ArrowRight"], "x 3, y 1"], // what is not finite is passed over
    ["circle", ["Home", "ArrowRight"], "x 0.994335, y 0.106293"],
    ["equal_x", ["Home", "ArrowRight", "ArrowRight"], "x 1, y 5"], // each of the points that share an x
    ["equal_x", ["Home", "ArrowRight", "ArrowRight", "ArrowLeft"], "x 1, y 1"],
    ["logs", ["Home", "ArrowRight"], "x 3, y 0.01"],
    ["bars", ["Home", "ArrowRight"], "forward: at webgpu, height 0.4"],
    ["bars", ["Home", "ArrowRight", "ArrowDown"], "backward: at webgpu, height 1.1"],
    ["counted", ["Home"], "normal: from −3.5488, to −3.3055, count 1"],
    ["corners", ["Home"], "row 0, column 0, RGB (255, 0, 0)"],
    ["corners", ["Home", "ArrowDown", "ArrowRight"], "row 1, column 1, RGB (255, 255, 255)"],
    ["lower", ["Home", "ArrowUp"], "row 1, column 0, value 4"], // its origin lies below
    ["heat", ["Home", "ArrowRight", "ArrowDown"], "row dog, column dog, value 44"],
    ["cells", ["Home", "ArrowRight"], "y 0.5, x 10, value 1"],
    ["banded", ["Home"], "posterior: x 0, from −0.3, to 0.3"],
    ["one_arrow", ["Home"], "x 0, y 0, arrow (1, 2)"],
    ["arrows", ["Home", "ArrowUp"], "x −1, y −0.75, arrow (0.75, −1)"],
    ["ring", ["Home", "ArrowRight"], "x −1.95, y −2, value 7.8025"],
  ];
  for (const [name, keys, text] of read) {
    await open(page, cases[name]!);
    for (const key of keys) await page.keyboard.press(key);
    await expect.soft(said(page), `${name} ${keys.join(" ")}`).toHaveText(text, { timeout: 1500 });
  }
  await open(page, cases["nothing"]!);
  await page.keyboard.press("ArrowRight");
  await expect(said(page)).toHaveText("");
});

test("a value that is shown follows a live curve, and is gone with its series", async ({ page, cases }) => {
  await open(page, cases["training"]!);
  await page.keyboard.press("End");
  await page.keyboard.press("End");
  await expect(page.locator(".figure-tip")).toContainText("step299".replace("step", "x"));
  const place = () => page.locator(".figure-dot").evaluate((dot) => dot.getBoundingClientRect().left);
  const before = await place();
  await inPage(
    page,
    async (figures, _) => {
      const one = { dtype: "float64", shape: [1] };
      figures.mounted!.view.append(
        { version: 1, append: [{ panel: 0, mark: 0, x: { buffer: 0, ...one }, y: { buffer: 1, ...one } }] },
        [new Float64Array([600]).buffer, new Float64Array([1]).buffer],
      );
      await figures.mounted!.view.drawn();
    },
    null,
  );
  expect(await place()).toBeLessThan(before - 100);
  await expect(page.locator(".figure-tip")).toContainText("x299");
  await page.getByRole("button", { name: "Show or hide loss train" }).focus();
  await page.keyboard.press("Enter");
  await expect(page.locator(".figure-tip")).toBeHidden();
});
