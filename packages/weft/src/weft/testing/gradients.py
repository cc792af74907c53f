"""Checks derivatives against finite differences."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any, Callable, Mapping, Sequence, TypeAlias

from ..base import dtypes
from .. import numpy as jnp
from ..api.autodiff import jvp, vjp
from ..base.dtypes import float0_zeros
from ..core.trace import get_aval
from ..base.tree import tree_leaves, tree_map

__all__ = ["check_grads", "check_jvp", "check_vjp"]
_TOLERANCE = {
    "bfloat16": 1e-1,
    "float16": 1e-2,
    "float32": 2e-3,
    "complex64": 1e-3,
    "float64": 1e-5,
    "complex128": 1e-5,
}
_EPS = 1.0 / 2048
Tolerance: TypeAlias = float | Mapping[Any, float]


def _tangent_like(random: Random, x):
    """A random direction at `x`; float0 where x has none."""
    aval = get_aval(x)
    if not dtypes.is_inexact(aval.dtype):
        return float0_zeros(aval.shape)
    draw = lambda: [random.gauss(0, 1) for _ in range(aval.size)]
    flat = [complex(a, b) for a, b in zip(draw(), draw())] if dtypes.is_complex(aval.dtype) else draw()
    return jnp.array(flat, aval.dtype).reshape(aval.shape)


def _move(x, t, by: float):
    return x if get_aval(t).dtype == dtypes.float0 else x + by * t


def _difference(f: Callable, args: tuple, tangents: tuple, eps: float):
    """The central difference (f(x + eps/2 t) - f(x - eps/2 t)) / eps along the tangents t."""
    ahead, behind = (f(*tree_map(partial(_move, by=by), args, tangents)) for by in (eps / 2, -eps / 2))

    def slope(a, b):
        if not dtypes.is_inexact(get_aval(a).dtype):
            return float0_zeros(get_aval(a).shape)
        return jnp.where(jnp.isinf(a) & (a == b), 0, a - b) / eps  # an infinity that stays does not move

    return tree_map(slope, ahead, behind)


def _dot(xs, ys):
    return sum(
        [
            jnp.vdot(jnp.conj(x), y).real
            for x, y in zip(tree_leaves(xs), tree_leaves(ys))
            if get_aval(y).dtype != dtypes.float0
        ],
        start=0.0,
    )


def _tolerance(given: Tolerance | None, xs: Sequence) -> float:
    """The largest tolerance of the dtypes of `xs`: the default, a number, or what a dictionary has for them."""
    if given is not None and not isinstance(given, Mapping):
        return given
    known = {dtypes.name(dtypes.dtype(dt)): value for dt, value in (given or {}).items()}
    return max(known.get(name, _TOLERANCE[name]) for name in (dtypes.name(get_aval(x).dtype) for x in xs))


def _check_close(got, wanted, atol: Tolerance | None, rtol: Tolerance | None, what: str) -> None:
    for a, b in zip(tree_leaves(got), tree_leaves(wanted), strict=True):
        if get_aval(a).dtype == dtypes.float0:
            continue
        absolute, relative = (_tolerance(given, (a, b)) for given in (atol, rtol))
        if not bool(jnp.allclose(a, b, atol=absolute, rtol=relative, equal_nan=True)):
            raise AssertionError(
                f"{what}: the rule gives\n{a}\nand differences give\n{b}\n(rtol={relative}, atol={absolute})."
            )


def check_jvp(
    f: Callable,
    f_jvp: Callable,
    args: Sequence,
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Compares `f_jvp` with differences of `f` at `args`, in one random direction.

    Args:
        f: function of pytrees of arrays, of float or complex dtype and any shape.
        f_jvp: function (primals, tangents) -> (value, tangent), such as `partial(weft.jvp, f)`.
        args: sequence of the arguments of `f`.
        atol: float, or dictionary of them by dtype: absolute tolerance; None for one that depends on the dtypes.
        rtol: float, or dictionary of them by dtype: relative tolerance; None for one that depends on the dtypes.
        eps: float: the step of the differences.
        err_msg: str: text that starts the error's message.

    Returns:
        None.

    Raises:
        AssertionError: if they differ by more than `atol` and `rtol` allow.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.test_util import check_jvp
        >>> from functools import partial
        >>> check_jvp(jnp.sin, partial(weft.jvp, jnp.sin), (1.0,), eps=1e-2)
    """
    args, what = tuple(args), f"{err_msg} JVP tangent".strip()
    random = Random(0)
    tangents = tree_map(partial(_tangent_like, random), args)
    value, out = f_jvp(args, tangents)
    _check_close(value, f(*args), atol, rtol, what.replace("tangent", "primal"))
    _check_close(out, _difference(f, args, tangents, eps), atol, rtol, what)


def check_vjp(
    f: Callable,
    f_vjp: Callable,
    args: Sequence,
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Compares `f_vjp` with differences of `f` at `args`, in one random direction.

    Args:
        f: function of pytrees of arrays, of float or complex dtype and any shape.
        f_vjp: function (*primals) -> (value, pullback), such as `partial(weft.vjp, f)`.
        args: sequence of the arguments of `f`.
        atol: float, or dictionary of them by dtype: absolute tolerance; None for one that depends on the dtypes.
        rtol: float, or dictionary of them by dtype: relative tolerance; None for one that depends on the dtypes.
        eps: float: the step of the differences.
        err_msg: str: text that starts the error's message.

    Returns:
        None.

    Raises:
        AssertionError: if they differ by more than `atol` and `rtol` allow.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.test_util import check_vjp
        >>> from functools import partial
        >>> check_vjp(jnp.sin, partial(weft.vjp, jnp.sin), (1.0,), eps=1e-2)
    """
    args, what = tuple(args), f"{err_msg} VJP cotangent projection".strip()
    random = Random(0)
    value, pullback = f_vjp(*args)
    _check_close(value, f(*args), atol, rtol, what.replace("cotangent projection", "primal"))
    tangents = tree_map(partial(_tangent_like, random), args)
    along = _difference(f, args, tangents, eps)
    weights = tree_map(partial(_tangent_like, random), value)
    back = pullback(weights)
    _check_close(_dot(back, tangents), _dot(weights, along), atol, rtol, what)


def check_grads(
    f: Callable,
    args: Sequence,
    order: int,
    modes: Any = ("fwd", "rev"),
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float | None = None,
) -> None:
    """Compares the derivatives of `f` at `args`, up to an order, with differences.

    Args:
        f: function of pytrees of arrays, of float or complex dtype and any shape.
        args: sequence of the arguments of `f`.
        order: int: the highest order of derivatives.
        modes: sequence of "fwd", which checks jvp, and "rev", which checks vjp.
        atol: float, or dictionary of them by dtype: absolute tolerance; None for one that depends on the dtypes.
        rtol: float, or dictionary of them by dtype: relative tolerance; None for one that depends on the dtypes.
        eps: float: the step of the differences; None for 1/2048.

    Returns:
        None.

    Raises:
        AssertionError: if they differ by more than `atol` and `rtol` allow.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.test_util import check_grads
        >>> check_grads(lambda x: jnp.sin(x) * x, (1.5,), order=2)
    """
    eps, order = _EPS if eps is None else eps, int(order)
    check = {
        "fwd": lambda g, xs, msg: check_jvp(g, partial(jvp, g), xs, atol, rtol, eps, msg),
        "rev": lambda g, xs, msg: check_vjp(g, partial(vjp, g), xs, atol, rtol, eps, msg),
    }

    def run(g: Callable, xs: tuple, order: int, msg: str) -> None:
        if "fwd" in modes:
            check["fwd"](g, xs, f"{msg}fwd")
            if order > 1:
                ts = tree_map(partial(_tangent_like, Random(order)), xs)
                run(lambda *ys: jvp(g, ys, ts), xs, order - 1, f"{msg}fwd of ")
        if "rev" in modes:
            check["rev"](g, xs, f"{msg}rev")
            if order > 1:
                cts = tree_map(partial(_tangent_like, Random(order)), g(*xs))
                run(lambda *ys: vjp(g, *ys)[1](cts), xs, order - 1, f"{msg}rev of ")

    run(f, tuple(args), order, "")
