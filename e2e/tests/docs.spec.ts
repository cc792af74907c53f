/** The documentation beside the playground: its pages, their live cells, its search, and the links from errors. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect, test as base, type Page } from "@playwright/test";
import { Playground } from "../fixtures/site.js";
import { python, root } from "../fixtures/weft.js";
import { close, serve } from "../../tools/web/serve.mjs";

const folder = path.join(root, "build/e2e/documented");
const PAGES = [
  "index.html",
  "tour.html",
  "tutorials/jit.html",
  "how-to/backends.html",
  "gallery/index.html",
  "about/accuracy.html",
  "errors/TracerBoolConversionError.html",
  "reference/weft/grad.html",
];

/** Of others: Playwright's, and one of Sphinx's search, which takes the dots in a name for classes of CSS. */
const FOREIGN = ["blocked by Playwright", "Anchored content block not found"];

/** The documentation without most of the reference, beside links to what `make web` built. */
function build(): void {
  fs.mkdirSync(folder, { recursive: true });
  const site = path.join(root, "build/site");
  for (const name of fs.readdirSync(folder)) if (name !== "docs") fs.unlinkSync(path.join(folder, name));
  for (const name of fs.readdirSync(site)) {
    if (name !== "docs") fs.symlinkSync(path.join(site, name), path.join(folder, name));
  }
  const [sources, trees] = ["source", "trees"].map((name) => path.join(root, "build/e2e/docs", name)) as [
    string,
    string,
  ];
  execFileSync(python, [path.join(root, "tools/site/prepare.py"), sources, "--short"], { stdio: "inherit" });
  execFileSync(python, ["-m", "sphinx", "-q", "-W", "--keep-going", "-d", trees, sources, path.join(folder, "docs")], {
    stdio: "inherit",
    env: { ...process.env, PYTHONPATH: path.join(root, "tools/site") },
  });
}

const test = base.extend<{ complaints: string[] }, { site: string }>({
  site: [
    async ({}, use) => {
      build();
      const { server, url } = await serve(folder);
      await use(url);
      await close(server);
    },
    { scope: "worker", timeout: 240_000 },
  ],
  /** What the console says, and what the server does not have. */
  complaints: async ({ page }, use) => {
    const complaints: string[] = [];
    page.on("console", (message) => {
      if (!FOREIGN.some((text) => message.text().includes(text))) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("response", (response) => response.status() >= 400 && complaints.push(response.url()));
    await use(complaints);
    expect(complaints).toEqual([]);
  },
});

/** The addresses of this site to which a page links. */
const links = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...new Set([...document.querySelectorAll<HTMLAnchorElement>("a[href]")].map((a) => a.href.split("#")[0]!))].filter(
      (address) => address.startsWith(location.origin),
    ),
  );

test("the first page runs, and all its links lead somewhere", async ({ page, site, complaints: _ }) => {
  await page.goto(`${site}docs/`);
  const cell = page.locator("weft-cell").first();
  await cell.locator(".run").click();
  await expect(cell.locator(".figure-legend button")).toHaveText(["a function", "its derivative, compiled"]);
  const found = await links(page);
  expect(found.length).toBeGreaterThan(20);
  expect(found).toContain(site);
  for (const address of found) expect((await page.request.get(address)).status(), address).toBe(200);
});

test("a cell of a tutorial runs after those before it, without those that raise", async ({
  page,
  site,
  complaints: _,
}) => {
  await page.goto(`${site}docs/tutorials/first-steps.html`);
  const cell = page.locator("weft-cell", { hasText: "x.at[0, 0].set(1.0).at[1].add(10.0)" });
  await cell.locator(".run").click();
  await expect(cell.locator(".output")).toHaveText("[[ 1.  1.  2.]\n [13. 14. 15.]]\n[[0. 1. 2.]\n [3. 4. 5.]]\n");
  const raising = page.locator("weft-cell[raises]").first();
  await expect(raising.locator(".output")).toBeEmpty();
  await raising.locator(".run").click();
  await expect(raising.locator(".failure")).toContainText("arrays are immutable");
});

test("an example of the reference computes what its page says", async ({ page, site, complaints: _ }) => {
  await page.goto(`${site}docs/reference/weft/grad.html`);
  const expected = await page.locator("pre.expected").first().textContent();
  const cell = page.locator("weft-cell").first();
  await cell.locator(".run").click();
  await expect(cell.locator(".output")).toContainText(expected!);
});

test("the search finds pages", async ({ page, site, complaints: _ }) => {
  await page.goto(`${site}docs/index.html`);
  await page.getByPlaceholder("Search").first().fill("checkpoint");
  await page.keyboard.press("Enter");
  await expect(page.locator("#search-results li a").first()).toBeVisible();
  await expect(page.locator("#search-results")).toContainText("Spend time to save memory");
});

for (const scheme of ["light", "dark"] as const) {
  test(`pages fit a narrow window, and cells follow the page's colours (${scheme})`, async ({
    page,
    site,
    complaints: _,
  }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width: 375, height: 800 });
    for (const name of PAGES) {
      await page.goto(`${site}docs/${name}`);
      const [scrolls, dark, cell] = await page.evaluate(() => {
        const luminance = (element: Element) => {
          const [r, g, b] = getComputedStyle(element)
            .backgroundColor.match(/[\d.]+/g)!
            .map(Number);
          return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
        };
        const frame = document.querySelector("weft-cell")?.shadowRoot?.querySelector(".cell");
        return [
          document.documentElement.scrollWidth - innerWidth,
          luminance(document.body) < 128,
          frame ? luminance(frame) < 128 : null,
        ] as const;
      });
      expect(scrolls, `${name} is wider than the window`).toBeLessThanOrEqual(0);
      expect(dark, name).toBe(scheme === "dark");
      if (cell !== null) expect(cell, name).toBe(dark);
    }
  });
}

test("an error in the playground leads to its page, and the menu to the documentation", async ({
  page,
  site,
  complaints,
}) => {
  const playground = new Playground(page, site);
  await playground.open();
  await playground.runToEnd("import jax\njax.jit(lambda x: x if x > 0 else -x)(1.0)", "Failed");
  const name = page.locator(".failure strong a");
  await expect(name).toHaveText("TracerBoolConversionError");
  const opened = page.waitForEvent("popup");
  await name.click();
  const explained = await opened;
  await expect(explained.locator("h1")).toContainText("TracerBoolConversionError");
  await explained.close();
  const menu = page.waitForEvent("popup");
  await playground.menu("Documentation");
  await expect((await menu).locator("h1")).toContainText("weft");
  const refused = "from weft_remote.errors import LimitError\nraise LimitError('too much')";
  await playground.runToEnd(refused, "Failed");
  await expect(name).toHaveAttribute("href", /errors\/LimitError\.html$/);
  await playground.runToEnd("from weft.experimental import checkify\nraise checkify.JaxRuntimeError('no')", "Failed");
  await expect(name).toHaveAttribute("href", /errors\/checkify\.JaxRuntimeError\.html$/);
  const response = await page.request.get((await name.getAttribute("href"))!);
  expect(await response.text()).toContain("a check failed while a program ran");
  await playground.runToEnd("class LimitError(Exception): pass\nraise LimitError('mine')", "Failed");
  await expect(page.locator(".failure strong")).toHaveText("LimitError");
  await expect(name).toHaveCount(0); // a class of the program's own
  await playground.runToEnd("1 / 0", "Failed"); // Python's own errors have no page
  await expect(page.locator(".failure strong")).toHaveText("ZeroDivisionError");
  await expect(name).toHaveCount(0);
  expect(complaints).toEqual([]);
});

test.describe("without documentation", () => {
  test.use({ serviceWorkers: "block" }); // it would answer before the test does

  test("an error is no link, and nobody complains", async ({ page, site, complaints }) => {
    await page.route("**/docs/errors.json", (route) => route.fulfill({ json: {} }));
    const playground = new Playground(page, site);
    await playground.open();
    await playground.runToEnd("import jax\njax.jit(lambda x: x if x > 0 else -x)(1.0)", "Failed");
    await expect(page.locator(".failure strong")).toHaveText("TracerBoolConversionError");
    await expect(page.locator(".failure strong a")).toHaveCount(0);
    await page.locator("#menu-button").click();
    await expect(page.locator("#menu")).toContainText("Restart Python");
    await expect(page.locator("#menu")).not.toContainText("Documentation");
    expect(complaints).toEqual([]);
  });
});
