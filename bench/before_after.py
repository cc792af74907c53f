"""What importing, tracing, lowering and compiling cost in two checkouts, in turn, each in its own processes.

    python bench/before_after.py OLD NEW [--rounds N]        (each with its environment in .venv)

Prints, for each phase, the least and the median milliseconds of both, and the ratios of the new to the old. The program
is the gradient step of the 12-layer transformer of transformer_program.py; for Wasm, of a small one with two layers.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time
from typing import Any, Callable

COUNTED = "BENCH_COUNTED"  # in a measuring process, what it measures
REPEATS = 5


def native() -> dict[str, float]:
    """Milliseconds by phase, up to StableHLO."""
    begin = time.perf_counter()
    import weft.as_jax  # noqa: F401

    figures = {"import weft": (time.perf_counter() - begin) * 1e3}
    import transformer_program as program
    import jax

    params, tokens = program.parameters(), program.tokens()
    jax.jit(lambda x: x + 1)(jax.numpy.float32(1))  # the client and the compiler are up

    def lower(traced: Any) -> None:
        traced.lower().compiler_ir("stablehlo")

    return figures | phases(jax.clear_caches, lambda: program.step.trace(params, tokens), lower, "trace", "lower")


def wasm() -> dict[str, float]:
    """Milliseconds by phase of the kernel compiler."""
    import weft

    weft.config.update("jax_platforms", "reference")
    import weft.as_jax  # noqa: F401
    import transformer_program as program
    from weft_wasm.compile import compile_program
    from weft_wasm.lower.program import lower

    features = frozenset(("simd128",))
    params, tokens = program.parameters(2, 64, 50, 16), program.tokens(2, 16, 50)
    closed = weft.make_jaxpr(lambda p, t: program.step.__wrapped__(p, t))(params, tokens)

    def lowered() -> Any:
        return lower(closed.jaxpr, "step", (), features)[0]

    def compiled(found: Any) -> None:
        compile_program(found, features, check=False)

    return phases(lambda: None, lowered, compiled, "lower for Wasm", "compile for Wasm")


def phases(
    forget: Callable[[], None], first: Callable[[], Any], second: Callable[[Any], None], *names: str
) -> dict[str, float]:
    figures: dict[str, float] = {}
    for i in range(REPEATS):
        forget()
        begin = time.perf_counter()
        found = first()
        middle = time.perf_counter()
        second(found)
        for name, took in zip(names, (middle - begin, time.perf_counter() - middle)):
            name = f"{name}, first" if i == 0 else f"{name}, again"
            figures[name] = min(figures.get(name, float("inf")), took * 1e3)
    return figures


MEASURES = {"native": native, "wasm": wasm}


def run(checkout: pathlib.Path, which: str) -> dict[str, float]:
    done = subprocess.run(
        [str(checkout / ".venv/bin/python"), str(pathlib.Path(__file__).resolve())],
        cwd=checkout,
        env={**os.environ, COUNTED: which},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    if COUNTED in os.environ:
        print(json.dumps(MEASURES[os.environ[COUNTED]]()))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("old", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("new", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    print("| phase | old, least (ms) | new, least (ms) | ratio | old, median | new, median | ratio |")
    print("|---|---|---|---|---|---|---|")
    for which in MEASURES:
        taken: dict[str, tuple[list[float], list[float]]] = {}
        for _ in range(options.rounds):
            for k, checkout in enumerate((options.old, options.new)):
                for name, figure in run(checkout, which).items():
                    taken.setdefault(name, ([], []))[k].append(figure)
        for name, (old, new) in taken.items():
            a, b, c, d = min(old), min(new), statistics.median(old), statistics.median(new)
            print(f"| {name} | {a:.1f} | {b:.1f} | {b / a:.2f} | {c:.1f} | {d:.1f} | {d / c:.2f} |")


if __name__ == "__main__":
    main()
