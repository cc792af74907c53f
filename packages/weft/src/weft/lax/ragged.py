"""Products of `weft.lax` with groups or scales: ragged_dot, ragged_dot_general, scaled_dot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import dtypes
from ..base.errors import type_error
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.dot import dot_general
from ..primitives.ragged import RaggedDotDimensionNumbers, ragged_dot_general_p
from ..primitives.rules import dtype_of, shape_of
from ..typing import Array, ArrayLike, DTypeLike, OutSharding
from ..transforms.auto_axes import takes_out_sharding
from .common import ints, on_device, only, operand
from .dots import DotDimensionNumbers, PrecisionLike, canonical_precision

if TYPE_CHECKING:
    from ..core.types import Value
    from ..base.dtypes import ElementType

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general", "scaled_dot"]


@takes_out_sharding
def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """`dot_general` where an axis of lhs falls into consecutive groups of `group_sizes`.

    A free axis: each group meets its own matrix along rhs's group axis. A contracted one: the result has an axis of
    groups in front, one product for each. A batch axis: groups make no difference.

    Args:
        lhs: array of integers, floats or complex numbers, any shape.
        rhs: array of numbers, any shape whose contracted and batch axes have the sizes of lhs's.
        group_sizes: array of integers, shape (g,), or (…, g) with the sizes of lhs's batch axes (and free or contracted
            ones before the ragged axis).
        ragged_dot_dimension_numbers: `lax.RaggedDotDimensionNumbers`: the numbers of `dot_general`, the ragged axis of
            lhs, and the axis of groups of rhs, if it has one.
        precision: how exactly hardware with several ways computes: a `lax.Precision`, its name or a pair of them, a
            `lax.DotAlgorithm` or a `lax.DotAlgorithmPreset`; None for the default.
        preferred_element_type: dtype of the result; None for the one that those of the operands promote to.
        group_offset: None; weft has no offsets of groups.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of that dtype; its shape is that of `dot_general` without rhs's axis of groups, or, where the ragged axis
        is contracted, with an axis of size g in front.

    Raises:
        TypeError: if sizes or dimension numbers do not fit.

    Example:
        >>> from weft import lax
        >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())
        >>> lax.ragged_dot_general(lax.full((2, 5), 1.0), lax.full((5, 3), 1.0), lax.full((2,), 2), numbers).shape
        (2, 2, 3)
    """
    name = "ragged_dot_general"
    only(name, group_offset=group_offset)
    (contracting, batch), ragged, groups = (
        ragged_dot_dimension_numbers[0],
        ragged_dot_dimension_numbers[1],
        ragged_dot_dimension_numbers[2],
    )
    pairs = lambda ds: (ints(ds[0]), ints(ds[1]))
    numbers = RaggedDotDimensionNumbers((pairs(contracting), pairs(batch)), ints(ragged), ints(groups))
    dtype = None if preferred_element_type is None else dtypes.canonicalize(preferred_element_type)
    return ragged_dot_general_p.bind(
        *[on_device(operand(name, x)) for x in (lhs, rhs, group_sizes)],
        ragged_dot_dimension_numbers=numbers,
        precision=canonical_precision(precision),
        preferred_element_type=dtype,
        group_offset=None,
        out_sharding=None,
    )


@takes_out_sharding
def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Multiplies groups of rows by matrices of their own: the first group_sizes[0] rows by rhs[0] and so on. Rows after
    the last group give zeros.

    Rows after the last group give zeros.

    Args:
        lhs: array of integers, floats or complex numbers, shape (m, k).
        rhs: array of numbers, shape (g, k, n).
        group_sizes: array of integers, shape (g,): the number of rows of each group.
        precision: how exactly hardware with several ways computes: a `lax.Precision`, its name or a pair of them, a
            `lax.DotAlgorithm` or a `lax.DotAlgorithmPreset`; None for the default.
        preferred_element_type: dtype of the result; None for the one that those of the operands promote to.
        group_offset: None; weft has no offsets of groups.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of that dtype, shape (m, n).

    Raises:
        TypeError: if shapes do not fit.

    Example:
        >>> from weft import lax
        >>> lax.ragged_dot(lax.full((3, 2), 1.0), lax.full((2, 2, 1), 1.0), lax.full((2,), 1)).tolist()
        [[2.0], [2.0], [0.0]]
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset, out_sharding
    )


def _scaled(name: str, side: str, x: Value, scale: Value, contracting: Any, dtype: ElementType) -> Value:
    """x times its scale, each element of which stands for a block along the contracted axes."""
    x = linear.convert(x, dtype)
    if scale is None:
        return x
    shape, blocks = shape_of(x), shape_of(scale)
    if len(shape) != len(blocks):
        raise type_error(
            f"{name}: the {side} scale must have the rank of its operand, got shapes {blocks} and {shape}."
        )
    for d, (n, m) in enumerate(zip(shape, blocks)):
        if n != m and (d not in contracting or m == 0 or n % m):
            raise type_error(
                f"{name}: {side} has shape {shape} and scale {blocks}: axis {d} must have the same size in both"
                + (", or a multiple of that of the scale." if d in contracting else ".")
            )
    wide = [v for n, m in zip(shape, blocks) for v in (m, n // m if m else 1)]
    spread = linear.broadcast_in_dim(linear.convert(scale, dtype), wide, range(0, 2 * len(shape), 2))
    return el.mul(x, linear.reshape(spread, shape))


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiplies arrays in narrow floats with scales for blocks of them (microscaling).

    Args:
        lhs: array of floats, shape (…, m, k), or any other with `dimension_numbers`.
        rhs: array of floats, shape (…, k, n), or any other with `dimension_numbers`.
        lhs_scale: array of floats, of the shape of lhs but for the contracted axes, whose sizes divide lhs's; None for
            ones.
        rhs_scale: array of floats, of the shape of rhs but for the contracted axes, whose sizes divide rhs's; None for
            ones.
        dimension_numbers: as of `dot_general`; None for the last axis of lhs with the last but one of rhs, and axes
            before them batched.
        preferred_element_type: dtype of the result; None for bfloat16.

    Returns:
        array of that dtype, shape (…, m, n), or as of `dot_general`.

    Raises:
        TypeError: for operands of rank below 2, or a scale that does not fit.

    Example:
        >>> from weft import lax
        >>> x, scale = lax.full((2, 4), 1.0, 'float8_e4m3fn'), lax.full((2, 1), 2.0)
        >>> lax.scaled_dot(x, lax.full((4, 1), 1.0, 'float8_e4m3fn'), lhs_scale=scale).tolist()
        [[8.0], [8.0]]
    """
    name = "scaled_dot"
    lhs, rhs = operand(name, lhs), operand(name, rhs)
    rank = len(shape_of(lhs))
    if rank < 2 or len(shape_of(rhs)) < 2:
        raise type_error(f"{name} takes operands of rank 2 and more, got shapes {shape_of(lhs)} and {shape_of(rhs)}.")
    if dimension_numbers is None:
        batch = tuple(range(rank - 2))
        dimension_numbers = (((rank - 1,), (len(shape_of(rhs)) - 2,)), (batch, batch))
    (xc, yc), _ = dimension_numbers
    dtype = dtypes.canonicalize(dtypes.bfloat16 if preferred_element_type is None else preferred_element_type)
    wide = dtypes.float64 if dtypes.float64 in (dtype, dtype_of(lhs), dtype_of(rhs)) else dtypes.float32
    x = _scaled(name, "lhs", lhs, lhs_scale if lhs_scale is None else operand(name, lhs_scale), ints(xc), wide)
    y = _scaled(name, "rhs", rhs, rhs_scale if rhs_scale is None else operand(name, rhs_scale), ints(yc), wide)
    return linear.convert(dot_general(x, y, dimension_numbers), dtype)
