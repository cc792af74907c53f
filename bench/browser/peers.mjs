// weft and its peers in one page of Chromium: the same workloads in turn, checked against the same results. Prints a
// table in Markdown.
//
//   node bench/browser/peers.mjs [--only matmul_512,…] [--threads 1] [--seconds 20] [--site FOLDER]
//     [--peers jax-js,tfjs,ort] [--webgpu] [--no-native] [--json FILE]
//
// weft is used as in the playground: `weft.jit` functions called from Python in the site's worker. The site is built
// with `make web` unless --site names one; the peers (bench/browser/peers/package.json) are installed on first use.
// Beside the peers stand NumPy and weft on XLA on this machine, one thread, for orientation. A figure is the least mean
// of a call in rounds of at least 10 ms for each peer in turn, for some seconds: what else the host does only adds
// time.
//
// --webgpu: everyone on WebGPU, on the adapter that Chromium finds, which is software where there is no GPU; without
// onnxruntime-web, whose operators are chosen for Wasm here, and without what is exported to run on Wasm.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "@playwright/test";
import { build } from "esbuild";
import { FLAGS, WEBGPU } from "../../e2e/launch.mjs";
import { findBrowser } from "../../tools/find-browser.mjs";
import { close, serve } from "../../tools/web/serve.mjs";
import { PEERS, chosen, problems, table } from "./peers/table.mjs";

const root = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "../..");
const here = path.join(root, "bench/browser/peers");
const { values: options } = parseArgs({
  allowNegative: true,
  options: {
    only: { type: "string" },
    threads: { type: "string", default: "1" },
    seconds: { type: "string", default: "20" },
    site: { type: "string" },
    peers: { type: "string" },
    webgpu: { type: "boolean", default: false },
    native: { type: "boolean", default: true },
    json: { type: "string" },
  },
});
const python = process.env.PYTHON ?? path.join(root, ".venv/bin/python");

/**
 * @param {string} program
 * @param {string[]} args
 * @param {{ cwd?: string }} more
 */
function command(program, args, more = {}) {
  const { status, stdout, error } = spawnSync(program, args, {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    ...more,
  });
  if (status !== 0) throw new Error(`${[program, ...args].join(" ")} failed${error ? `: ${error.message}` : ""}`);
  return stdout;
}

function installPeers() {
  const installed = path.join(here, "node_modules/.package-lock.json");
  const wanted = path.join(here, "package-lock.json");
  if (fs.existsSync(installed) && fs.statSync(installed).mtimeMs >= fs.statSync(wanted).mtimeMs) return;
  command("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: here });
  fs.utimesSync(installed, new Date(), new Date());
}

/**
 * What the playground's worker is told when it boots.
 * @param {string} site
 * @returns {import("../../web/src/kernel/protocol.js").SiteData}
 */
function siteConfig(site) {
  const file = path.join(site, "site.json");
  if (!fs.existsSync(file)) throw new Error(`there is no ${file}; build the site with \`make web\``);
  return JSON.parse(fs.readFileSync(file, "utf8"));
}

/**
 * The page and the peers' workers in `folder`.
 * @param {string} folder
 * @param {string[]} names
 */
async function bundle(folder, names) {
  /** @type {Record<string, string>} */
  const sources = { "jax-js": "jaxjs.mjs", tfjs: "tfjs.mjs", ort: "ort.mjs", exported: "exported.mjs" };
  const entries = [...names, "exported"].map((name) => {
    const source = sources[name];
    if (!source) throw new Error(`no peer ${name}; there are ${PEERS.join(", ")}`);
    return [name, path.join(here, source)];
  });
  await build({
    entryPoints: { page: path.join(here, "page.mjs"), ...Object.fromEntries(entries) },
    bundle: true,
    format: "esm",
    target: "es2022",
    outdir: folder,
    logLevel: "error",
    external: ["node:*", "fs", "path", "os", "worker_threads", "perf_hooks", "util", "crypto"],
  });
  fs.writeFileSync(path.join(folder, "index.html"), "<!doctype html><title>peers</title>");
  const modules = path.join(here, "node_modules");
  /** @type {[string, string, RegExp][]} */
  const copies = [
    ["tfjs", "@tensorflow/tfjs-backend-wasm/dist", /^tfjs-backend-wasm.*\.wasm$/],
    ["ort", "onnxruntime-web/dist", /^ort-wasm-simd-threaded\.(mjs|wasm)$/],
  ];
  for (const [to, from, pattern] of copies) {
    fs.mkdirSync(path.join(folder, to));
    for (const file of fs.readdirSync(path.join(modules, from)).filter((name) => pattern.test(name)))
      fs.copyFileSync(path.join(modules, from, file), path.join(folder, to, file));
  }
}

/**
 * {name: {times, problems}} of everything that runs in the page.
 * @param {string} folder
 * @param {string[]} names
 * @param {{ peers: string[], threads: number, seconds: number, backend: import("./peers/worker.mjs").Backend,
 *   site: string }} settings
 */
async function measurePage(folder, names, { peers, threads, seconds, backend, site }) {
  /** @type {Record<string, import("./peers/page.mjs").Manifest>} */
  const manifest = JSON.parse(fs.readFileSync(path.join(folder, "data/manifest.json"), "utf8"));
  const { server, url } = await serve(folder);
  const browser = await chromium.launch({
    executablePath: await findBrowser(),
    args: backend === "webgpu" ? [...FLAGS, WEBGPU] : FLAGS,
  });
  try {
    const page = await browser.newPage();
    page.on("pageerror", (error) => console.error(`page: ${error.message}`));
    await page.goto(url);
    /** @param {string} name */
    const source = (name) => fs.readFileSync(path.join(here, `${name}.py`), "utf8");
    const { worker, language, examples, gallery, ...config } = siteConfig(site);
    /** @param {string} name */
    const manifestOf = (name) => {
      const found = manifest[name];
      if (!found) throw new Error(`reference.py wrote no data for ${name}`);
      return found;
    };
    const files = names.flatMap((name) => manifestOf(name).inputs.map(({ file }) => file));
    const weft = {
      site: config,
      exported: `${url}exported.js`,
      worker,
      base: `${url}site/`,
      modules: { workloads: source("workloads"), page_side: source("page_side") },
      assets: files.map((file) => ({ name: file, url: `../data/${file}` })),
    };
    const urls = Object.fromEntries(peers.map((name) => [name, `${url}${name}.js`]));
    const module = `${url}page.js`; // which keeps its state from one import to the next
    /** @type {Record<string, string>} */
    const failures = await page.evaluate(async ({ module, settings }) => (await import(module)).start(settings), {
      module,
      settings: { urls, threads, backend, weft },
    });
    for (const [name, message] of Object.entries(failures)) console.error(`${name} does not start: ${message}`);
    /** @type {import("./peers/table.mjs").Results} */
    const results = {};
    for (const name of names) {
      process.stderr.write(`${name} `);
      results[name] = await page.evaluate(
        async ({ module, name, manifest, seconds }) => (await import(module)).measure(name, manifest, seconds),
        {
          module,
          name,
          manifest: manifestOf(name),
          seconds,
        },
      );
    }
    process.stderr.write("\n");
    /** @type {number | null} */
    const emptyMs = await page.evaluate(async (module) => (await import(module)).emptyCall(), module);
    return { results, emptyMs, failures };
  } finally {
    await browser.close();
    await close(server);
  }
}

const load = () =>
  os
    .loadavg()
    .map((x) => x.toFixed(2))
    .join(" ");

const backend = options.webgpu ? "webgpu" : "wasm";
const names = chosen(options.only).filter((name) => !options.webgpu || name !== "exported");
const everyone = options.webgpu ? PEERS.filter((name) => name !== "ort") : PEERS;
const peers = options.peers?.split(",").filter(Boolean) ?? everyone;
const [threads, seconds] = [Number(options.threads), Number(options.seconds)];
if (![1, 2].includes(threads)) throw new Error(`--threads ${options.threads}: 1 or 2`);
if (!(seconds > 0)) throw new Error(`--seconds ${options.seconds}: give a number above 0`);
installPeers();
if (!options.site) command("make", ["-s", "web"], { cwd: root });
const site = path.resolve(options.site ?? path.join(root, "build/site"));
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "weft-peers-"));
try {
  fs.mkdirSync(path.join(folder, "data"));
  fs.symlinkSync(site, path.join(folder, "site"));
  command(python, [path.join(here, "reference.py"), "data", path.join(folder, "data"), ...names]);
  command(python, [path.join(here, "reference.py"), "export", path.join(folder, "exported")]);
  await bundle(folder, peers);
  const before = load();
  const { results, emptyMs, failures } = await measurePage(folder, names, { peers, threads, seconds, backend, site });
  const after = load();
  if (options.native) {
    for (const [who, column] of Object.entries({ numpy: "numpy", weft: "xla" })) {
      /** @type {import("./peers/table.mjs").Times} */
      const times = JSON.parse(
        command(python, [path.join(here, "reference.py"), who, path.join(folder, "data"), ...names]),
      );
      for (const [name, { times: measured }] of Object.entries(results)) measured[column] = times[name];
    }
  }
  console.log(table(results, { threads, emptyMs }));
  const wrong = [
    ...Object.entries(failures).map(([name, message]) => `${name} does not start: ${message}`),
    ...problems(results),
  ];
  if (wrong.length) console.log(`\nProblems:\n${wrong.map((line) => `- ${line}`).join("\n")}`);
  if (emptyMs !== null) console.log(`\nAn empty call from Python of WebAssembly: ${(emptyMs * 1000).toFixed(2)} µs.`);
  console.log(
    `${backend}, threads ${threads}, ${seconds} s for each workload. Load average ${before} before, ${after} after.`,
  );
  if (options.json)
    fs.writeFileSync(
      options.json,
      JSON.stringify({ threads, seconds, before, after, emptyMs, results, wrong }, null, 1),
    );
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}
