"""weft.numpy.pad and its modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..base import dtypes
from ..base.avals import SymbolicSize
from ..symbolic.dims import is_constant_shape
from ..runtime.jit import inner_jit
from ..core.trace import Tracer
from ..base.errors import type_error
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.reduce import reduce_max, reduce_min
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..typing import Array, ArrayLike
from .creation import array as _asarray
from .quantiles import median
from .reductions import mean
from .selecting import apply_along_axis
from .shapes import take_rows
from .shapes import _part
from .util import broadcast_to as _broadcast_to
from .util import canonical_axis, on_device, operand, static_size

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["pad"]


@inner_jit(name="_pad", static_argnums=(1,))
def _pad_constant(x: Value, widths: Any, *constants: Value) -> Value:
    values = [linear.convert(v, dtype_of(x)) for v in constants]
    if len(values) == 1:
        return ops.pad(x, values[0], tuple((lo, hi, 0) for lo, hi in widths))
    pairs = zip(values[::2], values[1::2])
    for d, ((lo, hi), (first, last)) in enumerate(zip(widths, pairs)):
        config = lambda lo, hi: tuple((lo, hi, 0) if e == d else (0, 0, 0) for e in range(len(widths)))
        x = ops.pad(ops.pad(x, first, config(lo, 0)), last, config(0, hi))
    return x


def _pairs(name: str, value: Value, rank: int, convert: Callable[[Any], Any]) -> tuple[Any, ...]:
    """One pair for each axis from a number, a pair, or a sequence of pairs."""
    if not isinstance(value, (list, tuple)):
        if getattr(value, "ndim", 0) > 0:
            return _pairs(
                name,
                value.tolist() if hasattr(value, "tolist") and not isinstance(value, Tracer) else list(value),
                rank,
                convert,
            )
        return ((convert(value),) * 2,) * rank
    value = list(value)
    if all(not isinstance(v, (list, tuple)) and not getattr(v, "ndim", 0) for v in value):
        if len(value) == 1:
            return ((convert(value[0]),) * 2,) * rank
        if len(value) == 2:
            return ((convert(value[0]), convert(value[1])),) * rank
        raise ValueError(f"pad: {name} takes a number, a pair, or one pair for each of {rank} axes, got {value}.")
    rows = [tuple(convert(v) for v in (row if isinstance(row, (list, tuple)) else list(row))) for row in value]
    if len(rows) == 1:
        rows = [r * 2 if len(r) == 1 else r for r in rows]
        rows = rows * rank
    if len(rows) != rank or any(len(r) != 2 for r in rows):
        raise ValueError(f"pad: {name} takes a number, a pair, or one pair for each of {rank} axes, got {value}.")
    return tuple(rows)


def pad(
    array: ArrayLike,
    pad_width: ArrayLike | Sequence[int | Sequence[int]] | Mapping[int, int | tuple[int, int]],
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """The array with elements added at both ends of each axis.

    Modes: constant (`constant_values`), edge, reflect and symmetric (`reflect_type` 'even' or 'odd'), wrap, linear_ramp
    (`end_values`), maximum, minimum, mean and median (of `stat_length` elements at each end), empty; or a function of
    (vector with zeros at its ends, widths, axis, keywords) that returns the vector.

    Args:
        array: array of any dtype, any shape.
        pad_width: int, or pairs (before, after) of ints: one for all axes, or one for each.
        mode: name of a mode, or a function as `numpy.pad` takes it.
        **kwargs: the arguments of the mode: `constant_values`, `end_values`, `stat_length`, `reflect_type`.

    Returns:
        array of the dtype of the argument; each axis is longer by its pair.

    Raises:
        ValueError: for negative widths or unknown modes.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.pad(jnp.arange(2), 1)
        Array([0, 0, 1, 0], dtype=int32)
    """
    x = operand("pad", array)
    shape = shape_of(x)
    if isinstance(pad_width, dict):
        given = {canonical_axis(d, len(shape)): w for d, w in pad_width.items()}
        pad_width = [
            given.get(d, 0) if isinstance(given.get(d, 0), (list, tuple)) else (given.get(d, 0),) * 2
            for d in range(len(shape))
        ]
    widths = _pairs("pad_width", pad_width, len(shape), lambda v: static_size("pad width", v))
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("pad: index can't contain negative values.")
    if callable(mode):
        x = _pad_constant(x, widths, 0)
        for d in range(len(shape)):
            x = apply_along_axis(mode, d, x, widths[d], d, kwargs)
        return x
    allowed = {
        "constant": ("constant_values",),
        "empty": (),
        "edge": (),
        "wrap": (),
        "reflect": ("reflect_type",),
        "symmetric": ("reflect_type",),
        "linear_ramp": ("end_values",),
        "maximum": ("stat_length",),
        "minimum": ("stat_length",),
        "mean": ("stat_length",),
        "median": ("stat_length",),
    }
    if mode not in allowed:
        raise NotImplementedError(f"pad: unknown mode {mode!r}; modes are {', '.join(allowed)}.")
    unknown = set(kwargs) - set(allowed[mode])
    if unknown:
        raise ValueError(f"pad: unsupported keyword arguments for mode {mode!r}: {', '.join(sorted(unknown))}.")
    if not shape:
        return on_device(x)
    if mode in ("constant", "empty"):
        value = kwargs.get("constant_values", 0)
        if not isinstance(value, (list, tuple)) and not getattr(value, "ndim", 0):
            return _pad_constant(x, widths, operand("pad", value))
        values = _pairs("constant_values", value, len(shape), lambda v: operand("pad", v))
        return _pad_constant(x, widths, *[v for pair in values for v in pair])
    if kwargs.get("reflect_type", "even") not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {kwargs['reflect_type']!r}.")
    odd, lengths = kwargs.get("reflect_type") == "odd", kwargs.get("stat_length")
    lengths = (
        None if lengths is None else _pairs("stat_length", lengths, len(shape), lambda v: static_size("stat_length", v))
    )
    if lengths is not None and any(v < 1 for pair in lengths for v in pair):
        raise ValueError(f"pad: stat_length must be positive, got {kwargs['stat_length']}.")
    ends = _pairs("end_values", kwargs.get("end_values", 0), len(shape), lambda v: operand("pad", v))
    for d, (lo, hi) in enumerate(widths):
        x = _pad_axis(x, d, lo, hi, mode, ends[d], odd, (shape_of(x)[d],) * 2 if lengths is None else lengths[d])
    return on_device(x)


def _pad_axis(x: Value, d: int, lo: int, hi: int, mode: str, ends: Any, odd: bool, lengths: Any) -> Value:
    n = shape_of(x)[d]
    if not lo and not hi:
        return x
    if n == 0:
        raise ValueError(f"pad: can't extend empty axis {d} using mode {mode!r}.")
    if mode == "edge":
        fill = lambda row, k: _broadcast_to(row, tuple(k if e == d else m for e, m in enumerate(shape_of(x))))
        return ops.concatenate([fill(_part(x, d, 0, 1), lo), x, fill(_part(x, d, n - 1, n), hi)], d)
    if mode in ("wrap", "reflect", "symmetric"):
        if isinstance(n, SymbolicSize) or not is_constant_shape((lo, hi)):
            raise type_error(
                f"pad: mode {mode!r} needs an axis of known size, axis {d} has the symbolic size '{n}'; use 'constant'"
                " or 'edge'."
            )
        if odd and mode != "wrap":
            return _odd(x, d, [_mirrored(i, n, mode) for i in range(-lo, n + hi)])
        return take_rows(x, _asarray([_source(i, n, mode) for i in range(-lo, n + hi)], dtypes.int32), d)
    if mode == "linear_ramp":
        return ops.concatenate(
            [_ramp(ends[0], _part(x, d, 0, 1), d, lo, False), x, _ramp(ends[1], _part(x, d, n - 1, n), d, hi, True)], d
        )
    first, last = [min(k, n) for k in lengths]
    fill = lambda part, k: _broadcast_to(
        _statistic(part, d, mode), tuple(k if e == d else m for e, m in enumerate(shape_of(x)))
    )
    return ops.concatenate([fill(_part(x, d, 0, first), lo), x, fill(_part(x, d, n - last, n), hi)], d)


def _statistic(x: Value, d: int, mode: str) -> Value:
    """The mean, median, maximum or minimum along an axis, which keeps size 1."""
    dt = dtype_of(x)
    if mode in ("mean", "median"):
        value = (mean if mode == "mean" else median)(x, d)
        value = linear.convert(value if dtypes.is_inexact(dt) or dtypes.is_bool(dt) else el.round_(value, 1), dt)
    else:
        value = (reduce_max if mode == "maximum" else reduce_min)(x, (d,))
    return linear.expand_dims(value, (d,))


def _mirrored(i: int, n: int, mode: str) -> tuple[int, int, int, int]:
    """Position i of an odd extension: the factor and the position of an element, and the factors of the last and the
    first element.
    """
    period = 2 * n if mode == "symmetric" else max(2 * (n - 1), 1)
    turns, i = divmod(i, period)
    return (
        (1, i, 2 * turns, -2 * turns) if i < n else (-1, period - (mode == "symmetric") - i, 2 + 2 * turns, -2 * turns)
    )


def _odd(x: Value, d: int, rows: list[Any]) -> Value:
    """Elements mirrored in the values at the ends."""
    n, shape = shape_of(x)[d], (*shape_of(x)[:d], len(rows), *shape_of(x)[d + 1 :])
    factor = lambda k: linear.broadcast_in_dim(
        linear.convert(_asarray([r[k] for r in rows], dtypes.int32), dtype_of(x)), shape, (d,)
    )
    edge = lambda k: _broadcast_to(_part(x, d, k, k + 1), shape)
    out = el.mul(factor(0), take_rows(x, _asarray([r[1] for r in rows], dtypes.int32), d))
    return el.add(out, el.add(el.mul(factor(2), edge(n - 1)), el.mul(factor(3), edge(0))))


def _source(i: int, n: int, mode: str) -> int:
    """The element of an axis of size n that position i outside of it gets."""
    if mode == "edge":
        return min(max(i, 0), n - 1)
    if mode == "wrap":
        return i % n
    period = 2 * n if mode == "symmetric" else max(2 * (n - 1), 1)
    i %= period
    return i if i < n else (period - 1 - i if mode == "symmetric" else period - i)


def _ramp(end: Value, edge: Value, d: int, k: int, downwards: bool) -> Value:
    dt, shape = dtype_of(edge), list(shape_of(edge))
    shape[d] = k
    wide = dt if dtypes.is_inexact(dt) else dtypes.float32
    step = ops.iota(wide, tuple(shape), d)
    step = (
        el.div(
            el.add(step, scalar_like(step, 1)) if downwards else el.sub(scalar_like(step, k), step),
            scalar_like(step, k),
        )
        if k
        else step
    )
    edge, end = linear.convert(edge, wide), linear.convert(end, wide)
    out = el.add(_broadcast_to(edge, tuple(shape)), el.mul(step, _broadcast_to(el.sub(end, edge), tuple(shape))))
    return linear.convert(out if dtypes.is_inexact(dt) or dtypes.is_bool(dt) else el.floor(out), dt)
