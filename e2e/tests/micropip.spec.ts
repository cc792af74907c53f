/**
 * A library that depends on jax, installed in a page by micropip: weft stands for jax, and no index is asked for it.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { python, root, test } from "../fixtures/weft.js";
import { expect } from "../fixtures/site.js";

const micropip = path.join(root, "build/micropip");
const library = path.join(root, "build/e2e/library");

test("micropip installs a library that requires jax and jaxlib, and it runs", async ({
  playground,
  requests,
  visitor,
  weftSite,
}) => {
  execFileSync(python, [path.join(root, "e2e/fixtures/make_library.py"), library]);
  const wheels = [micropip, library].flatMap((folder) =>
    fs
      .readdirSync(folder)
      .filter((name) => name.endsWith(".whl"))
      .map((name) => path.join(folder, name)),
  );
  expect(wheels.map((file) => path.basename(file).split("-")[0])).toEqual(["micropip", "slopes"]);
  await visitor.route("**/wheels/*", (route) =>
    route.fulfill({ path: wheels.find((file) => file.endsWith(path.basename(route.request().url())))! }),
  );
  const elsewhere = (url: URL) => !url.href.startsWith(weftSite) && url.protocol.startsWith("http");
  await visitor.route(elsewhere, (route) => route.abort());
  const [installer, slopes] = wheels.map((file) => `${weftSite}wheels/${path.basename(file)}`);

  await playground.open();
  // Without weft in jax's place, an index is asked for jax: what the second program must not do.
  const asking = [
    "import pyodide_js",
    `await pyodide_js.loadPackage("${installer}")`,
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
    "import jax, slopes",
    'print(slopes.slopes({"w": jax.numpy.arange(3.0)})["w"])',
  ].join("\n");
  expect(await playground.runToEnd(program)).toBe(
    ["['1.0', '0.10.2', '0.10.2']", "True False", "[0.         0.6397     0.13621868]\n"].join("\n"),
  );
  expect(requests.filter((url) => !url.includes("/later/"))).toEqual([slopes]); // no jax, no jaxlib
  await visitor.unrouteAll(); // other files use this context too
});
