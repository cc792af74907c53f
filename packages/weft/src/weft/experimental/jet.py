"""Taylor mode: the derivatives of any order of a function along a curve, together.

A value is carried as the coefficients of its Taylor polynomial in a parameter t. Three facts give the rules of all
primitives:

- what is linear, at least near the point, maps each coefficient by its derivative;
- what is bilinear maps two polynomials to their product;
- of anything else, y = f(x(t)), the derivative is y' = Df(x(t)) x'(t): the primitive's jvp rule applied to polynomials
    of one order less.

A. Griewank and A. Walther, "Evaluating Derivatives", 2nd edition (2008), chapter 13.
"""

from __future__ import annotations

from math import factorial
from typing import Any, Callable, Sequence

from ..base.annotations import override
from ..base import dtypes
from ..base.avals import array_aval, tangent_aval
from ..effects import barriers as _barriers  # noqa: F401  so that its primitives and those of the next are there
from ..primitives import conv as _conv, window as _window  # noqa: F401
from ..higher_order.call import bind_jit, jit_p
from ..higher_order.custom_vjp import custom_vjp_call_p
from ..higher_order.custom_vmap import custom_vmap_call_p
from ..higher_order.linear_call import linear_call_p
from ..higher_order.remat import remat_p
from ..core.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.memo import memoized_closed
from ..core.primitive import Primitive, Unsupported, Zero, registry
from ..core.trace import PairTrace, Trace, Tracer, current_trace, get_aval, is_array_like, tracing
from ..api.functions import check_callable, as_result
from ..primitives.elementwise import div, div_p, mul, sub
from ..primitives.transcendental import pow_p
from ..primitives.linear import add_any, convert
from ..primitives.rules import scalar_like
from ..base.source_info import api_boundary
from ..transforms.jvp import instantiate
from ..transforms.stage import JaxprTrace
from ..base.tree import tree_flatten, tree_unflatten, treedef_is_leaf

__all__ = ["JetTrace", "JetTracer", "deflinear", "defzero", "jet", "jet2", "jet_rules"]


class JetTracer(Tracer):
    """A value with the coefficients of t, t², … of its Taylor polynomial; a coefficient may be `Zero`."""

    __slots__ = ("primal", "terms")

    def __init__(self, trace: "JetTrace", primal, terms: Sequence):
        self._trace, self.primal, self.terms = trace, primal, list(terms)

    @override
    @property
    def aval(self):
        return get_aval(self.primal)

    @override
    def __repr__(self):
        return f"JetTracer(primal={self.primal}, terms={self.terms})"


class JetTrace(PairTrace):
    """Applies the rules of polynomials of one order, evaluated under the parent."""

    def __init__(self, parent: Trace, order: int):
        self.parent, self.order, self.closed = parent, order, False

    @override
    def split(self, x) -> tuple[Any, list]:
        if type(x) is JetTracer and x._trace is self:
            return x.primal, x.terms
        return x, [Zero(tangent_aval(get_aval(x)))] * self.order

    @override
    def join(self, primal, terms: Sequence):
        return primal if all(type(t) is Zero for t in terms) else JetTracer(self, primal, terms)

    @override
    def process(self, primitive: Primitive, args: tuple, params: dict):
        if not any(type(x) is JetTracer and x._trace is self for x in args):
            return self.pass_on(primitive, args, params)
        rule = jet_rules.get(primitive, _by_derivative)
        return self.by_rule(
            lambda primals, series, **params: rule(primitive, primals, series, params), primitive, args, params
        )


# primitive -> rule (primitive, primals, series, params) -> (results, their series), like the primitive in having
# one or many
jet_rules: dict[Primitive, Callable] = {}


def _columns(out_terms: Sequence, primitive: Primitive):
    """The series of each result from the results of each order."""
    return [list(column) for column in zip(*out_terms)] if primitive.multiple_results else list(out_terms)


def _linear(primitive, primals, series, params):
    """Each coefficient goes through the derivative at the point."""
    out: Any = None
    terms: list = []
    for tangents in zip(*series):
        if all(type(t) is Zero for t in tangents):
            terms.append(None)
            continue
        out, t = primitive.jvp(list(primals), list(tangents), **params)
        terms.append(t)
    if out is None:
        out = primitive.bind(*primals, **params)
    zero = (
        [Zero(tangent_aval(get_aval(o))) for o in out]
        if primitive.multiple_results
        else Zero(tangent_aval(get_aval(out)))
    )
    return out, _columns([zero if t is None else t for t in terms], primitive)


def _zero(primitive, primals, series, params):
    out = primitive.bind(*primals, **params)
    zeros = lambda o: [Zero(tangent_aval(get_aval(o)))] * len(series[0])
    return out, [zeros(o) for o in out] if primitive.multiple_results else zeros(out)


def _total(terms: Sequence):
    """The sum of terms of which some may be `Zero`; None for nothing."""
    total = None
    for t in terms:
        if type(t) is not Zero:
            total = t if total is None else add_any(total, t)
    return total


def _product(times: Callable, a: Sequence, b: Sequence, k: int):
    """The coefficient of order k of a product; None if it is zero."""
    pairs = [(a[i], b[k - i]) for i in range(k + 1)]
    return _total([times(x, y) for x, y in pairs if type(x) is not Zero and type(y) is not Zero])


def _bilinear(primitive, primals, series, params):
    (x, y), (xs, ys) = primals, series
    out = primitive.bind(x, y, **params)
    times = lambda a, b: primitive.bind(a, b, **params)
    terms = [_product(times, [x, *xs], [y, *ys], k + 1) for k in range(len(xs))]
    return out, [Zero(tangent_aval(get_aval(out))) if t is None else t for t in terms]


def _div(primitive, primals, series, params):
    """y b = a, solved for one coefficient after another."""
    (a, b), (as_, bs) = primals, series
    out = primitive.bind(a, b, **params)
    ys: list = [out]
    for k, a_k in enumerate(as_):
        known = _product(mul, ys, [*bs[: k + 1]], k)  # the sum of y_i b_(k+1-i), i ≤ k
        rest = a_k if known is None else sub(_broadcast(a_k, out), known)
        ys.append(rest if type(rest) is Zero else primitive.bind(rest, b, **params))
    return out, ys[1:]


def _broadcast(term, like):
    """A coefficient as an array of the result's shape."""
    from_zero = instantiate(Zero(tangent_aval(get_aval(like))))
    return from_zero if type(term) is Zero else add_any(from_zero, term)


def _pow(primitive, primals, series, params):
    """x y' = p y x' for a constant p; x ** p is exp(p log x) where p varies too."""
    (x, p), (xs, ps) = primals, series
    if any(type(t) is not Zero for t in ps) or not dtypes.is_inexact(get_aval(p).dtype):
        return _by_derivative(primitive, primals, series, params)
    out = primitive.bind(x, p, **params)
    ys: list = [out]
    for k in range(1, len(xs) + 1):
        parts = []
        for j in range(1, k + 1):
            x_j = xs[j - 1]
            if type(x_j) is not Zero and type(ys[k - j]) is not Zero:
                factor = sub(mul(p, scalar_like(x, j)), scalar_like(x, k - j))
                parts.append(mul(mul(factor, x_j), ys[k - j]))
        total = _total(parts)
        ys.append(Zero(tangent_aval(get_aval(out))) if total is None else div(total, mul(x, scalar_like(x, k))))
    return out, ys[1:]


def _by_derivative(primitive, primals, series, params):
    """The jvp rule at polynomials of one order less: y' = Df(x(t)) x'(t)."""
    order = len(series[0])
    if isinstance(primitive.jvp, Unsupported):
        raise NotImplementedError(f"jet: primitive {primitive.name} has no derivative.")
    inner = JetTrace(current_trace(), order - 1)
    values = [inner.join(p, ts[:-1]) for p, ts in zip(primals, series)]
    tangents = []
    for p, ts in zip(primals, series):
        if all(type(t) is Zero for t in ts):
            tangents.append(Zero(tangent_aval(get_aval(p))))
            continue
        first, *more = [t if type(t) is Zero or k == 0 else mul(t, scalar_like(t, k + 1)) for k, t in enumerate(ts)]
        tangents.append(inner.join(instantiate(first), more) if any(type(t) is not Zero for t in more) else first)
    with tracing(inner if order > 1 else inner.parent):
        out, out_t = primitive.jvp(values, tangents, **params)
    many = primitive.multiple_results
    results, out_series = [], []
    for o, t in zip(out if many else [out], out_t if many else [out_t]):
        value, _ = inner.split(o)
        if type(t) is Zero:
            terms = [t] * order
        else:
            slope, more = inner.split(t)
            terms = [
                c if type(c) is Zero or k == 0 else div(c, scalar_like(c, k + 1)) for k, c in enumerate([slope, *more])
            ]
        results.append(value)
        out_series.append(terms)
    return (results, out_series) if many else (results[0], out_series[0])


def _jit(primitive, primals, series, params):
    nonzero = tuple(tuple(type(t) is not Zero for t in ts) for ts in series)
    closed, out_nonzero = _jet_jaxpr(params["jaxpr"], nonzero)
    flat = [t for ts in series for t in ts if type(t) is not Zero]
    outs = bind_jit(closed, [*primals, *flat], params["name"], params["inline"], params["keep_unused"])
    n = len(out_nonzero)
    live = iter(outs[n:])
    zeros = [Zero(tangent_aval(a)) for a in params["jaxpr"].out_avals]
    return outs[:n], [[next(live) if nz else zero for nz in flags] for zero, flags in zip(zeros, out_nonzero)]


@memoized_closed
def _jet_jaxpr(closed: ClosedJaxpr, nonzero: tuple):
    """The jaxpr (values, nonzero coefficients) -> (results, their nonzero coefficients), and which those are."""
    trace = JaxprTrace("a function's Taylor polynomial")
    values = [trace.new_arg(a) for a in closed.in_avals]
    series = [
        [trace.new_arg(tangent_aval(a)) if nz else Zero(tangent_aval(a)) for nz in flags]
        for a, flags in zip(closed.in_avals, nonzero)
    ]
    with tracing(trace):
        outs, out_series = _jet_flat(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), values, series)
    out_nonzero = tuple(tuple(type(t) is not Zero for t in ts) for ts in out_series)
    jaxpr, consts = trace.finish([*outs, *[t for ts in out_series for t in ts if type(t) is not Zero]])
    return ClosedJaxpr(jaxpr, consts), out_nonzero


def _in_place(primitive, primals, series, params):
    """A rule for calls: the callee is evaluated on polynomials."""
    return _jet_flat(lambda *xs: primitive.impl(*xs, **params), primals, series)


def deflinear(prim: Primitive) -> None:
    """Declares that a primitive is linear, at least near every point. Each coefficient then goes through its
    derivative.

    Args:
        prim: the primitive.

    Returns:
        None

    Example:
        >>> from weft import lax
        >>> from weft.experimental import jet
        >>> jet.deflinear(lax.neg_p)
        >>> _, terms = jet.jet(lax.neg, (2.0,), ((1.0, 3.0),))
        >>> [float(t) for t in terms]
        [-1.0, -3.0]
    """
    jet_rules[prim] = _linear


def defzero(prim: Primitive) -> None:
    """Declares that the derivative of a primitive is zero everywhere.

    Args:
        prim: the primitive.

    Returns:
        None

    Example:
        >>> from weft import lax
        >>> from weft.experimental import jet
        >>> jet.defzero(lax.floor_p)
        >>> _, terms = jet.jet(lax.floor, (2.5,), ((1.0, 3.0),))
        >>> [float(t) for t in terms]
        [0.0, 0.0]
    """
    jet_rules[prim] = _zero


# Linear near a point: the order of elements, the larger of two, which branch is selected do not change there.
for _name in (
    "neg",
    "add",
    "sub",
    "add_any",
    "real",
    "imag",
    "complex",
    "conj",
    "convert_element_type",
    "broadcast_in_dim",
    "reshape",
    "transpose",
    "squeeze",
    "rev",
    "slice",
    "pad",
    "concatenate",
    "reduce_sum",
    "cumsum",
    "fft",
    "select_n",
    "gather",
    "dynamic_slice",
    "dynamic_update_slice",
    "scatter-add",
    "copy",
    "reduce_window_sum",
    "psum",
    "all_gather",
    "ppermute",
    "all_to_all",
    "name",
    "device_put",
    "stop_gradient",
    "split",
    "stack",
    "unstack",
    "max",
    "min",
    "abs",
    "clamp",
    "reduce_max",
    "reduce_min",
    "reduce_window_max",
    "reduce_window_min",
    "cummax",
    "cummin",
    "sort",
    "top_k",
    "select_and_gather_add",
    "reduce_precision",
    "scatter",
    "optimization_barrier",
):
    jet_rules[registry[_name]] = _linear
for _name in (
    "floor",
    "ceil",
    "round",
    "sign",
    "is_finite",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and",
    "or",
    "xor",
    "not",
    "shift_left",
    "shift_right_logical",
    "shift_right_arithmetic",
    "bitcast_convert_type",
    "argmax",
    "argmin",
    "population_count",
    "clz",
):
    jet_rules[registry[_name]] = _zero
for _name in ("mul", "dot_general", "conv_general_dilated"):
    jet_rules[registry[_name]] = _bilinear
jet_rules |= {div_p: _div, pow_p: _pow, jit_p: _jit}
jet_rules |= dict.fromkeys((remat_p, custom_vjp_call_p, custom_vmap_call_p), _in_place)
jet_rules[linear_call_p] = _linear


def _jet_flat(fun: Callable, primals: Sequence, series: Sequence[Sequence]) -> tuple[list, list]:
    """Runs `fun` (flat in, flat out) on polynomials: (results, the series of each)."""
    order = len(series[0]) if series else 0
    trace = JetTrace(current_trace(), order)
    args = [trace.join(p, ts) for p, ts in zip(primals, series)]
    with tracing(trace):
        outs = fun(*args)
    pairs = [trace.split(x) for x in outs]
    trace.closed = True
    return [p for p, _ in pairs], [ts for _, ts in pairs]


@api_boundary
def jet(fun: Callable, primals: Sequence, series: Sequence[Sequence], factorial_scaled: bool = True, **_):
    """Taylor mode: the value of a function at a point, and its derivatives of orders 1 to n along a curve through it.

    Source: A. Griewank and A. Walther, "Evaluating Derivatives", 2nd edition (2008), chapter 13.

    Args:
        fun: a function of arrays; its result may be a pytree of them.
        primals: the point: one array for each argument, of any shape and dtype.
        series: for each argument a list of the derivatives of orders 1 to n of the curve, each of the argument's
            shape or a scalar.
        factorial_scaled: whether the series hold derivatives. Otherwise they hold coefficients of Taylor
            polynomials, which are derivatives over k!.
        **_: has no effect.

    Returns:
        (result, series of the result). The series have a list of n arrays at each leaf of the result.

    Raises:
        ValueError: series have different lengths, an argument or a term is not an array, or a term has a shape that
            does not fit.
        NotImplementedError: an operation in `fun` has no derivative.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental.jet import jet
        >>> y, (dy, ddy) = jet(lambda x: x ** 3, (2.0,), ((1.0, 0.0),))
        >>> float(y), float(dy), float(ddy)
        (8.0, 12.0, 12.0)
    """
    check_callable(fun)
    primals, series = list(primals), [list(ts) for ts in series]
    orders = {len(ts) for ts in series}
    if len(orders) > 1 or len(series) != len(primals):
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    for i, (p, ts) in enumerate(zip(primals, series)):
        if not is_array_like(p) or not treedef_is_leaf(tree_flatten(p)[1]):
            raise ValueError(f"primal value at position {i} is not an array")
        for t in ts:
            if not is_array_like(t):
                raise ValueError(f"term {t!r} for argument {i} is not an array")
    order = orders.pop() if orders else 0
    terms = [[_as_term(p, t, k + 1, factorial_scaled) for k, t in enumerate(ts)] for p, ts in zip(primals, series)]
    box: list = []

    def flat(*xs):
        leaves, tree = tree_flatten(fun(*xs))
        box.append(tree)
        return leaves

    outs, out_series = _jet_flat(flat, primals, terms) if order else (flat(*primals), None)
    out_series = out_series or [[] for _ in outs]
    tree = box[0]
    out_terms = [[_from_term(t, k + 1, factorial_scaled) for k, t in enumerate(ts)] for ts in out_series]
    return tree_unflatten(tree, [as_result(x) for x in outs]), tree_unflatten(tree, out_terms)


def _as_term(primal, t, k: int, factorial_scaled: bool):
    """A given derivative of order k as a coefficient of the primal's tangent type."""
    aval = tangent_aval(get_aval(primal))
    if aval.dtype == dtypes.float0:
        return Zero(aval)
    have = get_aval(t)
    if have.shape not in (aval.shape, ()):
        raise ValueError(f"jet: a term of shape {have.shape} does not fit an argument of shape {aval.shape}.")
    t = convert(t, aval.dtype, aval.weak_type)
    t = add_any(instantiate(Zero(aval)), t) if have.shape != aval.shape else t
    return div(t, scalar_like(t, factorial(k))) if factorial_scaled and k > 1 else t


def _from_term(t, k: int, factorial_scaled: bool):
    if type(t) is Zero and t.aval.dtype == dtypes.float0:
        t = Zero(array_aval(t.aval).update(dtype=dtypes.float32))
    t = instantiate(t)
    return as_result(mul(t, scalar_like(t, factorial(k))) if factorial_scaled and k > 1 else t)


def jet2(fun: Callable, primals: Sequence, series: Sequence[Sequence], *, factorial_scaled: bool = False, **_):
    """`jet` whose series are coefficients of Taylor polynomials by default.

    Args:
        fun, primals, series: as for `jet`; arrays of any shapes and dtypes.
        factorial_scaled: whether the series hold derivatives.
        **_: has no effect.

    Returns:
        (result, series of the result) as `jet` returns them.

    Raises:
        ValueError: as for `jet`.
        NotImplementedError: an operation in `fun` has no derivative.

    Example:
        >>> from weft.experimental.jet import jet2
        >>> y, (c1, c2) = jet2(lambda x: x ** 3, (2.0,), ((1.0, 0.0),))
        >>> float(y), float(c1), float(c2)
        (8.0, 12.0, 6.0)
    """
    return jet(fun, primals, series, factorial_scaled)


def __dir__() -> list[str]:
    return sorted(__all__)
