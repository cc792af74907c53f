"""Which random keys a program consumes: a key that is consumed twice gives the same numbers twice.

`signature` describes a program, and `signature_of` one operation: which of the arguments are consumed (or which part:
slices consume the part that they take), which results are arguments passed through, and which are consumed already.
Drawing bits and splitting consume keys; folding in and reading the words do not.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence, TypeAlias

from ..base import dtypes
from ..base.avals import ShapedArray
from ..core.carries import CARRY, Carries, Program, Runs
from ..core.jaxpr import ClosedJaxpr, Literal
from ..core.memo import memoized_closed
from ..core.primitive import Primitive
from ..base.errors import KeyReuseError, at_user_line

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.jaxpr import Atom
    from ..core.types import Params, Shape

_SOURCES = {"random_seed", "random_wrap", "random_unwrap", "random_fold_in", "random_clone"}
_CONSUMERS = {"random_split", "random_bits", "random_gamma"}
_HANDED_ON = {
    "reshape",
    "squeeze",
    "broadcast_in_dim",
    "copy",
    "device_put",
    "transfer",
    "sharding_constraint",
    "stop_gradient",
    "name",
    "optimization_barrier",
}
_MOST = 100_000  # slices of larger arrays of keys are not distinguished


# The consumed part of an array of keys: nothing (None), everything (True), or the flat positions of its elements.
Part: TypeAlias = "bool | frozenset[int] | None"


class Signature(NamedTuple):
    """What happens to keys: consumed arguments (True, or the flat positions of their elements), results that are
    arguments, results that are consumed.

    `consts` are (key array that the program closes over, its consumed part).
    """

    sinks: dict[int, Part]
    forwards: dict[int, int]
    spent: frozenset[int] = frozenset()
    consts: tuple[tuple[Any, Part], ...] = ()


NOTHING = Signature({}, {})


def is_key(x: Any) -> bool:
    """Whether an aval is that of random keys."""
    return isinstance(x, ShapedArray) and dtypes.is_key(x.dtype)


def overlap(a: Part, b: Part) -> bool:
    """Whether two parts of an array have an element in common."""
    if a is True or b is True or not a or not b:
        return bool(a and b)
    return not a.isdisjoint(b)


def join(a: Part, b: Part) -> Part:
    """The union of two parts."""
    return a or b if not (a and b) else True if a is True or b is True else a | b


def sliced(shape: Shape, params: Params) -> frozenset[int]:
    """The flat positions that a slice takes."""
    if prod(shape) > _MOST:
        return frozenset()
    ranges = [
        range(*bounds)
        for bounds in zip(params["start_indices"], params["limit_indices"], params["strides"] or (1,) * len(shape))
    ]
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    return frozenset([sum(i * s for i, s in zip(place, strides)) for place in product(*ranges)])


def signature_of(
    primitive: Primitive, params: Params, avals: Sequence[AbstractValue], eager: bool = False
) -> Signature:
    """The signature of one operation on arguments of these avals. With `eager`, an operation that is not known to
    consume keys does not consume them.
    """
    name, keys = primitive.name, [i for i, a in enumerate(avals) if is_key(a)]
    if name in _CONSUMERS:
        return Signature({0: True}, {})
    if name in _SOURCES:
        return NOTHING
    if name in _HANDED_ON:
        return Signature({}, {i: i for i in keys})
    if name == "slice":
        return Signature({0: sliced(avals[0].shape, params)}, {}) if keys else NOTHING
    if primitive.carries is not None and primitive.carries.jaxprs(params):
        return _carried(primitive.carries, params, len(avals))
    return NOTHING if eager else Signature(dict.fromkeys(keys, True), {})


def called(primitive: Primitive, params: Params) -> str:
    """The name of an operation in messages: a call of a user's function has that function's name."""
    callee = None if primitive.carries is None else primitive.carries.callee
    return primitive.name if callee is None else params[callee].lstrip("_")


def _repeated(what: str, sig: Signature, consts: int, carry: int) -> None:
    """Raises if a body that runs again and again consumes a key anew that does not change between."""
    again = [i for i in sig.sinks if i < consts]
    again += [
        i
        for i in sig.sinks
        if consts <= i < consts + carry and (i - consts in sig.spent or sig.forwards.get(i - consts) in sig.sinks)
    ]
    if again or sig.consts:
        which = (
            f"the key in its carry (leaf {min(again) - consts})"
            if again and min(again) >= consts
            else "a key that stays the same"
        )
        raise KeyReuseError(
            at_user_line(
                f"{what} function leads to key reuse when repeatedly executed: it consumes {which} in each iteration. "
                "Split the key in the body and carry one half, or give each iteration its own key (weft.random.split)."
            )
        )


def _carried(carries: Carries, params: Params, operands: int) -> Signature:
    """The signature of an operation that carries programs."""
    if carries.runs is Runs.REPEATED:
        return _loop(carries, params, operands)
    return _either([_outside(p, signature(p.closed)) for p in carries.programs(params, operands)])


def _outside(program: Program, sig: Signature) -> Signature:
    """A program's signature over the operands that are its arguments; of rows all elements are consumed."""
    at, rows = program.operands, len(program.operands) - program.rows
    sinks = {at[i]: part if i < rows else True for i, part in sig.sinks.items()}
    return Signature(sinks, {o: at[i] for o, i in sig.forwards.items()}, sig.spent, sig.consts)


def _loop(carries: Carries, params: Params, operands: int) -> Signature:
    *tests, body = carries.programs(params, operands)
    *test_titles, title = carries.titles.values()
    for test, what in zip(tests, test_titles):
        _repeated(what, signature(test.closed), len(test.operands), 0)
    sig, carry = signature(body.closed), carries.sizes(params, operands)[CARRY]
    consts = len(body.operands) - carry - body.rows
    _repeated(title, sig, consts, carry)
    same = {o: i for o, i in sig.forwards.items() if o < carry and i == consts + o}  # elements that stay in place
    return _outside(body, sig._replace(forwards=same))


def _either(sigs: Sequence[Signature]) -> Signature:
    """The signature of a choice between programs. A key counts as consumed if any of them consumes it, even if it also
    passes it through, and as passed through if all of them pass it through.
    """
    if len(sigs) == 1:
        return sigs[0]
    sinks: dict[int, Part] = {}
    for sig in sigs:
        for i, part in sig.sinks.items():
            sinks[i] = join(sinks.get(i), part)
    forwards = dict(set.intersection(*[set(s.forwards.items()) for s in sigs]))
    spent = {o for s in sigs for o in (*s.spent, *[o for o, i in s.forwards.items() if i in s.sinks])}
    return Signature(sinks, forwards, frozenset(spent), tuple([c for s in sigs for c in s.consts]))


@memoized_closed
def signature(program: ClosedJaxpr) -> Signature:
    """The signature of a program. KeyReuseError if it consumes a key twice."""
    jaxpr, values = program.jaxpr, program.consts
    # a variable that is another one passed through -> (that one, whether their elements are the same)
    origin: dict[Any, tuple[Any, bool]] = {}
    used: dict[Any, Part] = {}  # variables, and ids of arrays closed over -> their consumed part
    objects: dict[int, Any] = {}  # id -> array
    held: dict[Atom, Any] = dict(zip(jaxpr.constvars, values))

    def find(v: Atom) -> tuple[Any, bool]:
        found, same = origin.get(v, (v, True))
        if found in held:
            objects[id(held[found])] = held[found]
            found = id(held[found])
        return found, same

    def consume(place: Any, part: Part, what: str) -> None:
        if overlap(used.get(place), part):
            raise KeyReuseError(
                at_user_line(
                    f"In {what} is already consumed. Each key gives its numbers once: split it (weft.random.split) and"
                    " use each half once."
                )
            )
        used[place] = join(used.get(place), part)

    for eqn in jaxpr.eqns:
        sig = signature_of(eqn.primitive, eqn.params, [a.aval for a in eqn.invars])
        label = called(eqn.primitive, eqn.params)
        for i, part in sig.sinks.items():
            if not isinstance(eqn.invars[i], Literal):
                place, same = find(eqn.invars[i])
                consume(place, part if same else True, f"{label}, argument {i}")
        for value, part in sig.consts:
            objects[id(value)] = value
            consume(id(value), part, f"{label}, a key that it closes over")
        for o, i in sig.forwards.items():
            if not isinstance(eqn.invars[i], Literal):
                v, out = eqn.invars[i], eqn.outvars[o]
                found, same = origin.get(v, (v, True))
                origin[out] = found, same and v.aval.size == out.aval.size
        for o in sig.spent:
            used[eqn.outvars[o]] = True
    places = {v: i for i, v in enumerate(jaxpr.invars)}
    forwards, spent = {}, set()
    for o, v in enumerate(jaxpr.outvars):
        if is_key(v.aval) and not isinstance(v, Literal):
            found = origin.get(v, (v, True))[0]
            if found in places:
                forwards[o] = places[found]
            elif used.get(find(v)[0]):
                spent.add(o)
    sinks = {i: used[v] for v, i in places.items() if used.get(v)}
    return Signature(
        sinks, forwards, frozenset(spent), tuple([(x, used[i]) for i, x in objects.items() if used.get(i)])
    )
