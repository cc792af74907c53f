/**
 * A library that depends on jax, installed in a page by micropip: weft stands for jax, and no index is asked for it.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { python, root, test } from "../fixtures/weft.js";
import { expect } from "../fixtures/site.js";

const library = path.join(root, "build/e2e/library");

test("micropip installs a library that requires jax and jaxlib, and it runs", async ({
  playground,
  requests,
  visitor,
  weftSite,
}) => {
  execFileSync(python, [path.join(root, "e2e/fixtures/make_library.py"), library]);
  const [wheel] = fs.readdirSync(library).filter((name) => name.endsWith(".whl"));
  await visitor.route("**/wheels/*", (route) => route.fulfill({ path: path.join(library, wheel!) }));
  const elsewhere = (url: URL) => !url.href.startsWith(weftSite) && url.protocol.startsWith("http");
  await visitor.route(elsewhere, (route) => route.abort());
  const slopes = `${weftSite}wheels/${wheel}`;

  await playground.open();
  // Without weft in jax's place, an index is asked for jax: what the second program must not do.
  const asking = [
    "import micropip",
    "try:",
    `    await micropip.install("${slopes}")`,
    "except Exception as error:",
    "    print(type(error).__name__)",
  ].join("\n");
  expect(await playground.runToEnd(asking)).toContain("Error");
  expect(requests.filter((url) => /\/jax(lib)?\b/.test(url))).not.toEqual([]);

  requests.length = 0;
  const program = [
    "import weft.as_jax",
    "import importlib.metadata, micropip",
    `await micropip.install("${slopes}")`,
    'print([importlib.metadata.version(name) for name in ("slopes", "jax", "jaxlib")])',
    'print("slopes" in micropip.list(), "jax" in micropip.list())',
    "import jax",
    'slopes = importlib.import_module("slopes")', // an import statement would ask the index for it before the run
    'print(slopes.slopes({"w": jax.numpy.arange(3.0)})["w"])',
  ].join("\n");
  expect(await playground.runToEnd(program)).toBe(
    ["['1.0', '0.10.2', '0.10.2']", "True False", "[0.         0.6397     0.13621868]\n"].join("\n"),
  );
  expect(requests.filter((url) => !url.includes("/later/"))).toEqual([slopes]); // no jax, no jaxlib
  await visitor.unrouteAll(); // other files use this context too
});
