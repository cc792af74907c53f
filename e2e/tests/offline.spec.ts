/** Without a network: what was used before works, and a new version of the site comes as a whole or not at all. */
import fs from "node:fs";
import path from "node:path";
import type { Browser, BrowserContext, Page } from "@playwright/test";
import { expect, Playground } from "../fixtures/site.js";
import { root, test } from "../fixtures/weft.js";
import { close, portOf, serve } from "../../tools/web/serve.mjs";

const TARGET = path.join(root, "build/e2e/offline");

/** A server of a folder that can be stopped, and started again at its address with the same folder or another. */
class Site {
  private running: Awaited<ReturnType<typeof serve>>["server"] | null = null;
  private port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  async start(folder: string): Promise<string[]> {
    await this.stop();
    const { server, log } = await serve(folder, { port: this.port });
    this.running = server;
    this.port = portOf(server);
    return log;
  }

  async stop(): Promise<void> {
    if (this.running) await close(this.running);
    this.running = null;
  }
}

/** The browser's own cache must not be what answers. */
async function forget(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.clearBrowserCache");
  await session.detach();
}

/** Waits until the service worker has all that it keeps. */
const installed = (page: Page): Promise<void> =>
  page.evaluate(async () => {
    await navigator.serviceWorker.ready;
    while (!navigator.serviceWorker.controller) await new Promise((resolve) => setTimeout(resolve, 20));
  });

async function visitor(browser: Browser, site: Site): Promise<{ context: BrowserContext; playground: Playground }> {
  const context = await browser.newContext();
  return { context, playground: new Playground(await context.newPage(), site.url) };
}

test("from the second visit on the page boots and runs without a server, with what was used before", async ({
  browser,
}) => {
  test.setTimeout(180_000);
  const folder = path.join(TARGET, "site");
  fs.rmSync(folder, { recursive: true, force: true });
  fs.cpSync(path.join(root, "build/site"), folder, { recursive: true });
  fs.mkdirSync(path.join(folder, "docs"), { recursive: true });
  fs.writeFileSync(path.join(folder, "docs/index.html"), "<!doctype html><title>docs</title><h1>Documentation</h1>");
  const site = new Site();
  await site.start(folder);
  const { context, playground } = await visitor(browser, site);
  const { page } = playground;
  const program = "import weft.numpy as jnp\nprint(jnp.arange(3) + 1)";
  await playground.open();
  await installed(page);

  await site.stop();
  await forget(page);
  await playground.open();
  expect(await playground.runToEnd(program)).toBe("[1 2 3]\n");
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
  await playground.run("import toolz");
  await expect(page.locator("#state")).toHaveText("Failed"); // never used here

  await site.start(folder);
  await playground.open();
  const used = "import toolz, weft.scipy.stats as stats\nfrom weft import plot\n";
  const shown = `${used}plot.line([1, 2], [3, 4])\nplot.show()\nprint(toolz.first([6]), stats.norm.cdf(0.0))`;
  const result = await playground.runToEnd(shown);
  expect(result).toBe("6 0.5\n");
  await expect(page.locator(".figure-plot canvas")).toBeVisible();
  await page.goto(`${site.url}docs/`);
  await expect(page.locator("h1")).toHaveText("Documentation");

  await site.stop();
  await forget(page);
  await page.goto(`${site.url}docs/`);
  await expect(page.locator("h1")).toHaveText("Documentation");
  await playground.open("?threads=1"); // a question is not another page
  expect(await playground.runToEnd(shown)).toBe(result);
  await expect(page.locator(".figure-plot canvas")).toBeVisible();
  await context.close();
});

/** A version of the site of the tests whose styles have another name and say which it is. */
function version(name: string): string {
  const folder = path.join(TARGET, name);
  fs.rmSync(folder, { recursive: true, force: true });
  fs.cpSync(path.join(root, "build/e2e/site"), folder, { recursive: true });
  for (const file of ["index.html", "service-worker.js"]) {
    fs.rmSync(path.join(folder, `${file}.br`), { force: true });
    const text = fs.readFileSync(path.join(folder, file), "utf8");
    const renamed = text.replace(/assets\/style-\w+\.css/g, `assets/style-${name}.css`);
    // The version's name, which the build makes of all files.
    fs.writeFileSync(path.join(folder, file), renamed.replace(/(version:")(\w+)"/, `$1${name}"`));
  }
  const assets = path.join(folder, "assets");
  const [style] = fs.readdirSync(assets).filter((each) => /^style-\w+\.css$/.test(each));
  const text = fs.readFileSync(path.join(assets, style!), "utf8");
  for (const file of [style!, `${style}.br`]) fs.rmSync(path.join(assets, file));
  fs.writeFileSync(path.join(assets, `style-${name}.css`), `${text}:root{--version:${name}}`);
  return folder;
}

/** Which version the page says that it is, by its styles, and which its entry page names. */
const seen = (page: Page) =>
  page.evaluate(() => [
    getComputedStyle(document.documentElement).getPropertyValue("--version"),
    /style-(\w+)\.css/.exec(document.head.innerHTML)?.[1],
  ]);

const stores = (page: Page): Promise<string[]> =>
  page.evaluate(async () => (await caches.keys()).filter((name) => name.startsWith("weft-boot-")));

test("a new version takes the old one's place as a whole; one that can't be fetched takes nothing", async ({
  browser,
}) => {
  test.setTimeout(180_000);
  const site = new Site();
  await site.start(version("one"));
  const { context, playground } = await visitor(browser, site);
  await playground.open();
  await installed(playground.page);
  expect(await stores(playground.page)).toEqual(["weft-boot-one"]);

  // The third one can't be fetched as a whole: offline, the first goes on.
  const broken = version("broken");
  fs.rmSync(path.join(broken, "favicon.svg"));
  const log = await site.start(broken);
  await playground.open();
  await expect.poll(() => log.filter((name) => name.startsWith("/favicon.svg")).length).toBeGreaterThan(0);
  await expect.poll(() => stores(playground.page)).toEqual(["weft-boot-one"]);
  await site.stop();
  await forget(playground.page);
  await playground.open();
  expect(await seen(playground.page)).toEqual(["one", "one"]);

  await site.start(version("two"));
  await playground.open();
  expect(await seen(playground.page)).toEqual(["two", "two"]);
  await expect.poll(async () => (await stores(playground.page)).includes("weft-boot-two")).toBe(true);
  await playground.page.close(); // the last page of the old version
  const later = new Playground(await context.newPage(), site.url);
  await later.open();
  await expect.poll(() => stores(later.page)).toEqual(["weft-boot-two"]);
  await site.stop();
  await forget(later.page);
  await later.open();
  expect(await seen(later.page)).toEqual(["two", "two"]);
  await context.close();
});
