"""reduce with a function of the user's: axes folded by a jaxpr that combines two elements. `window.py` folds windows
with the same parts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.avals import shaped, tangent_aval
from ..core.carries import Carries, PROGRAM, Runs
from ..core.interpret import interpret
from ..core.jaxpr import eval_jaxpr
from ..core.primitive import Primitive, Zero
from ..core.shardings import parts_of, without
from ..core.wire import AXES, portable
from ..core.trace import Axis, get_aval
from ..base.errors import type_error
from ..base.host import np
from ..primitives.linear import broadcast_in_dim, broadcast_to_axis, moveaxis, reduced_shape, reshape
from ..primitives.reduce import cut, flatten_axes
from ..primitives.rules import shape_of
from ..primitives.shape import concatenate
from ..transforms.batch import batch_flat, to_front
from ..transforms.jvp import jvp_flat

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.jaxpr import ClosedJaxpr
    from ..core.types import Dims, Value

reduce_p = Primitive("reduce", multiple_results=True, wire=portable(jaxpr=PROGRAM, dimensions=AXES))


# what folds share: operands come first, then an initial value for each -----------------------------------------------


def halves(args: Sequence[Any]) -> tuple[Any, ...]:
    return args[: len(args) // 2], args[len(args) // 2 :]


def check_operands(name: str, args: Sequence[Any], error: Callable[..., Any] = type_error) -> Sequence[Any]:
    """The avals of a fold's operands; an error where an initial value does not fit."""
    xs, inits = halves(args)
    for x, init in zip(xs, inits):
        if init.shape or init.dtype != x.dtype:
            raise error(
                f"{name}: the initial value of an operand {x.str_short()} must be a scalar of its dtype, got"
                f" {init.str_short()}."
            )
        if x.shape != xs[0].shape:
            raise error(f"{name}: operands must have one shape, got {', '.join(str(a.shape) for a in xs)}.")
    return xs


def fold_one(jaxpr: ClosedJaxpr, inits: Sequence[Any], rows: Sequence[Any]) -> list[Any]:
    """One row of each operand, element by element, in NumPy."""
    acc = list(inits)
    for items in zip(*rows):
        acc = interpret(jaxpr, [*acc, *map(np.asarray, items)])
    return acc


def elementwise(jaxpr: ClosedJaxpr, xs: list[Any], ys: list[Any]) -> list[Any]:
    """The combination of scalars, applied to arrays of one shape."""
    shape = shape_of(xs[0])
    axis = Axis(None, math.prod(shape))
    flat = [reshape(v, (axis.size,)) for v in (*xs, *ys)]
    outs, dims = batch_flat(lambda *vs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *vs), axis, flat, [0] * len(flat))
    return [reshape(to_front(axis, o, d), shape) for o, d in zip(outs, dims)]


def fold_last(jaxpr: ClosedJaxpr, rows: Sequence[Any], inits: Sequence[Any]) -> list[Any]:
    """Halves the last axis again and again, combining the halves elementwise."""
    *outer, size = shape_of(rows[0])
    starts = [broadcast_in_dim(i, tuple(outer)) for i in inits]
    if not size or 0 in outer:
        return starts
    while size > 1:
        half = size // 2
        made = elementwise(jaxpr, [cut(r, 0, half) for r in rows], [cut(r, half, 2 * half) for r in rows])
        rows = [concatenate([m, cut(r, 2 * half, size)], len(outer)) for m, r in zip(made, rows)] if size % 2 else made
        size -= half
    return elementwise(jaxpr, starts, [reshape(r, tuple(outer)) for r in rows])


def derive(primitive: Primitive, folded: Callable[..., Any], with_axis: Callable[..., Any]) -> None:
    """The rules that follow from `folded`, the fold in simpler primitives; `with_axis` returns the parameters for
    operands with one more axis in front.
    """

    def jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Any, Any]:
        if all(type(t) is Zero for t in tangents):
            outs = primitive.bind(*primals, **params)
            return outs, [Zero(tangent_aval(get_aval(o))) for o in outs]
        return jvp_flat(lambda *xs: folded(*xs, **params), primals, tangents)

    def batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Any, Any]:
        (xs, inits), (x_dims, init_dims) = halves(args), halves(dims)
        if any(d is not None for d in init_dims):
            return batch_flat(lambda *ys: folded(*ys, **params), axis, args, dims)
        xs = [
            broadcast_to_axis(x, axis.size, axis.placed) if d is None else moveaxis(x, d, 0) for x, d in zip(xs, x_dims)
        ]
        return primitive.bind(*xs, *inits, **with_axis(params)), [0] * len(xs)

    primitive.jvp, primitive.batch, primitive.decompose = jvp, batch, folded


# reduce --------------------------------------------------------------------------------------------------------------


def _abstract(*args: Value, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]) -> list[AbstractValue]:
    xs = check_operands("reduce", args, ValueError)
    for x, out in zip(xs, jaxpr.out_avals):
        if out.shape or out.dtype != x.dtype:
            raise type_error(
                f"reduce: the computation must return scalars of the operands' dtypes, got {out.str_short()} for"
                f" {x.str_short()}."
            )
    return [shaped(reduced_shape("reduce", x, dimensions), x.dtype, x.weak_type) for x in xs]


def _reference(*args: Value, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]) -> list[Any]:
    xs, inits = halves(args)
    if not dimensions:
        return list(xs)
    kept = [d for d in range(xs[0].ndim) if d not in dimensions]
    flat = [
        np.transpose(x, [*kept, *dimensions]).reshape(
            math.prod(x.shape[d] for d in kept), math.prod(x.shape[d] for d in dimensions)
        )
        for x in xs
    ]
    rows = [fold_one(jaxpr, inits, row) for row in zip(*flat)]
    shape = tuple(xs[0].shape[d] for d in kept)
    return [np.array([r[i] for r in rows], x.dtype).reshape(shape) for i, x in enumerate(xs)]


def _folded(*args: Value, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]) -> list[Any]:
    xs, inits = halves(args)
    if not dimensions:  # nothing is combined, not even with the initial values
        return list(xs)
    kept = [d for d in range(len(shape_of(xs[0]))) if d not in dimensions]
    return fold_last(jaxpr, [flatten_axes(x, kept, dimensions) for x in xs], inits)


reduce_p.carries = Carries(Runs.COMBINING, {"jaxpr": ()})
reduce_p.abstract, reduce_p.reference = _abstract, _reference
reduce_p.shard = lambda params, ins, outs: [without(params["dimensions"], parts_of(a)) for a in ins[: len(outs)]]
derive(reduce_p, _folded, lambda params: dict(params, dimensions=tuple(d + 1 for d in params["dimensions"])))
