"""Helpers of the tests of the XLA backend."""

from __future__ import annotations

import numpy as np
import pytest
from platforms import need

need("cpu")

from weft.base import dtypes
from weft.base.avals import shaped
from weft.core.trace import get_aval
from weft.core.interpret import interpret
from weft.runtime import device as runtime_device
from weft.transforms.stage import consts_as_args, stage


@pytest.fixture(scope="session")
def backend():
    """The one XLA backend of the process, as users get it."""
    return runtime_device.backend_for("cpu")


@pytest.fixture(scope="session")
def cpu(backend):
    return backend.devices("cpu")[0]


def compiled(backend, fun, avals, **options):
    """(executable, values of constants, jaxpr) of a function of flat arguments that returns a list."""
    from weft.runtime.backend import CompileOptions

    jaxpr, consts = stage(fun, avals)
    whole = consts_as_args(jaxpr)
    return backend.compile(whole, backend.devices("cpu")[0], CompileOptions(**options)), consts, jaxpr


def run_xla(backend, fun, args):
    """The results of a function on XLA, as NumPy arrays."""
    avals = [get_aval(a) for a in args]
    exe, consts, _ = compiled(backend, fun, avals)
    device = backend.devices("cpu")[0]
    arrays = [backend.put(a, get_aval(a), device, False) for a in (*consts, *args)]
    return [o._host() for o in exe.execute(arrays)]


def run_by_reference(fun, args):
    """The results of a function by the primitives' reference rules."""
    from weft.core.jaxpr import ClosedJaxpr

    jaxpr, consts = stage(fun, [get_aval(a) for a in args])
    return interpret(ClosedJaxpr(jaxpr, consts), [np.asarray(a) for a in args])


def tolerance(dt) -> float:
    if not dtypes.is_inexact(dt):
        return 0
    return (
        {16: 2e-2, 32: 2e-5, 64: 1e-11}[dtypes.bits(dtypes.real_of(dt) if dtypes.is_complex(dt) else dt)]
        if dt != dtypes.float16
        else 4e-3
    )


@pytest.fixture
def check(backend):
    """check(fun, *args): XLA's results are those of the reference rules."""

    def check(fun, *args, rtol=None):
        flat = lambda *xs: (lambda out: list(out) if isinstance(out, (list, tuple)) else [out])(fun(*xs))
        got, want = run_xla(backend, flat, args), run_by_reference(flat, args)
        assert len(got) == len(want)
        for g, w in zip(got, want):
            assert g.shape == w.shape and g.dtype == w.dtype
            tol = tolerance(w.dtype) if rtol is None else rtol
            wide = np.complex128 if dtypes.is_complex(w.dtype) else np.float64 if dtypes.is_float(w.dtype) else w.dtype
            np.testing.assert_allclose(g.astype(wide), w.astype(wide), rtol=tol, atol=tol)

    return check


def values(shape, dt, seed=0, low=-3.0, high=3.0):
    """Deterministic test values: spread numbers, with zeros and repeats among integers."""
    rng = np.random.default_rng(seed)
    dt = dtypes.dtype(dt)
    kind = dtypes.kind(dt)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -7, 8, shape).astype(dt)
    if kind == "c":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dt)
    return rng.uniform(low, high, shape).astype(dt)


__all__ = ["compiled", "run_by_reference", "run_xla", "shaped", "values"]
