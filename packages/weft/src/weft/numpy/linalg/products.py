"""Products of matrices and vectors, diagonals and traces, as the array API standard has them."""

from __future__ import annotations

from typing import Sequence

from ...lax.dots import PrecisionLike
from ...primitives.rules import shape_of
from ...typing import Array, ArrayLike, DTypeLike, OutSharding
from .. import diagonals, products
from ..products import vecdot
from ..shapes import matrix_transpose
from ..util import canonical_axis, on_device, operand

__all__ = ["cross", "diagonal", "matmul", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace", "vecdot"]


def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """`weft.numpy.matmul`, as the array API standard has it.

    Args:
        x1: array of numbers, shape (..., n, k) or (k,).
        x2: array of numbers, shape (..., k, m) or (k,).
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that to which the arguments promote.

    Returns:
        array of the dtype to which both promote, shape (..., n, m).

    Raises:
        TypeError: if the contracted sizes differ.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.matmul(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    return products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """`weft.numpy.tensordot`, as the array API standard has it.

    Args:
        x1, x2: array of numbers or booleans, any shape.
        axes: int, or two sequences of ints: the axes of x1, and those of x2.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that to which the arguments promote.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of the dtype to which both promote; the axes of x1 that are left come first.

    Raises:
        TypeError: if sizes differ or axes do not match.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)))
        Array(6., dtype=float32)
    """
    return products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products x1[i] x2[j] of two vectors.

    Args:
        x1: array of numbers, shape (n,).
        x2: array of numbers, shape (m,).

    Returns:
        array of the dtype to which both promote, shape (n, m).

    Raises:
        ValueError: for arrays that are not vectors.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4])).tolist()
        [[3, 4], [6, 8]]
    """
    x, y = operand("outer", x1), operand("outer", x2)
    if len(shape_of(x)) != 1 or len(shape_of(y)) != 1:
        raise ValueError(
            f"outer takes vectors, got x1 of shape {shape_of(x)} and x2 of shape {shape_of(y)}. Flatten them with ravel"
            " first."
        )
    return products.outer(x, y)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three components.

    Args:
        x1: array of numbers, of size 3 along the axis.
        x2: array of numbers, of size 3 along the axis; other axes broadcast.
        axis: int, the axis; negative ones count from the end.

    Returns:
        array of the dtype to which both promote, the broadcast shape.

    Raises:
        ValueError: where the axis has another size.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    sizes = [shape_of(x)[canonical_axis(axis, len(shape_of(x)))] for x in (operand("cross", x1), operand("cross", x2))]
    if sizes != [3, 3]:
        raise ValueError(
            f"cross takes vectors of 3 components along axis {axis}, got {sizes[0]} of x1 and {sizes[1]} of x2."
            " weft.numpy.cross takes 2 as well."
        )
    return products.cross(x1, x2, axis=axis)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of the last two axes.

    Args:
        x: array of any dtype, shape (..., m, n).
        offset: int: how far the diagonal lies above the main one.

    Returns:
        array of the dtype of x, shape (..., size of the diagonal).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    return diagonals.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of the last two axes.

    Args:
        x: array of numbers, shape (..., m, n).
        offset: int: how far the diagonal lies above the main one.
        dtype: dtype of the result; None for that of the argument.

    Returns:
        array of that dtype, shape (...).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.trace(jnp.ones((3, 2, 2)))
        Array([2., 2., 2.], dtype=float32)
    """
    return diagonals.trace(x, offset, -2, -1, dtype)


def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array:
    """The product of several matrices, the cheapest order first.

    Args:
        arrays: sequence of at least two matrices, the first and the last of which may be vectors.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.

    Returns:
        array of the dtype to which all promote, the shape of the product.

    Raises:
        ValueError: for fewer than two arrays.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones((4, 1))]).shape
        (2, 1)
    """
    xs = [on_device(operand("multi_dot", a)) for a in arrays]
    if len(xs) < 2:
        raise ValueError("multi_dot needs at least two arrays.")
    shapes = [shape_of(x) for x in xs]
    if any(len(s) != 2 for s in shapes[1:-1]) or any(len(s) not in (1, 2) for s in (shapes[0], shapes[-1])):
        raise ValueError(f"multi_dot takes matrices, and vectors first and last, got shapes {shapes}.")
    if any(a[-1] != b[0] for a, b in zip(shapes, shapes[1:])):
        raise ValueError(f"multi_dot: the last size of each array must be the first of the next, got shapes {shapes}.")
    while len(xs) > 2:
        costs = [
            (shape_of(a)[-1] * shape_of(b)[-1] * (shape_of(a)[0] if len(shape_of(a)) > 1 else 1), i)
            for i, (a, b) in enumerate(zip(xs, xs[1:]))
        ]
        i = min(costs)[1]
        xs[i : i + 2] = [matmul(xs[i], xs[i + 1], precision=precision)]
    return matmul(*xs, precision=precision)
