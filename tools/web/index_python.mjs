// The index of Python's own names for the editor, made inside Pyodide, whose names they are.
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const scripts = ["tools/web/index_names.py", "web/python/weft_signatures.py"];

/** The file of the index, which is made once for each content of what makes it. */
export async function indexPython() {
  const version = fs.readFileSync(path.join(root, "node_modules/pyodide/package.json"));
  const hash = crypto.createHash("sha256").update(version);
  for (const script of scripts) hash.update(fs.readFileSync(path.join(root, script)));
  const target = path.join(root, `build/cache/python-index-${hash.digest("hex").slice(0, 16)}.json`);
  if (fs.existsSync(target)) return target;
  const { loadPyodide } = await import("pyodide");
  const pyodide = await loadPyodide({ env: { HOME: "/home/pyodide" } });
  for (const script of scripts)
    pyodide.FS.writeFile(`/home/pyodide/${path.basename(script)}`, fs.readFileSync(path.join(root, script)));
  const text = String(pyodide.pyimport("index_names").standard_library());
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.writeFileSync(target, text);
  return target;
}
