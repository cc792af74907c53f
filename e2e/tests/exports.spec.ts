/** `weft.export.web` in the playground: the reader gets the folder. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect } from "@playwright/test";
import { python, root, test } from "../fixtures/weft.js";
import { close, serve } from "../../tools/web/serve.mjs";

test("a program that is exported in the page is offered as one file, whose page runs", async ({ playground, page }) => {
  await playground.open();
  const source = [
    "import weft, weft.numpy as jnp",
    "from weft import export",
    "def double(x): return 2 * x",
    "for size in (2, 3):  # the second takes the first one's place",
    "    export.web(double, weft.ShapeDtypeStruct((size,), jnp.float32), path='out', title='Twice')",
  ].join("\n");
  await playground.run(source);
  const save = page.getByRole("button", { name: "Download double.zip" });
  await expect(save).toHaveCount(1);
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
  const target = path.join(root, "build/e2e/offered");
  fs.rmSync(target, { recursive: true, force: true });
  execFileSync(python, ["-m", "zipfile", "-e", await download.path(), target]);
  const { server, url } = await serve(target, { isolated: false });
  const other = await page.context().newPage(); // the fixture cleans up at the playground's address
  await other.goto(`${url}double/double.html`);
  await expect(other.locator("h1")).toHaveText("Twice");
  await other.locator("textarea").fill("1, 2, 4.5");
  await other.getByRole("button", { name: "Run" }).click();
  await expect(other.locator("#results output")).toHaveText(["2", "4", "9"]);
  await other.close();
  await close(server);
});
