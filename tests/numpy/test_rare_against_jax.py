"""The rarer functions and parameters of weft.numpy give what real JAX gave (rare_expected.json, written by
make_expected.py).
"""

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
from rare_cases import SETUP, expressions  # noqa: E402

EXPECTED = json.loads((HERE / "rare_expected.json").read_text())
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "lax": weft.lax, "np": np}
    exec(SETUP, names)
    return names


@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    # a fit by powers magnifies the roundings of LAPACK, which are the processor's
    check(text, scope, EXPECTED[text], weft.errors, tolerance={"float32": 2e-5} if "polyfit" in text else None)
