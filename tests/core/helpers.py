"""Helpers of the tests of transformations: numbers from arrays, and derivatives by differences."""

import numpy as np

import weft
from weft.base.config import enable_x64


def value(x):
    return np.asarray(x._host() if hasattr(x, "_host") else x)


def close(a, b, rtol=1e-5, atol=1e-6):
    weft.tree.map(lambda x, y: np.testing.assert_allclose(value(x), value(y), rtol=rtol, atol=atol), a, b)


def check_grads(f, *args, rtol=2e-5, seed=0):
    """Forward and reverse derivatives of `f` (arrays to a pytree of arrays) against central differences, in float64."""
    with enable_x64(True):
        rng = np.random.default_rng(seed)
        args = [np.asarray(a, np.float64) for a in args]
        ts = [rng.normal(size=a.shape) for a in args]
        out, out_t = weft.jvp(f, tuple(args), tuple(ts))
        eps = 1e-6
        hi = f(*[a + eps * t for a, t in zip(args, ts)])
        lo = f(*[a - eps * t for a, t in zip(args, ts)])
        want = weft.tree.map(lambda h, low: (value(h) - value(low)) / (2 * eps), hi, lo)
        close(out_t, want, rtol=rtol, atol=1e-7)
        ct = weft.tree.map(lambda x: rng.normal(size=x.shape), out)
        back = weft.vjp(f, *args)[1](ct)
        forward = sum(np.sum(value(c) * value(t)) for c, t in zip(weft.tree.leaves(ct), weft.tree.leaves(out_t)))
        reverse = sum(np.sum(value(b) * t) for b, t in zip(back, ts))
        np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-9)
        lin_out = weft.linearize(f, *args)[1](*ts)
        close(lin_out, out_t, rtol=1e-10)
