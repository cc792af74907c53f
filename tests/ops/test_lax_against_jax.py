"""The rest of weft.lax, and every dtype, give what real JAX gave (lax_expected.json, written by make_lax_expected.py)."""
import json
import math
import pathlib
import sys
import warnings

import numpy as np
import pytest

import weft
import weft.numpy as jnp

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from lax_cases import SETUP, describe, expressions  # noqa: E402

pytestmark = pytest.mark.slow

EXPECTED = json.loads((HERE / "lax_expected.json").read_text())
TOLERANCE = {"float32": 2e-6, "complex64": 2e-6, "bfloat16": 1e-2, "float16": 2e-3}


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "lax": weft.lax, "np": np}
    exec(SETUP, names)
    return names


def close(a, b, rtol: float) -> bool:
    return a == b if isinstance(a, (str, bool, int)) or isinstance(b, (str, bool, int)) else math.isclose(a, b, rel_tol=rtol, abs_tol=rtol)


def check(got, want) -> None:
    if want[0] == "sequence":
        assert got[0] == "sequence" and len(got[1]) == len(want[1])
        for g, w in zip(got[1], want[1]):
            check(g, w)
        return
    assert got[:4] == want[:4]
    if want[0] == "array":
        rtol = TOLERANCE.get(want[1], 0)
        for g, w in zip(got[4], want[4]):
            scale = max([abs(v) for v in w if isinstance(v, float)], default=1.0)
            assert len(g) == len(w) and all(close(a, b, rtol * max(1.0, scale)) for a, b in zip(g, w)), (g, w)


@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    want = EXPECTED[text]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if want[0] == "error":
            with pytest.raises(Exception) as caught:
                eval(text, scope)
            classes = {"TypeError", "ValueError", "NotImplementedError", "IndexError", "OverflowError", "UnexpectedTracerError"} & set(want[1])
            assert not classes or classes & {c.__name__ for c in type(caught.value).__mro__}, (type(caught.value), want[1])
            return
        check(describe(eval(text, scope), np), want)
