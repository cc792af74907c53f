"""Effects: what a program does besides computing its results. A jaxpr has the effects of its equations."""

from __future__ import annotations

from typing import Iterable

from ..base.annotations import override


class Effect:
    """A kind of effect. Equations with effects are never dropped; `ordered` effects happen in the order of the program.

    `io` effects change the world and must happen exactly as often as the program says; others (printing) may be
    repeated.
    """

    ordered = io = False

    def __init__(self, name: str = "", ordered: bool = False, io: bool = False):
        self.name, self.ordered, self.io = name or type(self).__name__, ordered, io

    @override
    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


class DebugEffect(Effect):
    """Printing and other looking on."""


class OrderedDebugEffect(Effect):
    """The same, in the order of the program."""


debug = DebugEffect("Debug")
ordered_debug = OrderedDebugEffect("OrderedDebug", ordered=True)
io = Effect("IO", io=True)
ordered_io = Effect("OrderedIO", ordered=True, io=True)
no_dce = Effect("NoDCE")  # does nothing, but keeps the equations that it depends on

touches = Effect("Ref")  # making, reading or writing a mutable reference


def any_ordered(effects: Iterable[Effect]) -> bool:
    return any(e.ordered for e in effects)


def any_io(effects: Iterable[Effect]) -> bool:
    return any(e.io for e in effects)
