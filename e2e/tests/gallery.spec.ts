/** The documents of the gallery in the real page: each opens, runs to its end on Wasm, and shows its figures. */
import fs from "node:fs";
import path from "node:path";
import { expect } from "../fixtures/site.js";
import { root, test } from "../fixtures/weft.js";

interface Entry {
  file: string;
  title: string;
  group: string;
}

const list = fs.readFileSync(path.join(root, "examples/gallery/gallery.json"), "utf8");
const entries = JSON.parse(list) as Entry[];

test("the gallery shows every document with its picture, by groups, and opens one as a copy", async ({
  playground,
  page,
}) => {
  await playground.open();
  const gallery = (await playground.documents()).locator("#gallery");
  await expect(gallery.locator("b")).toHaveText(entries.map(({ title }) => title));
  await expect(gallery.locator("h3")).toHaveText([...new Set(entries.map(({ group }) => group))]);
  for (const image of await gallery.locator("img").all()) {
    await image.scrollIntoViewIfNeeded();
    await expect.poll(() => image.evaluate((each: HTMLImageElement) => each.naturalWidth)).toBeGreaterThan(0);
  }
  await gallery.getByText(entries[0]!.title, { exact: true }).click();
  await expect(page.locator("#title")).toHaveValue(entries[0]!.title);
  await expect(page.locator(".cell.markdown h1")).toHaveText(entries[0]!.title);
  await playground.documents();
  await expect(page.locator("#library .entries")).toHaveCount(0); // looking leaves nothing behind
});

test("a link names a document; one that names none says so", async ({ playground, page }) => {
  await playground.open("#example=mandelbrot");
  await expect(page.locator("#title")).toHaveValue("The Mandelbrot set");
  await page.evaluate(() => (location.hash = "#example=nothing"));
  await expect(playground.notices).toContainText("no example of the name “nothing”");
  await expect(page.locator("#title")).toHaveValue("The Mandelbrot set");
});

for (const { file, title } of entries) {
  test(`${title}: runs to its end`, async ({ playground, page }) => {
    test.setTimeout(120_000);
    const said: string[] = [];
    page.on("console", (message) => said.push(message.text()));
    page.on("pageerror", (error) => said.push(error.message));
    await playground.open(`#example=${path.basename(file, ".py")}`);
    await page.locator("#run").click();
    await expect(page.locator("#state")).toHaveText(/^(Done on Wasm|Failed)$/, { timeout: 100_000 });
    expect(await page.locator(".failure").allTextContents()).toEqual([]);
    await expect(page.locator("#state")).toHaveText("Done on Wasm");
    await expect(page.locator(".weft-figure").first()).toBeVisible();
    await expect(page.locator(".figure-failure:visible")).toHaveCount(0);
    expect(await page.locator(".output .stderr").allTextContents()).toEqual([]);
    expect(said).toEqual([]);
  });
}
