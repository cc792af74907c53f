"""The parts of the run on an accelerator: their commands, their shares of the time, and what they have found."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from checkout import ROOT
from gpu_results import FILE

# So many workers have a context on one GPU; each compiles on a core of its own.
WORKERS = 12
# Correctness is judged without what makes compiling slow. An unknown flag ends the process, so these are few and old.
FLAGS = {
    "cpu": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
    "cuda": "--xla_gpu_autotune_level=0 --xla_llvm_disable_expensive_passes=true",
}


class Plan(NamedTuple):
    """What the command line asks for."""

    platform: str
    jax: str | None  # a Python that has real jax
    folder: pathlib.Path  # for results
    environment: dict[str, str]
    quick: bool  # a small choice of everything, which tests this program


class Part(NamedTuple):
    """One part of the run. `command` gives its arguments for this Python; `read` what its files say of it."""

    name: str
    title: str
    seconds: float  # its share of the time; what is left over goes to those after it
    command: Callable[[Plan, pathlib.Path], list[str]]
    read: Callable[[pathlib.Path], dict[str, Any]]
    environment: Callable[[Plan], dict[str, str]] = lambda plan: {}


class Outcome(NamedTuple):
    """What became of a part."""

    part: Part
    seconds: float
    status: int | None  # of its process; None: its time was over
    found: dict[str, Any]
    log: str  # the end of what it printed


def _tests(*arguments: str) -> Callable[[Plan, pathlib.Path], list[str]]:
    def command(plan: Plan, results: pathlib.Path) -> list[str]:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        spread = ["-n", str(min(WORKERS, cores)), "--max-worker-restart=20"] if _has("xdist") else []
        limit = ["--timeout=90"] if _has("pytest_timeout") else ["-o", "addopts=--import-mode=importlib"]
        chosen = ["-k", "sin or cholesky or normal or 1"] if plan.quick else []
        return ["-m", "pytest", "-q", "-p", "gpu_results", *spread, *limit, *arguments, *chosen]

    return command


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _environment_of_tests(plan: Plan) -> dict[str, str]:
    return {
        "WEFT_TEST_PLATFORMS": plan.platform,
        "WEFT_REQUIRE_PLATFORMS": "",
        "CI": "",
        "ACCEPT_BACKEND": plan.platform,
        "XLA_FLAGS": FLAGS.get(plan.platform, ""),
        # tests compare to the last bits of float32; a GPU's products keep 10 bits of it unless they are asked for more
        "JAX_DEFAULT_MATMUL_PRECISION": "highest",
    }


def read_tests(results: pathlib.Path) -> dict[str, Any]:
    """Counts of a run of pytest, and its failures."""
    counts, failed, collected = {"passed": 0, "failed": 0, "skipped": 0}, {}, 0
    for row in _rows(results):
        if "collected" in row:
            collected = row["collected"]
        elif row["outcome"] == "failed":
            counts["failed"] += row["test"] not in failed
            failed.setdefault(row["test"], row["why"])
        else:
            counts[row["outcome"]] = counts.get(row["outcome"], 0) + 1
    return {**counts, "not run": max(0, collected - sum(counts.values())), "failures": failed}


def _rows(path: pathlib.Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return []
    rows = []
    for line in lines:
        with contextlib.suppress(json.JSONDecodeError):  # the last line of a process that was ended
            rows.append(json.loads(line))
    return rows


def _bench(script: str, *arguments: str) -> Callable[[Plan, pathlib.Path], list[str]]:
    def command(plan: Plan, results: pathlib.Path) -> list[str]:
        peer = ["--jax", plan.jax] if plan.jax else []
        rounds = ["--rounds", "1"] if plan.quick else []
        return [f"bench/{script}", "--platform", plan.platform, "--output", str(results), *peer, *arguments, *rounds]

    return command


def _json(results: pathlib.Path) -> dict[str, Any]:
    try:
        return json.loads(results.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def _doctor(plan: Plan, results: pathlib.Path) -> list[str]:
    code = (
        "import contextlib, sys; from weft.doctor.command import main\n"
        f"with open({str(results)!r}, 'w') as file, contextlib.redirect_stdout(file):\n"
        f"    status = main(['--json', '--seconds=40', '--require={plan.platform}', '--only={plan.platform}'])\n"
        "raise SystemExit(status)"
    )
    return ["-c", code]


VALUES = "test_value_is_the_reference_s_eager_and_compiled"
PARTS = (
    Part("doctor", "The machine", 45, _doctor, _json),
    Part(
        "matmul",
        "Matrix products, ms",
        75,
        _bench("matmul.py", "--rounds", "1"),
        _json,
        lambda plan: {"WEFT_MATMUL_SECONDS": "4" if plan.quick else "25"},
    ),
    Part("dispatch", "Calls, µs", 60, _bench("dispatch.py", "--rounds", "2"), _json),
    Part("transformer", "The gradient step of a transformer, ms", 90, _bench("transformer.py", "--rounds", "1"), _json),
    Part("random", "Random bits", 50, _tests("tests/random/test_against_jax.py"), read_tests, _environment_of_tests),
    Part("acceptance", "Acceptance programs", 50, _tests("tests/acceptance"), read_tests, _environment_of_tests),
    Part("linalg", "Linear algebra", 60, _tests("tests/ops/test_linalg.py"), read_tests, _environment_of_tests),
    Part(
        "catalogue",
        "The catalogue of operations: values",
        90,
        _tests(f"tests/ops/test_catalogue.py::{VALUES}"),
        read_tests,
        _environment_of_tests,
    ),
    Part(
        "rules",
        "The catalogue of operations: derivatives and batches",
        90,
        _tests("tests/ops/test_catalogue.py", f"--deselect=tests/ops/test_catalogue.py::{VALUES}"),
        read_tests,
        _environment_of_tests,
    ),
)


def run(part: Part, plan: Plan, seconds: float) -> Outcome:
    """Runs a part in a process of its own, for as long at most. What fails or hangs is noted, and nothing is raised."""
    results, log = plan.folder / f"{part.name}.json", plan.folder / f"{part.name}.log"
    environment = {**plan.environment, **part.environment(plan), FILE: str(results)}
    begin = time.monotonic()
    with open(log, "w") as output:
        process = subprocess.Popen(
            [sys.executable, *part.command(plan, results)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status: int | None
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with contextlib.suppress(ProcessLookupError):  # workers that are left over hold the GPU
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    text = re.sub(r"\x1b\[[\d;]*m", "", log.read_text(errors="replace"))
    return Outcome(part, time.monotonic() - begin, status, part.read(results), text[-1500:])
