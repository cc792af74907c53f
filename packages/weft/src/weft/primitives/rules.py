"""Builders of the rules that many primitives share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes, limits
from ..base.avals import SymbolicSize, shaped, tangent_aval
from ..core.jaxpr import TypedScalar, round_scalar
from ..core.primitive import Primitive, UndefinedPrimal, Zero, registry
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.primitive import JvpRule
    from ..core.types import ElementType, Value


def shape_of(x: Value) -> tuple[Any, ...]:
    return get_aval(x).shape


def dtype_of(x: Value) -> Value:
    return get_aval(x).dtype


def scalar_of(value: Value, dtype: ElementType, weak_type: bool = False) -> Any:
    """A host number, or a symbolic dimension, as a scalar of a dtype."""
    if isinstance(value, SymbolicSize):
        return registry["convert_element_type"].bind(value, new_dtype=dtype, weak_type=weak_type, sharding=None)
    return TypedScalar(round_scalar(value, dtype), shaped((), dtype, weak_type))


def scalar_like(x: Value, value: Value) -> Any:
    """`value` as a scalar of the dtype of `x`, weak if that is."""
    aval = get_aval(x)
    if isinstance(value, SymbolicSize):
        return scalar_of(value, aval.dtype, aval.weak_type)
    if (
        isinstance(value, int)
        and dtypes.is_int(aval.dtype)
        and not limits.iinfo(aval.dtype).min <= value <= limits.iinfo(aval.dtype).max
    ):
        raise OverflowError(
            at_user_line(
                f"the number {value} is not a value of dtype {dtypes.name(aval.dtype)}. Convert the array of"
                f" shape {aval.shape} with astype to a dtype that has it."
            )
        )
    return TypedScalar(round_scalar(value, aval.dtype), shaped((), aval.dtype, aval.weak_type))


def is_linear_arg(x: Value) -> bool:
    return type(x) is UndefinedPrimal


def check_kind(name: str, aval: AbstractValue, kinds: str) -> None:
    if dtypes.kind(aval.dtype) not in kinds:
        words = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
        raise type_error(
            f"{name} does not accept dtype {dtypes.name(aval.dtype)}: it takes {', '.join(words[k] for k in kinds)}."
        )


def same_dtype(name: str, avals: Sequence[AbstractValue]) -> Value:
    first = avals[0].dtype
    if any(a.dtype != first for a in avals):
        raise type_error(
            f"{name} requires arguments to have the same dtypes, got {', '.join(dtypes.name(a.dtype) for a in avals)}. "
            "(Convert one with astype, or use the weft.numpy function, which promotes.)"
        )
    return first


def broadcast_shapes(name: str, shapes: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The common shape of operands of equal rank whose sizes are equal or 1; scalars fit everywhere."""
    shapes_ = {s for s in shapes if s}
    if len(shapes_) <= 1:
        return shapes_.pop() if shapes_ else ()
    if len({len(s) for s in shapes_}) > 1:
        raise type_error(
            f"{name}: arrays must have the same number of dimensions, got shapes {', '.join(map(str, shapes))}."
        )
    result = []
    for sizes in zip(*shapes_):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            raise type_error(
                f"{name} got incompatible shapes for broadcasting: {', '.join(map(str, shapes))}. Sizes of an axis must"
                " be equal or 1: reshape one of the arrays, or add an axis (x[:, None])."
            )
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def no_negative(name: str, shape: Sequence[Any]) -> None:
    """TypeError for a shape with a negative size."""
    if any([type(n) is int and n < 0 for n in shape]):
        raise type_error(f"{name}: sizes of a shape must not be negative, got {tuple(shape)}.")


def linear_jvp(primitive: Primitive) -> JvpRule:
    """The jvp of a primitive that is linear in its only argument."""

    def jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
        out = primitive.bind(*primals, **params)
        (t,) = tangents
        return out, Zero(tangent_aval(get_aval(out))) if type(t) is Zero else primitive.bind(t, **params)

    return jvp


def no_derivative(primitive: Primitive) -> JvpRule:
    """The jvp of a primitive whose results do not vary with its arguments where it is differentiable at all."""

    def jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
        out = primitive.bind(*primals, **params)
        if primitive.multiple_results:
            return out, [Zero(tangent_aval(get_aval(o))) for o in out]
        return out, Zero(tangent_aval(get_aval(out)))

    return jvp


def shifted(dims: Sequence[int], dim: int) -> tuple[Any, ...]:
    """Axes of an unbatched array as axes of the array with batch axis `dim`."""
    return tuple(d + (d >= dim) for d in dims)
