"""The jaxprs of everyday functions read like those of real JAX, which prints them in a process of its own."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

import weft
import weft.numpy as jnp

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from jaxprs import FUNCTIONS, texts  # noqa: E402

ORACLE = os.environ.get("WEFT_ORACLE_PYTHON")
pytestmark = [pytest.mark.oracle, pytest.mark.skipif(not ORACLE, reason="WEFT_ORACLE_PYTHON names no Python with jax")]
SOURCES = [line.rpartition("|")[0].strip() for line in FUNCTIONS.strip().splitlines()]

# what still reads otherwise, and why; a strict xfail, so that a repair shows
FEWER = "weft leaves out equations whose results nobody uses, and conversions that change nothing"
DIFFERENT = {source: FEWER for source in SOURCES if any(mark in source for mark in ("linspace", "x[i, 0]", "random.randint"))}


@pytest.fixture(scope="module")
def both():
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    out = subprocess.run([ORACLE, str(HERE / "jaxprs.py"), "jax"], capture_output=True, text=True, check=True, env=env).stdout
    return json.loads(out), texts(weft, jnp)


@pytest.mark.parametrize("source", [pytest.param(s, marks=pytest.mark.xfail(reason=DIFFERENT[s], strict=True)) if s in DIFFERENT else s for s in SOURCES])
def test_reads_like_jax(source, both):
    theirs, ours = both
    assert ours[source] == theirs[source]
