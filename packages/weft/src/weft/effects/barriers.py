"""Primitives that compute nothing and say something about order, use or tracing: barriers, sinks, stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..core.effects import no_dce
from ..core.primitive import Primitive, Zero, unsupported
from ..core.shardings import each_same
from ..core.wire import portable, stays
from ..transforms.jvp import instantiate
from ..transforms.stage import JaxprTracer

if TYPE_CHECKING:
    from ..core.types import Value

optimization_barrier_p = Primitive(
    "optimization_barrier", multiple_results=True, basic=False, wire=portable().and_tokens()
)


def _barrier_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Any, Any]:
    """Tangents get a separate barrier."""
    outs = optimization_barrier_p.bind(*primals)
    moving = [t for t in tangents if type(t) is not Zero]
    moved = iter(optimization_barrier_p.bind(*moving) if moving else ())
    return outs, [t if type(t) is Zero else next(moved) for t in tangents]


p = optimization_barrier_p
p.abstract, p.reference, p.decompose, p.jvp = (
    (lambda *xs: list(xs)),
    (lambda *xs: list(xs)),
    (lambda *xs: list(xs)),
    _barrier_jvp,
)
p.transpose = lambda cts, *xs: optimization_barrier_p.bind(*[instantiate(ct) for ct in cts])
p.batch = lambda axis, args, dims: (optimization_barrier_p.bind(*args), list(dims))
p.shard, p.linear_in_sums = each_same, True

dce_sink_p = Primitive(
    "dce_sink", multiple_results=True, basic=False, wire=stays("it is an effect, and a program from outside has none")
)
_NO_DCE = frozenset([no_dce])
p = dce_sink_p
p.abstract, p.reference, p.decompose = (
    (lambda *xs, **params: []),
    (lambda *xs, **params: []),
    (lambda *xs, **params: []),
)
p.effects, p.impl = (lambda params: _NO_DCE), (lambda *xs, **params: [])
p.jvp = lambda primals, tangents, **params: (dce_sink_p.bind(*primals, **params), [])
p.transpose = unsupported("dce_sink has no results, so there is nothing to transpose")
p.batch = lambda axis, args, dims, **params: (dce_sink_p.bind(*args, **params), [])
p.shard, p.linear_in_sums = (lambda params, ins, outs: []), True

# stage ---------------------------------------------------------------------------------------------------------------

stage_p = Primitive("stage", basic=False, wire=portable())
p = stage_p
p.abstract = p.reference = p.transpose = unsupported(
    "stage leaves nothing in a program: what it stages is a variable there"
)
p.decompose, p.impl = (lambda x: x), (lambda x: x)
p.stage = lambda trace, args, params: JaxprTracer(trace, trace.atom(args[0]))
p.jvp = lambda primals, tangents: (stage_p.bind(*primals), tangents[0])
p.batch = lambda axis, args, dims: (stage_p.bind(*args), dims[0])
del p
