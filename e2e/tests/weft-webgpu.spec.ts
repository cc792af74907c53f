/** The real language on WebGPU in Chromium. */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { close, serve } from "../../tools/web/serve.mjs";
import { expect, Playground, test } from "../fixtures/site.js";

const folder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../build/site");

test("a program gives the same numbers on WebGPU as on Wasm", async ({ page }) => {
  const { server, url } = await serve(folder);
  const playground = new Playground(page, url);
  await playground.open();
  const source = [
    "import weft, weft.numpy as jnp",
    "x = jnp.linspace(-1.0, 1.0, 64).reshape(8, 8)",
    "f = weft.jit(weft.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2)))",
    "print([round(v, 5) for v in f(x.T).sum(axis=0).tolist()])",
  ].join("\n");
  const onWasm = await playground.runToEnd(source);
  await page.getByRole("radio", { name: "WebGPU" }).check();
  expect(await playground.runToEnd(source, "Done on WebGPU")).toBe(onWasm);
  await close(server);
});
