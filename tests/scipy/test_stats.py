"""weft.scipy.stats gives what real JAX gave (stats_expected.json) and what SciPy gives; its derivatives are the numerical ones; it maps and compiles."""
import json
import pathlib
import sys

import numpy as np
import pytest
import scipy.stats as reference

import weft
import weft.numpy as jnp
from weft.scipy import stats

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import frozen  # noqa: E402
from stats_cases import CONTINUOUS, DISCRETE, SETUP, expressions  # noqa: E402

EXPECTED = json.loads((HERE / "stats_expected.json").read_text())
# Where JAX's result is not the limit or loses digits, ours is SciPy's (test_values_are_scipy_s)
BETTER = ()


@pytest.fixture(scope="module")
def scope():
    with weft.enable_x64(True):
        names = {"jax": weft, "jnp": jnp, "stats": stats, "np": np}
        exec(SETUP, names)
        yield names


@pytest.mark.slow
@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    frozen.check(text, scope, EXPECTED[text], weft.errors, tolerance={"float64": 1e-9, "float32": 2e-5})
