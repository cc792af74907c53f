// What runs exported programs is kept in the repository: it must be what its sources give.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");

test("weft.js of exported programs is made from the runtime's sources", () => {
  const kept = path.join(root, "wasm/src/weft_wasm/page/weft.js");
  const { scripts } = JSON.parse(fs.readFileSync(path.join(root, "wasm/runtime/package.json"), "utf8"));
  const command = scripts["build:exported"].replace(/--outfile=\S+ /, "");
  const env = { ...process.env, PATH: `${path.join(root, "node_modules/.bin")}:${process.env.PATH}` };
  const made = execFileSync("sh", ["-c", command], { cwd: path.join(root, "wasm/runtime"), env, encoding: "utf8" });
  assert.ok(
    made === fs.readFileSync(kept, "utf8"),
    "run `npm run build:exported -w @weft/runtime`, and commit weft.js",
  );
});
