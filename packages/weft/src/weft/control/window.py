"""reduce_window with a function of the user's: each window folded by a jaxpr that combines two elements."""
from __future__ import annotations

import math

from ..avals import shaped, tangent_aval
from ..core.interpret import interpret
from ..core.jaxpr import eval_jaxpr
from ..core.primitive import Primitive, Zero, unsupported
from ..core.trace import Axis, get_aval
from ..errors import type_error
from ..host import np
from ..ops.linear import broadcast_in_dim, broadcast_to_axis, moveaxis, reshape
from ..ops.rules import shape_of
from ..ops.shape import concatenate, pad_p, slice_
from ..ops.window import dilated, patches, window_shape, with_batch_axis
from ..transforms.batch import batch_flat, to_front
from ..transforms.jvp import jvp_flat

reduce_window_p = Primitive("reduce_window", multiple_results=True, basic=False)


def _abstract(*args, jaxpr, consts, **params):
    n = len(args) // 2
    for x, init in zip(args[:n], args[n:]):
        if init.shape or init.dtype != x.dtype:
            raise type_error(f"reduce_window: the initial value of an operand {x.str_short()} must be a scalar of its dtype, got {init.str_short()}.")
        if x.shape != args[0].shape:
            raise type_error(f"reduce_window: operands must have one shape, got {', '.join(str(a.shape) for a in args[:n])}.")
    return [shaped(window_shape("reduce_window", x.shape, **params), x.dtype, x.weak_type) for x in args[:n]]


def _reference(*args, jaxpr, consts, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    n = len(args) // 2
    xs, inits = args[:n], args[n:]
    shape = window_shape("reduce_window", xs[0].shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    config = [(lo, hi, d - 1) for (lo, hi), d in zip(padding, base_dilation)]
    wide = [pad_p.reference(x, i, padding_config=config) for x, i in zip(xs, inits)]
    outs = [np.empty(shape, x.dtype) for x in xs]
    for window in np.ndindex(*shape):
        inside = tuple(slice(r * s, r * s + dilated(w, d), d) for r, s, w, d in zip(window, window_strides, window_dimensions, window_dilation))
        acc = list(inits)
        for items in zip(*[w[inside].ravel() for w in wide]):
            acc = interpret(jaxpr, [*acc, *map(np.asarray, items)])
        for out, value in zip(outs, acc):
            out[window] = value
    return outs


def elementwise(jaxpr, xs: list, ys: list) -> list:
    """The combination of scalars, on arrays of one shape."""
    shape = shape_of(xs[0])
    axis = Axis(None, math.prod(shape))
    flat = [reshape(v, (axis.size,)) for v in (*xs, *ys)]
    outs, dims = batch_flat(lambda *vs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *vs), axis, flat, [0] * len(flat))
    return [reshape(to_front(axis, o, d), shape) for o, d in zip(outs, dims)]


def _folded(*args, jaxpr, consts, **params) -> list:
    """Halves the places of every window again and again."""
    n = len(args) // 2
    rows = [patches(x, i, **params) for x, i in zip(args[:n], args[n:])]
    shape = shape_of(rows[0])
    cut = lambda v, lo, hi: slice_(v, (*[0] * (len(shape) - 1), lo), (*shape[:-1], hi))
    size = shape[-1]
    if 0 in shape[:-1]:
        return [reshape(cut(r, 0, 1), shape[:-1]) for r in rows]
    while size > 1:
        half = size // 2
        made = elementwise(jaxpr, [cut(r, 0, half) for r in rows], [cut(r, half, 2 * half) for r in rows])
        rows = [concatenate([m, cut(r, 2 * half, size)], len(shape) - 1) for m, r in zip(made, rows)] if size % 2 else made
        size -= half
    starts = [broadcast_in_dim(i, shape[:-1]) for i in args[n:]]
    return elementwise(jaxpr, starts, [reshape(r, shape[:-1]) for r in rows])


def _jvp(primals, tangents, **params):
    if all(type(t) is Zero for t in tangents):
        outs = reduce_window_p.bind(*primals, **params)
        return outs, [Zero(tangent_aval(get_aval(o))) for o in outs]
    return jvp_flat(lambda *xs: _folded(*xs, **params), primals, tangents)


def _batch(axis, args, dims, **params):
    n = len(args) // 2
    if any(d is not None for d in dims[n:]):
        return batch_flat(lambda *xs: _folded(*xs, **params), axis, args, dims)
    xs = [broadcast_to_axis(x, axis.size) if d is None else moveaxis(x, d, 0) for x, d in zip(args[:n], dims)]
    return reduce_window_p.bind(*xs, *args[n:], **with_batch_axis(params)), [0] * n


reduce_window_p.abstract, reduce_window_p.reference, reduce_window_p.jvp, reduce_window_p.batch = _abstract, _reference, _jvp, _batch
reduce_window_p.decompose = _folded
reduce_window_p.transpose = unsupported("a fold with a function is not linear; its derivative is made of simpler primitives")
