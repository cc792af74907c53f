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
import tempfile
import time
from typing import Any, Callable

COUNTED = "BENCH_COUNTED"  # in a measuring process, what it measures
REPEATS = 5


IMPORTS = """
import time
begin = time.perf_counter()
import weft
middle = time.perf_counter()
import weft.as_jax
end = time.perf_counter()
made = [[] for _ in range(1000)]  # what the collector of cycles was kept from, it does now
rest = time.perf_counter() - end
times = (middle - begin + rest, end - begin + rest)
print(f'{{"import weft": {times[0] * 1e3}, "import weft.as_jax": {times[1] * 1e3}}}')
"""


def native() -> dict[str, float]:
    """Milliseconds by phase, up to StableHLO."""
    import weft.as_jax  # noqa: F401
    import transformer_program as program
    import jax

    params, tokens = program.parameters(), program.tokens()
    jax.jit(lambda x: x + 1)(jax.numpy.float32(1))  # the client and the compiler are up

    def lower(traced: Any) -> None:
        traced.lower().compiler_ir("stablehlo")

    return phases(jax.clear_caches, lambda: program.step.trace(params, tokens), lower, "trace", "lower")


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


def run(checkout: pathlib.Path, which: str, bytecode: str) -> dict[str, float]:
    # modules come from bytecode, as of an installed package, whatever this process does
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    kept["OPENBLAS_NUM_THREADS"] = "1"  # the threads that NumPy starts would run beside the import
    done = subprocess.run(
        [str(checkout / ".venv/bin/python"), *(["-c", IMPORTS] if which == "imports" else [__file__])],
        cwd=checkout,
        env={**kept, COUNTED: which, "PYTHONPYCACHEPREFIX": bytecode},
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
    for which in ("imports", *MEASURES):
        taken: dict[str, tuple[list[float], list[float]]] = {}
        with tempfile.TemporaryDirectory() as bytecode:
            for i in range(1 + options.rounds):
                for k, checkout in enumerate((options.old, options.new)):
                    if which == "imports":  # files and caches are as a process of the same checkout leaves them
                        run(checkout, which, bytecode)
                    for name, figure in run(checkout, which, bytecode).items():
                        if i > 0:  # the first makes the bytecode
                            taken.setdefault(name, ([], []))[k].append(figure)
        for name, (old, new) in taken.items():
            a, b, c, d = min(old), min(new), statistics.median(old), statistics.median(new)
            print(f"| {name} | {a:.1f} | {b:.1f} | {b / a:.2f} | {c:.1f} | {d:.1f} | {d / c:.2f} |")


if __name__ == "__main__":
    main()
