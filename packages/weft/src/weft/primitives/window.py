"""Windows: sums and extrema over them, and the operations that pick or spread the derivative of an extremum.

`unfold` and `fold` are how windows are made of slices, here and for convolutions.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

from ..base import dtypes, limits
from ..base.avals import shaped, tangent_aval
from ..core.primitive import Primitive, Zero
from ..core.shardings import parts_of, resized
from ..core.wire import PAIRS, SIZES, portable, word
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error
from ..base.host import np
from .elementwise import add, eq, max_, min_, mul, select
from .gather import GatherDimensionNumbers, ScatterDimensionNumbers, gather
from .scatter import scatter_add
from .linear import (
    broadcast_in_dim,
    broadcast_to_axis,
    convert,
    expand_dims,
    full,
    moveaxis,
    reduce_sum,
    reshape,
    transpose,
)
from .reduce import argmax, argmin, reduce_max, reduce_min
from .rules import check_kind, dtype_of, linear_jvp, same_dtype, shape_of
from .shape import concatenate, iota, pad, pad_p, slice_

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, ElementType, Params, Size, Value

# sizes ---------------------------------------------------------------------------------------------------------------


def dilated(size: int, dilation: int) -> int:
    """The size of an axis with `dilation - 1` gaps between its elements."""
    return (size - 1) * dilation + 1 if size else 0


def window_count(size: int, window: int, stride: int = 1, dilation: int = 1) -> int:
    """How many windows fit into an axis."""
    return max((size - dilated(window, dilation)) // stride + 1, 0)


def transposed_padding(
    size: int, window: int, stride: int, count: int, low: int, base_dilation: int, dilation: int
) -> tuple[int, int]:
    """The padding for which the windows over the results, `stride` apart, contain the results that each of the `size`
    elements contributed to.
    """
    before = dilated(window, dilation) - 1 - low
    return before, dilated(size, base_dilation) + dilated(window, dilation) - 1 - dilated(count, stride) - before


def window_shape(
    name: str,
    shape: tuple[Any, ...],
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
) -> tuple[Any, ...]:
    """The shape of a reduction over windows; an error names the parameter that does not fit."""
    rank = len(shape)
    given: dict[str, Sequence[Any]] = {
        "window_dimensions": window_dimensions,
        "window_strides": window_strides,
        "padding": padding,
        "base_dilation": base_dilation,
        "window_dilation": window_dilation,
    }
    for what, values in given.items():
        if len(values) != rank:
            error = ValueError if what == "padding" else TypeError  # as jax has them
            raise error(
                at_user_line(
                    f"{name}: {what} {values} must have one entry for each of the {rank} axes of the operand, whose"
                    f" shape is {shape}."
                )
            )
        if what != "padding" and any(v < 1 for v in values):
            raise type_error(f"{name}: {what} must be positive, got {values}.")
    sizes = []
    for n, w, s, (lo, hi), b, d in zip(
        shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    ):
        wide = dilated(n, b) + lo + hi
        if wide < 0:
            raise ValueError(f"{name}: padding {padding} cuts more than there is of an operand of shape {shape}.")
        sizes.append(window_count(wide, w, s, d))
    return tuple(sizes)


# windows as slices ---------------------------------------------------------------------------------------------------

MANY = 32  # more slices than this become one gather


def unfold(x: Value, axis: int, window: int, stride: int = 1, dilation: int = 1, to: int | None = None) -> Value:
    """`x` with `axis` replaced by two: which window, and which place in it; the latter as axis `to` of the result
    (behind the former).

    The slices run over the windows or over the places, whichever are fewer.
    """
    shape = shape_of(x)
    count = window_count(shape[axis], window, stride, dilation)
    if to is not None and to != axis + 1:
        if count and window <= min(count, MANY):
            return concatenate(
                [expand_dims(_take(x, axis, q * dilation, count, stride), (to,)) for q in range(window)], to
            )
        order = [d for d in range(len(shape) + 1) if d != axis + 1]
        return transpose(unfold(x, axis, window, stride, dilation), (*order[:to], axis + 1, *order[to:]))
    if not count:
        return full((*shape[:axis], 0, window, *shape[axis + 1 :]), 0, dtype_of(x))
    if min(count, window) > MANY:
        return gather(
            x,
            _places(count, window, stride, dilation),
            GatherDimensionNumbers(_all_but(len(shape) + 1, axis, axis + 1), (axis,), (axis,)),
            (*shape[:axis], 1, *shape[axis + 1 :]),
            mode="clip",
        )
    if window <= count:
        return concatenate(
            [expand_dims(_take(x, axis, q * dilation, count, stride), (axis + 1,)) for q in range(window)], axis + 1
        )
    return concatenate([expand_dims(_take(x, axis, r * stride, window, dilation), (axis,)) for r in range(count)], axis)


def fold(x: Value, axis: int, size: int, stride: int = 1, dilation: int = 1) -> Value:
    """The transpose of `unfold`: adds the windows (axes `axis` and `axis + 1`) at their positions in an axis of
    `size`.
    """
    shape = shape_of(x)
    count, window = shape[axis : axis + 2]
    rest = (*shape[:axis], size, *shape[axis + 2 :])
    if not count or not window:
        return full(rest, 0, dtype_of(x))
    if min(count, window) > MANY:
        return scatter_add(
            full(rest, 0, dtype_of(x)),
            _places(count, window, stride, dilation),
            x,
            ScatterDimensionNumbers(_all_but(len(shape), axis, axis + 1), (axis,), (axis,)),
            mode="clip",
        )
    over, start, step = (axis + 1, dilation, stride) if window <= count else (axis, stride, dilation)
    total = None
    for i in range(min(count, window)):
        row = _take(x, over, i, 1, 1)
        row = reshape(row, shape[:over] + shape[over + 1 :])
        config = [(0, 0, 0)] * len(rest)
        config[axis] = (i * start, size - i * start - dilated(max(count, window), step), step - 1)
        row = pad(row, full((), 0, dtype_of(x)), config)
        total = row if total is None else add(total, row)
    return total


def _places(count: int, window: int, stride: int, dilation: int) -> Value:
    """The positions of place q of window r, as indices of shape (count, window, 1)."""
    shape = (count, window, 1)
    scaled = lambda axis, by: mul(iota(dtypes.int32, shape, axis), full(shape, by, dtypes.int32))
    return add(scaled(0, stride), scaled(1, dilation))


def _all_but(rank: int, *axes: int) -> tuple[Any, ...]:
    return tuple(d for d in range(rank) if d not in axes)


def _take(x: Value, axis: int, start: int, count: int, step: int) -> Value:
    """`count` elements along `axis`, `step` apart."""
    shape = shape_of(x)
    one_axis = lambda value, rest: tuple(value if d == axis else r for d, r in enumerate(rest))
    return slice_(
        x,
        one_axis(start, (0,) * len(shape)),
        one_axis(start + dilated(count, step), shape),
        one_axis(step, (1,) * len(shape)),
    )


def padded(x: Value, value: Value, padding: Sequence[tuple[int, int]], base_dilation: tuple[int, ...]) -> Value:
    """`x` with gaps and borders of `value`."""
    config = tuple((lo, hi, d - 1) for (lo, hi), d in zip(padding, base_dilation))
    return x if all(c == (0, 0, 0) for c in config) else pad(x, value, config)


def patches(
    x: Value,
    value: Value,
    *,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
) -> Value:
    """Each window in its own row: the shape of the result of the reduction, and a last axis for the places."""
    x = padded(x, value, padding, base_dilation)
    rank = len(window_dimensions)
    for axis in reversed(range(rank)):
        x = unfold(x, axis, window_dimensions[axis], window_strides[axis], window_dilation[axis])
    x = transpose(x, (*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)))
    return reshape(x, (*shape_of(x)[:rank], math.prod(window_dimensions)))


def unpatch(
    x: Value,
    shape: Sequence[Size],
    *,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
) -> Value:
    """The transpose of `patches` for an operand of `shape`."""
    rank = len(shape)
    counts = shape_of(x)[:rank]
    x = reshape(x, (*counts, *window_dimensions))
    x = transpose(x, [d for pair in zip(range(rank), range(rank, 2 * rank)) for d in pair])
    for axis in range(rank):
        lo, hi = padding[axis]
        size = dilated(shape[axis], base_dilation[axis]) + lo + hi
        x = fold(x, axis, size, window_strides[axis], window_dilation[axis])
    x = padded(x, full((), 0, dtype_of(x)), [(-lo, -hi) for lo, hi in padding], (1,) * rank)
    return slice_(x, (0,) * rank, shape_of(x), base_dilation)


# sums and extrema ----------------------------------------------------------------------------------------------------


def lowest(dt: ElementType) -> Value:
    """The identity of max."""
    return limits.lowest(dt)


def highest(dt: ElementType) -> Value:
    """The identity of min."""
    return limits.highest(dt)


def _np_padded(x: Value, value: Value, padding: Sequence[tuple[int, int]], base_dilation: tuple[int, ...]) -> Value:
    return pad_p.reference(
        x, np.array(value, x.dtype), padding_config=[(lo, hi, d - 1) for (lo, hi), d in zip(padding, base_dilation)]
    )


WINDOW = {
    "window_dimensions": SIZES,
    "window_strides": SIZES,
    "padding": PAIRS,
    "base_dilation": SIZES,
    "window_dilation": SIZES,
}


def _window_reduction(
    name: str,
    kinds: str,
    identity: Value,
    np_combine: Callable[..., Any],
    combine: Callable[..., Any],
    reduce: Callable[..., Any],
) -> Primitive:
    primitive = Primitive(name, basic=False, wire=portable(**WINDOW))

    def abstract(x: Value, **params: Any) -> ShapedArray:
        check_kind(name, x, kinds)
        return shaped(window_shape(name, x.shape, **params), x.dtype, x.weak_type)

    def reference(
        x: Value,
        *,
        window_dimensions: tuple[int, ...],
        window_strides: tuple[int, ...],
        padding: tuple[tuple[int, int], ...],
        base_dilation: tuple[int, ...],
        window_dilation: tuple[int, ...],
    ) -> Any:
        shape = window_shape(name, x.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
        wide = _np_padded(x, identity(x.dtype), padding, base_dilation)
        wide = wide.astype(np.float64) if dtypes.is_float(x.dtype) else wide
        out = np.full(shape, identity(x.dtype), wide.dtype)
        # where no window has room, its size may be any number
        for place in itertools.product(*map(range, window_dimensions)) if out.size else ():
            at = tuple(
                slice(q * d, q * d + n * s, s) for q, d, n, s in zip(place, window_dilation, shape, window_strides)
            )
            out = np_combine(out, wide[at][tuple(slice(n) for n in shape)])
        return out.astype(x.dtype)

    def batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Value, Any]:
        return primitive.bind(moveaxis(args[0], dims[0], 0), **with_batch_axis(params)), 0

    def decompose(
        x: Value,
        *,
        window_dimensions: tuple[int, ...],
        window_strides: tuple[int, ...],
        padding: tuple[tuple[int, int], ...],
        base_dilation: tuple[int, ...],
        window_dilation: tuple[int, ...],
    ) -> Value:
        """One axis after another, since all three operations are associative and commutative."""
        x = padded(x, full((), identity(dtype_of(x)), dtype_of(x)), padding, base_dilation)
        for axis, (w, s, d) in enumerate(zip(window_dimensions, window_strides, window_dilation)):
            count = window_count(shape_of(x)[axis], w, s, d)
            if (w, s) == (1, 1):
                continue
            if w > MANY or not count:
                x = reduce(unfold(x, axis, w, s, d), (axis + 1,))
                continue
            parts = [_take(x, axis, q * d, count, s) for q in range(w)]
            x = parts[0]
            for part in parts[1:]:
                x = combine(x, part)
        return x

    primitive.abstract, primitive.reference, primitive.batch, primitive.decompose = (
        abstract,
        reference,
        batch,
        decompose,
    )
    primitive.shard = resized(name)
    return primitive


def with_batch_axis(params: Params) -> dict[Any, Any]:
    """The parameters of a reduction over windows for operands with a batch axis in front."""
    new = dict(params, padding=((0, 0), *params["padding"]))
    for key in ("window_dimensions", "window_strides", "base_dilation", "window_dilation"):
        if key in params:
            new[key] = (1, *params[key])
    return new


reduce_window_sum_p = _window_reduction("reduce_window_sum", "iufc", lambda dt: 0, lambda a, b: a + b, add, reduce_sum)
reduce_window_max_p = _window_reduction(
    "reduce_window_max", "biuf", lowest, lambda a, b: np.maximum(a, b), max_, reduce_max
)
reduce_window_min_p = _window_reduction(
    "reduce_window_min", "biuf", highest, lambda a, b: np.minimum(a, b), min_, reduce_min
)


def _sum_transpose(
    ct: Value,
    x: Value,
    *,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
) -> list[Value | None]:
    """Each element's cotangent is the sum over the windows that it was in."""
    sizes, counts = x.aval.shape, shape_of(ct)
    if 0 in sizes or 0 in counts:
        return [full(sizes, 0, dtype_of(ct))]
    back = [
        transposed_padding(*of)
        for of in zip(
            sizes, window_dimensions, window_strides, counts, [lo for lo, _ in padding], base_dilation, window_dilation
        )
    ]
    ct = padded(ct, full((), 0, dtype_of(ct)), back, window_strides)
    rank = len(sizes)
    return [
        reduce_window_sum_p.bind(
            ct,
            window_dimensions=window_dimensions,
            window_strides=base_dilation,
            padding=((0, 0),) * rank,
            base_dilation=(1,) * rank,
            window_dilation=window_dilation,
        )
    ]


reduce_window_sum_p.jvp, reduce_window_sum_p.transpose = linear_jvp(reduce_window_sum_p), _sum_transpose


def _extremum_jvp(primitive: Primitive, select_prim: str) -> Callable[..., Any]:
    def jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
        (x,), (t,) = primals, tangents
        out = primitive.bind(x, **params)
        if type(t) is Zero:
            return out, Zero(tangent_aval(get_aval(out)))
        return out, select_and_gather_add_p.bind(t, x, select_prim=select_prim, **params)

    return jvp


reduce_window_max_p.jvp, reduce_window_min_p.jvp = (
    _extremum_jvp(reduce_window_max_p, "ge"),
    _extremum_jvp(reduce_window_min_p, "le"),
)

# the derivative of an extremum ---------------------------------------------------------------------------------------

# Both know the operand only to choose by: of each window its first largest (select_prim "ge") or smallest ("le")
# element.
select_and_gather_add_p = Primitive(
    "select_and_gather_add", basic=False, wire=portable(select_prim=word("ge", "le"), **WINDOW)
)  # the tangents at the chosen elements
# its transpose: each source added to the chosen element
select_and_scatter_add_p = Primitive(
    "select_and_scatter_add",
    basic=False,
    wire=portable(select_prim=word("ge", "le"), window_dimensions=SIZES, window_strides=SIZES, padding=PAIRS),
)


def _check_selection(name: str, x: Value, operand: Value, select_prim: str) -> None:
    check_kind(name, operand, "biuf")
    if select_prim not in _WORST:
        raise type_error(f"{name}: select_prim must be one of {', '.join(_WORST)}, got {select_prim!r}.")


# A value that loses against every element, and the comparison that finds the winner.
_WORST = {"ge": lowest, "le": highest}
_WINNER = {"ge": argmax, "le": argmin}


def _is_winner(operand: Value, select_prim: str, params: Params) -> Value:
    """For each place of each window, whether it is the chosen one."""
    rows = patches(operand, full((), _WORST[select_prim](dtype_of(operand)), dtype_of(operand)), **params)
    shape = shape_of(rows)
    last = len(shape) - 1
    place = _WINNER[select_prim](rows, last, dtypes.int32)
    return eq(broadcast_in_dim(place, shape, tuple(range(last))), iota(dtypes.int32, shape, last))


def _select_gather_abstract(
    tangents: ShapedArray, operand: ShapedArray, *, select_prim: str, **params: Any
) -> ShapedArray:
    _check_selection("select_and_gather_add", tangents, operand, select_prim)
    if tangents.shape != operand.shape:
        raise type_error(
            f"select_and_gather_add: tangents of shape {tangents.shape} and an operand of shape {operand.shape} must"
            " have one shape."
        )
    return shaped(window_shape("select_and_gather_add", operand.shape, **params), tangents.dtype, tangents.weak_type)


def _np_choices(
    operand: Value,
    select_prim: str,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
) -> Iterator[Any]:
    """(window, chosen position in the padded operand) of each window."""
    shape = window_shape(
        select_prim, operand.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    wide = _np_padded(operand, _WORST[select_prim](operand.dtype), padding, base_dilation)
    for window in np.ndindex(*shape):
        inside = wide[
            tuple(
                slice(r * s, r * s + dilated(w, d), d)
                for r, s, w, d in zip(window, window_strides, window_dimensions, window_dilation)
            )
        ]
        best = np.unravel_index((np.argmax if select_prim == "ge" else np.argmin)(inside), inside.shape)
        yield window, tuple(r * s + q * d for r, s, q, d in zip(window, window_strides, best, window_dilation))


def _select_gather_reference(tangents: Value, operand: Value, *, select_prim: str, **params: Any) -> Any:
    wide = _np_padded(tangents, 0, params["padding"], params["base_dilation"])
    out = np.zeros(window_shape("select_and_gather_add", operand.shape, **params), tangents.dtype)
    for window, place in _np_choices(operand, select_prim, **params):
        out[window] = wide[place]
    return out


def _select_gather_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    out = select_and_gather_add_p.bind(*primals, **params)
    t = tangents[0]
    return out, (
        Zero(tangent_aval(get_aval(out))) if type(t) is Zero else select_and_gather_add_p.bind(t, primals[1], **params)
    )


def _select_gather_transpose(
    ct: Value,
    tangents: Value,
    operand: Value,
    *,
    select_prim: str,
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
    **params: Any,
) -> list[Value | None]:
    if all(d == 1 for d in (*base_dilation, *window_dilation)):
        return [select_and_scatter_add_p.bind(ct, operand, select_prim=select_prim, **params), None]
    return [
        _scatter_back(
            ct, operand, select_prim, dict(params, base_dilation=base_dilation, window_dilation=window_dilation)
        ),
        None,
    ]


def _select_gather_decompose(tangents: Value, operand: Value, *, select_prim: str, **params: Any) -> Value:
    winner = _is_winner(operand, select_prim, params)
    zero = full((), 0, dtype_of(tangents))
    rows = patches(tangents, zero, **params)
    return reduce_sum(select(winner, rows, full(shape_of(rows), 0, dtype_of(tangents))), (len(shape_of(rows)) - 1,))


def _both_batched(primitive: Primitive) -> Callable[..., Any]:
    def batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Value, Any]:
        args = [
            broadcast_to_axis(x, axis.size, axis.placed) if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)
        ]
        return primitive.bind(*args, **with_batch_axis(params)), 0

    return batch


p = select_and_gather_add_p
p.abstract, p.reference, p.jvp, p.transpose = (
    _select_gather_abstract,
    _select_gather_reference,
    _select_gather_jvp,
    _select_gather_transpose,
)
p.batch, p.decompose, p.shard = _both_batched(p), _select_gather_decompose, resized("select_and_gather_add")


def _undilated(params: Params) -> dict[Any, Any]:
    ones = (1,) * len(params["window_dimensions"])
    return dict(params, base_dilation=ones, window_dilation=ones)


def _select_scatter_abstract(
    source: ShapedArray, operand: ShapedArray, *, select_prim: str, **params: Any
) -> ShapedArray:
    _check_selection("select_and_scatter_add", source, operand, select_prim)
    same_dtype("select_and_scatter_add", [source, operand])
    want = window_shape("select_and_scatter_add", operand.shape, **_undilated(params))
    if source.shape != want:
        raise type_error(
            f"select_and_scatter_add: the source must have one element for each window, {want}, got shape"
            f" {source.shape}."
        )
    return shaped(operand.shape, source.dtype, source.weak_type)


def _select_scatter_reference(source: Any, operand: Value, *, select_prim: str, **params: Any) -> Any:
    wide = np.zeros([n + lo + hi for n, (lo, hi) in zip(operand.shape, params["padding"])], source.dtype)
    for window, place in _np_choices(operand, select_prim, **_undilated(params)):
        wide[place] += source[window]
    return _np_padded(wide, 0, [(-lo, -hi) for lo, hi in params["padding"]], (1,) * operand.ndim)


def _select_scatter_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    out = select_and_scatter_add_p.bind(*primals, **params)
    t = tangents[0]
    return out, (
        Zero(tangent_aval(get_aval(out))) if type(t) is Zero else select_and_scatter_add_p.bind(t, primals[1], **params)
    )


def _select_scatter_transpose(ct: Value, source: Any, operand: Value, **params: Any) -> list[Value | None]:
    return [select_and_gather_add_p.bind(ct, operand, **_undilated(params)), None]


def _scatter_back(source: Any, operand: Value, select_prim: str, params: Params) -> Value:
    if dtypes.is_bool(dtype_of(source)):  # whether any is added
        return convert(_scatter_back(convert(source, dtypes.int32), operand, select_prim, params), dtypes.bool_)
    winner = _is_winner(operand, select_prim, params)
    shape = shape_of(winner)
    rows = broadcast_in_dim(source, shape, tuple(range(len(shape) - 1)))
    return unpatch(select(winner, rows, full(shape, 0, dtype_of(source))), shape_of(operand), **params)


p = select_and_scatter_add_p
p.abstract, p.reference, p.jvp, p.transpose = (
    _select_scatter_abstract,
    _select_scatter_reference,
    _select_scatter_jvp,
    _select_scatter_transpose,
)
p.batch, p.shard = _both_batched(p), lambda params, ins, outs: [parts_of(ins[1])]
p.decompose = lambda source, operand, *, select_prim, **params: _scatter_back(
    source, operand, select_prim, _undilated(params)
)
del p
