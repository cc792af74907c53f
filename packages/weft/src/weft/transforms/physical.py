"""Programs over stored values: every random key is a uint32 array with one more axis, and an array of float0, which has
no data, is an array of booleans, all false.

Backends compile only such jaxprs. A primitive that only moves keys is rewritten by its own batching rule: the words of
a key are a batch axis, which the primitive need not know about. One that moves float0 moves booleans in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.avals import ShapedArray, physical
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, eval_equations, literal_value, map_jaxprs, subjaxprs
from ..core.memo import inner_jaxprs, memoized, memoized_closed
from ..core.trace import Axis, get_aval, mapped_axes, tracing
from ..primitives.linear import full, moveaxis
from .stage import JaxprTrace

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.primitive import Primitive
    from ..core.types import Params, Value


def _is_key(aval: AbstractValue) -> bool:
    return isinstance(aval, ShapedArray) and dtypes.is_key(aval.dtype)


@memoized
def is_physical(jaxpr: Jaxpr) -> bool:
    """Whether all values of a jaxpr are stored as their types say."""
    literals = [a for e in jaxpr.eqns for a in e.invars if type(a) is Literal]
    atoms = [
        *jaxpr.constvars,
        *jaxpr.invars,
        *jaxpr.outvars,
        *literals,
        *[v for e in jaxpr.eqns for v in e.outvars],
    ]
    return all(physical(a.aval) is a.aval for a in atoms) and all(map(is_physical, inner_jaxprs(jaxpr)))


def lower_types(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program over stored values."""
    if is_physical(closed.jaxpr):
        return closed
    return _lower_types(closed)


@memoized_closed
def _lower_types(closed: ClosedJaxpr) -> ClosedJaxpr:
    trace = JaxprTrace("a program")
    args = [trace.new_arg(physical(a)) for a in closed.in_avals]
    with tracing(trace):
        outs = _run(closed.jaxpr, [raw(c) for c in closed.consts], args)
    return ClosedJaxpr(*trace.finish(outs))


def raw(x: Value) -> Value:
    """The stored value: the uint32 array of an array of keys, False for float0."""
    aval = get_aval(x)
    if _is_key(aval):
        return x.raw
    return x if physical(aval) is aval else full(aval.shape, False, dtypes.bool_)


def _run(jaxpr: Jaxpr, consts: Sequence[Value], args: Sequence[Value]) -> list[Any]:
    return eval_equations(jaxpr, consts, args, _apply, literal=lambda a: raw(literal_value(a)))


def _apply(eqn: JaxprEqn, values: Sequence[Value]) -> Sequence[Any]:
    """The results of an equation for stored values."""
    key_in, key_out = [_is_key(a.aval) for a in eqn.invars], [_is_key(v.aval) for v in eqn.outvars]
    primitive, params = eqn.primitive, eqn.params
    if primitive.on_raw is not None:
        outs = primitive.on_raw(eqn.invars[0].aval.dtype, *values, **params)
    elif subjaxprs(params):
        with mapped_axes(*(primitive.binds(params) if primitive.binds is not None else ())):
            params = {k: map_jaxprs(v, lower_types) for k, v in params.items()}
        outs = primitive.bind(*values, **params)
    elif any(key_in) or any(key_out):
        outs = _as_batch(primitive, values, key_in, params)
    else:
        if any(_is_float0(v.aval) for v in eqn.outvars):
            params = {k: _stored(v) for k, v in params.items()}
        outs = primitive.bind(*values, **params)
    return outs if primitive.multiple_results else [outs]


def _is_float0(aval: AbstractValue) -> bool:
    return isinstance(aval, ShapedArray) and aval.dtype == dtypes.float0


def _stored(param: Any) -> Any:
    """A parameter of an operation that returns float0, changed to that of the operation that returns booleans."""
    return dtypes.bool_ if type(param) is type(dtypes.float0) and param == dtypes.float0 else param


def _as_batch(primitive: Primitive, values: Sequence[Value], key_in: Sequence[bool], params: Params) -> Any:
    words = next(get_aval(v).shape[-1] for v, k in zip(values, key_in) if k)
    dims = [len(get_aval(v).shape) - 1 if k else None for v, k in zip(values, key_in)]
    outs, out_dims = primitive.batch(Axis(None, words), values, dims, **params)
    move = lambda x, d: x if d is None else moveaxis(x, d, len(get_aval(x).shape) - 1)
    return [move(x, d) for x, d in zip(outs, out_dims)] if primitive.multiple_results else move(outs, out_dims)
