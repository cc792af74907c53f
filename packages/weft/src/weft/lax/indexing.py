"""Dynamic slices, gather and scatter of `weft.lax`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes, promotion
from ..core.primitive import Primitive
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error
from ..base.host import np
from ..primitives import elementwise as el
from ..primitives import dynamic_slice as slice_ops, gather as gather_ops, scatter as scatter_ops
from ..primitives import linear
from ..primitives.gather import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from ..primitives.positions import holding, known_index, narrowed, wide_index, wrap_index
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import concatenate, slice_
from ..typing import Array, ArrayLike, Mode
from .common import canonical_axes, canonical_axis, canonical_shape, on_device, operand as checked, static_size

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "ScatterDimensionNumbers",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "gather",
    "index_take",
    "scatter",
    "scatter_add",
    "scatter_apply",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
]


def _starts(name: str, x: Value, start_indices: Any, allow_negative_indices: bool | Sequence[bool]) -> list[Any]:
    """One index scalar for each axis, all of one dtype; negative ones count from the end where that is allowed."""
    shape = shape_of(x)
    if not isinstance(start_indices, (list, tuple)):
        array = checked(name, start_indices)
        start_indices = [linear.squeeze(slice_(array, (i,), (i + 1,)), (0,)) for i in range(shape_of(array)[0])]
    starts = [checked(name, s) for s in start_indices]
    if len(starts) != len(shape):
        raise ValueError(at_user_line(f"{name}: {len(starts)} start indices for an operand of shape {shape}."))
    avals = [get_aval(s) for s in starts]
    if any(not dtypes.is_int(a.dtype) or a.shape for a in avals):
        raise type_error(f"{name}: start indices must be integer scalars, got {', '.join(map(format, avals))}.")
    dt = promotion.promote(*[(a.dtype, a.weak_type) for a in avals])[0] if avals else None
    if dt is not None and not dtypes.is_int(dt):
        raise type_error(
            f"{name}: no integers hold all start indices of {', '.join(map(format, avals))}. Convert them to one dtype."
        )
    wrap = (
        [allow_negative_indices] * len(shape)
        if isinstance(allow_negative_indices, bool)
        else list(allow_negative_indices)
    )
    if len(wrap) != len(shape):
        raise type_error(
            f"{name}: allow_negative_indices must be one boolean, or one for each of the {len(shape)} axes, got {wrap}."
        )
    if dt is not None:
        dt = holding(dt, *[n for n, w in zip(shape, wrap) if w])
    for s, w in zip(starts, wrap):
        value = known_index(s)
        if not w and value is not None and value < 0:
            raise ValueError(
                f"{name}: the start index {value} is negative, which allow_negative_indices=False rules out."
            )
    return [narrowed(wrap_index(s, n) if w else s, dt) for s, n, w in zip(starts, shape, wrap)]


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Array | np.ndarray[Any, Any] | Sequence[ArrayLike],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Takes a slice of static size at indices that may be traced; it is moved to lie within the array.

    Args:
        operand: array of any dtype, any shape.
        start_indices: one integer scalar for each axis, or an array of integers of shape (rank,).
        slice_sizes: one int for each axis, the shape of the slice.
        allow_negative_indices: bool, or one for each axis: negative indices count from the end; False spares the test
            where they never are.

    Returns:
        array of the dtype of operand and shape `slice_sizes`.

    Raises:
        ValueError: if there is not one index for each axis.
        TypeError: if there is not one size for each axis, or a size exceeds that of the array.

    Example:
        >>> from weft import lax
        >>> lax.dynamic_slice(lax.iota('int32', 5), (3,), (2,))
        Array([3, 4], dtype=int32)
    """
    x = checked("dynamic_slice", operand)
    return slice_ops.dynamic_slice_p.bind(
        x, *_starts("dynamic_slice", x, start_indices, allow_negative_indices), slice_sizes=canonical_shape(slice_sizes)
    )


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Array | np.ndarray[Any, Any] | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Writes a slice at indices that may be traced; it is moved to lie within the array.

    Args:
        operand: array of any dtype, any shape.
        update: array of the dtype and rank of operand, no larger along any axis.
        start_indices: one integer scalar for each axis, or an array of integers of shape (rank,).
        allow_negative_indices: bool, or one for each axis: negative indices count from the end; False spares the test
            where they never are.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: if dtypes or ranks differ, or the update is larger than the array.

    Example:
        >>> from weft import lax
        >>> lax.dynamic_update_slice(lax.iota('int32', 4), lax.full((2,), 9, 'int32'), (1,))
        Array([0, 9, 9, 3], dtype=int32)
    """
    x, update = checked("dynamic_update_slice", operand), checked("dynamic_update_slice", update)
    return slice_ops.dynamic_update_slice_p.bind(
        x, update, *_starts("dynamic_update_slice", x, start_indices, allow_negative_indices)
    )


def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """Takes a slice of static size along one axis at an index that may be traced.

    Args:
        operand: array of any dtype, any shape.
        start_index: integer scalar.
        slice_size: int, the size of the slice along the axis.
        axis: int, the axis.
        allow_negative_indices: bool: a negative index counts from the end; False spares the test where it never is.

    Returns:
        array of the dtype of operand and its shape, but for `slice_size` along the axis.

    Example:
        >>> from weft import lax
        >>> lax.dynamic_slice_in_dim(lax.iota('int32', 5), 1, 2)
        Array([1, 2], dtype=int32)
    """
    x = checked("dynamic_slice_in_dim", operand)
    sizes = list(shape_of(x))
    starts: list[Any] = [0] * len(sizes)
    axis = canonical_axis(axis, len(sizes))
    starts[axis], sizes[axis] = start_index, static_size("slice_size", slice_size)
    return dynamic_slice(x, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """Takes what lies at an index along one axis that may be traced.

    Args:
        operand: array of any dtype, any shape.
        index: integer scalar.
        axis: int, the axis.
        keepdims: bool: keep the axis, with size 1.
        allow_negative_indices: bool: a negative index counts from the end; False spares the test where it never is.

    Returns:
        array of the dtype of operand and its shape, where the axis has size 1 or is removed.

    Example:
        >>> from weft import lax
        >>> lax.dynamic_index_in_dim(lax.iota('int32', 5), 2, keepdims=False)
        Array(2, dtype=int32)
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else linear.squeeze(out, (canonical_axis(axis, len(shape_of(out))),))


def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """Writes a slice along one axis at an index that may be traced.

    Args:
        operand: array of any dtype, any shape.
        update: array of the dtype and rank of operand, no larger along any axis.
        start_index: integer scalar.
        axis: int, the axis.
        allow_negative_indices: bool: a negative index counts from the end; False spares the test where it never is.

    Returns:
        array of the dtype and shape of operand.

    Example:
        >>> from weft import lax
        >>> lax.dynamic_update_slice_in_dim(lax.iota('int32', 3), lax.full((1,), 9, 'int32'), 2, 0)
        Array([0, 1, 9], dtype=int32)
    """
    x = checked("dynamic_update_slice_in_dim", operand)
    starts: list[Any] = [0] * len(shape_of(x))
    starts[canonical_axis(axis, len(starts))] = start_index
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """Replaces what lies at an index along one axis that may be traced.

    Args:
        operand: array of any dtype, any shape.
        update: array of the dtype of operand and its shape, where the axis has size 1 or is missing; or a Python
            number.
        index: integer scalar.
        axis: int, the axis.
        allow_negative_indices: bool: a negative index counts from the end; False spares the test where it never is.

    Returns:
        array of the dtype and shape of operand.

    Example:
        >>> from weft import lax
        >>> lax.dynamic_update_index_in_dim(lax.iota('int32', 3), 9, 0, 0)
        Array([9, 1, 2], dtype=int32)
    """
    x, update = checked("dynamic_update_index_in_dim", operand), checked("dynamic_update_index_in_dim", update)
    axis = canonical_axis(axis, len(shape_of(x)))
    update = linear.convert(update, dtype_of(x)) if get_aval(update).weak_type else update
    if len(shape_of(update)) != len(shape_of(x)):
        update = linear.expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(x, update, index, axis, allow_negative_indices=allow_negative_indices)


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """Takes the elements at the places where `idxs[i]` is the index along `axes[i]`, modulo its size.

    Indices are taken modulo the sizes.

    Args:
        src: array of any dtype, any shape.
        idxs: one vector of integers, shape (n,), for each of the axes.
        axes: sequence of distinct ints, the axes.

    Returns:
        array of the dtype of src, shape (n, …) with the other axes of src.

    Raises:
        TypeError: if there is not one vector of indices for each axis.

    Example:
        >>> from weft import lax
        >>> x = lax.reshape(lax.iota('int32', 6), (2, 3))
        >>> lax.index_take(x, (lax.full((2,), 1), lax.iota('int32', 2)), (0, 1))
        Array([3, 4], dtype=int32)
    """
    x, shape = on_device(checked("index_take", src)), shape_of(checked("index_take", src))
    columns, axes = [on_device(checked("index_take", i)) for i in idxs], canonical_axes(tuple(axes), len(shape), "axes")
    if (
        len(columns) != len(axes)
        or not columns
        or any(len(shape_of(c)) != 1 or not dtypes.is_int(dtype_of(c)) for c in columns)
    ):
        raise type_error(
            f"index_take: idxs must be one vector of integers for each of the axes {axes}, got"
            f" {', '.join(format(get_aval(c)) for c in columns)}."
        )
    wrapped = []
    for column, axis in zip(columns, axes):
        column = wide_index(column, shape[axis])
        rest = wrap_index(el.rem(column, scalar_like(column, shape[axis])), shape[axis])
        wrapped.append(linear.expand_dims(rest, (1,)))
    dt = holding(dtypes.int32, *[shape[axis] for axis in axes])
    indices = concatenate(
        [linear.convert(w, dt) for w in wrapped] if len({dtype_of(w) for w in wrapped}) > 1 else wrapped, 1
    )
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape) - len(axes) + 1)), tuple(sorted(axes)), axes)
    sizes = [1 if d in axes else n for d, n in enumerate(shape)]
    return gather_ops.gather(x, indices, numbers, sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Mode = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Takes slices at the places that an array of indices names, as XLA's Gather.

    Args:
        operand: array of any dtype, any shape.
        start_indices: array of integers, shape (…, i): where each slice begins, its coordinates along the last axis.
        dimension_numbers: `lax.GatherDimensionNumbers`, how axes of operand, indices and result correspond.
        slice_sizes: one int for each axis of operand, the shape of each slice.
        unique_indices: bool, a promise that no two slices begin at one place.
        indices_are_sorted: bool, a promise that they are; the result is undefined where it is broken.
        mode: `lax.GatherScatterMode` or its name, for what lies out of bounds: 'clip' moves it in, 'fill' or 'drop'
            leaves it out, 'promise_in_bounds' says that there is none. None for 'fill'.
        fill_value: scalar for what lies out of bounds with mode 'fill'; None for NaN, the least signed or the largest
            unsigned integer, or True.

    Returns:
        array of the dtype of operand; its shape has the axes of indices but the last, and those of the slices at
        `dimension_numbers.offset_dims`.

    Raises:
        TypeError: if dtypes or shapes do not fit.

    Example:
        >>> from weft import lax
        >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
        >>> lax.gather(lax.iota('int32', 5), lax.full((1, 1), 3), numbers, (1,))
        Array([3], dtype=int32)
    """
    x = checked("gather", operand)
    parsed = GatherScatterMode.from_any(mode)
    if parsed == GatherScatterMode.FILL_OR_DROP and fill_value is None:
        fill_value = gather_ops.gather_fill(dtype_of(x), None)
    return gather_ops.gather(
        x,
        checked("gather", start_indices),
        dimension_numbers,
        canonical_shape(slice_sizes),
        mode=parsed,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        fill_value=fill_value,
    )


def _scatter(
    name: str,
    primitive: Primitive,
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Mode,
) -> Array:
    x, new = checked(name, operand), checked(name, updates)
    return primitive.bind(
        x,
        checked(name, scatter_indices),
        new,
        dimension_numbers=dimension_numbers,
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
        update_jaxpr=None,
        update_consts=(),
    )


def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Writes updates at the places that an array of indices names, as XLA's Scatter. Where places meet, one of the
    updates stays.

    Args:
        operand: array of any dtype, any shape.
        scatter_indices: array of integers, shape (…, i): where each update begins, coordinates along the last axis.
        updates: array of the dtype of operand; its shape has the axes of indices and those of the windows, as
            `dimension_numbers` says.
        dimension_numbers: `lax.ScatterDimensionNumbers`, as XLA's Scatter has them.
        indices_are_sorted: bool, a promise that they are; the result is undefined where it is broken.
        unique_indices: bool, a promise that no place is written twice; the result is undefined where it is broken.
        mode: `lax.GatherScatterMode` or its name, for what lies out of bounds: 'clip' moves it in, 'fill' or 'drop'
            leaves it out, 'promise_in_bounds' says that there is none. None for 'fill'.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: if dtypes or shapes do not fit.

    Example:
        >>> from weft import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> y = lax.scatter(lax.iota('int32', 3), lax.full((1, 1), 2), lax.full((1,), 5, 'int32'), numbers)
    """
    return _scatter(
        "scatter",
        scatter_ops.scatter_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Adds updates at the places that an array of indices names, as XLA's Scatter.

    Args:
        operand: array of integers, floats or complex numbers, any shape.
        scatter_indices: array of integers, shape (…, i): where each update begins, coordinates along the last axis.
        updates: array of the dtype of operand; its shape has the axes of indices and those of the windows, as
            `dimension_numbers` says.
        dimension_numbers: `lax.ScatterDimensionNumbers`, as XLA's Scatter has them.
        indices_are_sorted: bool, a promise that they are; the result is undefined where it is broken.
        unique_indices: bool, a promise that no place is written twice; the result is undefined where it is broken.
        mode: `lax.GatherScatterMode` or its name, for what lies out of bounds: 'clip' moves it in, 'fill' or 'drop'
            leaves it out, 'promise_in_bounds' says that there is none. None for 'fill'.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: if dtypes or shapes do not fit.

    Example:
        >>> from weft import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> y = lax.scatter_add(lax.iota('int32', 3), lax.full((1, 1), 2), lax.full((1,), 5, 'int32'), numbers)
    """
    return _scatter(
        "scatter_add",
        scatter_ops.scatter_add_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Multiplies by updates at the places that an array of indices names, as XLA's Scatter.

    Args:
        operand: array of integers, floats or complex numbers, any shape.
        scatter_indices: array of integers, shape (…, i): where each update begins, coordinates along the last axis.
        updates: array of the dtype of operand; its shape has the axes of indices and those of the windows, as
            `dimension_numbers` says.
        dimension_numbers: `lax.ScatterDimensionNumbers`, as XLA's Scatter has them.
        indices_are_sorted: bool, a promise that they are; the result is undefined where it is broken.
        unique_indices: bool, a promise that no place is written twice; the result is undefined where it is broken.
        mode: `lax.GatherScatterMode` or its name, for what lies out of bounds: 'clip' moves it in, 'fill' or 'drop'
            leaves it out, 'promise_in_bounds' says that there is none. None for 'fill'.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: if dtypes or shapes do not fit.

    Example:
        >>> from weft import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> y = lax.scatter_mul(lax.iota('int32', 3), lax.full((1, 1), 2), lax.full((1,), 5, 'int32'), numbers)
    """
    return _scatter(
        "scatter_mul",
        scatter_ops.scatter_mul_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Takes the minimum with updates at the places that an array of indices names, as XLA's Scatter.

    Args:
        operand: array of integers, floats or complex numbers, any shape.
        scatter_indices: array of integers, shape (…, i): where each update begins, coordinates along the last axis.
        updates: array of the dtype of operand; its shape has the axes of indices and those of the windows, as
            `dimension_numbers` says.
        dimension_numbers: `lax.ScatterDimensionNumbers`, as XLA's Scatter has them.
        indices_are_sorted: bool, a promise that they are; the result is undefined where it is broken.
        unique_indices: bool, a promise that no place is written twice; the result is undefined where it is broken.
        mode: `lax.GatherScatterMode` or its name, for what lies out of bounds: 'clip' moves it in, 'fill' or 'drop'
            leaves it out, 'promise_in_bounds' says that there is none. None for 'fill'.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: if dtypes or shapes do not fit.

    Example:
        >>> from weft import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> y = lax.scatter_min(lax.iota('int32', 3), lax.full((1, 1), 2), lax.full((1,), 5, 'int32'), numbers)
    """
    return _scatter(
        "scatter_min",
        scatter_ops.scatter_min_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Takes the maximum with updates at the places that an array of indices names, as XLA's Scatter.

    Args:
        operand: array of integers, floats or complex numbers, any shape.
        scatter_indices: array of integers, shape (…, i): where each update begins, coordinates along the last axis.
        updates: array of the dtype of operand; its shape has the axes of indices and those of the windows, as
            `dimension_numbers` says.
        dimension_numbers: `lax.ScatterDimensionNumbers`, as XLA's Scatter has them.
        indices_are_sorted: bool, a promise that they are; the result is undefined where it is broken.
        unique_indices: bool, a promise that no place is written twice; the result is undefined where it is broken.
        mode: `lax.GatherScatterMode` or its name, for what lies out of bounds: 'clip' moves it in, 'fill' or 'drop'
            leaves it out, 'promise_in_bounds' says that there is none. None for 'fill'.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: if dtypes or shapes do not fit.

    Example:
        >>> from weft import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> y = lax.scatter_max(lax.iota('int32', 3), lax.full((1, 1), 2), lax.full((1,), 5, 'int32'), numbers)
    """
    return _scatter(
        "scatter_max",
        scatter_ops.scatter_max_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Subtracts updates at the places that an array of indices names, as XLA's Scatter.

    Args:
        operand: array of integers, floats or complex numbers, any shape.
        scatter_indices: array of integers, shape (…, i): where each update begins, coordinates along the last axis.
        updates: array of the dtype of operand; its shape has the axes of indices and those of the windows, as
            `dimension_numbers` says.
        dimension_numbers: `lax.ScatterDimensionNumbers`, as XLA's Scatter has them.
        indices_are_sorted: bool, a promise that they are; the result is undefined where it is broken.
        unique_indices: bool, a promise that no place is written twice; the result is undefined where it is broken.
        mode: `lax.GatherScatterMode` or its name, for what lies out of bounds: 'clip' moves it in, 'fill' or 'drop'
            leaves it out, 'promise_in_bounds' says that there is none. None for 'fill'.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: if dtypes or shapes do not fit.

    Example:
        >>> from weft import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> y = lax.scatter_sub(lax.iota('int32', 3), lax.full((1, 1), 2), lax.full((1,), 5, 'int32'), numbers)
    """
    return _scatter(
        "scatter_sub",
        scatter_ops.scatter_sub_p,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Applies an elementwise function once at each place that an array of indices names.

    Args:
        operand: array of any dtype, any shape.
        scatter_indices: array of integers, shape (…, i): where each update begins, coordinates along the last axis.
        func: an elementwise function of an array of the dtype of operand.
        dimension_numbers: `lax.ScatterDimensionNumbers`, as XLA's Scatter has them.
        update_shape: sequence of ints, the sizes of the window axes, as updates would have them.
        indices_are_sorted: bool, a promise that they are; the result is undefined where it is broken.
        unique_indices: bool, a promise that no place is written twice; the result is undefined where it is broken.
        mode: `lax.GatherScatterMode` or its name, for what lies out of bounds: 'clip' moves it in, 'fill' or 'drop'
            leaves it out, 'promise_in_bounds' says that there is none. None for 'fill'.

    Returns:
        array of the dtype and shape of operand.

    Raises:
        TypeError: if dtypes or shapes do not fit.

    Example:
        >>> from weft import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_apply(lax.iota('float32', 3), lax.full((1, 1), 2), lax.square, numbers, update_shape=(1,))
        Array([0., 1., 4.], dtype=float32)
    """
    x, indices, dn = checked("scatter_apply", operand), checked("scatter_apply", scatter_indices), dimension_numbers
    parsed = GatherScatterMode.from_any(mode)
    window = iter(dn.update_window_dims)
    sizes = [
        1 if d in dn.inserted_window_dims or d in dn.operand_batching_dims else update_shape[next(window)]
        for d in range(len(shape_of(x)))
    ]
    numbers = GatherDimensionNumbers(
        dn.update_window_dims,
        dn.inserted_window_dims,
        dn.scatter_dims_to_operand_dims,
        dn.operand_batching_dims,
        dn.scatter_indices_batching_dims,
    )
    here = gather_ops.gather(
        x, indices, numbers, sizes, mode=GatherScatterMode.CLIP if parsed == GatherScatterMode.FILL_OR_DROP else parsed
    )
    return scatter(
        x,
        indices,
        linear.convert(func(here), dtype_of(x)),
        dn,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=parsed,
    )
