"""jax.interpreters.partial_eval: computes the known part of a function and records the rest."""

from __future__ import annotations

from typing import Any, Sequence

from ..core.jaxpr import Jaxpr
from ..core.trace import current_trace, get_aval, tracing
from ..transforms.dce import dce_jaxpr as _dce_jaxpr
from ..transforms.linearize import PartialTrace
from ..transforms.stage import JaxprTrace, JaxprTracer as JaxprTracer, stage
from .core import RuleTable
from .linear_util import WrappedFun

DynamicJaxprTracer = JaxprTracer
Val = Any
custom_partial_eval_rules = RuleTable(
    "partial_eval", lambda rule: lambda trace, args, params: rule(trace, *args, **params)
)
dce_rules = RuleTable("dce", lambda rule: lambda used, eqn: rule(used, eqn)[1])


class PartialVal(tuple):
    """(None, a value) for what is known; (an aval, a value of the recording trace or None) for what is not."""

    @classmethod
    def unknown(cls, aval) -> "PartialVal":
        return cls((aval, None))

    @classmethod
    def known(cls, const) -> "PartialVal":
        return cls((None, const))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self):
        return self[1] if self.is_known() else None

    def get_aval(self):
        return get_aval(self[1]) if self.is_known() else self[0]


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list, list]:
    """Runs `fun` (flat in, flat out): what depends on known values alone is computed, the rest recorded.

    Returns:
        the program of the rest (its arguments are the unknown ones), a PartialVal for each result, and the program's
        constants.
    """
    staged = JaxprTrace("a partly known function")
    args = [p[1] if p[0] is None else staged.new_arg(p[0]) for p in map(PartialVal, pvals)]
    trace = PartialTrace(current_trace(), staged)
    with tracing(trace):
        outs = list(fun.call_wrapped(*args))
    force = [instantiate] * len(outs) if isinstance(instantiate, bool) else list(instantiate)
    unknown = [trace.is_unknown(x) or f for x, f in zip(outs, force)]
    jaxpr, consts = staged.finish([x for x, u in zip(outs, unknown) if u])
    return jaxpr, [PartialVal((get_aval(x), None) if u else (None, x)) for x, u in zip(outs, unknown)], consts


def trace_to_jaxpr_dynamic(fun: WrappedFun, in_avals: Sequence, *, keep_inputs=None) -> tuple[Jaxpr, list, list]:
    """The program of `fun` (flat in, flat out), the avals of its results, and its constants."""
    jaxpr, consts = stage(lambda *xs: list(fun.call_wrapped(*xs)), list(in_avals))
    return jaxpr, jaxpr.out_avals, consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """The program of the used results alone, and which arguments it still takes."""
    used = [used_outputs] * len(jaxpr.outvars) if isinstance(used_outputs, bool) else used_outputs
    return _dce_jaxpr(jaxpr, used, instantiate)
