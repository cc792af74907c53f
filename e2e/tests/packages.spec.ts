/**
 * Packages that programs import: from the site, from Pyodide's distribution, from the package index, and from the
 * reader. A stand-in for the distribution and one for the index are served on loopback; WEFT_NUMPY_WHEEL names a real
 * wheel of NumPy.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { close, serve } from "../../tools/web/serve.mjs";
import { cell, show } from "../fixtures/cells.js";
import { expect, Playground } from "../fixtures/site.js";
import { python, root, test as base } from "../fixtures/weft.js";

const made = path.join(root, "build/e2e/packages");

const test = base.extend<object, { packagesSite: string }>({
  packagesSite: [
    async ({}, use) => {
      execFileSync(python, [path.join(root, "e2e/fixtures/make_distribution.py"), made]);
      const out = path.join(made, "site");
      const options = ["--out", out, "--python", python, "--index", "simple"];
      const distribution = ["--distribution", path.join(made, "distribution")];
      execFileSync(process.execPath, [path.join(root, "tools/web/build_site.mjs"), ...options, ...distribution]);
      fs.cpSync(path.join(made, "simple"), path.join(out, "simple"), { recursive: true });
      const { server, url } = await serve(out);
      await use(url);
      await close(server);
    },
    { scope: "worker", timeout: 300_000 },
  ],
  playground: async ({ page, packagesSite }, use) => use(new Playground(page, packagesSite)),
});

test.afterEach(async ({ visitor }) => visitor.unrouteAll());

/** What the page asked the packages' folders and the index for. */
const asked = (requests: string[]): string[] =>
  requests.filter((url) => /\/(packages|simple)\/.*(\.whl|\/)$/.test(url)).map((url) => new URL(url).pathname);

const lines = (...all: string[]): string => all.join("\n");

/** Runs a program whose packages come from the index, and lets them. */
async function installing(playground: Playground, source: string, state = "Done on Wasm"): Promise<string> {
  await playground.run(source);
  await playground.page.getByRole("button", { name: "Install" }).click();
  await expect(playground.page.locator("#state")).toHaveText(state);
  return (await playground.output.textContent()) ?? "";
}

test("an import loads what the lock file has for it, dependencies included, with progress", async ({
  playground,
  page,
  requests,
}) => {
  await playground.open();
  expect(await playground.runToEnd("import math\nmath.tau > 6")).toBe("True\n");
  requests.length = 0;
  await page.evaluate(() => {
    const state = document.getElementById("state")!;
    const seen: string[] = [];
    Object.assign(window, { seen });
    new MutationObserver(() => seen.push(state.textContent!)).observe(state, { childList: true });
  });
  expect(await playground.runToEnd("import sklearn\nprint(sklearn.jobs)")).toBe("3\n");
  expect(asked(requests).map((name) => path.basename(name).split("-")[0])).toEqual(
    expect.arrayContaining(["scikit_learn", "joblib"]),
  );
  const seen = await page.evaluate(() => (window as unknown as { seen: string[] }).seen);
  expect(seen).toEqual(expect.arrayContaining([expect.stringMatching(/^Loading scikit-learn/), "Running"]));
  await expect(page.locator("#timings")).toContainText("packages");
  requests.length = 0;
  expect(await playground.runToEnd("import sklearn\nprint(sklearn.jobs)")).toBe("3\n");
  expect(asked(requests)).toEqual([]);
});

test("einops and jaxtyping, which the site serves, work on weft's arrays", async ({ playground, requests }) => {
  await playground.open();
  const types = lines(
    "import jax.numpy as jnp",
    "from jaxtyping import Array, Float",
    "x = jnp.arange(12.0).reshape(3, 4)",
    "print(isinstance(x, Float[Array, '3 4']), isinstance(x, Float[Array, '4 3']))",
  );
  expect(await playground.runToEnd(types)).toBe("True False\n"); // without NumPy
  const axes = lines(
    "import jax, jax.numpy as jnp",
    "from einops import rearrange, reduce",
    "x = jnp.arange(12.0).reshape(3, 4)",
    "print(rearrange(x, 'a b -> (b a)')[:4], jax.jit(lambda x: reduce(x, 'a b -> b', 'sum'))(x))",
  );
  expect(await playground.runToEnd(axes)).toBe("[0. 4. 8. 1.] [12. 15. 18. 21.]\n");
  expect(requests.filter((url) => /\/simple\/|\/jax(lib)?[/-]/.test(url))).toEqual([]);
});

test("what is in no lock file comes from the index, and %pip install works", async ({ playground, requests }) => {
  await playground.open();
  expect(await installing(playground, "import colours\nprint(colours.names)")).toBe("['red']\n");
  const pip = "%pip install -q shapes jax[cuda]\nimport shapes\nprint(shapes.sides)";
  expect(await installing(playground, pip)).toBe("4\n");
  expect(requests.filter((url) => url.includes("/simple/jax"))).toEqual([]);
  expect(await playground.runToEnd("!pip install -r all.txt", "Failed")).toContain("a page can't do '-r'");
});

test("what can't be had says why where it is imported, and a program that catches that goes on", async ({
  playground,
  visitor,
}) => {
  await playground.open();
  const damaged = await playground.runToEnd("x = 1\nimport models", "Failed");
  expect(damaged).toContain("ModuleNotFoundError: No module named 'pandas': models needs it");
  expect(damaged).toContain("is not the file whose hash this site knows (SHA-256)");
  expect(damaged).toContain("line 2");

  await visitor.route("**/far-1.0*", (route) => route.abort());
  const away = await playground.runToEnd("import far", "Failed");
  expect(away).toMatch(/No module named 'far': .* can't be reached\. Run again when the network is there, or drop/);
  await visitor.unrouteAll();
  expect(await playground.runToEnd("import far\nprint(far.away)")).toBe("True\n");

  const caught = lines(
    "import importlib.util",
    "try: import nothing_such",
    "except ImportError as error: print(error)",
    "print(importlib.util.find_spec('nothing_such'))",
  );
  expect(await installing(playground, caught)).toMatch(
    /^No module named 'nothing_such': the package index gave no answer for 'nothing[-_]such'.*\nNone\n$/,
  );
  const own = "open('mine.py', 'w').write('a = 5')\nimport mine\nprint(mine.a)";
  expect(await playground.runToEnd(own)).toBe("5\n");
});

test("the reader is asked before anything comes from the index, and each document remembers", async ({
  playground,
  page,
  requests,
}) => {
  await playground.open();
  const offer = page.getByRole("group", { name: "Packages to install" });
  const [host, index] = [new URL(page.url()).host, () => requests.filter((url) => url.includes("/simple/"))];
  const source = lines(
    "try: import colours",
    "except ImportError as error: print(error)",
    "else: print(colours.names)",
  );

  await playground.run(source);
  await expect(offer).toContainText(`This program asks for colours from ${host}. This site does not keep it`);
  await expect(page.locator("#state")).toHaveText("Waiting for your answer");
  await offer.getByRole("button", { name: "Don’t" }).click();
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await expect(playground.output).toHaveText(
    `No module named 'colours': you chose not to install 'colours' from ${host}. Run again to be asked\n`,
  );
  expect(index()).toEqual([]);

  expect(await installing(playground, source)).toBe("['red']\n"); // it is asked again
  expect(index()).not.toEqual([]);
  expect(await playground.runToEnd(source)).toBe("['red']\n"); // it is there

  // A later visit: this document was answered, another one was not.
  await page.reload();
  await expect(page.locator("#state")).toHaveText("Ready");
  await page.locator("#run").click();
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await expect(playground.output).toHaveText("['red']\n");
  await page.reload();
  await expect(page.locator("#state")).toHaveText("Ready");
  await playground.menu("New script");
  await playground.run(source);
  await expect(offer).toBeVisible();
  await page.locator("#stop").click();
  await expect(page.locator("#state")).toHaveText("Stopped");
  await expect(offer).toHaveCount(0);
  expect(await playground.runToEnd("1 + 1")).toBe("2\n");
});

test("an answer goes with no link, and a frame asks for itself", async ({ playground, page }) => {
  await playground.open();
  const offer = page.getByRole("group", { name: "Packages to install" });
  await installing(playground, "import colours\nprint(colours.names)");
  await page.locator("#share").click();
  await expect(page).toHaveURL(/#doc=/);
  const link = page.url();
  await page.goto(`${new URL(link).origin}/favicon.svg`);
  await page.goto(link);
  await expect(page.locator("#state")).toHaveText("Ready");
  await page.locator("#run").click();
  await expect(offer).toBeVisible();

  await page.goto(`${new URL(link).origin}/favicon.svg`);
  await page.goto(link.replace("#", "?embed#"));
  const run = page.getByRole("button", { name: "Run" });
  await run.click();
  await offer.getByRole("button", { name: "Don’t" }).click();
  await expect(page.locator("#state")).toHaveText("Failed");
  await run.click();
  await offer.getByRole("button", { name: "Install" }).click();
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await expect(page.locator(".output")).toHaveText("['red']\n");
});

test("live cells ask before an install, and once for all cells of the page", async ({
  page,
  packagesSite,
  requests,
}) => {
  const tags = ["a", "b"].map((id) => `<weft-cell id="${id}">import colours\ncolours.names</weft-cell>`).join("");
  await show(page, tags, { at: packagesSite });
  const [first, second] = [cell(page, "a"), cell(page, "b")];
  const offer = first.at.getByRole("group", { name: "Packages to install" });
  await first.run.click();
  await expect(offer).toContainText(`This program asks for colours from ${new URL(packagesSite).host}`);
  await expect(first.state).toHaveText("Waiting for your answer");
  await first.stop.click();
  await expect(first.state).toHaveText("Stopped");
  await expect(offer).toHaveCount(0);
  await first.run.click();
  await offer.getByRole("button", { name: "Don’t" }).click();
  await expect(first.output.locator(".failure")).toContainText("No module named 'colours': you chose not to install");
  expect(requests.filter((url) => url.includes("/simple/"))).toEqual([]);
  await first.run.click();
  await offer.getByRole("button", { name: "Install" }).click();
  await expect(first.output).toHaveText("['red']");
  await page.evaluate(() => (document.querySelector("#a") as any).restart()); // Python is new and has nothing installed
  await second.run.click();
  await expect(second.output).toHaveText("['red']");
});

test("several packages are asked for at once, those that the site has are not", async ({ playground, page }) => {
  await playground.open();
  const offer = page.getByRole("group", { name: "Packages to install" });
  const host = new URL(page.url()).host;
  const source = lines(
    "%pip install shapes einops https://wheels.example/deep-1.0-py3-none-any.whl",
    "import einops, colours",
    "print('here')",
  );
  await playground.run(source);
  await expect(offer.locator("p")).toHaveText(
    `This program asks for colours and shapes from ${host}; ` +
      "https://wheels.example/deep-1.0-py3-none-any.whl from wheels.example. " +
      "This site does not keep them; installed code runs in this page, as the program does.",
  );
  await page.setViewportSize({ width: 375, height: 700 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(375);
  await page.setViewportSize({ width: 1280, height: 800 });
  await offer.getByRole("button", { name: "Don’t" }).focus();
  await page.keyboard.press("Enter");
  await expect(page.locator("#state")).toHaveText("Failed");
  await expect(playground.output).toContainText(
    "%pip install shapes: not installed, as you chose. Run again to be asked",
  );
  await expect(playground.output).toContainText("No module named 'colours': you chose not to install 'colours'");
  await expect(playground.output).not.toContainText("here");
  expect(await playground.runToEnd("%pip install einops\nimport einops\nprint(einops.__version__)")).toBe("0.8.2\n");
});

test("Stop ends the wait for a package that never arrives, and other programs run", async ({
  playground,
  page,
  visitor,
}) => {
  await playground.open();
  await visitor.route("**/far-1.0*", () => undefined);
  await playground.run("import far");
  await expect(page.locator("#state")).toContainText("Loading far");
  await page.locator("#stop").click();
  await expect(page.locator("#state")).toHaveText("Stopped");
  await expect(playground.notices).not.toContainText("started again");
  expect(await playground.runToEnd("1 + 1")).toBe("2\n");
});

test("a wheel of the reader is installed, and stays; what is no wheel is refused by name", async ({
  playground,
  page,
}) => {
  await playground.open();
  const opener = page.locator("#open-file");
  await opener.setInputFiles(path.join(made, "given/present-1.0-py3-none-any.whl"));
  await expect(playground.notices).toContainText("Programs can import it from now on.");
  for (let run = 0; run < 2; run++) {
    expect(await playground.runToEnd("import present\nprint(present.colour)")).toBe("blue\n");
  }
  const file = (name: string) => ({ name, mimeType: "application/zip", buffer: Buffer.from("no zip") });
  for (const [name, problem] of [
    ["broken-1.0-py3-none-any.whl", "it is damaged: not a zip archive"],
    ["fast-1.0-cp314-cp314-manylinux_2_28_x86_64.whl", "it is made for manylinux_2_28_x86_64"],
    ["what ever.whl", "its name is not that of a wheel"],
  ] as const) {
    await opener.setInputFiles(file(name));
    await expect(playground.notices).toContainText(`Python can't take ${name}: ${problem}`);
  }
});

test("a Python file of the reader opens as a document, and can be imported", async ({ playground, page }) => {
  await playground.open();
  const buffer = Buffer.from("answer = 42\n");
  await page.locator("#open-file").setInputFiles({ name: "deep.py", mimeType: "text/x-python", buffer });
  await playground.notices.getByText("Give it to Python as a module").click();
  await expect(playground.notices).toContainText("deep.py was given to Python. Programs can import it");
  expect(await playground.runToEnd("import deep\nprint(deep.answer)")).toBe("42\n");
});

test("NumPy's arrays and weft's become each other", async ({ playground }) => {
  test.skip(!process.env["WEFT_NUMPY_WHEEL"], "WEFT_NUMPY_WHEEL names no wheel of NumPy for Pyodide");
  await playground.open();
  const program = lines(
    "import numpy as np, jax.numpy as jnp",
    "x = jnp.arange(6.0).reshape(2, 3)",
    "print(np.asarray(x).sum(), np.asarray(x).dtype, jnp.asarray(np.eye(2, dtype=np.int32)).sum(), np.sin(x).shape)",
  );
  expect(await playground.runToEnd(program)).toBe("15.0 float32 2 (2, 3)\n");
});
