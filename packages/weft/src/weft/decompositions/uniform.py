"""rng_uniform: random numbers without a key. XLA keeps its own state; on other backends each run of a program asks the
host for a key.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ..base import dtypes
from ..base.avals import shaped
from ..core.primitive import Primitive, unsupported
from ..core.wire import SIZES, portable
from ..base.host import from_flat, np
from ..primitives.elementwise import add, lt, mul, select, sub
from ..primitives.bitwise import mulhi, shift_right_logical
from ..primitives.generator import rng_bit_generator
from ..primitives.linear import broadcast_in_dim, convert, full
from ..primitives.rules import dtype_of, no_derivative, scalar_like
from ..base.tree import tree_structure
from ..effects.callback import HostFunction, io_callback_p

if TYPE_CHECKING:
    from ..base.avals import AbstractValue, Shape
    from ..core.types import Value

rng_uniform_p = Primitive("rng_uniform", basic=False, wire=portable(shape=SIZES))


def a_key_for_rng_uniform() -> Value:
    return from_flat([random.getrandbits(32) for _ in range(4)], (4,), dtypes.uint32)


_KEY = shaped((4,), dtypes.uint32)
_DRAW = HostFunction(a_key_for_rng_uniform, tree_structure(((), {})), result=tree_structure(0))


def _uniform_abstract(a: AbstractValue, b: AbstractValue, *, shape: Shape) -> AbstractValue:
    if a.dtype != b.dtype or dtypes.kind(a.dtype) not in "iuf":
        raise ValueError(f"rng_uniform: both bounds must have one integer or float dtype, got {a} and {b}.")
    if a.shape or b.shape:
        raise ValueError(f"rng_uniform: both bounds must be scalars, got shapes {a.shape} and {b.shape}.")
    return shaped(shape, a.dtype)


def _uniform_decompose(a: Value, b: Value, *, shape: Shape) -> Value:
    """Numbers from a key that the host draws in each run."""
    dt, f32 = dtype_of(a), dtypes.float32
    (key,) = io_callback_p.bind(callback=_DRAW, result_avals=(_KEY,), sharding=None, ordered=False)
    bits = rng_bit_generator(key, shape, dtypes.uint32)[1]
    if dtypes.is_int(dt):
        if dtypes.bits(dt) > 32:
            bits = convert(rng_bit_generator(key, shape, dtypes.dtype("uint64"))[1], dt)
        span = convert(sub(b, a), dtypes.dtype(f"uint{max(32, dtypes.bits(dt))}"))
        bits = convert(bits, dtype_of(span))
        high = mulhi(bits, broadcast_in_dim(span, shape))
        return add(convert(high, dt), broadcast_in_dim(a, shape))
    wide = f32 if dtypes.bits(dt) <= 32 else dt
    unit = mul(convert(shift_right_logical(bits, scalar_like(bits, 8)), wide), scalar_like(full((), 0, wide), 2.0**-24))
    lo, hi = convert(a, wide), convert(b, wide)
    out = convert(add(mul(unit, sub(hi, lo)), broadcast_in_dim(lo, shape)), dt)
    return select(lt(out, broadcast_in_dim(b, shape)), out, broadcast_in_dim(a, shape))


def _uniform_reference(a: Value, b: Value, *, shape: Shape) -> Value:
    with np.errstate(all="ignore"):
        return (np.random.default_rng().random(shape) * (float(b) - float(a)) + float(a)).astype(a.dtype)


rng_uniform_p.abstract, rng_uniform_p.decompose, rng_uniform_p.reference = (
    _uniform_abstract,
    _uniform_decompose,
    _uniform_reference,
)
rng_uniform_p.batch = unsupported(
    "rng_uniform with batched bounds: draw numbers in [0, 1) outside vmap, or use weft.random.uniform."
)
rng_uniform_p.jvp = no_derivative(rng_uniform_p)
