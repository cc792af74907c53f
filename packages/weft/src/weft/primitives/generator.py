"""Counter-based generators as XLA has them: rng_bit_generator with ThreeFry2x32 or Philox4x32, and the random keys
`rbg` and `unsafe_rbg` on top.

Both hashes: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), ThreeFry with 20 rounds and Philox
with 10. A state is two words of 64 bits, the key and the counter; as uint32[4] it is (key low, key high, counter low,
counter high).
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base.annotations import override
from ..base import dtypes
from ..base.avals import shaped
from ..core.primitive import Primitive
from ..core.wire import DTYPE, NOTHING, SIZES, member, param_type, portable
from ..base.errors import type_error
from ..base.host import np
from .elementwise import add, lt, mul, or_, xor
from .bitwise import bitcast, mulhi, shift_left
from .linear import broadcast_in_dim, broadcast_to_rank_shape, convert, full, moveaxis, reshape
from .random_bits import Generator, add_generator, threefry2x32_p, threefry_fold_in, threefry_seed, threefry_split
from .rules import broadcast_shapes, dtype_of, no_derivative, scalar_like, shape_of
from .shape import concatenate, iota, slice_

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, ElementType, Shape, Size, Value

RBG = dtypes.KeyDType("rbg", "rbg", (4,))
UNSAFE_RBG = dtypes.KeyDType("unsafe_rbg", "urbg", (4,))


@param_type
class RandomAlgorithm(enum.IntEnum):
    """Which generator `rng_bit_generator` runs; the default is the backend's fastest, which is Philox on every
    backend here.
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    @override
    def __str__(self) -> str:
        return self.name


rng_bit_generator_p = Primitive(
    "rng_bit_generator",
    multiple_results=True,
    basic=False,
    wire=portable(shape=SIZES, dtype=DTYPE, algorithm=member("RandomAlgorithm"), out_sharding=NOTHING),
)


def _abstract(
    key: ShapedArray, *, shape: Shape, dtype: ElementType, algorithm: Any, out_sharding: Any
) -> list[ShapedArray]:
    if (dtypes.name(key.dtype), key.shape) not in (("uint32", (4,)), ("uint64", (2,))):
        raise type_error(f"rng_bit_generator: a key is uint32[4] or uint64[2], got {key}.")
    if dtypes.name(dtype) not in ("uint8", "uint16", "uint32", "uint64"):
        raise type_error(
            f"rng_bit_generator: unsupported dtype {dtypes.name(dtype)}; it makes uint8, uint16, uint32 and uint64."
        )
    return [key, shaped(shape, dtype)]


def _batch(axis: Axis, args: Sequence[Value], dims: Dims, *, shape: Shape, **params: Any) -> tuple[Value, Any]:
    """The generator of the first key makes the numbers of all keys, as in JAX. The other keys stay unchanged."""
    keys = moveaxis(args[0], dims[0], 0)
    words = shape_of(keys)[1]
    if axis.size == 0:
        return [keys, full((0, *shape), 0, params["dtype"])], [0, 0]
    key, bits = rng_bit_generator_p.bind(
        reshape(slice_(keys, (0, 0), (1, words)), (words,)), shape=(axis.size, *shape), **params
    )
    return [concatenate([reshape(key, (1, words)), slice_(keys, (1, 0), (axis.size, words))], 0), bits], [0, 0]


# 64-bit counters as pairs of uint32 ----------------------------------------------------------------------------------


def _plus(lo: Value, hi: Value, n: Value) -> tuple[Value, Value, Value]:
    """(lo, hi) + n, and the carry out of hi as 0 or 1; n is a uint32 array or a host integer below 2**32."""
    if isinstance(n, int):
        n = scalar_like(lo, n)
    new_lo = add(lo, n)
    carry = convert(lt(new_lo, n), dtypes.uint32)
    new_hi = add(hi, carry)
    return new_lo, new_hi, convert(lt(new_hi, carry), dtypes.uint32)


def _blocks(words: Value, count: int) -> tuple[Value, Value]:
    """The counters of `count` blocks as arrays (low, high, carry), and the counter after them."""
    if count >= 1 << 32:
        raise type_error(f"rng_bit_generator makes at most 2**32 blocks of bits at a time; {count} are needed.")
    shape = (count,)
    lo, hi = words
    wide_lo, wide_hi = [broadcast_in_dim(w, shape) for w in words]
    return _plus(wide_lo, wide_hi, iota(dtypes.uint32, shape, 0)), _plus(lo, hi, count)[:2]


def _philox(counter: Value, key: Value) -> list[Any]:
    """10 rounds of Philox4x32: four words of bits from four of counter and two of key."""
    c, k = list(counter), list(key)
    for r in range(10):
        if r:
            k = [add(w, scalar_like(w, bump)) for w, bump in zip(k, (0x9E3779B9, 0xBB67AE85))]
        a, b = scalar_like(c[0], 0xD2511F53), scalar_like(c[0], 0xCD9E8D57)
        c = [xor(xor(mulhi(c[2], b), c[1]), k[0]), mul(c[2], b), xor(xor(mulhi(c[0], a), c[3]), k[1]), mul(c[0], a)]
    return c


def _philox_words(state: Value, count: int) -> tuple[Value, Value]:
    """`count` words of bits in order, and the counter afterwards. The upper half of Philox's counter starts as the
    key, as in XLA.
    """
    k0, k1, c0, c1 = state
    blocks = -(-count // 4)
    (lo, hi, carry), after = _blocks((c0, c1), blocks)
    up = [broadcast_in_dim(k, (blocks,)) for k in (k0, k1)]
    up_lo, up_hi, _ = _plus(up[0], up[1], carry)
    words = _philox((lo, hi, up_lo, up_hi), up)
    flat = reshape(concatenate([reshape(w, (blocks, 1)) for w in words], 1), (4 * blocks,))
    return slice_(flat, (0,), (count,)), after


def _threefry_pairs(state: Value, shape: Sequence[Size]) -> tuple[Value, Value]:
    """Two words of bits for each element of `shape`, and the counter afterwards."""
    k0, k1, c0, c1 = state
    (lo, hi, _), after = _blocks((c0, c1), math.prod(shape))
    return [reshape(w, shape) for w in threefry2x32_p.bind(k0, k1, lo, hi)], after


def _halved(shape: Sequence[Size]) -> tuple[Value, Value]:
    """(the axis that pairs of words are laid along, the shape of either half): the first even axis, or else the
    longest.
    """
    axis = next((d for d, n in enumerate(shape) if n % 2 == 0), max(range(len(shape)), key=shape.__getitem__))
    return axis, (*shape[:axis], -(-shape[axis] // 2), *shape[axis + 1 :])


def _threefry_words(state: Value, shape: Sequence[Size]) -> tuple[Value, Value]:
    """uint32 of `shape`; each hash gives two adjacent numbers along one axis."""
    axis, half = _halved(shape or (1,))
    pair, after = _threefry_pairs(state, half)
    wide = [reshape(w, (*half[: axis + 1], 1, *half[axis + 1 :])) for w in pair]
    joined = reshape(concatenate(wide, axis + 1), (*half[:axis], 2 * half[axis], *half[axis + 1 :]))
    return reshape(slice_(joined, (0,) * len(half), shape or (1,)), shape), after


def _join64(lo: Value, hi: Value) -> Value:
    u64 = dtypes.dtype("uint64")
    hi = convert(hi, u64)
    return or_(shift_left(hi, scalar_like(hi, 32)), convert(lo, u64))


def _decompose(key: Value, *, shape: Shape, dtype: ElementType, algorithm: Any, out_sharding: Any) -> Value:
    words = key
    if dtypes.bits(dtype_of(key)) == 64:
        words = reshape(bitcast(key, dtypes.uint32), (4,))
    state = [reshape(slice_(words, (i,), (i + 1,)), ()) for i in range(4)]
    size = math.prod(shape)
    if not size:
        return [key, full(shape, 0, dtype)]
    wide = dtypes.bits(dtype) == 64
    if algorithm == RandomAlgorithm.RNG_THREE_FRY:
        if wide:
            pair, after = _threefry_pairs(state, shape or (1,))
            bits = reshape(_join64(*pair), shape)
        else:
            bits, after = _threefry_words(state, shape)
    else:
        flat, after = _philox_words(state, 2 * size if wide else size)
        if wide:
            pairs = reshape(flat, (size, 2))
            flat = _join64(*[reshape(slice_(pairs, (0, i), (size, i + 1)), (size,)) for i in (0, 1)])
        bits = reshape(flat, shape)
    new = concatenate([slice_(words, (0,), (2,)), *[reshape(w, (1,)) for w in after]], 0)
    if words is not key:
        new = bitcast(reshape(new, (2, 2)), dtype_of(key))
    return [new, convert(bits, dtype)]


def _reference(key: Value, *, shape: Shape, dtype: ElementType, algorithm: Any, out_sharding: Any) -> Any:
    """The same in Python's integers."""
    k, counter = [int(w) for w in np.ascontiguousarray(key).view(np.uint64)]
    size, wide, mask = math.prod(shape), dtypes.bits(dtype) == 64, (1 << 32) - 1
    halves = lambda v: (v & mask, v >> 32 & mask)
    if algorithm == RandomAlgorithm.RNG_THREE_FRY:
        axis, half = _halved(shape or (1,))
        blocks = size if wide else math.prod(half)
        counters = [halves((counter + i) & ((1 << 64) - 1)) for i in range(blocks)]
        lo, hi = np.array(counters, np.uint32).reshape(blocks, 2).T
        a, b = threefry2x32_p.reference(*[np.array(w, np.uint32) for w in halves(k)], lo, hi)
        if wide:
            bits = (a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)).reshape(shape)
        else:
            joined = np.stack([a.reshape(half), b.reshape(half)], axis + 1).reshape(
                *half[:axis], 2 * half[axis], *half[axis + 1 :]
            )
            bits = joined[tuple(slice(0, n) for n in shape or (1,))].reshape(shape)
    else:
        words = 2 * size if wide else size
        blocks = -(-words // 4)
        flat = [w for i in range(blocks) for w in _philox_block((counter + i + (k << 64)) & ((1 << 128) - 1), k)]
        flat = flat[:words]
        if wide:
            flat = [lo | hi << 32 for lo, hi in zip(flat[::2], flat[1::2])]
        bits = np.array(flat, np.uint64).reshape(shape)
    new = np.array([k, (counter + blocks) & ((1 << 64) - 1)], np.uint64)
    return [new.view(key.dtype), bits.astype(dtype)]


def _philox_block(counter: int, key: int) -> list[Any]:
    mask = (1 << 32) - 1
    c, k = [counter >> 32 * i & mask for i in range(4)], [key & mask, key >> 32]
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 ^ c[1] ^ k[0], b & mask, a >> 32 ^ c[3] ^ k[1], a & mask]
        k = [k[0] + 0x9E3779B9 & mask, k[1] + 0xBB67AE85 & mask]
    return c


p = rng_bit_generator_p
p.abstract, p.batch, p.decompose, p.reference, p.jvp = _abstract, _batch, _decompose, _reference, no_derivative(p)
p.shard = lambda params, ins, outs: [(None,) * len(o.shape) for o in outs]  # all devices make all of the numbers
del p


def rng_bit_generator(
    key: Value, shape: Sequence[Size], dtype: ElementType, algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT
) -> list[Any]:
    """[the next key, bits of `shape`]."""
    results: list[Any] = rng_bit_generator_p.bind(
        key, shape=tuple(shape), dtype=dtype, algorithm=algorithm, out_sharding=None
    )
    return results


# keys ----------------------------------------------------------------------------------------------------------------


def _seed(seed: Value) -> Value:
    half = threefry_seed(seed)
    return concatenate([half, half], len(shape_of(half)) - 1)


def _pairs(key: Value) -> Value:
    """Keys (..., 4) as pairs of threefry's keys (..., 2, 2)."""
    return reshape(key, (*shape_of(key)[:-1], 2, 2))


def _split(key: Value, shape: Sequence[Size]) -> Value:
    """Each half split by threefry."""
    lead = shape_of(key)[:-1]
    made = threefry_split(_pairs(key), shape)
    return reshape(moveaxis(made, len(lead), len(lead) + len(shape)), (*lead, *shape, 4))


def _fold_in(key: Value, data: Value) -> Value:
    lead = broadcast_shapes("fold_in", [shape_of(key)[:-1], shape_of(data)])
    key = broadcast_to_rank_shape(_pairs(key), (*lead, 2, 2))
    data = broadcast_in_dim(broadcast_to_rank_shape(data, lead), (*lead, 2), tuple(range(len(lead))))
    return reshape(threefry_fold_in(key, data), (*lead, 4))


def _first(keys: Value) -> Value:
    """The generator of one key of an array of them makes the numbers of all, as in JAX."""
    shape = shape_of(keys)
    return reshape(slice_(keys, (0,) * len(shape), (*[1] * (len(shape) - 1), 4)), (4,))


def _bits(keys: Value, bit_width: int, shape: Sequence[Size]) -> Value:
    if bit_width not in (8, 16, 32, 64):
        raise type_error(f"random bits come in widths of 8, 16, 32 and 64, got {bit_width}.")
    shape, dt = (*shape_of(keys)[:-1], *shape), dtypes.dtype(f"uint{bit_width}")
    return rng_bit_generator(_first(keys), shape, dt)[1] if math.prod(shape) else full(shape, 0, dt)


def _unsafe_split(keys: Value, shape: Sequence[Size]) -> Value:
    """Every tenth vector of the generator's own numbers."""
    lead, n = shape_of(keys)[:-1], math.prod(shape)
    made = _bits(keys, 32, (10 * n, 4))
    zeros = (0,) * len(lead)
    return reshape(slice_(made, (*zeros, 0, 0), (*lead, 10 * n, 4), (*[1] * len(lead), 10, 1)), (*lead, *shape, 4))


def _unsafe_fold_in(keys: Value, data: Value) -> Value:
    lead = shape_of(data)
    made = _bits(_seed(data), 32, (10, 4))
    last = reshape(slice_(made, (*[0] * len(lead), 9, 0), (*lead, 10, 4)), (*lead, 4))
    shape = (*broadcast_shapes("rng", [shape_of(keys)[:-1], lead]), 4)
    return xor(broadcast_to_rank_shape(keys, shape), broadcast_to_rank_shape(last, shape))


add_generator(Generator("rbg", RBG, _seed, _split, _bits, _fold_in))
add_generator(Generator("unsafe_rbg", UNSAFE_RBG, _seed, _unsafe_split, _bits, _unsafe_fold_in))
