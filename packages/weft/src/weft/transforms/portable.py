"""Jaxprs that can leave the process: without Python functions and without values, each constant being an argument, and
of primitives that a host has.

Calls with rules of their own become what they compute, and a primitive that stays at home becomes what it decomposes
into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from ..serialization.parameters import PORTABLE
from ..serialization.portable import CARRIERS, FOLDS, Carrier, NotPortable, carried
from ..core.primitive import Unsupported
from ..base.mesh import has_several_devices
from .stage import stage_closed

if TYPE_CHECKING:
    pass

# Calls whose function form concerns only transformations: what they compute is this jaxpr.
INLINED = {
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "call_exported": "jaxpr",
    "remat_opt": "fwd_jaxpr",
    "custom_vmap_call": "call",
    "linear_call": "callee",
    "custom_linear_solve": "jaxprs",
}


def _inlined_call(eqn: JaxprEqn) -> tuple[Any, Sequence[Any]]:
    """The program that an equation of `INLINED` runs, and its operands."""
    program, invars = eqn.params[INLINED[eqn.primitive.name]], eqn.invars
    if eqn.primitive.name == "custom_linear_solve":  # of its four functions the one that solves
        lengths = eqn.params["const_lengths"]
        start = lengths.matvec + lengths.vecmat
        return program.solve, [*invars[start : start + lengths.solve], *invars[sum(lengths) :]]
    return program, invars


def portable(jaxpr: Jaxpr) -> tuple[Jaxpr, list[Any]]:
    """The same program without constvars, Python functions or values inside, and the values that now lead its
    arguments.

    Raises: NotPortable, with the user's line, for what exists in this process only.
    """
    if jaxpr.constvars:
        raise ValueError(
            "a program that leaves the process takes its constants as arguments; see weft.runtime.dispatch.program_for"
        )
    if "portable" not in jaxpr.cache:
        opened, consts = _Opener().open(jaxpr, ())
        vars_ = [v for v, _ in consts.values()]
        jaxpr.cache["portable"] = (
            opened.replace(invars=[*vars_, *opened.invars]) if vars_ else opened,
            [c for _, c in consts.values()],
        )
    return jaxpr.cache["portable"]


class _Opener:
    """Takes the values out of one program and all that it carries; what is carried twice stays one jaxpr."""

    def __init__(self) -> None:
        self.opened: dict[Any, Any] = {}  # (jaxpr, ids of its constants) -> what `open` returned
        self.led: dict[Any, Any] = {}  # the same -> the jaxpr with its constants as leading arguments

    def open(self, jaxpr: Jaxpr, values: Sequence[Any]) -> tuple[Jaxpr, dict[Any, Any]]:
        """`jaxpr` with all constants, its own and inner ones, as free variables, and those: id -> (variable, value)."""
        key = (jaxpr, *map(id, values))
        if key not in self.opened:
            consts: dict[int, tuple[Var, Any]] = {}
            env: dict[Any, Any] = {}  # variables to replace
            for var, value in zip(jaxpr.constvars, values):
                first = consts.setdefault(id(value), (var, value))[0]
                if first is not var:
                    env[var] = first
            changed = bool(env)
            eqns = self.equations(jaxpr.eqns, consts, env)
            if changed or len(eqns) != len(jaxpr.eqns) or any(a is not b for a, b in zip(eqns, jaxpr.eqns)):
                jaxpr = jaxpr.replace(
                    eqns=eqns,
                    effects=frozenset().union(*[e.effects for e in eqns]),
                    outvars=[a if type(a) is Literal else env.get(a, a) for a in jaxpr.outvars],
                )
            self.opened[key] = jaxpr, consts
        return self.opened[key]

    def equations(self, eqns: Sequence[JaxprEqn], consts: dict[Any, Any], env: dict[Any, Any]) -> list[JaxprEqn]:
        made: list[JaxprEqn] = []
        for eqn in eqns:
            invars = [a if type(a) is Literal else env.get(a, a) for a in eqn.invars]
            if any(a is not b for a, b in zip(invars, eqn.invars)):
                eqn = eqn.replace(invars=invars)
            if _on_one_device(eqn):
                env.update(zip(eqn.outvars, invars))
                continue
            if callable(eqn.params.get("callback")):
                raise NotPortable(
                    f"{eqn.primitive.name} calls a Python function, which only a backend of this process can do.\n  at"
                    f" {eqn.source_info}"
                )
            simpler = _simpler(eqn)
            if eqn.primitive.name in INLINED:
                made += self.inline(eqn, *_inlined_call(eqn), consts, env)
            elif simpler is not None:
                made += self.inline(eqn, simpler, eqn.invars, consts, env)
            elif any(True for _ in subjaxprs(eqn.params)):
                made.append(self.carrier(eqn, consts))
            else:
                made.append(eqn)
        return made

    def inline(
        self, eqn: JaxprEqn, closed: Any, operands: Sequence[Any], consts: dict[Any, Any], outer: dict[Any, Any]
    ) -> list[JaxprEqn]:
        """The equations of a jaxpr in an equation's place, with variables of their own."""
        if not isinstance(closed, ClosedJaxpr):
            raise NotPortable(f"{eqn.primitive.name} holds a Python function.\n  at {eqn.source_info}")
        env: dict[Any, Any] = dict(zip(closed.jaxpr.invars, operands))
        for var, value in zip(closed.jaxpr.constvars, closed.consts):
            env[var] = consts.setdefault(id(value), (Var(var.aval), value))[0]
        read = lambda a: a if type(a) is Literal else env[a]
        fresh = []
        for inner in closed.jaxpr.eqns:
            outs = [DropVar(v.aval) if type(v) is DropVar else Var(v.aval) for v in inner.outvars]
            fresh.append(inner.replace(invars=[read(a) for a in inner.invars], outvars=outs))
            env.update(zip(inner.outvars, outs))
        results: dict[Any, Any] = {}
        made = self.equations(fresh, consts, results)
        for var, atom in zip(eqn.outvars, [read(a) for a in closed.jaxpr.outvars]):
            outer[var] = atom if type(atom) is Literal else results.get(atom, atom)
        return made

    def carrier(self, eqn: JaxprEqn, consts: dict[Any, Any]) -> JaxprEqn:
        """An equation whose jaxprs take their constants as arguments."""
        name, carrier = eqn.primitive.name, CARRIERS.get(eqn.primitive.name)
        if carrier is None:
            raise NotPortable(
                f"the primitive {name} carries a program in a way that can't leave the process.\n  at {eqn.source_info}"
            )
        eqn = _without_policy(eqn)
        subs = [s if isinstance(s, ClosedJaxpr) else ClosedJaxpr(s, []) for s in carried(carrier, eqn.params)]
        opened = [self.open(s.jaxpr, s.consts) for s in subs]
        if not any(mine for _, mine in opened):
            return (
                eqn
                if all(o is s.jaxpr for (o, _), s in zip(opened, subs))
                else _with_jaxprs(eqn, carrier, [o for o, _ in opened])
            )
        if name in FOLDS:
            raise NotPortable(
                f"the function given to {name} holds a constant array; pass plain numbers.\n  at {eqn.source_info}"
            )
        if name == "cond":  # all branches take the same operands
            union = {k: entry for _, mine in opened for k, entry in mine.items()}
            entries = [{k: mine.get(k, (Var(v.aval), c)) for k, (v, c) in union.items()} for _, mine in opened]
        else:
            entries = [mine for _, mine in opened]
        jaxprs = [
            self.lead(o, mine, s) if name != "cond" else _lead(o, mine)
            for (o, _), mine, s in zip(opened, entries, subs)
        ]
        leads = [[consts.setdefault(k, (Var(v.aval), c))[0] for k, (v, c) in mine.items()] for mine in entries]
        new = _with_jaxprs(eqn, carrier, jaxprs)
        new.params.update(carrier.prepend(eqn.params, [len(lead) for lead in leads]))
        invars = list(eqn.invars)
        if name == "cond":
            invars = [invars[0], *leads[0], *invars[1:]]
        elif name == "while":
            at = eqn.params["cond_nconsts"]
            invars = [*leads[0], *invars[:at], *leads[1], *invars[at:]]
        else:
            invars = [*leads[0], *invars]
        return new.replace(invars=invars)

    def lead(self, jaxpr: Jaxpr, consts: dict[Any, Any], sub: ClosedJaxpr) -> Jaxpr:
        key = (sub.jaxpr, *map(id, sub.consts))
        if key not in self.led:
            self.led[key] = _lead(jaxpr, consts)
        return self.led[key]


def _simpler(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """What a primitive that can't leave decomposes into; None for one that can, and for one that has no parts."""
    primitive, rule, params = eqn.primitive, eqn.primitive.decompose, eqn.params
    if (
        primitive.name in PORTABLE
        and not primitive.foreign
        or primitive.name in INLINED
        or rule is None
        or isinstance(rule, Unsupported)
    ):
        return None
    closed = stage_closed(
        lambda *xs: list(rule(*xs, **params)) if primitive.multiple_results else [rule(*xs, **params)],
        [a.aval for a in eqn.invars],
        primitive.name,
    )
    return ClosedJaxpr(
        closed.jaxpr.replace(eqns=[e.replace(source_info=eqn.source_info) for e in closed.jaxpr.eqns]), closed.consts
    )


def _on_one_device(eqn: JaxprEqn) -> bool:
    """Whether an equation says no more than that a value lies on one device: inside a program, that is where all of
    it runs.
    """
    name = eqn.primitive.name
    places = (
        eqn.params["devices"]
        if name == "transfer"
        else (eqn.params["sharding"],)
        if name == "sharding_constraint"
        else None
    )
    return places is not None and not any(map(has_several_devices, places))


def _lead(jaxpr: Jaxpr, consts: dict[Any, Any]) -> Jaxpr:
    return jaxpr.replace(constvars=[], invars=[*[v for v, _ in consts.values()], *jaxpr.invars])


def _with_jaxprs(eqn: JaxprEqn, carrier: Carrier, jaxprs: list[Any]) -> JaxprEqn:
    """The equation with other jaxprs in the same places."""
    params, rest = dict(eqn.params), iter(jaxprs)
    wrap = lambda old: ClosedJaxpr(next(rest), []) if isinstance(old, ClosedJaxpr) else next(rest)
    for key in carrier.keys:
        old = eqn.params[key]
        params[key] = tuple(wrap(o) for o in old) if isinstance(old, (tuple, list)) else wrap(old)
    return eqn.replace(
        params=params, effects=frozenset() if eqn.primitive.effects is None else eqn.primitive.effects(params)
    )


def _without_policy(eqn: JaxprEqn) -> JaxprEqn:
    """A policy of checkpoint has done its work once a program is compiled."""
    return eqn.replace(params=dict(eqn.params, policy=None)) if eqn.params.get("policy") is not None else eqn
