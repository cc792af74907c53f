"""Runs the example of each library, compares it with what real jax gives, runs the libraries' own tests
(suites.py), and writes docs/ecosystem.md. `make test-ecosystem`

python examples/ecosystem/run.py                  all of it
python examples/ecosystem/run.py optax numpyro    these examples alone, without the tests; nothing is written
python examples/ecosystem/run.py --expect PYTHON  writes expected.json with an interpreter that has real jax and the
libraries
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import suites

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "ecosystem.md"
EXPECTED = HERE / "expected.json"
TOLERANCE = 1e-3  # relative: training steps amplify rounding
# example -> the distribution whose version counts
EXAMPLES = {
    "optax": "optax",
    "chex": "chex",
    "equinox": "equinox",
    "jaxtyping": "jaxtyping",
    "einops": "einops",
    "flax_linen": "flax",
    "flax_nnx": "flax",
    "diffrax": "diffrax",
    "lineax": "lineax",
    "optimistix": "optimistix",
    "numpyro": "numpyro",
    "blackjax": "blackjax",
    "distrax": "distrax",
    "haiku": "dm-haiku",
    "jaxopt": "jaxopt",
    "orbax": "orbax-checkpoint",
}
PLATFORMS = {"XLA": "cpu", "Wasm": "wasm"}
ONE_PLATFORM = {
    ("chex", "Wasm"): "asserts a CPU device",
    ("orbax", "Wasm"): "asks devices for their PJRT client",
}


def run_example(name: str, python: str = sys.executable, **env) -> tuple[dict | None, str]:
    """(what the example returns, or None) and the end of its error."""
    done = subprocess.run(
        [python, "-W", "ignore", str(HERE / f"with_{name}.py")],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
    )
    if done.returncode:
        return None, "\n".join(done.stderr.strip().splitlines()[-12:])
    return ast.literal_eval(done.stdout.strip().splitlines()[-1]), ""


def difference(got: dict, wanted: dict) -> float:
    """The largest relative difference; infinite where the names differ."""
    if got.keys() != wanted.keys():
        return float("inf")
    return max(abs(got[k] - wanted[k]) / max(abs(wanted[k]), 1e-6) for k in wanted)


def purpose(name: str) -> str:
    return ast.get_docstring(ast.parse((HERE / f"with_{name}.py").read_text())).split(": ", 1)[1].rstrip(".")


def expect(python: str) -> None:
    """Writes what the examples give on real jax, where an empty `weft.as_jax` stands for ours."""
    with tempfile.TemporaryDirectory() as folder:
        package = pathlib.Path(folder) / "weft"
        package.mkdir()
        for file in ("__init__.py", "as_jax.py"):
            (package / file).write_text("")
        found = {}
        for name in EXAMPLES:
            found[name], error = run_example(name, python, PYTHONPATH=folder)
            if found[name] is None:
                raise SystemExit(f"{name}: {error}")
            print(name, found[name])
    EXPECTED.write_text(json.dumps(found, indent=1) + "\n")


def run_all(names) -> tuple[list[str], int]:
    """The rows of the table, and how many examples failed."""
    expected, rows, failed = json.loads(EXPECTED.read_text()), [], 0
    for name in names:
        cells = []
        for title, platform in PLATFORMS.items():
            if (name, title) in ONE_PLATFORM:
                cells.append(ONE_PLATFORM[name, title])
                continue
            start = time.perf_counter()
            got, error = run_example(name, JAX_PLATFORMS=platform)
            apart = difference(got, expected[name]) if got is not None else float("inf")
            good = apart <= TOLERANCE
            failed += not good
            print(
                f"{name:12} {title:5} {'ok' if good else 'FAILED':7} {time.perf_counter() - start:6.1f} s "
                f" {error or f'{apart:.1e} from jax: {got}'}",
                flush=True,
            )
            shown = f"{apart:.0e}" if apart >= 1e-8 else "0"
            cells.append(shown if good else f"fails, {shown}" if got is not None else "fails")
        version = importlib.metadata.version(EXAMPLES[name])
        rows.append(
            f"| {name.replace('_', '.')} {version} | [with_{name}.py](../examples/ecosystem/with_{name}.py) |"
            f" {purpose(name)} | {' | '.join(cells)} |"
        )
    return rows, failed


def main(args: list[str]) -> None:
    if args[:1] == ["--expect"]:
        return expect(args[1])
    summary = importlib.metadata.metadata("jax")["Summary"] or ""
    assert "weft" in summary, f"the jax of this environment is not weft: {summary}"
    rows, failed = run_all(args or EXAMPLES)
    if not args:
        tests, unknown = suites.run_all()
        PAGE.write_text(
            "\n".join(
                [
                    "# Published libraries on weft",
                    "",
                    (
                        "Written by `make test-ecosystem`, which installs these releases unmodified beside weft in an"
                        " environment without jax, runs one program of each on XLA and on Wasm, and compares"
                    ),
                    (
                        "the numbers that it returns with those of the same program on real jax 0.10.2"
                        " (`examples/ecosystem/expected.json`)."
                    ),
                    "",
                    "The last two columns are the largest relative difference from jax.",
                    "",
                    f"| library | program | what it does | {' | '.join(f'on {title}' for title in PLATFORMS)} |",
                    "|---|---|---|---|---|",
                    *rows,
                    *tests,
                    "",
                ]
            )
        )
        failed += unknown
    if failed:
        raise SystemExit(f"{failed} failed")


if __name__ == "__main__":
    main(sys.argv[1:])
