"""reduce with a function of the user's: axes folded by a jaxpr that combines two elements."""
from __future__ import annotations

import math

from ..avals import shaped, tangent_aval
from ..core.interpret import interpret
from ..core.primitive import Primitive, Zero
from ..core.trace import get_aval
from ..errors import type_error
from ..host import np
from ..ops.linear import broadcast_in_dim, broadcast_to_axis, moveaxis, reduced_shape, reshape
from ..ops.reduce import cut, flatten_axes
from ..ops.rules import shape_of
from ..ops.shape import concatenate
from ..transforms.batch import batch_flat
from ..transforms.jvp import jvp_flat
from .window import elementwise

reduce_p = Primitive("reduce", multiple_results=True)


def _abstract(*args, jaxpr, dimensions):
    n = len(args) // 2
    for x, init in zip(args[:n], args[n:]):
        if init.shape or init.dtype != x.dtype:
            raise ValueError(f"reduce: the initial value of an operand {x.str_short()} must be a scalar of its dtype, got {init.str_short()}.")
        if x.shape != args[0].shape:
            raise ValueError(f"reduce: operands must have one shape, got {', '.join(str(a.shape) for a in args[:n])}.")
    for x, out in zip(args[:n], jaxpr.out_avals):
        if out.shape or out.dtype != x.dtype:
            raise type_error(f"reduce: the computation must return scalars of the operands' dtypes, got {out.str_short()} for {x.str_short()}.")
    return [shaped(reduced_shape("reduce", x, dimensions), x.dtype, x.weak_type) for x in args[:n]]


def _reference(*args, jaxpr, dimensions):
    n = len(args) // 2
    xs, inits = args[:n], args[n:]
    kept = [d for d in range(xs[0].ndim) if d not in dimensions]
    flat = [np.transpose(x, [*kept, *dimensions]).reshape(math.prod(x.shape[d] for d in kept), -1) for x in xs]
    rows = []
    for row in zip(*flat):
        acc = list(inits)
        for items in zip(*row):
            acc = interpret(jaxpr, [*acc, *map(np.asarray, items)])
        rows.append(acc)
    shape = tuple(xs[0].shape[d] for d in kept)
    return [np.array([r[i] for r in rows], x.dtype).reshape(shape) for i, x in enumerate(xs)]


def _folded(*args, jaxpr, dimensions):
    """Halves the reduced axis again and again, combining the halves elementwise."""
    n = len(args) // 2
    xs, inits = list(args[:n]), args[n:]
    kept = [d for d in range(len(shape_of(xs[0]))) if d not in dimensions]
    xs = [flatten_axes(x, kept, dimensions) for x in xs]
    *outer, size = shape_of(xs[0])
    starts = [broadcast_in_dim(i, outer) for i in inits]
    if not size or 0 in outer:
        return starts
    while size > 1:
        half = size // 2
        made = elementwise(jaxpr, [cut(x, 0, half) for x in xs], [cut(x, half, 2 * half) for x in xs])
        xs = [concatenate([m, cut(x, 2 * half, size)], len(outer)) for m, x in zip(made, xs)] if size % 2 else made
        size -= half
    return elementwise(jaxpr, starts, [reshape(x, outer) for x in xs])


def _jvp(primals, tangents, **params):
    if all(type(t) is Zero for t in tangents):
        outs = reduce_p.bind(*primals, **params)
        return outs, [Zero(tangent_aval(get_aval(o))) for o in outs]
    return jvp_flat(lambda *xs: _folded(*xs, **params), primals, tangents)


def _batch(axis, args, dims, *, jaxpr, dimensions):
    n = len(args) // 2
    if any(d is not None for d in dims[n:]):
        return batch_flat(lambda *xs: _folded(*xs, jaxpr=jaxpr, dimensions=dimensions), axis, args, dims)
    xs = [broadcast_to_axis(x, axis.size) if d is None else moveaxis(x, d, 0) for x, d in zip(args[:n], dims)]
    return reduce_p.bind(*xs, *args[n:], jaxpr=jaxpr, dimensions=tuple(d + 1 for d in dimensions)), [0] * n


reduce_p.abstract, reduce_p.reference, reduce_p.jvp, reduce_p.batch, reduce_p.decompose = _abstract, _reference, _jvp, _batch, _folded
