"""odeint: ordinary differential equations by the Dormand-Prince method with adaptive steps, and their derivatives by
the adjoint equation.

J. Dormand and P. Prince, "A family of embedded Runge-Kutta formulae" (1980); E. Hairer, S. Nørsett and G. Wanner,
"Solving Ordinary Differential Equations I", 2nd edition (1993), chapter II.4 (steps); L. Shampine, "Some practical
Runge-Kutta formulas" (1986) (values between steps); L. Pontryagin et al. (1962) (adjoint).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

from ..base import dtypes
from .. import numpy as jnp
from ..api.tracing import closure_convert, vjp, vmap
from ..higher_order.custom_vjp import custom_vjp
from ..higher_order.scan import scan
from ..higher_order.while_loop import while_loop
from ..core.trace import get_aval, is_array_like
from ..api.ravel import ravel_pytree
from ..runtime.jit import jit
from ..base.source_info import api_boundary
from ..base.tree import tree_flatten, tree_unflatten

__all__ = ["initial_step_size", "mean_error_ratio", "odeint", "optimal_step_size", "runge_kutta_step", "tree_where"]

_ORDER = 5
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_FIFTH = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0)
_FOURTH = (5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)
_ERROR = tuple(a - b for a, b in zip(_FIFTH, _FOURTH))
_MIDDLE = (
    6025192743 / 30085553152 / 2,
    0.0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)


def _combine(weights, slopes):
    total = None
    for w, k in zip(weights, slopes):
        if w:
            total = w * k if total is None else total + w * k
    return total


def runge_kutta_step(func: Callable, y0, f0, t0, dt):
    """Takes one step of the Dormand-Prince method of order 5.

    Source: J. Dormand and P. Prince, "A family of embedded Runge-Kutta formulae" (1980).

    Args:
        func: (y, t) -> dy/dt.
        y0: the state at `t0`, of a floating-point dtype and any shape.
        f0: func(y0, t0), of the shape of `y0`.
        t0: the time; a floating-point scalar.
        dt: the size of the step; a floating-point scalar.

    Returns:
        (y1, f1, error, slopes): the state at t0 + dt, the derivative there, the estimated error of y1, and a list
        of the 7 derivatives that the step used, each of the shape of `y0`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import ode
        >>> y, *_ = ode.runge_kutta_step(lambda y, t: -y, jnp.array(1.0), jnp.array(-1.0), 0.0, 0.1)
        >>> round(float(y), 4)
        0.9048
    """
    slopes = [f0]
    for c, weights in zip(_TIMES, _STAGES):
        slopes.append(func(y0 + dt * _combine(weights, slopes), t0 + c * dt))
    y1 = y0 + dt * _combine(_FIFTH, slopes)  # the last stage is at this very point
    return y1, slopes[-1], dt * _combine(_ERROR, slopes), slopes


def _square(x):
    return jnp.real(x * jnp.conj(x)) if jnp.iscomplexobj(x) else x * x


def _size(x):
    return jnp.sqrt(jnp.sum(_square(x)))


def initial_step_size(func: Callable, t0, y0, order: int, rtol, atol, f0):
    """The size of a first step: an explicit Euler step of this size changes the solution little.

    Source: E. Hairer, S. Nørsett and G. Wanner, "Solving Ordinary Differential Equations I", 2nd edition (1993),
    section II.4.

    Args:
        func: (y, t) -> dy/dt.
        t0: the first time; a floating-point scalar.
        y0: the state at `t0`, of a floating-point dtype and any shape.
        order: the order of the method; int.
        rtol, atol: the tolerated relative and absolute error; float scalars.
        f0: func(y0, t0), of the shape of `y0`.

    Returns:
        a floating-point scalar.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import ode
        >>> round(float(ode.initial_step_size(lambda y, t: -y, 0.0, jnp.ones(1), 4, 1e-3, 1e-3, -jnp.ones(1))), 2)
        0.11
    """
    scale = atol + jnp.abs(y0) * rtol
    d0, d1 = _size(y0 / scale), _size(f0 / scale)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / jnp.where(d1 == 0, 1, d1))
    d2 = _size((func(y0 + h0 * f0, t0 + h0) - f0) / scale) / h0
    steepest = jnp.maximum(d1, d2)
    h1 = jnp.where(
        steepest <= 1e-15,
        jnp.maximum(1e-6, h0 * 1e-3),
        (0.01 / jnp.where(steepest == 0, 1, steepest)) ** (1 / (order + 1)),
    )
    return jnp.minimum(100.0 * h0, h1)


def mean_error_ratio(error, rtol, atol, y0, y1):
    """The root mean square of an error, relative to the tolerated one. A step is accepted if the ratio is at most 1.

    The tolerated error of an element is atol + rtol max(|y0|, |y1|).

    Args:
        error: the estimated error of `y1`, of a floating-point dtype and any shape.
        rtol, atol: the tolerated relative and absolute error; float scalars.
        y0, y1: the states before and after the step, of the shape of `error`.

    Returns:
        a floating-point scalar.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import ode
        >>> float(ode.mean_error_ratio(jnp.array([0.5, 0.5]), 0.0, 0.25, jnp.zeros(2), jnp.zeros(2)))
        2.0
    """
    tolerated = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(_square(error / tolerated)))


def optimal_step_size(last, ratio, safety: float = 0.9, grow: float = 10.0, shrink: float = 0.2, order: float = _ORDER):
    """The size of the next step, last * min(grow, max(ratio^(-1 / order) * safety, shrink)). An accepted step never
    shrinks it.

    Args:
        last: the size of the last step; a floating-point scalar.
        ratio: its error, as `mean_error_ratio` returns it; a floating-point scalar.
        safety: a factor that makes the next step likely to be accepted; float.
        grow, shrink: the largest and the smallest change of the size; floats.
        order: the order of the method; float.

    Returns:
        a floating-point scalar.

    Example:
        >>> from weft.experimental import ode
        >>> float(ode.optimal_step_size(0.5, 0.0))
        5.0
    """
    least = jnp.where(ratio < 1, 1.0, shrink)
    factor = jnp.minimum(grow, jnp.maximum(jnp.where(ratio == 0, 1, ratio) ** (-1 / order) * safety, least))
    return last * jnp.where(ratio == 0, grow, factor)


def _polynomial(y0, y1, slopes, dt):
    """Coefficients, highest first, of the quartic through both ends with their slopes and the middle of a step."""
    middle = y0 + dt * _combine(_MIDDLE, slopes)
    d0, d1 = dt * slopes[0], dt * slopes[-1]
    return (
        2 * (d1 - d0) - 8 * (y0 + y1) + 16 * middle,
        5 * d0 - 3 * d1 + 18 * y0 + 14 * y1 - 32 * middle,
        d1 - 4 * d0 - 11 * y0 - 5 * y1 + 16 * middle,
        d0,
        y0,
    )


def _horner(coefficients, x):
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


@partial(jit, static_argnums=(0, 1, 2, 3, 4))
def _solve(func, rtol, atol, mxstep, hmax, y0, ts, *args):
    slope = lambda y, t: func(y, t, *args)

    def to_target(carry, target):
        def unfinished(state):
            i, _, _, t, dt, _, _ = state
            return (t < target) & (i < mxstep) & (dt > 0)

        def step(state):
            i, y, f, t, dt, before, quartic = state
            y1, f1, error, slopes = runge_kutta_step(slope, y, f, t, dt)
            ratio = mean_error_ratio(error, rtol, atol, y, y1)
            new = (y1, f1, t + dt, t, _polynomial(y, y1, slopes, dt))
            good = ratio <= 1
            y, f, t, before, quartic = tree_where(good, new, (y, f, t, before, quartic))
            return i + 1, y, f, t, jnp.clip(optimal_step_size(dt, ratio), 0.0, hmax), before, quartic

        _, *rest = while_loop(unfinished, step, (0, *carry))
        y, _, t, _, before, quartic = rest
        # no step has been taken towards a first time that is asked for twice
        length = jnp.where(t == before, 1, t - before)
        return tuple(rest), _horner(quartic, (target - before) / length)

    f0 = slope(y0, ts[0])
    dt = jnp.clip(initial_step_size(slope, ts[0], y0, _ORDER - 1, rtol, atol, f0), 0.0, hmax).astype(ts.dtype)
    start = jnp.zeros_like(y0)
    carry = (y0, f0, ts[0], dt, ts[0], (start, start, start, start, y0))
    _, ys = scan(to_target, carry, ts[1:])
    return jnp.concatenate([y0[None], ys])


def tree_where(condition, a, b):
    """Selects elements of one of two pytrees.

    Args:
        condition: a boolean array that broadcasts against every leaf, usually a scalar.
        a, b: pytrees of the same structure whose leaves have the same shapes.

    Returns:
        a pytree of the structure of `b`, with elements of `a` where the condition is true. Its leaves have the
        dtypes of `b`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import ode
        >>> ode.tree_where(jnp.array(True), {"y": jnp.ones(2)}, {"y": jnp.zeros(2)})
        {'y': Array([1., 1.], dtype=float32)}
    """
    leaves, tree = tree_flatten(b)
    return tree_unflatten(
        tree, [jnp.where(condition, x, y).astype(y.dtype) for x, y in zip(tree_flatten(a)[0], leaves)]
    )


@partial(custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _odeint(func, rtol, atol, mxstep, hmax, y0, ts, *args):
    return _solve(func, rtol, atol, mxstep, hmax, y0, ts, *args)


def _forward(func, rtol, atol, mxstep, hmax, y0, ts, *args):
    ys = _solve(func, rtol, atol, mxstep, hmax, y0, ts, *args)
    return ys, (ys, ts, args)


def _backward(func, rtol, atol, mxstep, hmax, res, g):
    """The adjoint equation, from the last time to the first: state y, and the cotangents of y, of the time and of
    the arguments.
    """
    ys, ts, args = res
    at = [i for i, a in enumerate(args) if dtypes.is_inexact(get_aval(a).dtype)]  # the others have no derivative

    def with_floats(y, t, floats):
        full = list(args)
        for i, v in zip(at, floats):
            full[i] = v
        return func(y, t, *full)

    floats = [args[i] for i in at]

    def adjoint(state, minus_t, *floats):
        y, y_bar, *_ = unravel(state)
        slope, pull = vjp(with_floats, y, -minus_t, list(floats))
        y_back, t_back, float_back = pull(y_bar)
        return ravel_pytree((-slope, y_back, t_back, float_back))[0]

    zeros = [jnp.zeros_like(x) for x in floats]
    _, unravel = ravel_pytree((ys[-1], g[-1], ts[-1], zeros))

    def segment(carry, i):
        y_bar, t0_bar, floats_bar = carry
        t_bar = _dot(func(ys[i], ts[i], *args), g[i])
        state, _ = ravel_pytree((ys[i], y_bar, (t0_bar - t_bar).astype(ts.dtype), floats_bar))
        end = _solve(adjoint, rtol, atol, mxstep, hmax, state, jnp.stack([-ts[i], -ts[i - 1]]), *floats)[1]
        _, y_bar, t0_bar, floats_bar = unravel(end)
        return (y_bar + g[i - 1], t0_bar, floats_bar), t_bar

    (y_bar, t0_bar, floats_bar), t_bars = scan(
        segment, (g[-1], jnp.zeros_like(ts[0]), zeros), jnp.arange(len(ts) - 1, 0, -1)
    )
    ts_bar = jnp.concatenate([t0_bar[None], t_bars[::-1].astype(ts.dtype)])
    back: list = [None] * len(args)
    for i, v in zip(at, floats_bar):
        back[i] = v
    return (y_bar, ts_bar, *back)


def _dot(slope, ct):
    product = jnp.sum(slope * ct)
    return jnp.real(product) if jnp.iscomplexobj(product) else product


_odeint.defvjp(_forward, _backward)


@api_boundary
def odeint(
    func: Callable,
    y0: Any,
    t,
    *args,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = jnp.inf,
    hmax: float = jnp.inf,
):
    """The solution of dy/dt = func(y, t, *args) with y(t[0]) = y0 at the times `t`.

    Args:
        func: (y, t, *args) -> dy/dt, a pytree like `y0`.
        y0: the state at `t[0]`, a pytree of floating-point arrays.
        t: increasing times, of shape (n,).
        args: pytrees of arrays; gradients flow to them, to `y0` and to `t`, by the adjoint equation. Forward mode is
            refused.
        rtol, atol: the tolerated relative and absolute error of a step.
        mxstep: at most so many steps between two times; beyond it the solution is extrapolated.
        hmax: the longest step.

    Returns:
        a pytree like `y0` whose leaves have an additional first axis of size n.

    Raises:
        TypeError: if an argument is not an array, or the times are not floats.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental.ode import odeint
        >>> round(float(odeint(lambda y, t: -y, 1.0, jnp.array([0., 1.]))[-1]), 4)
        0.3679
    """
    for leaf in tree_flatten((y0, args))[0]:
        if not is_array_like(leaf):
            raise TypeError(f"The contents of odeint y0 and *args must be arrays or scalars, but got {leaf!r}.")
    ts = jnp.asarray(t)
    if ts.ndim != 1 or not dtypes.is_float(ts.dtype):
        raise TypeError(f"t must be an array of floats of shape (n,), but got {get_aval(ts).str_short()}.")
    flat_y0, unravel = ravel_pytree(y0)
    if not dtypes.is_inexact(flat_y0.dtype):
        raise TypeError(f"odeint's y0 must be of a floating-point dtype, but got {dtypes.name(flat_y0.dtype)}.")
    leaves, args_tree = tree_flatten(args)
    leaves = [jnp.asarray(x) for x in leaves]

    def flat_func(y, time, *xs):
        slope, _ = ravel_pytree(func(unravel(y), time, *tree_unflatten(args_tree, xs)))
        if slope.shape != y.shape:
            raise TypeError(
                f"odeint's func must return what y0 is: it gives {slope.size} numbers for a state of {y.size}."
            )
        return slope.astype(y.dtype)

    converted, closed_over = closure_convert(flat_func, flat_y0, ts[0], *leaves)
    ys = _odeint(converted, rtol, atol, mxstep, hmax, flat_y0, ts, *leaves, *closed_over)
    return vmap(unravel)(ys)


def __dir__() -> list[str]:
    return sorted(__all__)
