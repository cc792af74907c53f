// `npm run typecheck` reads every file that it is meant to: one that no project includes would be checked by nobody.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const SKIPPED = ["node_modules", "dist", "test-results"];

/**
 * @param {string} folder
 * @returns {string[]}
 */
function under(folder) {
  return fs
    .readdirSync(path.join(root, folder), { withFileTypes: true })
    .filter((entry) => !SKIPPED.includes(entry.name))
    .flatMap((entry) => (entry.isDirectory() ? under(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`]));
}

test("every TypeScript and tool file is in a project that `npm run typecheck` reads", () => {
  const { scripts } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
  const projects = [...scripts.typecheck.matchAll(/tsc -p (\S+)/g)].map(([, project]) => project);
  const command = path.join(root, "node_modules/.bin/tsc");
  const read = new Set(
    projects.flatMap((project) =>
      execFileSync(command, ["-p", project, "--listFilesOnly"], { cwd: root, encoding: "utf8" })
        .split("\n")
        .map((file) => path.relative(root, file)),
    ),
  );
  const files = ["wasm/runtime", "wasm/src/weft_wasm/page", "cell", "web", "e2e", "tools", "bench"].flatMap(under);
  const meant = files.filter((file) => /\.ts$|^(tools|e2e|bench)\/.*\.mjs$/.test(file));
  assert.ok(meant.length > 50);
  assert.deepEqual(
    meant.filter((file) => !read.has(file)),
    [],
  );
});

test("the strict options hold in every project", () => {
  const options = ["strict", "noUncheckedIndexedAccess", "noImplicitOverride"];
  for (const project of ["wasm/runtime", "cell", "web", "e2e", "tools"]) {
    const command = path.join(root, "node_modules/.bin/tsc");
    const shown = JSON.parse(execFileSync(command, ["-p", project, "--showConfig"], { cwd: root, encoding: "utf8" }));
    assert.deepEqual(
      options.map((name) => shown.compilerOptions[name]),
      options.map(() => true),
      project,
    );
  }
});
