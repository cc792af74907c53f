"""Values that have been computed: invariant values of loops, and values that one statement uses several times."""

from __future__ import annotations

from typing import Literal, TypeAlias

from weft_wasm.elementary import expansion
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.scope import Lane
from weft_wasm.emit_wasm.storage import Storage
from weft_wasm.ir.nodes import MATH_LARGE, Call, Const, Expr, Load
from weft_wasm.ir.traversal import operands

# The part of an expression that a local holds: its single value (None), that value in all lanes, one of its vectors, or
# one lane of a vector.
Form: TypeAlias = Literal["splat"] | int | Lane | None


def constant_key(e: Const) -> tuple[str, str]:
    """A key that distinguishes constants: 0.0 and -0.0 are equal as numbers."""
    return e.dtype, repr(e.value)


class Held:
    """The values that surrounding loops have put into locals before they began.

    scalars: of expressions. splats: the same values in all lanes. constants: constant vectors. quotients: replacements
    of divisions in the current vector loop. `enter` and `leave` are called at a loop's beginning and end.
    """

    __slots__ = ("scalars", "splats", "constants", "quotients", "_outer")

    def __init__(self) -> None:
        self.scalars: dict[Expr, int] = {}
        self.splats: dict[Expr, int] = {}
        self._outer: list[tuple[dict[Expr, int], dict[Expr, int]]] = []
        self.constants: dict[tuple[str, str], int] = {}
        self.quotients: dict[Expr, Expr] = {}

    def enter(self) -> None:
        """Values held from now on are valid until `leave`."""
        self._outer.append((self.scalars, self.splats))
        self.scalars, self.splats = dict(self.scalars), dict(self.splats)

    def leave(self) -> None:
        self.scalars, self.splats = self._outer.pop()


class Expansions:
    """The expansion of an expression that has no instructions, made once."""

    __slots__ = ("storage", "_known")

    def __init__(self, storage: Storage):
        self.storage = storage
        self._known: dict[Expr, Expr | None] = {}

    def of(self, e: Expr) -> Expr | None:
        """None for an expression that has instructions."""
        if e in self._known:
            return self._known[e]
        found: Expr | None = None
        if expansion.needs_expansion(e) and not (type(e) is Call and e.fn in MATH_LARGE):
            if type(e) is Load:
                found = expansion.decode(Load(self.storage.bits(e.buffer), e.index), e.dtype)
            else:
                found = expansion.expand(e)
        self._known[e] = found
        return found


class Shared:
    """The nodes of the current statement, and the locals of those that have been computed. `open` and `close` are
    called at its beginning and end.

    refs: how often the statement refers to each. cache: locals of values, which `close` gives back.
    """

    __slots__ = ("fn", "expansions", "held", "refs", "cache", "_temporaries")

    def __init__(self, fn: Function, expansions: Expansions, held: Held):
        self.fn, self.expansions, self.held = fn, expansions, held
        self.refs: dict[Expr, int] = {}
        self.cache: dict[tuple[Expr, Form], int] = {}
        self._temporaries: list[tuple[int, int]] = []

    def open(self, *roots: Expr) -> None:
        self.cache = {}
        self.refs = refs = dict[Expr, int]()
        quotients, expansion = self.held.quotients, self.expansions.of

        pending = [*roots]
        while pending:
            e = pending.pop()
            n = refs.get(e, 0)
            refs[e] = n + 1
            if not n:
                instead = quotients[e] if e in quotients else expansion(e)
                pending += operands(e) if instead is None else (instead,)

    def close(self) -> None:
        for kind, local in self._temporaries:
            self.fn.release(kind, local)
        self._temporaries.clear()
        self.refs, self.cache = {}, {}  # the locals that it names may be given away from now on

    def temporary(self, kind: int) -> int:
        """A local until the statement's end."""
        local = self.fn.new_local(kind)
        self._temporaries.append((kind, local))
        return local
