// The playground, the cell before its site is there, and the page of an exported program are files of three packages,
// and look alike: a colour or font of one name has one value.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const OURS = "web/src/output/colours.css";
const OTHERS = ["cell/src/styles.ts", "wasm/src/weft_wasm/page/demo.html"];

/** @param {string} file */
function properties(file) {
  const text = fs.readFileSync(path.join(root, file), "utf8");
  return new Map([...text.matchAll(/^\s*(--[\w-]+): (.*);$/gm)].map(([, name = "", value = ""]) => [name, value]));
}

for (const file of OTHERS) {
  test(`${file} has the colours and fonts of the playground`, () => {
    const ours = properties(OURS);
    const theirs = [...properties(file)];
    assert.ok(theirs.length > 10);
    for (const [name, value] of theirs) assert.equal(value, ours.get(name), name);
  });
}
