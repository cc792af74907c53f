"""Random bits."""

from __future__ import annotations

import numpy as np
from weft.base import dtypes

from .registry import rule


@rule("rng_uniform")
def _rng_uniform(b, ins, outs, low, high, *, shape):
    """XLA's random numbers, from a state that it keeps; narrow integers are drawn as 32-bit ones."""
    dt = outs[0].dtype
    wide = dtypes.int32 if dtypes.is_int(dt) and dtypes.bits(dt) < 32 else dt
    low, high = (x if wide == dt else b.convert(x, (), wide) for x in (low, high))
    made = b.op(
        "stablehlo.rng",
        [low, high, b.constant(np.array(shape, np.int64))],
        b.tensor(shape, wide),
        {"rng_distribution": b.attr("#stablehlo<rng_distribution UNIFORM>")},
    )
    return made if wide == dt else b.convert(made, shape, dt)


@rule("rng_bit_generator")
def _rng_bit_generator(b, ins, outs, key, *, shape, dtype, algorithm, out_sharding=None):
    """XLA's generator takes a state of 64-bit words; a key is twice as many of 32 bits."""
    name = {0: "DEFAULT", 1: "THREE_FRY", 2: "PHILOX"}[int(getattr(algorithm, "value", algorithm) or 0)]
    words, wide = ins[0].shape[0], dtypes.dtype("uint64")
    state = key
    if ins[0].dtype == dtypes.uint32:
        state = b.op(
            "stablehlo.bitcast_convert", [b.reshape(key, (words // 2, 2), dtypes.uint32)], b.tensor((words // 2,), wide)
        )
    count = words // 2 if ins[0].dtype == dtypes.uint32 else words
    made, bits = b.ops(
        "stablehlo.rng_bit_generator",
        [state],
        [b.tensor((count,), wide), b.type(outs[1])],
        {"rng_algorithm": b.attr(f"#stablehlo<rng_algorithm {name}>")},
    )
    if ins[0].dtype == dtypes.uint32:
        pairs = b.op("stablehlo.bitcast_convert", [made], b.tensor((count, 2), dtypes.uint32))
        made = b.reshape(pairs, (words,), dtypes.uint32)
    return [made, bits]
