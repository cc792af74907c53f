/** For everybody: what axe finds, the keyboard alone, phones, steady layout, a silent console. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import type { ConsoleMessage, Page } from "@playwright/test";
import { violations } from "../fixtures/axe.js";
import { expect, Playground } from "../fixtures/site.js";
import { python, root, test } from "../fixtures/weft.js";
import { close, serve } from "../../tools/web/serve.mjs";

const FIGURE = `import weft.numpy as jnp
from weft import plot
x = jnp.linspace(0.0, 6.0, 50)
plot.line(x, jnp.sin(x), label="sine", title="Waves", xlabel="time in s")
plot.line(x, jnp.cos(x), label="cosine")
plot.show()
print("drawn")
`;

const NOTEBOOK = `# %% [markdown]
# # A notebook
# with *prose*, $a^2$ and [a link](https://example.org)
# %%
import weft.numpy as jnp
from weft import plot, widgets
x = jnp.linspace(0.0, 6.0, 50)
figure = plot.figure(columns=2)
figure.panel(title="waves").line(x, jnp.sin(x), label="sine")
figure.panel(title="product").heatmap(jnp.outer(x, x))
figure
# %%
class Table:
    def _repr_html_(self): return "<table><tr><th>a</th></tr><tr><td>1</td></tr></table>"
Table()
# %%
{"weights": jnp.zeros((3, 4)), "bias": x}
# %%
@widgets.interact
def show(speed: float = widgets.slider(0.0, 1.0), kind=["first", "second"], exact=False):
    print(speed, kind, exact)
# %%
print("before")
1 / 0
`;

/** Opens a file, as a reader drops or chooses it. */
async function openFile(page: Page, name: string, text: string): Promise<void> {
  await page.locator("#open-file").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
}

/** Everything that a page and its worker write to the console, and errors that nobody caught. */
function listen(page: Page): string[] {
  const said: string[] = [];
  page.on("console", (message: ConsoleMessage) => said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.push(String(error)));
  return said;
}

async function runNotebook(page: Page): Promise<void> {
  await openFile(page, "everybody.py", NOTEBOOK);
  await expect(page.locator(".notebook .cell")).toHaveCount(6);
  await page.locator("#run").click();
  await expect(page.locator("#state")).toHaveText("Failed");
  await expect(page.locator(".figure-plot canvas")).toHaveCount(2);
}

/** What has the focus, in words, and whether something on the page shows that it has. */
const focused = (page: Page) =>
  page.evaluate(() => {
    const at = document.activeElement;
    if (!at || at === document.body) return null;
    const name = at.id || at.getAttribute("aria-label") || at.textContent?.trim().slice(0, 30) || at.className;
    const shows = [at, at.nextElementSibling, at.closest(".cm-editor"), at.closest(".source")].filter((each) => {
      const { outlineStyle, outlineWidth, outlineColor } = each ? getComputedStyle(each) : getComputedStyle(at);
      const clear = outlineColor === "transparent" || / 0\)$/.test(outlineColor);
      return outlineStyle !== "none" && parseFloat(outlineWidth) >= 1 && !clear;
    });
    return { name, shown: shows.length > 0 };
  });

/** Presses Tab until the focus is on something of this name; returns what it was on before. */
async function tabTo(page: Page, name: string): Promise<string[]> {
  const before: string[] = [];
  for (let presses = 0; presses < 40; presses++) {
    await page.keyboard.press("Tab");
    const at = await focused(page);
    if (!at) continue; // the browser's own bar
    await expect.poll(() => focused(page), `the ring of ${at.name}`).toEqual({ name: at.name, shown: true });
    if (at.name.startsWith(name)) return before;
    before.push(at.name);
  }
  throw new Error(`Tab never comes to ${name}, but to ${before.join(", ")}`);
}

let said: string[] = [];
test.beforeEach(({ page }) => void (said = listen(page)));
test.afterEach(() => expect(said, "the console").toEqual([]));

test("axe finds nothing in what a document shows", async ({ playground, page }) => {
  test.setTimeout(240_000);
  await playground.open();
  const all = await violations(page, "empty page");
  await playground.runToEnd(FIGURE);
  await expect(page.locator(".figure-plot canvas")).toBeVisible();
  all.push(...(await violations(page, "script with output")));
  await playground.run("def f(x):\n    return 1 / x\nf(0)");
  await expect(page.locator("#state")).toHaveText("Failed");
  all.push(...(await violations(page, "error")));
  await runNotebook(page);
  all.push(...(await violations(page, "notebook")));
  expect(all).toEqual([]);
});

test("axe finds nothing in dialogs, the menu and the fields of a host", async ({ playground, page }) => {
  test.setTimeout(240_000);
  await playground.open();
  const dialog = await playground.documents();
  const all = await violations(page, "library");
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  await page.locator("#menu-button").click();
  all.push(...(await violations(page, "menu")));
  await page.keyboard.press("Escape");
  await playground.menu("Embed in a page…");
  await expect(page.locator("#embed")).toBeVisible();
  all.push(...(await violations(page, "embed dialog")));
  await page.keyboard.press("Escape");
  await page.locator("#backends input[value=remote]").check();
  await expect(page.locator("#host")).toBeVisible();
  all.push(...(await violations(page, "host")));
  expect(all).toEqual([]);
});

test("axe finds nothing in a frame, in cells and in files made by the page", async ({ playground, page, weftSite }) => {
  test.setTimeout(240_000);
  await playground.open();
  await runNotebook(page);
  await page.locator("#menu-button").click();
  const [saved] = await Promise.all([
    page.waitForEvent("download"),
    page.locator("#menu").getByText("Download .html with outputs").click(),
  ]);
  const html = fs.readFileSync(await saved.path(), "utf8");

  const content = { title: "Embedded", form: "script", options: { backend: "wasm", x64: false } };
  const packed = zlib.deflateSync(JSON.stringify({ ...content, cells: [["code", FIGURE]] })).toString("base64url");
  await page.goto(`${weftSite}?embed&run#doc=1.${packed}`);
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  const all = await violations(page, "frame");

  const icon =
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">';
  const cells =
    `<!doctype html><html lang="en"><meta name="color-scheme" content="light dark">${icon}<title>Cells</title>` +
    `<script type="module" src="${weftSite}weft-cell.js"></script><body><main><h1>Cells</h1>` +
    '<weft-cell id="one">print(6 * 7)</weft-cell><weft-cell>1 / 0</weft-cell></main></body></html>';
  await page.route("**/cells.html", (route) => route.fulfill({ body: cells, contentType: "text/html" }));
  await page.goto(`${weftSite}cells.html`);
  all.push(...(await violations(page, "cells that nobody has used")));
  await page.locator("weft-cell").last().locator(".run").click();
  await expect(page.locator("#one .output")).toHaveText("42\n");
  all.push(...(await violations(page, "cells")));

  await page.route("**/notebook.html", (route) => route.fulfill({ body: html, contentType: "text/html" }));
  await page.goto(`${weftSite}notebook.html`);
  all.push(...(await violations(page, "notebook as a file")));
  expect(all).toEqual([]);
});

test("axe finds nothing in the page of an exported program", async ({ playground, page }) => {
  test.setTimeout(240_000);
  await playground.open();
  const source = [
    "import weft, weft.numpy as jnp",
    "from weft import export",
    "export.web(lambda x: 2 * x, weft.ShapeDtypeStruct((2,), jnp.float32), path='out', title='Twice')",
  ];
  await playground.run(source.join("\n"));
  const save = page.getByRole("button", { name: /^Download .*zip/ });
  const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
  const target = path.join(root, "build/e2e/everybody");
  fs.rmSync(target, { recursive: true, force: true });
  execFileSync(python, ["-m", "zipfile", "-e", await download.path(), target]);
  const [name] = fs.readdirSync(target);
  const { server, url } = await serve(path.join(target, name!), { isolated: false });
  const file = fs.readdirSync(path.join(target, name!)).find((each) => each.endsWith(".html"));
  await page.goto(url + file);
  await page.locator("textarea").fill("1, 2");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.locator("#results output")).toHaveText(["2", "4"]);
  expect(await violations(page, "exported program")).toEqual([]);
  await close(server);
});

test("the keyboard alone: write, run, read figures, move widgets", async ({ playground, page }) => {
  await playground.open();
  const bar = await tabTo(page, "Python program");
  expect(bar.join(" ")).toMatch(/documents title .*run .*share menu-button theme/);
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(FIGURE);
  await page.keyboard.press("Tab"); // indents
  expect((await focused(page))?.name).toMatch(/^Python program/);
  await page.keyboard.press("ControlOrMeta+z");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await page.keyboard.press("Escape"); // and Tab: the way out of the editor, which its label names
  const plot = page.locator(".figure-plot");
  await tabTo(page, (await plot.getAttribute("aria-label"))!.slice(0, 20));
  const reset = page.getByRole("button", { name: "Show the whole figure again" });
  await expect(reset).toBeHidden();
  await page.keyboard.press("ArrowRight");
  await expect(plot.getByRole("status")).toHaveText(/x .+, y /);
  await page.keyboard.press("+");
  await expect(reset).toBeVisible();
  await page.keyboard.press("0");
  await expect(reset).toBeHidden();
  await tabTo(page, "Output");
  const rest = await tabTo(page, "Licences");
  expect(rest).toEqual([]);

  // Back to Run, by the keyboard alone.
  for (let presses = 0; presses < 40 && (await focused(page))?.name !== "run"; presses++)
    await page.keyboard.press("Shift+Tab");
  expect((await focused(page))?.name).toBe("run");
  await plot.evaluate((each) => each.classList.add("of-the-first-run")); // "Running" may pass unseen
  await page.keyboard.press("Enter");
  await expect(page.locator(".of-the-first-run")).toHaveCount(0);
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await expect(plot).toBeVisible();
});

test("the keyboard moves widgets, and chooses in the menu", async ({ playground, page }) => {
  await playground.open();
  const widget =
    "from weft import widgets\n@widgets.interact\n" +
    "def show(n: int = widgets.slider(0, 9, value=3, step=1, label='n')):\n    print('n', n)\n";
  await playground.runToEnd(widget);
  await page.locator("#run").focus();
  const slider = page.getByRole("slider");
  for (let presses = 0; presses < 40; presses++) {
    await page.keyboard.press("Tab");
    if (await slider.evaluate((each) => each === document.activeElement)) break;
    if (/^Python program/.test((await focused(page))?.name ?? "")) await page.keyboard.press("Escape");
  }
  await expect.poll(async () => (await focused(page))?.shown).toBe(true);
  await page.keyboard.press("ArrowRight");
  await expect(playground.output).toContainText("n 4");

  await page.locator("#menu-button").focus();
  await page.keyboard.press("Enter");
  await expect(page.locator("#menu")).toBeVisible();
  for (let presses = 0; presses < 20; presses++) {
    const at = await focused(page);
    await expect.poll(async () => (await focused(page))?.shown, at?.name).toBe(true);
    if (at?.name === "Notebook of cells") break;
    await page.keyboard.press("ArrowDown");
  }
  await page.keyboard.press("Enter");
  await expect(page.locator(".notebook")).toBeVisible();
});

test("on a phone Run stays in view, and hints are of what a phone has", async ({ browser, weftSite }) => {
  const phone = await browser.newContext({ viewport: { width: 375, height: 667 }, hasTouch: true, isMobile: true });
  const page = await phone.newPage();
  const console = listen(page);
  await page.goto(weftSite);
  await expect(page.locator("#state")).toHaveText("Ready");
  await expect(page.locator(".placeholder")).not.toContainText(/Ctrl|⌘/);
  await expect(page.locator(".placeholder")).toContainText("Run");
  await expect(page.locator("kbd:visible")).toHaveCount(0);
  await openFile(page, "everybody.py", `${FIGURE}${"# a line\n".repeat(60)}for k in range(60): print(k)\n`);
  await page.locator("#run").tap();
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await expect(page.locator(".figure-plot canvas")).toBeVisible();
  for (const share of [0, 0.5, 1]) {
    await page.evaluate((part) => scrollTo(0, part * document.documentElement.scrollHeight), share);
    await expect(page.locator("#run")).toBeInViewport({ ratio: 1 });
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide, "nothing stands out of the page").toBeLessThanOrEqual(375);
  expect(console).toEqual([]);
  await phone.close();
});

test("nothing on the page jumps while it boots and runs", async ({ browser, weftSite }) => {
  for (const width of [1280, 375]) {
    const visitor = await browser.newContext({ viewport: { width, height: 800 } });
    const page = await visitor.newPage();
    await page.addInitScript(() => {
      const shifts: { value: number; what: string[] }[] = [];
      Object.assign(window, { shifts });
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries() as (PerformanceEntry & { value: number; sources: { node: Node }[] })[]) {
          const name = (node: Node | null) => (node instanceof Element ? `${node.id}.${node.className}` : String(node));
          shifts.push({ value: entry.value, what: entry.sources.map(({ node }) => name(node)) });
        }
      }).observe({ type: "layout-shift", buffered: true });
    });
    const playground = new Playground(page, weftSite);
    await playground.open();
    await openFile(page, "everybody.py", FIGURE);
    await page.locator("#run").click();
    await expect(page.locator("#state")).toHaveText("Done on Wasm");
    await expect(page.locator(".figure-plot canvas")).toBeVisible();
    const shifts = await page.evaluate(() => (window as unknown as { shifts: { value: number }[] }).shifts);
    const sum = shifts.reduce((total, { value }) => total + value, 0);
    expect(sum, `${width} px: ${JSON.stringify(shifts)}`).toBeLessThan(0.02);
    await visitor.close();
  }
});
