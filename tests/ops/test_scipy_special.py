"""Special functions of weft.scipy against SciPy, in every float dtype, broadcasting, with integers, and their
derivatives.
"""

import mpmath
import numpy as np
import pytest
import scipy.special as reference

import weft
import weft.numpy as jnp
from weft import lax
from weft.scipy import special

pytestmark = pytest.mark.slow

WORDS_ARE = "weft.scipy.special"  # to tools/coverage.py
RNG = np.random.default_rng(0)
POSITIVE = [np.exp(RNG.uniform(-2, 3, 60)) for _ in range(3)]
CASES = {
    "gammainc": (POSITIVE[0], POSITIVE[1]),
    "gammaincc": (POSITIVE[0], POSITIVE[1]),
    "betainc": (POSITIVE[0], POSITIVE[1], RNG.uniform(size=60)),
    "zeta": (1.1 + POSITIVE[0], POSITIVE[1]),
    "polygamma": (np.arange(60) % 7, POSITIVE[0]),
    "gammaln": (POSITIVE[0],),
    "digamma": (POSITIVE[0],),
    "i0e": (POSITIVE[0] - 3,),
    "i1e": (POSITIVE[0] - 3,),
    "i0": (POSITIVE[0] / 4,),
    "i1": (POSITIVE[0] / 4 - 2,),
}


@pytest.mark.parametrize(
    "dtype,rtol,atol",
    [("float64", 2e-12, 1e-13), ("float32", 3e-4, 2e-5), ("float16", 4e-2, 4e-3), ("bfloat16", 2e-1, 2e-2)],
)
@pytest.mark.parametrize("name", CASES)
def test_values_are_scipy_s(name, dtype, rtol, atol):
    with weft.enable_x64(dtype == "float64"):
        args = [jnp.asarray(a).astype(dtype) if a.dtype.kind == "f" else a for a in CASES[name]]
        got = getattr(special, name)(*args)
        assert got.dtype == dtype
        exact = [np.asarray(a).astype("float64") if a.dtype != np.int64 else a for a in args]  # as rounded
        want = getattr(reference, name)(*exact)
        usable = np.abs(want) < (6e4 if dtype == "float16" else 1e30)
        np.testing.assert_allclose(np.asarray(got).astype("float64")[usable], want[usable], rtol=rtol, atol=atol)


def test_operands_broadcast_and_integers_become_floats():
    assert special.gammainc(2, jnp.ones((3, 1))).shape == (3, 1)
    assert special.betainc(jnp.ones((2, 1)), 2, jnp.full(3, 0.5)).shape == (2, 3)
    np.testing.assert_allclose(
        special.polygamma(jnp.arange(3)[:, None], jnp.array([1.0, 2.0])),
        reference.polygamma(np.arange(3)[:, None], [1.0, 2.0]),
        rtol=1e-5,
    )
    np.testing.assert_allclose(special.zeta(3), reference.zeta(3), rtol=1e-6)


def test_limits_are_scipy_s():
    """At infinite shapes and at zero, where real JAX gives NaN."""
    for a, x in ((0.0, 0.5), (0.0, 2.0), (np.inf, 0.5), (np.inf, 2.0), (np.inf, 0.0)):
        assert float(special.gammainc(a, x)) == reference.gammainc(a, x)
        assert float(special.gammaincc(a, x)) == reference.gammaincc(a, x)


def test_derivatives_are_mpmath_s():
    a, x = [v[:12] for v in POSITIVE[:2]]
    with weft.enable_x64(True), mpmath.workdps(30):
        value = lambda p, q: mpmath.gammainc(p, 0, q, regularized=True)
        by_a = np.array([float(mpmath.diff(lambda t: value(t, mpmath.mpf(q)), mpmath.mpf(p))) for p, q in zip(a, x)])
        by_x = np.array([float(mpmath.exp(-q) * mpmath.mpf(q) ** (p - 1) / mpmath.gamma(p)) for p, q in zip(a, x)])
        got_a, got_x = weft.grad(lambda a, x: special.gammainc(a, x).sum(), (0, 1))(a, x)
        np.testing.assert_allclose(got_a, by_a, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(got_x, by_x, rtol=1e-11)
        np.testing.assert_allclose(lax.random_gamma_grad(jnp.asarray(a), jnp.asarray(x)), -by_a / by_x, rtol=1e-10)
        np.testing.assert_allclose(weft.grad(lambda x: special.gammaincc(a, x).sum())(x), -by_x, rtol=1e-11)
        third = weft.grad(weft.grad(weft.grad(special.gammaln)))
        np.testing.assert_allclose(weft.vmap(third)(x), reference.polygamma(2, x), rtol=1e-11)
        slope = weft.vmap(weft.grad(special.i1e))(x)
        np.testing.assert_allclose(
            slope, [float(mpmath.diff(lambda t: mpmath.exp(-t) * mpmath.besseli(1, t), q)) for q in x], rtol=1e-9
        )
        assert float(weft.grad(special.i1e)(0.0)) == 0.5


def test_the_reference_of_zeta_at_its_pole():
    x, q = np.float32([1, 1, 2]), np.float32([2, 0.5, 1])
    np.testing.assert_allclose(lax.zeta_p.reference(x, q), [np.inf, np.inf, np.pi**2 / 6], rtol=1e-6)
