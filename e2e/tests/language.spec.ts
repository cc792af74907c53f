/** What the language does in a page, where NumPy is absent, as elsewhere: what once did not. */
import { expect } from "../fixtures/site.js";
import { test } from "../fixtures/weft.js";

test("arrays are put on devices, and mapped over them", async ({ playground }) => {
  await playground.open();
  const source = [
    "import weft, weft.numpy as jnp",
    "x, device = jnp.arange(4.0), weft.devices()[0]",
    "print(weft.device_put(x, device), weft.device_put(2.5, device), weft.device_put([1, x[1]], device))",
    "print(weft.pmap(lambda x: x * 2)(x[None]))",
    "print(weft.pmap(lambda x: weft.lax.psum(x, 'i'), axis_name='i', devices=[device])(x[None]))",
  ].join("\n");
  expect(await playground.runToEnd(source)).toBe(
    [
      "[0. 1. 2. 3.] 2.5 [Array(1, dtype=int32, weak_type=True), Array(1., dtype=float32)]",
      "[[0. 2. 4. 6.]]",
      "[[0. 1. 2. 3.]]\n",
    ].join("\n"),
  );
});

test("memoryviews show an array's memory, or say what to do", async ({ playground }) => {
  await playground.open();
  const source = [
    "import array, weft, weft.numpy as jnp",
    "view = memoryview(jnp.arange(6.0).reshape(2, 3))",
    "print(view.tolist(), view.shape, view.format, view.readonly)",
    "print(memoryview(jnp.array(True)).tolist(), bytes(jnp.array([1, 2], jnp.uint8)), array.array('i', jnp.arange(3)))",
    "print(jnp.asarray(memoryview(jnp.arange(3))), memoryview(jnp.zeros((0, 2))).nbytes)",
    "try: memoryview(jnp.ones(2, jnp.bfloat16))",
    "except BufferError as e: print(e)",
    "try: jnp.ones(2).__array__()",
    "except ImportError as e: print('memoryview()' in str(e))",
    "print(jnp.arange(-2, 2).astype(jnp.int4))",
  ].join("\n");
  expect(await playground.runToEnd(source)).toBe(
    [
      "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] (2, 3) f True",
      "True b'\\x01\\x02' array('i', [0, 1, 2])",
      "[0 1 2] 0",
      "memoryviews have no format for bfloat16. Convert the array, as by x.astype('float32') or lax.real(x), or use tolist() or tobytes().",
      "True",
      "[-2 -1 0 1]\n",
    ].join("\n"),
  );
});

test("programs print while they run", async ({ playground }) => {
  await playground.open();
  const source = [
    "import weft, weft.numpy as jnp",
    "f = weft.jit(lambda x: (weft.debug.print('x={x} sum={:.1f}', x.sum(), x=x), x * 2)[1])",
    "print(f(jnp.arange(3.0)))",
  ].join("\n");
  expect(await playground.runToEnd(source)).toBe("x=[0. 1. 2.] sum=3.0\n[0. 2. 4.]\n");
});

test("options and patches of weft and jax do not reach the next run", async ({ playground }) => {
  await playground.open();
  const changes = [
    "import jax, weft, weft.numpy",
    "jax.config.update('jax_disable_jit', True)",
    "jax.config.update('jax_enable_x64', True)",
    "weft.jit = jax.numpy.sin = None",
    "print(jax.numpy.arange(2.0).dtype, weft.jit)",
  ];
  expect(await playground.runToEnd(changes.join("\n"))).toBe("float64 None\n");
  const look = [
    "import jax, weft, weft.numpy as jnp",
    "print(weft.config.jax_disable_jit, callable(weft.jit), jnp.sin(0.0), jnp.arange(2.0).dtype, jax.numpy.sin(0.0))",
  ];
  expect(await playground.runToEnd(look.join("\n"))).toBe("False True 0.0 float32 0.0\n");
});

test("an engine without SIMD runs the same programs", async ({ playground, page }) => {
  await page.route("**/assets/worker-*.js", async (route) => {
    const response = await route.fetch();
    // What asks for a feature of WebAssembly validates a module that uses it.
    await route.fulfill({ response, body: `WebAssembly.validate = () => false;\n${await response.text()}` });
  });
  const lines = [
    "import weft, weft.numpy as jnp, _weft_page",
    "f = weft.jit(weft.grad(lambda x: jnp.sum(jnp.sin(x @ x) * jnp.exp(-x))))",
    "print(_weft_page.features.to_py(), round(float(f(jnp.linspace(0.0, 1.0, 64).reshape(8, 8)).sum()), 3))",
  ];
  await playground.open();
  const plain = await playground.runToEnd(lines.join("\n"));
  expect(plain).toMatch(/^\[\] -?\d/);
  await page.unroute("**/assets/worker-*.js");
  await playground.open();
  const vectors = await playground.runToEnd(lines.join("\n"));
  expect(vectors).toContain("simd128");
  expect(vectors.split(" ").at(-1)).toBe(plain.split(" ").at(-1));
});
