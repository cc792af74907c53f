"""The gradient step of a 12-layer transformer: what tracing, lowering, compiling and a step cost, under weft and under
real jax.

    python bench/transformer.py [--jax PYTHON] [--rounds N] [--platform cuda]
                                                                (or JAX_PYTHON=…; without it only weft is measured)

Both run the same source (transformer_program.py), in turn, each in its own process. The figures are the least of the
rounds for tracing, lowering and compiling, and of all steps for a step. The losses after the steps are printed too:
they must agree.
"""

from __future__ import annotations

import time

from side_by_side import main

STEPS = 4


def measure(which: str) -> dict[str, float]:
    """Milliseconds by phase, in the process of one of the two."""
    if which == "weft":
        import weft.as_jax  # noqa: F401
    import transformer_program as program
    import jax

    params, tokens = program.parameters(), program.tokens()
    jax.jit(lambda x: x + 1)(jax.numpy.float32(1))  # the client and the compiler are up

    def phase(run):
        begin = time.perf_counter()
        done = run()
        return done, (time.perf_counter() - begin) * 1e3

    traced, trace = phase(lambda: program.step.trace(params, tokens))

    def lowering():  # weft lowers when the module is asked for
        lowered = traced.lower()
        lowered.compiler_ir("stablehlo")
        return lowered

    lowered, lower = phase(lowering)
    again = jax.jit(lambda p, t: program.step.__wrapped__(p, t))  # nothing is imported for the first time any more
    _, warm = phase(lambda: again.trace(params, tokens).lower().compiler_ir("stablehlo"))
    compiled, compile_ = phase(lowered.compile)
    params, tokens = jax.device_put((params, tokens))
    best = float("inf")
    for _ in range(STEPS):
        (params, loss), took = phase(lambda: jax.block_until_ready(compiled(params, tokens)))
        best = min(best, took)
    return {
        "trace": trace,
        "lower": lower,
        "trace + lower": trace + lower,
        "and once more": warm,
        "compile": compile_,
        "step": best,
        "loss": float(loss),
    }


if __name__ == "__main__":
    main(__file__, __doc__, measure, "ms", decimals=1)
