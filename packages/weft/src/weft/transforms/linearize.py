"""Linearization: forward mode whose linear part is staged to a jaxpr while the rest is computed at once.

`PartialTrace` is the only mechanism: a primitive whose arguments are all known is processed by the parent, any other is
recorded. Under a `JVPTrace`, primal values are known and tangents are not, so the derivative splits into the two parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Sequence

from ..base.annotations import override
from ..base import dtypes
from ..base.avals import tangent_aval
from ..core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, eval_jaxpr
from ..core.memo import memoized_closed
from ..core.primitive import Primitive, UndefinedPrimal, Zero
from ..core.trace import InnerTrace, Trace, Tracer, current_trace, get_aval, tracing
from .dce import live
from .jvp import jvp_flat
from .stage import JaxprTrace, JaxprTracer
from .transpose import backward_pass

if TYPE_CHECKING:
    from ..core.types import Params, Value


class PartialTrace(InnerTrace):
    """Evaluates operations on known values under the parent, and records the others in `staged`."""

    def __init__(self, parent: Trace, staged: JaxprTrace):
        self.parent, self.staged = parent, staged

    def is_unknown(self, x: Value) -> bool:
        return type(x) is JaxprTracer and x._trace is self.staged

    @override
    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        staged = self.staged
        for x in args:
            if type(x) is JaxprTracer and x._trace is staged:
                break
        else:
            if not primitive.makes_reference:
                return self.pass_on(primitive, args, params)
        if primitive.partial_eval is not None:
            return primitive.partial_eval(self, args, params)
        return staged.process(primitive, args, params)


def linearize_flat(
    fun: Callable[..., Any], primals: Sequence[Value], nonzeros: Sequence[bool] | None = None
) -> tuple[list[Value], list[bool], Jaxpr, list[Value]]:
    """(results, which results have a tangent, the linear jaxpr, its constants) of `fun` at `primals`.

    The linear jaxpr maps the tangents of the differentiable arguments to the tangents of those results.
    """
    parent = current_trace()
    staged = JaxprTrace("a linear function")
    tangents = []
    for i, p in enumerate(primals):
        aval = tangent_aval(get_aval(p))
        known_zero = aval.dtype == dtypes.float0 or (nonzeros is not None and not nonzeros[i])
        tangents.append(Zero(aval) if known_zero else staged.new_arg(aval))
    trace = PartialTrace(parent, staged)
    with tracing(trace):
        outs, out_tangents = jvp_flat(fun, primals, tangents, trace.is_unknown)
    out_nonzeros = [type(t) is not Zero for t in out_tangents]
    jaxpr, consts = staged.finish([t for t in out_tangents if type(t) is not Zero])
    return outs, out_nonzeros, jaxpr, consts


class Split(NamedTuple):
    """A jaxpr split in two. `known` returns the known results and then the residuals. `staged` takes all residuals and
    then the unknown arguments, and returns the unknown results.
    """

    known: ClosedJaxpr
    staged: ClosedJaxpr
    out_unknown: tuple[bool, ...]
    # for each residual: ("arg", i) a known argument, ("out", i) a known result, ("res", i) an extra result of `known`
    sources: tuple[tuple[str, int], ...]

    def residuals(
        self, known_args: Sequence[Value], known_outs: Sequence[Any], handed_over: Sequence[Any]
    ) -> list[Any]:
        places = {"arg": known_args, "out": known_outs, "res": handed_over}
        return [places[where][i] for where, i in self.sources]

    @property
    def num_handed_over(self) -> int:
        return sum(where == "res" for where, _ in self.sources)


def split_jaxpr(
    closed: ClosedJaxpr, unknown: Sequence[bool], ensure_out_unknown: Sequence[bool] | bool = False
) -> Split:
    """Splits a jaxpr by which of its arguments are known."""
    if isinstance(ensure_out_unknown, bool):
        ensure_out_unknown = (ensure_out_unknown,) * len(closed.out_avals)
    return _split_jaxpr(closed, tuple(unknown), tuple(ensure_out_unknown))


@memoized_closed
def _split_jaxpr(closed: ClosedJaxpr, unknown: Sequence[bool], ensure_out_unknown: Sequence[bool]) -> Split:
    known_trace, staged_trace = JaxprTrace("a function"), JaxprTrace("a linear function")
    args = [staged_trace.new_arg(a) if u else known_trace.new_arg(a) for a, u in zip(closed.in_avals, unknown)]
    trace = PartialTrace(known_trace, staged_trace)
    with tracing(trace):
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
    out_unknown = tuple([trace.is_unknown(x) or force for x, force in zip(outs, ensure_out_unknown)])
    staged, consts = staged_trace.finish([x for x, u in zip(outs, out_unknown) if u])
    staged = live(staged)
    used = {a for eqn in staged.eqns for a in eqn.invars if type(a) is not Literal}
    used.update(a for a in staged.outvars if type(a) is not Literal)
    needed = [(v, c) for v, c in zip(staged.constvars, consts) if v in used]
    residuals = [(v, c) for v, c in needed if isinstance(c, Tracer)]
    kept = [(v, c) for v, c in needed if not isinstance(c, Tracer)]
    staged = Jaxpr(
        [v for v, _ in kept], [v for v, _ in residuals] + staged.invars, staged.outvars, staged.eqns, staged.effects
    )
    known_outs = [known_trace.atom(x) for x, u in zip(outs, out_unknown) if not u]
    sources: list[tuple[str, int]] = []
    extra: list[Value] = []
    for _, tracer in residuals:
        var = known_trace.atom(tracer)
        if isinstance(var, Var) and var in known_trace.invars:
            sources.append(("arg", known_trace.invars.index(var)))
        elif var in known_outs:
            sources.append(("out", known_outs.index(var)))
        else:
            sources.append(("res", len(extra)))
            extra.append(tracer)
    known, known_consts = known_trace.finish([x for x, u in zip(outs, out_unknown) if not u] + extra)
    return Split(
        ClosedJaxpr(known, known_consts), ClosedJaxpr(staged, [c for _, c in kept]), out_unknown, tuple(sources)
    )


def transpose_known_first(
    primitive: Primitive, cts: Sequence[Value], args: Sequence[Value], params: Params
) -> list[Any]:
    """Transposes an equation that also computes values that are not linear: that part is run, and the rest is
    transposed.
    """
    staged = JaxprTrace("a linear function")
    values = [staged.new_arg(x.aval) if type(x) is UndefinedPrimal else x for x in args]
    trace = PartialTrace(current_trace(), staged)
    with tracing(trace):
        outs = primitive.bind(*values, **params)
    live = [(x, ct) for x, ct in zip(outs, cts) if trace.is_unknown(x) and type(ct) is not Zero]
    jaxpr, consts = staged.finish([x for x, _ in live])
    back = iter(backward_pass(jaxpr, consts, [UndefinedPrimal(v.aval) for v in jaxpr.invars], [ct for _, ct in live]))
    return [next(back) if type(x) is UndefinedPrimal else None for x in args]
