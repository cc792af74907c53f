"""The judge of random programs: what it lets pass as rounding, and what it must not."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.experimental import pallas as pl

from .compare import mismatch, reference

F = np.float32


def judged(fun, args, change, flushes=False):
    """What the judge says of the reference's own results after a change."""
    closed = weft.make_jaxpr(fun)(*args)
    want = reference(closed, args)
    return mismatch(closed, args, [np.asarray(change(w), w.dtype) for w in want], want, flushes)


def test_results_as_they_are_pass_and_wrong_ones_do_not():
    for fun, x in (
        (jnp.sin, F([1, 2])),
        (lambda x: lax.reduce_prod(x, (0,)), F([2, 3])),
        (lambda x: lax.cumprod(x, 0, reverse=True), F([2, 3, 4])),
        (lambda x: jnp.abs(lax.fft(x, "rfft", (4,))), F([1, 2, 3, 4])),
        (lambda x: lax.nextafter(x, x + 1), F([0, 1])),
    ):
        for flushes in (False, True):
            assert judged(fun, [x], lambda w: w, flushes) is None
            assert judged(fun, [x], lambda w: w * 1.01 + 0.01, flushes) is not None


def test_subnormals_may_be_zeros_where_they_are_flushed():
    fun, x = (lambda x: lax.nextafter(x, jnp.ones_like(x)) > 0), F([0, 0.5])
    assert judged(fun, [x], lambda w: np.array([False, True]), flushes=True) is None
    assert judged(fun, [x], lambda w: np.array([False, True])) is not None
    assert judged(fun, [x], lambda w: np.array([True, False]), flushes=True) is not None


def test_a_product_may_be_lost_where_some_of_its_factors_leave_the_dtype():
    product = lambda x: lax.reduce_prod(x, (0,))
    lost = lambda w: np.full_like(w, np.nan)
    assert judged(product, [F([1e30, 1e30, 1e-30, 1e-30])], lost) is None
    assert judged(product, [F([1e30, 1e-30, 2, 3])], lost) is not None
    running = lambda x: lax.cumprod(x, 0, reverse=True)
    change = lambda w: np.where(np.arange(4) < 2, np.nan, w)
    assert judged(running, [F([1e-30, 1e30, 1e30, 1])], lambda w: np.where(np.arange(4) == 0, np.nan, w)) is None
    assert judged(running, [F([2, 3, 1e30, 1])], change) is not None


@pytest.mark.parametrize("k", [0, 1])
def test_terms_that_cancel_may_do_so_wholly(k):
    fun = lambda x: lax.fft(x, "irfft", (4,)) != 0
    x = np.array([4, 0, 0], np.complex64)[[[0, 1, 2], [1, 0, 2]][k]]
    assert judged(fun, [x], lambda w: w) is None


def test_what_a_kernel_rounds_may_differ():
    def called(fun):
        def kernel(x, o):
            o[...] = fun(x[...])

        return pl.pallas_call(kernel, weft.ShapeDtypeStruct((2,), "float32"))

    x, nearly = F([1, 2]), lambda w: w * F(1 + 1e-6)
    assert judged(called(jnp.sin), [x], nearly) is None
    assert judged(called(jnp.sin), [x], lambda w: w * 1.01) is not None
    assert judged(called(lax.neg), [x], nearly) is not None
