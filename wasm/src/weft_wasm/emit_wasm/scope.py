"""Which Wasm locals hold which variables of the loop IR, and the loops around the current statement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.tables import SCALAR
from weft_wasm.binary.encode import V128
from weft_wasm.ir.nodes import Const, Expr, Load, Local, Var
from weft_wasm.ir.traversal import operands

Name: TypeAlias = Var | Local
Where: TypeAlias = int | list[int] | None  # a local, a local for each vector, or None: 0 (plus the variable's offset)
Lane: TypeAlias = tuple[int, int]  # (vector, lane) of the vector loop


class Lanes:
    """The vector loop being emitted: its variable, lanes per vector, vectors per iteration."""

    __slots__ = ("var", "lanes", "vectors", "varying")

    def __init__(self, var: Var, lanes: int, vectors: int):
        self.var, self.lanes, self.vectors = var, lanes, vectors
        self.varying: dict[Expr, bool] = {}


class Scope:
    """The bindings in effect at the current statement.

    env: where each variable and local is. offset: the constant part of an unrolled or constant loop variable.
    loop_vars: variables that are never negative. lanes: the vector loop, if there is one. depth: how many loops there
    are.
    """

    __slots__ = ("fn", "env", "offset", "loop_vars", "lanes", "depth")

    def __init__(self, fn: Function):
        self.fn = fn
        self.env: dict[Expr, Where] = {}
        self.offset: dict[Expr, int] = {}
        self.loop_vars: set[Expr] = set()
        self.lanes: Lanes | None = None
        self.depth = 0

    @property
    def vector(self) -> Lanes:
        """The vector loop; there must be one."""
        if self.lanes is None:
            raise RuntimeError("there is no vector loop here")
        return self.lanes

    def local(self, name: Name) -> int:
        """The local of a name that has exactly one local."""
        where = self.env[name]
        if type(where) is not int:
            raise RuntimeError(f"{name.name} is not in one local")
        return where

    def vectors(self, name: Name) -> list[int]:
        """The locals of a name that has a local for each vector."""
        where = self.env[name]
        if type(where) is not list:
            raise RuntimeError(f"{name.name} is not in vectors")
        return where

    def end(self, names: Iterable[Name]) -> None:
        """Forgets names and gives their locals back."""
        for name in names:
            where = self.env.pop(name)
            if type(where) is list:
                for local in where:
                    self.fn.release(V128, local)
            elif type(where) is int:
                self.fn.release(SCALAR[name.dtype], where)

    def varying(self, e: Expr) -> bool:
        """Whether lanes of the vector loop may see different values of e."""
        lanes = self.lanes
        if lanes is None:
            return False
        hit = lanes.varying.get(e)
        if hit is None:
            if type(e) is Var or type(e) is Local:
                return e is lanes.var or type(self.env.get(e)) is list
            if type(e) is Const:
                return False
            hit = lanes.varying[e] = any(map(self.varying, operands(e)))
        return hit

    def available(self, e: Expr, memo: dict[Expr, bool]) -> bool:
        """Whether e has one scalar value that is known now and does not change until its variables do."""
        hit = memo.get(e)
        if hit is None:
            if type(e) is Var:
                hit = e in self.env and type(self.env[e]) is not list and not (self.lanes and e is self.lanes.var)
            elif type(e) is Local or type(e) is Load:
                hit = False
            else:
                hit = all([self.available(x, memo) for x in operands(e)])
            memo[e] = hit
        return hit
