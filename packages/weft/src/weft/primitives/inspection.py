"""Inspecting the sharding of a value, also inside compiled programs, where the compiler chooses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..core import effects
from ..core.jaxpr import ClosedJaxpr, Jaxpr, map_jaxprs, subjaxprs
from ..core.memo import memoized
from ..core.primitive import Primitive, unsupported
from ..core.wire import NAMES_DEVICES

if TYPE_CHECKING:
    from ..core.trace import Axis
    from ..core.types import Dims, Value

inspect_sharding_p = Primitive("inspect_sharding", multiple_results=True, wire=NAMES_DEVICES)
_DEBUG = frozenset([effects.debug])


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Any, Any]:
    inspect_sharding_p.bind(*primals, **params)
    return [], []


def _batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Any, Any]:
    inspect_sharding_p.bind(*args, **params)  # of the whole batch
    return [], []


inspect_sharding_p.cache = None  # a cache of types must not keep functions alive
inspect_sharding_p.abstract = lambda aval, *, callback: []
inspect_sharding_p.effects = lambda params: _DEBUG
inspect_sharding_p.transpose = unsupported("inspect_sharding computes nothing, so there is nothing to transpose")
inspect_sharding_p.jvp, inspect_sharding_p.batch = _jvp, _batch
inspect_sharding_p.reference = lambda x, *, callback: []  # a host value is on no device


@memoized
def without_inspections(jaxpr: Jaxpr) -> tuple[Jaxpr, list[Callable[[Any], None]]]:
    """The same program without inspections, and their callbacks in order: for a backend whose programs run on one
    device each, so that all values are on that device.
    """
    callbacks: list[Callable[[Any], None]] = []

    def stripped(closed: ClosedJaxpr) -> ClosedJaxpr:
        inner, more = without_inspections(closed.jaxpr)
        callbacks.extend(more)
        return closed if inner is closed.jaxpr else ClosedJaxpr(inner, closed.consts)

    eqns = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is inspect_sharding_p:
            callbacks.append(eqn.params["callback"])
            continue
        before = len(callbacks)
        params = {k: map_jaxprs(v, stripped) for k, v in eqn.params.items()} if subjaxprs(eqn.params) else eqn.params
        if len(callbacks) > before:
            eqn = eqn.replace(
                params=params,
                effects=frozenset() if eqn.primitive.effects is None else eqn.primitive.effects(params),
            )
        eqns.append(eqn)
    plain = jaxpr.replace(eqns=eqns, effects=frozenset().union(*[e.effects for e in eqns])) if callbacks else jaxpr
    return plain, callbacks
