// Compiles the standard library and wheels to bytecode inside Pyodide under Node: what a page loads, made by what it
// runs.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { loadPyodide } from "pyodide";

const here = path.dirname(fileURLToPath(import.meta.url));

// Clients and servers of protocols that a page can't speak.
const PRUNED = ["ftplib", "imaplib", "mailbox", "poplib", "smtplib", "wsgiref", "xmlrpc"];

/** @typedef {{ source: string, target: string, prefix: string, optimize: number, prune: string[] }} Job */

/**
 * Rewrites each archive.
 * @param {Job[]} jobs
 */
export async function compileArchives(jobs) {
  const pyodide = await loadPyodide();
  pyodide.FS.writeFile("/home/pyodide/compile_python.py", fs.readFileSync(path.join(here, "compile_python.py")));
  const { compile_archive: compile } = pyodide.pyimport("compile_python");
  for (const job of jobs) {
    pyodide.FS.writeFile("/tmp/source.zip", new Uint8Array(fs.readFileSync(job.source)));
    const prune = pyodide.toPy(job.prune);
    const count = compile("/tmp/source.zip", "/tmp/target.zip", job.prefix, job.optimize, prune);
    fs.writeFileSync(job.target, pyodide.FS.readFile("/tmp/target.zip"));
    console.log(`  ${path.basename(job.target)}: ${count} modules, ${fs.statSync(job.target).size} bytes`);
  }
}

/**
 * The job for the standard library: without docstrings and assertions, and without what can't work in a page.
 * @param {string} source
 * @param {string} target
 * @returns {Job}
 */
export function stdlibJob(source, target) {
  return { source, target, prefix: "/lib/python314.zip/", optimize: 2, prune: PRUNED };
}

/**
 * The job for one of our wheels: complete, docstrings included.
 * @param {string} source
 * @param {string} target
 * @returns {Job}
 */
export function wheelJob(source, target) {
  return { source, target, prefix: "/lib/python3.14/site-packages/", optimize: 0, prune: [] };
}
