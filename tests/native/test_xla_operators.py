"""Operators of arrays, which C++ calls by itself once it has seen the types: they must be the array library's in
every respect.
"""

from __future__ import annotations

import operator

import numpy as np
import pytest
from platforms import need

need("cpu")
import weft
import weft.numpy as jnp
from weft.base.config import config
from weft.errors import WeftError
from weft_native.arrays import ArrayImpl
from weft_native.operators import NAMES

pytestmark = pytest.mark.usefixtures("on_xla")


@pytest.fixture(autouse=True)
def on_xla(backend):
    before = config.platforms
    config.update("jax_platforms", "cpu")
    yield
    config.update("jax_platforms", before)


BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne", "pow"]
BITS = ["and_", "or_", "xor", "lshift", "rshift"]


def test_they_are_installed():
    installed = [n for n in NAMES if getattr(ArrayImpl, f"__{n}__").__module__ == "weft_native.operators"]
    assert {"add", "radd", "mul", "sub", "rsub", "truediv", "lt", "eq", "neg"} <= set(installed)


@pytest.mark.parametrize(
    "name, dt",
    [(name, dt) for dt in ("int32", "float32", "uint8") for name in BINARY + BITS if dt != "float32" or name in BINARY],
)
def test_they_compute_what_numpy_computes(name, dt):
    f = getattr(operator, name)
    x, y = np.array([1, 2, 3], dt), np.array([[3, 2, 1]], dt)
    for _ in range(2):
        got = f(jnp.asarray(x), jnp.asarray(y))
        assert got.shape == (1, 3)
        np.testing.assert_allclose(np.asarray(got), f(x, y), rtol=1e-6)
        for scalar in (2, np.asarray(2, dt)):
            np.testing.assert_allclose(np.asarray(f(jnp.asarray(x), scalar)), f(x, scalar), rtol=1e-6)
            np.testing.assert_allclose(np.asarray(f(scalar, jnp.asarray(x))), f(scalar, x), rtol=1e-6)


@pytest.mark.parametrize("other", [1, 1.5, True, 1j, np.float32(2), np.int8(2), "f32", "i8", "bf16"])
@pytest.mark.parametrize("dt", ["int8", "int32", "float32", "bfloat16", "bool"])
def test_types_are_those_of_a_traced_call(dt, other):
    x = jnp.ones(2, dt)
    y = (
        {"f32": jnp.ones(2), "i8": jnp.ones(2, "int8"), "bf16": jnp.ones(2, "bfloat16")}[other]
        if isinstance(other, str)
        else other
    )
    want = weft.eval_shape(lambda a: a * y, x)
    for _ in range(2):
        got = x * y
        assert got.dtype == want.dtype and got.weak_type == want.weak_type and got.shape == want.shape


def test_weak_scalars_stay_weak():
    x = jnp.asarray(1.0) if jnp.asarray(1.0).weak_type else weft.jit(lambda v: v)(1.0)
    assert x.weak_type and (x + 1).weak_type and not (x + jnp.ones(1)).weak_type


def test_unary():
    x = jnp.array([-1, 2])
    for _ in range(2):
        assert (-x).tolist() == [1, -2] and abs(x).tolist() == [1, 2] and (~x).tolist() == [0, -3]


def test_matmul():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(jnp.asarray(x) @ jnp.asarray(x.T)), x @ x.T)


def test_what_is_no_array_is_refused_as_in_python():
    x = jnp.ones(2)
    for other in ("a", None, [1, 2], object(), {"a": 1}):
        for _ in range(2):
            with pytest.raises(TypeError):
                x + other
    # as Python compares what has nothing to do with each other
    assert (x == None) is False and (x != None) is True  # noqa: E711


def test_shape_errors_name_both_shapes():
    for _ in range(2):
        with pytest.raises((TypeError, ValueError, WeftError), match=r"\(2,\).*\(3,\)"):
            jnp.ones(2) + jnp.ones(3)


def test_tracers_on_either_side():
    x = jnp.arange(3.0)
    x + x
    jaxpr = str(weft.make_jaxpr(lambda y: (x + y, y + x, x + 1))(x))
    assert jaxpr.count("add") >= 2
    assert weft.grad(lambda y: (x * y + y * x).sum())(x).tolist() == [0, 2, 4]
    assert weft.vmap(lambda y: x + y)(jnp.ones((2, 3))).shape == (2, 3)
    assert weft.jit(lambda y: x * y)(x).tolist() == [0, 1, 4]


def test_promotion_mode_is_respected():
    x, y = jnp.ones(2), jnp.ones(2, "int32")
    x + y, x + y
    with weft.numpy_dtype_promotion("strict"):
        for _ in range(2):
            with pytest.raises(ValueError, match="strict"):
                x + y
    assert (x + y).dtype == np.float32


def test_zero_signs():
    x = jnp.ones(2)
    for scalar in (0.0, -0.0, 0.0):
        assert np.signbit(np.asarray(x * scalar)).tolist() == [np.signbit(scalar)] * 2
