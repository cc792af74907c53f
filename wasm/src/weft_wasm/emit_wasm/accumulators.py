"""Reductions in lanes: an accumulator is several vectors of partial results while its loop runs, and a scalar before
and after.
"""

from __future__ import annotations

from typing import NamedTuple

from weft_wasm.emit_wasm import packing
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.scalars import Scalars
from weft_wasm.emit_wasm.scope import Lanes, Scope
from weft_wasm.emit_wasm.tables import SCALAR
from weft_wasm.emit_wasm.values import Shared
from weft_wasm.emit_wasm.vectors import Vectors
from weft_wasm.binary.encode import V128
from weft_wasm.ir.nodes import Binary, Expr, For, Local, Var
from weft_wasm.ir.reductions import identity, reductions


class Accumulator(NamedTuple):
    """An assignment of a reduce loop: its target, its operation, and the local of the scalar."""

    name: Local
    op: str
    scalar: int


class Accumulators:
    """Takes the accumulators of a loop apart, and puts them together again."""

    def __init__(self, fn: Function, scope: Scope, shared: Shared, scalars: Scalars, vectors: Vectors):
        self.fn, self.scope, self.shared, self.scalars, self.vectors = fn, scope, shared, scalars, vectors

    def begin(self, s: For, lanes: int, vectors: int) -> list[Accumulator]:
        """Vectors that contain the neutral element, in place of the variable that the loop accumulates into."""
        self.scope.lanes = Lanes(s.var, lanes, vectors)
        accumulators = []
        for acc, op in reductions(s).items():
            locals_ = [self.fn.new_local(V128) for _ in range(vectors)]
            for local in locals_:
                self.vectors.constant(identity(op, acc.dtype))
                self.fn.set(local)
            accumulators.append(Accumulator(acc, op, self.scope.local(acc)))
            self.scope.env[acc] = locals_
        self.scope.lanes = None
        return accumulators

    def merge(self, accumulators: list[Accumulator], lanes: int) -> None:
        """Several vectors of partial results into the first."""
        for acc, op, _ in accumulators:
            locals_ = self.scope.vectors(acc)
            while len(locals_) > 1:
                half = (len(locals_) + 1) // 2
                for k in range(half, len(locals_)):
                    self._combine(op, acc.dtype, lanes, locals_[k - half], locals_[k])
                    self.fn.set(locals_[k - half])
                    self.fn.release(V128, locals_[k])
                locals_ = locals_[:half]
            self.scope.env[acc] = locals_

    def finish(self, accumulators: list[Accumulator], lanes: int) -> None:
        """The lanes of the vectors into the scalar accumulators."""
        for acc, op, scalar in accumulators:
            (vector,) = self.scope.vectors(acc)
            self.scope.env[acc] = scalar
            total = Local("total", acc.dtype)
            for lane in range(lanes):
                part = Var("part", acc.dtype)
                where = self.fn.new_local(SCALAR[acc.dtype])
                self.fn.get(vector)
                packing.extract(self.fn, acc.dtype, lane, lanes)
                self.fn.set(where)
                self.scope.env[part] = where
                if lane:
                    self._scalar(Binary(op, total, part))
                    self.fn.set(self.scope.local(total))
                    self.scope.end([part])
                else:
                    self.scope.env[total] = where
            self._scalar(Binary(op, acc, total))
            self.fn.set(scalar)
            self.scope.end([total])
            self.fn.release(V128, vector)

    def _combine(self, op: str, dtype: str, lanes: int, x: int, y: int) -> None:
        """Pushes the combination of two vectors in locals."""
        a, b = Var("a", dtype), Var("b", dtype)
        self.scope.lanes = Lanes(Var("lane"), lanes, 1)
        self.scope.env[a], self.scope.env[b] = [x], [y]
        self.shared.open()
        self.vectors.push(Binary(op, a, b), 0)
        self.shared.close()
        del self.scope.env[a], self.scope.env[b]
        self.scope.lanes = None

    def _scalar(self, e: Expr) -> None:
        self.shared.open()
        self.scalars.push(e)
        self.shared.close()
