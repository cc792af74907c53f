"""With 64 bits on, results have the types that real JAX gives them (wide_expected.json, written by
make_wide_expected.py).
"""

import json
import pathlib
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE))
from wide_cases import DTYPES, types  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
# Differences. JAX traces what it can't compile and fails afterwards: positions of the largest complex number, and
# LAPACK in float16.
_ORDER, _LAPACK = ("complex64",), ("float16",)
OTHERWISE = {
    "jnp.argmax(x)": _ORDER,
    "jnp.argmin(x)": _ORDER,
    "jnp.nanargmax(x)": _ORDER,
    "lax.argmax(x,0,int)": _ORDER,
    "jnp.linalg.matrix_rank(m)": _LAPACK,
    "jnp.linalg.inv(m)": _LAPACK,
    "jnp.linalg.eigvalsh(m)": _LAPACK,
    "jnp.linalg.solve(m,x[:2])": _LAPACK,
    # JAX takes no integers here, NumPy does
    "jnp.polyfit(x,x,1)": _LAPACK + ("int8", "uint16", "int32", "int64", "bool"),
}


@pytest.fixture(scope="module")
def got():
    with weft.enable_x64(True), weft.numpy_rank_promotion("allow"):
        yield types(weft, jnp, np)


@pytest.mark.parametrize("text,want", json.loads((HERE / "wide_expected.json").read_text()).items())
def test_types(text, want, got):
    """The types in each dtype, but for those that are known to differ, which still do."""
    assert tuple(d for d, g, w in zip(DTYPES, got[text], want, strict=True) if g != w) == tuple(
        d for d in DTYPES if d in OTHERWISE.get(text, ())
    ), got[text]
