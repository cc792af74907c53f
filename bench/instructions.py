"""How many instructions importing, tracing and compiling take, in one or several checkouts.

    python bench/instructions.py CHECKOUT...        (each with its environment in .venv; valgrind must be installed)

Callgrind counts them: the figures are the same whatever else the machine does, within a thousandth. A trace or a
compilation is the difference between a process that does it eight times and one that does it once.
"""

from __future__ import annotations

import gc
import os
import pathlib
import subprocess
import sys
import tempfile

CASES = ("import weft", "trace", "compile for Wasm")
MORE = 7
LAYERS, WIDTH, VOCABULARY, LENGTH, BATCH = 2, 64, 50, 16, 2


def run(case: str, times: int) -> None:
    """In the counted process."""
    gc.disable()  # it runs at other times in each version
    import weft

    if case == "import weft":
        return
    weft.config.update("jax_platforms", "reference")
    import weft.as_jax  # noqa: F401
    import transformer_program as transformer
    from weft_wasm.compile import compile_program
    from weft_wasm.lower.program import lower

    features = frozenset(("simd128",))
    params = transformer.parameters(LAYERS, WIDTH, VOCABULARY, LENGTH)
    tokens = transformer.tokens(BATCH, LENGTH, VOCABULARY)
    trace = lambda: weft.make_jaxpr(lambda p, t: transformer.step.__wrapped__(p, t))(params, tokens)  # noqa: E731
    closed = trace()
    for _ in range(times):
        if case == "trace":
            trace()
        else:
            compile_program(lower(closed.jaxpr, "step", (), features)[0], features, check=False)


def environment(checkout: pathlib.Path, bytecode: str) -> dict[str, str]:
    """Modules come from bytecode, as of an installed package, whatever this process does."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    paths = {"PYTHONPATH": str(checkout / "bench"), "PYTHONPYCACHEPREFIX": bytecode}
    return {**kept, "PYTHONHASHSEED": "0", **paths}


def count(checkout: pathlib.Path, case: str, times: int, env: dict[str, str]) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", ".venv/bin/python"]
    done = subprocess.run(
        [*command, str(pathlib.Path(__file__).resolve()), "--count", case, str(times)],
        cwd=checkout,
        env=env,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return int(next(line.split()[-1] for line in done.stderr.splitlines() if "Collected" in line))


def main(checkouts: list[pathlib.Path]) -> None:
    print("millions of instructions |", " | ".join(map(str, checkouts)))
    with tempfile.TemporaryDirectory() as bytecode:
        envs = [environment(checkout, bytecode) for checkout in checkouts]
        for case in CASES:
            figures = []
            for checkout, env in zip(checkouts, envs):
                python = [".venv/bin/python", str(pathlib.Path(__file__).resolve()), "--count", case, "1"]
                subprocess.run(python, cwd=checkout, env=env, check=True)  # makes the bytecode
                once = count(checkout, case, 1, env)
                figures.append(once if case == CASES[0] else (count(checkout, case, 1 + MORE, env) - once) // MORE)
            print(f"{case} |", " | ".join(f"{f / 1e6:,.1f} ({f / figures[0]:.3f})" for f in figures), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--count"]:
        sys.path.insert(0, str(pathlib.Path.cwd() / "bench"))
        run(sys.argv[2], int(sys.argv[3]))
    else:
        main([pathlib.Path(a).resolve() for a in sys.argv[1:]])
