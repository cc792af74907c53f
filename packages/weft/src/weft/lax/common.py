"""Argument checks that the functions of `weft.lax` and `weft.numpy` share."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Iterable

from ..base.avals import Size, SymbolicSize, as_size, check_range
from ..core.jaxpr import TypedScalar
from ..core.trace import Tracer, aval_of
from ..base.errors import AxisError, ConcretizationTypeError, TracerIntegerConversionError, at_user_line, type_error
from ..base.host import HostArray, has_numpy, is_host_array, np
from ..runtime import dispatch
from ..base.mesh import NamedSharding

if TYPE_CHECKING:
    from ..core.types import Value

_HOST = (bool, int, float, complex, TypedScalar, HostArray) + ((np.ndarray, np.generic) if has_numpy else ())


def operand(name: str, x: Any, any_int: bool = False) -> Value:
    """`x` if it is an array, a tracer or a number; a TypeError that names the function otherwise. An int must fit
    the default dtype, but for `any_int`.
    """
    if type(x) in aval_of or isinstance(x, Tracer):
        if type(x) is int and not any_int:
            check_range(name, x)
        return x
    if hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    if any(base in aval_of for base in type(x).__mro__[:-1]):
        return x
    hint = " Make an array of it first: weft.numpy.asarray(…)." if isinstance(x, (list, tuple)) else ""
    raise TypeError(
        at_user_line(f"{name} requires array or scalar arguments, got a value of type {type(x).__name__}.{hint}")
    )


def on_device(x: Any) -> Any:
    """A host value as an array; arrays and tracers as they are."""
    return dispatch.put(x) if isinstance(x, _HOST) or not has_numpy and is_host_array(x) else x


def only(name: str, **keywords: object) -> None:
    """Raises if a keyword of JAX's signature that has no meaning here is given a value."""
    for key, value in keywords.items():
        # over no axes, as in the types
        if value is not None and not (isinstance(value, NamedSharding) and not value.mesh.axis_names):
            raise NotImplementedError(f"{name}: {key}={value!r} has no effect on weft's backends; leave {key} out.")


def static_int(what: str, value: Any) -> int:
    """A concrete integer."""
    if isinstance(value, Tracer):
        raise TracerIntegerConversionError(
            at_user_line(
                f"{what} must be a concrete integer, got the traced value {value}. Under jit, mark the argument "
                "with static_argnums."
            )
        )
    if isinstance(value, SymbolicSize):
        raise type_error(
            f"{what} must be an integer, got the symbolic dimension '{value}', whose value is not known before the"
            " program is called."
        )
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an integer, got {value!r} of type {type(value).__name__}.") from None


def static_size(what: str, value: Any) -> Size:
    """A size or a position along an axis: a concrete integer, or a symbolic dimension, which is returned as it is."""
    return value if isinstance(value, SymbolicSize) else static_int(what, value)


def canonical_shape(shape: Any) -> tuple[Size, ...]:
    """A shape as a tuple of ints; an int is a shape of rank 1."""
    if isinstance(shape, Tracer) or isinstance(shape, (list, tuple)) and any(isinstance(n, Tracer) for n in shape):
        raise ConcretizationTypeError(
            at_user_line(
                f"a shape is a sequence of concrete integers, got {shape}: its value is not known while the function is"
                " traced. Under jit, mark the argument that it comes from with static_argnums, or derive it from"
                " x.shape."
            )
        )
    if not isinstance(shape, (list, tuple)) and not (hasattr(shape, "__len__") and getattr(shape, "ndim", 1) > 0):
        shape = (shape,)
    try:
        sizes = tuple([n if type(n) is int else as_size(n) for n in shape])
    except TypeError:
        raise TypeError(
            at_user_line(
                f"a shape is a sequence of integers, got {shape!r}. Shapes must be concrete: under jit, use"
                " static_argnums."
            )
        ) from None
    if any(n < 0 for n in sizes):
        raise TypeError(f"sizes of a shape must not be negative, got {sizes}.")
    return sizes


def canonical_axis(axis: Any, rank: int, what: str = "axis") -> int:
    """A non-negative axis; AxisError when it is out of range."""
    axis = static_int(what, axis)
    if not -rank <= axis < rank:
        raise AxisError(
            at_user_line(
                f"{what} {axis} is out of bounds for an array of dimension {rank}: axes count from 0, or from the end"
                " with negative numbers."
            )
        )
    return axis + rank if axis < 0 else axis


def counted_axis(name: str, axis: Any, rank: int, what: str = "axis") -> int:
    """An axis of those functions of lax that count axes from 0 alone; AxisError for others."""
    axis = static_int(what, axis)
    if not 0 <= axis < rank:
        from_start = f" Give {axis + rank}." if -rank <= axis < 0 else ""
        raise AxisError(
            at_user_line(
                f"{name} counts axes from 0: {what} must be at least 0 and below the dimension {rank}, got {axis}."
                f"{from_start}"
            )
        )
    return axis


def counted_axes(name: str, axes: Iterable[Any], rank: int, what: str) -> tuple[int, ...]:
    """Distinct axes that are counted from 0."""
    found = tuple(counted_axis(name, a, rank, what) for a in axes)
    if len(set(found)) != len(found):
        raise ValueError(at_user_line(f"duplicate value in {what} of {name}: {found}. Name each axis once."))
    return found


def canonical_axes(axes: Any, rank: int, what: str = "axis") -> tuple[Any, ...]:
    """Axes (None: all of them, an int, a sequence) as a tuple of distinct non-negative ints."""
    if axes is None:
        return tuple(range(rank))
    if not isinstance(axes, (list, tuple, range, set, frozenset)):
        return (canonical_axis(axes, rank, what),)
    found = tuple(canonical_axis(a, rank, what) for a in axes)
    if len(set(found)) != len(found):
        raise ValueError(at_user_line(f"duplicate value in {what}: {tuple(axes)}. Name each axis once."))
    return found


def ints(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple([v if type(v) is int else as_size(v) for v in values])
