"""lax.linalg and the special functions beside real JAX: the kernels that they call on each platform, their programs,
errors, and values at the ends of their domains, as `linalg_expected.json` has them frozen (see
make_linalg_expected.py).
"""

import json
import pathlib
import sys

import numpy as np
import pytest
from platforms import need

import weft
import weft.numpy as jnp
from weft import lax
from weft.base.avals import shaped
from weft.core.primitive import registry
from weft.transforms.stage import stage_closed

need("cpu")
from weft_native.lower import module  # noqa: E402

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from linalg_cases import (
    CALLS,
    DTYPES,
    EDGES,
    ERRORS,
    JAXPRS,
    PLATFORMS,
    REAL,
    REAL_CALLS,
    error_of,
    helpers,
    kernels,
)  # noqa: E402

pytestmark = pytest.mark.slow

EXPECTED = json.loads((HERE / "linalg_expected.json").read_text())
NAMES = {"lax": lax, "linalg": lax.linalg, "jnp": jnp, **helpers(jnp, weft.jvp)}


def calls(function, shapes, dtype, platform):
    """The kernels of a function's module, or the class of the error; jaxlib writes attributes elsewhere than JAX,
    `kernels` evens that out.
    """
    closed = stage_closed(
        lambda *xs: weft.tree.leaves(function(*xs)), [shaped(s, np.dtype(dtype)) for s in shapes], "f"
    )
    try:
        return kernels(str(module.lower(closed.jaxpr, platform=platform).module))
    except (NotImplementedError, ValueError) as e:
        return type(e).__name__


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", [*CALLS, *REAL_CALLS])
def test_kernels_are_jax_s(name, platform):
    function, shapes = (CALLS | REAL_CALLS)[name]
    for dtype in DTYPES if name in CALLS else REAL:
        with weft.enable_x64(True):
            assert (
                calls(eval(function, dict(NAMES)), shapes, dtype, platform)
                == EXPECTED["calls"][f"{name} {dtype} {platform}"]
            )


@pytest.mark.parametrize("expression", ERRORS)
def test_errors_are_jax_s(expression):
    assert error_of(expression, NAMES) == EXPECTED["errors"][expression]


@pytest.mark.parametrize("expression", JAXPRS)
def test_programs_are_jax_s(expression):
    function, shapes = eval(expression, dict(NAMES))
    assert str(weft.make_jaxpr(function)(*[jnp.ones(s) for s in shapes])) == EXPECTED["jaxprs"][expression]


DECOMPOSED = {name: registry.get({"betainc": "regularized_incomplete_beta"}.get(name, name)) for name in EDGES}
# the others are compositions, or basic
DECOMPOSED = {name: p.decompose for name, p in DECOMPOSED.items() if p is not None and p.decompose is not None}


@pytest.mark.parametrize(
    "name, how", [*[(name, "kernel") for name in EDGES], *[(name, "decomposition") for name in DECOMPOSED]]
)
def test_values_at_the_ends_are_jax_s(name, how):
    f = getattr(lax, name) if how == "kernel" else DECOMPOSED[name]
    with weft.enable_x64(True):
        got = f(*[jnp.asarray(np.array(c)) for c in zip(*EDGES[name])])
    np.testing.assert_allclose(np.asarray(got), EXPECTED["edges"][name], rtol=2e-13, atol=1e-300)
