"""Diagonals and triangles: diag, diagonal, trace, tril, triu, and the indices of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import dtypes
from ..runtime.jit import inner_jit
from ..core.trace import get_aval
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..typing import Array, ArrayLike, DTypeLike
from .creation import array, lower_mask
from .shapes import moveaxis, ravel
from .ufuncs import where_jit
from .util import (
    accumulator,
    asked_dtype,
    canonical_axis,
    canonical_shape,
    index_dtype,
    no_out,
    on_device,
    operand,
    static_int,
    strong,
)

if TYPE_CHECKING:
    from ..core.types import Value
    from ..base.dtypes import ElementType

__all__ = [
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "diagonal",
    "fill_diagonal",
    "trace",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "triu",
    "triu_indices",
    "triu_indices_from",
]


@inner_jit(name="_diag", static_argnums=(1,))
def _diag(v: Value, k: int) -> Value:
    v = ops.pad(v, scalar_like(v, 0), ((max(0, k), max(0, -k), 0),))
    n = shape_of(v)[0]
    rows, columns = ops.iota(dtypes.int32, (n, n), 0), ops.iota(dtypes.int32, (n, n), 1)
    on_diagonal = el.eq(el.add(rows, scalar_like(rows, k)), columns)
    # column j holds element j for k >= 0, row i element i for k < 0
    return where_jit(on_diagonal, linear.expand_dims(v, (0 if k else 1,)), scalar_like(v, 0))


def diag(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with `v` on its k-th diagonal, or the k-th diagonal of a matrix.

    Args:
        v: array of any dtype, of rank 1 or 2.
        k: int: how far the diagonal lies above the main one.

    Returns:
        array of the dtype of v: shape (n + abs(k), n + abs(k)) for n elements, or the vector of a matrix's diagonal.

    Raises:
        ValueError: `v` does not have one or two axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.diag(jnp.array([1, 2])).tolist()
        [[1, 0], [0, 2]]
    """
    x, k = on_device(operand("diag", v)), static_int("k", k)
    rank = len(shape_of(x))
    if rank == 1:
        return _diag(x, k)
    if rank == 2:
        return diagonal(x, k)
    raise ValueError(f"diag input must be 1d or 2d, got shape {shape_of(x)}.")


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with the flattened `v` on its k-th diagonal.

    Args:
        v: array of any dtype, any shape.
        k: int: how far the diagonal lies above the main one.

    Returns:
        array of the dtype of v and shape (n + abs(k), n + abs(k)) for n elements.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.diagflat(jnp.array([1, 2])).tolist()
        [[1, 0], [0, 2]]
    """
    return strong(_diag(ravel(v), static_int("k", k)))


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of two axes, as the last axis.

    Args:
        a: array of any dtype, of rank at least 2.
        offset: int: how far the diagonal lies above the main one.
        axis1: int, the first of the two axes.
        axis2: int, the second of the two axes.

    Returns:
        array of the dtype of a; its last axis is the diagonal, in place of the two axes.

    Raises:
        ValueError: `a` has fewer than two axes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    x = on_device(operand("diagonal", a))
    if len(shape_of(x)) < 2:
        raise ValueError(f"diagonal requires an array of at least two dimensions, got shape {shape_of(x)}.")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    n, m = shape_of(x)[-2:]
    offset = static_int("offset", offset)
    length = max(0, min(n + min(offset, 0), m - max(offset, 0)))
    i = ops.iota(dtypes.int32, (length,), 0)
    rows, columns = el.add(i, scalar_like(i, max(0, -offset))), el.add(i, scalar_like(i, max(0, offset)))
    return strong(x[..., rows, columns])


@inner_jit(name="trace", static_argnums=(2, 3, 4))
def _trace(x: Value, offset: Value | None, axis1: int, axis2: int, dt: ElementType) -> Value:
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    shape = shape_of(x)
    rows, columns = ops.iota(dtypes.int32, shape[-2:], 0), ops.iota(dtypes.int32, shape[-2:], 1)
    above = scalar_like(rows, 0) if offset is None else linear.convert(offset, dtypes.int32)
    mask = el.eq(el.add(rows, above), columns)
    masked = where_jit(mask, x, linear.full(shape, 0, dtype_of(x)))
    return linear.reduce_sum(linear.convert(masked, dt), (len(shape) - 2, len(shape) - 1))


def trace(
    a: ArrayLike,
    offset: int | ArrayLike = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of the diagonal of two axes.

    Args:
        a: array of numbers, of rank at least 2.
        offset: int: how far the diagonal lies above the main one.
        axis1: int, the first of the two axes.
        axis2: int, the second of the two axes.
        dtype: dtype of the result; None for that of the argument.
        out: None, since arrays are immutable.

    Returns:
        array of that dtype and the shape of a without the two axes.

    Raises:
        ValueError: `a` has fewer than two axes, the two axes are the same, or `offset` is not an integer.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    no_out("trace", out)
    x = operand("trace", a)
    if len(shape_of(x)) < 2:
        raise ValueError(f"trace takes arrays of rank 2 or more, got shape {shape_of(x)}.")
    if canonical_axis(int(axis1), len(shape_of(x))) == canonical_axis(int(axis2), len(shape_of(x))):
        raise ValueError(f"trace: axis1 and axis2 must differ, got {axis1} and {axis2}.")
    above = operand("trace", offset)
    if not dtypes.is_int(dtype_of(above)) or shape_of(above):
        raise ValueError(f"trace: offset must be an integer, got {get_aval(above)}.")
    given = None if type(offset) is int and offset == 0 else above
    return _trace(x, given, int(axis1), int(axis2), asked_dtype("trace", dtype) or accumulator(get_aval(x).dtype))


def _triangle(x: Any, k: int, below: bool) -> Array:
    shape = shape_of(x)
    mask = lower_mask(shape[-2], shape[-1], k if below else k - 1)
    if len(shape) > 2:
        mask = linear.broadcast_in_dim(mask, shape, (len(shape) - 2, len(shape) - 1))
    zeros = linear.full(shape, 0, dtype_of(x), get_aval(x).weak_type)
    return el.select_n_p.bind(mask, zeros, x) if below else el.select_n_p.bind(mask, x, zeros)


@inner_jit(name="tril", static_argnums=(1,))
def _tril(x: Any, k: int) -> Array:
    return _triangle(x, k, True)


@inner_jit(name="triu", static_argnums=(1,))
def _triu(x: Any, k: int) -> Array:
    return _triangle(x, k, False)


def _matrix(name: str, m: ArrayLike) -> Any:
    x = operand(name, m)
    if len(shape_of(x)) < 2:
        raise ValueError(f"{name} takes arrays of rank 2 or more, got shape {shape_of(x)}.")
    return x


def tril(m: ArrayLike, k: int = 0) -> Array:
    """The array with everything above the k-th diagonal set to zero, over the last two axes.

    Args:
        m: array of any dtype, of rank at least 2.
        k: int: how far the diagonal lies above the main one.

    Returns:
        array of the dtype and shape of m.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.tril(jnp.ones((2, 2)))
    """
    return _tril(_matrix("tril", m), static_int("k", k))


def triu(m: ArrayLike, k: int = 0) -> Array:
    """The array with everything below the k-th diagonal set to zero, over the last two axes.

    Args:
        m: array of any dtype, of rank at least 2.
        k: int: how far the diagonal lies above the main one.

    Returns:
        array of the dtype and shape of m.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.triu(jnp.ones((2, 2)))
    """
    return _triu(_matrix("triu", m), static_int("k", k))


def _columns(pairs: list[tuple[int, int]]) -> tuple[Array, Array]:
    return array([i for i, _ in pairs], index_dtype()), array([j for _, j in pairs], index_dtype())


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The positions at and below the k-th diagonal of an n × m matrix.

    Args:
        n: int, the number of rows.
        k: int: how far the diagonal lies above the main one.
        m: int, the number of columns; None for n.

    Returns:
        (rows, columns), two vectors of integers of one size.

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.tril_indices(2)]
        [[0, 1, 1], [0, 0, 1]]
    """
    canonical_shape((n, n if m is None else m))
    pairs = [(i, j) for i in range(n) for j in range(min(n if m is None else m, max(0, i + k + 1)))]
    return _columns(pairs)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The positions at and above the k-th diagonal of an n × m matrix.

    Args:
        n: int, the number of rows.
        k: int: how far the diagonal lies above the main one.
        m: int, the number of columns; None for n.

    Returns:
        (rows, columns), two vectors of integers of one size.

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.triu_indices(2)]
        [[0, 0, 1], [0, 1, 1]]
    """
    pairs = [(i, j) for i in range(n) for j in range(max(0, i + k), n if m is None else m)]
    return _columns(pairs)


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for the shape of a matrix.

    Args:
        arr: array of any dtype, of rank 2.
        k: int: how far the diagonal lies above the main one.

    Returns:
        (rows, columns), two vectors of integers of one size.

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.tril_indices_from(jnp.eye(2))]
        [[0, 1, 1], [0, 0, 1]]
    """
    n, m = shape_of(operand("tril_indices_from", arr))
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for the shape of a matrix.

    Args:
        arr: array of any dtype, of rank 2.
        k: int: how far the diagonal lies above the main one.

    Returns:
        (rows, columns), two vectors of integers of one size.

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.triu_indices_from(jnp.eye(2))]
        [[0, 0, 1], [0, 1, 1]]
    """
    n, m = shape_of(operand("triu_indices_from", arr))
    return triu_indices(n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The positions of the main diagonal of an array with `ndim` axes of size n.

    Args:
        n: int, the size of each axis.
        ndim: int, the number of axes.

    Returns:
        tuple of `ndim` vectors of integers, each of shape (n,).

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.diag_indices(2)]
        [[0, 1], [0, 1]]
    """
    return (ops.iota(index_dtype(), (n,), 0),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """`diag_indices` for the shape of an array.

    Args:
        arr: array of any dtype, whose axes, at least 2, have one size n.

    Returns:
        tuple of vectors of integers, one for each axis, each of shape (n,).

    Raises:
        ValueError: the axes of `arr` have different sizes.

    Example:
        >>> import weft.numpy as jnp
        >>> [i.tolist() for i in jnp.diag_indices_from(jnp.eye(2))]
        [[0, 1], [0, 1]]
    """
    shape = shape_of(operand("diag_indices_from", arr))
    if len(set(shape)) != 1 or len(shape) < 2:
        raise ValueError(f"diag_indices_from takes arrays whose axes have one size, got shape {shape}.")
    return diag_indices(shape[0], len(shape))


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A new array with `val` on its main diagonal; give inplace=False.

    Args:
        a: array of any dtype, of rank at least 2.
        val: number or array: what stands on the diagonal, repeated as often as needed.
        wrap: bool: begin the diagonal anew below where a tall matrix ends it.
        inplace: bool, which must be False, since arrays are immutable.

    Returns:
        array of the dtype and shape of a.

    Raises:
        NotImplementedError: `inplace` is not False, or `wrap` is True.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 3., inplace=False).tolist()
        [[3.0, 0.0], [0.0, 3.0]]
    """
    if wrap:
        raise NotImplementedError(
            "fill_diagonal: wrap=True is not supported; fill the blocks of a tall matrix one by one."
        )
    if inplace:
        raise NotImplementedError("arrays are immutable: call fill_diagonal with inplace=False and use its result.")
    x = on_device(operand("fill_diagonal", a))
    n = min(shape_of(x))
    i = ops.iota(dtypes.int32, (n,), 0)
    val = ravel(val)
    m = shape_of(val)[0]
    val = val[:n] if m >= n or not m else val[el.rem(i, scalar_like(i, m))]
    return x.at[(i,) * len(shape_of(x))].set(val)
