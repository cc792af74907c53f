// What is published works outside of this repository: each package is packed, installed into an empty folder, run under
// Node where it runs there, and a program is type-checked against it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const tsc = path.join(root, "node_modules/.bin/tsc");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "weft-published-"));
after(() => fs.rmSync(folder, { recursive: true, force: true }));

/**
 * @param {string} command
 * @param {string[]} args
 */
const run = (command, args, cwd = folder) => execFileSync(command, args, { cwd, encoding: "utf8", stdio: "pipe" });

/**
 * Packs a workspace and installs it; returns the names of the files in the tarball.
 * @param {string} workspace
 */
function install(workspace) {
  const packed = run("npm", ["pack", "--silent", "--pack-destination", folder, "-w", workspace], root).trim();
  const tarball = path.join(folder, String(packed.split("\n").at(-1)));
  fs.writeFileSync(path.join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--no-save", tarball]);
  return run("tar", ["-tzf", tarball])
    .trim()
    .split("\n")
    .map((name) => name.replace("package/", ""));
}

/** @param {string[]} names */
function checkNames(names) {
  for (const name of ["package.json", "README.md", "LICENSE", "dist/index.d.ts"]) assert.ok(names.includes(name), name);
  assert.deepEqual(
    names.filter((name) => !/^(package\.json|README\.md|LICENSE|dist\/(host\/)?[\w-]+\.(js|d\.ts))$/i.test(name)),
    [],
  );
}

/**
 * Type-checks a program that lies in the folder.
 * @param {string} name
 * @param {string[]} lines
 */
function typeCheck(name, lines) {
  fs.writeFileSync(path.join(folder, name), lines.join("\n"));
  const flags = "--noEmit --strict --ignoreConfig --target es2022 --module esnext --moduleResolution bundler";
  run(tsc, [...flags.split(" "), "--lib", "es2022,dom,dom.iterable", name]);
}

test("@weft/runtime runs an exported program in an empty folder", () => {
  checkNames(install("@weft/runtime"));
  const python = process.env["PYTHON"] ?? path.join(root, ".venv/bin/python");
  const program = [
    "import weft, weft.numpy as jnp",
    "from weft import export",
    "w = jnp.arange(3, dtype=jnp.float32)",
    "def scale(x): return {'twice': 2 * x + w, 'sum': x.sum()}",
    "x = weft.ShapeDtypeStruct((3,), jnp.float32)",
    "export.web(scale, x, path='out')",
    "export.web(scale, x, path='out', name='both', target='auto')",
  ];
  run(python, ["-c", program.join("\n")]);
  const none = "export const load = null, loadAsync = null, Device = null;\n"; // these are not the ones that run
  for (const name of ["weft.js", "weft-gpu.js"]) fs.writeFileSync(path.join(folder, "out", name), none);
  const script = [
    'import { load, loadAsync } from "@weft/runtime/exported";',
    'import { WasmDevice } from "@weft/runtime";',
    'import { signature, files } from "./out/scale.js";',
    'import * as both from "./out/both.js";',
    "const scale = await load(signature, files);",
    "const device = await WasmDevice.create();",
    "const { twice, sum } = scale(Float32Array.of(1, 2, 3));",
    "const waiting = await loadAsync(both.signature, both.files);",
    "const again = (await waiting(Float32Array.of(1, 2, 3))).sum;",
    "console.log(JSON.stringify([Array.from(twice), sum, device.threads, again, waiting.backend, waiting.reason]));",
  ];
  fs.writeFileSync(path.join(folder, "run.mjs"), script.join("\n"));
  const why = "there is no WebGPU here (navigator.gpu is missing)";
  assert.deepEqual(JSON.parse(run(process.execPath, ["run.mjs"])), [[2, 5, 8], 6, 1, 6, "wasm", why]);
  const lost = [
    'import { connect } from "@weft/runtime/host";',
    'console.log(await connect("ws://127.0.0.1:9", { token: "t" }).catch((error) => error.message));',
  ];
  fs.writeFileSync(path.join(folder, "host.mjs"), lost.join("\n"));
  const alone = "WebSocket" in globalThis ? /^no connection to/ : /^this runtime has no WebSocket: `npm install ws`/;
  assert.match(run(process.execPath, ["host.mjs"]), alone);
  typeCheck("host.ts", [
    'import { connect, place, type RemoteProgram } from "@weft/runtime/host";',
    'const host = await connect("wss://example.org", { token: "t" });',
    "type Scale = RemoteProgram<[Float32Array], { sum: number }>;",
    'const scale: Scale = await host.load<[Float32Array], { sum: number }>("scale.weft", { donate: [0] });',
    "const sum: number = (await scale(new Float32Array(3))).sum;",
    "const kept = await scale.read(await scale.onDevice(new Float32Array(3)));",
    "// @ts-expect-error: no text",
    "const text: string = kept.sum;",
    'import * as both from "./out/both.js";',
    "const placed = await place<both.Arguments, both.Result>(both, { device: host.devices[0] });",
    "const where: string = placed.where;",
    "void [sum, text, where];",
  ]);
  typeCheck("runtime.ts", [
    'import { load, loadAsync, type Signature } from "@weft/runtime/exported";',
    'import { WasmDevice, type MemoryStats } from "@weft/runtime";',
    'import { signature, files, type Arguments, type Result } from "./out/scale.js";',
    "const scale = await load<Arguments, Result>(signature, files);",
    "const sum: number = scale(new Float32Array(3)).sum;",
    "// @ts-expect-error: an array of doubles",
    "scale(new Float64Array(3));",
    'import * as both from "./out/both.js";',
    "const waiting = await loadAsync<both.Arguments, both.Result>(both.signature, both.files);",
    "const later: number = (await waiting(new Float32Array(3))).sum;",
    "const stats: MemoryStats = (await WasmDevice.create()).stats();",
    "const same: Signature = scale.signature;",
    "export { sum, later, stats, same };",
  ]);
});

test("@weft/cell has types of its element, and nothing but its script", () => {
  checkNames(install("@weft/cell"));
  typeCheck("cell.ts", [
    'import "@weft/cell";',
    'import type { RunEvent, Status, WeftCell } from "@weft/cell";',
    'const cell: WeftCell = document.querySelector("weft-cell")!;',
    'cell.code = "1 + 1";',
    "const status: Status = await cell.run();",
    'cell.addEventListener("weft-result", (event) => console.log((event as CustomEvent<RunEvent>).detail.ms));',
    "// @ts-expect-error: not a method",
    "cell.runAll();",
    "export { status };",
  ]);
  assert.doesNotMatch(
    fs.readFileSync(path.join(folder, "node_modules/@weft/cell/dist/weft-cell.js"), "utf8"),
    /^import/m,
  );
});
