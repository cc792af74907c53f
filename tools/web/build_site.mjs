// Builds the playground as a static site whose files, but for the entry pages, are named by their content.
//
//   node tools/web/build_site.mjs [--wheels build/wheels] [--out build/site] [--examples examples] [--force]
//     [--packages build/packages] [--distribution ADDRESS-OR-FOLDER] [--index ADDRESS]
//
// Programs load packages from `packages`, wheels that the site serves; from Pyodide's distribution, by default at the
// address that Pyodide itself uses, or from a folder with its lock file, which is copied; and from a package index, by
// default micropip's.
//
// Nothing is done when nothing that goes in has changed since the last time.
import { spawnSync } from "node:child_process";
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import zlib from "node:zlib";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const { values: options } = parseArgs({
  options: {
    wheels: { type: "string", default: path.join(root, "build/wheels") },
    out: { type: "string", default: path.join(root, "build/site") },
    examples: { type: "string", default: path.join(root, "examples") },
    packages: { type: "string", default: path.join(root, "build/packages") },
    distribution: { type: "string" },
    index: { type: "string" },
    python: { type: "string", default: process.env.PYTHON ?? path.join(root, ".venv/bin/python") },
    force: { type: "boolean", default: false },
  },
});
const cache = path.join(root, "build/cache");
/** Of cell/src/contract.ts. */
const CELL_VERSION = Number(
  /VERSION = (\d+)/.exec(fs.readFileSync(path.join(root, "cell/src/contract.ts"), "utf8"))?.[1],
);
const pyodideDir = path.join(root, "node_modules/pyodide");

/** @param {crypto.BinaryLike} data */
const sha = (data) => crypto.createHash("sha256").update(data).digest("hex");
/** @param {crypto.BinaryLike} data */
const short = (data) => sha(data).slice(0, 12);

/**
 * @param {string} target
 * @returns {string[]}
 */
function filesUnder(target) {
  if (!fs.existsSync(target)) return [];
  if (fs.statSync(target).isFile()) return [target];
  const skipped = new Set(["node_modules", "dist", "__pycache__"]);
  return fs
    .readdirSync(target, { withFileTypes: true })
    .filter((entry) => !skipped.has(entry.name) && !entry.name.startsWith("."))
    .flatMap((entry) => filesUnder(path.join(target, entry.name)))
    .sort();
}

/** @param {string[]} targets */
function hashOf(targets) {
  const hash = crypto.createHash("sha256");
  for (const file of targets.flatMap(filesUnder))
    hash.update(`${path.relative(root, file)}\0`).update(fs.readFileSync(file));
  return hash.digest("hex");
}

/**
 * @param {string} script
 * @param {string[]} args
 */
function python(script, ...args) {
  const run = spawnSync(options.python, [path.join(root, "tools/web", script), ...args], { stdio: "inherit" });
  if (run.status !== 0) throw new Error(`${script} failed`);
}

/**
 * @param {string} name
 * @param {string | Uint8Array} data
 */
function write(name, data) {
  const file = path.join(stage, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, data);
  return name;
}

/**
 * Bytecode of the standard library and of each wheel, compiled once for each content: the archives.
 * @param {string[]} wheels
 */
async function compilePython(wheels) {
  const { compileArchives, stdlibJob, wheelJob } = await import("./compile_python.mjs");
  const recipe = hashOf(
    [
      "tools/web/compile_python.mjs",
      "tools/web/compile_python.py",
      "tools/web/later.txt",
      "web/python/weft_docstrings.py",
    ].map((name) => path.join(root, name)),
  );
  const version = JSON.parse(fs.readFileSync(path.join(pyodideDir, "package.json"), "utf8")).version;
  const stdlib = path.join(pyodideDir, "python_stdlib.zip");
  /**
   * @param {string} source
   * @param {typeof stdlibJob} makeJob
   */
  const jobOf = (source, makeJob) => {
    const key = sha(recipe + version + sha(fs.readFileSync(source))).slice(0, 16);
    const target = path.join(cache, key, path.basename(source));
    return { ...makeJob(source, target), ready: fs.existsSync(target) };
  };
  const jobs = [jobOf(stdlib, stdlibJob), ...wheels.map((wheel) => jobOf(wheel, wheelJob))];
  const missing = jobs.filter((job) => !job.ready);
  if (missing.length) {
    console.log("Compiling Python to bytecode inside Pyodide:");
    missing.forEach((job) => fs.mkdirSync(path.dirname(job.target), { recursive: true }));
    await compileArchives(missing);
  }
  return jobs.map((job) => job.target);
}

/**
 * The archives that a page fetches when a program imports one of their modules: one beside each that it loads at first.
 * @param {string[]} compiled
 */
function placeLater(compiled) {
  return compiled.flatMap((archive) => {
    /** @param {string} name */
    const beside = (name) => fs.readFileSync(path.join(path.dirname(archive), name));
    const { folder, modules } = /** @type {{ folder: string, modules: string[] }} */ (
      JSON.parse(String(beside("later.json")))
    );
    if (modules.length === 0) return [];
    const data = beside("later.zip");
    const name = path.basename(archive).replace(/[-.].*/, "");
    return [{ url: write(`later/${name}-${short(data)}.zip`, data), folder, modules }];
  });
}

/**
 * The language's docstrings, which a page fetches when a program asks for help.
 * @param {string[]} compiled
 */
function placeDocstrings(compiled) {
  const files = compiled.map((archive) => path.join(path.dirname(archive), "docstrings.json"));
  const file = files.find((name) => fs.existsSync(name));
  if (file === undefined) throw new Error("no archive has its docstrings apart");
  const data = fs.readFileSync(file);
  return write(`later/docstrings-${short(data)}.json`, data);
}

/**
 * What the editor knows of modules, and the sources that it can open. They are of the language that is installed here,
 * also beside a stand-in for it.
 */
async function placeLanguage() {
  const { indexPython } = await import("./index_python.mjs");
  const parts = ["packages/weft/src/weft", "tools/web/make_index.py", "tools/web/index_names.py", "web/python"];
  const folder = path.join(cache, `index-${hashOf(parts.map((name) => path.join(root, name))).slice(0, 16)}`);
  const [index, sources] = ["index.json", "sources.json"].map((name) => path.join(folder, name));
  if (!fs.existsSync(folder)) {
    const made = `${folder}.new`;
    fs.mkdirSync(made, { recursive: true });
    python("make_index.py", path.join(made, "index.json"), path.join(made, "sources.json"));
    fs.renameSync(made, folder);
  }
  /**
   * @param {string} name
   * @param {string | undefined} file
   */
  const place = (name, file) => {
    const data = fs.readFileSync(String(file));
    return write(`later/${name}-${short(data)}.json`, data);
  };
  return {
    index: [place("index", index), place("python-index", await indexPython())],
    sources: place("sources", sources),
  };
}

function placePyodide() {
  const files = ["pyodide.asm.mjs", "pyodide.asm.wasm"].map((name) => ({
    name,
    data: fs.readFileSync(path.join(pyodideDir, name)),
  }));
  const folder = `pyodide/${short(files.map(({ data }) => sha(data)).join())}`;
  files.forEach(({ name, data }) => write(`${folder}/${name}`, data));
  return `${folder}/`;
}

/** Where Pyodide's loader itself finds the distribution of its version. */
function ownDistribution() {
  const loader = fs.readFileSync(path.join(pyodideDir, "pyodide.mjs"), "utf8");
  const { version } = JSON.parse(fs.readFileSync(path.join(pyodideDir, "package.json"), "utf8"));
  const found = /`(https:\/\/[^`]+\/v)\$\{\w+\}(\/full\/)`/.exec(loader);
  if (!found) throw new Error("Pyodide's loader no longer says where its distribution lies: give --distribution");
  return `${found[1]}${version}${found[2]}`;
}

/** The options of make_lock.py for the distribution; one in a folder is copied into the site. */
function placeDistribution() {
  const { distribution = ownDistribution() } = options;
  if (/^https?:/.test(distribution)) return ["--distribution", distribution.replace(/\/?$/, "/")];
  const lock = path.join(distribution, "pyodide-lock.json");
  const data = fs.readFileSync(lock, "utf8");
  const folder = `distribution-${short(data)}/`;
  for (const { file_name: name } of Object.values(JSON.parse(data).packages)) {
    if (path.basename(name) !== name) throw new Error(`${lock} names a file outside of its folder: ${name}`);
    const file = path.join(distribution, name);
    if (fs.existsSync(file)) write(`packages/${folder}${name}`, fs.readFileSync(file));
  }
  return ["--distribution", folder, "--distribution-lock", lock];
}

/** @param {string[]} wheels */
function placePackages(wheels) {
  const own = path.join(stage, "own");
  for (const wheel of wheels) {
    const name = `${short(fs.readFileSync(wheel))}/${path.basename(wheel)}`;
    for (const folder of ["own", "packages"]) write(`${folder}/${name}`, fs.readFileSync(wheel));
  }
  const found = filesUnder(options.packages).filter((name) => name.endsWith(".whl"));
  const bundled = path.join(stage, "bundled");
  for (const wheel of found) {
    const name = `bundled/${short(fs.readFileSync(wheel))}/${path.basename(wheel)}`;
    for (const folder of [".", "packages"]) write(`${folder}/${name}`, fs.readFileSync(wheel));
  }
  const lock = path.join(stage, "lock.json");
  const more = [...(found.length ? ["--bundled", bundled] : []), ...placeDistribution()];
  python("make_lock.py", "--pyodide", pyodideDir, "--wheels", own, "--out", lock, ...more);
  const data = fs.readFileSync(lock, "utf8");
  fs.rmSync(lock);
  for (const folder of [own, bundled]) fs.rmSync(folder, { recursive: true, force: true });
  return {
    lockFile: write(`packages/pyodide-lock-${short(data)}.json`, data),
    packages: wheels.map((wheel) => path.basename(wheel).replace(/-.*/, "").replaceAll("_", "-").toLowerCase()),
    index: options.index ?? null,
  };
}

/**
 * An entry of examples.json.
 * @typedef {{ id: string, title: string, summary: string, file: string, assets?: string[] }} Example
 */

/** The menu's programs with their text, and the files they read. */
function placeExamples() {
  const list = path.join(options.examples, "examples.json");
  /** @type {Map<string, string>} */
  const assets = new Map();
  const examples = /** @type {Example[]} */ (JSON.parse(fs.readFileSync(list, "utf8"))).flatMap(
    ({ id, title, summary, file, assets: needed = [] }) => {
      const source = path.join(options.examples, file);
      const files = needed.map((asset) => path.join(options.examples, asset));
      const absent = [source, ...files].filter((name) => !fs.existsSync(name));
      if (absent.length) {
        console.warn(
          `  example "${id}" is left out: ${absent.map((name) => path.relative(root, name)).join(", ")} missing`,
        );
        return [];
      }
      for (const name of files) {
        const data = fs.readFileSync(name);
        assets.set(path.basename(name), write(`data/${short(data)}/${path.basename(name)}`, data));
      }
      return [{ id, title, summary, source: fs.readFileSync(source, "utf8") }];
    },
  );
  return { examples, assets: [...assets].map(([name, url]) => ({ name, url })) };
}

/**
 * An entry of gallery.json.
 * @typedef {{
 *   file: string, title: string, description: string, group: string, tags: string[], minutes: number,
 *   thumbnail: string, assets?: string[],
 * }} GalleryEntry
 */

/** The gallery's documents as files of the site, which the page fetches when a reader opens one. */
function placeGallery() {
  const folder = path.join(options.examples, "gallery");
  const list = fs.readFileSync(path.join(folder, "gallery.json"), "utf8");
  const entries = /** @type {GalleryEntry[]} */ (JSON.parse(list));
  write("gallery/gallery.json", list);
  return entries.map(({ file, title, description, group, minutes, thumbnail }) => ({
    id: path.basename(file, ".py"),
    title,
    summary: description,
    group,
    minutes,
    url: write(`gallery/${file}`, fs.readFileSync(path.join(folder, file))),
    thumbnail: write(`gallery/${thumbnail}`, fs.readFileSync(path.join(folder, thumbnail))),
  }));
}

/**
 * @typedef {import("esbuild").BuildOptions} BuildOptions
 * @typedef {import("esbuild").BuildResult<{ metafile: true }>} BuildResult
 */

/** @param {Record<string, unknown>} config */
async function bundle(config) {
  const esbuild = await import("esbuild");
  const shared = /** @satisfies {BuildOptions} */ ({
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    outdir: path.join(stage, "assets"),
    absWorkingDir: root,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    sourcemap: false,
    legalComments: "linked",
    logLevel: "warning",
    // Pyodide's loader has branches for Node; a page never takes them.
    external: ["node:*", "ws"],
    conditions: ["weft-source"], // of this repository's packages
    loader: { ".wasm": "file" },
  });
  /**
   * @param {BuildResult} build
   * @param {RegExp} pattern
   */
  const output = ({ metafile }, pattern) => {
    const found = Object.keys(metafile.outputs).find((name) => pattern.test(path.basename(name)));
    if (found === undefined) throw new Error(`the bundle has no file ${pattern}`);
    return path.relative(stage, path.join(root, found));
  };
  /** @type {BuildResult[]} */
  const builds = [];
  /** @param {BuildOptions} more */
  const run = async (more) => {
    const made = await esbuild.build({ ...shared, ...more, metafile: true });
    builds.push(made);
    return made;
  };
  const worker = output(
    await run({ entryPoints: { worker: "web/src/kernel/worker.ts" }, inject: ["web/src/kernel/fetch.ts"] }),
    /^worker.*\.js$/,
  );
  /** @type {import("esbuild").Plugin} */
  const site = {
    name: "site",
    setup(build) {
      build.onResolve({ filter: /^virtual:site$/ }, () => ({ path: "site", namespace: "site" }));
      build.onLoad({ filter: /.*/, namespace: "site" }, () => ({
        contents: JSON.stringify({ ...config, worker }),
        loader: "json",
      }));
    },
  };
  const page = await run({ entryPoints: { start: "web/src/start.ts" }, splitting: true, plugins: [site] });
  const css = await run({ entryPoints: { style: "web/src/styles.css" } });
  const cell = await run({ entryPoints: { cell: "web/src/live/main.ts" }, splitting: true });
  const cellStyles = await run({ entryPoints: { cell: "web/src/live/cell.css" } });
  await run({ entryNames: "[name]", outdir: stage, entryPoints: { "weft-cell": "cell/src/index.ts" } });
  return {
    start: output(page, /^start.*\.js$/),
    main: output(page, /^main.*\.js$/),
    style: output(css, /\.css$/),
    worker,
    cell: { script: output(cell, /^cell.*\.js$/), styles: output(cellStyles, /\.css$/) },
    builds,
  };
}

/**
 * What a bundle's entry imports at once, with all that this imports.
 * @param {BuildResult[]} builds
 * @param {string[]} entries
 */
function staticImports(builds, entries) {
  const outputs = Object.assign({}, ...builds.map(({ metafile }) => metafile.outputs));
  /** @type {Set<string>} */
  const found = new Set();
  /** @param {string} name */
  const visit = (name) => {
    if (found.has(name)) return;
    found.add(name);
    for (const { path: other, kind } of outputs[name]?.imports ?? []) if (kind === "import-statement") visit(other);
  };
  entries.forEach((name) => visit(path.relative(root, path.join(stage, name))));
  return [...found].map((name) => path.relative(stage, path.join(root, name)));
}

/**
 * The service worker, which knows the site's files: those that a page needs to start, and all that are named by their
 * content. Its text changes with any of them, so that browsers notice a new version.
 * @param {string[]} boot
 */
async function placeServiceWorker(boot) {
  const esbuild = await import("esbuild");
  const named = filesUnder(stage)
    .map((file) => path.relative(stage, file))
    .filter((name) => /^(assets|pyodide|packages|later|data)\//.test(name));
  const page = fs.readFileSync(path.join(stage, "index.html"));
  const files = { version: short([sha(page), ...named].join()), boot: ["", "favicon.svg", ...boot], named };
  /** @type {import("esbuild").Plugin} */
  const lists = {
    name: "files",
    setup(build) {
      build.onResolve({ filter: /^virtual:files$/ }, () => ({ path: "files", namespace: "files" }));
      build.onLoad({ filter: /.*/, namespace: "files" }, () => ({ contents: JSON.stringify(files), loader: "json" }));
    },
  };
  await esbuild.build({
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    absWorkingDir: root,
    outfile: path.join(stage, "service-worker.js"),
    entryPoints: ["web/src/service_worker.ts"],
    plugins: [lists],
    logLevel: "warning",
  });
}

/**
 * The licences of everything in the bundles, of Pyodide, and of the packages that the site serves.
 * @param {BuildResult[]} builds
 */
function placeLicences(builds) {
  const inputs = builds.flatMap(({ metafile }) => Object.keys(metafile.inputs));
  const folders = inputs
    .map((name) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(name)?.[0])
    .filter((name) => name !== undefined);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license, repository } = JSON.parse(
      fs.readFileSync(path.join(root, folder, "package.json"), "utf8"),
    );
    const file = fs.readdirSync(path.join(root, folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file
      ? fs.readFileSync(path.join(root, folder, file), "utf8")
      : `Source: ${repository?.url ?? repository ?? name}\n`;
    return `${name} ${version} (${license})\n\n${text}`;
  });
  const ofWheels = path.join(stage, "wheels.txt");
  python("wheel_licences.py", options.packages, ofWheels);
  texts.push(fs.readFileSync(ofWheels, "utf8"));
  fs.rmSync(ofWheels);
  write("licenses.txt", texts.join(`\n${"-".repeat(78)}\n\n`));
}

/** Compressed copies for servers that send them; each made once for each content. */
async function compressAll() {
  const brotli = promisify(zlib.brotliCompress);
  const params = { [zlib.constants.BROTLI_PARAM_QUALITY]: 11, [zlib.constants.BROTLI_PARAM_LGWIN]: 24 };
  fs.mkdirSync(path.join(cache, "br"), { recursive: true });
  const files = filesUnder(stage).filter((name) => /\.(html|js|mjs|css|json|wasm|svg|txt)$/.test(name));
  await Promise.all(
    files.map(async (file) => {
      const data = fs.readFileSync(file);
      if (data.length < 1024) return;
      const kept = path.join(cache, "br", `${short(data)}-${params[zlib.constants.BROTLI_PARAM_QUALITY]}`);
      if (!fs.existsSync(kept)) fs.writeFileSync(kept, await brotli(data, { params }));
      fs.copyFileSync(kept, `${file}.br`);
    }),
  );
}

const contents = hashOf([
  ...["web", "cell/src", "wasm/runtime/src", "tools/web", "package-lock.json", "tsconfig.base.json"].map((name) =>
    path.join(root, name),
  ),
  options.examples,
  options.wheels,
  options.packages,
  ...(options.distribution && fs.existsSync(options.distribution) ? [options.distribution] : []),
]);
const inputs = sha(`${contents} ${options.distribution} ${options.index}`);
const stampFile = path.join(options.out, ".inputs");
if (!options.force && fs.existsSync(stampFile) && fs.readFileSync(stampFile, "utf8") === inputs) {
  console.log(`${path.relative(process.cwd(), options.out)} is up to date`);
  process.exit(0);
}

const stage = `${options.out}.new`;
fs.rmSync(stage, { recursive: true, force: true });
fs.mkdirSync(stage, { recursive: true });
const pageWheel = path.join(cache, "page");
fs.rmSync(pageWheel, { recursive: true, force: true });
python("page_wheel.py", path.join(root, "web/python"), pageWheel);
const wheels = [...filesUnder(options.wheels), ...filesUnder(pageWheel)].filter((name) => name.endsWith(".whl"));
const archives = await compilePython(wheels);
const [stdlib, ...compiled] = archives;
if (stdlib === undefined) throw new Error("the standard library was not compiled");
const stdlibData = fs.readFileSync(stdlib);
const config = {
  indexURL: placePyodide(),
  stdLibURL: write(`pyodide/python_stdlib-${short(stdlibData)}.zip`, stdlibData),
  ...placePackages(compiled),
  later: placeLater(archives),
  docstrings: placeDocstrings(archives),
  bootBytes: [path.join(pyodideDir, "pyodide.asm.wasm"), ...archives].reduce(
    (sum, file) => sum + fs.statSync(file).size,
    0,
  ),
  language: await placeLanguage(),
  ...placeExamples(),
  gallery: placeGallery(),
};
const { start, main, style, worker, cell, builds } = await bundle(config);
placeLicences(builds);
// What a cell in another page asks for first; its contract is cell/src/contract.ts.
const { examples: _, ...forCells } = config;
write("site.json", JSON.stringify({ ...forCells, worker, cell: { version: CELL_VERSION, ...cell } }));
// Modules are asked for at once instead of one after the other.
const preloads = [main, worker, `${config.indexURL}pyodide.asm.mjs`]
  .map((url) => `<link rel="modulepreload" href="${url}">`)
  .join("\n    ");
write(
  "index.html",
  fs
    .readFileSync(path.join(root, "web/index.html"), "utf8")
    .replace("<!-- preload -->", preloads)
    .replace("style.css", style)
    .replace("start.js", start),
);
// No page yet: `make site` puts the documentation in its place. The page asks for this file.
write("docs/errors.json", "{}");
write("favicon.svg", fs.readFileSync(path.join(root, "web/favicon.svg")));
const runtimeFiles = ["pyodide.asm.mjs", "pyodide.asm.wasm"].map((name) => config.indexURL + name);
const wheelFiles = compiled.map((file) => `packages/${short(fs.readFileSync(file))}/${path.basename(file)}`);
await placeServiceWorker([
  ...staticImports(builds, [start, main, style, worker]),
  ...[...runtimeFiles, config.stdLibURL, config.lockFile, ...wheelFiles],
]);
await compressAll();
fs.writeFileSync(path.join(stage, ".inputs"), inputs);
fs.rmSync(options.out, { recursive: true, force: true });
fs.renameSync(stage, options.out);
const total = filesUnder(options.out)
  .filter((name) => !name.endsWith(".br"))
  .reduce((sum, name) => sum + fs.statSync(name).size, 0);
const built = path.relative(process.cwd(), options.out);
console.log(`Built ${built}: ${(total / 1e6).toFixed(1)} MB, packages ${config.packages.join(", ")}`);
process.exit(0); // Pyodide keeps Node's event loop alive.
