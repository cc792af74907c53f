"""Random keys as what they are stored as: jaxprs in which every key is a uint32 array with one axis more.

Backends compile only such jaxprs. A primitive that merely moves keys about is rewritten by its own batching rule: the
words of a key are a batch axis that the primitive need not know of.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from .. import dtypes
from ..avals import ShapedArray, physical
from ..core.jaxpr import ClosedJaxpr, Jaxpr, Literal, map_jaxprs, subjaxprs, literal_value
from ..core.trace import Axis, get_aval, mapped_axes, reset_trace, set_trace
from ..ops.linear import moveaxis
from .stage import JaxprTrace

if TYPE_CHECKING:
    from ..avals import AbstractValue
    from ..core.primitive import Primitive
    from ..core.types import Params, Value


def _is_key(aval: AbstractValue) -> bool:
    return isinstance(aval, ShapedArray) and dtypes.is_key(aval.dtype)


def has_keys(jaxpr: Jaxpr) -> bool:
    """Whether a key occurs anywhere in a jaxpr."""
    if "has_keys" not in jaxpr.cache:
        jaxpr.cache["has_keys"] = any(_is_key(v.aval) for v in [*jaxpr.constvars, *jaxpr.invars, *[v for e in jaxpr.eqns for v in e.outvars]]) \
            or any(has_keys(sub) for e in jaxpr.eqns for sub in subjaxprs(e.params))
    return jaxpr.cache["has_keys"]


def lower_keys(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program on raw keys."""
    if not has_keys(closed.jaxpr):
        return closed
    key = ("raw_keys", tuple(map(id, closed.consts)))
    if key not in closed.jaxpr.cache:
        trace = JaxprTrace("a program")
        args = [trace.new_arg(physical(a)) for a in closed.in_avals]
        token = set_trace(trace)
        try:
            outs = _run(closed.jaxpr, [raw(c) for c in closed.consts], args)
        finally:
            reset_trace(token)
        closed.jaxpr.cache[key] = ClosedJaxpr(*trace.finish(outs))
    return closed.jaxpr.cache[key]


def raw(x: Value) -> Value:
    """The uint32 array behind an array of keys; everything else as it is."""
    return x.raw if _is_key(get_aval(x)) else x


def _run(jaxpr: Jaxpr, consts: Sequence[Value], args: Sequence[Value]) -> list[Any]:
    env = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    read = lambda a: literal_value(a) if type(a) is Literal else env[a]
    for eqn in jaxpr.eqns:
        values = [read(a) for a in eqn.invars]
        key_in, key_out = [_is_key(a.aval) for a in eqn.invars], [_is_key(v.aval) for v in eqn.outvars]
        primitive, params = eqn.primitive, eqn.params
        if primitive.on_raw is not None:
            dtype = eqn.invars[0].aval.dtype
            outs = primitive.on_raw(dtype, *values, **params)
        elif any(True for _ in subjaxprs(params)):
            with mapped_axes(*(primitive.binds(params) if primitive.binds is not None else ())):
                params = {k: map_jaxprs(v, lower_keys) for k, v in params.items()}
            outs = primitive.bind(*values, **params)
        elif any(key_in) or any(key_out):
            outs = _as_batch(primitive, values, key_in, params)
        else:
            outs = primitive.bind(*values, **params)
        env.update(zip(eqn.outvars, outs if primitive.multiple_results else [outs]))
    return [read(a) for a in jaxpr.outvars]


def _as_batch(primitive: Primitive, values: Sequence[Value], key_in: Sequence[bool], params: Params) -> Any:
    words = next(get_aval(v).shape[-1] for v, k in zip(values, key_in) if k)
    dims = [len(get_aval(v).shape) - 1 if k else None for v, k in zip(values, key_in)]
    outs, out_dims = primitive.batch(Axis(None, words), values, dims, **params)
    move = lambda x, d: x if d is None else moveaxis(x, d, len(get_aval(x).shape) - 1)
    return [move(x, d) for x, d in zip(outs, out_dims)] if primitive.multiple_results else move(outs, out_dims)
