"""Primitives that move elements."""

from __future__ import annotations

from .registry import rule


@rule("broadcast_in_dim")
def _broadcast_in_dim(b, ins, outs, x, *, shape, broadcast_dimensions, sharding=None):
    return b.broadcast(x, broadcast_dimensions, shape, outs[0].dtype)


@rule("reshape")
def _reshape(b, ins, outs, x, *, new_sizes, dimensions=None, sharding=None):
    if dimensions is not None and tuple(dimensions) != tuple(range(len(ins[0].shape))):
        x = b.op(
            "stablehlo.transpose",
            [x],
            b.tensor([ins[0].shape[d] for d in dimensions], ins[0].dtype),
            {"permutation": b.i64s(dimensions)},
        )
    return b.op("stablehlo.reshape", [x], b.type(outs[0]))


@rule("squeeze")
def _squeeze(b, ins, outs, x, *, dimensions):
    return b.op("stablehlo.reshape", [x], b.type(outs[0]))


@rule("transpose")
def _transpose(b, ins, outs, x, *, permutation):
    return b.op("stablehlo.transpose", [x], b.type(outs[0]), {"permutation": b.i64s(permutation)})


@rule("slice")
def _slice(b, ins, outs, x, *, start_indices, limit_indices, strides):
    return b.op(
        "stablehlo.slice",
        [x],
        b.type(outs[0]),
        {
            "start_indices": b.i64s(start_indices),
            "limit_indices": b.i64s(limit_indices),
            "strides": b.i64s(strides or (1,) * len(start_indices)),
        },
    )


@rule("pad")
def _pad(b, ins, outs, x, value, *, padding_config):
    return b.pad(x, value, padding_config, outs[0].shape, outs[0].dtype)


@rule("concatenate")
def _concatenate(b, ins, outs, *xs, dimension):
    return b.op("stablehlo.concatenate", xs, b.type(outs[0]), {"dimension": b.int_attr(dimension)})


@rule("rev")
def _rev(b, ins, outs, x, *, dimensions):
    return b.op("stablehlo.reverse", [x], b.type(outs[0]), {"dimensions": b.i64s(dimensions)})


@rule("iota")
def _iota(b, ins, outs, *, dtype, shape, dimension, sharding=None):
    return b.iota(outs[0].shape, dimension, outs[0].dtype)


@rule("split")
def _split(b, ins, outs, x, *, sizes, axis):
    shape, start, made = ins[0].shape, 0, []
    for size, out in zip(sizes, outs):
        low = [start if d == axis else 0 for d in range(len(shape))]
        high = [start + size if d == axis else n for d, n in enumerate(shape)]
        made.append(
            b.op(
                "stablehlo.slice",
                [x],
                b.type(out),
                {"start_indices": b.i64s(low), "limit_indices": b.i64s(high), "strides": b.i64s([1] * len(shape))},
            )
        )
        start += size
    return made


@rule("tile")
def _tile(b, ins, outs, x, *, reps):
    shape = ins[0].shape
    wide = [n for pair in zip(reps, shape) for n in pair]
    x = b.broadcast(x, range(1, 2 * len(shape), 2), wide, ins[0].dtype)
    return b.op("stablehlo.reshape", [x], b.type(outs[0]))
