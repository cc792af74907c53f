"""Matrix products of several sizes and dtypes: weft and real jax side by side, each in its own process.

    python bench/matmul.py [--jax PYTHON] [--platform cuda] [--rounds N]

Prints milliseconds for each product of two square matrices, from products that run one after the other; the file of
`--output` has the same. WEFT_MATMUL_SECONDS bounds the time of each process: larger sizes are left out after it.
"""

from __future__ import annotations

import os
import time

from side_by_side import PLATFORM, main

SIZES = {"cpu": (256, 512, 1024), "": (256, 512, 1024, 2048, 4096, 8192, 16384)}  # "": an accelerator
DTYPES = ("float32", "bfloat16", "float16")
SECONDS = float(os.environ.get("WEFT_MATMUL_SECONDS", "60"))


def name(dtype: str, size: int, precision: str | None) -> str:
    return f"{dtype}{' highest' if precision else ''} {size}"


def measure(which: str) -> dict[str, float]:
    """Milliseconds of a product by dtype and size, in the process of one of the two."""
    if which == "weft":
        import weft.as_jax  # noqa: F401
    import jax
    import jax.numpy as jnp

    platform = os.environ[PLATFORM].split(",")[0]
    end, result = time.monotonic() + SECONDS, {}
    for size in SIZES.get(platform, SIZES[""]):
        for dtype, precision in ((d, p) for d in DTYPES for p in (None, "highest") if p is None or d == "float32"):
            if platform == "cpu" and dtype != "float32" or time.monotonic() > end:
                continue
            product = jax.jit(lambda a, b, precision=precision: jnp.matmul(a, b, precision=precision))
            a, b = (jax.random.normal(jax.random.key(i), (size, size), dtype) for i in range(2))
            product(a, b).block_until_ready()
            count, best = max(1, min(50, int(2e12 / size**3 / 2))) if platform != "cpu" else 3, float("inf")
            for _ in range(4):
                begin = time.perf_counter()
                for _ in range(count):
                    c = product(a, b)
                c.block_until_ready()
                best = min(best, (time.perf_counter() - begin) / count)
            result[name(dtype, size, precision)] = best * 1e3
    return result


if __name__ == "__main__":
    main(__file__, __doc__, measure, "ms", rounds=2, decimals=3)
