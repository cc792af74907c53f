"""Arrays as sets: distinct elements, membership, unions, intersections and differences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Sequence, overload

from ..base import dtypes
from ..core.trace import Tracer
from ..base.errors import ConcretizationTypeError
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.reduce import cumsum_p, reduce_or
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.sort import sort_p
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike
from .shapes import ravel, take_rows
from .joining import concatenate
from .util import canonical_axis, flat_host, index_dtype, on_device, operand, promote, static_int, strong

if TYPE_CHECKING:
    from ..core.types import Value


__all__ = [
    "intersect1d",
    "isin",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAllResult(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """The results of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """The results of `unique_inverse`."""

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

    Args:
        ar: array of numbers or booleans, any shape.
        return_index: bool: return the first positions too.
        return_inverse: bool: return for each element which of the distinct ones it is, too.
        return_counts: bool: return how often each appears, too.
        axis: int, the axis of slices; None for elements.
        equal_nan: bool: NaN equals NaN.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.
        sorted: bool: the result is sorted.

    Returns:
        array of the dtype of ar, shape (size,); or a tuple of it and of vectors of integers.

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
        return _unique_of_none(x, size or 0, fill_value, return_index, return_inverse, return_counts)
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
        out.append(_counts(starts, ends, present, count, n) if total else starts)
    return out[0] if len(out) == 1 else tuple(out)


def _unique_of_none(
    x: Value, size: int, fill_value: ArrayLike | None, return_index: bool, return_inverse: bool, return_counts: bool
) -> Array | tuple[Array, ...]:
    """The results of `unique` for an array without elements."""
    if size and fill_value is None:
        raise ValueError(f"unique: an empty array has no value to fill size={size} with; give fill_value.")
    none = linear.full((size,), 0, index_dtype())
    found = (
        linear.full((size,), 0 if fill_value is None else fill_value, dtype_of(x)),
        *[none] * return_index,
        *[linear.full(shape_of(x), 0, index_dtype())] * return_inverse,
        *[none] * return_counts,
    )
    return found if len(found) > 1 else found[0]


def _counts(starts: Value, ends: Value, present: Value, count: Value, n: int) -> Value:
    """How often each distinct row appears among n: from its first position to that of the next one, which after the
    last of the `count` distinct ones is n; zero where a row only fills the result up.
    """
    (total,) = shape_of(starts)
    after = el.add(ops.iota(index_dtype(), (total,), 0), linear.full((total,), 1, index_dtype()))
    ends = el.select_n_p.bind(el.lt(after, count), linear.full((total,), n, index_dtype()), ends)
    return el.select_n_p.bind(present, linear.full((total,), 0, index_dtype()), el.sub(ends, starts))


def _rows_first(x: Value, axis: int) -> Value:
    shape = shape_of(x)
    x = linear.moveaxis(x, axis, 0)
    return linear.reshape(x, (shape[axis], math.prod(n for d, n in enumerate(shape) if d != axis)))


def _rows_back(x: Value, rest: tuple[Any, ...], axis: int) -> Value:
    return linear.moveaxis(linear.reshape(x, (shape_of(x)[0], *rest)), 0, axis)


def _differs(ordered: Value, equal_nan: bool) -> Value:
    """For each row of a sorted matrix, whether it differs from the row before; true for the first."""
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

    Args:
        x: array of numbers or booleans, any shape.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        array of the dtype of x, shape (size,).

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

    Args:
        x: array of numbers or booleans, any shape.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        (values, counts): arrays of the dtype of x and of integers, shape (size,).

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

    Args:
        x: array of numbers or booleans, any shape.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        (values, inverse): of the dtype of x and shape (size,); integers of the shape of x.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices.tolist()
        [1, 0, 1]
    """
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAllResult:
    """The distinct elements, their first positions, inverse and counts.

    Args:
        x: array of numbers or booleans, any shape.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        (values, indices, inverse_indices, counts): values of the dtype of x, and integers; the inverse has the shape of
        x, the others (size,).

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

    Args:
        element, test_elements: array of numbers or booleans, any shape.
        assume_unique: bool: promises that no element occurs twice.
        invert: bool: whether each is not among them.
        method: 'auto', 'compare_all', 'binary_search' or 'sort': how elements are found.

    Returns:
        array of booleans, the shape of `element`.

    Raises:
        ValueError: the method is unknown.

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

    Args:
        ar1, ar2: array of numbers or booleans, any shape.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        array of the dtype to which both promote, shape (size,).

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

    Args:
        ar1, ar2: array of numbers or booleans, any shape.
        assume_unique: bool: promises that no element occurs twice.
        return_indices: bool.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        array of the dtype to which both promote, shape (size,); with `return_indices` a tuple of it and two vectors of
        integers.

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

    Args:
        ar1, ar2: array of numbers or booleans, any shape.
        assume_unique: bool: promises that no element occurs twice.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        array of the dtype of ar1, shape (size,).

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

    Args:
        ar1, ar2: array of numbers or booleans, any shape.
        assume_unique: bool: promises that no element occurs twice.
        size: int, how many are returned, which must be known under jit; None for as many as there are.
        fill_value: number that fills the result up to `size`.

    Returns:
        array of the dtype to which both promote, shape (size,).

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
