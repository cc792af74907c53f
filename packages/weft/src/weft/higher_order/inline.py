"""Programs with the functions that they call written in place, so that each operation can be looked at for itself."""

from __future__ import annotations

from typing import Any, Sequence

from ..core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, Var
from ..core.memo import memoized_closed
from .call import jit_p


def without_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program with the equations of the jitted functions that it calls in their place."""
    if not any(e.primitive is jit_p for e in closed.eqns):
        return closed
    return _without_calls(closed)


@memoized_closed
def _without_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    consts: list[Any] = [*zip(closed.jaxpr.constvars, closed.consts)]
    eqns, outvars = _inlined(closed.jaxpr, {}, consts, False)
    return ClosedJaxpr(
        closed.jaxpr.replace(constvars=[v for v, _ in consts], eqns=eqns, outvars=outvars), [c for _, c in consts]
    )


def inlined(jaxpr: Jaxpr, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """A jaxpr without constants at `args`, as equations over new variables and its results."""
    return _inlined(jaxpr, dict(zip(jaxpr.invars, args)), [], True)


def _inlined(jaxpr: Jaxpr, env: dict[Any, Any], consts: list[Any], is_callee: bool) -> tuple[list[Any], list[Any]]:
    """Equations and results of a jaxpr with variables replaced by `env`, which grows; constants of callees are added
    to `consts`.
    """
    read = lambda a: env.get(a, a)
    eqns = []
    for eqn in jaxpr.eqns:
        invars = [read(a) for a in eqn.invars]
        if eqn.primitive is jit_p:
            closed = eqn.params["jaxpr"]
            inner = dict(zip(closed.jaxpr.invars, invars))
            for var, value in zip(closed.jaxpr.constvars, closed.consts):
                inner[var] = Var(var.aval)
                consts.append((inner[var], value))
            more, outs = _inlined(closed.jaxpr, inner, consts, True)
            eqns += more
            env.update(zip(eqn.outvars, outs))
            continue
        outvars = eqn.outvars
        if is_callee:  # it may be called twice
            outvars = [DropVar(v.aval) if type(v) is DropVar else Var(v.aval) for v in eqn.outvars]
            env.update(zip(eqn.outvars, outvars))
        eqns.append(eqn.replace(invars=invars, outvars=outvars))
    return eqns, [read(a) for a in jaxpr.outvars]
