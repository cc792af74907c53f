/** Programs that another thread of the page stops while they run: the word of device memory that compiled loops look at. */
import { expect } from "../fixtures/site.js";
import { test } from "../fixtures/weft.js";

/**
 * A program with a worker of its own that stops what runs, as the page does. It does so only once told that the
 * program is compiled, since what a first call does in Python is stopped in another way.
 */
const stopper = `\
import weft, weft.numpy as jnp
from js import Blob, Promise, URL, Worker
from pyodide.ffi import create_once_callable, run_sync, to_js
import _weft_page as page

code = "onmessage = ({ data }) => data ? setTimeout(() => Atomics.store(data, 0, 1), 300) : postMessage(0)"
worker = Worker.new(URL.createObjectURL(Blob.new(to_js([code]))))
worker.postMessage(0)  # once it has answered, messages reach it while this thread is busy
run_sync(Promise.new(create_once_callable(lambda resolve, reject: setattr(worker, "onmessage", resolve))))
view = page.device.interruptView()

def stopped(f, *args):
    f = weft.jit(f).lower(*args).compile()
    args = [jnp.asarray(x) for x in args]
    before = page.device.stats().to_py()["allocated"]
    worker.postMessage(view)
    try:
        f(*args)
    except KeyboardInterrupt:
        return page.device.stats().to_py()["allocated"] - before, page.device.interrupted
    return "it ran to its end"
`;

const PROGRAMS = {
  "a while loop without end": "weft.lax.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 7, n), jnp.int32(0)",
  "a long fori_loop": "weft.lax.fori_loop(0, 2**31 - 1, lambda k, i: (i * 3 + k) % 7, n), jnp.int32(0)",
  "a chain of products":
    "weft.lax.fori_loop(0, 10**6, lambda k, a: jnp.tanh(a @ a @ a @ a), n), jnp.ones((1024, 1024))",
  "one product": "jnp.ones((4096, 8192)) @ (jnp.ones((8192, 16384)) * n), jnp.float32(1)",
  "a large scan": "weft.lax.scan(lambda c, x: (jnp.sin(c) + x, c.sum()), n, jnp.arange(1000000.0)), jnp.ones(10000)",
};

for (const threads of ["", "?threads=1"]) {
  test(`compiled programs end when they are stopped${threads && ", on one thread"}`, async ({ playground }) => {
    await playground.open(threads);
    const calls = Object.values(PROGRAMS).map((text) => `print(stopped(lambda n: ${text}))`);
    const source = [
      stopper,
      "import time",
      "end = time.time() + 10",
      `while ${threads ? "False" : "True"} and weft.devices()[0].threads == 1 and time.time() < end: pass`,
      ...calls,
      "print(weft.lax.while_loop(lambda i: i < 5, lambda i: i + 1, 0), float(jnp.ones((600, 600)).sum()))",
    ].join("\n");
    expect(await playground.runToEnd(source)).toBe("(0, False)\n".repeat(calls.length) + "5 360000.0\n");
  });
}

test("a stop is KeyboardInterrupt at the line of the call", async ({ playground }) => {
  await playground.open();
  const source = [
    stopper,
    "import traceback",
    "f = weft.jit(lambda n: weft.lax.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 7, n))",
    "worker.postMessage(view)",
    "try:",
    "    f(0)  # here",
    "except KeyboardInterrupt as e:",
    "    print(traceback.extract_tb(e.__traceback__)[0].lineno)",
  ].join("\n");
  const line = source.split("\n").findIndex((text) => text.includes("# here")) + 1;
  expect(await playground.runToEnd(source)).toBe(`${line}\n`);
});
