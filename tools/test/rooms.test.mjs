// The folders of the page's sources are rooms in an order: a module imports only from its own room and from those
// before it (docs/decisions/030-playground.md).
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const sources = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../web/src");
const ROOMS = ["kernel", "documents", "figures", "output", "widgets", "editor", "notebook", "live", "inspector", "app"];
/** What lies beside the rooms and any of them may use. */
const SHARED = new Set(["elements.ts", "numbers.ts"]);

/**
 * The imports between rooms that a set of files has.
 * @param {{ name: string, text: string }[]} files
 */
function arrows(files) {
  return files.flatMap(({ name, text }) =>
    [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, target]) => ({
      name,
      to: path.posix.join(path.posix.dirname(name), String(target)),
    })),
  );
}

/** @param {{ name: string, text: string }[]} files */
function wrong(files) {
  return arrows(files)
    .filter(({ name, to }) => {
      const [from = "", into = ""] = [name, to].map((each) => each.split("/")[0]);
      if (!ROOMS.includes(from) || SHARED.has(to.replace(/\.js$/, ".ts"))) return false;
      return !ROOMS.includes(into) || ROOMS.indexOf(into) > ROOMS.indexOf(from);
    })
    .map(({ name, to }) => `${name} imports ${to}`);
}

const files = fs
  .readdirSync(sources, { recursive: true, encoding: "utf8" })
  .map((name) => name.replaceAll(path.sep, "/"))
  .filter((name) => name.endsWith(".ts"))
  .map((name) => ({ name, text: fs.readFileSync(path.join(sources, name), "utf8") }));

test("imports of the page's rooms point one way", () => {
  assert.ok(arrows(files).length > 100);
  assert.deepEqual(wrong(files), []);
});

test("an import that points back is found", () => {
  const bad = [{ name: "kernel/a.ts", text: 'import { b } from "../app/b.js";\nvoid import("../app/c.js");' }];
  assert.deepEqual(wrong(bad), ["kernel/a.ts imports app/b.js", "kernel/a.ts imports app/c.js"]);
});

test("every folder is a room", () => {
  const folders = new Set(files.flatMap(({ name }) => (name.includes("/") ? [name.split("/")[0]] : [])));
  assert.deepEqual([...folders].sort(), [...ROOMS].sort());
});
