"""Reductions over axes that vmap has named, alone and together with axes of the array."""

import numpy as np
import pytest
import scipy.special

import weft
import weft.numpy as jnp
from weft import nn
from weft.scipy.special import logsumexp

pytestmark = pytest.mark.slow
X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def over(fun, axis, **kwargs):
    return np.asarray(weft.jit(weft.vmap(lambda x: fun(x, axis=axis, **kwargs), axis_name="i"))(X))


@pytest.mark.parametrize("axis, whole", [("i", 0), (("i",), 0), (("i", 0), None), ((0, "i"), None)])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "var", "std", "ptp", "nanmean", "logsumexp"])
def test_reductions(name, axis, whole):
    fun = logsumexp if name == "logsumexp" else getattr(jnp, name)
    want = scipy.special.logsumexp(X, whole) if name == "logsumexp" else getattr(np, name)(X, whole)
    got = over(fun, axis)
    np.testing.assert_allclose(got, np.broadcast_to(want, got.shape), rtol=1e-5)


@pytest.mark.parametrize(
    "fun, reference",
    [
        (nn.softmax, scipy.special.softmax),
        (nn.log_softmax, scipy.special.log_softmax),
        (nn.standardize, lambda x, axis: (x - x.mean(axis)) / np.sqrt(x.var(axis) + 1e-5)),
    ],
)
def test_normalizations(fun, reference):
    np.testing.assert_allclose(over(fun, "i"), reference(X, axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(over(fun, ("i", 0)), reference(X, axis=None), rtol=1e-4, atol=1e-5)


def test_masks_and_kept_axes():
    def masked(x):
        return [
            jnp.mean(x, axis=("i", 0), where=x > 0, keepdims=True),
            jnp.std(x, axis=("i", 0), where=x > 0, ddof=1),
            jnp.sum(x, axis=("i", 0), initial=1.0),
        ]

    mean, std, total = [np.asarray(v) for v in weft.vmap(masked, axis_name="i")(X)]
    np.testing.assert_allclose(mean, np.full((4, 1), X[X > 0].mean()), rtol=1e-5)
    np.testing.assert_allclose(std, np.full(4, X[X > 0].std(ddof=1)), rtol=1e-5)
    np.testing.assert_allclose(total, np.full(4, 1 + X.sum()), rtol=1e-5)


def test_derivatives():
    def loss(x):
        return weft.vmap(lambda x: jnp.var(x, axis="i") * x + logsumexp(x, axis="i"), axis_name="i")(x).sum()

    def by_positions(x):
        return (jnp.var(x, axis=0) * x + logsumexp(x, axis=0)).sum()

    np.testing.assert_allclose(weft.grad(loss)(X), weft.grad(by_positions)(X), rtol=1e-4, atol=1e-5)


def test_what_has_no_named_axes_says_so():
    with pytest.raises(NotImplementedError, match=r"prod is not computed over named axes \(i\); gather them first"):
        over(jnp.prod, "i")
    with pytest.raises(NameError, match="'j'"):
        over(jnp.sum, "j")
    with pytest.raises(TypeError, match="axis must be an integer, got 'i'"):
        over(jnp.argmax, "i")
