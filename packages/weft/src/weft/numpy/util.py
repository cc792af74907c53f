"""Promotion, broadcasting and argument checks behind the functions of `weft.numpy`."""

from __future__ import annotations

import math
from functools import wraps
from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar

from ..base import dtypes, promotion
from ..base.annotations import Args, Result
from ..base.config import config, numpy_dtype_promotion, numpy_rank_promotion
from ..core.jaxpr import TypedScalar
from ..core.trace import Tracer, get_aval
from ..base.errors import at_user_line, type_error, warn
from ..base.host import is_host_array
from ..lax.common import (
    canonical_axes,
    canonical_axis,
    canonical_shape,
    on_device,
    only,
    operand,
    static_int,
    static_size,
)
from ..primitives import linear
from ..primitives.elementwise import ne
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..runtime.array import Array
from ..transforms.auto_axes import divided, named_sharding

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Value
    from ..base.dtypes import ElementType, Typed
    from ..typing import OutSharding, Placement

_F = TypeVar("_F", bound=Callable[..., Any])
__all__ = [
    "accumulator",
    "asked_dtype",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "canonical_axes",
    "canonical_axis",
    "canonical_shape",
    "elementwise_example",
    "expand_ranks",
    "float_dtype",
    "index_dtype",
    "inexact_dtype",
    "is_concrete",
    "laid_out",
    "no_complex",
    "no_out",
    "of_kind",
    "on_device",
    "only",
    "operand",
    "promote",
    "promote_inexact",
    "promote_strong",
    "promote_shapes",
    "promoted",
    "result_dtype",
    "in_own_terms",
    "static_int",
    "static_size",
    "strong",
    "to_bool",
]


def in_own_terms(fun: Callable[Args, Result]) -> Callable[Args, Result]:
    """Decorator of library functions whose own arithmetic mixes dtypes and ranks: the user's numpy_dtype_promotion and
    numpy_rank_promotion are about the user's programs, and do not hold inside.
    """

    @wraps(fun)
    def inside(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        if config.numpy_rank_promotion == "allow" and config.numpy_dtype_promotion == "standard":
            return fun(*args, **kwargs)
        with numpy_rank_promotion("allow"), numpy_dtype_promotion("standard"):
            return fun(*args, **kwargs)

    return inside


def float_dtype() -> ElementType:
    """The dtype to which integers are converted where a function needs floats."""
    return dtypes.canonicalize(dtypes.float64)


def index_dtype() -> ElementType:
    """The dtype of positions and counts."""
    return dtypes.canonicalize(dtypes.int64)


def no_complex(name: str, *args: Value) -> None:
    """ValueError for complex arguments of a function of real numbers."""
    for x in args:
        if dtypes.is_complex(get_aval(x).dtype):
            raise ValueError(
                at_user_line(f"{name} is defined for real numbers, got {get_aval(x)}. Pass its real or imaginary part.")
            )


def accumulator(dt: ElementType) -> ElementType:
    """The dtype in which integers and booleans are summed: the widest integer that is enabled. Floats stay."""
    if dtypes.is_key(dt):
        raise TypeError(
            at_user_line(
                f"random keys ({dtypes.name(dt)}) can't be added up; weft.random.key_data(key) gives their words."
            )
        )
    return (
        dtypes.canonicalize(dtypes.dtype("uint64" if dtypes.is_unsigned(dt) else "int64"))
        if dtypes.is_bool(dt) or dtypes.is_int(dt)
        else dt
    )


def inexact_dtype(dt: ElementType) -> ElementType:
    """The dtype in which a function of real numbers is computed: floats stay, 64-bit integers become the default
    float, others float32.
    """
    return (
        dt
        if dtypes.is_inexact(dt)
        else dtypes.canonicalize(dtypes.float64)
        if dtypes.is_int(dt) and dtypes.bits(dt) == 64
        else dtypes.float32
    )


def asked_dtype(name: str, dtype: Any) -> ElementType | None:
    """The canonical dtype of a `dtype=` argument (None stays None), with a warning where 64 bits were asked for and
    are off.
    """
    if dtype is None:
        return None
    if isinstance(dtype, (Array, Tracer)):
        raise ValueError(f"{name}: an array is not a dtype; pass dtype=x.dtype.")
    wanted = dtypes.dtype(dtype)
    got = dtypes.canonicalize(wanted)
    if got != wanted and dtype not in (int, float, complex):
        warn(
            f"{name}: dtype {dtypes.name(wanted)} was asked for, but 64-bit types are off, so the result has"
            f" {dtypes.name(got)}. Turn them on with weft.config.update('jax_enable_x64', True)."
        )
    return got


def result_dtype(*args: Value) -> Typed:
    """(dtype, weak type) to which arrays and numbers promote."""
    return promotion.promote(*[(a.dtype, a.weak_type) for a in map(get_aval, args)])


def promote(name: str, *args: Value) -> list[Any]:
    """The arguments converted to their common dtype; numbers stay on the host."""
    values = [operand(name, a) for a in args]
    avals = [get_aval(a) for a in values]
    first = avals[0]
    if all(a.dtype == first.dtype and a.weak_type == first.weak_type for a in avals):
        return values
    dt, weak = promotion.promote(*[(a.dtype, a.weak_type) for a in avals])
    return [linear.convert(a, dt, weak) for a in args]


def promote_inexact(name: str, *args: Value) -> list[Any]:
    """The arguments converted to their common dtype, or to the float for it where that is none."""
    values = [operand(name, a) for a in args]
    dt, weak = result_dtype(*values)
    if not dtypes.is_inexact(dt):
        dt = inexact_dtype(dt)
    return [linear.convert(a, dt, weak) for a in values]


def promote_strong(name: str, *args: Value, by: int | None = None) -> list[Any]:
    """As `promote_inexact`, without a weak type unless all (the first `by`) are scalars."""
    values = promote_inexact(name, *args)
    return [linear.convert(a, dtype_of(a)) for a in values] if any(map(shape_of, values[:by])) else values


def promoted(name: str, *args: Any) -> list[Any]:
    """The arguments, of one dtype and one rank."""
    return promote_shapes(name, *promote(name, *args))


def of_kind(name: str, x: Any, kinds: str = "biufc") -> Any:
    """`x`, whose dtype is of one of the kinds."""
    x = operand(name, x)
    if dtypes.kind(get_aval(x).dtype) not in kinds:
        raise type_error(f"{name} does not take dtype {dtypes.name(get_aval(x).dtype)}.")
    return x


def strong(x: Value) -> Value:
    """`x` without a weak type."""
    return linear.convert(x, dtype_of(x))


def to_bool(name: str, x: Value) -> Value:
    """Whether each element differs from zero."""
    from_aval = get_aval(operand(name, x))
    if dtypes.is_bool(from_aval.dtype):
        return x
    if dtypes.is_python_scalar(x):
        return bool(x)
    return linear.convert(x, dtypes.bool_) if type(x) is TypedScalar else ne(x, scalar_like(x, 0))


def broadcast_shapes(shapes: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The shape to which shapes broadcast by NumPy's rules; ValueError if there is none."""
    first = shapes[0]
    if all(s == first for s in shapes):
        return tuple(first)
    rank = max(map(len, shapes))
    result = []
    for sizes in zip(*[(1,) * (rank - len(s)) + tuple(s) for s in shapes]):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            raise ValueError(f"Incompatible shapes for broadcasting: shapes={[tuple(s) for s in shapes]}.")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def promote_shapes(name: str, *args: Value) -> list[Any]:
    """Arguments of one rank (but for scalars): shorter shapes get leading axes of size 1, as `numpy_rank_promotion`
    permits.
    """
    shapes = [shape_of(a) for a in args]
    ranks = {len(s) for s in shapes if s}
    if len(ranks) <= 1:
        return list(args)
    broadcast_shapes(shapes)
    rank = max(ranks)
    _check_rank_promotion(name, shapes)
    return [
        linear.expand_dims(a, tuple(range(rank - len(s)))) if s and len(s) != rank else a for a, s in zip(args, shapes)
    ]


def _check_rank_promotion(name: str, shapes: Sequence[tuple[Size, ...]]) -> None:
    mode = config.numpy_rank_promotion
    if mode == "allow":
        return
    message = (
        f"{name}: operands of shapes {', '.join(map(str, shapes))} were broadcast to one rank, and numpy_rank_promotion"
        f" is {mode!r}. Reshape them to one rank first."
    )
    if mode == "raise":
        raise ValueError(at_user_line(message))
    warn(message)


def expand_ranks(x: Value, rank: int) -> Value:
    """`x` with leading axes of size 1 up to `rank`."""
    missing = rank - len(shape_of(x))
    return linear.expand_dims(x, tuple(range(missing))) if missing > 0 else x


def broadcast_to(x: Value, shape: tuple[Any, ...]) -> Value:
    """`x` repeated to `shape` by NumPy's rules; ValueError if it does not fit."""
    mine, shape = shape_of(x), tuple(shape)
    if mine == shape and not dtypes.is_python_scalar(x) and type(x) is not TypedScalar:
        return x
    offset = len(shape) - len(mine)
    if offset < 0 or any(n not in (1, m) for n, m in zip(mine, shape[offset:])):
        raise ValueError(
            at_user_line(
                f"Incompatible shapes for broadcasting: {mine} and requested shape {shape}. Give values of that shape,"
                " or of one that broadcasts to it."
            )
        )
    return linear.broadcast_in_dim(x, shape, tuple(range(offset, len(shape))))


def broadcast_arrays(*args: Value) -> list[Any]:
    shape = broadcast_shapes([shape_of(a) for a in args])
    return [broadcast_to(a, shape) for a in args]


def is_concrete(x: object) -> bool:
    """Whether the elements of `x` can be read now."""
    return not isinstance(x, Tracer)


def host_list(x: Value) -> Any:
    """A concrete array as nested Python lists (a number for rank 0)."""
    if type(x) is TypedScalar:
        return x.val
    if dtypes.is_python_scalar(x):
        return x
    return (x if is_host_array(x) else x._host()).tolist()


def flat_host(x: Value) -> list[Any]:
    """A concrete array as a flat Python list."""
    out, shape = host_list(x), shape_of(x)
    for _ in shape[1:]:
        out = [v for row in out for v in row]
    return out if shape else [out]


def laid_out(name: str, fun: Callable[[], Value], out_sharding: OutSharding, device: Placement = None) -> Value:
    """What `fun()` computes, divided over the devices of a mesh as `out_sharding` (a NamedSharding, a PartitionSpec or
    None) says.
    """
    if out_sharding is None:
        return fun()
    if device is not None:
        raise ValueError(
            f"{name}: only one of device and out_sharding can place the result; got {device} and {out_sharding}."
        )
    return divided(lambda: on_device(fun()), named_sharding(name, out_sharding))


def no_out(name: str, out: object, **others: object) -> None:
    """Raises for NumPy's `out=` and other keywords without meaning for immutable arrays."""
    if out is not None:
        raise NotImplementedError(
            f"weft.numpy.{name}: the 'out' argument is not supported, since arrays are immutable; use the result."
        )
    only(name, **others)


def size_along(shape: tuple[Any, ...], axes: Sequence[int]) -> int:
    return math.prod(shape[a] for a in axes)


def split_names(axis: Any) -> tuple[Any, tuple[Any, ...]]:
    """(axes by position, names of mapped axes) in a reduction's argument `axis`."""
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    names = tuple(a for a in given if isinstance(a, str))
    return (tuple(a for a in given if not isinstance(a, str)), names) if names else (axis, ())


def elementwise_example(arguments: str, takes: str, gives: str) -> Callable[[_F], _F]:
    """Completes the docstring of an elementwise function with the sections that all of them share.

    Args:
        arguments: those of a call that its example shows.
        takes: the dtypes of its arguments, in the plural.
        gives: the dtypes of its results, in the plural.
    """

    def complete(function: _F) -> _F:
        first, *others = function.__code__.co_varnames[: function.__code__.co_argcount]
        more = "".join([f"\n        {name}: array of {takes} that broadcasts with {first}." for name in others])
        function.__doc__ = f"""{function.__doc__}

    Works on each element; arguments promote to one dtype and broadcast to one shape.

    Args:
        {first}: array of {takes}, any shape.{more}

    Returns:
        array of {gives}, the {"broadcast shape" if others else f"shape of {first}"}.

    Raises:
        TypeError: for lists and other values that are not arrays or numbers, and for dtypes without this operation.
        ValueError: if shapes do not broadcast.

    Example:
        >>> import weft.numpy as jnp
        >>> y = jnp.{function.__name__}({arguments})
    """
        return function

    return complete
