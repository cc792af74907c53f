"""weft.numpy, weft.lax and weft.nn give what real JAX gave (expected.json, written by make_expected.py)."""
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
from cases import SETUP, describe, expressions  # noqa: E402

EXPECTED = json.loads((HERE / "expected.json").read_text())
TOLERANCE = {"float32": 2e-6, "complex64": 2e-6, "bfloat16": 1e-2, "float16": 2e-3}


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "lax": weft.lax, "nn": weft.nn, "np": np}
    exec(SETUP, names)
    return names


def close(a, b, rtol: float) -> bool:
    if isinstance(a, str) or isinstance(b, str) or isinstance(a, bool) or isinstance(a, int):
        return a == b
    return math.isclose(a, b, rel_tol=rtol, abs_tol=rtol)


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
            names = {c.__name__ for c in type(caught.value).__mro__}
            assert want[1][0] in names or set(want[1]) & {"TypeError", "ValueError", "IndexError", "OverflowError"} & names, type(caught.value)
            return
        check(describe(eval(text, scope), np), want)
