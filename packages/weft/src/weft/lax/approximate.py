"""approx_max_k and approx_min_k of `weft.lax`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..primitives.sort import approx_top_k_p
from ..typing import Array, ArrayLike
from .common import operand as checked
from .common import static_int

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["approx_max_k", "approx_min_k"]


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Finds the k largest elements along an axis, largest first, and their indices; where hardware is faster so, most
    of them.

    Source: Chern et al., "TPU-KNN: K nearest neighbor search at peak FLOP/s" (2022).

    Args:
        operand: array of floats, any shape of rank at least 1.
        k: int, from 0 to the size of the axis.
        reduction_dimension: int, the axis.
        recall_target: float in (0, 1], the expected share of the true k among those found. CPU, WebAssembly and WebGPU
            always find all of them.
        reduction_input_size_override: int, the size to reckon with where the array is a part of a larger one; -1 for
            its own.
        aggregate_to_topk: bool; False for all candidates that a TPU would pick the k from.

    Returns:
        (values, indices): an array of the dtype of operand and one of int32; the size along the axis is k.

    Raises:
        ValueError: for an array that is no float, an axis or k out of range, a recall that is none.

    Example:
        >>> from weft import lax
        >>> values, indices = lax.approx_max_k(lax.iota('float32', 5), 2)
        >>> values, indices
        (Array([4., 3.], dtype=float32), Array([4, 3], dtype=int32))
    """
    return _bind(
        "approx_max_k",
        True,
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Finds the k smallest elements along an axis, smallest first, and their indices; where hardware is faster so, most
    of them.

    Args:
        operand: array of floats, any shape of rank at least 1.
        k: int, from 0 to the size of the axis.
        reduction_dimension: int, the axis.
        recall_target: float in (0, 1], the expected share of the true k among those found. CPU, WebAssembly and WebGPU
            always find all of them.
        reduction_input_size_override: int, the size to reckon with where the array is a part of a larger one; -1 for
            its own.
        aggregate_to_topk: bool; False for all candidates that a TPU would pick the k from.

    Returns:
        (values, indices): an array of the dtype of operand and one of int32; the size along the axis is k.

    Raises:
        ValueError: for an array that is no float, an axis or k out of range, a recall that is none.

    Example:
        >>> from weft import lax
        >>> lax.approx_min_k(lax.iota('float32', 5), 2)[0]
        Array([0., 1.], dtype=float32)
    """
    return _bind(
        "approx_min_k",
        False,
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )


def _bind(
    name: str,
    is_max_k: bool,
    operand: Value,
    k: int,
    axis: int,
    recall_target: float,
    size_override: int,
    aggregate: bool,
) -> tuple[Any, ...]:
    return tuple(
        approx_top_k_p.bind(
            checked(name, operand),
            k=static_int("k", k),
            reduction_dimension=static_int("reduction_dimension", axis),
            recall_target=float(recall_target),
            is_max_k=is_max_k,
            reduction_input_size_override=static_int("reduction_input_size_override", size_override),
            aggregate_to_topk=bool(aggregate),
        )
    )
