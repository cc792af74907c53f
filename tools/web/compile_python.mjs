// Compiles the standard library and wheels to bytecode inside Pyodide under Node: what a page loads, made by what it
// runs.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { loadPyodide } from "pyodide";

const here = path.dirname(fileURLToPath(import.meta.url));

/** Patterns of the modules that a first visit leaves on the server. */
const LATER = fs
  .readFileSync(path.join(here, "later.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));

/** What stands for a docstring in bytecode whose docstrings lie apart. */
const MARK = String(
  /^MARK = "(.*)"$/m.exec(fs.readFileSync(path.join(here, "../../web/python/weft_docstrings.py"), "utf8"))?.[1],
);

/**
 * From the archive `source`, the archive `target` of what a first visit loads; beside it `later.zip`, which the page
 * unpacks into the folder of `later.json` when a program imports one of the modules named there, and, if docstrings
 * lie apart, `docstrings.json` with the texts.
 * @typedef {{ source: string, target: string, prefix: string, folder: string, optimize: number, apart: boolean }} Job
 */

/**
 * Rewrites each archive.
 * @param {Job[]} jobs
 */
export async function compileArchives(jobs) {
  // Columns of code are a quarter of compressed bytecode. They place the carets of tracebacks, which are only shown
  // under lines of source, and sources stay on the server.
  const env = { HOME: "/home/pyodide", PYTHONNODEBUGRANGES: "1" };
  const pyodide = await loadPyodide({ env });
  pyodide.FS.writeFile("/home/pyodide/compile_python.py", fs.readFileSync(path.join(here, "compile_python.py")));
  const { compile_archive: compile } = pyodide.pyimport("compile_python");
  const patterns = pyodide.toPy(LATER);
  for (const { source, target, prefix, folder, optimize, apart } of jobs) {
    pyodide.FS.writeFile("/tmp/source.zip", new Uint8Array(fs.readFileSync(source)));
    const mark = apart ? MARK : "";
    const result = compile("/tmp/source.zip", "/tmp/target.zip", "/tmp/later.zip", prefix, optimize, patterns, mark);
    const [count, modules, docstrings] = result.toJs();
    if (apart) fs.writeFileSync(path.join(path.dirname(target), "docstrings.json"), JSON.stringify(docstrings));
    fs.writeFileSync(path.join(path.dirname(target), "later.zip"), pyodide.FS.readFile("/tmp/later.zip"));
    fs.writeFileSync(path.join(path.dirname(target), "later.json"), JSON.stringify({ folder, modules }));
    fs.writeFileSync(target, pyodide.FS.readFile("/tmp/target.zip"));
    const bytes = fs.statSync(target).size;
    console.log(`  ${path.basename(target)}: ${count} modules, ${modules.length} of them later, ${bytes} bytes`);
  }
}

/**
 * The job for the standard library: without docstrings and assertions.
 * @param {string} source
 * @param {string} target
 * @returns {Job}
 */
export function stdlibJob(source, target) {
  return { source, target, prefix: "/lib/python314.zip/", folder: "/lib/python3.14", optimize: 2, apart: false };
}

/**
 * The job for one of our wheels: the compiler has no docstrings, which are for readers of its sources, and those of
 * the language lie apart.
 * @param {string} source
 * @param {string} target
 * @returns {Job}
 */
export function wheelJob(source, target) {
  const folder = "/lib/python3.14/site-packages";
  const project = path.basename(source).replace(/-.*/, "");
  const optimize = project === "weft_wasm" ? 2 : 0;
  return { source, target, prefix: `${folder}/`, folder, optimize, apart: project === "weft" };
}
