"""With 64 bits on, results have the types that real JAX gives them (wide_expected.json, written by make_wide_expected.py)."""
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
# Differences: no order of complex numbers in reductions, no LAPACK in float16, and arguments that weft takes though JAX refuses them.
OTHERWISE = {
    "complex64": {"jnp.median(x)", "jnp.argmax(x)", "jnp.argmin(x)", "jnp.nanargmax(x)", "jnp.ptp(x)", "jnp.argpartition(x,1)",
                 "jnp.searchsorted(x,x)", "jnp.digitize(x,x)", "jnp.histogram(x)[0]", "jnp.histogram(x)[1]", "jnp.arctan2(x,x)",
                 "jnp.hypot(x,x)", "jnp.max(x)", "lax.argmax(x,0,int)", "lax.top_k(x,1)", "jnp.copysign(x,x)",
                 "jnp.histogram_bin_edges(x)", "jax.nn.standardize(x)"},
    "bool": {"jnp.argpartition(x,1)", "jnp.power(x,2)", "x**2", "jnp.round(x)", "jnp.sign(x)", "jnp.ediff1d(x)", "jnp.polyval(x,x)",
            "jnp.bitwise_count(x)", "jnp.polyfit(x,x,1)"},
    "float16": {"jnp.linalg.matrix_rank(m)", "jnp.linalg.slogdet(m)[1]", "jnp.linalg.inv(m)", "jnp.linalg.eigvalsh(m)",
               "jnp.linalg.solve(m,x[:2])", "jnp.polyfit(x,x,1)"},
    "int8": {"jnp.polyfit(x,x,1)"},
    "uint16": {"jnp.polyfit(x,x,1)"},
    "int32": {"jnp.polyfit(x,x,1)"},
    "int64": {"jnp.polyfit(x,x,1)"},
}


@pytest.fixture(scope="module")
def got():
    with weft.enable_x64(True), weft.numpy_rank_promotion("allow"):
        yield types(weft, jnp, np)


@pytest.mark.parametrize("text,want", json.loads((HERE / "wide_expected.json").read_text()).items())
def test_types(text, want, got):
    held = [d for d in DTYPES if text not in OTHERWISE.get(d, ())]
    got = dict(zip(DTYPES, got[text]))
    assert {d: got[d] for d in held} == {d: w for d, w in zip(DTYPES, want) if d in held}
