"""Reductions, cumulative operations, sorting and arg-reductions of `weft.lax`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Sequence, overload

from ..base import dtypes
from ..base.annotations import PyTree
from ..base.avals import reshaped
from ..higher_order.fold import reduce_p
from ..core.primitive import registry
from ..core.trace import get_aval
from ..base.errors import type_error
from ..primitives import linear
from ..primitives import reduce as ops
from ..primitives import sort as sort_ops
from ..primitives.rules import dtype_of, shape_of
from ..transforms.stage import stage_closed
from ..base.tree import tree_flatten
from ..typing import Array, ArrayLike, DTypeLike, OutSharding
from ..transforms.auto_axes import takes_out_sharding, with_out_sharding
from .common import canonical_axis, counted_axes, counted_axis, operand as checked, static_int

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "argmax",
    "argmin",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "reduce",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_xor",
    "sort",
    "sort_key_val",
    "top_k",
]


def _over(
    name: str, reduction: Callable[[Any, tuple[int, ...]], Array], operand: ArrayLike, axes: Sequence[int]
) -> Array:
    x = checked(name, operand)
    return reduction(x, counted_axes(name, axes, len(shape_of(x)), "axes"))


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: OutSharding = None) -> Array:
    """Sums over axes.

    Args:
        operand: array of integers, floats or complex numbers, any shape.
        axes: sequence of distinct ints, the axes to reduce.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        array of the dtype of operand and the shape without these axes.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.reduce_sum(lax.iota('float32', 4), (0,))
        Array(6., dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            "reduce_sum",
            out_sharding,
            lambda where: _over("reduce_sum", functools.partial(linear.reduce_sum, sharding=where), operand, axes),
        )
    if dtypes.is_bool(dtype_of(checked("reduce_sum", operand))):
        raise type_error("reduce_sum does not accept dtype bool: it takes numbers. Convert first, or use reduce_or.")
    return _over("reduce_sum", linear.reduce_sum, operand, axes)


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Takes the maximum over axes; NaN if any element is.

    Args:
        operand: array of any dtype but random keys, any shape.
        axes: sequence of distinct ints, the axes to reduce.

    Returns:
        array of the dtype of operand and the shape without these axes.

    Example:
        >>> from weft import lax
        >>> lax.reduce_max(lax.iota('float32', 4), (0,))
        Array(3., dtype=float32)
    """
    return _over("reduce_max", ops.reduce_max, operand, axes)


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Takes the minimum over axes; NaN if any element is.

    Args:
        operand: array of any dtype but random keys, any shape.
        axes: sequence of distinct ints, the axes to reduce.

    Returns:
        array of the dtype of operand and the shape without these axes.

    Example:
        >>> from weft import lax
        >>> lax.reduce_min(lax.iota('float32', 4), (0,))
        Array(0., dtype=float32)
    """
    return _over("reduce_min", ops.reduce_min, operand, axes)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Multiplies over axes.

    Args:
        operand: array of integers, floats or complex numbers, any shape.
        axes: sequence of distinct ints, the axes to reduce.

    Returns:
        array of the dtype of operand and the shape without these axes.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.reduce_prod(lax.full((3,), 2, 'float32'), (0,))
        Array(8., dtype=float32)
    """
    return _over("reduce_prod", ops.reduce_prod, operand, axes)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Computes the bitwise and over axes; of booleans the logical one.

    Args:
        operand: array of integers or booleans, any shape.
        axes: sequence of distinct ints, the axes to reduce.

    Returns:
        array of the dtype of operand and the shape without these axes.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.reduce_and(lax.full((3,), True), (0,))
        Array(True, dtype=bool)
    """
    return _over("reduce_and", ops.reduce_and, operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Computes the bitwise or over axes; of booleans the logical one.

    Args:
        operand: array of integers or booleans, any shape.
        axes: sequence of distinct ints, the axes to reduce.

    Returns:
        array of the dtype of operand and the shape without these axes.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.reduce_or(lax.full((3,), True), (0,))
        Array(True, dtype=bool)
    """
    return _over("reduce_or", ops.reduce_or, operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Computes the bitwise exclusive or over axes; of booleans the logical one.

    Args:
        operand: array of integers or booleans, any shape.
        axes: sequence of distinct ints, the axes to reduce.

    Returns:
        array of the dtype of operand and the shape without these axes.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> lax.reduce_xor(lax.full((3,), True), (0,))
        Array(True, dtype=bool)
    """
    return _over("reduce_xor", ops.reduce_xor, operand, axes)


_MONOIDS = {
    "add": reduce_sum,
    "max": reduce_max,
    "min": reduce_min,
    "mul": reduce_prod,
    "and": reduce_and,
    "or": reduce_or,
    "xor": reduce_xor,
}


@overload
def reduce(
    operands: ArrayLike,
    init_values: ArrayLike,
    computation: Callable[[Array, Array], ArrayLike],
    dimensions: Sequence[int],
    out_sharding: OutSharding = None,
) -> Array: ...
@overload
def reduce(
    operands: PyTree,
    init_values: PyTree,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: OutSharding = None,
) -> Any: ...
@takes_out_sharding
def reduce(
    operands: PyTree,
    init_values: PyTree,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: OutSharding = None,
) -> Any:
    """Folds a function over axes. The order of its calls is free.

    Args:
        operands: array of any dtype, any shape, or a pytree of arrays of one shape.
        init_values: pytree like `operands` of scalars of the same dtypes, where the fold starts; identities of the
            function.
        computation: an associative function of two scalars (two pytrees of scalars) to one, of the same dtypes.
        dimensions: sequence of distinct ints, the axes; none give the operands themselves.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        pytree like `operands`: arrays of their dtypes and the shape without these axes.

    Raises:
        TypeError: if dtypes of operands, initial values and results of the computation differ.
        ValueError: if structures or shapes of operands and initial values do not match.

    Example:
        >>> from weft import lax
        >>> float(lax.reduce(lax.broadcast(2.0, (3,)), 1.0, lax.mul, (0,)))
        8.0
    """
    xs, tree = tree_flatten(operands)
    inits, init_tree = tree_flatten(init_values)
    if tree != init_tree:
        raise ValueError(f"reduce: operands and init_values must have one structure, got {tree} and {init_tree}.")
    xs, inits = [checked("reduce", x) for x in xs], [checked("reduce", x) for x in inits]
    dims = counted_axes("reduce", dimensions, len(shape_of(xs[0])), "dimensions")
    scalars = [reshaped(get_aval(x), ()) for x in xs] * 2

    def combine(*flat: Value) -> Value:
        n = len(xs)
        out, out_tree = tree_flatten(computation(tree.unflatten(flat[:n]), tree.unflatten(flat[n:])))
        if out_tree != tree:
            raise TypeError(f"reduce: computation must return the structure of its arguments {tree}, got {out_tree}.")
        return out

    jaxpr = stage_closed(combine, scalars, "reduce")
    if len(xs) == 1 and len(jaxpr.eqns) == 1 and jaxpr.eqns[0].primitive.name in _MONOIDS:
        eqn = jaxpr.eqns[0]
        if eqn.invars == jaxpr.jaxpr.invars and eqn.outvars == jaxpr.jaxpr.outvars:
            out = _MONOIDS[eqn.primitive.name](xs[0], dims)
            init = linear.convert(inits[0], dtype_of(xs[0])) if get_aval(inits[0]).weak_type else inits[0]
            return tree.unflatten([eqn.primitive.bind(out, init) if dims else out])
    for x, i in zip(xs, inits):
        if dtype_of(x) != dtype_of(i):
            raise type_error(
                f"reduce: operands and initial values must have the same dtypes, got {get_aval(x)} and {get_aval(i)}."
            )
    return tree.unflatten(reduce_p.bind(*xs, *inits, jaxpr=jaxpr, dimensions=dims))


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Finds the index of the first maximum along an axis; of a NaN if there is one.

    Args:
        operand: array of booleans, integers or floats, any shape of rank at least 1.
        axis: int, the axis.
        index_dtype: dtype of integers.

    Returns:
        array of `index_dtype` and the shape without the axis.

    Raises:
        TypeError: for another dtype.
        ValueError: if the axis is empty.

    Example:
        >>> from weft import lax
        >>> lax.argmax(lax.iota('float32', 3), 0, 'int32')
        Array(2, dtype=int32)
    """
    x = checked("argmax", operand)
    return ops.argmax(x, counted_axis("argmax", axis, len(shape_of(x))), index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Finds the index of the first minimum along an axis; of a NaN if there is one.

    Args:
        operand: array of booleans, integers or floats, any shape of rank at least 1.
        axis: int, the axis.
        index_dtype: dtype of integers.

    Returns:
        array of `index_dtype` and the shape without the axis.

    Raises:
        TypeError: for another dtype.
        ValueError: if the axis is empty.

    Example:
        >>> from weft import lax
        >>> lax.argmin(lax.iota('float32', 3), 0, 'int32')
        Array(0, dtype=int32)
    """
    x = checked("argmin", operand)
    return ops.argmin(x, counted_axis("argmin", axis, len(shape_of(x))), index_dtype)


def _running(name: str, operand: ArrayLike, axis: int, reverse: bool) -> Array:
    x = checked(name, operand)
    return registry[name].bind(x, axis=counted_axis(name, axis, len(shape_of(x))), reverse=bool(reverse))


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Computes the running sums along an axis.

    Args:
        operand: array of integers, floats or complex numbers, any shape of rank at least 1.
        axis: int, the axis.
        reverse: bool: run from the end.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> y = lax.cumsum(lax.iota('float32', 3))
    """
    return _running("cumsum", operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Computes the running products along an axis.

    Args:
        operand: array of integers, floats or complex numbers, any shape of rank at least 1.
        axis: int, the axis.
        reverse: bool: run from the end.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> y = lax.cumprod(lax.iota('float32', 3))
    """
    return _running("cumprod", operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Computes the running maxima along an axis.

    Args:
        operand: array of integers, floats or complex numbers, any shape of rank at least 1.
        axis: int, the axis.
        reverse: bool: run from the end.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> y = lax.cummax(lax.iota('float32', 3))
    """
    return _running("cummax", operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Computes the running minima along an axis.

    Args:
        operand: array of integers, floats or complex numbers, any shape of rank at least 1.
        axis: int, the axis.
        reverse: bool: run from the end.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> y = lax.cummin(lax.iota('float32', 3))
    """
    return _running("cummin", operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Computes the running logarithms of sums of exponentials along an axis, without overflow.

    Args:
        operand: array of floats, any shape of rank at least 1.
        axis: int, the axis.
        reverse: bool: run from the end.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: for another dtype.

    Example:
        >>> from weft import lax
        >>> y = lax.cumlogsumexp(lax.iota('float32', 3))
    """
    return _running("cumlogsumexp", operand, axis, reverse)


@overload
def sort(operand: ArrayLike, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Array: ...
@overload
def sort(
    operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> tuple[Array, ...]: ...
def sort(
    operand: ArrayLike | Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Array | tuple[Array, ...]:
    """Sorts upwards along an axis, NaN last; of several arrays, the first ones decide the order of all.

    Args:
        operand: array of any dtype but random keys, any shape of rank at least 1; or a sequence of such arrays of one
            shape.
        dimension: int, the axis.
        is_stable: bool: equal elements keep their order.
        num_keys: int: how many of the arrays are compared, the first before the second and so on.

    Returns:
        array like operand, or a tuple of arrays like those given.

    Raises:
        TypeError: if there are none, or shapes differ.

    Example:
        >>> from weft import lax
        >>> lax.sort(lax.rev(lax.iota('int32', 3), (0,)))
        Array([0, 1, 2], dtype=int32)
    """
    many = isinstance(operand, (list, tuple))
    xs = [checked("sort", x) for x in (operand if isinstance(operand, (list, tuple)) else [operand])]
    if not xs:
        raise TypeError("sort requires at least one array.")
    if len({shape_of(x) for x in xs}) > 1:
        raise type_error(f"sort: operands must have one shape, got {[shape_of(x) for x in xs]}.")
    out = sort_ops.sort_p.bind(
        *xs,
        dimension=canonical_axis(dimension, len(shape_of(xs[0])), "dimension"),
        is_stable=bool(is_stable),
        num_keys=int(num_keys),
    )
    return tuple(out) if many else out[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sorts keys upwards along an axis, and values in the same order.

    Args:
        keys: array of any dtype but random keys, any shape of rank at least 1.
        values: array of any dtype, the shape of keys.
        dimension: int, the axis.
        is_stable: bool: equal keys keep their order.

    Returns:
        (keys, values), arrays of the dtypes and shape of those given.

    Raises:
        TypeError: if shapes differ.

    Example:
        >>> from weft import lax
        >>> keys, values = lax.sort_key_val(lax.iota('int32', 3), lax.iota('float32', 3))
    """
    first, second = sort((keys, values), dimension=dimension, is_stable=is_stable, num_keys=1)
    return first, second


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """Finds the k largest elements along an axis, largest first, and their indices. Of equal ones the first is taken
    first. The order is IEEE's total order: -0.0 is less than 0.0, a NaN with a sign less than all other numbers, and
    one without greater.

    Args:
        operand: array of booleans, integers or floats, any shape of rank at least 1.
        k: int, from 0 to the size of the axis.
        axis: int, the axis.

    Returns:
        (values, indices): an array of the dtype of operand and one of int32; the size along the axis is k.

    Raises:
        ValueError: for complex numbers, or k out of range.

    Example:
        >>> from weft import lax
        >>> values, indices = lax.top_k(lax.iota('int32', 5), 2)
        >>> values
        Array([4, 3], dtype=int32)
    """
    x = checked("top_k", operand)
    if dtypes.is_complex(dtype_of(x)):
        raise ValueError(f"top_k takes real numbers, got {get_aval(x)}; sort sorts complex ones.")
    k = static_int("k", k)
    if k < 0:
        raise ValueError(f"top_k: k must not be negative, got {k}.")
    return sort_ops.top_k_p.bind(x, k=k, axis=canonical_axis(axis, len(shape_of(x))))
