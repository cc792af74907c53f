"""Linear algebra in 16 bits, of integers and of booleans is that of real JAX (half_expected.json, written by
make_half_expected.py).
"""

import json
import pathlib
import sys
import warnings

import numpy as np
import pytest
from frozen import compare, expected_class, outcome

import weft
import weft.numpy as jnp
import weft.scipy.linalg  # noqa: F401

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE))
from half_cases import evaluate, expressions  # noqa: E402

pytestmark = pytest.mark.slow
EXPECTED = json.loads((HERE / "half_expected.json").read_text())


@pytest.mark.parametrize("dtype, text", expressions())
def test_as_jax(dtype, text):
    with warnings.catch_warnings(), weft.default_device(weft.devices("reference")[0]):
        warnings.simplefilter("ignore")
        got, want = evaluate(dtype, text, outcome, weft, np), EXPECTED[f"{dtype}: {text}"]
    if want[0] == "error":
        assert got[0] == "error" and set(expected_class(want[1], weft.errors)) & set(got[1]), (got, want)
    else:
        compare(got, want, {"float16": 6e-3, "bfloat16": 4e-2, "float32": 1e-5, "complex64": 1e-3})


def test_ranks_by_a_share_or_a_size():
    x = jnp.diag(jnp.array([4.0, 2.0, 1.0]))
    assert [int(jnp.linalg.matrix_rank(x, r)) for r in (0.1, 0.4, 0.9)] == [3, 2, 1] and int(
        jnp.linalg.matrix_rank(x, tol=1.5)
    ) == 2
    assert jnp.linalg.matrix_rank(jnp.stack([x, x]), rtol=jnp.array([0.1, 0.9])).tolist() == [
        3,
        1,
    ] and jnp.linalg.matrix_rank(x, jnp.array([0.4])).tolist() == [2]
    with pytest.raises(ValueError, match="rtol.*tol"):
        jnp.linalg.matrix_rank(x, 0.1, tol=0.1)
