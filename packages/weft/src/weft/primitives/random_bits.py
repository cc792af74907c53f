"""Random bits: the threefry2x32 hash and the primitives of random keys.

Threefry: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), with 20 rounds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Sequence

from ..base import dtypes
from ..base.avals import shaped
from ..base.config import config
from ..core.primitive import Primitive, unsupported
from ..core.shardings import elementwise, parts_of
from ..core.wire import TAKES_KEYS, portable
from ..core.trace import get_aval
from ..base.errors import type_error
from ..base.host import np
from .elementwise import add, or_, xor
from .bitwise import bitcast, shift_left, shift_right_logical
from .linear import (
    broadcast_in_dim,
    broadcast_to_axis,
    broadcast_to_rank_shape,
    convert,
    expand_dims,
    full,
    moveaxis,
    reshape,
    squeeze,
)
from .rules import broadcast_shapes, no_derivative, scalar_like, shape_of
from .shape import concatenate, iota, slice_

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, ElementType, Shape, Size, Value

FRY = dtypes.KeyDType("threefry2x32", "fry", (2,))

threefry2x32_p = Primitive("threefry2x32", multiple_results=True, basic=False, wire=portable())
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _threefry_abstract(k1: Any, k2: Any, x1: Any, x2: Any) -> list[ShapedArray]:
    xs = (k1, k2, x1, x2)
    if any(x.dtype != dtypes.uint32 for x in xs):
        raise type_error(f"threefry2x32 takes uint32 arrays, got {', '.join(map(format, xs))}.")
    shape = next((x.shape for x in xs if x.shape), ())
    if any(x.shape not in ((), shape) for x in xs):
        raise type_error(f"threefry2x32: shapes differ: {[x.shape for x in xs]}.")
    return [shaped(shape, dtypes.uint32)] * 2


def _rounds(
    k1: Value,
    k2: Value,
    x1: Value,
    x2: Value,
    plus: Callable[..., Any],
    rotate: Callable[..., Any],
    mix: Callable[..., Any],
    parity: int,
) -> list[Value]:
    """20 rounds in 5 groups of 4, a key injection after each."""
    keys = (k1, k2, mix(mix(k1, k2), parity))
    x1, x2 = plus(x1, k1), plus(x2, k2)
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x1 = plus(x1, x2)
            x2 = mix(rotate(x2, r), x1)
        x1 = plus(x1, keys[(i + 1) % 3])
        x2 = plus(plus(x2, keys[(i + 2) % 3]), i + 1)
    return [x1, x2]


def _threefry_decompose(k1: Value, k2: Value, x1: Value, x2: Value) -> Value:
    shape = next((shape_of(x) for x in (x1, x2, k1, k2) if shape_of(x)), ())
    x1, x2 = [broadcast_in_dim(x, shape) if shape_of(x) != shape else x for x in (x1, x2)]
    lit = lambda v: scalar_like(x1, v) if isinstance(v, int) else v
    plus = lambda a, b: add(a, lit(b))
    rotate = lambda a, r: or_(shift_left(a, lit(r)), shift_right_logical(a, lit(32 - r)))
    return _rounds(k1, k2, x1, x2, plus, rotate, xor, lit(_PARITY))


def _threefry_reference(k1: Value, k2: Value, x1: Value, x2: Value) -> Any:
    with np.errstate(over="ignore"):
        as32 = lambda v: np.asarray(v, np.uint32)
        rotate = lambda a, r: (a << as32(r)) | (a >> as32(32 - r))
        k1, k2, x1, x2 = np.broadcast_arrays(k1, k2, x1, x2)
        return _rounds(k1, k2, x1, x2, lambda a, b: as32(a + as32(b)), rotate, lambda a, b: a ^ as32(b), _PARITY)


def _threefry_batch(axis: Axis, args: Sequence[Value], dims: Dims) -> tuple[Value, Any]:
    shape = next(
        (
            shape_of(x)[:d] + shape_of(x)[d + 1 :] if d is not None else shape_of(x)
            for x, d in zip(args, dims)
            if len(shape_of(x)) - (d is not None)
        ),
        (),
    )
    new = []
    for x, d in zip(args, dims):
        x = broadcast_to_axis(x, axis.size, axis.placed) if d is None else moveaxis(x, d, 0)
        new.append(broadcast_in_dim(x, (axis.size, *shape), (0,)) if len(shape_of(x)) == 1 and shape else x)
    return threefry2x32_p.bind(*new), [0, 0]


threefry2x32_p.abstract, threefry2x32_p.reference, threefry2x32_p.batch = (
    _threefry_abstract,
    _threefry_reference,
    _threefry_batch,
)
threefry2x32_p.shard = elementwise("threefry2x32")
threefry2x32_p.decompose, threefry2x32_p.jvp = _threefry_decompose, no_derivative(threefry2x32_p)

# keys ----------------------------------------------------------------------------------------------------------------


def _half(key: Value, i: int) -> Value:
    """Word `i` of raw keys of shape (..., 2)."""
    shape = shape_of(key)
    rank = len(shape) - 1
    return squeeze(slice_(key, (0,) * rank + (i,), (*shape[:-1], i + 1)), (rank,))


def _join(a: Value, b: Value) -> Value:
    """Two words as the last axis of raw keys."""
    rank = len(shape_of(a))
    widen = lambda v: broadcast_in_dim(v, (*shape_of(v), 1), tuple(range(rank)))
    return concatenate([widen(a), widen(b)], rank)


def _hash(key: Value, x1: Value, x2: Value) -> Value:
    """threefry2x32 of counters of one shape under each key of raw keys (..., 2): two arrays of shape (...,
    *counters).
    """
    lead, shape = shape_of(key)[:-1], shape_of(x1)
    k1, k2 = _half(key, 0), _half(key, 1)
    if lead and shape:
        both = (*lead, *shape)
        k1, k2 = [broadcast_in_dim(k, both, tuple(range(len(lead)))) for k in (k1, k2)]
        x1, x2 = [broadcast_in_dim(x, both, tuple(range(len(lead), len(both)))) for x in (x1, x2)]
    return threefry2x32_p.bind(k1, k2, x1, x2)


def _counts(shape: Sequence[Size]) -> tuple[Value, Value]:
    """The 64-bit position of each element of an array of `shape`, as high and low words."""
    total = math.prod(shape)
    if type(total) is int and total >= 1 << 32:
        raise type_error(
            f"one random key has counters for at most 2**32 elements; shape {shape} has {total}. Split the key."
        )
    return full(shape, 0, dtypes.uint32), reshape(iota(dtypes.uint32, (total,), 0), shape)


def _hash_flat(key: Value, n: int) -> Value:
    """`n` words from the counters 0 … n-1, whose halves are the two words of a block: the generator's original
    order.
    """
    count = iota(dtypes.uint32, (n,), 0)
    if n % 2:
        count = concatenate([count, full((1,), 0, dtypes.uint32)], 0)
    half = (n + 1) // 2
    out = concatenate(
        _hash(key, slice_(count, (0,), (half,)), slice_(count, (half,), (2 * half,))), len(shape_of(key)) - 1
    )
    return _cut(out, 0, n)


def _cut(x: Value, lo: int, hi: int) -> Value:
    """Elements lo … hi-1 of the last axis."""
    shape = shape_of(x)
    return slice_(x, (0,) * (len(shape) - 1) + (lo,), (*shape[:-1], hi))


def threefry_split(key: Value, shape: Sequence[Size]) -> Value:
    """Raw keys of shape (..., *shape, 2) from raw keys (..., 2)."""
    if config.threefry_partitionable:
        return _join(*_hash(key, *_counts(shape)))
    return reshape(_hash_flat(key, 2 * math.prod(shape)), (*shape_of(key)[:-1], *shape, 2))


def threefry_fold_in(key: Value, data: Value) -> Value:
    """The raw keys for keys and uint32 numbers of one shape, or of shapes where one has sizes of 1."""
    seed = threefry_seed(data)
    words = [_half(key, 0), _half(key, 1), _half(seed, 0), _half(seed, 1)]
    if shape_of(words[0]) != shape_of(data):
        shape = broadcast_shapes("fold_in", [shape_of(words[0]), shape_of(data)])
        words = [broadcast_to_rank_shape(w, shape) for w in words]
    return _join(*threefry2x32_p.bind(*words))


def threefry_seed(seed: Value) -> Value:
    """The raw keys of integer seeds: their high and low words."""
    aval = get_aval(seed)
    if dtypes.bits(aval.dtype) > 32:
        wide = convert(seed, dtypes.dtype("uint64"))
        return _join(
            convert(shift_right_logical(wide, scalar_like(wide, 32)), dtypes.uint32), convert(wide, dtypes.uint32)
        )
    return _join(full(aval.shape, 0, dtypes.uint32), convert(seed, dtypes.uint32))


def threefry_bits(key: Value, bit_width: int, shape: Sequence[Size]) -> Value:
    """Uniform unsigned integers (..., *shape) of `bit_width` bits from raw keys (..., 2)."""
    if bit_width not in (8, 16, 32, 64):
        raise type_error(f"random bits come in widths of 8, 16, 32 and 64, got {bit_width}.")
    dt, lead, size = dtypes.dtype(f"uint{bit_width}"), shape_of(key)[:-1], math.prod(shape)
    if not size:
        return full((*lead, *shape), 0, dt)
    if config.threefry_partitionable:
        high, low = _hash(key, *_counts(shape))
        if bit_width == 64:
            return _two_words(high, low, dt)
        out = xor(high, low)
        return out if bit_width == 32 else convert(out, dt)
    words = -(-bit_width * size // 32)
    bits = _hash_flat(key, words)
    if bit_width == 64:
        bits = _two_words(_cut(bits, 0, words // 2), _cut(bits, words // 2, words), dt)
    elif bit_width < 32:
        bits = _cut(reshape(bitcast(bits, dt), (*lead, words * (32 // bit_width))), 0, size)
    return reshape(bits, (*lead, *shape))


def _two_words(high: Value, low: Any, dt: ElementType) -> Value:
    high = convert(high, dt)
    return or_(shift_left(high, scalar_like(high, 32)), convert(low, dt))


class Generator(NamedTuple):
    """A random generator: its name, the dtype of its keys, and the functions that it computes from raw keys."""

    name: str
    dtype: dtypes.KeyDType
    seed: Callable[..., Any]  # integers -> raw keys
    split: Callable[..., Any]  # raw keys, shape -> raw keys
    bits: Callable[..., Any]  # raw keys, bit width, shape -> unsigned integers
    fold_in: Callable[..., Any]  # raw keys, uint32 -> raw keys


generators: dict[str, Generator] = {}


def add_generator(generator: Generator) -> Generator:
    """Makes keys of a generator known by its name.

    Raises:
        ValueError: for a name that is taken.
    """
    if generator.name in generators:
        raise ValueError(f"there is a generator {generator.name!r} already; give this one another name.")
    generators[generator.name] = generator
    return generator


add_generator(Generator("threefry2x32", FRY, threefry_seed, threefry_split, threefry_bits, threefry_fold_in))


def _key_dtype(name: str, aval: ShapedArray) -> Value:
    if not dtypes.is_key(aval.dtype):
        raise type_error(f"{name} takes random keys, got {aval}. Make one with weft.random.key(seed).")
    return aval.dtype


def key_primitive(name: str, abstract: Callable[..., Any], on_raw: Callable[..., Any]) -> Primitive:
    """A primitive of keys. `on_raw` computes it from raw keys; backends see only that (see transforms.physical)."""
    primitive = Primitive(name, basic=False, wire=TAKES_KEYS)

    def batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Value, Any]:
        """The axes of the keys come first in every result, so a batch axis is simply another of them."""
        args = [
            broadcast_to_axis(x, axis.size, axis.placed) if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)
        ]
        return primitive.bind(*args, **params), 0

    primitive.reference = unsupported(
        "random keys are words when a program runs, and primitives of keys what they compute of these"
        " (transforms.physical)"
    )
    primitive.abstract, primitive.batch, primitive.jvp, primitive.on_raw = (
        abstract,
        batch,
        no_derivative(primitive),
        on_raw,
    )
    # axes that an operation adds are whole
    primitive.shard = lambda params, ins, outs: [
        (*parts_of(ins[0]), *[None] * len(outs[0].shape))[: len(outs[0].shape)]
    ]
    return primitive


random_seed_p = key_primitive(
    "random_seed",
    lambda seed, *, impl: shaped(seed.shape, impl),
    lambda dtype, seed, *, impl: generators[impl.impl].seed(seed),
)
random_wrap_p = key_primitive(
    "random_wrap", lambda raw, *, impl: shaped(raw.shape[:-1], impl), lambda dtype, raw, *, impl: raw
)
random_unwrap_p = key_primitive(
    "random_unwrap",
    lambda key: shaped((*key.shape, *_key_dtype("random_unwrap", key).key_shape), dtypes.uint32),
    lambda dtype, raw: raw,
)
random_split_p = key_primitive(
    "random_split",
    lambda key, *, shape: shaped((*key.shape, *shape), _key_dtype("random_split", key)),
    lambda dtype, raw, *, shape: generators[dtype.impl].split(raw, shape),
)


def _random_bits_abstract(key: ShapedArray, *, bit_width: int, shape: Shape) -> ShapedArray:
    _key_dtype("random_bits", key)
    return shaped((*key.shape, *shape), dtypes.dtype(f"uint{bit_width}"))


def _fold_in_abstract(key: ShapedArray, data: ShapedArray) -> ShapedArray:
    _key_dtype("random_fold_in", key)
    if len(key.shape) != len(data.shape) or any(m != n and 1 not in (m, n) for m, n in zip(key.shape, data.shape)):
        raise type_error(f"random_fold_in takes keys and numbers of one shape, got {key} and {data}.")
    return shaped(broadcast_shapes("fold_in", [key.shape, data.shape]), key.dtype)


def _fold_in_batch(axis: Axis, args: Sequence[Value], dims: Dims) -> tuple[Value, Any]:
    """Operands that are not batched get an axis of size 1: a generator may make the numbers of all keys at once."""
    return (
        random_fold_in_p.bind(*[expand_dims(x, (0,)) if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)]),
        0,
    )


random_bits_p = key_primitive(
    "random_bits",
    _random_bits_abstract,
    lambda dtype, raw, *, bit_width, shape: generators[dtype.impl].bits(raw, bit_width, shape),
)
random_clone_p = key_primitive(
    "random_clone", lambda key: shaped(key.shape, _key_dtype("random_clone", key)), lambda dtype, raw: raw
)
random_fold_in_p = key_primitive(
    "random_fold_in", _fold_in_abstract, lambda dtype, raw, data: generators[dtype.impl].fold_in(raw, data)
)
random_fold_in_p.batch = _fold_in_batch
random_fold_in_p.shard = elementwise("random_fold_in")
