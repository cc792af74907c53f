import assert from "node:assert/strict";
import { test } from "node:test";
import { createPage } from "../src/page.js";

test("a page has the hook that it is given, and one that does nothing otherwise", async () => {
  const seen: unknown[] = [];
  const timing = (phase: string, ms: number) => void seen.push([phase, ms]);
  const [plain, page] = await Promise.all([createPage(), createPage({ timing })]);
  for (const each of [plain, page]) each.timing("compile", 2);
  assert.deepEqual(seen, [["compile", 2]]);
  // Node has neither a GPU nor a database.
  assert.deepEqual([page.version, page.gpu, page.cache, page.features], [1, null, null, page.device.features]);
});
