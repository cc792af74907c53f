import { WebSocketServer } from "ws";
import { expect, Playground, test } from "../fixtures/site.js";

test("the page boots, runs code, and asks nobody but its own server", async ({ playground, requests, site, page }) => {
  const problems: string[] = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  await playground.open();
  expect(await playground.runToEnd("import weft.numpy\nweft.numpy.arange(3) + 1")).toBe(
    "Array([1, 2, 3], dtype=int32)\n",
  );
  expect(requests.length).toBeGreaterThan(5);
  expect(requests.filter((url) => !url.replace(/^blob:/, "").startsWith(site) && !url.startsWith("data:"))).toEqual([]);
  expect(problems).toEqual([]);
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
});

test("Run pressed while Python starts waits for it", async ({ page, site }) => {
  await page.addInitScript(() => localStorage.setItem("weft:source", "print(6 * 7)"));
  await page.goto(site);
  await page.locator("#run").click();
  await expect(page.locator(".output")).toHaveText("42\n");
});

test("output comes line by line while the program runs", async ({ playground }) => {
  await playground.open();
  await playground.run("import time\nfor i in range(4):\n    print('line', i)\n    time.sleep(0.8)\nprint('end')");
  await expect(playground.output).toContainText("line 0");
  await expect(playground.output).toContainText("line 1");
  expect(await playground.output.textContent()).not.toContain("end");
  await expect(playground.output).toContainText("end");
});

test("text without a newline, errors, and other alphabets come through", async ({ playground, page }) => {
  await playground.open();
  const text = await playground.runToEnd(
    "import sys\nprint('a', end='', flush=True)\nprint('b', file=sys.stderr)\n" +
      "print('Weberei: Kette und Schu\\u00df \\U0001f9f5')",
  );
  expect(text).toContain("Weberei: Kette und Schu\u00df \u{1f9f5}");
  await expect(page.locator(".output .stderr")).toHaveText("b\n");
});

test("waiting works: run_sync, and await at top level", async ({ playground }) => {
  await playground.open();
  const text = await playground.runToEnd(
    [
      "import asyncio, js",
      "from pyodide.ffi import run_sync, can_run_sync",
      "def inner(): return run_sync(js.Promise.resolve(41))",
      "print(can_run_sync(), inner() + 1)",
      "await asyncio.sleep(0.01)",
      "print('after', can_run_sync(), inner())",
    ].join("\n"),
  );
  expect(text).toBe("True 42\nafter True 41\n");
});

test("a run starts from a clean namespace", async ({ playground }) => {
  await playground.open();
  await playground.runToEnd("left_over = 1");
  expect(await playground.runToEnd("print('left_over' in globals(), __name__)")).toBe("False __main__\n");
});

test("Stop interrupts a loop, and Python goes on living", async ({ playground, page }) => {
  await playground.open();
  await page.evaluate(() => performance.clearMarks("weft:ready"));
  await playground.run("print('started')\nwhile True:\n    pass");
  await expect(playground.output).toContainText("started");
  await page.locator("#stop").click();
  await expect(page.locator("#state")).toHaveText("Stopped");
  await expect(playground.output).toContainText("Stopped.");
  expect(await playground.runToEnd("1 + 1")).toBe("2\n");
  // The same worker answered: no second boot.
  expect(await page.evaluate(() => performance.getEntriesByName("weft:ready").length)).toBe(0);
});

test("Stop also ends what can't be interrupted, by starting Python again", async ({ playground, page }) => {
  await playground.open();
  await playground.run(
    "import js\nfrom pyodide.ffi import run_sync\nprint('started')\nrun_sync(js.eval('new Promise(() => {})'))",
  );
  await expect(playground.output).toContainText("started");
  await page.locator("#stop").click();
  await expect(playground.notices).toContainText("it was started again");
  await expect(page.locator("#state")).toHaveText("Ready");
  expect(await playground.runToEnd("1 + 1")).toBe("2\n");
});

test("a traceback names the user's line, which the editor marks", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd("def f(x):\n    return 1 / x\n\nf(0)", "Failed");
  const failure = page.locator(".failure");
  await expect(failure).toContainText("ZeroDivisionError");
  await expect(failure).toContainText("return 1 / x");
  await expect(failure).not.toContainText("weft_playground");
  await expect(failure.getByRole("button")).toHaveText("line 2");
  await expect(page.locator(".cm-error-line")).toHaveText("    return 1 / x");
  await page.locator(".cm-content").click();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.insertText("\n");
  await expect(page.locator(".cm-error-line")).toHaveCount(0);
});

test("an error below the user's code still names the user's line; the rest is behind a click", async ({
  playground,
  page,
}) => {
  await playground.open();
  await playground.runToEnd("import json\njson.loads('{')", "Failed");
  await expect(page.locator(".cm-error-line")).toHaveText("json.loads('{')");
  await expect(page.locator(".failure summary")).toHaveText("Full traceback");
});

test("a syntax error is shown with its place", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd("x = 1\nif x\n    print(x)", "Failed");
  await expect(page.locator(".failure")).toContainText("SyntaxError: expected ':'");
  await expect(page.locator(".cm-error-line")).toHaveText("if x");
});

test("Python sees the devices of the contract", async ({ playground }) => {
  await playground.open();
  const text = await playground.runToEnd(
    [
      "import _weft_page as page",
      "from array import array",
      "p = page.device.alloc(16)",
      "page.device.view(p, 16).assign(memoryview(array('f', [1, 2, 3, 4])).cast('B'))",
      "back = array('f', bytes(16)); page.device.view(p, 16).assign_to(memoryview(back).cast('B'))",
      "print(page.version, p % 64, back.tolist(), 'simd128' in page.features.to_py(), bool(page.gpu))",
      "try: page.device.free(3)",
      "except Exception as error: print(type(error).__name__, error.name, error.message[:8])",
    ].join("\n"),
  );
  expect(text).toBe("1 0 [1.0, 2.0, 3.0, 4.0] True False\nJsException WeftRuntimeError free(3):\n");
});

test("the host backend connects with address and token, over the page's socket", async ({ playground, page }) => {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await new Promise((resolve) => server.once("listening", resolve));
  server.on("connection", (socket) =>
    socket.on("message", (token) => socket.send(Buffer.from(`hello ${String(token)}`))),
  );
  const { port } = server.address() as { port: number };
  await playground.open();
  await page.getByRole("radio", { name: "Host" }).check();
  await page.locator("#host-url").fill(`ws://127.0.0.1:${port}`);
  await page.locator("#host-token").fill("sesame");
  const text = await playground.runToEnd("import weft\nprint(weft.config.values)", "Done on host");
  expect(text).toBe("host said hello sesame\n{'jax_platforms': 'remote'}\n");
  await page.locator("#host-url").fill("ws://127.0.0.1:1");
  await playground.runToEnd("1", "Failed");
  await expect(page.locator(".failure")).toContainText("no connection to ws://127.0.0.1:1");
  server.close();
});

test("Ctrl-Enter runs, and a shared address carries the program", async ({ playground, page, site }) => {
  await playground.open();
  await playground.write("print('shared')");
  await page.keyboard.press("ControlOrMeta+Enter");
  await expect(playground.output).toHaveText("shared\n");
  await page.locator("#share").click();
  await expect(page).toHaveURL(/#doc=1\./);
  const { hash } = new URL(page.url());
  await page.goto("about:blank");
  await new Playground(page, site).open(hash);
  await expect(page.locator(".cm-content")).toHaveText("print('shared')");
});

test("examples can be chosen", async ({ playground, page }) => {
  await playground.open();
  const names = await (await playground.documents()).locator("#examples b").allTextContents();
  expect(names.length).toBeGreaterThanOrEqual(4);
  await page.keyboard.press("Escape");
  for (const name of names) {
    await (await playground.documents()).locator("#examples").getByText(name, { exact: true }).click();
    await expect(page.locator("#title")).toHaveValue(name);
    await expect(page.locator(".cm-content")).toContainText("import");
  }
});

test("both themes render, by the system and by choice", async ({ page, site }) => {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(site);
  const light = await paper();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await paper();
  expect(dark).not.toBe(light);
  await page.locator("#theme").click();
  expect(await paper()).toBe(light);
  await page.reload();
  await expect.poll(paper).toBe(light);
});

test("the page fits a narrow window and can be used by keyboard", async ({ playground, page }) => {
  await page.setViewportSize({ width: 390, height: 800 });
  await playground.open();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await page.locator("#documents").focus();
  const reached = new Set<string>();
  for (let i = 0; i < 10; i++) {
    reached.add(
      await page.evaluate(() => document.activeElement?.id || document.activeElement?.getAttribute("name") || ""),
    );
    await page.keyboard.press("Tab");
  }
  expect([...reached]).toEqual(expect.arrayContaining(["documents", "title", "backend", "run", "share", "theme"]));
});

test("without isolation headers it works, Stop restarts, and a service worker isolates the second visit", async ({
  browser,
  plainSite,
}) => {
  const visitor = await browser.newContext();
  const page = await visitor.newPage();
  const playground = new Playground(page, plainSite);
  await playground.open();
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(false);
  await playground.run("print('started')\nwhile True: pass");
  await expect(playground.output).toContainText("started");
  await page.locator("#stop").click();
  await expect(playground.notices).toContainText("it was started again");
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  await playground.open();
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
  expect(await playground.runToEnd("1 + 1")).toBe("2\n");
  await visitor.close();
});
