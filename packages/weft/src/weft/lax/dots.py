"""Products of `weft.lax`: dot, dot_general, batch_matmul."""

from __future__ import annotations

import enum
from typing import Any, Sequence

from ..base.annotations import override
from ..base.config import config
from ..core.wire import param_type
from ..primitives import dot as ops
from ..primitives.dot import DotAlgorithm, DotAlgorithmPreset
from ..primitives.rules import shape_of
from ..typing import Array, ArrayLike, DTypeLike, OutSharding
from ..transforms.auto_axes import with_out_sharding
from .common import operand

__all__ = [
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "DotDimensionNumbers",
    "Precision",
    "PrecisionLike",
    "batch_matmul",
    "dot",
    "dot_general",
]


@param_type
class Precision(enum.Enum):
    """How exactly products are computed on hardware that has faster, coarser ways."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @override
    def __str__(self) -> str:
        return self.name

    @override
    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    @override
    @classmethod
    def _missing_(cls, value: Any) -> Precision | None:
        """`Precision("highest")`, and None for the default."""
        return cls.DEFAULT if value is None else _WORDS.get(value)


PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset
)
DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]

_WORDS = {
    "default": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}


def canonical_precision(
    precision: PrecisionLike,
) -> tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset | None:
    """None, a `Precision`, its name, or a pair of them, as None or a pair of `Precision`; an algorithm or a preset's
    name as that algorithm.
    """
    if precision is None:
        precision = config.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    if isinstance(precision, (tuple, list)):
        if len(precision) != 2:
            raise ValueError(f"precision takes one value or a pair, got {precision!r}.")
        first, second = precision
        return _one(first), _one(second)
    return (_one(precision),) * 2


def _one(p: object) -> Precision:
    if isinstance(p, Precision):
        return p
    if p is None:
        return Precision.DEFAULT
    if isinstance(p, str) and p.lower() in _WORDS:
        return _WORDS[p.lower()]
    raise ValueError(
        f"unknown precision {p!r}; use None, a lax.Precision or one of {', '.join(sorted(_WORDS))}, a pair of these, "
        f"a lax.DotAlgorithm, or a lax.DotAlgorithmPreset or its name: {', '.join(DotAlgorithmPreset.__members__)}."
    )


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Multiplies two arrays and sums over contracted axes.

    The result has the batch axes, then the free axes of lhs, then those of rhs.

    Args:
        lhs: array of integers, floats, complex numbers or booleans, any shape.
        rhs: array of numbers or booleans, any shape whose contracted and batch axes have the sizes of lhs's.
        dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)), four sequences of axes, ints.
        precision: how exactly hardware with several ways computes: a `lax.Precision`, its name or a pair of them, a
            `lax.DotAlgorithm` or a `lax.DotAlgorithmPreset`; None for the default.
        preferred_element_type: dtype of the result; None for the one that those of the operands promote to.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of that dtype; its shape has the batch axes, then the free axes of lhs, then those of rhs.

    Raises:
        TypeError: if contracted or batch sizes differ.

    Example:
        >>> from weft import lax
        >>> float(lax.dot_general(lax.iota('float32', 3), lax.iota('float32', 3), (((0,), (0,)), ((), ()))))
        5.0
    """
    lhs, rhs = operand("dot_general", lhs), operand("dot_general", rhs)
    return with_out_sharding(
        "dot_general",
        out_sharding,
        lambda where: ops.dot_general(
            lhs,
            rhs,
            dimension_numbers,
            precision=canonical_precision(precision),
            preferred_element_type=preferred_element_type,
            out_sharding=where,
        ),
    )


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Multiplies vectors and matrices.

    Args:
        lhs: array of numbers or booleans, shape (k,) or (m, k).
        rhs: array of numbers or booleans, shape (k,) or (k, n).
        dimension_numbers: as of `dot_general`, for arrays of any shape; None for the last axis of lhs and the first of
            rhs.
        precision: how exactly hardware with several ways computes: a `lax.Precision`, its name or a pair of them, a
            `lax.DotAlgorithm` or a `lax.DotAlgorithmPreset`; None for the default.
        preferred_element_type: dtype of the result; None for the one that those of the operands promote to.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of that dtype, shape (), (m,), (n,) or (m, n).

    Raises:
        ValueError: if ranks are not 1 or 2, or the contracted sizes differ.

    Example:
        >>> from weft import lax
        >>> float(lax.dot(lax.iota('float32', 3), lax.iota('float32', 3)))
        5.0
    """
    lhs, rhs = operand("dot", lhs), operand("dot", rhs)
    a, b = shape_of(lhs), shape_of(rhs)
    if dimension_numbers is None:
        if not (1 <= len(a) <= 2 and 1 <= len(b) <= 2 and a[-1] == b[0]):
            raise ValueError(f"Incompatible shapes for dot: got {a} and {b}.")
        dimension_numbers = (((len(a) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Multiplies two stacks of matrices.

    Args:
        lhs: array of numbers or booleans, shape (…, m, k).
        rhs: array of numbers or booleans, shape (…, k, n), with the same leading axes.
        precision: how exactly hardware with several ways computes: a `lax.Precision`, its name or a pair of them, a
            `lax.DotAlgorithm` or a `lax.DotAlgorithmPreset`; None for the default.

    Returns:
        array of the dtype that theirs promote to, shape (…, m, n).

    Raises:
        ValueError: if ranks differ or are less than 2.
        TypeError: if sizes do not fit.

    Example:
        >>> from weft import lax
        >>> lax.batch_matmul(lax.full((2, 3, 4), 1.0), lax.full((2, 4, 5), 1.0)).shape
        (2, 3, 5)
    """
    lhs, rhs = operand("batch_matmul", lhs), operand("batch_matmul", rhs)
    rank = len(shape_of(lhs))
    if rank < 2 or rank != len(shape_of(rhs)):
        raise ValueError(
            f"batch_matmul takes arrays of one rank of at least 2, got shapes {shape_of(lhs)} and {shape_of(rhs)}."
        )
    batch = tuple(range(rank - 2))
    return dot_general(lhs, rhs, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)
