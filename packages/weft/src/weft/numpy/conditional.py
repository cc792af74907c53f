"""Functions of parts of an array: piecewise, place, apply_over_axes; bits packed into bytes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes
from ..higher_order.cond import switch
from ..core.trace import Tracer
from ..base.errors import ConcretizationTypeError
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.rules import dtype_of, shape_of
from ..runtime.jit import inner_jit
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike, Axis
from .creation import asarray
from .selecting import nonzero
from .shapes import ravel
from .joining import resize
from .ufuncs import where_jit
from .util import broadcast_to, canonical_axes, canonical_axis, flat_host, on_device, operand, to_bool
from .gufuncs import vectorize

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["apply_over_axes", "piecewise", "place", "trim_zeros"]


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

    Args:
        x: array of numbers or booleans, any shape.
        condlist: sequence of arrays of booleans that broadcast to x, or one.
        funclist: sequence of functions and numbers, one for each condition, and perhaps one more.
        *args, **kw: further arguments of the functions.

    Returns:
        array of the dtype and shape of x.

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

    Args:
        arr: array of any dtype, any shape.
        mask: array of booleans, as many elements as arr has.
        vals: array or number, which converts to the dtype of arr.
        inplace: bool, which must be False, since arrays are immutable.

    Returns:
        array of the dtype and shape of arr.

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

    Args:
        func: function of an array and an axis.
        a: array of any dtype, any shape.
        axes: int or sequence of ints.

    Returns:
        array of the dtype that the function returns, of the rank of a.

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

    Args:
        filt: array of numbers, any shape.
        trim: 'f', 'b' or 'fb'.
        axis: int, sequence of ints, or None for all: the axes.

    Returns:
        array of the dtype and rank of filt.

    Raises:
        ConcretizationTypeError: the values are not known under a transformation.

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
    """For each position along an axis, whether any element there is not zero."""
    stride = math.prod(shape[axis + 1 :])
    flags = [False] * shape[axis]
    for k, value in enumerate(flat):
        if value != 0:
            flags[k // stride % shape[axis]] = True
    return flags
