"""Sorting, searching and sets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Sequence, overload

from ..base import dtypes
from ..base.avals import SymbolicSize
from ..base.host import np
from ..runtime.jit import inner_jit
from ..core.trace import Tracer, get_aval
from ..base.errors import ConcretizationTypeError
from ..primitives import elementwise as el, bitwise
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.reduce import cumsum_p, reduce_or
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.sort import sort_p
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike, DTypeLike
from .creation import array
from .shapes import concatenate, ravel, take_rows
from .comparisons import greater_equal
from .ufuncs import where_jit
from .util import asked_dtype, canonical_axis, flat_host, index_dtype, on_device, operand, promote, static_int, strong

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "argpartition",
    "argsort",
    "digitize",
    "intersect1d",
    "isin",
    "lexsort",
    "partition",
    "searchsorted",
    "setdiff1d",
    "setxor1d",
    "sort",
    "sort_complex",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


@inner_jit(name="sort", static_argnums=(1, 2, 3))
def _sort(x: Value, axis: Any, stable: bool, descending: bool) -> Value:
    (out,) = sort_p.bind(x, dimension=axis, is_stable=stable, num_keys=1)
    return ops.rev(out, (axis,)) if descending else out


def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The array sorted along an axis (None: flattened), NaN last.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.sort(jnp.array([3, 1, 2]))
        Array([1, 2, 3], dtype=int32)
    """
    _unsupported("sort", kind, order)
    x = operand("sort", a)
    if axis is None:
        x, axis = ravel(x), 0
    return _sort(x, canonical_axis(axis, len(shape_of(x))), bool(stable), bool(descending))


@inner_jit(name="argsort", static_argnums=(1, 2, 3))
def _argsort(x: Value, axis: Any, stable: bool, descending: bool) -> Value:
    positions = ops.iota(index_dtype(), shape_of(x), axis)
    if not descending:
        return sort_p.bind(x, positions, dimension=axis, is_stable=stable, num_keys=1)[1]
    # sorted upwards with positions running down, then read backwards: equal elements keep their order
    down = ops.rev(positions, (axis,))
    order = sort_p.bind(ops.rev(x, (axis,)), down, dimension=axis, is_stable=stable, num_keys=1)[1]
    return ops.rev(order, (axis,))


def _unsupported(name: str, kind: Any, order: Any) -> None:
    if kind is not None or order is not None:
        raise TypeError(
            f"{name}: kind and order are not supported, got kind={kind!r} and order={order!r}; say stable=True or"
            " stable=False."
        )


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The positions that sort the array along an axis (None: flattened), as `dtype` (int32 without one).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.argsort(jnp.array([3, 1, 2]))
        Array([1, 2, 0], dtype=int32)
    """
    _unsupported("argsort", kind, order)
    x = operand("argsort", a)
    if axis is None:
        x, axis = ravel(x), 0
    out, dt = (
        _argsort(x, canonical_axis(axis, len(shape_of(x))), bool(stable), bool(descending)),
        asked_dtype("argsort", dtype),
    )
    return out if dt is None else linear.convert(out, dt)


def lexsort(keys: Array | np.ndarray[Any, Any] | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The positions that sort by several keys, the last of which counts most.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.lexsort((jnp.array([2, 1, 0]), jnp.array([0, 0, 1])))
        Array([1, 0, 2], dtype=int32)
    """
    xs = [
        on_device(operand("lexsort", k))
        for k in (keys if isinstance(keys, (list, tuple)) else [keys[i] for i in range(len(keys))])
    ]
    if not xs:
        raise TypeError("lexsort needs at least one key.")
    if len({shape_of(x) for x in xs}) > 1:
        raise ValueError("lexsort: all keys need to be the same shape.")
    if not shape_of(xs[0]):
        return array(0, index_dtype())
    axis = canonical_axis(axis, len(shape_of(xs[0])))
    positions = ops.iota(index_dtype(), shape_of(xs[0]), axis)
    return sort_p.bind(*reversed(xs), positions, dimension=axis, is_stable=True, num_keys=len(xs))[-1]


def _partitioned(name: str, a: Value) -> Value:
    x = operand(name, a)
    if dtypes.is_complex(dtype_of(x)):
        raise NotImplementedError(f"{name} is not defined for complex numbers, got {get_aval(x)}; use sort.")
    if dtypes.is_bool(dtype_of(x)) and shape_of(x):
        raise TypeError(f"{name} takes numbers, got {get_aval(x)}; convert it with astype.")
    return x


def _along(x: Value, axis: int, start: int, stop: int) -> Value:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The array rearranged along an axis so that element `kth` stands where sorting puts it, smaller ones before it.

    Example:
        >>> import weft.numpy as jnp
        >>> int(jnp.partition(jnp.array([3, 1, 2]), 1)[1])
        2
    """
    x = _partitioned("partition", a)
    axis = canonical_axis(axis, len(shape_of(x)))
    k = canonical_axis(kth, shape_of(x)[axis], "kth") + 1
    out = sort(x, axis)  # up to kth; downwards behind it, as JAX has them
    return concatenate([_along(out, axis, 0, k), ops.rev(_along(out, axis, k, shape_of(x)[axis]), (axis,))], axis)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The positions of a `partition`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.argpartition(jnp.array([3, 1, 2]), 1)[0]
        Array(1, dtype=int32)
    """
    x = _partitioned("argpartition", a)
    axis = canonical_axis(axis, len(shape_of(x)))
    k = canonical_axis(kth, shape_of(x)[axis], "kth") + 1
    out = linear.convert(argsort(x, axis), dtypes.int32, get_aval(x).weak_type)
    return concatenate([_along(out, axis, 0, k), sort(_along(out, axis, k, shape_of(x)[axis]), axis)], axis)


def sort_complex(a: ArrayLike) -> Array:
    """The array sorted along its last axis, as complex numbers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.sort_complex(jnp.array([2, 1]))
        Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    x = sort(a)
    return x if dtypes.is_complex(dtype_of(x)) else linear.convert(x, dtypes.complex_of(dtype_of(x)))


@inner_jit(name="searchsorted", static_argnums=(2,))
def _searchsorted(a: Value, v: Value, side: str) -> Value:
    """Bisection: every step halves the range of each element of `v`."""
    n, shape = shape_of(a)[0], shape_of(v)
    if n == 0:
        return linear.full(shape, 0, dtypes.int32)
    low, high = linear.full(shape, 0, dtypes.int32), linear.full(shape, n, dtypes.int32)
    for _ in range(31 if isinstance(n, SymbolicSize) else n.bit_length()):  # steps beyond the last change nothing
        middle = bitwise.shift_right_logical(el.add(low, high), scalar_like(low, 1))
        here = take_rows(a, el.min_(middle, scalar_like(middle, n - 1)), 0)
        right = _before(here, v) if side == "left" else el.not_(_before(v, here))
        go = el.and_(right, el.lt(low, high))
        stay = el.and_(el.not_(right), el.lt(low, high))
        low = el.select_n_p.bind(go, low, el.add(middle, scalar_like(middle, 1)))
        high = el.select_n_p.bind(stay, high, middle)
    return low


def _before(x: Value, y: Value) -> Value:
    """x < y in the order of sort: NaN last, complex numbers by real part and then by imaginary part."""
    if dtypes.is_complex(dtype_of(x)):
        a, b = el.real(x), el.real(y)
        return el.or_(_before(a, b), el.and_(el.not_(_before(b, a)), _before(el.imag(x), el.imag(y))))
    if dtypes.is_float(dtype_of(x)):
        return el.or_(el.lt(x, y), el.and_(el.eq(x, x), el.ne(y, y)))
    return el.lt(x, y)


def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """Where each element of `v` would be put into the sorted vector `a`.

    Raises:
        ValueError: for an unknown side or method.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.searchsorted(jnp.array([1, 3, 5]), 4)
        Array(2, dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side takes 'left' or 'right', got {side!r}.")
    if method not in ("scan", "scan_unrolled", "sort", "compare_all"):
        raise ValueError(
            f"searchsorted: unknown method {method!r}; use 'scan', 'scan_unrolled', 'sort' or 'compare_all'."
        )
    a, v = [on_device(x) for x in promote("searchsorted", a, v)]
    if len(shape_of(a)) != 1:
        raise ValueError(f"searchsorted takes a vector, got shape {shape_of(a)}.")
    if sorter is not None:
        if not dtypes.is_int(dtype_of(operand("searchsorted", sorter))):
            raise TypeError(
                f"searchsorted: sorter must be integers, got {get_aval(sorter)}; give what argsort(a) gives."
            )
        a = take_rows(a, linear.convert(sorter, dtypes.int32), 0)
    return _searchsorted(a, v, side)


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin in which each element lies; bins may run up or down.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.digitize(jnp.array([0.5, 2.5]), jnp.array([0., 1., 2.]))
        Array([1, 3], dtype=int32)
    """
    method = "scan" if method is None else method
    x, edges = promote("digitize", x, bins)
    edges = on_device(edges)
    if len(shape_of(edges)) != 1:
        raise ValueError(f"digitize: bins must be a vector, got shape {shape_of(edges)}.")
    n = shape_of(edges)[0]
    side = "left" if right else "right"
    up = searchsorted(edges, x, side, method=method)
    if n < 2:
        return up
    down = searchsorted(ops.rev(edges, (0,)), x, side, method=method)
    first, last = edges[0], edges[n - 1]
    return where_jit(greater_equal(last, first), up, el.sub(scalar_like(down, n), down))


# sets ----------------------------------------------------------------------------------------------------------------


class UniqueAllResult(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What unique_counts finds."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What unique_inverse finds."""

    values: Array
    inverse_indices: Array


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]: ...
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """The distinct elements (or slices along an axis), sorted. Under jit `size` says how many to return.

    Raises:
        ConcretizationTypeError: for a traced array without `size`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.unique(jnp.array([3, 1, 3]))
        Array([1, 3], dtype=int32)
    """
    x = on_device(operand("unique", ar))
    x = strong(x) if dtypes.is_complex(dtype_of(x)) else x
    shape = shape_of(x)
    if size is None and isinstance(x, Tracer):
        raise ConcretizationTypeError(
            concretization_error(
                x,
                "unique needs the values, because the number of results depends on them; "
                "give it size=… to use it under jit",
            )
        )
    if fill_value is not None and shape_of(operand("unique", fill_value)) and axis is None:
        raise ValueError(f"unique: fill_value must be a number, got shape {shape_of(fill_value)}.")
    if axis is None and not math.prod(shape):
        size = size or 0
        if size and fill_value is None:
            raise ValueError(f"unique: an empty array has no value to fill size={size} with; give fill_value.")
        none = linear.full((size,), 0, index_dtype())
        found = (
            linear.full((size,), 0 if fill_value is None else fill_value, dtype_of(x)),
            *[none] * return_index,
            *[linear.full(shape, 0, index_dtype())] * return_inverse,
            *[none] * return_counts,
        )
        return found if len(found) > 1 else found[0]
    rows = (
        linear.reshape(x, (math.prod(shape), 1)) if axis is None else _rows_first(x, canonical_axis(axis, len(shape)))
    )
    n, width = shape_of(rows)
    out_shape = () if axis is None else tuple(m for d, m in enumerate(shape) if d != canonical_axis(axis, len(shape)))
    columns = [linear.reshape(ops.slice_(rows, (0, j), (n, j + 1)), (n,)) for j in range(width)]
    order = (
        sort_p.bind(*columns, ops.iota(index_dtype(), (n,), 0), dimension=0, is_stable=True, num_keys=width)[-1]
        if width
        else ops.iota(index_dtype(), (n,), 0)
    )
    ordered = take_rows(rows, order, 0) if n else rows
    different = _differs(ordered, equal_nan) if n else linear.full((0,), True, dtypes.bool_)
    flags = linear.convert(different, index_dtype())
    rank_of = (
        el.sub(cumsum_p.bind(flags, axis=0, reverse=False), scalar_like(flags, 1))
        if n
        else linear.full((0,), 0, index_dtype())
    )
    count = linear.reduce_sum(flags, (0,))
    total = flat_host(count)[0] if size is None else static_int("size", size)
    starts = _first_positions(different, total, n)
    picked = take_rows(ordered, starts, 0) if n else linear.full((total, width), 0, dtype_of(x))
    present = el.lt(ops.iota(index_dtype(), (total,), 0), count)
    if size is not None:
        fill = (
            picked[:1]
            if fill_value is None and n
            else linear.full((1, width), 0 if fill_value is None else fill_value, dtype_of(x))
        )
        mask = linear.broadcast_in_dim(present, (total, width), (0,))
        picked = el.select_n_p.bind(mask, linear.broadcast_in_dim(fill, (total, width), (0, 1)), picked)
    values = (
        linear.reshape(picked, (total,))
        if axis is None
        else _rows_back(picked, out_shape, canonical_axis(axis, len(shape)))
    )
    out = [values]
    if return_index:
        first = take_rows(order, starts, 0) if n else starts
        out.append(
            first
            if size is None or not n
            else el.select_n_p.bind(present, linear.broadcast_in_dim(first[:1], (total,), (0,)), first)
        )
    if return_inverse:
        inverse = sort_p.bind(order, rank_of, dimension=0, is_stable=True, num_keys=1)[1]
        out.append(linear.reshape(inverse, shape) if axis is None else inverse)
    if return_counts:
        ends = _first_positions(different, total + 1, n)[1:]
        counts = (
            el.sub(
                el.select_n_p.bind(
                    el.lt(el.add(ops.iota(index_dtype(), (total,), 0), linear.full((total,), 1, index_dtype())), count),
                    linear.full((total,), n, index_dtype()),
                    ends,
                ),
                starts,
            )
            if total
            else starts
        )
        out.append(el.select_n_p.bind(present, linear.full((total,), 0, index_dtype()), counts) if total else counts)
    return out[0] if len(out) == 1 else tuple(out)


def _rows_first(x: Value, axis: int) -> Value:
    shape = shape_of(x)
    x = linear.moveaxis(x, axis, 0)
    return linear.reshape(x, (shape[axis], math.prod(n for d, n in enumerate(shape) if d != axis)))


def _rows_back(x: Value, rest: tuple[Any, ...], axis: int) -> Value:
    return linear.moveaxis(linear.reshape(x, (shape_of(x)[0], *rest)), 0, axis)


def _differs(ordered: Value, equal_nan: bool) -> Value:
    """For each row of a sorted matrix whether it differs from the row before; true for the first."""
    n, width = shape_of(ordered)
    a, b = ops.slice_(ordered, (0, 0), (n - 1, width)), ops.slice_(ordered, (1, 0), (n, width))
    unlike = el.ne(a, b)
    if equal_nan and dtypes.is_inexact(dtype_of(ordered)):
        unlike = el.and_(unlike, el.not_(el.and_(el.ne(a, a), el.ne(b, b))))
    return ops.concatenate([linear.full((1,), True, dtypes.bool_), reduce_or(unlike, (1,))], 0)


def _first_positions(flags: Value, size: int, n: int) -> Value:
    """The positions of the first `size` true flags; n - 1 behind the last."""
    if n == 0:
        return linear.full((size,), 0, index_dtype())
    key = linear.convert(el.not_(flags), index_dtype())
    order = sort_p.bind(key, ops.iota(index_dtype(), (n,), 0), dimension=0, is_stable=True, num_keys=1)[1]
    if size > n:
        order = ops.concatenate([order, linear.full((size - n,), n - 1, index_dtype())], 0)
    return ops.slice_(order, (0,), (size,))


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements, sorted; each NaN counts for itself, as in the functions below.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.unique_values(jnp.array([3, 1, 3]))
        Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """The distinct elements and how often each appears.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts.tolist()
        [1, 2]
    """
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """The distinct elements and, for each element, which of them it is.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices.tolist()
        [1, 0, 1]
    """
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAllResult:
    """The distinct elements, their first positions, inverse and counts.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.unique_all(jnp.array([3, 1, 3])).indices.tolist()
        [1, 0]
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is among `test_elements`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.isin(jnp.array([1, 2]), jnp.array([2, 3]))
        Array([False,  True], dtype=bool)
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(f"isin: unknown method {method!r}; use 'auto', 'compare_all', 'binary_search' or 'sort'.")
    x, tests = [on_device(v) for v in promote("isin", element, test_elements)]
    tests = ravel(tests)
    n = shape_of(tests)[0]
    if n == 0:
        found = linear.full(shape_of(x), False, dtypes.bool_)
    else:
        wide = (*shape_of(x), n)
        rank = len(shape_of(x))
        found = reduce_or(el.eq(linear.expand_dims(x, (rank,)), linear.broadcast_in_dim(tests, wide, (rank,))), (rank,))
    return strong(el.not_(found) if invert else found)


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements of either array, sorted.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.union1d(jnp.array([1, 2]), jnp.array([2, 3]))
        Array([1, 2, 3], dtype=int32)
    """
    return unique(concatenate([ravel(ar1), ravel(ar2)]), size=size, fill_value=fill_value)


def _concrete(name: str, *xs: Value) -> None:
    for x in xs:
        if isinstance(x, Tracer):
            raise ConcretizationTypeError(
                concretization_error(x, f"{name} needs the values, because the number of results depends on them")
            )


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The distinct elements of both arrays, sorted; with `return_indices` also where each array has them first.

    Under jit `size` says how many to return; `fill_value` (the first by default) stands behind the last, and positions
    behind it lie out of bounds.

    Raises:
        ConcretizationTypeError: for traced arrays without `size`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.intersect1d(jnp.array([1, 2, 3]), jnp.array([3, 1]))
        Array([1, 3], dtype=int32)
    """
    a, b = [ravel(v) for v in promote("intersect1d", ar1, ar2)]
    values, _, first, in_a, in_b, nowhere = _merged(a, b)
    chosen = el.and_(first, el.and_(el.lt(in_a, scalar_like(in_a, nowhere)), el.lt(in_b, scalar_like(in_b, nowhere))))
    chosen = el.and_(chosen, el.eq(values, values))  # no NaN equals another
    fill_value = 0 if fill_value is None and nowhere in (shape_of(a)[0], shape_of(b)[0]) else fill_value
    out, starts = _chosen("intersect1d", values, chosen, size, fill_value, a, b)
    if not return_indices:
        return out
    n = shape_of(a)[0]
    found = el.lt(
        ops.iota(dtypes.int32, shape_of(starts), 0), linear.reduce_sum(linear.convert(chosen, dtypes.int32), (0,))
    )
    pick = lambda places, size: (
        el.select_n_p.bind(found, linear.full(shape_of(starts), size, dtypes.int32), take_rows(places, starts, 0))
        if nowhere
        else starts
    )
    return out, pick(in_a, n), pick(el.sub(in_b, scalar_like(in_b, n)), nowhere - n)


def _merged(a: Value, b: Value) -> tuple[Any, ...]:
    """The elements of two vectors sorted, and where they were; whether each differs from the one before; where its
    equals are first in a, and (behind a) in b; and the number of all elements, which is the place of those that are in
    neither.
    """
    n, total = shape_of(a)[0], shape_of(a)[0] + shape_of(b)[0]
    places = ops.iota(dtypes.int32, (total,), 0)
    if not total:
        return concatenate([a, b]), places, el.eq(places, places), places, places, 0
    values, places = sort_p.bind(concatenate([a, b]), places, dimension=0, is_stable=True, num_keys=1)
    first = _differs(linear.expand_dims(values, (1,)), True)
    group = cumsum_p.bind(linear.convert(first, dtypes.int32), axis=0, reverse=False)
    none = linear.full((total,), total, dtypes.int32)
    of_b = el.ge(places, scalar_like(places, n))
    least = lambda mine: take_rows(linear.full((total + 1,), total, dtypes.int32).at[group].min(mine), group, 0)
    return (
        values,
        places,
        first,
        least(el.select_n_p.bind(of_b, places, none)),
        least(el.select_n_p.bind(of_b, none, places)),
        total,
    )


def _chosen(
    name: str, values: Sequence[Value], chosen: Value, size: Any, fill_value: Value, *given: Value
) -> tuple[Value, Value]:
    """The chosen elements of a vector, and their places: as many as `size` says, or all, if they are concrete."""
    n = shape_of(values)[0]
    if size is None:
        _concrete(name, *given)
        total = sum(flat_host(chosen))
    else:
        total = static_int("size", size)
    starts = _first_positions(chosen, total, n)
    picked = take_rows(values, starts, 0) if n else linear.full((total,), 0, dtype_of(values))
    if size is None or not total:
        return picked, starts
    if n:
        least = ops.slice_(picked, (0,), (1,))
        none = el.not_(reduce_or(chosen, (0,)))
        least = el.select_n_p.bind(linear.broadcast_in_dim(none, (1,), ()), least, ops.slice_(values, (0,), (1,)))
    else:
        least = picked[:1]
    fill = (
        linear.broadcast_in_dim(least, (total,), (0,))
        if fill_value is None
        else linear.full((total,), fill_value, dtype_of(values))
    )
    count = linear.reduce_sum(linear.convert(chosen, dtypes.int32), (0,))
    return el.select_n_p.bind(el.lt(ops.iota(dtypes.int32, (total,), 0), count), fill, picked), starts


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements of the first array that are not in the second, sorted.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.setdiff1d(jnp.array([1, 2, 3]), jnp.array([3]))
        Array([1, 2], dtype=int32)
    """
    a, b = [ravel(operand("setdiff1d", v)) for v in (ar1, ar2)]
    if size is None:
        _concrete("setdiff1d", a, b)
        values = a if assume_unique else unique(a)
        return values[isin(values, b, invert=True)]
    kept = isin(a, b, invert=True)
    fill = 0 if fill_value is None else fill_value
    ordered = sort_p.bind(linear.convert(el.not_(kept), index_dtype()), a, dimension=0, is_stable=True, num_keys=2)
    first = el.and_(el.eq(ordered[0], scalar_like(ordered[0], 0)), _differs(linear.expand_dims(ordered[1], (1,)), True))
    picked = take_rows(ordered[1], _first_positions(first, size, shape_of(a)[0]), 0)
    count = linear.reduce_sum(linear.convert(first, index_dtype()), (0,))
    return el.select_n_p.bind(
        el.lt(ops.iota(index_dtype(), (size,), 0), count), linear.full((size,), fill, dtype_of(a)), picked
    )


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements of exactly one of two arrays, sorted; under jit `size` says how many to return, and
    `fill_value` what stands behind the last.

    Raises:
        ConcretizationTypeError: for traced arrays without `size`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3]))
        Array([1, 3], dtype=int32)
    """
    a, b = [ravel(v) for v in promote("setxor1d", ar1, ar2)]
    values, places, first, in_a, in_b, nowhere = _merged(a, b)
    only_one = el.ne(el.lt(in_a, scalar_like(in_a, nowhere)), el.lt(in_b, scalar_like(in_b, nowhere)))
    # no NaN equals another
    of_either = el.and_(el.ne(values, values), el.or_(el.eq(places, in_a), el.eq(places, in_b)))
    return _chosen("setxor1d", values, el.or_(el.and_(first, only_one), of_either), size, fill_value, a, b)[0]
