"""Sorting, searching and sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.avals import SymbolicSize
from ..base.host import np
from ..runtime.jit import inner_jit
from ..core.trace import get_aval
from ..primitives import elementwise as el, bitwise
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.sort import sort_p
from ..typing import Array, ArrayLike, DTypeLike
from .creation import array
from .shapes import ravel, take_rows
from .joining import concatenate
from .comparisons import greater_equal
from .ufuncs import where_jit
from .util import asked_dtype, canonical_axis, index_dtype, on_device, operand, promote

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort", "sort_complex"]


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

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, the axis; None for the flattened array.
        kind: NumPy's name of an algorithm, without effect.
        order: None: arrays have no fields.
        stable: bool: equal elements keep their order.
        descending: bool: the largest first.

    Returns:
        array of the dtype of a, and its shape or (n,).

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
    # ascending with descending positions, then reversed: equal elements keep their order
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

    Args:
        a: array of numbers or booleans, any shape.
        axis: int, the axis; None for the flattened array.
        kind: NumPy's name of an algorithm, without effect.
        order: None: arrays have no fields.
        stable: bool: equal elements keep their order.
        descending: bool: the largest first.
        dtype: dtype of the result; None for that of the argument.

    Returns:
        array of integers, the shape of a or (n,).

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

    Args:
        keys: sequence of arrays of one shape, or an array whose first axis is taken apart.
        axis: int, the axis; negative ones count from the end.

    Returns:
        array of integers, the shape of one key.

    Raises:
        TypeError: for an empty sequence.

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

    Args:
        a: array of numbers or booleans, any shape.
        kth: int, the position.
        axis: int, the axis; negative ones count from the end.

    Returns:
        array of the dtype and shape of a.

    Raises:
        ValueError: for a position out of bounds.

    Example:
        >>> import weft.numpy as jnp
        >>> int(jnp.partition(jnp.array([3, 1, 2]), 1)[1])
        2
    """
    x = _partitioned("partition", a)
    axis = canonical_axis(axis, len(shape_of(x)))
    k = canonical_axis(kth, shape_of(x)[axis], "kth") + 1
    out = sort(x, axis)  # ascending up to kth, descending after it, as in JAX
    return concatenate([_along(out, axis, 0, k), ops.rev(_along(out, axis, k, shape_of(x)[axis]), (axis,))], axis)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The positions of a `partition`.

    Args:
        a: array of numbers or booleans, any shape.
        kth: int, the position.
        axis: int, the axis; negative ones count from the end.

    Returns:
        array of integers, the shape of a.

    Raises:
        ValueError: for a position out of bounds.

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

    Args:
        a: array of numbers or booleans, any shape.

    Returns:
        array of complex numbers, the shape of a.

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

    Args:
        a: array of numbers, shape (n,), ascending.
        v: array of numbers, any shape.
        side: 'left' before equal elements, or 'right' behind them.
        sorter: array of integers, shape (n,), that sorts a; None for a sorted a.
        method: 'scan', 'scan_unrolled', 'sort' or 'compare_all': how positions are found.

    Returns:
        array of integers, the shape of v.

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
                f"searchsorted: sorter must be integers, got {get_aval(sorter)}; pass the result of argsort(a)."
            )
        a = take_rows(a, linear.convert(sorter, dtypes.int32), 0)
    return _searchsorted(a, v, side)


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin in which each element lies; bins may run up or down.

    Args:
        x: array of numbers or booleans, any shape.
        bins: array of real numbers, shape (n,), ascending or descending.
        right: bool: bins include their right ends, not their left ones.
        method: 'scan', 'scan_unrolled', 'sort' or 'compare_all': how bins are found.

    Returns:
        array of integers, the shape of x.

    Raises:
        ValueError: for bins that are no vector.

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
