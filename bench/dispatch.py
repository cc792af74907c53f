"""What a call costs in Python: weft and real jax side by side, each in its own process and environment.

    python bench/dispatch.py [--jax PYTHON] [--platform cuda]      (or JAX_PYTHON=…; without it only weft is measured)

Prints one row for each case: microseconds of jax, microseconds of weft, and their ratio; then the import times.
Each figure is the least of several rounds that alternate between the two, on whatever else the machine is doing.
"""

from __future__ import annotations

import os
import time

from side_by_side import PLATFORM, main


def measure(which: str) -> dict[str, float]:
    """Microseconds by case, in the process of one of the two."""
    start = time.perf_counter()
    if which == "jax":
        import jax as lib
        import jax.numpy as jnp

        imported = time.perf_counter()
    else:
        import weft as lib

        imported = time.perf_counter()
        lib.config.update("jax_platforms", os.environ[PLATFORM])
        import weft.numpy as jnp
    lib.device_put([1.0, 2.0])
    first = time.perf_counter()

    def cost(f, n: int) -> float:
        for _ in range(n // 10):
            f()
        best = float("inf")
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(n):
                f()
            best = min(best, time.perf_counter() - begin)
        return best / n * 1e6

    result = {"import (ms)": (imported - start) * 1e3, "import and first array (ms)": (first - start) * 1e3}
    x, y = jnp.arange(4, dtype=jnp.float32), jnp.ones(4, jnp.float32)
    plus_one = lib.jit(lambda x: x + 1)
    result["jit x + 1, f32[4]"] = cost(lambda: plus_one(x), 20000)
    result["eager x + y, f32[4]"] = cost(lambda: x + y, 20000)
    result["eager x + 1, f32[4]"] = cost(lambda: x + 1, 20000)
    result["eager jnp.sin(x), f32[4]"] = cost(lambda: jnp.sin(x), 10000)
    for leaves in (1, 10, 100):
        tree = {f"layer{i:03}": x for i in range(leaves)}
        scale = lib.jit(lambda t: {k: v * 2 for k, v in t.items()})
        result[f"jit of a dict of {leaves} leaves"] = cost(lambda: scale(tree), 20000 // leaves)
    # what is traced in each call
    lax, number = lib.lax, jnp.float32(1.5)
    step = lambda carry, x: (jnp.tanh(carry * x) + x, carry)
    traced = {
        "eager grad of a scan": lib.grad(lambda w: lax.scan(step, w, x)[0]),
        "eager grad of a cond": lib.grad(lambda w: lax.cond(w > 1, jnp.sin, jnp.cos, w)),
        "eager map over rows": lambda w: lax.map(lambda row: row * w, x),
        "jit of a new lambda": lambda w: lib.jit(lambda x: jnp.sin(w) * x)(x),
    }
    for name, f in traced.items():
        result[name] = cost(lambda: f(number), 10)
    return result


if __name__ == "__main__":
    main(__file__, __doc__, measure, "us per call")
