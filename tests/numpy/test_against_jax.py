"""weft.numpy, weft.lax and weft.nn give what real JAX gave (expected.json, written by make_expected.py)."""

import json
import pathlib
import sys

import numpy as np
import pytest
from frozen import check

import weft
import weft.numpy as jnp

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from cases import SETUP, expressions  # noqa: E402

EXPECTED = json.loads((HERE / "expected.json").read_text())


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "lax": weft.lax, "nn": weft.nn, "np": np}
    exec(SETUP, names)
    return names


@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    check(text, scope, EXPECTED[text], weft.errors)
