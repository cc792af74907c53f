"""weft.scipy's signal, ndimage, interpolate, integrate, optimize, cluster, spatial and sparse give what real JAX
gave (applied_expected.json).
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
from applied_cases import SETUP, expressions  # noqa: E402

pytestmark = pytest.mark.slow
EXPECTED = json.loads((HERE / "applied_expected.json").read_text())
TOLERANCE = {"float32": 2e-5, "complex64": 2e-5}  # sums of Fourier transforms and of products, in another order


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "np": np}
    exec(SETUP, names)
    return names


@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    check(text, scope, EXPECTED[text], weft.errors, tolerance=TOLERANCE)
