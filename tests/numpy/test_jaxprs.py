"""The jaxprs of everyday functions read like those of real JAX, which prints them in a process of its own."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from platforms import need

import weft
import weft.numpy as jnp

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from jaxprs import FUNCTIONS, texts  # noqa: E402

pytestmark = pytest.mark.oracle
SOURCES = [line.rpartition("|")[0].strip() for line in FUNCTIONS.strip().splitlines()]

# what still reads otherwise, and why; a strict xfail, so that a repair shows
FEWER = "weft leaves out equations whose results nobody uses, and conversions that change nothing"
DIFFERENT = {
    source: FEWER for source in SOURCES if any(mark in source for mark in ("linspace", "x[i, 0]", "random.randint"))
}


@pytest.fixture(scope="module")
def both():
    need("oracle")
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    out = subprocess.run(
        [os.environ["WEFT_ORACLE_PYTHON"], str(HERE / "jaxprs.py"), "jax"],
        capture_output=True,
        text=True,
        check=True,
        env=env,
    ).stdout
    return json.loads(out), texts(weft, jnp)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(s, marks=pytest.mark.xfail(reason=DIFFERENT[s], strict=True)) if s in DIFFERENT else s
        for s in SOURCES
    ],
)
def test_reads_like_jax(source, both):
    theirs, ours = both
    assert ours[source] == theirs[source]
