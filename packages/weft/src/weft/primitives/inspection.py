"""Looking into compiled programs: at the sharding of a value, which the compiler chooses, and, from outside of the
process that runs a program, at values; and the callbacks of that process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.avals import shaped
from ..core import effects
from ..core.jaxpr import ClosedJaxpr, Jaxpr, map_jaxprs, subjaxprs
from ..core.memo import memoized
from ..core.primitive import Primitive, unsupported
from ..core.wire import COUNT, DTYPE, FLAG, NAMES_DEVICES, many, portable

if TYPE_CHECKING:
    from ..core.trace import Axis
    from ..core.types import Dims, Value

inspect_sharding_p = Primitive("inspect_sharding", multiple_results=True, wire=NAMES_DEVICES)
# A debug callback of a program that runs elsewhere: the operands travel, and function `number` of the process that sent
# the program gets them. `transforms.portable.reporting` makes it, and the host puts a function of its own in its place.
debug_report_p = Primitive("debug_report", multiple_results=True, wire=portable(number=COUNT, ordered=FLAG))
# The same of the other callbacks, whose results the program waits for: their types are in the program.
remote_callback_p = Primitive(
    "remote_callback",
    multiple_results=True,
    wire=portable(number=COUNT, ordered=FLAG, shapes=many(many(COUNT)), dtypes=many(DTYPE)),
)
_DEBUG, _ORDERED = frozenset([effects.debug]), frozenset([effects.ordered_debug])
_IO, _ORDERED_IO = frozenset([effects.io]), frozenset([effects.ordered_io])


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

debug_report_p.abstract = lambda *avals, number, ordered: []
debug_report_p.effects = lambda params: _ORDERED if params["ordered"] else _DEBUG
remote_callback_p.abstract = lambda *avals, number, ordered, shapes, dtypes: result_types(shapes, dtypes)
remote_callback_p.effects = lambda params: _ORDERED_IO if params["ordered"] else _IO
_finished = unsupported("it stands for a callback once all transformations are done")
for _p in (debug_report_p, remote_callback_p):
    _p.jvp = _p.batch = _p.transpose = _p.reference = _finished


def result_types(shapes: Sequence[Sequence[int]], dtypes: Sequence[Any]) -> list[Any]:
    """The types of the results of a `remote_callback`."""
    if len(shapes) != len(dtypes):
        raise ValueError(f"remote_callback has {len(shapes)} shapes of results, and {len(dtypes)} dtypes")
    return [shaped(tuple(shape), dtype) for shape, dtype in zip(shapes, dtypes)]


@memoized
def without_inspections(jaxpr: Jaxpr) -> tuple[Jaxpr, list[Callable[[Any], None]]]:
    """The same program without inspections, and their callbacks in order: for a program that runs on one
    device, where all its values are.
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
