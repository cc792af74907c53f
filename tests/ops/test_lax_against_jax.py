"""The rest of weft.lax, and every dtype, give what real JAX gave (lax_expected.json, written by
make_lax_expected.py).
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
from lax_cases import SETUP, expressions  # noqa: E402

pytestmark = pytest.mark.slow

EXPECTED = json.loads((HERE / "lax_expected.json").read_text())


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "lax": weft.lax, "np": np}
    exec(SETUP, names)
    return names


@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    check(text, scope, EXPECTED[text], weft.errors)
