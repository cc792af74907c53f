"""The reference interpreter where a primitive has no reference rule: it runs what the primitive decomposes into."""

import numpy as np
import pytest
from weft.base.avals import shaped, token
from weft.base.config import config
from weft.core.interpret import interpret
from weft.core.jaxpr import Jaxpr, JaxprEqn, Var
from weft.core.primitive import Primitive
from weft.transforms.tokens import Token


def run(decompose, *avals):
    """What a primitive with this decomposition gives for zeros of these types."""
    p = Primitive("of_a_library", foreign=True)
    p.abstract_eval = lambda avals, params: avals[-1]
    p.decompose = decompose
    invars, out = [Var(a) for a in avals], Var(avals[-1])
    jaxpr = Jaxpr([], invars, [out], [JaxprEqn(invars, [out], p, {})])
    return interpret(jaxpr, [Token() if a is token else np.zeros(a.shape, a.dtype) for a in avals])[0]


@pytest.mark.parametrize(
    "dtype,wide",
    [
        ("float32", False),
        ("int32", False),
        ("bool", False),
        ("complex64", False),
        ("float64", True),
        ("int64", True),
        ("uint64", True),
        ("complex128", True),
    ],
)
def test_a_decomposition_has_the_types_that_the_program_was_traced_with(dtype, wide):
    seen = []
    out = run(lambda x: seen.append(config.enable_x64) or x, shaped((2,), dtype))
    assert seen == [wide] and not config.enable_x64
    assert out.dtype == dtype and out.shape == (2,)


def test_tokens_have_no_type_to_look_at():
    assert run(lambda t, x: x, token, shaped((3,), "float32")).shape == (3,)
