"""What a call from Python of `scan`, `cond` and others takes that are given functions which they were given before.

python bench/given_again.py                             weft
python bench/given_again.py --jax PYTHON_WITH_JAX       real jax too, in a process of its own
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time

TIMES = 20


def body(jnp):
    def step(c, x):
        h = jnp.tanh(c * x + 1)
        return c * 0.9 + h, h

    return step


def measured(module: str) -> dict[str, float]:
    """The median of each call, in milliseconds."""
    jax, jnp = importlib.import_module(module), importlib.import_module(f"{module}.numpy")
    lax, x, step = jax.lax, jnp.arange(50.0), body(jnp)
    more, less, small = (lambda c: c + 1.0), (lambda c: c - 1.0), (lambda c: c < 10.0)
    grow, double = (lambda i, c: c * 1.01 + i), (lambda x: jnp.sin(x) * 2)
    row = lambda c: lax.scan(step, c, x)[0]
    calls = {
        "scan": lambda: lax.scan(step, 0.0, x),
        "cond": lambda: lax.cond(x[0] > 0, more, less, x),
        "while_loop": lambda: lax.while_loop(small, more, 0.0),
        "fori_loop": lambda: lax.fori_loop(0, 10, grow, 1.0),
        "vmap of scan": lambda: jax.vmap(row)(x),
        "grad of scan": lambda: jax.grad(row)(0.0),
        "jit in a loop": lambda: jax.jit(double)(x),
    }
    found = {}
    for name, call in calls.items():
        jax.block_until_ready(call())
        took = []
        for _ in range(TIMES):
            began = time.perf_counter()
            jax.block_until_ready(call())
            took.append(1e3 * (time.perf_counter() - began))
        found[name] = sorted(took)[TIMES // 2]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter that has real jax")
    parser.add_argument("--measure", metavar="MODULE", help="prints the figures of a module as JSON")
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measured(args.measure)))
        return
    ours, theirs = measured("weft"), {}
    if args.jax:
        command = [args.jax, __file__, "--measure", "jax"]
        theirs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for name, took in ours.items():
        beside = f"   jax {theirs[name]:8.2f} ms   {took / theirs[name]:5.2f} times" if theirs else ""
        print(f"{name:14} {took:8.2f} ms{beside}")


if __name__ == "__main__":
    sys.exit(main())
