"""weft.scipy.optimize: minimization by quasi-Newton methods.

J. Nocedal and S. Wright, "Numerical Optimization", 2nd edition (2006): algorithms 6.1 (BFGS), 7.4 and 7.5 (L-BFGS), 3.5
and 3.6 (line search).
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple

from ..base import dtypes, limits
from .. import numpy as jnp
from ..api.tracing import value_and_grad
from ..higher_order.cond import cond
from ..higher_order.while_loop import fori_loop, while_loop
from ..base.source_info import api_boundary
from ..base.tree import tree_map

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """The results of `minimize`, a pytree.

    Args:
        x: the last point, of shape (n,).
        success: whether the gradient there is small, a boolean.
        status: 0 if it converged, 1 after too many iterations, larger where a method stopped for another reason.
        fun: the value at `x`, a scalar.
        jac: the gradient at `x`, of shape (n,).
        hess_inv: the approximate inverse Hessian at `x`, of shape (n, n); None for L-BFGS.
        nfev: how many values were computed.
        njev: how many gradients were computed.
        nit: how many iterations there were.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import optimize
        >>> bool(optimize.minimize(lambda x: jnp.sum(x ** 2), jnp.ones(2), method='BFGS').success)
        True
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


class _Point(NamedTuple):
    """A step along the line: its value, its slope along the line, and its gradient."""

    step: Any
    value: Any
    slope: Any
    gradient: Any


class _Zoom(NamedTuple):
    """Algorithm 3.6: the interval, its end with the lowest value, and the step before that end, which cubics need."""

    low: _Point
    high: _Point
    before: _Point
    found: _Point
    done: Any
    failed: Any
    count: Any


class _Line(NamedTuple):
    """The state of algorithm 3.5. status: 0 found, 1 the interval became too small, 3 too many steps."""

    last: _Point
    found: _Point
    done: Any
    failed: Any
    count: Any
    evaluations: Any


def _where(condition, a, b):
    return tree_map(lambda x, y: jnp.where(condition, x, y), a, b)


def _cubic_minimum(a: _Point, b: _Point, c: _Point):
    """The minimizer of the cubic through three values and the slope at `a`; not a number where there is none."""
    db, dc = b.step - a.step, c.step - a.step
    rb, rc = b.value - a.value - a.slope * db, c.value - a.value - a.slope * dc
    scale = (db * dc) ** 2 * (db - dc)
    third, second = (dc**2 * rb - db**2 * rc) / scale, (-(dc**3) * rb + db**3 * rc) / scale
    return a.step + (-second + jnp.sqrt(second**2 - 3 * third * a.slope)) / (3 * third)


def _quadratic_minimum(a: _Point, b: _Point):
    """The minimizer of the parabola through two values and the slope at `a`."""
    d = b.step - a.step
    return a.step - a.slope / (2 * (b.value - a.value - a.slope * d) / d**2)


def line_search(
    f: Callable, x, direction, value, old_value, gradient, c1: float = 1e-4, c2: float = 0.9, maxiter: int = 20
) -> tuple:
    """A step along `direction` that fulfils the strong Wolfe conditions: (its `_Point`, failed, evaluations,
    status).
    """

    def at(step) -> _Point:
        v, g = f(x + step * direction)
        return _Point(step, v, jnp.real(jnp.vdot(g, direction)), g)

    slope = jnp.real(jnp.vdot(gradient, direction))
    start = _Point(jnp.zeros((), value.dtype), value, slope, gradient)
    too_high = lambda p: p.value > start.value + c1 * p.step * start.slope
    flat = lambda p: jnp.abs(p.slope) <= -c2 * start.slope

    def zoom_step(z: _Zoom) -> _Zoom:
        width = jnp.abs(z.high.step - z.low.step)
        left, right = jnp.minimum(z.low.step, z.high.step), jnp.maximum(z.low.step, z.high.step)
        cubic, quadratic = _cubic_minimum(z.low, z.high, z.before), _quadratic_minimum(z.low, z.high)
        inside = lambda s, margin: (s > left + margin * width) & (s < right - margin * width)
        step = jnp.where(
            (z.count > 0) & inside(cubic, 0.2), cubic, jnp.where(inside(quadratic, 0.1), quadratic, (left + right) / 2)
        )
        new = at(step)
        shrink = too_high(new) | (new.value >= z.low.value)
        flip = new.slope * (z.high.step - z.low.step) >= 0
        low, high, before = (
            _where(shrink, a, b)
            for a, b in ((z.low, new), (new, _where(flip, z.low, z.high)), (z.high, _where(flip, z.high, z.low)))
        )
        tiny = width <= limits.finfo(value.dtype).eps
        return _Zoom(low, high, before, new, ~shrink & flat(new), tiny, z.count + 1)

    def zoom(low: _Point, high: _Point) -> _Zoom:
        first = _Zoom(low, high, start, low, jnp.array(False), jnp.array(False), 0)
        return while_loop(lambda z: ~z.done & ~z.failed & (z.count < maxiter), zoom_step, first)

    def step(s: _Line) -> _Line:
        new = at(jnp.where(s.count == 0, first, 2 * s.last.step).astype(value.dtype))
        bracketed = too_high(new) | ((new.value >= s.last.value) & (s.count > 0))
        stop = ~bracketed & flat(new)
        rising = ~bracketed & ~stop & (new.slope >= 0)
        low, high = _where(bracketed, s.last, new), _where(bracketed, new, s.last)
        z = cond(
            bracketed | rising, lambda: zoom(low, high), lambda: _Zoom(low, high, start, new, stop, jnp.array(False), 0)
        )
        ended = bracketed | rising
        return _Line(new, z.found, stop | (ended & z.done), ended & ~z.done, s.count + 1, s.evaluations + 1 + z.count)

    first = jnp.where(slope == 0, 1, 1.01 * 2 * (value - old_value) / jnp.where(slope == 0, 1, slope))
    first = jnp.where((first > 0) & (first < 1), first, 1)
    begin = _Line(start, start, jnp.array(False), jnp.array(False), 0, 0)
    s = while_loop(lambda s: ~s.done & ~s.failed & (s.count < maxiter), step, begin)
    status = jnp.where(s.done, 0, jnp.where(s.failed, 1, 3))
    return s.found, ~s.done, s.evaluations, status


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    old_value: Any
    memory: Any  # the inverse Hessian, or the last steps and changes of gradient
    count: Any
    evaluations: Any
    converged: Any
    status: Any  # -1 while it runs


def _norm(x, ord):
    return jnp.linalg.norm(x, ord=ord)


def _begin(f, x, memory, gtol, norm) -> _State:
    value, gradient = f(x)
    return _State(x, value, gradient, value + _norm(gradient, 2) / 2, memory, 0, 1, _norm(gradient, norm) < gtol, -1)


def _bfgs(f, x, maxiter=None, norm=jnp.inf, gtol: float = 1e-5, line_search_maxiter: int = 10):
    n = x.size
    maxiter = 200 * n if maxiter is None else maxiter
    identity = jnp.eye(n, dtype=x.dtype)

    def step(s: _State) -> _State:
        direction = -(s.memory @ s.gradient)
        new, failed, evaluations, status = line_search(
            f, s.x, direction, s.value, s.old_value, s.gradient, maxiter=line_search_maxiter
        )
        move = new.step * direction
        change = new.gradient - s.gradient
        curvature = jnp.vdot(change, move)
        rho = jnp.where(curvature == 0, 0, 1 / jnp.where(curvature == 0, 1, curvature)).astype(x.dtype)
        left = identity - rho * jnp.outer(move, change)
        H = jnp.where(curvature == 0, s.memory, left @ s.memory @ left.T + rho * jnp.outer(move, move))
        return _State(
            s.x + move,
            new.value,
            new.gradient,
            s.value,
            H,
            s.count + 1,
            s.evaluations + evaluations,
            _norm(new.gradient, norm) < gtol,
            jnp.where(failed, 2 + status, -1),
        )

    s = while_loop(
        lambda s: ~s.converged & (s.status < 0) & (s.count < maxiter), step, _begin(f, x, identity, gtol, norm)
    )
    return s, jnp.where(s.converged, 0, jnp.where(s.status >= 0, s.status, 1)), s.memory


def _two_loops(s: _State):
    """Algorithm 7.4: the product of the gradient and the inverse Hessian that the last steps give."""
    steps, changes, rhos, scale = s.memory
    m = len(rhos)

    def down(i, carry):
        q, alphas = carry
        k = m - 1 - i
        alpha = rhos[k] * jnp.vdot(steps[k], q)
        return q - alpha * changes[k], alphas.at[k].set(alpha)

    q, alphas = fori_loop(0, m, down, (s.gradient, jnp.zeros_like(rhos)))
    return fori_loop(0, m, lambda k, q: q + steps[k] * (alphas[k] - rhos[k] * jnp.vdot(changes[k], q)), scale * q)


def _lbfgs(
    f,
    x,
    maxiter=None,
    norm=jnp.inf,
    maxcor: int = 10,
    ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-05,
    maxfun=None,
    maxgrad=None,
    maxls: int = 20,
):
    n = x.size
    maxiter, maxfun, maxgrad = maxiter or 200 * n, maxfun or jnp.inf, maxgrad or jnp.inf

    def step(s: _State) -> _State:
        direction = -_two_loops(s)
        new, failed, evaluations, status = line_search(
            f, s.x, direction, s.value, s.old_value, s.gradient, maxiter=maxls
        )
        move, change = new.step * direction, new.gradient - s.gradient
        curvature = jnp.vdot(change, move)
        safe = jnp.where(curvature == 0, 1, curvature)
        steps, changes, rhos, scale = s.memory
        shift = lambda kept, value: jnp.roll(kept, -1, 0).at[-1].set(jnp.where(curvature == 0, 0, value))
        memory = (
            shift(steps, move),
            shift(changes, change),
            shift(rhos, 1 / safe),
            jnp.where(curvature == 0, scale, curvature / jnp.vdot(change, change)),
        )
        count, total = s.count + 1, s.evaluations + evaluations
        converged = _norm(new.gradient, norm) < gtol
        status = jnp.where(failed, 5, -1)
        for code, reached in (
            (4, s.value - new.value < ftol),
            (3, total >= maxgrad),
            (2, total >= maxfun),
            (1, count >= maxiter),
            (0, converged),
        ):
            status = jnp.where(reached & ~failed, code, status)
        return _State(s.x + move, new.value, new.gradient, s.value, memory, count, total, converged, status)

    empty = jnp.zeros((maxcor, n), x.dtype)
    s = while_loop(
        lambda s: ~s.converged & (s.status < 0),
        step,
        _begin(f, x, (empty, empty, jnp.zeros(maxcor, x.dtype), jnp.ones((), x.dtype)), gtol, norm),
    )
    return s, jnp.where(s.converged, 0, s.status), None


_METHODS: dict[str, Callable] = {"bfgs": _bfgs, "l-bfgs-experimental-do-not-rely-on-this": _lbfgs}


@api_boundary
def minimize(
    fun: Callable,
    x0,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Finds a local minimum of `fun(x, *args)` from `x0`, by BFGS or L-BFGS with a line search for the strong Wolfe
    conditions (J. Nocedal and S. Wright, Numerical Optimization, 2006, algorithms 6.1, 7.5 and 3.5).

    Args:
        fun: a differentiable function of a vector, and of `args`, that gives a real scalar.
        x0: where to begin, a floating-point array of shape (n,).
        args: a tuple of further arguments of `fun`.
        method: 'BFGS'; or 'l-bfgs-experimental-do-not-rely-on-this', which keeps the last steps instead of an n × n
            matrix.
        tol: the norm of the gradient at which to stop (`options` may say so too, as gtol).
        options: for 'BFGS' maxiter, norm, gtol, line_search_maxiter; for L-BFGS maxiter, norm, maxcor, ftol, gtol,
            maxfun, maxgrad, maxls.

    Returns:
        The results: `x` has the shape and dtype of `x0`; `success` tells whether the gradient there is small.
        Forward mode differentiates through the iteration; reverse mode can't, since its length is not known.

    Raises:
        TypeError: if `args` is not a tuple, for unknown options, and for a point that is not a vector of floats.
        ValueError: for an unknown method.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.optimize import minimize
        >>> minimize(lambda x: jnp.sum((x - 1) ** 2), jnp.zeros(2), method='BFGS').x.round(4)
        Array([1., 1.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args must be a tuple, got {args!r}; write (value,) for one.")
    if method.lower() not in _METHODS:
        raise ValueError(
            f"minimize: method {method} is not recognized; use 'BFGS' or 'l-bfgs-experimental-do-not-rely-on-this'."
        )
    shape, dtype = getattr(x0, "shape", None), getattr(x0, "dtype", None)
    if shape is None or dtype is None:
        raise AttributeError(
            f"minimize: x0 must be an array, got {type(x0).__name__}; unravel pytrees with"
            " weft.flatten_util.ravel_pytree."
        )
    x0 = jnp.asarray(x0)
    if len(shape) != 1 or not dtypes.is_float(x0.dtype):
        raise TypeError(
            f"minimize: x0 must be of shape (n,) and a floating-point dtype, got {dtypes.name(x0.dtype)} of shape"
            f" {tuple(shape)}."
        )
    options = dict(options or {})
    if tol is not None:
        options.setdefault("gtol", tol)
    value_and_gradient = value_and_grad(lambda x: fun(x, *args))

    def f(x):
        value, gradient = value_and_gradient(x)
        return value.astype(x.dtype), gradient

    s, status, hess_inv = _METHODS[method.lower()](f, x0, **options)
    return OptimizeResults(
        s.x, s.converged & (status == 0), status, s.value, s.gradient, hess_inv, s.evaluations, s.evaluations, s.count
    )


def __dir__() -> list[str]:
    return sorted(__all__)
