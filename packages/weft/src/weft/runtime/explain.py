"""Explains why a jitted function was traced or compiled again: how each call that was not in a cache differs from
earlier ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Sequence

from ..base.annotations import override
from ..base import monitoring, source_info
from ..base.avals import ShapedArray
from ..base.config import config, logger
from ..base.tree import PyTreeDef
from .partition import Partition

if TYPE_CHECKING:
    from .partition import Where

MOST = 100  # reasons that a function keeps
_codes: dict[Any, Any] = {}  # code object -> the line where a function with it was traced first


def forget_functions() -> None:
    """Forgets which code was traced: another program begins, whose functions may have the same."""
    _codes.clear()


class Reason(NamedTuple):
    """Why a call was traced ("tracing") or an earlier trace compiled ("compiling")."""

    phase: str
    where: str  # the user's line
    why: tuple[str, ...]

    @override
    def __str__(self) -> str:
        return f"{self.phase} at {self.where}: " + "; ".join(self.why)


class Explanation(tuple[Reason, ...]):
    """The reasons of a function, first to last; its text is made to be read."""

    name: str

    @override
    def __repr__(self) -> str:
        if not self:
            return f"{self.name} was not traced yet."
        return "\n".join(
            [
                f"{self.name} was not found in its caches {len(self)} time{'s' * (len(self) != 1)}:",
                *[f"{i}. {r}" for i, r in enumerate(self, 1)],
            ]
        )

    __str__ = __repr__


class _Call(NamedTuple):
    static: tuple[Any, ...]  # (position or name, type, value)
    tree: PyTreeDef
    avals: Sequence[ShapedArray]
    context: tuple[Any, ...]
    axes: Any
    leaves: list[Any]  # the path of each leaf
    names: list[Any]  # the parameters of the function


class History:
    """The calls of one function that were traced or compiled."""

    def __init__(self, name: str):
        self.name = name
        self.calls: list[_Call] = []
        self.places: dict[Any, Any] = {}  # id of a trace -> where it was compiled for
        self.reasons: list[Reason] = []

    def traced(self, fun: Callable[..., Any], key: tuple[Any, ...], leaves: list[Any], names: list[Any]) -> None:
        """Takes note of a call that is about to be traced."""
        static, tree, avals, context, axes = key
        call = _Call(static, tree, avals, context, axes, leaves, names)
        where = source_info.current(2)
        if self.calls:
            why = min((_differences(call, other) for other in reversed(self.calls)), key=len) or [
                "nothing that is kept: clear_cache or clear_caches was called"
            ]
        else:
            earlier = _codes.setdefault(getattr(fun, "__code__", None) or id(fun), (where, self.name))
            why = (
                ["the first call"]
                if earlier[0] is where or earlier[1] != self.name or not hasattr(fun, "__code__")
                else [
                    f"the first call of this function object; another with the same code was traced at {earlier[0]}."
                    " Call jit once and keep what it returns"
                ]
            )
        if len(self.calls) < MOST:
            self.calls.append(call)
        self._note(Reason("traced", str(where), tuple(why)))

    def compiled(self, trace: Any, place: Any, donated: tuple[Any, ...]) -> None:
        """Takes note of a trace that runs at `place`, if it is for the first time."""
        known = self.places.setdefault(id(trace), {})
        if (place, donated) not in known:
            if known:
                other, given = next(reversed(known))
                self._note(
                    Reason(
                        "compiled",
                        str(source_info.current(2)),
                        (
                            (
                                f"its arguments lie on {_place(place)}, and lay on {_place(other)}"
                                if place != other
                                else f"donated arguments are {_donated(donated)}, and were {_donated(given)}"
                            ),
                        ),
                    )
                )
            known[place, donated] = trace

    def _note(self, reason: Reason) -> None:
        if config.explain_cache_misses:
            logger("weft.compile").warning("%s was %s", self.name, reason)
        monitoring.record_event(
            monitoring.MISS, fun_name=self.name, phase=reason.phase, where=reason.where, why="; ".join(reason.why)
        )
        if len(self.reasons) >= MOST:
            del self.reasons[MOST // 2]  # the first and the latest say most
        self.reasons.append(reason)

    def latest(self) -> str:
        """Why the last call was traced or compiled."""
        return "; ".join(self.reasons[-1].why) if self.reasons else ""

    def forget(self) -> None:
        """Forgets for which devices programs were compiled. Calls are kept, to explain that they are traced again."""
        self.places.clear()

    def explanation(self) -> Explanation:
        made = Explanation(self.reasons)
        made.name = self.name
        return made


def _place(place: Where) -> str:
    return (
        f"{len(place.devices)} devices as ({', '.join(str(getattr(s, 'spec', s)) for s in place.ins)})"
        if isinstance(place, Partition)
        else str(place)
    )


def _donated(flags: tuple[Any, ...]) -> str:
    return f"numbers {[i for i, d in enumerate(flags) if d]}" if any(flags) else "none"


def _differences(new: _Call, old: _Call) -> list[str]:
    """The differences between two calls, each in a few words."""
    found = [*_structure(new, old), *_static(new, old)]
    if new.tree == old.tree:
        found += [_type(name, a, b) for name, a, b in zip(new.leaves, new.avals, old.avals) if a != b]
    found += [
        f"the config option {o.public} is {a!r} and was {b!r}"
        for o, a, b in zip(config.traced_options, new.context, old.context)
        if a != b
    ]
    if new.axes != old.axes:
        found.append(f"the axis names in scope are {new.axes or 'none'} and were {old.axes or 'none'}")
    return found


def _structure(new: _Call, old: _Call) -> list[str]:
    if new.tree == old.tree:
        return []
    more, fewer = [n for n in new.leaves if n not in old.leaves], [n for n in old.leaves if n not in new.leaves]
    found = [
        f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''} {verb}"
        for names, verb in ((more, "is there and was not"), (fewer, "was there and is not"))
        if names
    ]
    if found:
        return found
    dynamic = [
        n
        for i, n in enumerate(new.names)
        if i not in {s[0] for s in new.static} and n not in {s[0] for s in new.static}
    ]
    args, old_args = new.tree.children()[0], old.tree.children()[0]
    for name, a, b in zip(dynamic, args.children(), old_args.children()):
        if a != b:
            return [f"the structure of {name} is {a} and was {b}"]
    return [f"the structure of the arguments is {new.tree} and was {old.tree}"]


def _static(new: _Call, old: _Call) -> list[str]:
    before = {where: (kind, value) for where, kind, value in old.static}
    found = []
    for where, kind, value in new.static:
        name = new.names[where] if isinstance(where, int) and where < len(new.names) else where
        if where not in before:
            found.append(f"the static argument {name} is given and was not")
        elif before[where] != (kind, value):
            shown, shown_before = repr(value)[:200], repr(before[where][1])[:200]
            same = f"; they are unequal {kind.__name__} objects that look the same" if shown == shown_before else ""
            found.append(f"the static argument {name} is {shown} and was {shown_before}{same}")
    return found + [
        f"the static argument {where} was given and is not"
        for where in before
        if where not in {w for w, _, _ in new.static}
    ]


def _type(name: str, new: ShapedArray, old: ShapedArray) -> str:
    changed = [part for part in ("shape", "dtype") if getattr(new, part, None) != getattr(old, part, None)]
    weak = {True: "weakly typed (a Python number)", False: "not weakly typed (an array)"}
    if not changed and getattr(new, "weak_type", None) != getattr(old, "weak_type", None):
        return f"{name} ({new.str_short()}) is {weak[new.weak_type]} and was {weak[old.weak_type]}"
    return f"the {' and '.join(changed) or 'type'} of {name} changed: it is {new.str_short()} and was {old.str_short()}"
