"""Reductions, cumulative operations and windows."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes, limits
from ..base.avals import shaped, tangent_aval
from ..core.primitive import Primitive, Zero
from ..core.shardings import along, reduced
from ..core.wire import AXES, DTYPE, FLAG, INTEGER, NOTHING, Wire, portable
from ..core.trace import get_aval
from ..base.errors import type_error
from ..base.host import np
from .elementwise import (
    abs_,
    add,
    ceil,
    complex_,
    div,
    eq,
    extremum_reference,
    imag,
    max_,
    min_,
    mul,
    neg,
    real,
    select,
    sub,
)
from .transcendental import exp, log1p
from .linear import (
    broadcast_in_dim,
    convert,
    full,
    moveaxis,
    reduce_sum,
    reduced_shape,
    reduction_batch,
    reshape as _reshape,
    transpose as _transpose,
)
from .rules import check_kind, dtype_of, shape_of
from .shape import concatenate, pad, slice_

if TYPE_CHECKING:
    from ..core.primitive import JvpRule, ReferenceRule
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, ElementType, Params, Size, Value


def _reduction(name: str, kinds: str, reference: ReferenceRule, jvp: JvpRule | None = None, *, wire: Wire) -> Primitive:
    primitive = Primitive(name, hidden=("out_sharding",), wire=wire)

    def abstract(x: Value, *, axes: tuple[int, ...], out_sharding: Any = None) -> ShapedArray:
        check_kind(name, x, kinds)
        return shaped(reduced_shape(name, x, axes), x.dtype, x.weak_type)

    def no_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
        out = primitive.bind(*primals, **params)
        return out, Zero(tangent_aval(get_aval(out)))

    primitive.abstract, primitive.batch, primitive.jvp = abstract, reduction_batch(primitive), jvp or no_jvp
    primitive.shard = reduced
    primitive.reference = lambda x, *, axes, out_sharding=None: np.asarray(reference(x, tuple(axes))).astype(x.dtype)
    return primitive


def _restore(x: Value, shape: Sequence[Size], axes: tuple[int, ...]) -> Value:
    """`x`, reduced over `axes`, broadcast back to `shape`."""
    return broadcast_in_dim(x, shape, tuple(d for d in range(len(shape)) if d not in axes))


def _make_extremum_jvp(bind: Callable[..., Value]) -> JvpRule:
    """Ties share the derivative equally."""

    def jvp(
        primals: Sequence[Value], tangents: Sequence[Value], *, axes: tuple[int, ...], **params: Any
    ) -> tuple[Value, Value]:
        (x,), (t,) = primals, tangents
        out = bind(x, axes, params)
        if type(t) is Zero:
            return out, Zero(tangent_aval(get_aval(out)))
        where = convert(eq(x, _restore(out, shape_of(x), axes)), dtype_of(x))
        return out, div(reduce_sum(mul(t, where), axes), reduce_sum(where, axes))

    return jvp


def _limit(dt: ElementType, highest: bool) -> Value:
    """The identity of min (the highest number) or max."""
    return limits.highest(dt) if highest else limits.lowest(dt)


def _np_extremum(ufunc: str, highest: bool) -> ReferenceRule:
    def reference(x: Value, axes: tuple[int, ...]) -> Any:
        start = np.array(_limit(x.dtype, highest), x.dtype)
        if not dtypes.is_complex(x.dtype):
            return getattr(np, ufunc).reduce(x, axis=axes, initial=start) if axes else x
        rows = np.moveaxis(x, axes, range(len(axes)))
        rows = rows.reshape(math.prod(rows.shape[: len(axes)]), *rows.shape[len(axes) :])
        return functools.reduce(
            lambda a, row: extremum_reference(getattr(np, ufunc), a, row), rows, np.full(rows.shape[1:], start)
        )

    return reference


reduce_max_p: Primitive = _reduction(
    "reduce_max",
    "biufc",
    _np_extremum("maximum", False),
    _make_extremum_jvp(lambda x, axes, params: reduce_max_p.bind(x, axes=axes, **params)),
    wire=portable(axes=AXES, out_sharding=NOTHING),
)
reduce_min_p: Primitive = _reduction(
    "reduce_min",
    "biufc",
    _np_extremum("minimum", True),
    _make_extremum_jvp(lambda x, axes, params: reduce_min_p.bind(x, axes=axes, **params)),
    wire=portable(axes=AXES, out_sharding=NOTHING),
)


def _prod_jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, axes: tuple[int, ...], **params: Any
) -> tuple[Value, Value]:
    """The product of all other elements, from running products in both directions: right also where elements are
    zero.
    """
    (x,), (t,) = primals, tangents
    out = reduce_prod_p.bind(x, axes=axes, **params)
    if type(t) is Zero:
        return out, Zero(tangent_aval(get_aval(out)))
    shape = shape_of(x)
    kept = [d for d in range(len(shape)) if d not in axes]
    flatten = lambda v: flatten_axes(v, kept, axes)
    flat, flat_t = flatten(x), flatten(t)
    n = shape_of(flat)[-1]
    axis = len(shape_of(flat)) - 1
    ones = full((*shape_of(flat)[:-1], 1), 1, dtype_of(x))
    if n == 0:
        return out, full(shape_of(out), 0, dtype_of(x))
    before = concatenate([ones, cut(cumprod(flat, axis), 0, n - 1)], axis)
    after = concatenate([cut(cumprod(flat, axis, reverse=True), 1, n), ones], axis)
    return out, reduce_sum(mul(flat_t, mul(before, after)), (axis,))


def flatten_axes(x: Value, kept: Sequence[int], axes: tuple[int, ...]) -> Value:
    from_shape = shape_of(x)
    order = [*kept, *axes]
    x = _transpose(x, order)
    return _reshape(x, (*[from_shape[d] for d in kept], math.prod(from_shape[d] for d in axes)))


def cut(x: Value, lo: int, hi: int) -> Value:
    shape = shape_of(x)
    return slice_(x, (0,) * (len(shape) - 1) + (lo,), (*shape[:-1], hi))


reduce_prod_p = _reduction(
    "reduce_prod",
    "iufc",
    lambda x, axes: np.prod(x, axis=axes, dtype=np.float64 if dtypes.is_float(x.dtype) else x.dtype),
    _prod_jvp,
    wire=portable(axes=AXES),
)
reduce_and_p = _reduction(
    "reduce_and", "biu", lambda x, axes: np.bitwise_and.reduce(x, axis=axes), wire=portable(axes=AXES)
)
reduce_or_p = _reduction(
    "reduce_or", "biu", lambda x, axes: np.bitwise_or.reduce(x, axis=axes), wire=portable(axes=AXES)
)
reduce_xor_p = _reduction(
    "reduce_xor", "biu", lambda x, axes: np.bitwise_xor.reduce(x, axis=axes), wire=portable(axes=AXES)
)


def _reducer(primitive: Primitive, **extra: Any) -> Callable[..., Any]:
    def f(x: Value, axes: tuple[int, ...]) -> Value:
        axes = tuple(axes)
        return primitive.bind(x, axes=axes, **extra)

    f.__name__ = primitive.name
    return f


reduce_max, reduce_min = _reducer(reduce_max_p, out_sharding=None), _reducer(reduce_min_p, out_sharding=None)
reduce_prod = _reducer(reduce_prod_p)
reduce_and, reduce_or, reduce_xor = map(_reducer, (reduce_and_p, reduce_or_p, reduce_xor_p))

# argmax, argmin ------------------------------------------------------------------------------------------------------


def _arg_reduction(name: str, reference: Callable[..., Any], sign: int) -> Primitive:
    primitive = Primitive(name, wire=portable(axes=AXES, index_dtype=DTYPE))

    def abstract(x: Value, *, axes: tuple[int, ...], index_dtype: ElementType) -> ShapedArray:
        check_kind(name, x, "biuf")
        if len(axes) != 1:
            raise type_error(f"{name} goes along one axis, got axes {axes}.")
        if not dtypes.is_int(index_dtype):
            raise type_error(f"{name}: index_dtype must be an integer dtype, got {dtypes.name(index_dtype)}.")
        (axis,) = axes
        if not 0 <= axis < len(x.shape):
            raise type_error(f"{name}: axis {axis} is out of range for an array of shape {x.shape}.")
        if x.shape[axis] == 0:
            raise ValueError(f"{name} requires a non-empty dimension; axis {axis} of shape {x.shape} has size 0.")
        return shaped(x.shape[:axis] + x.shape[axis + 1 :], index_dtype)

    def jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
        out = primitive.bind(*primals, **params)
        return out, Zero(tangent_aval(get_aval(out)))

    def batch(
        axis: Axis, args: Sequence[Value], dims: Dims, *, axes: tuple[int, ...], index_dtype: ElementType
    ) -> tuple[Value, Any]:
        (x,), (dim,) = args, dims
        return primitive.bind(moveaxis(x, dim, 0), axes=(axes[0] + 1,), index_dtype=index_dtype), 0

    primitive.abstract, primitive.jvp, primitive.batch = abstract, jvp, batch
    primitive.shard = reduced
    primitive.reference = lambda x, *, axes, index_dtype: reference(x, axis=axes[0]).astype(index_dtype)
    return primitive


argmax_p = _arg_reduction("argmax", lambda x, axis: np.argmax(x, axis=axis), -1)
argmin_p = _arg_reduction("argmin", lambda x, axis: np.argmin(x, axis=axis), 1)


def argmax(x: Value, axis: int, index_dtype: ElementType) -> Value:
    """The index of the first maximum along `axis`; NaN counts as the maximum."""
    return argmax_p.bind(x, axes=(axis,), index_dtype=dtypes.canonicalize(index_dtype))


def argmin(x: Value, axis: int, index_dtype: ElementType) -> Value:
    """The index of the first minimum along `axis`; NaN counts as the minimum."""
    return argmin_p.bind(x, axes=(axis,), index_dtype=dtypes.canonicalize(index_dtype))


# cumulative ----------------------------------------------------------------------------------------------------------


def _cumulative(
    name: str, kinds: str, reference: Callable[..., Any], combine: Callable[..., Any], identity: Value
) -> Primitive:
    primitive = Primitive(name, basic=False, wire=portable(axis=INTEGER, reverse=FLAG))

    def abstract(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_kind(name, x, kinds)
        if not 0 <= axis < len(x.shape):
            raise type_error(f"{name}: axis {axis} is out of range for an array of shape {x.shape}.")
        return x

    def batch(axis_: Axis, args: Sequence[Value], dims: Dims, *, axis: int, reverse: bool) -> tuple[Value, Any]:
        (x,), (dim,) = args, dims
        return primitive.bind(x, axis=axis + (axis >= dim), reverse=reverse), dim

    def decompose(x: Value, *, axis: int, reverse: bool) -> Value:
        """Hillis and Steele's parallel prefix: log2(n) combinations with a shifted copy."""
        shape, shift = shape_of(x), 1
        fill = full((), identity(dtype_of(x)), dtype_of(x))
        while shift < shape[axis]:
            config = [(0, 0, 0)] * len(shape)
            config[axis] = (-shift, shift, 0) if reverse else (shift, -shift, 0)
            x = combine(x, pad(x, fill, config))
            shift *= 2
        return x

    def ref(x: Value, *, axis: int, reverse: bool) -> Value:
        flip = (lambda v: np.flip(v, axis)) if reverse else (lambda v: v)
        return flip(reference(flip(x), axis)).astype(x.dtype)

    primitive.abstract, primitive.batch, primitive.decompose, primitive.reference = abstract, batch, decompose, ref
    primitive.shard = along(name, "axis")
    return primitive


def _by_decomposition(primitive: Primitive) -> Callable[..., Any]:
    """The derivative of the parallel prefix itself."""

    def jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
        out = primitive.bind(*primals, **params)
        (t,) = tangents
        if type(t) is Zero:
            return out, Zero(tangent_aval(get_aval(out)))
        return out, _prefix_tangent(primitive, primals[0], t, params)

    return jvp


def _prefix_tangent(primitive: Primitive, x: Value, t: Value, params: Params) -> Value:
    """d(prefix) along t, by shifted combinations."""
    axis, reverse = params["axis"], params["reverse"]
    shape, shift = shape_of(x), 1
    rule, identity = _STEP[primitive.name]
    dt = dtype_of(x)
    while shift < shape[axis]:
        config = [(0, 0, 0)] * len(shape)
        config[axis] = (-shift, shift, 0) if reverse else (shift, -shift, 0)
        xs, ts = pad(x, full((), identity(dt), dt), config), pad(t, full((), 0, dt), config)
        x, t = rule(x, xs, t, ts)
        shift *= 2
    return t


def _max_step(pick: Callable[..., Any]) -> Callable[..., Any]:
    def step(x: Value, y: Value, tx: Value, ty: Any) -> tuple[Value, Value]:
        out = pick(x, y)
        half = lambda a, b: convert(eq(a, out), dtype_of(x))
        wx, wy = half(x, y), half(y, x)
        return out, div(add(mul(tx, wx), mul(ty, wy)), add(wx, wy))

    return step


def logaddexp(x: Value, y: Value) -> Value:
    """log(exp(x) + exp(y)) without overflow."""
    hi = max_(x, y)
    finite = lambda v: sub(v, hi)
    gap = neg(abs_(finite(min_(x, y))))
    same = eq(x, y)
    return select(same, add(x, full((), math.log(2), dtype_of(x))), add(hi, log1p(exp(gap))))


def _log_sum(x: Value, y: Value) -> Value:
    """log(exp(x) + exp(y)), for complex numbers with the imaginary part in (-π, π]; x itself where y is log(0)."""
    if not dtypes.is_complex(dtype_of(x)):
        return logaddexp(x, y)
    hi = max_(x, y)
    out = add(hi, log1p(exp(sub(sub(x, hi), sub(hi, y)))))
    number = lambda v, like: full(shape_of(like), v, dtype_of(like))
    angle = imag(out)
    turns = ceil(sub(div(angle, number(2 * math.pi, angle)), number(0.5, angle)))
    turned = complex_(real(out), sub(angle, mul(turns, number(2 * math.pi, angle))))
    nothing = lambda v: eq(real(v), number(-math.inf, angle))
    return select(nothing(y), x, select(nothing(x), y, turned))


def _log_sum_reference(x: Any, axis: int) -> Any:
    if not dtypes.is_complex(x.dtype):
        return np.logaddexp.accumulate(x.astype(np.float64), axis)
    rows = np.moveaxis(x.astype(np.complex128), axis, 0)
    top = np.maximum.accumulate(rows.real, 0)
    sums = [np.exp(rows[: k + 1] - top[k]).sum(0) for k in range(len(rows))]
    out = np.stack([rows[0], *[np.log(s) + top[k] for k, s in enumerate(sums[1:], 1)]]) if sums else rows
    return np.moveaxis(out, 0, axis)


_low, _high = (lambda dt: _limit(dt, False)), (lambda dt: _limit(dt, True))
_STEP = {
    "cumprod": (lambda x, y, tx, ty: (mul(x, y), add(mul(tx, y), mul(x, ty))), lambda dt: 1),
    "cummax": (_max_step(max_), _low),
    "cummin": (_max_step(min_), _high),
}

cumsum_p = _cumulative(
    "cumsum",
    "iufc",
    lambda x, axis: np.cumsum(x, axis, dtype=np.float64 if dtypes.is_float(x.dtype) else x.dtype),
    add,
    lambda dt: 0,
)
cumprod_p = _cumulative(
    "cumprod",
    "iufc",
    lambda x, axis: np.cumprod(x, axis, dtype=np.float64 if dtypes.is_float(x.dtype) else x.dtype),
    mul,
    lambda dt: 1,
)
cummax_p = _cumulative("cummax", "iufc", lambda x, axis: np.maximum.accumulate(x, axis), max_, _low)
cummin_p = _cumulative("cummin", "iufc", lambda x, axis: np.minimum.accumulate(x, axis), min_, _high)
cumlogsumexp_p = _cumulative(
    "cumlogsumexp",
    "fc",
    _log_sum_reference,
    _log_sum,
    lambda dt: complex(-math.inf, 0) if dtypes.is_complex(dt) else _low(dt),
)


def _cumsum_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    out = cumsum_p.bind(*primals, **params)
    (t,) = tangents
    return out, Zero(tangent_aval(get_aval(out))) if type(t) is Zero else cumsum_p.bind(t, **params)


cumsum_p.jvp = _cumsum_jvp
cumsum_p.transpose = lambda ct, x, *, axis, reverse: [cumsum_p.bind(ct, axis=axis, reverse=not reverse)]
for _p in (cumprod_p, cummax_p, cummin_p):
    _p.jvp = _by_decomposition(_p)


def _cumlogsumexp_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    """The tangent is a running softmax-weighted sum, computed relative to the running result."""
    (x,), (t,) = primals, tangents
    out = cumlogsumexp_p.bind(x, **params)
    if type(t) is Zero:
        return out, Zero(tangent_aval(get_aval(out)))
    axis = params["axis"]
    size = real(x) if dtypes.is_complex(dtype_of(x)) else x
    top = convert(_restore(reduce_max(size, (axis,)), shape_of(x), (axis,)), dtype_of(x))
    weighted = cumsum_p.bind(mul(t, exp(sub(x, top))), **params)
    return out, mul(weighted, exp(sub(top, out)))


cumlogsumexp_p.jvp = _cumlogsumexp_jvp


def cumsum(x: Value, axis: int = 0, reverse: bool = False) -> Value:
    return cumsum_p.bind(x, axis=axis, reverse=reverse)


def cumprod(x: Value, axis: int = 0, reverse: bool = False) -> Value:
    return cumprod_p.bind(x, axis=axis, reverse=reverse)
