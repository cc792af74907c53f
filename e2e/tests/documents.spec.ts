/** Documents on the page: nothing that a reader has typed is lost. */
import type { Locator, Page } from "@playwright/test";
import fs from "node:fs";
import { pathToFileURL } from "node:url";
import zlib from "node:zlib";
import { expect, Playground, test } from "../fixtures/site.js";

const source = (page: Page): Locator => page.locator(".script .cm-content");
const notices = (page: Page): Locator => page.locator("#notices");

/** Opens the page; documents don't wait for Python. */
async function visit(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await expect(page.locator(".cm-content").first()).toBeVisible();
}

async function write(page: Page, text: string): Promise<void> {
  await source(page).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

/** The titles of the reader's documents. */
async function titles(page: Page): Promise<string[]> {
  await page.locator("#documents").click();
  const list = page.getByRole("region", { name: "Your documents" });
  await expect(list).toBeVisible();
  const found = await list.locator(".open b").allTextContents();
  await page.keyboard.press("Escape");
  return found.sort();
}

/** Opens one of the reader's documents. */
async function choose(page: Page, title: string): Promise<void> {
  await page.locator("#documents").click();
  await page.getByRole("region", { name: "Your documents" }).locator(".open", { hasText: title }).click();
}

/** Waits until the library has what was typed. */
async function saved(page: Page): Promise<void> {
  await page.keyboard.press("ControlOrMeta+s");
  await expect(notices(page)).toContainText("Every change is kept");
}

async function newScript(page: Page, title: string, text: string): Promise<void> {
  await page.locator("#menu-button").click();
  await page.locator("#menu").getByText("New script", { exact: true }).click();
  await expect(source(page)).toHaveText("");
  await page.locator("#title").fill(title);
  await page.locator("#title").press("Enter");
  await write(page, text);
  await saved(page);
}

function link(text: string, parts: object = {}): string {
  const value = { title: "Shared", form: "script", options: { backend: "wasm", x64: false }, cells: [["code", text]] };
  return `#doc=1.${zlib.deflateSync(JSON.stringify({ ...value, ...parts })).toString("base64url")}`;
}

test("edits after opening a link are there after a reload, at once", async ({ page, site }) => {
  await visit(page, site + link("print('theirs')"));
  await expect(source(page)).toHaveText("print('theirs')");
  await write(page, "print('mine now')");
  await expect.poll(() => page.url()).not.toContain("#");
  // Without waiting for the autosave.
  await page.reload();
  await expect(source(page)).toHaveText("print('mine now')");
  expect(await titles(page)).toEqual(["Shared"]);
});

test("text typed right before the page is closed is there at the next visit", async ({ page, site, visitor }) => {
  const first = await visitor.newPage();
  await visit(first, site);
  await newScript(first, "Mine", "x = 1");
  await write(first, "x = 2");
  await first.close({ runBeforeUnload: true });
  await expect.poll(() => first.isClosed()).toBe(true);
  await visit(page, site);
  await expect(source(page)).toHaveText("x = 2");
});

test("a link never writes over the reader's own program", async ({ page, site }) => {
  await visit(page, site);
  await newScript(page, "Mine", "mine = 1");
  await visit(page, site + link("theirs = 1"));
  await page.reload();
  await expect(source(page)).toHaveText("theirs = 1");
  await source(page).click();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.type("!");
  await saved(page);
  expect(await titles(page)).toEqual(["Mine", "Shared"]);
  await choose(page, "Mine");
  await expect(source(page)).toHaveText("mine = 1");
});

test("looking at links and examples leaves no documents behind", async ({ page, site }) => {
  await visit(page, site + link("theirs = 1"));
  expect(await titles(page)).toEqual([]);
});

test("the same link again offers the copy that was changed", async ({ page, site }) => {
  const address = site + link("theirs = 1");
  await visit(page, address);
  await write(page, "changed = 1");
  await saved(page);
  await visit(page, `${site}?again${link("theirs = 1")}`);
  await expect(source(page)).toHaveText("theirs = 1");
  await notices(page).getByRole("button", { name: "Open it" }).click();
  await expect(source(page)).toHaveText("changed = 1");
});

test("another link pasted into an open tab opens, and keeps what was open", async ({ page, site }) => {
  await visit(page, site);
  await newScript(page, "Mine", "mine = 1");
  await write(page, "mine = 2");
  await page.evaluate((hash) => (location.hash = hash), link("theirs = 1"));
  await expect(source(page)).toHaveText("theirs = 1");
  await page.evaluate((hash) => (location.hash = hash), link("others = 1", { title: "Other" }));
  await expect(source(page)).toHaveText("others = 1");
  await choose(page, "Mine");
  await expect(source(page)).toHaveText("mine = 2");
  expect(await titles(page)).toEqual(["Mine"]);
});

test("links of earlier versions open", async ({ page, site }) => {
  const old = zlib.deflateRawSync("print('old')").toString("base64url");
  await visit(page, `${site}#code=${old}`);
  await expect(source(page)).toHaveText("print('old')");
});

test("a link holds the backend, 64-bit types, title and cells", async ({ page, site }) => {
  await visit(page, site);
  await newScript(page, "Half", "x = 1");
  await page.locator("#menu-button").click();
  await page.locator("#menu").getByText("64-bit types", { exact: true }).click();
  await page.locator("#menu-button").click();
  await page.locator("#menu").getByText("Notebook of cells", { exact: true }).click();
  await page.locator("#backends label", { hasText: "Host" }).click();
  await page.locator("#share").click();
  await expect.poll(() => page.url()).toContain("#doc=1.");
  const shared = page.url();
  await page.goto("about:blank");
  await visit(page, shared);
  await expect(page.locator("#title")).toHaveValue("Half");
  await expect(page.locator(".notebook .cm-content")).toHaveText("x = 1");
  await expect(page.locator("input[value=remote]")).toBeChecked();
  await page.locator("#menu-button").click();
  await expect(page.locator("#menu [aria-checked=true]", { hasText: "64-bit types" })).toBeVisible();
});

for (const [name, fragment, message] of [
  ["damaged", link("x = 1").slice(0, -9), "This link is damaged"],
  ["of something else", "#doc=1.AAAA", "This link is damaged"],
  ["from a newer version", "#doc=2.AAAA", "made by a newer version of this page"],
  ["too large", `#doc=1.${zlib.deflateSync(Buffer.alloc(50_000_000, "x")).toString("base64url")}`, "too large"],
] as const) {
  test(`a link that is ${name} is said to be, and the reader's document opens`, async ({ page, site }) => {
    await visit(page, site);
    await newScript(page, "Mine", "mine = 1");
    await visit(page, `${site}?again${fragment}`);
    await expect(notices(page)).toContainText(message);
    await expect(source(page)).toHaveText("mine = 1");
  });
}

test("two tabs: a clean one follows, and edits in both are both kept", async ({ page, site, visitor }) => {
  await visit(page, site);
  await newScript(page, "Mine", "start = 1");
  const other = await visitor.newPage();
  await visit(other, site);
  await expect(source(other)).toHaveText("start = 1");
  await write(page, "first = 1");
  await expect(source(other)).toHaveText("first = 1");
  await expect(notices(other)).toContainText("Another tab changed this document");
  // Both at the same moment.
  for (const each of [page, other]) {
    await source(each).click();
    await each.keyboard.press("ControlOrMeta+End");
  }
  await Promise.all([page.keyboard.insertText("# here"), other.keyboard.insertText("# there")]);
  await expect
    .poll(async () => [await notices(page).textContent(), await notices(other).textContent()].join())
    .toContain("What you wrote here is now a document of its own.");
  expect(await titles(page)).toEqual(["Mine", "Mine (conflicting copy)"]);
  await choose(page, "Mine (conflicting copy)");
  await expect(page.locator("#title")).toHaveValue("Mine (conflicting copy)");
  const copy = await source(page).textContent();
  await page.locator("#documents").click();
  await page
    .getByRole("region", { name: "Your documents" })
    .locator(".open")
    .filter({ has: page.getByText("Mine", { exact: true }) })
    .click();
  await expect(page.locator("#title")).toHaveValue("Mine");
  expect([copy, await source(page).textContent()].sort()).toEqual(["first = 1# here", "first = 1# there"]);
  await other.close();
});

test("while two tabs are in conflict, typing goes on where it was", async ({ page, site, visitor }) => {
  await visit(page, site);
  await newScript(page, "Mine", "start");
  const other = await visitor.newPage();
  await visit(other, site);
  await expect(source(other)).toHaveText("start");
  await source(other).click();
  await other.keyboard.press("ControlOrMeta+End");
  await write(page, "first");
  // Each key comes while a save or a message may be under way.
  for (const letter of "abcdefghijklmnopqrstuvwxyz") {
    await other.keyboard.press(letter);
    await other.waitForTimeout(40);
  }
  const text = (await source(other).textContent())!;
  expect(text.endsWith("abcdefghijklmnopqrstuvwxyz")).toBe(true);
  await saved(other);
  await other.reload();
  await expect(source(other)).toHaveText(text);
  await other.close();
});

test("leaving a document right after typing saves it where it belongs", async ({ page, site }) => {
  await visit(page, site);
  await newScript(page, "Mine", "x = 1");
  await write(page, "x = 2");
  await page.locator("#documents").click();
  await page.locator("#examples button").first().click();
  await expect(source(page)).not.toHaveText("x = 2");
  expect(await titles(page)).toEqual(["Mine"]);
  await choose(page, "Mine");
  await expect(source(page)).toHaveText("x = 2");
});

test("history: an earlier state comes back, with the newer one kept", async ({ page, site }) => {
  await visit(page, site);
  await newScript(page, "Mine", "first = 1");
  await write(page, "second = 2");
  await saved(page);
  await write(page, "third = 3");
  await page.locator("#documents").click();
  await page.getByRole("button", { name: "History of Mine" }).click();
  await page.getByRole("button", { name: "Restore" }).last().click();
  await expect(source(page)).toHaveText("first = 1");
  await page.locator("#documents").click();
  await page.getByRole("button", { name: "History of Mine" }).click();
  await page.getByRole("button", { name: "Restore" }).first().click();
  await expect(source(page)).toHaveText("third = 3");
});

test("delete, and its undo", async ({ page, site }) => {
  await visit(page, site);
  await newScript(page, "Mine", "x = 1");
  await page.locator("#documents").click();
  await page.getByRole("button", { name: "Delete Mine" }).click();
  await page.keyboard.press("Escape");
  expect(await titles(page)).toEqual([]);
  await notices(page).getByRole("button", { name: "Undo" }).click();
  await expect.poll(() => titles(page)).toEqual(["Mine"]);
  await write(page, "x = 2");
  await saved(page);
  await page.reload();
  await expect(source(page)).toHaveText("x = 2");
  expect(await titles(page)).toEqual(["Mine"]);
});

test("the program of earlier versions is a document", async ({ page, site }) => {
  await page.addInitScript(() => {
    if (!sessionStorage.getItem("set")) localStorage.setItem("weft:source", "old = 1");
    sessionStorage.setItem("set", "yes");
  });
  await visit(page, site);
  await expect(source(page)).toHaveText("old = 1");
  expect(await titles(page)).toEqual(["My program"]);
  await page.reload();
  await expect(source(page)).toHaveText("old = 1");
  expect(await titles(page)).toEqual(["My program"]);
});

test("without a database the page says so, and the text survives a reload all the same", async ({ page, site }) => {
  await page.addInitScript(() => {
    Object.defineProperty(window, "indexedDB", {
      get: () => {
        throw new DOMException("", "SecurityError");
      },
    });
  });
  await visit(page, site);
  await expect(notices(page)).toContainText("This browser does not keep documents");
  await newScript(page, "Mine", "x = 1");
  await page.reload();
  await expect(source(page)).toHaveText("x = 1");
});

test("with all storage blocked the page works", async ({ page, site }) => {
  await page.addInitScript(() => {
    for (const name of ["indexedDB", "localStorage", "sessionStorage"]) {
      Object.defineProperty(window, name, {
        get: () => {
          throw new DOMException("", "SecurityError");
        },
      });
    }
  });
  const playground = new Playground(page, site);
  await playground.open();
  expect(await playground.runToEnd("print(6 * 7)")).toBe("42\n");
  await expect(notices(page)).toContainText("Download what you want to keep");
});

test("a full disk is said, and the text survives a reload all the same", async ({ page, site }) => {
  await page.addInitScript(() => {
    IDBObjectStore.prototype.put = () => {
      throw new DOMException("", "QuotaExceededError");
    };
  });
  await visit(page, site);
  await newScript(page, "Mine", "x = 1");
  await expect(notices(page)).toContainText("“Mine” is not saved: the browser refuses, because its storage is full");
  await page.reload();
  await expect(source(page)).toHaveText("x = 1");
});

/** Chooses an entry of the menu, and gives the file that it downloads. */
async function download(page: Page, text: string): Promise<{ name: string; file: string; data: Buffer }> {
  const coming = page.waitForEvent("download");
  await page.locator("#menu-button").click();
  await page.locator("#menu").getByText(text, { exact: true }).click();
  const arrived = await coming;
  const name = arrived.suggestedFilename();
  const file = test.info().outputPath(name);
  await arrived.saveAs(file);
  return { name, file, data: fs.readFileSync(file) };
}

async function openFile(page: Page, name: string, data: Buffer | string): Promise<void> {
  const buffer = Buffer.from(data);
  await page.locator("#open-file").setInputFiles({ name, mimeType: "application/octet-stream", buffer });
}

const REPORT = `class Table:
    def _repr_html_(self):
        return "<table><tr><td>cell</td></tr></table><script>document.title = 'acted'</script>"

print("a < b")
Table()`;

test("a document goes out as .py, .ipynb and .html with its outputs, and comes back", async ({
  page,
  site,
  visitor,
}) => {
  const playground = new Playground(page, site);
  await playground.open();
  await openFile(page, "report.py", `# %% [markdown]\n# # Report\n#\n# $x^2$\n\n# %%\n${REPORT}\n\n# %%\n1 / 0\n`);
  await expect(page.locator("#title")).toHaveValue("report");
  await expect(page.locator(".notebook .rendered h1")).toHaveText("Report");
  await page.locator("#run").click();
  await expect(page.locator(".failure")).toContainText("ZeroDivisionError");

  const script = await download(page, "Download .py");
  expect(script.name).toBe("report.py");
  expect(script.data.toString()).toContain("# %% [markdown]\n# # Report\n");

  const notebook = JSON.parse((await download(page, "Download .ipynb")).data.toString());
  const [stream, value] = notebook.cells[1].outputs;
  expect(stream).toEqual({ name: "stdout", output_type: "stream", text: ["a < b\n"] });
  expect(value.data["text/html"].join("")).toContain("<table>");
  expect(notebook.cells[2].outputs[0]).toMatchObject({ output_type: "error", ename: "ZeroDivisionError" });

  const html = await download(page, "Download .html with outputs");
  expect(html.name).toBe("report.html");
  const reader = await visitor.newPage();
  const asked: string[] = [];
  reader.on("request", (request) => asked.push(request.url()));
  await reader.goto(pathToFileURL(html.file).href);
  await expect(reader.locator("h1")).toHaveText("Report");
  await expect(reader.locator("math")).toBeVisible();
  await expect(reader.locator("pre.stdout")).toHaveText("a < b");
  await expect(reader.frameLocator("iframe").locator("td")).toHaveText("cell");
  await expect(reader.locator("pre.error")).toContainText("ZeroDivisionError");
  expect(await reader.title()).toBe("report");
  expect(asked.filter((url) => !/^(?:file|data):/.test(url))).toEqual([]);
  const link = await reader.locator("a.open").getAttribute("href");
  await visit(reader, link!);
  await expect(reader.locator(".notebook .rendered h1")).toHaveText("Report");
  await reader.close();

  const sources = () => page.locator(".notebook .cm-content").allInnerTexts();
  const before = await sources();
  for (const [name, data] of [
    [script.name, script.data],
    ["report.ipynb", JSON.stringify(notebook)],
    [html.name, html.data],
  ] as const) {
    await openFile(page, name, data);
    await expect(page.locator(".failure")).toHaveCount(0);
    await expect(page.locator(".notebook .rendered h1")).toHaveText("Report");
    await expect.poll(sources).toEqual(before); // an editor that is being laid out has no lines yet
  }
});

test("all documents go into one file, and come back into another browser", async ({ page, site, browser }) => {
  await visit(page, site);
  await newScript(page, "One", "x = 1");
  await newScript(page, "Two", "x = 2");
  const { name, data } = await download(page, "Download all documents");
  expect(name).toBe("weft-documents.json");
  const context = await browser.newContext();
  const other = await context.newPage();
  await visit(other, site);
  await openFile(other, name, data);
  await expect(notices(other)).toContainText("Documents added from weft-documents.json: 2.");
  expect(await titles(other)).toEqual(["One", "Two"]);
  await openFile(other, name, data);
  await expect(notices(other)).toContainText("Documents added from weft-documents.json: 0; 2 were there already.");
  await context.close();
});

test("files that are damaged are said to be, by name, and change nothing", async ({ page, site }) => {
  await visit(page, site);
  await newScript(page, "Mine", "mine = 1");
  for (const [name, data, message] of [
    ["a.ipynb", "{", "a.ipynb is not JSON, so it is no notebook"],
    ["b.ipynb", '{"nbformat": 3}', "old notebook format 3"],
    ["c.py", "# ---\n# weft:\n#   backend: abacus\n# ---\n", "must be one of"],
    ["d.json", '{"format": "weft-library", "version": 9}', "has version 9"],
    ["e.html", '<script type="application/vnd.weft.document+json">{', "ends within the document"],
  ] as const) {
    await openFile(page, name, data);
    await expect(notices(page)).toContainText(message);
  }
  await expect(source(page)).toHaveText("mine = 1");
  expect(await titles(page)).toEqual(["Mine"]);
});

test("what a notebook had of IPython's is said", async ({ page, site }) => {
  await visit(page, site);
  const cells = [{ cell_type: "code", metadata: {}, source: "%matplotlib inline\n!pip install optax", outputs: [] }];
  await openFile(page, "magic.ipynb", JSON.stringify({ cells, metadata: {}, nbformat: 4, nbformat_minor: 5 }));
  await expect(notices(page)).toContainText("Cell 1, line 1: “%matplotlib inline” is now a comment");
  await expect(page.locator(".notebook .cm-content")).toHaveText("# %matplotlib inline!pip install optax");
});
