"""Primitives that move elements without computing on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence

from ..base import dtypes
from ..base.avals import as_size, shaped, tangent_aval
from ..core.primitive import Primitive, Zero
from ..core.shardings import divisible, merged, parts_of, refuse, resized, same, whole, without
from ..core.wire import AXES, DTYPE, INTEGER, NOTHING, SIZE, SIZES, either, many, portable, row
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error
from ..base.host import np
from .elementwise import neg, select
from .linear import (
    add_any,
    broadcast_in_dim,
    broadcast_to_axis,
    expand_dims,
    full,
    moveaxis,
    reduce_sum,
    reshape,
    squeeze,
)
from .rules import is_linear_arg, linear_jvp, no_negative, same_dtype, shape_of, shifted

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..base.mesh import NamedSharding
    from ..core.shardings import Parts
    from ..core.types import Dims, ElementType, Params, Shape, Size, Value

# iota ----------------------------------------------------------------------------------------------------------------

iota_p = Primitive("iota", wire=portable(dtype=DTYPE, shape=SIZES, dimension=INTEGER, sharding=NOTHING))


def _iota_abstract(*, dtype: ElementType, shape: Shape, dimension: int, sharding: Any) -> ShapedArray:
    if dtypes.kind(dtype) not in "iufc":
        raise type_error(f"iota does not accept dtype {dtypes.name(dtype)}: it takes numbers.")
    no_negative("iota", shape)
    if not 0 <= dimension < len(shape):
        raise type_error(f"iota: dimension {dimension} is out of range for an array of shape {shape}.")
    return shaped(shape, dtype)


iota_p.abstract = _iota_abstract
iota_p.jvp = lambda primals, tangents, **params: (
    iota_p.bind(**params),
    Zero(tangent_aval(get_aval(iota_p.bind(**params)))),
)
iota_p.batch = lambda axis, args, dims, **params: (iota_p.bind(**params), None)


def _iota_reference(*, dtype: ElementType, shape: Shape, dimension: int, sharding: Any) -> Any:
    expanded = [1] * len(shape)
    expanded[dimension] = shape[dimension]
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(expanded), shape)


iota_p.shard = lambda params, ins, outs: [(None,) * len(outs[0].shape)]
iota_p.reference = _iota_reference


def iota(dtype: ElementType, shape: Sequence[Size], dimension: int, sharding: NamedSharding | None = None) -> Value:
    """An array whose elements are their own index along `dimension`."""
    return iota_p.bind(dtype=dtypes.canonicalize(dtype), shape=tuple(shape), dimension=dimension, sharding=sharding)


# slice ---------------------------------------------------------------------------------------------------------------

slice_p = Primitive("slice", wire=portable(start_indices=SIZES, limit_indices=SIZES, strides=either(NOTHING, SIZES)))


def _slice_abstract(
    x: ShapedArray, *, start_indices: Shape, limit_indices: Shape, strides: tuple[int, ...] | None
) -> ShapedArray:
    rank = len(x.shape)
    steps = strides or (1,) * rank
    if not (len(start_indices) == len(limit_indices) == len(steps) == rank):
        raise type_error(
            f"slice start_indices {start_indices} and limit_indices {limit_indices} must match the operand's rank"
            f" {rank}."
        )
    for a, b, s, n in zip(start_indices, limit_indices, steps, x.shape):
        if not 0 <= a <= b <= n or s <= 0:
            raise type_error(
                f"slice [{start_indices} : {limit_indices} : {strides}] is out of bounds for shape {x.shape}."
            )
    return shaped(
        tuple((b - a + s - 1) // s for a, b, s in zip(start_indices, limit_indices, steps)), x.dtype, x.weak_type
    )


def _slice_reference(x: Value, *, start_indices: Shape, limit_indices: Shape, strides: tuple[int, ...] | None) -> Any:
    return x[tuple(slice(a, b, s) for a, b, s in zip(start_indices, limit_indices, strides or (1,) * x.ndim))]


def _slice_transpose(
    ct: Value, x: Value, *, start_indices: Shape, limit_indices: Shape, strides: tuple[int, ...] | None
) -> list[Value | None]:
    shape = x.aval.shape
    steps = strides or (1,) * len(shape)
    out = shape_of(ct)
    config = tuple(
        (a, n - a - ((m - 1) * s + 1 if m else 0), s - 1) for a, n, m, s in zip(start_indices, shape, out, steps)
    )
    return [pad(ct, full((), 0, get_aval(ct).dtype), config)]


def _slice_batch(
    axis: Axis,
    args: Sequence[Value],
    dims: Dims,
    *,
    start_indices: Shape,
    limit_indices: Shape,
    strides: tuple[int, ...] | None,
) -> tuple[Value, Any]:
    x = moveaxis(args[0], dims[0], 0)
    return (
        slice_p.bind(
            x,
            start_indices=(0, *start_indices),
            limit_indices=(axis.size, *limit_indices),
            strides=None if strides is None else (1, *strides),
        ),
        0,
    )


slice_p.abstract, slice_p.reference, slice_p.jvp = _slice_abstract, _slice_reference, linear_jvp(slice_p)
slice_p.transpose, slice_p.batch = _slice_transpose, _slice_batch
slice_p.shard, slice_p.linear_in_sums = resized("slice"), True


def slice_(
    x: Value, start_indices: Iterable[Size], limit_indices: Iterable[Size], strides: Iterable[int] | None = None
) -> Value:
    """`x[start:limit:stride]` along every axis, with static bounds."""
    start, limit = tuple(start_indices), tuple(limit_indices)
    strides = None if strides is None else tuple(strides)
    if strides is not None and len(strides) == len(start) and all(s == 1 for s in strides):
        strides = None
    if all(a == 0 for a in start) and limit == shape_of(x) and strides is None:
        return x
    return slice_p.bind(x, start_indices=start, limit_indices=limit, strides=strides)


# pad -----------------------------------------------------------------------------------------------------------------

pad_p = Primitive("pad", wire=portable(padding_config=many(row(SIZE, SIZE, SIZE))))


def _pad_abstract(
    x: ShapedArray, value: ShapedArray, *, padding_config: tuple[tuple[int, int, int], ...]
) -> ShapedArray:
    same_dtype("pad", [x, value])
    if value.shape:
        raise ValueError(at_user_line(f"pad: padding_value must be a scalar, got shape {value.shape}."))
    if len(padding_config) != len(x.shape):
        raise ValueError(
            at_user_line(
                f"pad: padding_config {padding_config} must have one entry for each of the operand's {len(x.shape)}"
                " dimensions."
            )
        )
    if any(i < 0 for _, _, i in padding_config):
        raise ValueError(at_user_line(f"pad: interior padding must not be negative, got {padding_config}."))
    shape = tuple(lo + hi + n + max(n - 1, 0) * i for n, (lo, hi, i) in zip(x.shape, padding_config))
    if any(n < 0 for n in shape):
        raise ValueError(
            at_user_line(f"pad: padding {padding_config} of shape {x.shape} gives a negative size: {shape}.")
        )
    return shaped(shape, x.dtype, x.weak_type and value.weak_type)


def _pad_reference(x: Value, value: Value, *, padding_config: tuple[tuple[int, int, int], ...]) -> Any:
    sizes = [n + max(n - 1, 0) * i for n, (_, _, i) in zip(x.shape, padding_config)]
    wide = np.full(sizes, value, x.dtype)
    wide[tuple(slice(None, None, i + 1) for _, _, i in padding_config)] = x
    out = np.full([n + lo + hi for n, (lo, hi, _) in zip(sizes, padding_config)], value, x.dtype)
    kept = [(max(-lo, 0), max(min(n, n + hi), 0)) for n, (lo, hi, _) in zip(sizes, padding_config)]
    if all(a < b for a, b in kept):
        out[tuple(slice(a + lo, b + lo) for (a, b), (lo, _, _) in zip(kept, padding_config))] = wide[
            tuple(slice(a, b) for a, b in kept)
        ]
    return out


def _pad_jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, padding_config: tuple[tuple[int, int, int], ...]
) -> tuple[Value, Value]:
    x, value = primals
    out = pad_p.bind(x, value, padding_config=padding_config)
    tx, tv = tangents
    if type(tx) is Zero and type(tv) is Zero:
        return out, Zero(tangent_aval(get_aval(out)))
    tx = full(shape_of(x), 0, get_aval(x).dtype) if type(tx) is Zero else tx
    tv = full((), 0, get_aval(x).dtype) if type(tv) is Zero else tv
    return out, pad_p.bind(tx, tv, padding_config=padding_config)


def _pad_transpose(
    ct: Value, x: Value, value: Value, *, padding_config: tuple[tuple[int, int, int], ...]
) -> list[Value | None]:
    inverse = tuple((-lo, -hi, 0) for lo, hi, _ in padding_config)
    zero = full((), 0, get_aval(ct).dtype)
    inner = pad(ct, zero, inverse)
    inner = slice_(inner, (0,) * len(padding_config), shape_of(inner), [i + 1 for _, _, i in padding_config])
    ct_value = None
    if is_linear_arg(value):
        rank = range(len(padding_config))
        ct_value = add_any(reduce_sum(ct, rank), neg(reduce_sum(inner, rank)))
    return [inner if is_linear_arg(x) else None, ct_value]


def _pad_batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, padding_config: tuple[tuple[int, int, int], ...]
) -> tuple[Value, Any]:
    (x, value), (dx, dv) = args, dims
    x = broadcast_to_axis(x, axis.size, axis.placed) if dx is None else moveaxis(x, dx, 0)
    if dv is None:
        return pad_p.bind(x, value, padding_config=((0, 0, 0), *padding_config)), 0
    from_mask = pad_p.bind(
        full(shape_of(x), True, dtypes.bool_),
        full((), False, dtypes.bool_),
        padding_config=((0, 0, 0), *padding_config),
    )
    out = pad_p.bind(x, full((), 0, get_aval(x).dtype), padding_config=((0, 0, 0), *padding_config))
    fill = reshape(value, (axis.size,) + (1,) * (len(shape_of(x)) - 1))
    return select(from_mask, out, fill), 0


pad_p.abstract, pad_p.reference, pad_p.jvp, pad_p.transpose, pad_p.batch = (
    _pad_abstract,
    _pad_reference,
    _pad_jvp,
    _pad_transpose,
    _pad_batch,
)
pad_p.shard = resized("pad")


def pad(x: Value, padding_value: Value, padding_config: Iterable[tuple[int, int, int]]) -> Value:
    """`x` with (low, high, interior) padding along each axis; negative low and high cut."""
    config = tuple(tuple(as_size(v) for v in c) for c in padding_config)
    return pad_p.bind(x, padding_value, padding_config=config)


# concatenate ---------------------------------------------------------------------------------------------------------

concatenate_p = Primitive("concatenate", wire=portable(dimension=INTEGER))


def _concatenate_abstract(*xs: Any, dimension: int) -> ShapedArray:
    if not xs:
        raise type_error("concatenate expects at least one operand, got 0.")
    same_dtype("concatenate", xs)
    if len({len(x.shape) for x in xs}) != 1 or not 0 <= dimension < len(xs[0].shape):
        raise type_error(
            f"concatenate: operands of shapes {[x.shape for x in xs]} can't be concatenated along axis {dimension}."
        )
    if len({x.shape[:dimension] + x.shape[dimension + 1 :] for x in xs}) != 1:
        raise type_error(
            "concatenate: along an axis other than the one that is joined the sizes differ: "
            f"axis {dimension} joins the shapes {', '.join(str(x.shape) for x in xs)}."
        )
    shape = list(xs[0].shape)
    shape[dimension] = sum(x.shape[dimension] for x in xs)
    return shaped(tuple(shape), xs[0].dtype, all(x.weak_type for x in xs))


def _concatenate_jvp(primals: Sequence[Value], tangents: Sequence[Value], *, dimension: int) -> tuple[Value, Value]:
    out = concatenate_p.bind(*primals, dimension=dimension)
    if all(type(t) is Zero for t in tangents):
        return out, Zero(tangent_aval(get_aval(out)))
    return out, concatenate_p.bind(
        *[full(shape_of(x), 0, get_aval(x).dtype) if type(t) is Zero else t for x, t in zip(primals, tangents)],
        dimension=dimension,
    )


def _concatenate_transpose(ct: Value, *xs: Any, dimension: int) -> list[Value | None]:
    shape, start, out = shape_of(ct), 0, []
    for x in xs:
        n = x.aval.shape[dimension] if is_linear_arg(x) else shape_of(x)[dimension]
        if is_linear_arg(x):
            lo = tuple(start if d == dimension else 0 for d in range(len(shape)))
            hi = tuple(start + n if d == dimension else s for d, s in enumerate(shape))
            out.append(slice_(ct, lo, hi))
        else:
            out.append(None)
        start += n
    return out


def _concatenate_batch(axis: Axis, args: Sequence[Value], dims: Dims, *, dimension: int) -> tuple[Value, Any]:
    new = [broadcast_to_axis(x, axis.size, axis.placed) if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)]
    return concatenate_p.bind(*new, dimension=dimension + 1), 0


concatenate_p.abstract, concatenate_p.jvp, concatenate_p.transpose = (
    _concatenate_abstract,
    _concatenate_jvp,
    _concatenate_transpose,
)
concatenate_p.reference = lambda *xs, dimension: np.concatenate(xs, dimension)


def _concatenate_shard(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    axis = params["dimension"]
    if len({parts_of(a)[axis] for a in ins}) > 1:
        refuse("concatenate", ins, f"it joins them along axis {axis}, which is not divided alike in all of them")
    return [divisible("concatenate", ins, outs[0], merged("concatenate", ins, [parts_of(a) for a in ins]), (axis,))]


concatenate_p.batch = _concatenate_batch
concatenate_p.shard, concatenate_p.linear_in_sums = _concatenate_shard, True


def concatenate(xs: Value, dimension: int) -> Value:
    """Concatenates the arrays `xs` along `dimension`."""
    xs = list(xs)
    return xs[0] if len(xs) == 1 else concatenate_p.bind(*xs, dimension=dimension)


# rev -----------------------------------------------------------------------------------------------------------------

rev_p = Primitive("rev", wire=portable(dimensions=AXES))


def _rev_abstract(x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < len(x.shape) for d in dimensions):
        raise type_error(f"rev dimensions {dimensions} must be distinct axes of an array of shape {x.shape}.")
    return x


rev_p.abstract = _rev_abstract
rev_p.reference = lambda x, *, dimensions: np.flip(x, dimensions)
rev_p.jvp = linear_jvp(rev_p)
rev_p.transpose = lambda ct, x, *, dimensions: [rev(ct, dimensions)]
rev_p.batch = lambda axis, args, dims, *, dimensions: (rev(args[0], shifted(dimensions, dims[0])), dims[0])
rev_p.shard, rev_p.linear_in_sums = same, True


def rev(x: Value, dimensions: Iterable[int]) -> Value:
    """`x` with its elements in reverse order along `dimensions`."""
    dimensions = tuple(dimensions)
    return rev_p.bind(x, dimensions=dimensions) if dimensions else x


# split, unstack, stack: several arrays and one ------------------------------------------------------------------------


def _many_jvp(primitive: Primitive) -> Callable[..., Any]:
    """The jvp of a linear primitive with one argument and several results."""

    def jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
        outs = primitive.bind(*primals, **params)
        (t,) = tangents
        return outs, [Zero(tangent_aval(get_aval(o))) for o in outs] if type(t) is Zero else primitive.bind(t, **params)

    return jvp


def _filled(cts: Sequence[Value]) -> list[Any]:
    """Cotangents, with arrays for those that are known to be zero."""
    return [full(c.shape, 0, c.dtype) if type(c) is Zero else c for c in cts]


split_p = Primitive("split", multiple_results=True, basic=False, wire=portable(sizes=SIZES, axis=INTEGER))


def _split_abstract(x: ShapedArray, *, sizes: Sequence[Size], axis: int) -> list[ShapedArray]:
    if not 0 <= axis < len(x.shape):
        raise type_error(f"split: axis {axis} is out of range for an array of shape {x.shape}.")
    if any(n < 0 for n in sizes) or sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"split: sizes {tuple(sizes)} must not be negative and must add up to the size {x.shape[axis]} of axis"
            f" {axis} of shape {x.shape}."
        )
    return [shaped((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, x.weak_type) for n in sizes]


def _split_decompose(x: Value, *, sizes: Sequence[Size], axis: int) -> Value:
    shape, start, parts = shape_of(x), 0, []
    for n in sizes:
        lo, hi = [0] * len(shape), list(shape)
        lo[axis], hi[axis] = start, start + n
        parts.append(slice_(x, lo, hi))
        start += n
    return parts


def _split_reference(x: Value, *, sizes: Sequence[Size], axis: int) -> Any:
    return np.split(x, np.cumsum(np.array(sizes, int))[:-1], axis) if sizes else []


split_p.abstract, split_p.reference, split_p.decompose, split_p.jvp = (
    _split_abstract,
    _split_reference,
    _split_decompose,
    _many_jvp(split_p),
)
split_p.transpose = lambda cts, x, *, sizes, axis: [concatenate(_filled(cts), axis)]
split_p.batch = lambda axis_, args, dims, *, sizes, axis: (
    split_p.bind(args[0], sizes=sizes, axis=axis + (dims[0] <= axis)),
    [dims[0]] * len(sizes),
)
split_p.shard, split_p.linear_in_sums = resized("split"), True

unstack_p = Primitive("unstack", multiple_results=True, basic=False, wire=portable(axis=INTEGER))


def _unstack_abstract(x: ShapedArray, *, axis: int) -> list[ShapedArray]:
    if not 0 <= axis < len(x.shape):
        raise ValueError(f"unstack: axis {axis} is out of bounds for an array of shape {x.shape}.")
    return [shaped(x.shape[:axis] + x.shape[axis + 1 :], x.dtype, x.weak_type)] * x.shape[axis]


def _unstack_batch(axis_: Axis, args: Sequence[Value], dims: Dims, *, axis: int) -> tuple[Value, Any]:
    (x,), (dim,) = args, dims
    at = axis + (dim <= axis)
    return unstack_p.bind(x, axis=at), [dim - (dim > at)] * shape_of(x)[at]


unstack_p.abstract, unstack_p.jvp, unstack_p.batch = _unstack_abstract, _many_jvp(unstack_p), _unstack_batch
unstack_p.reference = lambda x, *, axis: list(np.moveaxis(x, axis, 0))
unstack_p.decompose = lambda x, *, axis: [
    squeeze(p, (axis,)) for p in _split_decompose(x, sizes=(1,) * shape_of(x)[axis], axis=axis)
]
unstack_p.transpose = lambda cts, x, *, axis: [stack(_filled(cts), axis)]


def _unstack_shard(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    whole("unstack", ins, (params["axis"],), "it takes an array apart")
    return [without((params["axis"],), parts_of(ins[0]))] * len(outs)


unstack_p.shard, unstack_p.linear_in_sums = _unstack_shard, True

stack_p = Primitive("stack", basic=False, wire=portable(axis=INTEGER))


def _stack_abstract(*xs: Any, axis: int) -> ShapedArray:
    same_dtype("stack", xs)
    if any(x.shape != xs[0].shape for x in xs):
        raise ValueError(f"stack: all arrays must have the same shape, got {', '.join(str(x.shape) for x in xs)}.")
    if not 0 <= axis <= len(xs[0].shape):
        raise ValueError(f"stack: axis {axis} is out of bounds for arrays of shape {xs[0].shape}.")
    return shaped((*xs[0].shape[:axis], len(xs), *xs[0].shape[axis:]), xs[0].dtype, all(x.weak_type for x in xs))


def _stack_jvp(primals: Sequence[Value], tangents: Sequence[Value], *, axis: int) -> tuple[Value, Value]:
    out = stack_p.bind(*primals, axis=axis)
    if all(type(t) is Zero for t in tangents):
        return out, Zero(tangent_aval(get_aval(out)))
    return out, stack_p.bind(
        *[full(shape_of(x), 0, get_aval(x).dtype) if type(t) is Zero else t for x, t in zip(primals, tangents)],
        axis=axis,
    )


def _stack_transpose(ct: Value, *xs: Any, axis: int) -> list[Value | None]:
    return [c if is_linear_arg(x) else None for c, x in zip(unstack_p.bind(ct, axis=axis), xs)]


def _stack_batch(axis_: Axis, args: Sequence[Value], dims: Dims, *, axis: int) -> tuple[Value, Any]:
    new = [
        broadcast_to_axis(x, axis_.size, axis_.placed) if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)
    ]
    return stack_p.bind(*new, axis=axis + 1), 0


stack_p.abstract, stack_p.jvp, stack_p.transpose, stack_p.batch = (
    _stack_abstract,
    _stack_jvp,
    _stack_transpose,
    _stack_batch,
)


def _stack_shard(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    made = merged("stack", ins, [parts_of(a) for a in ins])
    return [(*made[: params["axis"]], None, *made[params["axis"] :])]


stack_p.shard, stack_p.linear_in_sums = _stack_shard, True
stack_p.reference = lambda *xs, axis: np.stack(xs, axis)
stack_p.decompose = lambda *xs, axis: concatenate([expand_dims(x, (axis,)) for x in xs], axis)


def stack(xs: Value, axis: int) -> Value:
    """Stacks arrays of one shape along a new axis."""
    return stack_p.bind(*xs, axis=axis)


tile_p = Primitive("tile", basic=False, wire=portable(reps=SIZES))


def _tile_abstract(x: ShapedArray, *, reps: Sequence[int]) -> ShapedArray:
    if len(reps) != len(x.shape) or any(r < 0 for r in reps):
        raise type_error(
            f"tile: reps {tuple(reps)} must have one number, not negative, for each of the {len(x.shape)} axes of shape"
            f" {x.shape}."
        )
    return shaped(tuple(n * r for n, r in zip(x.shape, reps)), x.dtype, x.weak_type)


def _tile_decompose(x: Value, *, reps: Sequence[int]) -> Value:
    shape = shape_of(x)
    wide = broadcast_in_dim(x, [n for pair in zip(reps, shape) for n in pair], range(1, 2 * len(shape), 2))
    return reshape(wide, [n * r for n, r in zip(shape, reps)])


def _tile_transpose(ct: Value, x: Value, *, reps: Sequence[int]) -> list[Value | None]:
    shape = x.aval.shape
    return [reduce_sum(reshape(ct, [n for pair in zip(reps, shape) for n in pair]), range(0, 2 * len(shape), 2))]


tile_p.abstract, tile_p.decompose, tile_p.jvp, tile_p.transpose = (
    _tile_abstract,
    _tile_decompose,
    linear_jvp(tile_p),
    _tile_transpose,
)


def _tile_shard(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    whole("tile", ins, [i for i, n in enumerate(params["reps"]) if n != 1], "it repeats an array")
    return [parts_of(ins[0])]


tile_p.shard = _tile_shard
tile_p.reference = lambda x, *, reps: np.tile(x, reps)
tile_p.batch = lambda axis, args, dims, *, reps: (tile_p.bind(moveaxis(args[0], dims[0], 0), reps=(1, *reps)), 0)
