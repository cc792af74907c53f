"""Microseconds of a small jit call, an eager operation and a read on the Wasm backend, beside the runtime's own call.

python bench/wasm_dispatch.py
"""

import timeit

import weft
import weft.numpy as jnp

weft.config.update("jax_platforms", "wasm")


def best(fun, n=3000):
    return min(timeit.repeat(fun, number=n, repeat=5)) / n * 1e6


def main():
    x = jnp.arange(4, dtype="float32")
    f = weft.jit(lambda x: x + 1)
    g = weft.jit(lambda p: {"a": p["a"] + p["b"], "b": p["b"]})
    p = {"a": x, "b": x}
    f(x), g(p)
    executable = f.lower(x).compile().executable
    handles = [x.handle]

    def call():
        for h in executable.call(handles):
            executable.backend.release(h)

    print(f"the runtime's call  {best(call):7.2f} us")
    print(f"execute             {best(lambda: executable.execute([x])):7.2f} us")
    print(f"jit x + 1           {best(lambda: f(x)):7.2f} us")
    print(f"jit on a dict       {best(lambda: g(p)):7.2f} us")
    print(f"eager x + 1         {best(lambda: x + 1):7.2f} us")
    print(f"float(x[0]) by jit  {best(lambda: float(f(x)[0]), 500):7.2f} us")


if __name__ == "__main__":
    main()
