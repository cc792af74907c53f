"""Taylor mode against the Taylor series of mpmath, which computes them from values alone."""

import mpmath as mp
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.base.config import enable_x64
from weft.experimental.jet import jet, jet2

pytestmark = pytest.mark.slow

ORDER = 5
CASES = {
    "sin": (jnp.sin, mp.sin, 0.5),
    "cos": (jnp.cos, mp.cos, 0.5),
    "tan": (jnp.tan, mp.tan, 0.4),
    "exp": (jnp.exp, mp.exp, 0.5),
    "log": (jnp.log, mp.log, 0.7),
    "exp2": (jnp.exp2, lambda x: mp.mpf(2) ** x, 0.7),
    "expm1": (jnp.expm1, mp.expm1, 0.4),
    "log1p": (jnp.log1p, mp.log1p, 0.4),
    "tanh": (jnp.tanh, mp.tanh, 0.3),
    "sinh": (jnp.sinh, mp.sinh, 0.4),
    "cosh": (jnp.cosh, mp.cosh, 0.4),
    "asin": (jnp.arcsin, mp.asin, 0.4),
    "acos": (jnp.arccos, mp.acos, 0.4),
    "atan": (jnp.arctan, mp.atan, 0.4),
    "asinh": (jnp.arcsinh, mp.asinh, 0.4),
    "acosh": (jnp.arccosh, mp.acosh, 1.7),
    "atanh": (jnp.arctanh, mp.atanh, 0.4),
    "sqrt": (jnp.sqrt, mp.sqrt, 0.7),
    "rsqrt": (lax.rsqrt, lambda x: 1 / mp.sqrt(x), 0.7),
    "cbrt": (jnp.cbrt, mp.cbrt, 0.4),
    "logistic": (lax.logistic, lambda x: 1 / (1 + mp.exp(-x)), 0.7),
    "erf": (lax.erf, mp.erf, 0.4),
    "erfc": (lax.erfc, mp.erfc, 0.4),
    "erf_inv": (lax.erf_inv, mp.erfinv, 0.4),
    "lgamma": (lax.lgamma, mp.loggamma, 1.7),
    "digamma": (lax.digamma, mp.digamma, 1.7),
    "pow": (lambda x: x**2.5, lambda x: x**2.5, 0.7),
    "negative base": (lambda x: x**3.0, lambda x: x**3, -0.7),
    "both vary": (lambda x: x**x, lambda x: x**x, 0.7),
    "integer_pow": (lambda x: x**-3, lambda x: x**-3, -0.7),
    "at zero": (lambda x: x**3, lambda x: x**3, 0.0),
    "div": (lambda x: (1 + x) / (x * x + 2), lambda x: (1 + x) / (x * x + 2), 0.7),
    "atan2": (lambda x: jnp.arctan2(x, 1 + x * x), lambda x: mp.atan2(x, 1 + x * x), 0.6),
    "dot": (lambda x: jnp.dot(jnp.stack([x, x * x]), jnp.stack([jnp.sin(x), x])), lambda x: x * mp.sin(x) + x**3, 0.7),
    "prod": (lambda x: jnp.prod(jnp.stack([x, jnp.sin(x)])), lambda x: x * mp.sin(x), 0.7),
    "cumprod": (lambda x: jnp.cumprod(jnp.stack([x, jnp.sin(x)]))[1], lambda x: x * mp.sin(x), 0.7),
    "max": (lambda x: jnp.max(jnp.stack([x, jnp.sin(3 * x)])), lambda x: mp.sin(3 * x), 0.4),
    "sort": (lambda x: jnp.sort(jnp.stack([x, jnp.sin(3 * x)]))[1], lambda x: mp.sin(3 * x), 0.4),
    "select": (lambda x: jnp.where(x > 0, jnp.sin(x), 0.0), mp.sin, 0.4),
    "gather": (lambda x: (jnp.sin(x) * jnp.arange(1.0, 4.0))[jnp.array([2, 0])].sum(), lambda x: 4 * mp.sin(x), 0.4),
    "scatter": (
        lambda x: jnp.zeros(3).at[jnp.array([0, 0])].add(jnp.sin(x)).at[1].set(x)[:2].sum(),
        lambda x: 2 * mp.sin(x) + x,
        0.4,
    ),
    "solve": (
        lambda x: jnp.linalg.solve(jnp.stack([jnp.stack([x, x * 0 + 1]), jnp.stack([x * 0 + 0.5, x])]), jnp.ones(2))[0],
        lambda x: (x - 1) / (x * x - mp.mpf(1) / 2),
        1.7,
    ),
    "scan": (
        lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, None), x, None, length=3)[0],
        lambda x: mp.sin(mp.sin(mp.sin(x) * x) * x) * x,
        0.7,
    ),
    "cond": (lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), mp.sin, 0.7),
    "while": (
        lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))[1],
        lambda x: mp.sin(mp.sin(x)),
        0.7,
    ),
    "jit": (weft.jit(lambda x: jnp.exp(jnp.sin(x))), lambda x: mp.exp(mp.sin(x)), 0.7),
    "checkpoint": (weft.checkpoint(lambda x: jnp.exp(jnp.sin(x))), lambda x: mp.exp(mp.sin(x)), 0.7),
    "custom_jvp": (weft.nn.silu, lambda x: x / (1 + mp.exp(-x)), 0.7),
    "relu": (weft.nn.relu, lambda x: x, 0.7),
    "floor": (lambda x: jnp.floor(x) + jnp.sin(x), mp.sin, 0.7),
}


@pytest.mark.parametrize("name", CASES)
def test_series(name):
    f, plain, x = CASES[name]
    with enable_x64(True):
        y, terms = jet(f, (x,), ([1.0] + [0.0] * (ORDER - 1),))
        want = [float(c) * float(mp.factorial(k)) for k, c in enumerate(mp.taylor(plain, x, ORDER))]
        np.testing.assert_allclose(
            [float(y), *map(float, terms)], want, rtol=1e-9, atol=1e-7 if name == "at zero" else 1e-10
        )


def test_curves_of_several_arguments():
    curve = lambda t: (
        mp.sin((0.5 + t + t**2 + t**3 / 2) * (2 - t + t**2 / 4 + t**3 / 30)) / (2 - t + t**2 / 4 + t**3 / 30)
    )
    with enable_x64(True):
        y, terms = jet(lambda x, y: jnp.sin(x * y) / y, (0.5, 2.0), ((1.0, 2.0, 3.0), (-1.0, 0.5, 0.2)))
        want = [float(c) * float(mp.factorial(k)) for k, c in enumerate(mp.taylor(curve, 0, 3))]
        np.testing.assert_allclose([float(y), *map(float, terms)], want, rtol=1e-9)
        _, coefficients = jet2(lambda x, y: jnp.sin(x * y) / y, (0.5, 2.0), ((1.0, 1.0, 0.5), (-1.0, 0.25, 0.2 / 6)))
        np.testing.assert_allclose(
            list(map(float, coefficients)), [w / float(mp.factorial(k + 1)) for k, w in enumerate(want[1:])], rtol=1e-9
        )


def test_arrays_trees_and_transformations():
    x = jnp.arange(3.0)
    (a, b), (da, db) = jet(lambda x: (jnp.sin(x), 2 * x), (x,), ((jnp.ones(3), jnp.zeros(3)),))
    np.testing.assert_allclose(np.asarray(da[1]), -np.sin(np.arange(3)), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(db), [[2, 2, 2], [0, 0, 0]])
    third = lambda x: jet(jnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]
    np.testing.assert_allclose(np.asarray(weft.jit(weft.vmap(weft.grad(third)))(x)), np.sin(np.arange(3)), atol=1e-6)
    assert jet(jnp.sin, (0.5,), ((),))[1] == []


def test_bad_input():
    with pytest.raises(ValueError, match="inconsistent lengths"):
        jet(lambda x, y: x * y, (1.0, 2.0), ((1.0,), (1.0, 2.0)))
    with pytest.raises(ValueError, match="position 0 is not an array"):
        jet(lambda d: d["a"], ({"a": 1.0},), ((1.0,),))
    with pytest.raises(ValueError, match="does not fit"):
        jet(jnp.sin, (jnp.ones(3),), ((jnp.ones(2),),))
    with pytest.raises(TypeError, match="callable"):
        jet(3, (1.0,), ((1.0,),))
