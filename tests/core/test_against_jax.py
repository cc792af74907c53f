"""Transformations give what real JAX gave (transforms_expected.json, written by make_transforms_expected.py)."""
import json
import pathlib
import sys
import warnings

import numpy as np
import pytest

import weft
import weft.experimental.ode
import weft.numpy as jnp

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from transform_cases import SETUP, describe, expressions  # noqa: E402

EXPECTED = json.loads((HERE / "transforms_expected.json").read_text())
LOOSE = {"float16": 2e-3}


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "lax": weft.lax, "np": np}
    exec(SETUP.replace("from jax.", "from weft."), names)
    return names


@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    want = EXPECTED[text]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if want[0] == "error":
            with pytest.raises(Exception) as caught:
                eval(text, scope)
            names = {c.__name__ for c in type(caught.value).__mro__} - {"Exception", "BaseException", "object"}
            assert set(want[1]) & names or want[1][0] in ("AssertionError", "CustomVJPException"), (type(caught.value), want[1])
            return
        got = describe(eval(text, scope), scope)
    assert [leaf[:2] for leaf in got[1]] == [leaf[:2] for leaf in want[1]]
    for (path, kind, have), (_, _, expected) in zip(got[1], want[1]):
        if kind == "text":
            assert have == expected, path
        else:
            rtol = LOOSE.get(kind.partition("[")[0], 1e-5)
            np.testing.assert_allclose(have, expected, rtol=rtol, atol=rtol, err_msg=path)
