"""Forward mode: each value carries a tangent beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.annotations import override
from ..base import dtypes
from ..base.avals import tangent_aval
from ..base.config import config
from ..core.leaks import check_leaks, watch_origins
from ..core.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.memo import memoized_closed
from ..core.primitive import Primitive, Zero
from ..core.trace import PairTrace, Trace, Tracer, current_trace, get_aval, tracing
from ..primitives.linear import zeros
from .stage import JaxprTrace

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.types import Params, Value


class JVPTracer(Tracer):
    """A primal value with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: "JVPTrace", primal: Value, tangent: Value):
        self._trace, self.primal, self.tangent = trace, primal, tangent

    @override
    @property
    def aval(self) -> AbstractValue:
        return get_aval(self.primal)

    @override
    def __repr__(self) -> str:
        return f"GradTracer(primal={self.primal}, tangent={self.tangent})"


class JVPTrace(PairTrace):
    """Applies jvp rules, evaluated under the parent. A value whose tangent is zero is not wrapped at all.

    depends: in a linearization, whether a tangent depends on the tangents of the inputs. One that does not is zero,
    because it is linear in them, even if a rule returned an array of zeros.
    """

    def __init__(self, parent: Trace, depends: Callable[[Value], bool] | None = None):
        self.parent, self.depends, self.closed = parent, depends, False
        self.checked = config.verify_jaxprs or config.enable_checks

    @override
    def split(self, x: Value) -> tuple[Value, Value]:
        """(primal, tangent) of a value; the tangent is `Zero` for a value that does not depend on the inputs."""
        if type(x) is JVPTracer and x._trace is self:
            return x.primal, x.tangent
        return x, Zero(tangent_aval(get_aval(x)))

    @override
    def join(self, primal: Value, tangent: Value) -> Value:
        if type(tangent) is Zero or self.depends is not None and not self.depends(tangent):
            return primal
        if self.checked:
            check_type(tangent, get_aval(primal), "a tangent")
        return JVPTracer(self, primal, tangent)

    @override
    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        for x in args:
            if type(x) is JVPTracer and x._trace is self:
                break
        else:
            if not primitive.makes_reference:
                return self.pass_on(primitive, args, params)
        return self.by_rule(primitive.jvp, primitive, args, params)


def jvp_flat(
    fun: Callable[..., Any],
    primals: Sequence[Value],
    tangents: Sequence[Value],
    depends: Callable[[Value], bool] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Runs `fun` (flat in, flat out) with tangents: (primal results, tangent results, which may be `Zero`).
    `depends`: see `JVPTrace`.
    """
    parent = current_trace()
    trace = JVPTrace(parent, depends)
    watch_origins(trace)
    args = [trace.join(p, t) for p, t in zip(primals, tangents)]
    with tracing(trace):
        outs = fun(*args)
    pairs = [trace.split(x) for x in outs]
    trace.closed = True
    del args, outs
    check_leaks(trace, "a function for its derivative")
    return [p for p, _ in pairs], [t for _, t in pairs]


def check_type(x: Value, aval: AbstractValue, what: str) -> None:
    """Refuses a tangent or cotangent from a rule that does not have the tangent type of an aval. For integers this is
    the type of the aval itself, if linear functions of integers are transposed.
    """
    have, want = get_aval(x), tangent_aval(aval)
    if have.shape != want.shape or have.dtype not in (want.dtype, aval.dtype):
        raise TypeError(
            f"a derivative rule gives {what} of type {have.str_short()} where one of type {want.str_short()} belongs."
        )


def is_concrete(x: Value) -> bool:
    """Whether a value is known while Python runs: an array, a number, or one of these with a tangent."""
    while type(x) is JVPTracer:
        x = x.primal
    return not isinstance(x, Tracer)


def instantiate(tangent: Value) -> Value:
    """A tangent as an array: symbolic zeros become arrays of zeros."""
    return zeros(tangent.aval) if type(tangent) is Zero else tangent


def jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: Sequence[bool], instantiate_out: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr (primals, nonzero tangents) -> (primal results, nonzero tangent results), and which tangents those
    are.
    """
    if isinstance(instantiate_out, bool):
        instantiate_out = (instantiate_out,) * len(closed.out_avals)
    return _jvp_jaxpr(closed, tuple(nonzeros), tuple(instantiate_out))


@memoized_closed
def _jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: Sequence[bool], instantiate_out: Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    trace = JaxprTrace("a derivative")
    primals = [trace.new_arg(a) for a in closed.in_avals]
    tangents = [
        trace.new_arg(tangent_aval(a)) if nz else Zero(tangent_aval(a)) for a, nz in zip(closed.in_avals, nonzeros)
    ]
    with tracing(trace):
        outs, out_tangents = jvp_flat(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, tangents)
        out_tangents = [
            instantiate(t) if force and t.aval.dtype != dtypes.float0 else t
            for t, force in zip(out_tangents, instantiate_out)
        ]
    out_nonzeros = [type(t) is not Zero for t in out_tangents]
    jaxpr, consts = trace.finish([*outs, *[t for t in out_tangents if type(t) is not Zero]])
    return ClosedJaxpr(jaxpr, consts), out_nonzeros
