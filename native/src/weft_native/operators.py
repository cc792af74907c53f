"""The operators of ArrayImpl, called through C++: `x + y` on arrays finds its compiled program without running
Python.
"""

from __future__ import annotations

import numpy as np
import weft.numpy  # noqa: F401  it defines the methods that are called here
import jaxlib._jax as _jax
from weft.base.config import config
from weft.core.jaxpr import ClosedJaxpr
from weft.core.trace import current_trace, get_aval, is_array_like, root
from weft.base.errors import WeftError
from weft.runtime.array import installed_method, override_methods
from weft.runtime.backend import CompileOptions
from weft.runtime.dispatch import executable_for
from weft.runtime.guards import explained
from weft.runtime.partition import place_of
from weft.base.mesh import Sharding
from weft.transforms.stage import consts_as_args, stage

from . import sharding as placing
from .arrays import ArrayImpl
from .dispatch import fast_entry, registry

NAMES = (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "matmul",
    "rmatmul",
    "and",
    "rand",
    "or",
    "ror",
    "xor",
    "rxor",
    "lshift",
    "rlshift",
    "rshift",
    "rrshift",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "neg",
    "abs",
    "invert",
)
_DATA = frozenset((ArrayImpl, np.ndarray, bool, int, float, complex))


def install(backend) -> None:
    """Installs fast operators on ArrayImpl, for the operators that the array library has defined so far."""
    cache = _jax.PjitFunctionCache(capacity=8192)
    names = [f"__{name}__" for name in NAMES if installed_method(f"__{name}__") is not None]
    override_methods(ArrayImpl, {name: _fast(backend, name, installed_method(name), cache) for name in names})


def _fast(backend, name: str, method, cache):
    """`method` for concrete arrays and Python scalars as a compiled program; for all else, and while tracing,
    itself.
    """

    def miss(*args):
        if (
            current_trace() is not root
            or config.debug_nans
            or config.debug_infs
            or not all(type(x) in _DATA or isinstance(x, np.generic) for x in args)
        ):
            return method(*args), None, False
        return compiled(args)

    def compiled(args):
        box = []

        def flat(*xs):
            out = method(*xs)
            box.append(is_array_like(out))
            return [out] if box[0] else []

        try:
            avals = [get_aval(x) for x in args]
            jaxpr, consts = stage(flat, avals, name)
        except (TypeError, ValueError, WeftError):  # report it like the eager call
            return method(*args), None, False
        if not box[0]:
            return method(*args), None, False
        device, committed = backend.placement(args)
        if device.backend is not backend:  # the default device is another backend's
            return method(*args), None, False
        if isinstance(device, Sharding):
            return spread(ClosedJaxpr(jaxpr, consts), args, device)
        executable = backend.compile(consts_as_args(jaxpr), device, CompileOptions(name.strip("_")))
        consts = [backend.put(c, get_aval(c), device, False) for c in consts]
        (out,) = executable.execute([*consts, *[backend.array(x, a, device) for x, a in zip(args, avals)]], committed)
        return out, fast_entry(out, executable, consts, placing.all_usual(args)), False

    def spread(closed, args, where):
        place = place_of(closed, args, where)
        executable, consts = executable_for(closed, place, name.strip("_"))
        (out,) = executable.execute(
            [*consts, *[backend.array(x, a, p) for x, a, p in zip(args, closed.in_avals, place.ins)]]
        )
        return out, fast_entry(out, executable, consts, placing.all_usual(args)), False

    call = _jax.pjit(name, method, miss, [], [], name, registry, backend.shard_arg, cache)

    def operator(*args):
        try:
            return call(*args)
        except (_jax.JaxRuntimeError, ValueError) as e:
            told = explained(e, lambda: [("an array", x) for x in args])
            if told is e:
                raise
            raise told from None

    operator.__name__ = name
    return operator
