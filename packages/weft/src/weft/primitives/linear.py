"""The structural linear primitives: broadcasting, reshaping, transposing, summing, adding, converting.

The rules of all other primitives, and the transformations, are written with these.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Iterable, Iterator, NoReturn, Sequence

from ..base import dtypes, limits
from ..base.avals import AbstractToken, ShapedArray, shaped, tangent_aval
from ..base.config import config
from ..core.jaxpr import TypedScalar, round_scalar
from ..core.primitive import Primitive, Zero, unsupported
from ..base.spec import axes_of
from ..core.shardings import (
    SAY,
    cotangent_placed,
    elementwise,
    parts_of,
    placed_of,
    reduced,
    refuse,
    same,
    with_axis,
    without,
)
from ..core.wire import AXES, DTYPE, FLAG, NOTHING, SIZES, portable
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error
from ..base.host import np
from .rules import check_kind, is_linear_arg, linear_jvp, no_negative, scalar_of, shape_of, shifted

if TYPE_CHECKING:
    from ..core.primitive import BatchRule
    from ..base.avals import AbstractValue
    from ..base.mesh import NamedSharding
    from ..core.trace import Axis
    from ..core.shardings import Parts
    from ..core.types import Dims, ElementType, Params, Shape, Size, Value

# convert_element_type ------------------------------------------------------------------------------------------------

convert_element_type_p = Primitive(
    "convert_element_type", hidden=("sharding",), wire=portable(new_dtype=DTYPE, weak_type=FLAG, sharding=NOTHING)
)


def _convert_abstract(x: ShapedArray, *, new_dtype: ElementType, weak_type: bool, sharding: Any) -> ShapedArray:
    if dtypes.is_key(x.dtype) and new_dtype != x.dtype:
        raise type_error(
            f"a random key ({dtypes.name(x.dtype)}) can't be converted to {dtypes.name(new_dtype)}; use"
            " weft.random.key_data."
        )
    return shaped(x.shape, new_dtype, weak_type)


def _convert_reference(x: Value, *, new_dtype: ElementType, weak_type: bool, sharding: Any) -> Any:
    if x.dtype == dtypes.float0:
        return np.zeros(x.shape, new_dtype)
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(new_dtype) and not dtypes.is_bool(new_dtype):
        x = x.real
    if dtypes.is_int(new_dtype) and dtypes.is_float(x.dtype):  # XLA saturates, and NaN becomes 0
        info = limits.iinfo(new_dtype)
        wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
        clipped = np.clip(np.trunc(wide), float(info.min), float(info.max))
        safe = np.where(clipped >= float(info.max), 0, clipped).astype(new_dtype)
        return np.where(clipped >= float(info.max), np.array(info.max, new_dtype), safe)
    if dtypes.is_bool(new_dtype):
        return x != np.zeros((), x.dtype)
    if dtypes.is_int(x.dtype) and dtypes.bits(x.dtype) < 8:  # NumPy can't convert between these
        x = x.astype(np.int8)
    if dtypes.is_float(x.dtype) and dtypes.bits(x.dtype) <= 8:
        x = x.astype(np.float32)
    return x.astype(new_dtype)


def _convert_jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, new_dtype: ElementType, weak_type: bool, sharding: Any
) -> tuple[Value, Value]:
    (x,), (t,) = primals, tangents
    out = convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type, sharding=sharding)
    if type(t) is Zero or not dtypes.is_inexact(new_dtype):
        return out, Zero(tangent_aval(get_aval(out)))
    return out, convert_element_type_p.bind(t, new_dtype=new_dtype, weak_type=weak_type, sharding=sharding)


def _convert_transpose(
    ct: Value, x: Value, *, new_dtype: ElementType, weak_type: bool, sharding: Any
) -> list[Value | None]:
    return [convert(ct, x.aval.dtype, x.aval.weak_type)]


def _same_dim(primitive: Primitive) -> BatchRule:
    def batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Value, Any]:
        return primitive.bind(*args, **params), dims[0]

    return batch


convert_element_type_p.abstract = _convert_abstract
convert_element_type_p.reference = _convert_reference
convert_element_type_p.jvp = _convert_jvp
convert_element_type_p.transpose = _convert_transpose
convert_element_type_p.batch = _same_dim(convert_element_type_p)
convert_element_type_p.shard, convert_element_type_p.linear_in_sums = same, True


@lru_cache(1024, typed=True)
def _rounded(value: Value, dtype: ElementType, weak_type: bool) -> TypedScalar:
    return TypedScalar(round_scalar(value, dtype), shaped((), dtype, weak_type))


def convert(x: Value, dtype: ElementType, weak_type: bool = False) -> Value:
    """`x` as `dtype`; scalars of the host are converted on the host."""
    aval = get_aval(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    if dtypes.is_python_scalar(x) or type(x) is TypedScalar:
        value = x.val if type(x) is TypedScalar else x
        if (
            not (isinstance(value, complex) and not dtypes.is_complex(dtype))
            and not (dtypes.is_int(dtype) and isinstance(value, float))
            and dtypes.bits(dtype) >= 8
        ):
            # zeros are not looked up: 0.0 and -0.0 are equal
            return (_rounded if value and not isinstance(value, complex) else _rounded.__wrapped__)(
                value, dtype, weak_type
            )
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type, sharding=None)


# broadcast_in_dim ----------------------------------------------------------------------------------------------------

broadcast_in_dim_p = Primitive(
    "broadcast_in_dim",
    hidden=("shape", "sharding", "broadcast_dimensions"),
    wire=portable(shape=SIZES, broadcast_dimensions=AXES, sharding=NOTHING),
)


def _broadcast_abstract(
    x: ShapedArray, *, shape: Shape, broadcast_dimensions: tuple[int, ...], sharding: Any
) -> ShapedArray:
    no_negative("broadcast_in_dim", shape)
    if len(broadcast_dimensions) != len(x.shape):
        raise type_error(
            f"broadcast_in_dim: broadcast_dimensions {broadcast_dimensions} must have one entry for each of the"
            f" operand's {len(x.shape)} dimensions."
        )
    if any(d < 0 or d >= len(shape) for d in broadcast_dimensions) or any(
        a >= b for a, b in zip(broadcast_dimensions, broadcast_dimensions[1:])
    ):
        raise type_error(
            f"broadcast_in_dim: broadcast_dimensions {broadcast_dimensions} must increase and lie in the result's rank"
            f" {len(shape)}."
        )
    for n, d in zip(x.shape, broadcast_dimensions):
        if n != 1 and n != shape[d]:
            raise type_error(
                f"broadcast_in_dim: operand of shape {x.shape} does not broadcast to {shape} along"
                f" {broadcast_dimensions}."
            )
    return shaped(shape, x.dtype, x.weak_type)


def _broadcast_reference(x: Value, *, shape: Shape, broadcast_dimensions: tuple[int, ...], sharding: Any) -> Any:
    expanded = [1] * len(shape)
    for n, d in zip(x.shape, broadcast_dimensions):
        expanded[d] = n
    return np.broadcast_to(x.reshape(expanded), shape)


def _broadcast_transpose(
    ct: Value, x: Value, *, shape: Shape, broadcast_dimensions: tuple[int, ...], sharding: Any
) -> list[Value | None]:
    return [_sum_back(ct, x.aval, broadcast_dimensions)]


def _sum_back(ct: Value, aval: AbstractValue, broadcast_dimensions: tuple[int, ...]) -> Value:
    """Sums `ct` over the axes that broadcasting an array of type `aval` along `broadcast_dimensions` made."""
    big, shape = shape_of(ct), aval.shape
    kept = {d for n, d in zip(shape, broadcast_dimensions) if n != 1 or big[d] == 1}
    out = reduce_sum(ct, tuple(d for d in range(len(big)) if d not in kept))
    return reshape(out, shape, cotangent_placed(aval))


def _broadcast_batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, shape: Shape, broadcast_dimensions: tuple[int, ...], sharding: Any
) -> tuple[Value, Any]:
    (x,), (dim,) = args, dims
    x = moveaxis(x, dim, 0)
    sharding = batched_sharding(sharding, x)
    return broadcast_in_dim(x, (shape_of(x)[0], *shape), (0, *[d + 1 for d in broadcast_dimensions]), sharding), 0


def batched_sharding(sharding: NamedSharding | None, x: Value, dim: int = 0, at: int = 0) -> NamedSharding | None:
    """A sharding with one more axis at the position `at`, which is divided as the axis `dim` of `x`."""
    if sharding is None:
        return None
    parts = list(sharding.spec.partitions)
    parts += [None] * (at - len(parts))
    parts.insert(at, parts_of(get_aval(x))[dim])
    return sharding.update(spec=sharding.spec.update(partitions=parts))


def _broadcast_shard(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    """Axes that are repeated, and new ones, are whole."""
    (x,), (out,) = ins, outs
    parts: list[Any] = [None] * len(out.shape)
    for part, n, d in zip(parts_of(x), x.shape, params["broadcast_dimensions"]):
        parts[d] = part if n == out.shape[d] else None
    return [tuple(parts)]


broadcast_in_dim_p.shown = lambda params: (
    [("broadcast_dimensions", params["broadcast_dimensions"])] if params["broadcast_dimensions"] else []
)
broadcast_in_dim_p.abstract = _broadcast_abstract
broadcast_in_dim_p.reference = _broadcast_reference
broadcast_in_dim_p.jvp = linear_jvp(broadcast_in_dim_p)
broadcast_in_dim_p.transpose = _broadcast_transpose
broadcast_in_dim_p.batch = _broadcast_batch
broadcast_in_dim_p.shard, broadcast_in_dim_p.linear_in_sums = _broadcast_shard, True


def broadcast_in_dim(
    x: Value,
    shape: Sequence[Size],
    broadcast_dimensions: Iterable[int] = (),
    sharding: NamedSharding | None = None,
) -> Value:
    """`x` with its axes placed at `broadcast_dimensions` of `shape`, repeated along the rest."""
    shape, broadcast_dimensions = tuple(shape), tuple(broadcast_dimensions)
    if (
        sharding is None
        and shape_of(x) == shape
        and broadcast_dimensions == tuple(range(len(shape)))
        and not dtypes.is_python_scalar(x)
        and type(x) is not TypedScalar
    ):
        return x
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding)


def broadcast_to_rank_shape(x: Value, shape: Sequence[Size]) -> Value:
    """`x` (a scalar, or of the rank of `shape` with sizes equal or 1) as an array of `shape`."""
    mine = shape_of(x)
    if mine == tuple(shape):
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape))) if mine else ())


def broadcast_to_axis(x: Value, size: int, placed: NamedSharding | None = None) -> Value:
    """`x` repeated `size` times along a new first axis, which is divided as the axis of `placed`."""
    shape = shape_of(x)
    if placed is not None:
        placed = placed_of(with_axis(get_aval(x), size, 0, placed))
    return broadcast_in_dim(x, (size, *shape), tuple(range(1, len(shape) + 1)), placed)


def zeros(aval: AbstractValue) -> Value:
    """An array of zeros of an aval."""
    if isinstance(aval, AbstractToken):
        return aval
    if aval.dtype == dtypes.float0:
        raise TypeError("zeros of dtype float0 are made by the caller")
    return full(aval.shape, 0, aval.dtype, aval.weak_type, placed_of(aval))


def full(
    shape: Sequence[Size],
    value: Value,
    dtype: ElementType,
    weak_type: bool = False,
    sharding: NamedSharding | None = None,
) -> Value:
    """An array of `shape` filled with a host scalar."""
    return broadcast_in_dim(scalar_of(value, dtype, weak_type), shape, (), sharding)


def scalar_as_array(x: Value) -> Value:
    """`x` for the eyes of users: a typed host scalar, which has no operators, becomes an array."""
    return full((), x.val, x.aval.dtype, x.aval.weak_type) if type(x) is TypedScalar else x


def expand_dims(x: Value, dims: Dims) -> Value:
    """`x` with axes of size 1 inserted at the positions `dims` of the result."""
    shape = shape_of(x)
    rank = len(shape) + len(dims)
    added = {d % rank for d in dims}
    kept = tuple(d for d in range(rank) if d not in added)
    sizes = iter(shape)
    return broadcast_in_dim(x, tuple(1 if d in added else next(sizes) for d in range(rank)), kept)


# reshape, squeeze ----------------------------------------------------------------------------------------------------

reshape_p = Primitive("reshape", hidden=(), wire=portable(new_sizes=SIZES, dimensions=NOTHING, sharding=NOTHING))


def _reshape_abstract(x: ShapedArray, *, new_sizes: Shape, dimensions: tuple[int, ...], sharding: Any) -> ShapedArray:
    if any(n < 0 for n in new_sizes) or math.prod(new_sizes) != x.size:
        raise type_error(f"reshape total size must be unchanged, got new_sizes {new_sizes} for shape {x.shape}.")
    return shaped(new_sizes, x.dtype, x.weak_type)


def _reshape_transpose(
    ct: Value, x: Value, *, new_sizes: Shape, dimensions: tuple[int, ...], sharding: Any
) -> list[Value | None]:
    return [reshape(ct, x.aval.shape, cotangent_placed(x.aval))]


def _reshape_batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, new_sizes: Shape, dimensions: tuple[int, ...], sharding: Any
) -> tuple[Value, Any]:
    x = moveaxis(args[0], dims[0], 0)
    return reshape(x, (shape_of(x)[0], *new_sizes), batched_sharding(sharding, x)), 0


def _reshape_shard(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    """An axis that becomes several divides the first of them, or each as the mesh's axes do; several that become one
    divide it together, if those that are divided come first.
    """
    (x,), (out,) = ins, outs
    parts: list[Any] = [None] * len(out.shape)
    for old, new in _groups(ins, x.shape, out.shape):
        divided = [parts_of(x)[i] for i in old]
        if all(p is None for p in divided):
            continue
        made = _regrouped(x, [x.shape[i] for i in old], divided, [out.shape[i] for i in new])
        if made is None:
            _refuse_reshape(ins, out.shape)
        for i, p in zip(new, made):
            parts[i] = p
    return [tuple(parts)]


def _refuse_reshape(ins: Sequence[ShapedArray], shape: Shape) -> NoReturn:
    refuse("reshape", ins, f"it is open how the result of shape {shape} is divided", SAY)


def _groups(ins: Sequence[ShapedArray], old: Shape, new: Shape) -> Iterator[tuple[list[int], list[int]]]:
    """Axes of the operand and axes of the result that hold the same elements, as few as possible each time; axes of
    size one belong to none.
    """
    a, b = [i for i, n in enumerate(old) if n != 1], [i for i, n in enumerate(new) if n != 1]
    if [old[i] for i in a] == [new[i] for i in b]:
        yield from (([i], [j]) for i, j in zip(a, b))
        return
    if any(type(n) is not int or n == 0 for n in (*old, *new)):
        _refuse_reshape(ins, new)
    while a or b:
        left, right = [a.pop(0)], [b.pop(0)]
        while (m := math.prod(old[i] for i in left)) != (n := math.prod(new[i] for i in right)):
            (left if m < n else right).append((a if m < n else b).pop(0))
        yield left, right


def _regrouped(x: ShapedArray, old: Sequence[int], parts: Sequence[Any], new: Sequence[int]) -> Sequence[Any] | None:
    """What divides axes of sizes `new` that were axes of sizes `old`; None if that is open."""
    if len(old) == len(new) == 1:
        return parts
    if len(new) == 1:
        divided = [p for p in parts if p is not None]
        if list(parts[: len(divided)]) != divided:
            return None
        axes = tuple([a for p in divided for a in axes_of(p)])
        return [axes[0] if len(axes) == 1 else axes]
    if len(old) > 1 or x.placed is None:
        return None
    sizes, axes = x.placed.mesh.shape, axes_of(parts[0])
    if new[0] % math.prod(sizes[a] for a in axes) == 0:
        return [parts[0], *[None] * (len(new) - 1)]
    if len(axes) <= len(new) and all(sizes[a] == n for a, n in zip(axes, new)):
        return [*axes, *[None] * (len(new) - len(axes))]
    return None


reshape_p.abstract = _reshape_abstract
reshape_p.reference = lambda x, *, new_sizes, dimensions, sharding: x.reshape(new_sizes)
reshape_p.jvp = linear_jvp(reshape_p)
reshape_p.transpose = _reshape_transpose
reshape_p.batch = _reshape_batch
reshape_p.shard, reshape_p.linear_in_sums = _reshape_shard, True


def reshape(x: Value, shape: Sequence[Size], sharding: NamedSharding | None = None) -> Value:
    """`x` with the same elements in row-major order and another shape."""
    shape = tuple(shape)
    if sharding is not None and (get_aval(x).shape, placed_of(get_aval(x))) == (shape, sharding):
        return x
    if sharding is None and shape_of(x) == shape and not dtypes.is_python_scalar(x) and type(x) is not TypedScalar:
        return x
    return reshape_p.bind(x, new_sizes=shape, dimensions=None, sharding=sharding)


squeeze_p = Primitive("squeeze", wire=portable(dimensions=AXES))


def _squeeze_abstract(x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < len(x.shape) for d in dimensions):
        raise type_error(f"squeeze: dimensions {dimensions} must be different axes of an array of shape {x.shape}.")
    if any(x.shape[d] != 1 for d in dimensions):
        raise type_error(
            f"cannot select an axis to squeeze out which has size not equal to one, got shape={x.shape} and"
            f" dimensions={dimensions}."
        )
    return shaped(tuple(n for d, n in enumerate(x.shape) if d not in dimensions), x.dtype, x.weak_type)


def _squeeze_batch(axis: Axis, args: Sequence[Value], dims: Dims, *, dimensions: tuple[int, ...]) -> tuple[Value, Any]:
    x = moveaxis(args[0], dims[0], 0)
    return squeeze(x, tuple(d + 1 for d in dimensions)), 0


squeeze_p.abstract = _squeeze_abstract
squeeze_p.reference = lambda x, *, dimensions: np.squeeze(x, dimensions)
squeeze_p.jvp = linear_jvp(squeeze_p)
squeeze_p.transpose = lambda ct, x, *, dimensions: [reshape(ct, x.aval.shape, cotangent_placed(x.aval))]
squeeze_p.batch = _squeeze_batch
squeeze_p.shard, squeeze_p.linear_in_sums = (
    lambda params, ins, outs: [without(params["dimensions"], parts_of(ins[0]))],
    True,
)


def squeeze(x: Value, dimensions: Iterable[int]) -> Value:
    """`x` without the axes `dimensions`, which have size 1."""
    rank = len(shape_of(x))
    dims = tuple(sorted({d % rank if rank else d for d in dimensions}))
    return x if not dims else squeeze_p.bind(x, dimensions=dims)


# transpose -----------------------------------------------------------------------------------------------------------

transpose_p = Primitive("transpose", wire=portable(permutation=AXES))


def _transpose_abstract(x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    if sorted(permutation) != list(range(len(x.shape))):
        raise type_error(
            f"transpose permutation isn't a permutation of operand dimensions, got permutation {permutation} for shape"
            f" {x.shape}."
        )
    return shaped(tuple(x.shape[d] for d in permutation), x.dtype, x.weak_type)


def _transpose_batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, permutation: tuple[int, ...]
) -> tuple[Value, Any]:
    (x,), (dim,) = args, dims
    return transpose(x, (dim, *shifted(permutation, dim))), 0


transpose_p.abstract = _transpose_abstract
transpose_p.reference = lambda x, *, permutation: np.transpose(x, permutation)
transpose_p.jvp = linear_jvp(transpose_p)
transpose_p.transpose = lambda ct, x, *, permutation: [
    transpose(ct, tuple(sorted(range(len(permutation)), key=permutation.__getitem__)))
]
transpose_p.batch = _transpose_batch
transpose_p.shard, transpose_p.linear_in_sums = (
    lambda params, ins, outs: [tuple([parts_of(ins[0])[i] for i in params["permutation"]])],
    True,
)


def transpose(x: Value, permutation: Iterable[int]) -> Value:
    """`x` with its axes in the order `permutation`."""
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))) and len(permutation) == len(shape_of(x)):
        return x
    return transpose_p.bind(x, permutation=permutation)


def moveaxis(x: Value, source: int, destination: int) -> Value:
    """`x` with one axis moved to another position."""
    if source == destination:
        return x
    order = [d for d in range(len(shape_of(x))) if d != source]
    order.insert(destination, source)
    return transpose(x, order)


# reduce_sum ----------------------------------------------------------------------------------------------------------

reduce_sum_p = Primitive("reduce_sum", wire=portable(axes=AXES, out_sharding=NOTHING))
reduce_sum_p.cache = None  # jax_allow_f16_reductions decides which dtypes it takes


def reduced_shape(name: str, x: ShapedArray, axes: tuple[int, ...]) -> tuple[Any, ...]:
    if len(set(axes)) != len(axes):
        raise type_error(f"{name}: duplicate value in axes: {axes}.")
    if any(d < 0 or d >= len(x.shape) for d in axes):
        raise type_error(f"{name}: axes {axes} are out of range for an array of shape {x.shape}.")
    return tuple(n for d, n in enumerate(x.shape) if d not in axes)


def _reduce_sum_abstract(x: ShapedArray, *, axes: tuple[int, ...], out_sharding: Any) -> ShapedArray:
    if x.dtype in _HALF and not config.allow_f16_reductions:
        raise ValueError(
            at_user_line(
                f"reduce_sum of {x.str_short()} is not allowed while jax_allow_f16_reductions is False. Convert the"
                " operand to float32 first, as weft.numpy.sum does."
            )
        )
    return _summed(x, tuple(axes))


_HALF = frozenset(map(dtypes.dtype, ("float16", "bfloat16")))


@lru_cache(10_000)  # as the primitive's own cache would
def _summed(x: ShapedArray, axes: tuple[int, ...]) -> ShapedArray:
    check_kind("reduce_sum", x, "biufc")
    return shaped(reduced_shape("reduce_sum", x, axes), x.dtype, x.weak_type)


def _reduce_sum_reference(x: Value, *, axes: tuple[int, ...], out_sharding: Any) -> Any:
    wide = np.float64 if dtypes.is_float(x.dtype) else None
    return (
        np.sum(x, axis=axes, dtype=wide).astype(x.dtype)
        if not dtypes.is_bool(x.dtype)
        else np.sum(x, axis=axes).astype(bool)
    )


def _reduce_sum_transpose(ct: Value, x: Value, *, axes: tuple[int, ...], out_sharding: Any) -> list[Value | None]:
    kept = tuple(d for d in range(len(x.aval.shape)) if d not in axes)
    return [broadcast_in_dim(ct, x.aval.shape, kept, cotangent_placed(x.aval))]


def reduction_batch(primitive: Primitive) -> BatchRule:
    def batch(
        axis: Axis, args: Sequence[Value], dims: Dims, *, axes: tuple[int, ...], **params: Any
    ) -> tuple[Value, Any]:
        (x,), (dim,) = args, dims
        out_dim = dim - sum(d < dim for d in shifted(axes, dim))
        if params.get("out_sharding") is not None:
            params["out_sharding"] = batched_sharding(params["out_sharding"], x, dim, out_dim)
        return primitive.bind(x, axes=shifted(axes, dim), **params), out_dim

    return batch


reduce_sum_p.abstract = _reduce_sum_abstract
reduce_sum_p.reference = _reduce_sum_reference
reduce_sum_p.jvp = linear_jvp(reduce_sum_p)
reduce_sum_p.transpose = _reduce_sum_transpose
reduce_sum_p.batch = reduction_batch(reduce_sum_p)
reduce_sum_p.shard, reduce_sum_p.linear_in_sums = reduced, True


def reduce_sum(x: Value, axes: Iterable[int], sharding: NamedSharding | None = None) -> Value:
    """The sum of `x` over `axes`."""
    axes = tuple(axes)
    return reduce_sum_p.bind(x, axes=axes, out_sharding=sharding) if axes else x


def unbroadcast(ct: Value, aval: ShapedArray) -> Value:
    """The cotangent of an operand of `aval` that an elementwise operation broadcast to the shape of `ct`."""
    shape = shape_of(ct)
    if type(ct) is Zero or shape == aval.shape:
        return ct
    if not aval.shape:
        return reduce_sum(ct, range(len(shape)))
    return reshape(
        reduce_sum(ct, tuple(d for d, (n, m) in enumerate(zip(aval.shape, shape)) if n == 1 and m != 1)), aval.shape
    )


# add_any: the sum of cotangents --------------------------------------------------------------------------------------

add_any_p = Primitive("add_any", wire=portable())


def _add_any_abstract(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    if x.shape != y.shape or x.dtype != y.dtype:
        raise type_error(f"add_any: the operands must have one type, got {x.str_short()} and {y.str_short()}.")
    return shaped(x.shape, x.dtype, x.weak_type and y.weak_type)


def _add_any_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    x, y = primals
    tx, ty = tangents
    out = add_any(x, y)
    return out, ty if type(tx) is Zero else tx if type(ty) is Zero else add_any(tx, ty)


def _add_any_batch(axis: Axis, args: Sequence[Value], dims: Dims) -> tuple[Value, Any]:
    (x, y), (dx, dy) = args, dims
    x = broadcast_to_axis(x, axis.size, axis.placed) if dx is None else moveaxis(x, dx, 0)
    y = broadcast_to_axis(y, axis.size) if dy is None else moveaxis(y, dy, 0)
    return add_any(x, y), 0


add_any_p.abstract = _add_any_abstract
add_any_p.reference = lambda x, y: x + y
add_any_p.jvp = _add_any_jvp
add_any_p.transpose = lambda ct, x, y: [ct if is_linear_arg(x) else None, ct if is_linear_arg(y) else None]
add_any_p.batch = _add_any_batch
add_any_p.shard, add_any_p.linear_in_sums = elementwise("add_any"), True


def add_any(x: Value, y: Value) -> Value:
    """The sum of two cotangents of one value."""
    return add_any_p.bind(x, y)


# stop_gradient, copy: identities -------------------------------------------------------------------------------------

stop_gradient_p = Primitive("stop_gradient", basic=False, wire=portable())
stop_gradient_p.abstract = lambda x: x
stop_gradient_p.reference = lambda x: x


def _stop_gradient_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    out = stop_gradient_p.bind(*primals)
    return out, Zero(tangent_aval(get_aval(out)))


stop_gradient_p.jvp = _stop_gradient_jvp
stop_gradient_p.transpose = unsupported("stop_gradient has no tangent, so nothing to transpose")
stop_gradient_p.batch = _same_dim(stop_gradient_p)
stop_gradient_p.shard, stop_gradient_p.linear_in_sums = same, True
stop_gradient_p.decompose = lambda x: x

copy_p = Primitive("copy", basic=False, wire=portable())
copy_p.abstract = lambda x: x
copy_p.reference = lambda x: x.copy()
copy_p.jvp = linear_jvp(copy_p)
copy_p.transpose = lambda ct, x: [ct]
copy_p.batch = _same_dim(copy_p)
copy_p.shard, copy_p.linear_in_sums = same, True
copy_p.decompose = lambda x: x
