/** What a first visit transfers, and how the page gets what that leaves on the server. */
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { close, countSent, serve } from "../../tools/web/serve.mjs";
import { expect, Playground } from "../fixtures/site.js";
import { root, test } from "../fixtures/weft.js";

/** The most that a first visit may transfer, in bytes as the server sends them. */
const LIMIT = 7_000_000;
const GZIP_LIMIT = 7_500_000;

/**
 * What a host that does not know of the `.br` files sends for an address: text and WebAssembly in gzip, archives as
 * they are.
 */
function elsewhere(url: string): number {
  const name = new URL(url, "http://site/").pathname.replace(/\/$/, "/index.html");
  const data = fs.readFileSync(path.join(root, "build/site", name));
  return /\.(html|css|js|mjs|json|svg|wasm)$/.test(name) ? zlib.gzipSync(data).length : data.length;
}

/** The archives that the page fetched for an import. */
const later = (requests: string[]): string[] =>
  requests.map((url) => /\/later\/(\w+)-\w+\.zip$/.exec(url)?.[1]).filter((name) => name !== undefined);

test("a first visit transfers at most 7 MB up to its first result, little more with gzip alone", async ({
  browser,
}) => {
  const { server, url, log } = await serve(path.join(root, "build/site"));
  const sent = countSent(server);
  const visitor = await browser.newContext(); // with a cache of its own, which is empty
  const playground = new Playground(await visitor.newPage(), url);
  await playground.open();
  expect(await playground.runToEnd("import weft.numpy as jnp\njnp.arange(3) + 1")).toBe(
    "Array([1, 2, 3], dtype=int32)\n",
  );
  expect(later(log)).toEqual([]);
  const cold = sent.bytes();
  expect(cold).toBeLessThanOrEqual(LIMIT);
  expect(cold).toBeGreaterThan(2_000_000); // Python alone
  expect([...new Set(log)].map(elsewhere).reduce((sum, bytes) => sum + bytes)).toBeLessThanOrEqual(GZIP_LIMIT);

  await playground.open();
  expect(sent.bytes() - cold).toBeLessThan(20_000); // the page asks whether index.html has changed
  await visitor.close();
  await close(server);
});

test("the first result, from this server alone, without NumPy", async ({ playground, requests, weftSite }) => {
  await playground.open();
  expect(await playground.runToEnd("import weft\nweft.numpy.arange(3) + 1")).toBe("Array([1, 2, 3], dtype=int32)\n");
  expect(await playground.runToEnd("import importlib.util\nprint(importlib.util.find_spec('numpy'))")).toBe("None\n");
  // Workers that share programs' loops start from a blob of the page.
  expect(requests.filter((url) => !url.replace(/^blob:/, "").startsWith(weftSite))).toEqual([]);
});

test("a module that the first visit left on the server arrives when it is imported, its archive once", async ({
  playground,
  requests,
}) => {
  await playground.open();
  // Not an import statement, whose module the page would look for in the package index.
  const missing = ["import importlib", "try: importlib.import_module('nothing_such')"];
  missing.push("except ModuleNotFoundError as error: print(error)");
  expect(await playground.runToEnd(missing.join("\n"))).toBe("No module named 'nothing_such'\n");
  expect(later(requests)).toEqual([]);
  const standard = ["import unittest.mock, argparse", "print(unittest.mock.Mock(), '€'.encode('iso8859_15'))"];
  expect(await playground.runToEnd(standard.join("\n"))).toMatch(/^<Mock id='\d+'> b'\\xa4'\n$/);
  expect(later(requests)).toEqual(["python_stdlib"]);
  const language = [
    "import weft",
    "from weft.scipy.stats import norm",
    "print(norm.cdf(0.0), weft.image.resize.__name__)",
  ];
  expect(await playground.runToEnd(language.join("\n"))).toBe("0.5 resize\n");
  expect(later(requests)).toEqual(["python_stdlib", "weft"]);
});

test("every module that the first visit left on the server can be found", async ({ playground }) => {
  await playground.open();
  const program = [
    "import sys",
    "from weft_later import LaterFinder",
    "for finder in sys.meta_path:",
    "    if isinstance(finder, LaterFinder):",
    "        print(len(finder.modules) > 0, [name for name in finder.modules if finder.find_spec(name) is None])",
  ];
  expect(await playground.runToEnd(program.join("\n"))).toMatch(/^(True \[\]\n){5}$/);
});

test("help fetches docstrings, once, which the language then has everywhere", async ({ playground, requests }) => {
  await playground.open();
  const docstrings = (): number => requests.filter((url) => url.includes("/later/docstrings-")).length;
  const before = ["import inspect, weft, weft.numpy as jnp", "print(jnp.sin.__doc__.splitlines()[0])"];
  expect(await playground.runToEnd(before.join("\n"))).toMatch(/^help\(\) fetches this docstring \[\d+\]\n$/);
  expect(docstrings()).toBe(0);
  const text = await playground.runToEnd("import weft.numpy as jnp\nhelp(jnp.sin)");
  expect(text).toContain("sin(x");
  expect(text).toContain("Example:");
  expect(text).not.toContain("fetches this docstring");
  const after = [
    "import inspect, gc, types, weft, weft.numpy as jnp",
    "import weft.scipy.stats", // from an archive of its own
    "shown = [weft, weft.jit, jnp.sin, jnp.add, weft.scipy.stats, weft.scipy.stats.norm.pdf]",
    "print([thing for thing in shown if len(inspect.getdoc(thing)) < 20])",
    "kinds = (type, property, types.FunctionType, types.ModuleType)",
    "things = [thing for thing in gc.get_objects() if type(thing) in kinds]",
    "print([thing for thing in things if 'fetches this docstring' in str(thing.__doc__)])",
  ];
  expect(await playground.runToEnd(after.join("\n"))).toBe("[]\n[]\n");
  expect(docstrings()).toBe(1);
});

test("help without docstrings says so and shows the signature", async ({ playground, page }) => {
  await playground.open();
  const program = "import weft.numpy as jnp\nhelp(jnp.where)";
  const archives = "**/later/docstrings-*";
  await page.context().route(archives, (route) => route.fulfill({ status: 503, body: "busy" }));
  expect(await playground.runToEnd(program)).toMatch(
    /^Docstrings are fetched .* the server answered 503 for .*\nwhere\(condition: .*\n$/,
  );
  await page.context().unroute(archives);
  expect(await playground.runToEnd(program)).toContain("Example:");
});

test("an import whose archive can't be fetched says so, and works when it can be", async ({ playground, page }) => {
  await playground.open();
  const program =
    "try: import weft.scipy.stats as stats\nexcept ImportError as error: print(error)\n" +
    "else: print(stats.norm.cdf(0.0))";
  const archives = "**/later/**";
  await page.context().route(archives, (route) => route.fulfill({ status: 503, body: "busy" }));
  expect(await playground.runToEnd(program)).toMatch(
    /^weft\.scipy\.stats is fetched when .* the server answered 503 for .*\n$/,
  );
  await page.context().unroute(archives);
  expect(await playground.runToEnd(program)).toBe("0.5\n");
});

test("an example that can't be fetched is named", async ({ playground, page }) => {
  await playground.open("#example=mandelbrot");
  await page.route("**/gallery/gaussian_process.py", (route) => route.abort());
  await page.evaluate(() => (location.hash = "#example=gaussian_process"));
  await expect(playground.notices).toContainText("could not be opened: the server can't be reached");
  await expect(page.locator("#title")).toHaveValue("The Mandelbrot set");
});
