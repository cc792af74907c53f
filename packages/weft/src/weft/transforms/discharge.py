"""Discharging references: turns a program that reads and writes mutable references into one that takes their values as
arguments and returns the final values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.avals import AbstractRef
from ..core.effects import touches
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, bind_equation, eval_equations, map_jaxprs
from ..core.memo import Memo, memoized, memoized_closed
from ..core.trace import get_aval, tracing
from ..base.errors import at_user_line
from .stage import JaxprTrace

if TYPE_CHECKING:
    from ..core.types import Value
    from ..core.jaxpr import Atom

_HOISTED: Memo[tuple[Any, ...], Jaxpr] = Memo()  # by the references that lead its arguments


def is_ref(atom: Atom) -> bool:
    return type(atom.aval) is AbstractRef


@memoized
def has_refs(jaxpr: Jaxpr) -> bool:
    """Whether a program takes, makes or touches references."""
    return touches in jaxpr.effects or any(map(is_ref, jaxpr.invars)) or any(map(is_ref, jaxpr.constvars))


def hoist_refs(*closeds: ClosedJaxpr) -> tuple[list[Any], list[Any]]:
    """Constants of programs that are references become leading arguments, the same of all: (the programs, those
    references).
    """
    refs = list(
        {id(c): c for closed in closeds for v, c in zip(closed.jaxpr.constvars, closed.consts) if is_ref(v)}.values()
    )
    return ([_with_refs(closed, refs) for closed in closeds], refs) if refs else (list(closeds), refs)


def _with_refs(closed: ClosedJaxpr, refs: Sequence[Any]) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    own = {id(c): k for k, (v, c) in enumerate(zip(jaxpr.constvars, closed.consts)) if is_ref(v)}
    # for each reference, which constant it is here, or the value that another program takes
    taken = tuple([own.get(id(r), get_aval(r)) for r in refs])
    hoisted = _HOISTED.of(jaxpr)
    if taken not in hoisted:
        hoisted[taken] = jaxpr.replace(
            constvars=[v for v in jaxpr.constvars if not is_ref(v)],
            invars=[*[jaxpr.constvars[k] if isinstance(k, int) else Var(k) for k in taken], *jaxpr.invars],
        )
    return ClosedJaxpr(hoisted[taken], [c for v, c in zip(jaxpr.constvars, closed.consts) if not is_ref(v)])


@memoized_closed
def discharge(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program without references. The final values of the references among its arguments follow its results,
    in their order.
    """
    trace = JaxprTrace(closed.jaxpr.debug_info or "a function")
    args = [trace.new_arg(a.inner if type(a) is AbstractRef else a) for a in closed.in_avals]
    with tracing(trace):
        outs = eval_discharged(closed.jaxpr, closed.consts, args)
    return ClosedJaxpr(*trace.finish(outs))


def eval_discharged(jaxpr: Jaxpr, consts: Sequence[Value], args: Sequence[Value]) -> list[Any]:
    """Runs a jaxpr on values in place of references. Returns its results, then the final value of each reference among
    its arguments.
    """
    env: dict[Atom, Value] = {}

    def apply(eqn: JaxprEqn, values: Sequence[Value]) -> Sequence[Value]:
        if not (touches in eqn.effects or any(map(is_ref, eqn.invars))):
            return bind_equation(eqn, values)
        if eqn.primitive.discharge is not None:
            outs, news = eqn.primitive.discharge(eqn, values)
            env.update(news)
            return outs
        if any(map(is_ref, eqn.invars)):
            raise TypeError(
                at_user_line(f"{eqn.primitive.name} takes no mutable references. Read them first: ref[...].")
            )
        # they live and die in its programs
        return eqn.primitive.bind(*values, **{k: map_jaxprs(v, discharge) for k, v in eqn.params.items()})

    outs = eval_equations(jaxpr, consts, args, apply, env=env)
    return [*outs, *[env[v] for v in jaxpr.invars if is_ref(v)]]


def discharged_function(closed: ClosedJaxpr, atoms: Sequence[Any], refs: Sequence[Any]) -> Callable[..., Any]:
    """(values of `refs`, values of the other atoms) -> (results, new values of `refs`) of a jaxpr that is called
    with `atoms`.
    """
    positions: dict[Any, Any] = {}
    for i, atom in enumerate(atoms):
        if is_ref(atom):
            positions.setdefault(atom, []).append(i)

    def fun(held: Sequence[Any], others: Sequence[Any]) -> tuple[list[Value], list[Value]]:
        by_ref, rest = dict(zip(refs, held)), iter(others)
        args = [by_ref[a] if is_ref(a) else next(rest) for a in atoms]
        outs = eval_discharged(closed.jaxpr, closed.consts, args)
        n = len(closed.out_avals)
        finals = dict(zip([i for i, a in enumerate(atoms) if is_ref(a)], outs[n:]))
        for ref, places in positions.items():
            changed = [finals[i] for i in places if finals[i] is not by_ref[ref]]
            if len(changed) > 1:
                raise ValueError(
                    at_user_line(
                        f"a reference of type {ref.aval.str_short()} is written under two names: as an argument and"
                        " from the closure, or as two arguments. Pass it once."
                    )
                )
            by_ref[ref] = changed[0] if changed else by_ref[ref]
        return outs[:n], [by_ref[r] for r in refs]

    return fun


def unique_refs(*groups: Sequence[Any]) -> list[Any]:
    """The references among atoms, each once."""
    return list(dict.fromkeys(a for group in groups for a in group if is_ref(a)))
