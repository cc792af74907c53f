"""Runs functions on the Wasm backend and by the primitives' reference rules."""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np
from weft.core.interpret import interpret
from weft.core.trace import get_aval
from weft.runtime.backend import CompileOptions
from weft.runtime.device import register_backend
from weft.transforms.physical import lower_types
from weft.transforms.stage import consts_as_args, stage_closed
from weft_wasm.backends.wasm import WasmBackend
from weft_wasm.passes.pipeline import verifying

FLOATS = ("float32", "float64", "bfloat16", "float16")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
TOLERANCE = {"float32": 2e-5, "float64": 1e-11, "bfloat16": 2e-2, "float16": 4e-3}


@functools.cache
def backend() -> WasmBackend:
    """One verifying backend for all tests, known to weft as "wasm"."""
    made = WasmBackend()
    made.after = verifying()
    register_backend(lambda: made, "wasm")
    return made


def numpy_dtype(name: str):
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def flat(fun):
    """fun with a list of results."""

    def call(*args):
        out = fun(*args)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    return call


def jaxpr_of(fun, args):
    """(jaxpr with constants leading, their values)."""
    closed = lower_types(stage_closed(flat(fun), [get_aval(a) for a in args]))
    return consts_as_args(closed.jaxpr), [np.asarray(c._host() if hasattr(c, "_host") else c) for c in closed.consts]


def compiled(fun, *args, **options):
    """(executable, arrays to lead the arguments)."""
    jaxpr, consts = jaxpr_of(fun, args)
    return backend().compile(jaxpr, backend().devices()[0], CompileOptions(**options)), consts


def put(x):
    x = np.asarray(x)
    return backend().put(x, get_aval(x), backend().devices()[0], False)


def run(fun, *args, donated=()):
    """Results on the Wasm backend, as NumPy arrays; donated: for each argument, whether its storage may become a
    result's.
    """
    executable, consts = compiled(
        fun, *args, donated=(*(False for _ in jaxpr_of(fun, args)[1]), *donated) if donated else ()
    )
    return [np.asarray(o._host()) for o in executable.execute([put(x) for x in (*consts, *args)])]


def reference(fun, *args):
    jaxpr, consts = jaxpr_of(fun, args)
    return interpret(jaxpr, [np.asarray(a) for a in (*consts, *args)])


def assert_close(got, want, tolerance=None, context=""):
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape, got.dtype, want.dtype, context)
    name = want.dtype.name
    if name not in TOLERANCE:
        np.testing.assert_array_equal(got, want, err_msg=context)
        return
    t = TOLERANCE[name] if tolerance is None else tolerance
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=t, atol=t, err_msg=context)


def check(fun, *args, tolerance=None, donated=()):
    """The Wasm backend gives what the reference rules give."""
    got, want = run(fun, *args, donated=donated), reference(fun, *args)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert_close(g, w, tolerance)
    return got


def values(rng, dtype: str, shape, low=-3.0, high=3.0):
    """Random numbers of a dtype, moderate in size."""
    dt = numpy_dtype(dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in INTS:
        lo = 0 if dtype[0] == "u" else -20
        return rng.integers(lo, 40, size=shape).astype(dt)
    return rng.uniform(low, high, size=shape).astype(dt)
