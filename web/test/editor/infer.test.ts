import assert from "node:assert/strict";
import test from "node:test";
import { index, inferred } from "./program.js";

const imports = "import jax, jax.numpy as jnp\nfrom jax.numpy import linalg as la\n";

for (const [text, expected] of [
  ["jnp.ones(3)", "Array"],
  ["jnp.ones(3).T.sum", "entry sum"],
  ["jnp.ones(3)[0] @ 2 + 1", "Array"],
  ["2 * -jnp.ones(3) > 0", "Array"],
  ["jnp.ones(3).at[0]", "Update"],
  ["jnp.ones(3).at[0].set(1)", "Array"],
  ["x = y = jnp.ones(3)\ny", "Array"],
  ["a, b = jnp.ones(3), 2\nb", "int"],
  ["a, b = jnp.pair()\nb", "int"],
  ["for row in jnp.ones(3): pass\nrow", "Array"],
  ["jax.jit", "entry jit"],
  ["jax.numpy.linalg", "module weft.numpy.linalg"],
  ["la.qr(1)", "Array"],
  ["jax.core", "module weft.compat.core"],
  ["f = jax.jit(lambda x: jnp.ones(x))\nf(3)", "Array"],
  ["def f(x):\n    return 1.5\njax.value_and_grad(f)(jnp.ones(3))[1]", "Array"],
  ["def f(x) -> int: pass\nf(3)", "int"],
  ["def f(x): return g(x)\ndef g(x): return f(x)\nf(1)", "unknown"],
  ["class A:\n    def __init__(self): self.w = jnp.ones(3)\nA().w", "Array"],
  ["class A:\n    def f(self): return self\nA().f()", "object"],
  ["class A: pass\nx: A = make()\nx", "object"],
  ["'a' if x else 1", "str"],
  ["[1, 2]", "list"],
  ["import optax\noptax.adam(1)", "unknown"],
  ["x = x\nx", "unknown"],
] as [string, string][])
  test(text!, () => assert.equal(inferred(imports + text), expected));

test("names of earlier cells", () => {
  assert.equal(inferred(imports, "x = jnp.ones(3)", "x = 1", "x"), "int");
  assert.equal(inferred(imports, "x = jnp.ones(3)", "x.T"), "Array");
});

test("a source is fetched, and asked for again after a failure", async () => {
  assert.equal(await index.source("weft.numpy"), "source");
  assert.equal(await index.source("weft.missing"), null);
});
