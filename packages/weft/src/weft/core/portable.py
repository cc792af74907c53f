"""Jaxprs that can leave the process: without Python functions and without values, each constant being an argument.

`operands` says which operands of an equation reach which jaxpr among its parameters; primitives that carry jaxprs
and are not in that table can't leave.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Iterable, Iterator, NamedTuple

from ..errors import BackendError, VerificationError, WeftError
from ..mesh import has_several_devices
from .jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, subjaxprs

if TYPE_CHECKING:
    from ..avals import Size
    from .types import Params


class NotPortable(WeftError, BackendError):
    """A program holds something that exists in this process only, such as a Python function. Make it part of the traced
    program, or run it on a backend of this process (`weft.config.update('jax_platforms', 'cpu')`)."""


class Operand(NamedTuple):
    """An operand as an argument of a carried jaxpr: its position in the equation, and whether it goes in row by row."""
    position: int
    row: bool = False


def _whole(positions: Iterable[int]) -> list[Operand]:
    return [Operand(i) for i in positions]


def _scan(params: Params, n: int) -> list[list[Operand]]:
    fixed = params["num_consts"] + params["num_carry"]
    return [_whole(range(fixed)) + [Operand(i, True) for i in range(fixed, n)]]


def _while(params: Params, n: int) -> list[list[Operand]]:
    c, b = params["cond_nconsts"], params["body_nconsts"]
    carry = range(c + b, n)
    return [_whole([*range(c), *carry]), _whole([*range(c, c + b), *carry])]


class Carrier(NamedTuple):
    """How a primitive carries jaxprs."""
    keys: tuple[str, ...]          # the parameters that hold them, in order
    operands: Callable[..., Any]   # (params, number of operands) -> for each jaxpr the operands that are its arguments
    prepend: Callable[..., Any]    # (params, how many constants each jaxpr gets) -> changed params


CARRIERS: dict[str, Carrier] = {
    "jit": Carrier(("jaxpr",), lambda p, n: [_whole(range(n))],
                   lambda p, k: {"donated_invars": (False,) * k[0] + tuple(p["donated_invars"])}),
    "remat2": Carrier(("jaxpr",), lambda p, n: [_whole(range(n))], lambda p, k: {}),
    "scan": Carrier(("jaxpr",), _scan, lambda p, k: {"num_consts": p["num_consts"] + k[0]}),
    "while": Carrier(("cond_jaxpr", "body_jaxpr"), _while,
                     lambda p, k: {"cond_nconsts": p["cond_nconsts"] + k[0], "body_nconsts": p["body_nconsts"] + k[1]}),
    "cond": Carrier(("branches",), lambda p, n: [_whole(range(1, n))] * len(p["branches"]), lambda p, k: {}),
    # these combine elements: their jaxprs take scalars, two for each operand pair
    "reduce": Carrier(("jaxpr",), lambda p, n: [], lambda p, k: {}),
    "reduce_window": Carrier(("jaxpr",), lambda p, n: [], lambda p, k: {}),
}
FOLDS = ("reduce", "reduce_window")
# Calls whose function form concerns only transformations: what they compute is this jaxpr.
INLINED = {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "call_exported": "jaxpr", "remat_opt": "fwd_jaxpr", "custom_vmap_call": "call", "linear_call": "callee",
           "custom_linear_solve": "jaxprs"}


def _inlined_call(eqn: JaxprEqn) -> tuple[Any, Sequence[Any]]:
    """The program that an equation of `INLINED` runs, and its operands."""
    program, invars = eqn.params[INLINED[eqn.primitive.name]], eqn.invars
    if eqn.primitive.name == "custom_linear_solve":      # of its four functions the one that solves
        lengths = eqn.params["const_lengths"]
        start = lengths.matvec + lengths.vecmat
        return program.solve, [*invars[start:start + lengths.solve], *invars[sum(lengths):]]
    return program, invars


def portable(jaxpr: Jaxpr) -> tuple[Jaxpr, list[Any]]:
    """The same program without constvars, Python functions or values inside, and the values that now lead its arguments.

    Raises: NotPortable, with the user's line, for what exists in this process only.
    """
    if jaxpr.constvars:
        raise ValueError("a program that leaves the process takes its constants as arguments; see weft.runtime.dispatch.program_for")
    if "portable" not in jaxpr.cache:
        opened, consts = _Opener().open(jaxpr, ())
        vars_ = [v for v, _ in consts.values()]
        jaxpr.cache["portable"] = opened.replace(invars=[*vars_, *opened.invars]) if vars_ else opened, [c for _, c in consts.values()]
    return jaxpr.cache["portable"]


class _Opener:
    """Takes the values out of one program and all that it carries; what is carried twice stays one jaxpr."""

    def __init__(self) -> None:
        self.opened: dict[Any, Any] = {}      # (jaxpr, ids of its constants) -> what `open` returned
        self.led: dict[Any, Any] = {}         # the same -> the jaxpr with its constants as leading arguments

    def open(self, jaxpr: Jaxpr, values: Sequence[Any]) -> tuple[Jaxpr, dict[Any, Any]]:
        """`jaxpr` with all constants, its own and inner ones, as free variables, and those: id -> (variable, value)."""
        key = (jaxpr, *map(id, values))
        if key not in self.opened:
            consts: dict[int, tuple[Var, Any]] = {}
            env: dict[Any, Any] = {}      # variables to replace
            for var, value in zip(jaxpr.constvars, values):
                first = consts.setdefault(id(value), (var, value))[0]
                if first is not var:
                    env[var] = first
            changed = bool(env)
            eqns = self.equations(jaxpr.eqns, consts, env)
            if changed or len(eqns) != len(jaxpr.eqns) or any(a is not b for a, b in zip(eqns, jaxpr.eqns)):
                jaxpr = jaxpr.replace(eqns=eqns, outvars=[a if type(a) is Literal else env.get(a, a) for a in jaxpr.outvars])
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
                raise NotPortable(f"{eqn.primitive.name} calls a Python function, which only a backend of this process can do.\n  at {eqn.source_info}")
            if eqn.primitive.name in INLINED:
                made += self.inline(eqn, consts, env)
            elif any(True for _ in subjaxprs(eqn.params)):
                made.append(self.carrier(eqn, consts))
            else:
                made.append(eqn)
        return made

    def inline(self, eqn: JaxprEqn, consts: dict[Any, Any], outer: dict[Any, Any]) -> list[JaxprEqn]:
        """The equations of a call's jaxpr, with variables of their own."""
        closed, operands = _inlined_call(eqn)
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
            raise NotPortable(f"the primitive {name} carries a program in a way that can't leave the process.\n  at {eqn.source_info}")
        eqn = _without_policy(eqn)
        subs = [s if isinstance(s, ClosedJaxpr) else ClosedJaxpr(s, []) for s in _carried(carrier, eqn.params)]
        opened = [self.open(s.jaxpr, s.consts) for s in subs]
        if not any(mine for _, mine in opened):
            return eqn if all(o is s.jaxpr for (o, _), s in zip(opened, subs)) else _with_jaxprs(eqn, carrier, [o for o, _ in opened])
        if name in FOLDS:
            raise NotPortable(f"the function given to {name} holds a constant array; pass plain numbers.\n  at {eqn.source_info}")
        if name == "cond":      # all branches take the same operands
            union = {k: entry for _, mine in opened for k, entry in mine.items()}
            entries = [{k: mine.get(k, (Var(v.aval), c)) for k, (v, c) in union.items()} for _, mine in opened]
        else:
            entries = [mine for _, mine in opened]
        jaxprs = [self.lead(o, mine, s) if name != "cond" else _lead(o, mine) for (o, _), mine, s in zip(opened, entries, subs)]
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


def _on_one_device(eqn: JaxprEqn) -> bool:
    """Whether an equation says no more than that a value lies on one device: inside a program, that is where all of it runs."""
    name = eqn.primitive.name
    places = eqn.params["devices"] if name == "transfer" else (eqn.params["sharding"],) if name == "sharding_constraint" else None
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
    return eqn.replace(params=params)


def _without_policy(eqn: JaxprEqn) -> JaxprEqn:
    """A policy of checkpoint has done its work once a program is compiled."""
    return eqn.replace(params=dict(eqn.params, policy=None)) if eqn.params.get("policy") is not None else eqn


def _carried(carrier: Carrier, params: Params) -> Iterator[Jaxpr | ClosedJaxpr]:
    for key in carrier.keys:
        value = params[key]
        yield from value if isinstance(value, (tuple, list)) else (value,)


def check_operands(eqn: JaxprEqn) -> None:
    """Raises VerificationError unless an equation's operands and results fit the jaxprs that it carries; `core.parameters` has checked its parameters."""
    name, params, avals = eqn.primitive.name, eqn.params, [a.aval for a in eqn.invars]
    carrier = CARRIERS[name]
    if name == "jit" and len(params["donated_invars"]) != len(avals):
        raise VerificationError("jit says of each operand whether it is donated")
    if name == "remat2" and type(params["prevent_cse"]) is tuple and len(params["prevent_cse"]) != len(avals):
        raise VerificationError("checkpoint says of each operand whether the compiler must not see through it")
    subs = [sub.jaxpr if isinstance(sub, ClosedJaxpr) else sub for sub in _carried(carrier, params)]
    if not subs:
        raise VerificationError(f"{name} carries no program")
    numbers = {k: v for k, v in params.items() if k in ("num_consts", "num_carry", "length", "cond_nconsts", "body_nconsts")}
    if any(v < 0 for v in numbers.values()):
        raise VerificationError(f"{name} has numbers that count nothing: {numbers}")
    if sum(v for k, v in numbers.items() if k != "length") > len(avals):
        raise VerificationError(f"{name} has {len(avals)} operands and counts more: {numbers}")
    if name in FOLDS:
        types = [(v.aval.shape, v.aval.dtype) for v in eqn.outvars]
        want, (jaxpr,) = [((), a.dtype) for a in avals[:len(avals) // 2]], subs
        if len(avals) % 2 or [_type(a) for a in jaxpr.in_avals] != [*want, *want] or [_type(a) for a in jaxpr.out_avals] != want \
                or [t[1] for t in types] != [w[1] for w in want] or any(a.shape for a in avals[len(avals) // 2:]):
            raise VerificationError(f"{name} and its function disagree about types")
        return
    length = params.get("length")
    for jaxpr, places in zip(subs, carrier.operands(params, len(avals))):
        have = [_row(avals[p.position], length, name) if p.row else _type(avals[p.position]) for p in places]
        want = [_type(a) for a in jaxpr.in_avals]
        if have != want:
            raise VerificationError(f"{name} passes {_show(have)} to a program that takes {_show(want)}")
    _check_results(name, params, avals, subs)


def _check_results(name: str, params: dict[Any, Any], avals: list[Any], subs: list[Any]) -> None:
    """What goes round a loop keeps its type, and branches agree."""
    outs = [[_type(a) for a in s.out_avals] for s in subs]
    if name == "cond" and any(o != outs[0] for o in outs):
        raise VerificationError("the branches of cond give different types")
    if name == "scan":
        c, k = params["num_consts"], params["num_carry"]
        if len(outs[0]) < k or outs[0][:k] != [_type(a) for a in avals[c:c + k]]:
            raise VerificationError("the carry of scan changes its type")
    if name == "while":
        carry = [_type(a) for a in avals[params["cond_nconsts"] + params["body_nconsts"]:]]
        if outs[1] != carry:
            raise VerificationError("the carry of while changes its type")
        if len(outs[0]) != 1 or outs[0][0][1] != "bool":
            raise VerificationError("the condition of while is not a truth value")


def _type(aval: Any) -> tuple[Any, ...]:
    return aval.shape, getattr(getattr(aval, "dtype", None), "name", "token")


def _row(aval: Any, length: Size, name: str) -> tuple[Any, ...]:
    if not aval.shape or aval.shape[0] != length:
        raise VerificationError(f"{name} of length {length} goes through an operand of shape {aval.shape}")
    return aval.shape[1:], aval.dtype.name


def _show(types: Sequence[tuple[Any, ...]]) -> str:
    return "(" + ", ".join(f"{name}[{','.join(map(str, shape))}]" for shape, name in types) + ")"
