"""A program of two processes gives what it gives with real jax, which runs it in an environment of its own."""

import os
import pathlib
import sys

import pytest
import several
from platforms import need

pytestmark = pytest.mark.oracle
PROGRAM = pathlib.Path(__file__).parent / "processes_like_jax.py"


def lines(python: str, *arguments: str) -> list[list[str]]:
    done = several.weft_run("-n", 2, "--devices", 2, python, PROGRAM, *arguments, PYTHONPATH="")
    assert done.returncode == 0, done.stderr[-3000:]
    return [[t[4:] for t in done.stdout.splitlines() if t.startswith(f"[{i}]") and " | " in t] for i in range(2)]


def test_two_processes():
    need("oracle")
    theirs, ours = lines(os.environ["WEFT_ORACLE_PYTHON"]), lines(sys.executable, "weft")
    assert [len(told) for told in theirs] == [32, 32]
    assert ours == theirs
