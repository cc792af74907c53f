/**
 * Builds what the tests open: the site with a stand-in for the language, for tests of the page's mechanics, and the
 * runtime alone. The site with the real language is there already: `make web` builds it.
 */
import { execFileSync } from "node:child_process";
import { build } from "esbuild";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");

/** The editor on a page of its own, with the real index. */
async function editorPage(folder: string, python: string): Promise<void> {
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  const { indexPython } = await import("../tools/web/index_python.mjs");
  const names = ["index.json", "sources.json"].map((name) => path.join(folder, name));
  execFileSync(python, [path.join(root, "tools/web/make_index.py"), ...names], { stdio: "inherit" });
  fs.copyFileSync(await indexPython(), path.join(folder, "python.json"));
  const page = [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>editor</title>',
    '<link rel="icon" href="data:,"><link rel="stylesheet" href="editor_page.css"></head>',
    '<body><main style="display: block; padding: 90px 20px 200px"><h1 class="visually-hidden">Cells</h1></main>',
    '<script type="module" src="editor_page.js"></script></body></html>',
  ].join("");
  fs.writeFileSync(path.join(folder, "index.html"), page);
  await build({
    entryPoints: [path.join(root, "e2e/fixtures/editor_page.ts")],
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    conditions: ["weft-source"], // of the packages of this repository
    target: "es2022",
    outdir: folder,
    loader: { ".wasm": "file" },
    logLevel: "warning",
  });
}

export default async function setup(): Promise<void> {
  const python = process.env["PYTHON"] ?? path.join(root, ".venv/bin/python");
  const target = path.join(root, "build/e2e");
  if (!fs.existsSync(path.join(root, "build/site/index.html"))) {
    throw new Error("build/site is missing: build the playground with `make web` first");
  }
  execFileSync(python, [path.join(root, "e2e/fixtures/make_standin.py"), path.join(target, "wheels")], {
    stdio: "inherit",
  });
  const arguments_ = ["--wheels", path.join(target, "wheels"), "--out", path.join(target, "site"), "--python", python];
  execFileSync(process.execPath, [path.join(root, "tools/web/build_site.mjs"), ...arguments_], { stdio: "inherit" });

  await editorPage(path.join(target, "editor"), python);

  const runtime = path.join(target, "runtime");
  fs.mkdirSync(runtime, { recursive: true });
  fs.writeFileSync(path.join(runtime, "index.html"), "<!doctype html><title>runtime</title>");
  await build({
    entryPoints: [path.join(root, "e2e/fixtures/runtime_page.ts")],
    bundle: true,
    format: "esm",
    conditions: ["weft-source"], // of the packages of this repository
    outfile: path.join(runtime, "runtime.js"),
    logLevel: "warning",
  });
}
