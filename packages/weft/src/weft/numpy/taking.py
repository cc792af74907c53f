"""Reading and writing elements at given positions: take, take_along_axis, choose, put, put_along_axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..runtime.jit import inner_jit
from ..core.trace import Tracer, get_aval
from ..base.errors import ConcretizationTypeError
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.gather import GatherDimensionNumbers, GatherScatterMode, gather, gather_fill
from ..primitives.positions import narrowed, wide_index
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike
from .indexing import _index_dtype
from .shapes import ravel, take_rows
from .ufuncs import where_jit
from .util import broadcast_shapes, broadcast_to, canonical_axis, flat_host, no_out, on_device, operand, promote

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["choose", "put", "put_along_axis", "take", "take_along_axis"]


@inner_jit(name="_take", static_argnums=(2, 3, 4))
def _take(x: Value, indices: Any, axis: Any, mode: str | None, fill_value: Value) -> Value:
    dt = dtype_of(x)
    shape, extra, rank = shape_of(x), len(shape_of(indices)), len(shape_of(x))
    n = shape[axis]
    if mode == "wrap" or mode != "clip" and not dtypes.is_unsigned(dtype_of(indices)):
        indices = wide_index(indices, n)
    if mode == "wrap":
        indices = el.rem(
            el.add(el.rem(indices, scalar_like(indices, n)), scalar_like(indices, n)), scalar_like(indices, n)
        )
    elif mode != "clip" and not dtypes.is_unsigned(dtype_of(indices)):
        indices = where_jit(el.lt(indices, scalar_like(indices, 0)), el.add(indices, scalar_like(indices, n)), indices)
    parsed = GatherScatterMode.CLIP if mode in ("clip", "wrap") else GatherScatterMode.from_any(mode)
    numbers = GatherDimensionNumbers((*range(axis), *range(axis + extra, rank - 1 + extra)), (axis,), (axis,))
    sizes = tuple(1 if d == axis else m for d, m in enumerate(shape))
    return gather(
        x,
        linear.broadcast_in_dim(indices, (*shape_of(indices), 1), tuple(range(extra))),
        numbers,
        sizes,
        mode=parsed,
        fill_value=gather_fill(dt, fill_value),
    )


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements (or slices) at integer positions along an axis (None: of the flattened array).

    Out of bounds: NaN or the smallest integer (mode "fill", the default), the nearest element ("clip"), or wrapped
    round ("wrap").

    Args:
        a: array of any dtype, any shape.
        indices: array of integers, any shape.
        axis: int, the axis; None for the flattened array.
        out: None, since arrays are immutable.
        mode: 'fill', 'clip' or 'wrap', or None: what becomes of positions out of bounds.
        unique_indices: bool: promises that no position occurs twice.
        indices_are_sorted: bool: promises that the positions are sorted.
        fill_value: number for positions out of bounds; None for NaN or the smallest integer.

    Returns:
        array of the dtype of a; the axes of `indices` stand in place of the axis.

    Raises:
        ValueError: for positions that are no integers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.take(jnp.array([10, 20]), jnp.array([1, 0]))
        Array([20, 10], dtype=int32)
    """
    no_out("take", out)
    x = on_device(operand("take", a))
    indices = on_device(operand("take", indices))
    indices = linear.convert(indices, dtypes.int32) if dtypes.is_bool(get_aval(indices).dtype) else indices
    if not dtypes.is_int(get_aval(indices).dtype):
        raise ValueError(f"take: indices must be integers, got {get_aval(indices)}. Convert them with astype(int).")
    if mode == "raise":
        raise NotImplementedError(
            "take: mode='raise' can't raise from a compiled program; use 'fill', 'clip' or 'wrap'."
        )
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, len(shape_of(x)))
    if shape_of(x)[axis] == 0:
        if math.prod(shape_of(indices)):
            raise IndexError(f"take: can't take from the empty axis {axis} of shape {shape_of(x)}.")
        return linear.full((*shape_of(x)[:axis], *shape_of(indices), *shape_of(x)[axis + 1 :]), 0, dtype_of(x))
    index = linear.convert(indices, dtypes.int32) if get_aval(indices).weak_type else indices
    return _take(x, index, axis, mode, fill_value)


@inner_jit(name="take_along_axis", static_argnums=(2, 3, 4, 5))
def _take_along(x: Value, indices: Any, axis: Any, mode: str | None, fill_value: Value, wrap: bool) -> Value:
    shape, rank = shape_of(x), len(shape_of(x))
    n = shape[axis]
    if wrap:
        indices = el.select_n_p.bind(
            el.lt(indices, scalar_like(indices, 0)), indices, el.add(indices, scalar_like(indices, n))
        )
    others = [d for d in range(rank) if d != axis]
    lead = broadcast_shapes([tuple(shape[d] for d in others), tuple(shape_of(indices)[d] for d in others)])
    wide = list(lead)
    wide.insert(axis, n)
    x = broadcast_to(x, tuple(wide))
    wide[axis] = shape_of(indices)[axis]
    indices = broadcast_to(indices, tuple(wide))
    batch = tuple(others)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), batch, batch)
    parsed = GatherScatterMode.from_any(mode)
    return gather(
        x,
        linear.reshape(indices, (*wide, 1)),
        numbers,
        (1,) * rank,
        mode=parsed,
        fill_value=gather_fill(dtype_of(x), fill_value),
    )


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Elements along an axis at positions that differ from row to row; other axes broadcast.

    Negative positions count from the end, but with wrap_negative_indices=False they are out of bounds.

    Args:
        arr: array of any dtype, any shape.
        indices: array of integers, of the rank of arr.
        axis: int, the axis; None for the flattened array.
        mode: 'fill', 'clip' or 'wrap', or None: what becomes of positions out of bounds.
        fill_value: number for positions out of bounds; None for NaN or the smallest integer.
        wrap_negative_indices: bool.

    Returns:
        array of the dtype of arr, the shape of `indices` broadcast.

    Raises:
        TypeError: for positions that are no integers. ValueError: for another rank.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.take_along_axis(jnp.array([[1, 2], [3, 4]]), jnp.array([[1], [0]]), 1).tolist()
        [[2], [3]]
    """
    x, indices = on_device(operand("take_along_axis", arr)), on_device(operand("take_along_axis", indices))
    if not dtypes.is_int(get_aval(indices).dtype):
        raise TypeError(f"take_along_axis: indices must be integers, got {get_aval(indices)}.")
    if axis is None:
        if len(shape_of(indices)) != 1:
            raise ValueError("take_along_axis: indices must be 1D if axis=None.")
        x, axis = ravel(x), 0
    if len(shape_of(x)) != len(shape_of(indices)):
        raise ValueError(
            f"take_along_axis: indices and arr must have the same number of dimensions; got shapes {shape_of(indices)}"
            f" and {shape_of(x)}."
        )
    wrap = mode != "promise_in_bounds" if wrap_negative_indices is None else bool(wrap_negative_indices)
    dt = _index_dtype([indices], shape_of(x))
    return _take_along(x, narrowed(indices, dt), canonical_axis(axis, len(shape_of(x))), mode, fill_value, wrap)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """A new array with `values` at positions that differ from row to row along an axis; give inplace=False.

    Args:
        arr: array of any dtype, any shape.
        indices: array of integers, of the rank of arr.
        values: array that broadcasts to `indices`, and converts to the dtype of arr.
        axis: int, the axis; None for the flattened array.
        inplace: bool, which must be False, since arrays are immutable.
        mode: 'fill', 'clip' or 'wrap', or None: what becomes of positions out of bounds.

    Returns:
        array of the dtype and shape of arr.

    Raises:
        ValueError: `inplace` is not False.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[1], [0]]), 9., 1, inplace=False).tolist()
        [[0.0, 9.0], [9.0, 0.0]]
    """
    if inplace:
        raise ValueError("arrays are immutable: call put_along_axis with inplace=False and use its result.")
    x, indices = on_device(operand("put_along_axis", arr)), on_device(operand("put_along_axis", indices))
    if axis is None:
        return put_along_axis(ravel(x), indices, values, 0, False, mode=mode).reshape(shape_of(x))
    axis = canonical_axis(axis, len(shape_of(x)))
    shape = shape_of(indices)
    index = tuple(
        (
            indices
            if d == axis
            else linear.reshape(
                ops.iota(dtypes.int32, (shape_of(x)[d],), 0),
                tuple(shape_of(x)[d] if e == d else 1 for e in range(len(shape))),
            )
        )
        for d in range(len(shape))
    )
    return x.at[index].set(values, mode=mode)


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """A new array with `v` at flat positions; give inplace=False.

    Args:
        a: array of any dtype, any shape.
        ind: array of integers: positions in the flattened array.
        v: array, repeated as often as needed, which converts to the dtype of a.
        mode: what becomes of positions out of bounds: 'wrap' takes them modulo the size; 'clip' moves them to the
            first or last position; None does so too, but counts negative positions from the end.
        inplace: bool, which must be False, since arrays are immutable.

    Returns:
        array of the dtype and shape of a.

    Raises:
        ValueError: `inplace` is not False, or the mode is unknown.
        NotImplementedError: the mode is 'raise'.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.put(jnp.zeros(3), jnp.array([1]), 5., inplace=False)
        Array([0., 5., 0.], dtype=float32)
    """
    if inplace:
        raise ValueError("arrays are immutable: call put with inplace=False and use its result.")
    if mode == "raise":
        raise NotImplementedError("put: mode='raise' can't raise from a compiled program; use 'clip' or 'wrap'.")
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"put: mode takes 'clip' or 'wrap', got {mode!r}.")
    x, ind = on_device(operand("put", a)), ravel(ind)
    values = ravel(v)
    n, size = shape_of(ind)[0], math.prod(shape_of(x))
    if not shape_of(values)[0] or not n or not size:
        return x
    values = take_rows(
        values, el.rem(ops.iota(dtypes.int32, (n,), 0), linear.full((n,), shape_of(values)[0], dtypes.int32)), 0
    )
    ind = wide_index(ind, size)
    low = -size if mode is None and not dtypes.is_unsigned(dtype_of(ind)) else 0
    ind = (
        el.rem(ind, scalar_like(ind, size))
        if mode == "wrap"
        else el.clamp(scalar_like(ind, low), ind, scalar_like(ind, size - 1))
    )
    return ravel(x).at[ind].set(values, mode="drop").reshape(shape_of(x))


def choose(a: ArrayLike, choices: Array | Sequence[ArrayLike], out: None = None, mode: str = "raise") -> Array:
    """For each element, that of the array in `choices` which `a` names.

    Args:
        a: array of integers, any shape.
        choices: sequence of arrays, which broadcast with a.
        out: None, since arrays are immutable.
        mode: 'raise', 'clip' or 'wrap': what becomes of numbers out of bounds.

    Returns:
        array of the dtype to which the choices promote, the broadcast shape.

    Raises:
        ValueError: `a` is not of integers, or an index names no choice with mode 'raise'.
        ConcretizationTypeError: the mode is 'raise', and the values of `a` are not known under a transformation.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([3, 4])])
        Array([3, 2], dtype=int32)
    """
    no_out("choose", out)
    x = operand("choose", a)
    choices = [linear.convert(v, dtype_of(v)) for v in promote("choose", *choices)]
    n = len(choices)
    if not dtypes.is_int(get_aval(x).dtype):
        raise ValueError(f"choose: a must be integers, got {get_aval(x)}. Convert it with astype(int).")
    x = wide_index(x, n)
    if mode == "clip":
        x = el.clamp(scalar_like(x, 0), x, scalar_like(x, n - 1))
    elif mode == "wrap":
        x = el.rem(el.add(el.rem(x, scalar_like(x, n)), scalar_like(x, n)), scalar_like(x, n))
    elif isinstance(x, Tracer):
        raise ConcretizationTypeError(
            concretization_error(x, "choose with mode='raise' looks at the values; use mode='clip' or 'wrap'")
        )
    elif any(not 0 <= v < n for v in flat_host(x)):
        raise ValueError("choose: invalid entry in choice array.")
    shape = broadcast_shapes([shape_of(v) for v in (x, *choices)])
    return el.select_n_p.bind(
        linear.convert(broadcast_to(x, shape), dtypes.int32), *[broadcast_to(c, shape) for c in choices]
    )
