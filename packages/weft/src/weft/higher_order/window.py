"""reduce_window with a function of the user's: each window folded by a jaxpr that combines two elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base.avals import shaped
from ..core.carries import Carries, PROGRAM, Runs
from ..core.primitive import Primitive, unsupported
from ..core.wire import portable, row
from ..primitives.window import WINDOW, dilated, patches, window_shape, with_batch_axis
from ..base.host import np
from ..primitives.shape import pad_p
from .fold import check_operands, derive, fold_last, fold_one, halves

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.jaxpr import ClosedJaxpr
    from ..core.types import Value

reduce_window_p = Primitive(
    "reduce_window", multiple_results=True, basic=False, wire=portable(jaxpr=PROGRAM, consts=row(), **WINDOW)
)


def _abstract(*args: Value, jaxpr: ClosedJaxpr, consts: Sequence[Value], **params: Any) -> list[AbstractValue]:
    return [
        shaped(window_shape("reduce_window", x.shape, **params), x.dtype, x.weak_type)
        for x in check_operands("reduce_window", args)
    ]


def _reference(
    *args: Value,
    jaxpr: ClosedJaxpr,
    consts: Sequence[Value],
    window_dimensions: Value,
    window_strides: Value,
    padding: Value,
    base_dilation: Value,
    window_dilation: Value,
) -> Value:
    xs, inits = halves(args)
    shape = window_shape(
        "reduce_window", xs[0].shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    config = [(lo, hi, d - 1) for (lo, hi), d in zip(padding, base_dilation)]
    wide = [pad_p.reference(x, i, padding_config=config) for x, i in zip(xs, inits)]
    outs = [np.empty(shape, x.dtype) for x in xs]
    for window in np.ndindex(*shape):
        inside = tuple(
            slice(r * s, r * s + dilated(w, d), d)
            for r, s, w, d in zip(window, window_strides, window_dimensions, window_dilation)
        )
        for out, value in zip(outs, fold_one(jaxpr, inits, [w[inside].ravel() for w in wide])):
            out[window] = value
    return outs


def _folded(*args: Value, jaxpr: ClosedJaxpr, consts: Sequence[Value], **params: Any) -> list[Any]:
    xs, inits = halves(args)
    return fold_last(jaxpr, [patches(x, i, **params) for x, i in zip(xs, inits)], inits)


reduce_window_p.carries = Carries(Runs.COMBINING, {"jaxpr": ()})
reduce_window_p.abstract, reduce_window_p.reference = _abstract, _reference
derive(reduce_window_p, _folded, with_batch_axis)
reduce_window_p.transpose = unsupported(
    "a fold with a function is not linear; its derivative is made of simpler primitives"
)
