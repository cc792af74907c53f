"""Products of arrays: dot, matmul, tensordot, inner, outer, kron, cross, …"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..core.trace import get_aval
from ..base.errors import type_error
from ..lax.dots import PrecisionLike, canonical_precision
from ..primitives import dot as ops
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.rules import dtype_of, shape_of
from ..typing import Array, ArrayLike, DTypeLike, OutSharding
from ..base.mesh import NamedSharding
from ..transforms.auto_axes import with_out_sharding
from .shapes import moveaxis, unstack
from .joining import stack
from .ufuncs import multiply, subtract
from .util import asked_dtype, canonical_axes, canonical_axis, on_device, laid_out, operand, promote, strong

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "vdot", "vecdot", "vecmat"]


def _contract(
    x: Value,
    y: Value,
    numbers: Any,
    precision: PrecisionLike,
    preferred: DTypeLike | None,
    weak: bool,
    where: NamedSharding | None = None,
) -> Value:
    """dot_general whose result type is that of the promoted operands."""
    dt = dtype_of(x) if preferred is None else preferred
    if dtypes.is_bool(dtype_of(x)) and preferred is None:
        out = ops.dot_general(
            linear.convert(x, dtypes.int32),
            linear.convert(y, dtypes.int32),
            numbers,
            precision=canonical_precision(precision),
            preferred_element_type=dtypes.int32,
            out_sharding=where,
        )
        return linear.convert(out, dtypes.bool_)
    out = ops.dot_general(
        x,
        y,
        numbers,
        precision=canonical_precision(precision),
        preferred_element_type=dt,
        out_sharding=where,
    )
    return linear.convert(out, dt, weak and preferred is None)


def _operands(name: str, a: Value, b: Value) -> tuple[Value, Value, Value]:
    x, y = promote(name, a, b)
    x, y = on_device(x), on_device(y)
    return x, y, get_aval(x).weak_type and get_aval(y).weak_type


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The product over the last axis of `a` and the second to last of `b` (its only one, if it is a vector).

    Args:
        a: array of numbers or booleans, any shape.
        b: array of numbers or booleans, any shape whose size fits.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that to which the arguments promote.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of the dtype to which both promote; the axes of a that are left come first.

    Raises:
        TypeError: if those sizes differ.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.dot(jnp.array([1, 2]), jnp.array([3, 4]))
        Array(11, dtype=int32)
    """
    x, y, weak = _operands("dot", a, b)
    m, n = len(shape_of(x)), len(shape_of(y))
    preferred = asked_dtype("dot", preferred_element_type)
    contract = ((), ()) if not m or not n else ((m - 1,), (max(n - 2, 0),))
    return with_out_sharding(
        "dot",
        out_sharding,
        lambda where: _contract(x, y, (contract, ((), ())), precision, preferred, weak, where),
    )


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The matrix product; vectors are rows on the left and columns on the right, leading axes broadcast.

    Args:
        a: array of numbers, shape (..., n, k) or (k,).
        b: array of numbers, shape (..., k, m) or (k,).
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that to which the arguments promote.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of the dtype to which both promote, shape (..., n, m), without the axis of a vector.

    Raises:
        TypeError: if the contracted sizes differ. ValueError: for scalars, or leading axes that do not broadcast.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.matmul(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    if out_sharding is not None:
        plain = lambda: matmul(a, b, precision=precision, preferred_element_type=preferred_element_type)
        ranks = [len(shape_of(on_device(operand("matmul", v)))) for v in (a, b)]
        if max(ranks) > 2 or min(ranks) < 1:
            return laid_out("matmul", plain, out_sharding)
        return dot(a, b, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding)
    x, y, weak = _operands("matmul", a, b)
    for i, v in enumerate((x, y)):
        if not shape_of(v):
            raise ValueError(f"matmul input operand {i} must have ndim at least 1, but it has ndim 0.")
    preferred = asked_dtype("matmul", preferred_element_type)
    xs, ys = shape_of(x), shape_of(y)
    if xs[-1] != ys[max(len(ys) - 2, 0)]:
        raise type_error(
            f"matmul: the contracting dimensions differ in size, {xs[-1]} and {ys[max(len(ys) - 2, 0)]}: "
            f"matmul of shapes {xs} and {ys}."
        )
    lead_x, lead_y = xs[:-2], ys[:-2]
    # batch axes that both operands have with equal sizes; the others are free axes of their operand
    rank = max(len(lead_x), len(lead_y))
    wide_x, wide_y = (1,) * (rank - len(lead_x)) + lead_x, (1,) * (rank - len(lead_y)) + lead_y
    drop_x, drop_y, batch_x, batch_y, order_free_x, order_free_y, plan = [], [], [], [], [], [], []
    for i, (n, m) in enumerate(zip(wide_x, wide_y)):
        if n != m and 1 not in (n, m):
            raise ValueError(f"Incompatible shapes for broadcasting: matmul of shapes {xs} and {ys}.")
        dx, dy = i - (rank - len(lead_x)), i - (rank - len(lead_y))
        if n == m and dx >= 0 and dy >= 0:
            batch_x.append(dx)
            batch_y.append(dy)
            plan.append(("b", len(batch_x) - 1))
        elif dy < 0 or (m == 1 and dx >= 0):
            if dy >= 0:
                drop_y.append(dy)
            order_free_x.append(dx)
            plan.append(("x", len(order_free_x) - 1))
        else:
            if dx >= 0:
                drop_x.append(dx)
            order_free_y.append(dy)
            plan.append(("y", len(order_free_y) - 1))
    shift = lambda dims, dropped: tuple(d - sum(e < d for e in dropped) for d in dims)
    x, y = linear.squeeze(x, drop_x), linear.squeeze(y, drop_y)
    cx, cy = (len(shape_of(x)) - 1,), (max(len(shape_of(y)) - 2, 0),) if len(ys) > 1 else (len(shape_of(y)) - 1,)
    bx, by = shift(batch_x, drop_x), shift(batch_y, drop_y)
    out = _contract(x, y, ((cx, cy), (bx, by)), precision, preferred, weak)
    # the axes are now: batch, free leading ones of x, row of x, free leading ones of y, column of y
    nb, nx = len(batch_x), len(order_free_x)
    row = [nb + nx] if len(xs) > 1 else []
    first_y = nb + nx + len(row)
    column = [first_y + len(order_free_y)] if len(ys) > 1 else []
    where = {"b": 0, "x": nb, "y": first_y}
    return linear.transpose(out, [where[kind] + k for kind, k in plan] + row + column)


def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The sum of conj(a) * b over all elements.

    Args:
        a: array of numbers or booleans, any shape.
        b: array of numbers or booleans, as many elements as a.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that to which the arguments promote.

    Returns:
        array of the dtype to which both promote, a scalar.

    Raises:
        TypeError: if the numbers of elements differ.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.vdot(jnp.ones(2), jnp.ones(2))
        Array(2., dtype=float32)
    """
    x, y = on_device(operand("vdot", a)), on_device(operand("vdot", b))
    if dtypes.is_complex(get_aval(x).dtype):
        x = el.conj(x)
    flat = lambda v: linear.reshape(v, (math.prod(shape_of(v)),))
    return dot(flat(x), flat(y), precision=precision, preferred_element_type=preferred_element_type)


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The sum of conj(x1) * x2 along one axis, the others broadcasting.

    Args:
        x1: array of numbers or booleans, any shape.
        x2: array of numbers or booleans that broadcasts with x1, and has the same size along the axis.
        axis: int, the axis; negative ones count from the end.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that to which the arguments promote.

    Returns:
        array of the dtype to which both promote, the broadcast shape without the axis.

    Raises:
        ValueError: if the sizes along the axis differ.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.vecdot(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    x, y = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    if shape_of(x)[-1] != shape_of(y)[-1]:
        raise ValueError(f"vecdot: sizes {shape_of(x)[-1]} and {shape_of(y)[-1]} along axis {axis} differ.")
    x = el.conj(x) if dtypes.is_complex(dtype_of(x)) else x
    x, y = linear.expand_dims(x, (len(shape_of(x)) - 1,)), linear.expand_dims(y, (len(shape_of(y)),))
    out = matmul(x, y, precision=precision, preferred_element_type=preferred_element_type)
    rank = len(shape_of(out))
    return linear.squeeze(out, (rank - 2, rank - 1))


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Matrices times vectors.

    Args:
        x1: array of numbers, shape (..., m, n).
        x2: array of numbers, shape (..., n).

    Returns:
        array of the dtype to which both promote, shape (..., m).

    Raises:
        ValueError: `x1` has fewer than two axes, `x2` has none, or their last axes have different sizes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.matvec(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    y = on_device(operand("matvec", x2))
    if len(shape_of(operand("matvec", x1))) < 2 or not shape_of(y):
        raise ValueError(f"matvec takes matrices x1 and vectors x2, got shapes {shape_of(x1)} and {shape_of(y)}.")
    if shape_of(x1)[-1] != shape_of(y)[-1]:
        raise ValueError(f"matvec: the last axes differ in size, got shapes {shape_of(x1)} and {shape_of(y)}.")
    out = matmul(x1, linear.expand_dims(y, (len(shape_of(y)),)))
    return linear.squeeze(out, (len(shape_of(out)) - 1,))


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Conjugated vectors times matrices.

    Args:
        x1: array of numbers, shape (..., n).
        x2: array of numbers, shape (..., n, m).

    Returns:
        array of the dtype to which both promote, shape (..., m).

    Raises:
        ValueError: `x1` has no axes, `x2` has fewer than two, or the sizes of the axis that is summed over differ.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.vecmat(jnp.ones(2), jnp.ones((2, 3)))
        Array([2., 2., 2.], dtype=float32)
    """
    x = on_device(operand("vecmat", x1))
    if len(shape_of(operand("vecmat", x2))) < 2 or not shape_of(x):
        raise ValueError(f"vecmat takes vectors x1 and matrices x2, got shapes {shape_of(x)} and {shape_of(x2)}.")
    if shape_of(x)[-1] != shape_of(x2)[-2]:
        raise ValueError(
            f"vecmat: the vectors have not as many elements as the matrices rows, got shapes {shape_of(x)} and"
            f" {shape_of(x2)}."
        )
    x = el.conj(x) if dtypes.is_complex(dtype_of(x)) else x
    out = matmul(linear.expand_dims(x, (len(shape_of(x)) - 1,)), x2)
    return linear.squeeze(out, (len(shape_of(out)) - 2,))


def inner(
    a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The product over the last axes of both.

    Args:
        a: array of numbers or booleans, any shape.
        b: array of numbers or booleans, any shape, whose last axis has the size of a's.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that to which the arguments promote.

    Returns:
        array of the dtype to which both promote; the other axes of a come first.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.inner(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    x, y = operand("inner", a), operand("inner", b)
    if not shape_of(x) or not shape_of(y):
        return on_device(multiply(x, y))
    return tensordot(x, y, (-1, -1), precision=precision, preferred_element_type=preferred_element_type)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """All products of elements of two flattened arrays, as a matrix.

    Args:
        a, b: array of numbers or booleans, any shape.
        out: None, since arrays are immutable.

    Returns:
        array of the dtype to which both promote, shape (n, m) for n and m elements.

    Raises:
        NotImplementedError: `out` is given.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.outer(jnp.arange(2), jnp.arange(2)).tolist()
        [[0, 0], [0, 1]]
    """
    if out is not None:
        raise NotImplementedError(
            "weft.numpy.outer: the 'out' argument is not supported, since arrays are immutable; use the result."
        )
    x, y = [on_device(v) for v in promote("outer", a, b)]
    flat = lambda v: linear.reshape(v, (math.prod(shape_of(v)),))
    times = el.and_ if dtypes.is_bool(dtype_of(x)) else el.mul
    return times(linear.expand_dims(flat(x), (1,)), linear.expand_dims(flat(y), (0,)))


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The product over the last `axes` axes of `a` and the first of `b`, or over two lists of axes.

    Args:
        a, b: array of numbers or booleans, any shape.
        axes: int, or two sequences of ints: the axes of a, and those of b.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that to which the arguments promote.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of the dtype to which both promote; the axes of a that are left come first.

    Raises:
        TypeError: if sizes differ or axes do not match.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), 1).shape
        (2, 4)
    """
    x, y, weak = _operands("tensordot", a, b)
    m, n = len(shape_of(x)), len(shape_of(y))
    numbers: tuple[tuple[int, ...], tuple[int, ...]]
    if not isinstance(axes, int):
        if len(axes) != 2:
            raise TypeError(f"tensordot: axes takes a number or a pair, got {axes}.")
        as_list = lambda v: tuple(v) if isinstance(v, (list, tuple)) else (v,)
        first, second = as_list(axes[0]), as_list(axes[1])
        if len(first) != len(second):
            raise TypeError(f"tensordot: as many axes of one operand as of the other, got {axes}.")
        numbers = (canonical_axes(first, m), canonical_axes(second, n))
    else:
        if axes > min(m, n):
            raise TypeError(f"tensordot: can't contract {axes} axes of shapes {shape_of(x)} and {shape_of(y)}.")
        numbers = (tuple(range(m - axes, m)), tuple(range(axes)))
    preferred = asked_dtype("tensordot", preferred_element_type)
    return with_out_sharding(
        "tensordot",
        out_sharding,
        lambda where: _contract(x, y, (numbers, ((), ())), precision, preferred, weak, where),
    )


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product.

    Args:
        a, b: array of numbers or booleans, any shape.

    Returns:
        array of the dtype to which both promote; the size of each axis is the product of both sizes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.kron(jnp.ones(2), jnp.ones(3)).shape
        (6,)
    """
    x, y = [on_device(v) for v in promote("kron", a, b)]
    rank = max(len(shape_of(x)), len(shape_of(y)))
    lift = lambda v: linear.reshape(v, (1,) * (rank - len(shape_of(v))) + shape_of(v))
    x, y = lift(x), lift(y)
    shape = tuple(n * m for n, m in zip(shape_of(x), shape_of(y)))
    x = linear.expand_dims(x, tuple(range(1, 2 * rank, 2))) if rank else x
    y = linear.expand_dims(y, tuple(range(0, 2 * rank, 2))) if rank else y
    return linear.reshape(el.mul(x, y), shape)


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross product of vectors of 2 or 3 components.

    Args:
        a: array of numbers, of size 2 or 3 along its axis.
        b: array of numbers, of size 2 or 3 along its axis; other axes broadcast.
        axisa: int, the axis of a.
        axisb: int, the axis of b.
        axisc: int, the axis of the result.
        axis: int, in place of the three; None for them.

    Returns:
        array of the dtype to which both promote, the broadcast shape; without the axis, where both have 2 components.

    Raises:
        ValueError: for other sizes along the axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = [strong(on_device(v)) for v in promote("cross", a, b)]
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if shape_of(x)[-1] not in (2, 3) or shape_of(y)[-1] not in (2, 3):
        raise ValueError(f"cross takes vectors of 2 or 3 components, got {shape_of(x)[-1]} and {shape_of(y)[-1]}.")
    xs, ys = list(unstack(x, axis=-1)), list(unstack(y, axis=-1))
    times = lambda v, w: multiply(v, w)
    if len(xs) == len(ys) == 2:
        return subtract(times(xs[0], ys[1]), times(xs[1], ys[0]))
    zero = lambda v: linear.full(shape_of(v[0]), 0, dtype_of(v[0]))
    xs, ys = [v if len(v) == 3 else [*v, zero(v)] for v in (xs, ys)]
    parts = [
        subtract(times(xs[(i + 1) % 3], ys[(i + 2) % 3]), times(xs[(i + 2) % 3], ys[(i + 1) % 3])) for i in range(3)
    ]
    rank = len(shape_of(parts[0])) + 1
    return stack(parts, canonical_axis(axisc, rank))
