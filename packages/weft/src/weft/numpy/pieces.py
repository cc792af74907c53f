"""Functions of parts of an array: piecewise, place, apply_over_axes; bits packed into bytes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes
from ..higher_order.cond import switch
from ..core.trace import Tracer, get_aval
from ..base.errors import ConcretizationTypeError
from ..primitives import elementwise as el, bitwise
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..runtime.jit import inner_jit
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike, Axis
from . import reductions
from .creation import asarray
from .selecting import nonzero
from .shapes import ravel, resize
from .ufuncs import where_jit
from .util import broadcast_to, canonical_axes, canonical_axis, flat_host, on_device, operand, static_int, to_bool
from .gufuncs import vectorize

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["apply_over_axes", "packbits", "piecewise", "place", "trim_zeros", "unpackbits"]


def piecewise(
    x: ArrayLike,
    condlist: Array | Sequence[ArrayLike],
    funclist: Sequence[ArrayLike | Callable[..., Any]],
    *args: object,
    **kw: object,
) -> Array:
    """For each element the function (or constant) whose condition is the last that is true; 0, or one more function,
    where none is.

    Functions get an element, `args` and `kw`. The result has the shape and dtype of x.

    Raises:
        ValueError: for another number of functions than conditions, or one more.

    Example:
        >>> import weft.numpy as jnp
        >>> x = jnp.array([-2., 3.])
        >>> jnp.piecewise(x, [x < 0], [lambda v: -v, 10.])
        Array([ 2., 10.], dtype=float32)
    """
    x = on_device(operand("piecewise", x))
    n, m = len(condlist), len(funclist)
    if n == 0 or m not in (n, n + 1):
        raise ValueError(f"piecewise: with {n} condition(s), either {n} or {n + 1} functions are expected; got {m}.")
    default = funclist[-1] if m > n else 0
    chosen = linear.full(shape_of(x), 0, dtypes.int32)
    for k, condition in enumerate(condlist):
        condition = to_bool("piecewise", asarray(condition))
        chosen = where_jit(broadcast_to(condition, shape_of(x)), k + 1, chosen)
    functions = [
        f if callable(f) else lambda v, *args, c=operand("piecewise", f), **kw: c for f in (default, *funclist[:n])
    ]
    return _piecewise(tuple(functions), x, linear.convert(chosen, dtypes.int32), args, kw)


def _piecewise(functions: tuple[Any, ...], x: Value, chosen: Value, args: tuple[Any, ...], kw: dict[Any, Any]) -> Value:
    dt = dtype_of(x)
    branches = [
        lambda v, f=f: linear.convert(on_device(operand("piecewise", f(v, *args, **kw))), dt) for f in functions
    ]
    return vectorize(lambda k, v: switch(k, branches, v))(chosen, x)


@inner_jit(name="_place")
def _place(x: Value, mask: Value, values: Value) -> Value:
    n = math.prod(shape_of(x))
    (where,) = nonzero(ravel(mask), size=n, fill_value=n)
    return linear.reshape(ravel(x).at[where].set(linear.convert(values, dtype_of(x)), mode="drop"), shape_of(x))


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """A new array with the elements where `mask` is true replaced by those of `vals` in turn; give inplace=False.

    Raises:
        ValueError: with inplace=True, for a mask of another size, and for no values.

    Example:
        >>> import weft.numpy as jnp
        >>> x = jnp.arange(4)
        >>> jnp.place(x, x > 1, 7, inplace=False)
        Array([0, 1, 7, 7], dtype=int32)
    """
    if inplace:
        raise ValueError("arrays are immutable: call place with inplace=False and use its result.")
    x, mask, values = [on_device(operand("place", v)) for v in (arr, mask, vals)]
    if math.prod(shape_of(x)) != math.prod(shape_of(mask)):
        raise ValueError(f"place: arr and mask must be the same size, got shapes {shape_of(x)} and {shape_of(mask)}.")
    if not math.prod(shape_of(values)):
        raise ValueError("place: cannot place values from an empty array.")
    if not math.prod(shape_of(x)):
        return x
    values = el.real(values) if dtypes.is_complex(dtype_of(values)) and not dtypes.is_complex(dtype_of(x)) else values
    return _place(x, mask, resize(values, math.prod(shape_of(x))))


def apply_over_axes(func: Callable[..., Array], a: ArrayLike, axes: Sequence[int]) -> Array:
    """`func(a, axis)` for one axis after another; a function that drops the axis has it put back with size 1.

    Raises:
        ValueError: for a function whose result has another rank.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1])
        Array([[6.]], dtype=float32)
    """
    x = on_device(operand("apply_over_axes", a))
    for axis in axes:
        rank = len(shape_of(x))
        new = func(x, axis)
        if len(shape_of(new)) == rank - 1:
            new = linear.expand_dims(new, (canonical_axis(axis, rank),))
        elif len(shape_of(new)) != rank:
            raise ValueError(
                f"apply_over_axes: the function is not returning an array of the correct shape: {shape_of(x)} became"
                f" {shape_of(new)}."
            )
        x = new
    return x


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axis = None) -> Array:
    """A concrete array without zeros at its front (f) and back (b), along an axis, several, or all of them (None).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.trim_zeros(jnp.array([0, 1, 0]))
        Array([1], dtype=int32)
    """
    x = on_device(operand("trim_zeros", filt))
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(
            concretization_error(x, "trim_zeros needs the values, because the size of the result depends on them")
        )
    shape = shape_of(x)
    if not shape:
        return x
    axes = canonical_axes(axis, len(shape))
    found = [_nonzero_along(flat_host(x), shape, d) for d in axes]
    for d, flags in zip(axes, found):
        there = [k for k, flag in enumerate(flags) if flag]
        lo, hi = (
            (there[0] if "f" in trim.lower() else 0, there[-1] + 1 if "b" in trim.lower() else shape[d])
            if there
            else (0, 0)
        )
        x = ops.slice_(
            x,
            tuple(lo if e == d else 0 for e in range(len(shape))),
            tuple(hi if e == d else n for e, n in enumerate(shape_of(x))),
        )
    return x


def _nonzero_along(flat: list[Any], shape: tuple[Any, ...], axis: int) -> list[Any]:
    """For each place along an axis, whether something there is not zero."""
    stride = math.prod(shape[axis + 1 :])
    flags = [False] * shape[axis]
    for k, value in enumerate(flat):
        if value != 0:
            flags[k // stride % shape[axis]] = True
    return flags


def _shifts(name: str, bitorder: str) -> Value:
    """How far each bit of a byte is from its lowest, in the order in which the bits stand."""
    if bitorder not in ("little", "big"):
        raise ValueError(f"{name}: bitorder must be 'little' or 'big', got {bitorder!r}.")
    up = ops.iota(dtypes.uint8, (8,), 0)
    return up if bitorder == "little" else ops.rev(up, (0,))


@inner_jit(name="packbits", static_argnums=(1, 2))
def _pack(bits: Value, axis: Any, bitorder: str) -> Value:
    bits = linear.moveaxis(bits, axis, len(shape_of(bits)) - 1)
    *lead, n = shape_of(bits)
    missing = -n % 8
    bits = ops.pad(
        linear.convert(bits, dtypes.uint8),
        scalar_like(linear.full((), 0, dtypes.uint8), 0),
        ((0, 0, 0),) * len(lead) + ((0, missing, 0),),
    )
    bits = linear.reshape(bits, (*lead, (n + missing) // 8, 8))
    shifts = linear.broadcast_in_dim(_shifts("packbits", bitorder), shape_of(bits), (len(lead) + 1,))
    out = reductions.sum(bitwise.shift_left(bits, shifts), -1, dtype=dtypes.uint8)
    return linear.moveaxis(out, len(lead), axis)


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Whether elements are nonzero, eight to a byte along an axis (None: of the flattened array), zeros behind the
    last.

    Raises:
        TypeError: for anything but integers and booleans. ValueError: for an unknown bit order.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.packbits(jnp.array([1, 0, 1]))
        Array([160], dtype=uint8)
    """
    x = on_device(operand("packbits", a))
    if not (dtypes.is_int(dtype_of(x)) or dtypes.is_bool(dtype_of(x))):
        raise TypeError(f"packbits takes integers or booleans, got {get_aval(x)}.")
    x, axis = (ravel(x), 0) if axis is None else (x, canonical_axis(axis, len(shape_of(x))))
    return _pack(to_bool("packbits", x), axis, bitorder)


@inner_jit(name="unpackbits", static_argnums=(1, 2, 3))
def _unpack(x: Value, axis: Any, count: int | None, bitorder: str) -> Value:
    x = linear.moveaxis(x, axis, len(shape_of(x)) - 1)
    *lead, n = shape_of(x)
    wide = (*lead, n, 8)
    bytes_ = linear.broadcast_in_dim(x, wide, tuple(range(len(lead) + 1)))
    shifts = linear.broadcast_in_dim(_shifts("unpackbits", bitorder), wide, (len(lead) + 1,))
    bits = linear.reshape(el.and_(bitwise.shift_right_logical(bytes_, shifts), scalar_like(bytes_, 1)), (*lead, 8 * n))
    keep = 8 * n if count is None else count if count >= 0 else max(0, 8 * n + count)
    bits = ops.pad(bits, scalar_like(bits, 0), ((0, 0, 0),) * len(lead) + ((0, keep - 8 * n, 0),))
    return linear.moveaxis(bits, len(lead), axis)


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes along an axis (None: of the flattened array): `count` of them, all but the last -count, or all.

    Raises:
        TypeError: for a dtype other than uint8. ValueError: for an unknown bit order.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.unpackbits(jnp.array([160], 'uint8'), count=3)
        Array([1, 0, 1], dtype=uint8)
    """
    x: Any = on_device(operand("unpackbits", a))
    if dtype_of(x) != dtypes.uint8:
        raise TypeError(f"unpackbits takes bytes (uint8), got {get_aval(x)}.")
    x, axis = (ravel(x), 0) if axis is None else (x, canonical_axis(axis, len(shape_of(x))))
    return _unpack(x, axis, None if count is None else static_int("count", count), bitorder)
