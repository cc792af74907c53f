// What runs exported programs, and their page, are kept in the repository: they must be what their sources give.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const { scripts } = JSON.parse(fs.readFileSync(path.join(root, "wasm/runtime/package.json"), "utf8"));

for (const [file, script] of [
  ["weft.js", "build:exported"],
  ["weft-gpu.js", "build:gpu"],
  ["weft-page.js", "build:page"],
]) {
  test(`${file} of exported programs is made from the runtime's sources`, () => {
    const kept = path.join(root, "wasm/src/weft_wasm/page", String(file));
    const command = scripts[String(script)].replace(/--outfile=\S+ /, "");
    const env = { ...process.env, PATH: `${path.join(root, "node_modules/.bin")}:${process.env.PATH}` };
    const made = execFileSync("sh", ["-c", command], { cwd: path.join(root, "wasm/runtime"), env, encoding: "utf8" });
    const advice = `run \`npm run ${script} -w @weft/runtime\`, and commit ${file}`;
    assert.ok(made === fs.readFileSync(kept, "utf8"), advice);
  });
}
