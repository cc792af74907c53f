"""The same measurement of weft and of real jax, in turn, each in its own process and environment."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
from typing import Callable

WHICH = "BENCH_WHICH"  # in a measuring process, whom it measures
PLATFORM = "JAX_PLATFORMS"  # both libraries read it


def main(
    script: str, doc: str, measure: Callable[[str], dict[str, float]], unit: str, rounds: int = 5, decimals: int = 2
) -> None:
    """What a benchmark does when it is run: measures `measure("weft")` and `measure("jax")` in processes of their own,
    and prints the least of each figure, weft's, jax's and their ratio. The figures come by name; one whose name ends in
    "loss" is a check, printed with more digits.
    """
    if WHICH in os.environ:
        print(json.dumps(measure(os.environ[WHICH])))
        return
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument(
        "--jax",
        default=os.environ.get("JAX_PYTHON"),
        help="a Python that has jax 0.10.2 installed; without it only weft is measured",
    )
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--platform", default="cpu", help="where both compute: cpu, cuda or tpu")
    parser.add_argument("--output", metavar="FILE", help="write the figures there too, as JSON, after each round")
    options = parser.parse_args()
    results: dict[str, dict[str, float]] = {"weft": {}, "jax": {}}
    for _ in range(options.rounds):
        for which, python in (("weft", sys.executable), ("jax", options.jax)):
            for case, value in (_run(python, script, which, options.platform) if python else {}).items():
                results[which][case] = min(value, results[which].get(case, float("inf")))
            if options.output:
                pathlib.Path(options.output).write_text(json.dumps(results))
    print(f"{unit:32} {'jax':>10} {'weft':>10} {'weft/jax':>9}")
    for case, ours in results["weft"].items():
        theirs, digits = results["jax"].get(case), 5 if case.endswith("loss") else decimals
        shown, ratio = ("", "") if theirs is None else (f"{theirs:10.{digits}f}", f"{ours / theirs:9.3f}")
        print(f"{case:32} {shown:>10} {ours:10.{digits}f} {ratio:>9}")
    print("load average", *[f"{x:.2f}" for x in os.getloadavg()])


def _run(python: str, script: str, which: str, platform: str) -> dict[str, float]:
    env = dict(os.environ, **{WHICH: which, PLATFORM: platform})
    if which == "jax":
        env.pop("PYTHONPATH", None)
    done = subprocess.run([python, os.path.abspath(script)], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])
