"""Ranges of numbers and the grids that they span: arange, linspace, meshgrid, indices, …"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Literal, Sequence, TypeVar, overload

from ..base import dtypes
from ..base.avals import Size, SymbolicSize
from ..symbolic.dims import max_dim
from ..runtime.jit import inner_jit
from ..core.trace import Tracer, get_aval
from ..base.errors import ConcretizationTypeError
from ..base.host import is_host_array
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import concatenate, iota
from ..transforms.stage import concretization_error
from ..base.tree import tree_map
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Placement, ShapeLike, SizeLike
from ..transforms.auto_axes import with_out_sharding
from .creation import _stack, placed
from .util import (
    asked_dtype,
    broadcast_shapes,
    broadcast_to,
    canonical_axis,
    canonical_shape,
    index_dtype,
    inexact_dtype,
    laid_out,
    no_complex,
    on_device,
    operand,
    promote,
    result_dtype,
    static_size,
)

if TYPE_CHECKING:
    from ..core.types import Value
    from ..base.dtypes import ElementType

__all__ = ["arange", "fromfunction", "geomspace", "indices", "linspace", "logspace", "meshgrid"]

_T = TypeVar("_T")


def _concrete(name: str, argument: str, value: Value) -> Any:
    """An argument that must be concrete, as a Python number."""
    if isinstance(value, Tracer):
        raise ConcretizationTypeError(
            concretization_error(
                value,
                f"{name} needs the number of its argument {argument!r}, because the result's shape "
                "depends on it (mark it with static_argnums, or use lax.iota with a fixed size)",
            )
        )
    if dtypes.is_python_scalar(value) or isinstance(value, SymbolicSize):
        return value
    if shape_of(value):
        raise ValueError(f"{name}: {argument} must be a scalar, got {get_aval(value)}.")
    return (value if is_host_array(value) else value._host()).tolist()


def _symbolic_count(lo: Value, hi: Value, by: Value) -> Size:
    """How many numbers lie between bounds of which some are symbolic."""
    if any(isinstance(v, float) for v in (lo, hi, by)):
        raise TypeError(
            f"arange: with a symbolic dimension among them, start, stop and step must be integers; got {lo}, {hi},"
            f" {by}."
        )
    return max_dim(0, (hi - lo + by - 1) // by if by > 0 else (lo - hi - by - 1) // -by)


def arange(
    start: ArrayLike | SymbolicSize,
    stop: ArrayLike | SymbolicSize | None = None,
    step: ArrayLike | SymbolicSize | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """start, start + step, … below stop.

    Args:
        start: number, the first one; with one argument the end, from 0.
        stop: number, which is left out.
        step: number, the distance; None for 1.
        dtype: dtype of the result; None for that to which the numbers promote.
        device: device or sharding: where the result lies; None for the default device.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype, shape (n,) with n = (stop - start) / step, rounded up.

    Raises:
        ConcretizationTypeError: if a bound is traced. ZeroDivisionError: for step 0.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.arange(1, 4)
        Array([1, 2, 3], dtype=int32)
    """
    if start is None and stop is None:
        raise TypeError("arange needs a number for start or stop, got None.")
    for given in (start, stop, step):
        if given is not None and not isinstance(given, SymbolicSize):
            operand("arange", given, any_int=True)
            no_complex("arange", given)
    dt = asked_dtype("arange", dtype) or result_dtype(*[v for v in (start, stop, step) if v is not None])[0]
    lo = _concrete("arange", "start", start)
    hi = None if stop is None else _concrete("arange", "stop", stop)
    by = 1 if step is None else _concrete("arange", "step", step)
    if hi is None:
        lo, hi = 0, lo
    if by == 0:
        raise ZeroDivisionError("arange: step must not be zero.")
    n = (
        max(0, math.ceil((hi - lo) / by))
        if not any(isinstance(v, SymbolicSize) for v in (lo, hi, by))
        else _symbolic_count(lo, hi, by)
    )
    computed = dtypes.float32 if dtypes.is_float(dt) and dt.itemsize < 4 and (lo != 0 or by != 1) else dt
    if out_sharding is not None and device is None and (lo, by) == (0, 1):
        return with_out_sharding(
            "arange", out_sharding, lambda where: linear.convert(iota(computed, (n,), 0, where), dt)
        )
    out = iota(computed, (n,), 0)
    if by != 1:
        out = el.mul(scalar_like(out, by), out)
    if by != 1 or lo != 0:
        out = el.add(scalar_like(out, lo), out)
    out = linear.convert(out, dt)
    return laid_out("arange", lambda: placed(out, device), out_sharding, device)


@inner_jit(static_argnames=("num", "endpoint", "dtype", "axis"))
def _linspace(start: Any, stop: Any, *, num: Any, endpoint: bool, dtype: ElementType, axis: Any) -> Value:
    computed = inexact_dtype(dtype)
    start, stop = [linear.convert(v, computed) for v in (start, stop)]
    shape = broadcast_shapes([shape_of(start), shape_of(stop)])
    start, stop = [broadcast_to(v, shape) if shape else v for v in (start, stop)]
    div = num - 1 if endpoint else num
    if num > 1:
        ramp = iota(dtypes.real_of(computed) if dtypes.is_complex(computed) else computed, (div,), 0)
        ramp = linear.reshape(ramp, (div,) + (1,) * len(shape))
        steps = linear.convert(el.div(ramp, scalar_like(ramp, div)), computed)
        out = el.add(
            el.mul(linear.reshape(start, (1, *shape)), el.sub(scalar_like(steps, 1), steps)),
            el.mul(linear.reshape(stop, (1, *shape)), steps),
        )
        if endpoint:
            out = concatenate([out, linear.broadcast_in_dim(stop, (1, *shape), tuple(range(1, len(shape) + 1)))], 0)
    elif num == 1:
        out = linear.reshape(start, (1, *shape))
    else:
        out = linear.full((0, *shape), 0, computed)
    if dtypes.is_int(dtype) and not dtypes.is_int(computed):
        out = el.floor(out)
    out = linear.moveaxis(out, 0, axis if axis >= 0 else len(shape) + 1 + axis)
    return linear.convert(out, dtype)


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: SizeLike = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: SizeLike,
    endpoint: bool,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> tuple[Array, Array]: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: SizeLike = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: Placement = None,
) -> tuple[Array, Array]: ...
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: SizeLike = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Array | tuple[Array, Array]:
    """`num` evenly spaced numbers from start to stop (left out where not `endpoint`); bounds may be arrays.

    Args:
        start: number or array of numbers.
        stop: number or array of numbers that broadcasts with start.
        num: int, how many.
        endpoint: bool: whether `stop` is the last one.
        retstep: bool: return the distance too.
        dtype: dtype of the result; None for floats, or complex numbers.
        axis: int, the axis of the result along which they lie.
        device: device or sharding: where the result lies; None for the default device.

    Returns:
        array of that dtype, with `num` along the axis; with `retstep` also the distance.

    Raises:
        ValueError: for a negative `num`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linspace(0, 1, 3)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    count: Size = static_size("num", num)
    if count < 0:
        raise ValueError(f"linspace: number of samples, {count}, must not be negative.")
    start, stop = operand("linspace", start), operand("linspace", stop)
    dt = asked_dtype("linspace", dtype)
    if dt is None:
        dt = result_dtype(start, stop)[0]
        dt = inexact_dtype(dt)
    rank = 1 + max(len(shape_of(start)), len(shape_of(stop)))
    if not -rank <= axis < rank:
        raise IndexError(f"linspace: axis {axis} is out of bounds for a result of rank {rank}.")
    out = _linspace(start, stop, num=count, endpoint=bool(endpoint), dtype=dt, axis=int(axis))
    out = placed(out, device)
    if not retstep:
        return out
    a, b = [linear.convert(v, inexact_dtype(dt)) for v in (start, stop)]
    div = count - 1 if endpoint else count
    step = el.div(el.sub(b, a), scalar_like(b, div)) if div > 0 else linear.full((), math.nan, dtype_of(b))
    return out, on_device(step)


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Powers of `base` with evenly spaced exponents.

    Args:
        start: number or array of numbers: an exponent.
        stop: number or array of numbers that broadcasts with start: an exponent.
        num: int, how many.
        endpoint: bool: whether `stop` is the last one.
        base: number or array of numbers.
        dtype: dtype of the result; None for floats, or complex numbers.
        axis: int, the axis of the result along which they lie.

    Returns:
        array of that dtype, with `num` along the axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.logspace(0, 2, 3).shape
        (3,)
    """
    dt = asked_dtype("logspace", dtype)
    exponents = linspace(
        start, stop, num, endpoint, dtype=dt if dt is not None and dtypes.is_inexact(dt) else None, axis=axis
    )
    base, exponents = promote("logspace", base, exponents)
    base = broadcast_to(base, shape_of(exponents)) if shape_of(base) else base
    out = transcendental.pow_(base, exponents)
    return out if dt is None else linear.convert(out, dt)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Numbers from start to stop, each the same multiple of the one before.

    Args:
        start: number or array of numbers.
        stop: number or array of numbers that broadcasts with start.
        num: int, how many.
        endpoint: bool: whether `stop` is the last one.
        dtype: dtype of the result; None for floats, or complex numbers.
        axis: int, the axis of the result along which they lie.

    Returns:
        array of that dtype, with `num` along the axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.geomspace(1., 4., 3).shape
        (3,)
    """
    dt = asked_dtype("geomspace", dtype) or inexact_dtype(result_dtype(start, stop)[0])
    computed = inexact_dtype(dt)
    start, stop = [linear.convert(operand("geomspace", v), computed) for v in (start, stop)]
    shape = broadcast_shapes([shape_of(start), shape_of(stop)])
    start, stop = [broadcast_to(v, shape) for v in (start, stop)]
    sign = el.sign(start)
    exponent = lambda v: el.mul(transcendental.log(v), scalar_like(v, 1 / math.log(10)))
    out = logspace(exponent(el.div(start, sign)), exponent(el.div(stop, sign)), num, endpoint, dtype=computed, axis=0)
    out = el.mul(out, broadcast_to(sign, shape_of(out)))
    return linear.convert(linear.moveaxis(out, 0, canonical_axis(axis, len(shape_of(out)))), dt)


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """Coordinate arrays over a grid of vectors.

    Args:
        *xi: arrays of any dtype, of rank at most 1.
        copy: bool, which must be True.
        sparse: bool: the axes of other vectors have size 1.
        indexing: 'xy', where the first two axes are swapped, or 'ij'.

    Returns:
        list of arrays, each of the dtype of its vector and the shape of the grid.

    Raises:
        ValueError: `copy` is False, `indexing` is unknown, or an array has more than one axis.

    Example:
        >>> import weft.numpy as jnp
        >>> [g.shape for g in jnp.meshgrid(jnp.zeros(2), jnp.zeros(3))]
        [(3, 2), (3, 2)]
    """
    args = [on_device(operand("meshgrid", x)) for x in xi]
    if not copy:
        raise ValueError("meshgrid: arrays are immutable, so copy=False is not supported.")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing takes 'xy' or 'ij', got {indexing!r}.")
    if any(len(shape_of(a)) != 1 for a in args):
        raise ValueError(f"meshgrid takes vectors, got shapes {[shape_of(a) for a in args]}.")
    order = list(range(len(args)))
    if indexing == "xy" and len(args) > 1:
        order[0], order[1] = 1, 0
    shape = [1] * len(args)
    for a, d in zip(args, order):
        shape[d] = shape_of(a)[0]
    if sparse:
        return [linear.reshape(a, tuple(n if e == d else 1 for e, n in enumerate(shape))) for a, d in zip(args, order)]
    return [linear.broadcast_in_dim(a, tuple(shape), (d,)) for a, d in zip(args, order)]


@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: Literal[False] = False) -> Array: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, *, sparse: Literal[True]
) -> tuple[Array, ...]: ...
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """The index of every element of a grid, one array for each axis.

    Args:
        dimensions: sequence of ints, the shape of the grid.
        dtype: dtype of integers or floats; None for int32.
        sparse: bool: a tuple of arrays, whose other axes have size 1.

    Returns:
        array of that dtype and shape (rank, *dimensions).

    Raises:
        TypeError: `dimensions` is not a sequence of integers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.indices((2, 3)).shape
        (2, 2, 3)
    """
    if isinstance(dimensions, int):
        raise TypeError(f"indices: dimensions must be a sequence of integers, got {dimensions}.")
    dims, dt = canonical_shape(dimensions), asked_dtype("indices", dtype) or index_dtype()
    if sparse:
        return tuple(
            linear.reshape(iota(dt, (n,), 0), tuple(n if e == d else 1 for e in range(len(dims))))
            for d, n in enumerate(dims)
        )
    grids = [iota(dt, dims, d) for d in range(len(dims))]
    return _stack(grids) if grids else linear.full((0,), 0, dt)


def fromfunction(function: Callable[..., _T], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: object) -> _T:
    """`function` of the index arrays of a grid.

    Args:
        function: function of one array for each axis.
        shape: sequence of ints, the shape of the grid.
        dtype: dtype of the index arrays.
        **kwargs: further arguments of the function.

    Returns:
        what the function returns for elements, with the axes of the grid in front.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int).tolist()
        [[0, 1], [1, 2]]
    """
    shape, out = canonical_shape(shape), function(*indices(canonical_shape(shape), dtype), **kwargs)
    return tree_map(lambda x: x if shape_of(x)[: len(shape)] == shape else broadcast_to(x, (*shape, *shape_of(x))), out)
