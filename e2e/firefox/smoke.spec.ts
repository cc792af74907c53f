/** The page in Firefox: does it start, compute, draw, fail in the right place and stop, with nothing in the console? */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect, test as base } from "@playwright/test";
import { findFirefox, MISSING } from "../../tools/find-firefox.mjs";
import { close, serve } from "../../tools/web/serve.mjs";
import { python, root } from "../fixtures/weft.js";
import { Firefox, type FirefoxPage } from "./bidi.js";

const folder = path.join(root, "build/e2e/firefox-pages");

interface Shared {
  firefox: Firefox;
  site: string;
}

const test = base.extend<{ tab: FirefoxPage }, Shared>({
  firefox: [
    async ({}, use) => {
      const executable = findFirefox();
      if (!executable) throw new Error(MISSING);
      const firefox = await Firefox.launch(executable);
      await use(firefox);
      await firefox.close();
    },
    { scope: "worker", timeout: 90_000 },
  ],
  site: [
    async ({}, use) => {
      const { server, url } = await serve(path.join(root, "build/site"));
      await use(url);
      await close(server);
    },
    { scope: "worker" },
  ],
  tab: async ({ firefox }, use) => {
    firefox.said.length = 0;
    const tab = await firefox.page();
    await use(tab);
    await tab.close();
    expect(firefox.said, "the console").toEqual([]);
  },
});

test.skip(!findFirefox(), MISSING);

/** Opens a program as a reader does who chooses a file, and runs it. */
async function run(tab: FirefoxPage, source: string): Promise<void> {
  fs.mkdirSync(folder, { recursive: true });
  const file = path.join(folder, "smoke.py");
  fs.writeFileSync(file, source);
  await tab.choose("#open-file", file);
  await expect.poll(() => tab.text("#document .cm-content")).toBe(source.replaceAll("\n", ""));
  await tab.click("#run");
}

const state = (tab: FirefoxPage) => expect.poll(() => tab.text("#state"), { timeout: 20_000 });

const PROGRAM = `import weft, weft.numpy as jnp
from weft import plot
f = weft.jit(lambda x: jnp.tanh(x @ x).sum())
print("sum", round(float(f(jnp.ones((16, 16)))), 3), f(jnp.ones((16, 16))).devices())
x = jnp.linspace(0.0, 6.0, 50)
plot.image(jnp.outer(x, x))
`;

test("the playground starts, runs a compiled function on Wasm and draws", async ({ tab, site }) => {
  await tab.goto(site);
  await state(tab).toBe("Ready");
  expect(await tab.evaluate(() => crossOriginIsolated, null)).toBe(true);
  await run(tab, PROGRAM);
  await state(tab).toBe("Done on Wasm");
  expect(await tab.text(".output")).toContain("sum 256.0 {WasmDevice(id=0)}");
  // The canvas holds the colours of the picture.
  await expect
    .poll(() =>
      tab.evaluate(
        () =>
          [...document.querySelectorAll<HTMLCanvasElement>(".figure-plot canvas")].map((canvas) => {
            const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
            const colours = new Set(new Uint32Array(data.buffer));
            return colours.size > 20;
          }),
        null,
      ),
    )
    .toEqual([true]);
  await tab.point(".figure-plot");
  await expect.poll(() => tab.text(".figure-tip")).toMatch(/row\d+column\d+value[\d.]+/);
  await tab.screenshot(path.join(root, "build/e2e/firefox-playground.png"));
});

test("an error is at its line, typed text runs, and Stop ends a loop", async ({ tab, site }) => {
  await tab.goto(site);
  await state(tab).toBe("Ready");
  await run(tab, "import weft.numpy as jnp\nx = jnp.ones(3)\ny = x @ jnp.ones(4)\n");
  await state(tab).toBe("Failed");
  expect(await tab.text(".failure")).toMatch(/line 3|:3/);
  await expect.poll(() => tab.text(".cm-error-line")).toContain("y = x @ jnp.ones(4)");

  await tab.click("#document .cm-content");
  const [control, enter] = ["\uE009", "\uE007"];
  await tab.chord(control, "a");
  await tab.type("print(6 * 7)");
  await tab.chord(control, enter);
  await state(tab).toBe("Done on Wasm");
  expect(await tab.text(".output")).toBe("42\n");

  const loop = ["import weft, weft.numpy as jnp", "f = weft.jit(lambda x: x + 1)", "x = jnp.ones(9)", "print('on')"];
  await run(tab, `${loop.join("\n")}\nwhile True:\n    x = f(x)\n`);
  await expect.poll(() => tab.text(".output")).toContain("on");
  const before = Date.now();
  await tab.click("#stop");
  await state(tab).toBe("Stopped");
  expect(Date.now() - before).toBeLessThan(5_000);
  await run(tab, "print('goes on')\n");
  await state(tab).toBe("Done on Wasm");
  expect(await tab.text(".output")).toContain("goes on");
});

/** Serves the pages that a test writes. */
async function served(tab: FirefoxPage, page: string, use: () => Promise<void>): Promise<void> {
  const { server, url } = await serve(folder, { isolated: false });
  await tab.goto(`${url}${page}`);
  await use();
  await close(server);
}

test("an exported program runs in its page", async ({ tab }) => {
  fs.mkdirSync(folder, { recursive: true });
  const program = [
    "import sys, weft, weft.numpy as jnp",
    "from weft import export",
    "export.web(lambda x: 2 * x, jnp.zeros(2), path=sys.argv[1], name='twice')",
  ];
  execFileSync(python, ["-c", program.join("\n"), path.join(folder, "exported")], { stdio: "inherit" });
  await served(tab, "exported/twice.html", async () => {
    await expect.poll(() => tab.text("#run:enabled")).toBe("Run");
    await tab.click("textarea");
    await tab.chord("\uE009", "a");
    await tab.type("1, 2");
    await tab.click("#run");
    await expect.poll(() => tab.text("#results output")).toBe("2");
  });
});

test("a cell in a page of its own runs", async ({ tab }) => {
  const shared = await serve(path.join(root, "build/site"), { isolated: true, shared: true });
  fs.mkdirSync(folder, { recursive: true });
  const source = "import weft.numpy as jnp\njnp.arange(4) ** 2";
  fs.writeFileSync(
    path.join(folder, "cell.html"),
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>cell</title><link rel="icon" href="data:,">' +
      `<script type="module" src="${shared.url}weft-cell.js"></script><weft-cell><pre>${source}</pre></weft-cell></html>`,
  );
  const inside = (selector: string) =>
    tab.evaluate((given) => {
      const element = document.querySelector("weft-cell")!;
      return (element.shadowRoot ?? element).querySelector(given)?.textContent ?? null;
    }, selector);
  await served(tab, "cell.html", async () => {
    await expect.poll(() => inside(".run")).not.toBe(null);
    await tab.evaluate(() => {
      const element = document.querySelector("weft-cell")!;
      (element.shadowRoot ?? element).querySelector<HTMLElement>(".run")!.click();
    }, null);
    await expect.poll(() => inside(".output"), { timeout: 60_000 }).toContain("0, 1, 4, 9");
  });
  await close(shared.server);
});
