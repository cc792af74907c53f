"""The gradient step of a 12-layer transformer: what tracing, lowering, compiling and a step cost, under weft and under real jax.

    python bench/transformer.py [--jax PYTHON] [--rounds N]        (or JAX_PYTHON=…; without it only weft is measured)

Both run the same source (transformer_program.py), in turn, each in its own process. The figures are the least of the rounds for
tracing, lowering and compiling, and of all steps for a step. The losses after the steps are printed too: they must agree.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

STEPS = 4


def measure() -> dict[str, float]:
    """Milliseconds by phase, in the process of one of the two."""
    if os.environ["BENCH_TRANSFORMER"] == "weft":
        import weft.as_jax  # noqa: F401
    import transformer_program as program
    import jax
    params, tokens = program.parameters(), program.tokens()
    jax.jit(lambda x: x + 1)(jax.numpy.float32(1))      # the client and the compiler are up

    def phase(run):
        begin = time.perf_counter()
        done = run()
        return done, (time.perf_counter() - begin) * 1e3
    traced, trace = phase(lambda: program.step.trace(params, tokens))
    def lowering():      # weft lowers when the module is asked for
        lowered = traced.lower()
        lowered.compiler_ir("stablehlo")
        return lowered
    lowered, lower = phase(lowering)
    again = jax.jit(lambda p, t: program.step.__wrapped__(p, t))      # nothing is imported for the first time any more
    _, warm = phase(lambda: again.trace(params, tokens).lower().compiler_ir("stablehlo"))
    compiled, compile_ = phase(lowered.compile)
    params, tokens = jax.device_put((params, tokens))
    best = float("inf")
    for _ in range(STEPS):
        (params, loss), took = phase(lambda: jax.block_until_ready(compiled(params, tokens)))
        best = min(best, took)
    return {"trace": trace, "lower": lower, "trace + lower": trace + lower, "and once more": warm, "compile": compile_, "step": best, "loss": float(loss)}


def run(python: str, which: str) -> dict[str, float]:
    env = dict(os.environ, BENCH_TRANSFORMER=which, JAX_PLATFORMS="cpu")
    if which == "jax":
        env.pop("PYTHONPATH", None)
    done = subprocess.run([python, os.path.abspath(__file__)], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", default=os.environ.get("JAX_PYTHON"), help="a Python that has jax 0.10.2 installed")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    results: dict[str, dict[str, float]] = {"weft": {}, "jax": {}}
    for _ in range(options.rounds):
        for which, python in (("weft", sys.executable), ("jax", options.jax)):
            if python:
                for case, value in run(python, which).items():
                    results[which][case] = min(value, results[which].get(case, float("inf")))
    print(f"{'ms':16} {'jax':>10} {'weft':>10} {'weft/jax':>9}")
    for case, ours in results["weft"].items():
        theirs = results["jax"].get(case)
        decimals = 5 if case == "loss" else 1
        shown = f"{theirs:10.{decimals}f}" if theirs is not None else ""
        print(f"{case:16} {shown:>10} {ours:10.{decimals}f} {'' if theirs is None else f'{ours / theirs:9.3f}':>9}")


if __name__ == "__main__":
    if "BENCH_TRANSFORMER" in os.environ:
        print(json.dumps(measure()))
    else:
        main()
