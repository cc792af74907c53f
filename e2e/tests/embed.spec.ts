/** A document in a frame of another page, and the dialog that gives the HTML for it. */
import zlib from "node:zlib";
import type { Page } from "@playwright/test";
import { expect, test } from "../fixtures/site.js";

type Cells = ["code" | "markdown", string][];

function fragment(cells: Cells, form = "script", options = { backend: "wasm", x64: false }): string {
  const content = JSON.stringify({ title: "In a frame", form, options, cells });
  return `#doc=1.${zlib.deflateSync(content).toString("base64url")}`;
}

/** Opens a page whose only content is this HTML; returns its frame. */
async function host(page: Page, site: string, html: string) {
  const body = `<!doctype html><title>host</title><link rel="icon" href="data:,"><body>${html}</body>`;
  await page.route(`${site}host.html`, (route) => route.fulfill({ body, contentType: "text/html" }));
  await page.goto(`${site}host.html`);
  return page.frameLocator("iframe");
}

const frameOf = (address: string) => `<iframe src="${address.replaceAll("&", "&amp;")}" width=700 height=500></iframe>`;

test("a script runs in a frame; Python starts with Run, and nothing is kept", async ({ page, site, requests }) => {
  const frame = await host(page, site, frameOf(`${site}?embed${fragment([["code", "print(6 * 7)"]])}`));
  await expect(frame.locator(".cm-content")).toHaveText("print(6 * 7)");
  await expect(frame.locator("#documents")).toHaveCount(0);
  await expect(frame.locator("footer")).toHaveCount(0);
  await page.waitForTimeout(500);
  expect(requests.filter((url) => /\.(wasm|zip|whl)$/.test(url))).toEqual([]);
  const run = frame.getByRole("button", { name: "Run" });
  await run.click();
  await expect(frame.locator(".output")).toHaveText("42\n");
  await expect(frame.locator("#state")).toHaveText("Done on Wasm");
  await frame.locator(".cm-content").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText("while True: pass");
  await run.click();
  // A page that is not isolated itself isolates no frame: Stop starts Python again.
  await frame.getByRole("button", { name: "Stop" }).click();
  await expect(frame.locator("#state")).toContainText("Stopped");
  await page.waitForTimeout(1000); // Python starts again meanwhile, of which nothing is said
  await expect(frame.locator("#state")).toContainText("Stopped");
  await frame.locator(".cm-content").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText("print(6 * 8)");
  await run.click();
  await expect(frame.locator(".output")).toHaveText("48\n");
  await expect(frame.locator("#state")).toHaveText("Done on Wasm");
  const databases = await page.evaluate(async () => (await indexedDB.databases()).map(({ name }) => name));
  expect(databases).not.toContain("weft-library");
});

test("a frame's document opens in the playground as it is now", async ({ page, site, visitor }) => {
  const frame = await host(page, site, frameOf(`${site}?embed${fragment([["code", "print(1)"]])}`));
  await frame.locator(".cm-content").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText("print('changed')");
  const [opened] = await Promise.all([
    visitor.waitForEvent("page"),
    frame.getByRole("button", { name: "Open in playground" }).click(),
  ]);
  await expect(opened.locator(".cm-content")).toHaveText("print('changed')");
  await expect(opened.locator("#title")).toHaveValue("In a frame");
  await opened.close();
});

test("options: runs once it is in sight, in chosen colours, without code", async ({ page, site }) => {
  const cells: Cells = [
    ["markdown", "# Heading"],
    ["code", "n = 20"],
    ["code", "n + 1"],
  ];
  const address = `${site}?embed&run&theme=dark&hide=code${fragment(cells, "notebook")}`;
  const frame = await host(page, site, `<div style="height: 3000px"></div>${frameOf(address)}`);
  await expect(frame.locator("main h1")).toHaveText("Heading");
  await page.waitForTimeout(500);
  await expect(frame.locator(".output").last()).toBeEmpty();
  await page.locator("iframe").scrollIntoViewIfNeeded();
  await expect(frame.locator(".output").last()).toHaveText("21");
  await expect(frame.locator(".cm-content").first()).toBeHidden();
  expect(await frame.locator("html").evaluate((element) => getComputedStyle(element).colorScheme)).toBe("dark");
});

test("an address without a document, or with a damaged one, says so", async ({ page, site }) => {
  await page.goto(`${site}?embed`);
  await expect(page.locator("main")).toContainText("This address holds no document");
  await page.goto(`${site}?embed#doc=1.AAAA`);
  await expect(page.locator("main")).toContainText("This link is damaged");
  await page.goto(`${site}?embed${fragment([["code", "1"]], "script", { backend: "remote", x64: true })}`);
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
});

test("the dialog gives HTML for a frame and for cells that do what the document does", async ({ playground, page }) => {
  await playground.open(
    fragment(
      [
        ["markdown", "Some *text*."],
        ["code", 's = "a < b & c"\nprint(s)'],
      ],
      "notebook",
    ),
  );
  await playground.menu("Embed in a page…");
  const dialog = page.locator("dialog#embed");
  await dialog.getByLabel("Output alone").check();
  await dialog.getByLabel("Colours").selectOption("Dark");
  const html = (name: string) => dialog.getByLabel(`HTML: ${name}`).inputValue();
  await expect.poll(() => html("a frame")).toContain("?embed&amp;theme=dark&amp;hide=code#doc=1.");
  const [ofFrame, ofCells] = [await html("a frame"), await html("cells")];
  await page.keyboard.press("Escape");
  const site = new URL("./", page.url()).href;
  const frame = await host(page, site, ofFrame);
  await frame.getByRole("button", { name: "Run" }).click();
  await expect(frame.locator(".output")).toHaveText("a < b & c\n");
  await host(page, site, ofCells);
  await expect(page.locator("em")).toHaveText("text");
  await expect(page.locator("weft-cell")).toHaveAttribute("theme", "dark");
  await page.locator("weft-cell .run").click();
  await expect(page.locator("weft-cell .output")).toHaveText("a < b & c\n");
});
