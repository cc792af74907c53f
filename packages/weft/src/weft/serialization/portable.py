"""What jaxprs that leave the process carry: `CARRIERS` says which operands of an equation reach which jaxpr among its
parameters. Primitives that carry jaxprs and are not in that table can't leave; `transforms.portable` makes programs
that can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Iterable, Iterator, NamedTuple

from ..base.errors import BackendError, VerificationError, WeftError
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Params


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

    keys: tuple[str, ...]  # the parameters that hold them, in order
    operands: Callable[..., Any]  # (params, number of operands) -> for each jaxpr the operands that are its arguments
    prepend: Callable[..., Any]  # (params, how many constants each jaxpr gets) -> changed params


CARRIERS: dict[str, Carrier] = {
    "jit": Carrier(
        ("jaxpr",),
        lambda p, n: [_whole(range(n))],
        lambda p, k: {"donated_invars": (False,) * k[0] + tuple(p["donated_invars"])},
    ),
    "remat2": Carrier(("jaxpr",), lambda p, n: [_whole(range(n))], lambda p, k: {}),
    "scan": Carrier(("jaxpr",), _scan, lambda p, k: {"num_consts": p["num_consts"] + k[0]}),
    "while": Carrier(
        ("cond_jaxpr", "body_jaxpr"),
        _while,
        lambda p, k: {"cond_nconsts": p["cond_nconsts"] + k[0], "body_nconsts": p["body_nconsts"] + k[1]},
    ),
    "cond": Carrier(("branches",), lambda p, n: [_whole(range(1, n))] * len(p["branches"]), lambda p, k: {}),
    # these combine elements: their jaxprs take scalars, two for each operand pair
    "reduce": Carrier(("jaxpr",), lambda p, n: [], lambda p, k: {}),
    "reduce_window": Carrier(("jaxpr",), lambda p, n: [], lambda p, k: {}),
}
FOLDS = ("reduce", "reduce_window")


def carried(carrier: Carrier, params: Params) -> Iterator[Jaxpr | ClosedJaxpr]:
    for key in carrier.keys:
        value = params[key]
        yield from value if isinstance(value, (tuple, list)) else (value,)


def check_operands(eqn: JaxprEqn) -> None:
    """Raises VerificationError unless an equation's operands and results fit the jaxprs that it carries;
    `core.parameters` has checked its parameters.
    """
    name, params, avals = eqn.primitive.name, eqn.params, [a.aval for a in eqn.invars]
    carrier = CARRIERS[name]
    if name == "jit" and len(params["donated_invars"]) != len(avals):
        raise VerificationError("jit says of each operand whether it is donated")
    if name == "remat2" and type(params["prevent_cse"]) is tuple and len(params["prevent_cse"]) != len(avals):
        raise VerificationError("checkpoint says of each operand whether the compiler must not see through it")
    subs = [sub.jaxpr if isinstance(sub, ClosedJaxpr) else sub for sub in carried(carrier, params)]
    if not subs:
        raise VerificationError(f"{name} carries no program")
    numbers = {
        k: v for k, v in params.items() if k in ("num_consts", "num_carry", "length", "cond_nconsts", "body_nconsts")
    }
    if any(v < 0 for v in numbers.values()):
        raise VerificationError(f"{name} has numbers that count nothing: {numbers}")
    if sum(v for k, v in numbers.items() if k != "length") > len(avals):
        raise VerificationError(f"{name} has {len(avals)} operands and counts more: {numbers}")
    if name in FOLDS:
        types = [(v.aval.shape, v.aval.dtype) for v in eqn.outvars]
        want, (jaxpr,) = [((), a.dtype) for a in avals[: len(avals) // 2]], subs
        if (
            len(avals) % 2
            or [_type(a) for a in jaxpr.in_avals] != [*want, *want]
            or [_type(a) for a in jaxpr.out_avals] != want
            or [t[1] for t in types] != [w[1] for w in want]
            or any(a.shape for a in avals[len(avals) // 2 :])
        ):
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
        if len(outs[0]) < k or outs[0][:k] != [_type(a) for a in avals[c : c + k]]:
            raise VerificationError("the carry of scan changes its type")
    if name == "while":
        carry = [_type(a) for a in avals[params["cond_nconsts"] + params["body_nconsts"] :]]
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
