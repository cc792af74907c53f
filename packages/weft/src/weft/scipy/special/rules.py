"""Makes the special functions that are not primitives."""

from __future__ import annotations

from functools import update_wrapper
from typing import Callable

from ...base import dtypes, limits
from ... import numpy as jnp
from ...higher_order.custom_jvp import custom_jvp
from ...numpy.util import in_own_terms, on_device, promote_inexact
from ...primitives import linear
from ...runtime.jit import inner_jit
from ...base.tree import tree_map


def rule(f: Callable, *slopes: Callable | None, name: str | None = None) -> Callable:
    """`f` as one compiled program, whose derivative with respect to argument i is `slopes[i](out, *arguments)`, or
    zero for None.
    """
    function = custom_jvp(in_own_terms(f))

    @in_own_terms
    def jvp(primals, tangents):
        out = function(*primals)
        total = tree_map(jnp.zeros_like, out)
        for slope, t in zip(slopes, tangents):
            if slope is not None:
                total = tree_map(lambda s, d: s + t * d, total, slope(out, *primals))
        return out, total

    function.defjvp(jvp)
    return inner_jit(function, name=name or f.__name__.strip("_"))


def special(
    core: Callable, name: str, *, complex_too: bool = False, error: type = ValueError, only: tuple[str, ...] = ()
) -> Callable:
    """Decorates a public function, whose text and signature it keeps: its arguments become arrays of one float dtype
    and shape for `core`, of 32 bits at least.

    Refuses complex numbers with `error` unless `complex_too`, and other dtypes than `only`.
    """

    within = in_own_terms(core)

    def decorate(public: Callable) -> Callable:
        def function(*args):
            if only:
                for x in args:
                    given = dtypes.name(on_device(x).dtype) if not isinstance(x, (list, tuple)) else None
                    if given is not None and given not in only:
                        raise TypeError(
                            f"{name}: arguments of dtype {given} are not supported; convert them to one of"
                            f" {', '.join(only)}."
                        )
            xs = promote_inexact(name, *args)
            xs = jnp.broadcast_arrays(*map(on_device, xs)) if len(xs) > 1 else [on_device(xs[0])]
            dt = xs[0].dtype
            if dtypes.is_complex(dt) and not complex_too:
                raise error(f"{name} does not support complex-valued inputs: give it real numbers, such as x.real.")
            wide = dtypes.float32 if dtypes.bits(dt) < 32 else dt
            out = within(*[linear.convert(x, wide, False) for x in xs])
            return out if wide == dt else tree_map(lambda v: linear.convert(v, dt), out)

        return update_wrapper(function, public)

    return decorate


def is_double(x) -> bool:
    return limits.finfo(x.dtype).bits > 32
