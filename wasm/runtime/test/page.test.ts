import assert from "node:assert/strict";
import { test } from "node:test";
import { createPage } from "../src/page.js";

test("a page has the hooks that it is given, and others that do nothing", async () => {
  const seen: unknown[] = [];
  const hooks = {
    timing: (phase: string, ms: number) => void seen.push([phase, ms]),
    live: (label: string, x: number, y: number) => void seen.push([label, x, y]),
    plot: (kind: string) => void seen.push(kind),
  };
  const [plain, page] = await Promise.all([createPage(), createPage(hooks)]);
  for (const { timing, live, plot } of [plain, page]) {
    timing("compile", 2);
    live("loss", 1, 3);
    plot("line", "loss", new Float64Array(1), new Float64Array(1));
  }
  assert.deepEqual(seen, [["compile", 2], ["loss", 1, 3], "line"]);
  // Node has neither a GPU nor a database.
  assert.deepEqual([page.version, page.gpu, page.cache, page.features], [1, null, null, page.device.features]);
});
