"""Products, transposes and triangles of stacks of matrices, for the rules of linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from ..base import dtypes
from .dot import dot_general
from .elementwise import add, conj, div, eq, ge, mul, real, select
from .linear import broadcast_in_dim, convert, full, reduce_sum, transpose
from .rules import dtype_of, scalar_like, shape_of
from .shape import iota, pad

if TYPE_CHECKING:
    from ..core.types import ElementType, Size, Value

EXACT = ("highest", "highest")  # factorisations lose too much where products are rounded coarsely


def matmul(x: Value, y: Value) -> Value:
    """The product of matrices in the last two axes; the axes before them are equal."""
    rank = len(shape_of(x))
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)), precision=EXACT)


def mT(x: Value) -> Value:
    """The matrices transposed."""
    rank = len(shape_of(x))
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def conjugate(x: Value) -> Value:
    return conj(x) if dtypes.is_complex(dtype_of(x)) else x


def real_part(x: Value) -> Value:
    return real(x) if dtypes.is_complex(dtype_of(x)) else x


def mH(x: Value) -> Value:
    """The matrices transposed and conjugated."""
    return conjugate(mT(x))


def index(shape: Sequence[Size], axis: int) -> Value:
    """An array of `shape` that holds the position along `axis`."""
    return iota(dtypes.int32, shape, axis % len(shape))


def lower_mask(shape: Sequence[Size], k: int = 0) -> Value:
    """Where row + k >= column, over the last two axes."""
    rows = index(shape, -2)
    return ge(add(rows, scalar_like(rows, k)) if k else rows, index(shape, -1))


def tril(x: Value, k: int = 0) -> Value:
    """The lower triangles up to diagonal `k`; zeros elsewhere."""
    shape = shape_of(x)
    return select(lower_mask(shape, k), x, full(shape, 0, dtype_of(x)))


def triu(x: Value, k: int = 0) -> Value:
    """The upper triangles from diagonal `k`; zeros elsewhere."""
    shape = shape_of(x)
    return select(lower_mask(shape, k - 1), full(shape, 0, dtype_of(x)), x)


def symmetrized(x: Value) -> Value:
    """(x + its conjugate transpose) / 2."""
    both = add(x, mH(x))
    return div(both, scalar_like(both, 2))


def eye(shape: Sequence[Size], dtype: ElementType) -> Value:
    """Identity matrices of `shape`."""
    return convert(eq(index(shape, -2), index(shape, -1)), dtype)


def rows(v: Value, n: int) -> Value:
    """v[..., k] as a matrix of n rows, each of them v."""
    shape = shape_of(v)
    return broadcast_in_dim(v, (*shape[:-1], n, shape[-1]), (*range(len(shape) - 1), len(shape)))


def columns(v: Value, n: int) -> Value:
    """v[..., k] as a matrix of n columns, each of them v."""
    shape = shape_of(v)
    return broadcast_in_dim(v, (*shape, n), tuple(range(len(shape))))


def diagonal(x: Value) -> Value:
    """The diagonals of square matrices."""
    shape = shape_of(x)
    return reduce_sum(select(eq(index(shape, -2), index(shape, -1)), x, full(shape, 0, dtype_of(x))), (len(shape) - 1,))


def diagonal_matrix(v: Value) -> Value:
    """Square matrices with the diagonals v[..., k]."""
    n = shape_of(v)[-1]
    wide = columns(v, n)
    shape = shape_of(wide)
    return select(eq(index(shape, -2), index(shape, -1)), wide, full(shape, 0, dtype_of(v)))


def scale_columns(x: Value, v: Value) -> Value:
    """Column j of x times v[..., j]."""
    return mul(x, rows(convert(v, dtype_of(x)), shape_of(x)[-2]))


def scale_rows(x: Value, v: Value) -> Value:
    """Row i of x times v[..., i]."""
    return mul(x, columns(convert(v, dtype_of(x)), shape_of(x)[-1]))


def pad_to(x: Value, rows_: int, columns_: int) -> Value:
    """The matrices with zeros below and to the right, up to a size."""
    *batch, m, n = shape_of(x)
    if (m, n) == (rows_, columns_):
        return x
    return pad(x, scalar_like(x, 0), [(0, 0, 0)] * len(batch) + [(0, rows_ - m, 0), (0, columns_ - n, 0)])


def where_each(ok: Value, x: Value, otherwise: Value) -> Value:
    """For each matrix (vector) of a stack: `x` where ok[...], else the scalar `otherwise`."""
    shape = shape_of(x)
    wide = broadcast_in_dim(ok, shape, tuple(range(len(shape_of(ok)))))
    return select(wide, x, full(shape, otherwise, dtype_of(x)))


__all__ = [
    "EXACT",
    "columns",
    "conjugate",
    "diagonal",
    "diagonal_matrix",
    "eye",
    "index",
    "lower_mask",
    "mH",
    "mT",
    "matmul",
    "pad_to",
    "real_part",
    "rows",
    "scale_columns",
    "scale_rows",
    "symmetrized",
    "tril",
    "triu",
    "where_each",
]
