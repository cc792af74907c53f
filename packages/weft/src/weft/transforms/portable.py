"""Jaxprs that can leave the process: without Python functions and without values, each constant being an argument, and
of primitives that a host has.

Calls with rules from users become their programs, and a primitive that can't leave the process becomes its
decomposition.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ..core.carries import Carries, Runs
from ..core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from ..core.memo import memoized
from ..serialization.parameters import may_leave
from ..serialization.portable import NotPortable
from ..core.primitive import Primitive, Unsupported
from ..base.mesh import has_several_devices
from ..primitives.inspection import debug_report_p, remote_callback_p
from .stage import stage_closed

CALLBACKS = ("debug_callback", "pure_callback", "io_callback")


@memoized
def portable(jaxpr: Jaxpr) -> tuple[Jaxpr, list[Any]]:
    """The same program without constvars, Python functions or values inside, and the values that now lead its
    arguments.

    Raises:
        NotPortable: for parts that exist only in this process; the message has the user's line.
    """
    return _portable(jaxpr, None)


class Reporting(NamedTuple):
    """A program whose callbacks are reports and remote callbacks, and the equations that they were, by number."""

    jaxpr: Jaxpr
    values: list[Any]  # that lead its arguments
    callbacks: list[JaxprEqn]


@memoized
def reporting(jaxpr: Jaxpr) -> Reporting:
    """`portable`, with reports in place of debug callbacks, and remote callbacks in place of the others: their
    functions stay in this process.

    Raises:
        NotPortable: for other parts that exist only in this process; the message has the user's line.
    """
    callbacks: list[JaxprEqn] = []
    return Reporting(*_portable(jaxpr, callbacks), callbacks)


def _portable(jaxpr: Jaxpr, callbacks: list[JaxprEqn] | None) -> tuple[Jaxpr, list[Any]]:
    if jaxpr.constvars:
        raise ValueError(
            "a program that leaves the process takes its constants as arguments; see weft.runtime.dispatch.program_for"
        )
    opened, consts = _Opener(callbacks).open(jaxpr, ())
    vars_ = [v for v, _ in consts.values()]
    return opened.replace(invars=[*vars_, *opened.invars]) if vars_ else opened, [c for _, c in consts.values()]


class _Opener:
    """Takes the constants out of a program and all jaxprs that it carries. A jaxpr that is carried twice stays one
    jaxpr. Callbacks are collected in `callbacks`, unless that is None.
    """

    def __init__(self, callbacks: list[JaxprEqn] | None) -> None:
        self.callbacks = callbacks
        self.opened: dict[Any, Any] = {}  # (jaxpr, ids of its constants) -> result of `open`
        self.led: dict[Any, Any] = {}  # the same -> the jaxpr with its constants as leading arguments

    def open(self, jaxpr: Jaxpr, values: Sequence[Any]) -> tuple[Jaxpr, dict[Any, Any]]:
        """`jaxpr` with all constants, its own and those of inner jaxprs, as free variables, and the constants: id ->
        (variable, value).
        """
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
            if self.callbacks is not None and eqn.primitive.name in CALLBACKS:
                made.append(self.remote(eqn, self.callbacks))
                continue
            if callable(eqn.params.get("callback")):
                raise NotPortable(
                    f"{eqn.primitive.name} calls a Python function, which only a backend of this process can do."
                    " Compute it with weft's operations, or run the program here: weft.jit(…, backend='cpu') or 'wasm'."
                    f"\n  at {eqn.source_info}"
                )
            simpler = _simpler(eqn)
            if not may_leave(eqn.primitive) and _is_call(eqn.primitive):
                made += self.inline(eqn, *_called(eqn), consts, env)
            elif simpler is not None:
                made += self.inline(eqn, simpler, eqn.invars, consts, env)
            elif subjaxprs(eqn.params):
                made.append(self.carrier(eqn, consts))
            else:
                made.append(eqn)
        return made

    def remote(self, eqn: JaxprEqn, callbacks: list[JaxprEqn]) -> JaxprEqn:
        """What stands for a callback in a program that leaves."""
        callbacks.append(eqn)
        number, given = len(callbacks) - 1, eqn.params
        if eqn.primitive.name == "debug_callback":
            return eqn.replace(primitive=debug_report_p, params={"number": number, "ordered": given["effect"].ordered})
        avals = given["result_avals"]
        params = {
            "number": number,
            "ordered": given.get("ordered", False),  # a pure callback has no order
            "shapes": tuple([tuple(a.shape) for a in avals]),
            "dtypes": tuple([a.dtype for a in avals]),
        }
        assert remote_callback_p.effects is not None
        return eqn.replace(primitive=remote_callback_p, params=params, effects=remote_callback_p.effects(params))

    def inline(
        self,
        eqn: JaxprEqn,
        closed: ClosedJaxpr,
        operands: Sequence[Any],
        consts: dict[Any, Any],
        outer: dict[Any, Any],
    ) -> list[JaxprEqn]:
        """The equations of a jaxpr in place of an equation, with new variables."""
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
        name, carries = eqn.primitive.name, eqn.primitive.carries
        if carries is None or not may_leave(eqn.primitive):
            raise NotPortable(
                f"the primitive {name} carries a program in a way that can't leave the process.\n  at {eqn.source_info}"
            )
        eqn = _without_policy(eqn, carries)
        subs = carries.jaxprs(eqn.params)
        opened = [self.open(s.jaxpr, s.consts) for s in subs]
        if not any(mine for _, mine in opened):
            return (
                eqn
                if all(o is s.jaxpr for (o, _), s in zip(opened, subs))
                else _with_jaxprs(eqn, carries, [o for o, _ in opened])
            )
        if carries.runs is Runs.COMBINING:
            raise NotPortable(
                f"the function given to {name} holds a constant array; pass plain numbers.\n  at {eqn.source_info}"
            )
        if carries.runs is Runs.CHOSEN:  # all branches take the same operands
            union = {k: entry for _, mine in opened for k, entry in mine.items()}
            entries = [{k: mine.get(k, (Var(v.aval), c)) for k, (v, c) in union.items()} for _, mine in opened]
            jaxprs = [_lead(o, mine) for (o, _), mine in zip(opened, entries)]
        else:
            entries = [mine for _, mine in opened]
            jaxprs = [self.lead(o, mine, s) for (o, _), mine, s in zip(opened, entries, subs)]
        leads = [[consts.setdefault(k, (Var(v.aval), c))[0] for k, (v, c) in mine.items()] for mine in entries]
        new = _with_jaxprs(eqn, carries, jaxprs)
        # a program's constants lead the first group of operands that it takes
        params, invars = carries.insert(
            new.params, new.invars, {groups[0]: lead for groups, lead in zip(carries.takes.values(), leads)}
        )
        return new.replace(params=params, invars=invars)

    def lead(self, jaxpr: Jaxpr, consts: dict[Any, Any], sub: ClosedJaxpr) -> Jaxpr:
        key = (sub.jaxpr, *map(id, sub.consts))
        if key not in self.led:
            self.led[key] = _lead(jaxpr, consts)
        return self.led[key]


def _is_call(primitive: Primitive) -> bool:
    return primitive.carries is not None and primitive.carries.runs is Runs.ONCE


def _called(eqn: JaxprEqn) -> tuple[ClosedJaxpr, list[Any]]:
    """The program of a call, and its operands. The other parameters concern only transformations."""
    assert eqn.primitive.carries is not None
    called = eqn.primitive.carries.call(eqn.params, eqn.invars)
    if called is None:
        raise NotPortable(f"{eqn.primitive.name} holds a Python function.\n  at {eqn.source_info}")
    return called


def _simpler(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The decomposition of a primitive that can't leave the process; None for one that can, and for one without a
    decomposition.
    """
    primitive, rule, params = eqn.primitive, eqn.primitive.decompose, eqn.params
    if may_leave(primitive) or _is_call(primitive) or rule is None or isinstance(rule, Unsupported):
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
    """Whether an equation only places a value on one device. Inside a program this has no effect, because the whole
    program runs on one device.
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


def _with_jaxprs(eqn: JaxprEqn, carries: Carries, jaxprs: list[Jaxpr]) -> JaxprEqn:
    """The equation with other jaxprs in the same places."""
    params = carries.with_jaxprs(eqn.params, [ClosedJaxpr(jaxpr, []) for jaxpr in jaxprs])
    effects = frozenset() if eqn.primitive.effects is None else eqn.primitive.effects(params)
    hidden = frozenset().union(*[jaxpr.effects for jaxpr in jaxprs]) - effects
    if hidden:
        raise NotPortable(
            f"a program that runs on a host can't call a Python function from the function given to"
            f" {eqn.primitive.name}. Compute it with weft's operations there, or run the program here:"
            f" weft.jit(…, backend='cpu') or 'wasm'.\n  at {eqn.source_info}"
        )
    return eqn.replace(params=params, effects=effects)


def _without_policy(eqn: JaxprEqn, carries: Carries) -> JaxprEqn:
    """A policy of checkpoint has done its work once a program is compiled."""
    policy = carries.policy
    return eqn if policy is None or eqn.params[policy] is None else eqn.replace(params={**eqn.params, policy: None})
