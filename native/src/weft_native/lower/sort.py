"""Sorting and selecting the largest."""

from __future__ import annotations

import math
from typing import Any

from weft.base import dtypes
from weft.base.avals import ShapedArray, shaped

from .registry import rule, widened


def _ordered(b, x, aval):
    """Values whose total order is the order of sorting: with only one zero, and one NaN, which is last."""
    if not dtypes.is_float(aval.dtype):
        return x
    zero, nan = b.splat(0.0, aval.dtype, aval.shape), b.splat(math.nan, aval.dtype, aval.shape)
    x = b.select(b.compare("EQ", x, zero, aval), zero, x, aval.shape, aval.dtype)
    return b.select(b.compare("NE", x, x, aval), nan, x, aval.shape, aval.dtype)


def _parts(b, x, aval):
    """The real keys by which a key is compared, the most significant first."""
    if not dtypes.is_complex(aval.dtype):
        return [(_ordered(b, x, aval), aval)]
    real = shaped(aval.shape, dtypes.real_of(aval.dtype))
    return [(_ordered(b, b.op(f"stablehlo.{part}", [x], b.type(real)), real), real) for part in ("real", "imag")]


@rule("sort")
@widened
def _sort(b, ins, outs, *xs, dimension, is_stable, num_keys):
    scalars = [shaped((), a.dtype) for a in ins]
    types = [b.type(a) for a in scalars for _ in range(2)]

    def less(*args):
        boolean = b.tensor((), dtypes.bool_)
        keys: list[tuple[tuple[Any, ShapedArray], tuple[Any, ShapedArray]]] = []
        for i in range(num_keys):
            keys.extend(zip(_parts(b, args[2 * i], scalars[i]), _parts(b, args[2 * i + 1], scalars[i])))
        result = None
        for (p, aval), (q, _) in reversed(keys):
            total = dtypes.is_float(aval.dtype)
            before = b.compare("LT", p, q, aval, total=total)
            if result is not None:
                same = b.op("stablehlo.and", [b.compare("EQ", p, q, aval, total=total), result], boolean)
                before = b.op("stablehlo.or", [before, same], boolean)
            result = before
        return [result]

    return b.ops(
        "stablehlo.sort",
        xs,
        [b.type(a) for a in outs],
        {"dimension": b.int_attr(dimension), "is_stable": b.bool_attr(is_stable)},
        [(types, less)],
    )


@rule("top_k")
@widened
def _top_k(b, ins, outs, x, *, k, axis):
    rank, shape = len(ins[0].shape), list(ins[0].shape)
    order = [d for d in range(rank) if d != axis % rank] + [axis % rank]
    moved = order != list(range(rank))
    if moved:
        x = b.op(
            "stablehlo.transpose",
            [x],
            b.tensor([shape[d] for d in order], ins[0].dtype),
            {"permutation": b.i64s(order)},
        )
    results = [[a.shape[d] for d in order] for a in outs]
    found = b.ops("chlo.top_k", [x], [b.tensor(s, a.dtype) for s, a in zip(results, outs)], {"k": b.int_attr(k)})
    if not moved:
        return found
    back = sorted(range(rank), key=order.__getitem__)
    return [b.op("stablehlo.transpose", [v], b.type(a), {"permutation": b.i64s(back)}) for v, a in zip(found, outs)]
