"""Loops: counted, unrolled, and in lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from weft_wasm.emit_wasm.accumulators import Accumulators
from weft_wasm.emit_wasm.address import Addresses
from weft_wasm.emit_wasm.blocks import BlockEmitter, Emit
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.lane_plan import LanePlan
from weft_wasm.emit_wasm.scalars import LargeFunctions, Scalars
from weft_wasm.emit_wasm.scope import Lanes, Scope
from weft_wasm.emit_wasm.statements import VOID
from weft_wasm.emit_wasm.loop_invariants import LoopInvariants
from weft_wasm.emit_wasm.values import Held
from weft_wasm.binary.encode import I32, OP
from weft_wasm.ir.nodes import Const, For, Stmt, Var, whole
from weft_wasm.ir.kinds import of

WORTH_DIVIDING = 8  # vectors of a loop from which a reciprocal pays
_BR_IF_0 = OP["br_if"] + b"\0"


class Register(NamedTuple):
    """A loop bound held in a local."""

    local: int


Bound: TypeAlias = int | Register


class Counted:
    """The loop itself: a counter, its invariant values, and the pointers that it moves."""

    def __init__(
        self,
        fn: Function,
        scope: Scope,
        held: Held,
        addresses: Addresses,
        scalars: Scalars,
        invariants: LoopInvariants,
        body: BlockEmitter,
    ):
        self.fn, self.scope, self.held, self.addresses = fn, scope, held, addresses
        self.scalars, self.invariants, self.body = scalars, invariants, body

    def emit(self, var: Var, start: Bound, stop: Bound, step: int, copies: int, body: Sequence[Stmt]) -> None:
        """var from start below stop, `copies` bodies of `step` in an iteration. Where both bounds are known there
        must be an iteration.
        """
        length = stop - start if isinstance(start, int) and isinstance(stop, int) else None
        if isinstance(start, int) and length is not None and length <= step * copies:
            return self._once(var, start, step, copies, body)
        fn, lanes = self.fn, self.scope.lanes
        i = fn.new_local(I32)
        self._push(start)
        fn.set(i)
        if length is None:
            fn.code += OP["block"] + VOID
            fn.get(i)
            self._push(stop)
            fn.code += OP["i32.ge_s"] + _BR_IF_0
        self.scope.env[var] = i
        self.held.enter()
        locals_ = self.invariants.hold_loads(body, var)
        in_lanes = lanes is not None and var is lanes.var
        if lanes is not None and in_lanes and not (length is not None and length < WORTH_DIVIDING * lanes.lanes):
            locals_ += self.invariants.hold_reciprocals(body)
        increments = self.addresses.enter(self.scalars, body, var, step * copies)
        self.scope.depth += 1
        fn.code += OP["loop"] + VOID
        for k in range(copies):
            if k:
                self.scope.offset[var] = k * step
            self.body.block(body)
        self.scope.offset.pop(var, None)
        for pointer, amount in increments:
            fn.get(pointer)
            fn.add_bytes(amount)
            fn.set(pointer)
        fn.get(i)
        fn.const(step * copies)
        fn.code += OP["i32.add"]
        fn.tee(i)
        self._push(stop)
        fn.code += OP["i32.lt_s"] + _BR_IF_0 + OP["end"]
        self.scope.depth -= 1
        if length is None:
            fn.code += OP["end"]
        self.addresses.leave()
        if in_lanes:
            self.invariants.forget_reciprocals()
        for kind, local in locals_:
            fn.release(kind, local)
        self.held.leave()
        self.scope.end([var])

    def one_by_one(self, s: For, start: int, stop: int) -> None:
        """The iterations from start below stop as scalars, unrolled as the loop says."""
        unroll = min(max(1, s.unroll), stop - start)
        main = start + (stop - start) // unroll * unroll
        self.emit(s.var, start, main, 1, unroll, s.body)
        if main < stop:
            self.emit(s.var, main, stop, 1, 1, s.body)

    def _once(self, var: Var, start: int, step: int, copies: int, body: Sequence[Stmt]) -> None:
        """No loop: the variable is a constant."""
        self.scope.env[var] = None
        for k in range(copies):
            self.scope.offset[var] = start + k * step
            self.body.block(body)
        del self.scope.env[var], self.scope.offset[var]

    def _push(self, value: Bound) -> None:
        if isinstance(value, int):
            self.fn.const(value)
        else:
            self.fn.get(value.local)


class InLanes:
    """Vector loops."""

    def __init__(
        self,
        fn: Function,
        scope: Scope,
        held: Held,
        plan: LanePlan,
        invariants: LoopInvariants,
        accumulators: Accumulators,
        counted: Counted,
    ):
        self.fn, self.scope, self.held, self.plan = fn, scope, held, plan
        self.invariants, self.accumulators, self.counted = invariants, accumulators, counted

    def known(self, s: For, extent: int) -> None:
        """A loop whose extent is known."""
        lanes = self.plan.lanes(s.body)
        runs = self.plan.runs(s, extent, lanes)
        vector, scalar = [r for r in runs if r.vectors], [r for r in runs if not r.vectors]
        if vector and s.kind == "reduce":
            accumulators = self.accumulators.begin(s, lanes, vector[0].vectors)
            for k, (start, stop, vectors) in enumerate(vector):
                self._run(s, start, stop, lanes, vectors)
                if k == 0:
                    self.accumulators.merge(accumulators, lanes)
            self.accumulators.finish(accumulators, lanes)
        else:
            for start, stop, vectors in vector:
                self._run(s, start, stop, lanes, vectors)
        for start, stop, _ in scalar:
            self.counted.one_by_one(s, start, stop)

    def unknown(self, s: For, stop: Register) -> None:
        """A loop whose extent a local holds."""
        fn, lanes = self.fn, self.plan.lanes(s.body)
        main = Register(fn.new_local(I32))
        fn.get(stop.local)
        fn.const(-lanes * s.vector)
        fn.code += OP["i32.and"]
        fn.set(main.local)
        if s.kind == "reduce":
            accumulators = self.accumulators.begin(s, lanes, s.vector)
            self._run(s, 0, main, lanes, s.vector)
            self.accumulators.merge(accumulators, lanes)
            self.accumulators.finish(accumulators, lanes)
        else:
            self._run(s, 0, main, lanes, s.vector)
        # a negative extent: main is negative too, and both loops run nothing
        fn.get(main.local)
        fn.const(0)
        fn.get(main.local)
        fn.const(0)
        fn.code += OP["i32.gt_s"] + OP["select"]
        fn.set(main.local)
        self.counted.emit(s.var, main, stop, 1, 1, s.body)
        fn.release(I32, main.local)

    def _run(self, s: For, start: Bound, stop: Bound, lanes: int, vectors: int) -> None:
        self.held.enter()
        self.scope.lanes = Lanes(s.var, lanes, vectors)
        locals_ = self.invariants.hold_splats(s.body) + self.invariants.hold_constants(s.body)
        self.counted.emit(s.var, start, stop, lanes * vectors, 1, s.body)
        self.held.constants.clear()
        self.scope.lanes = None
        for kind, local in locals_:
            self.fn.release(kind, local)
        self.held.leave()


class Functions(LargeFunctions, Protocol):
    """Loops, too, that become separate functions."""

    def takes(self, s: For) -> bool:
        """Emits a loop as a call of a separate function, and returns True, if it must be one."""


class Loops:
    """The statement For. simd: whether vector loops run in lanes. functions: where a kernel's loops may be
    functions.
    """

    def __init__(
        self,
        fn: Function,
        scope: Scope,
        scalars: Scalars,
        counted: Counted,
        in_lanes: InLanes,
        functions: Functions,
        simd: bool,
    ):
        self.fn, self.scope, self.scalars = fn, scope, scalars
        self.counted, self.in_lanes, self.functions, self.simd = counted, in_lanes, functions, simd

    @property
    def kinds(self) -> Mapping[type, Emit]:
        """The emitters for `Blocks.add`."""
        return of(For, self.loop)

    def loop(self, s: For) -> None:
        extent = whole(s.extent) if type(s.extent) is Const else s.extent
        if isinstance(extent, int) and extent <= 0:
            return
        if self.scope.lanes is None and self.functions.takes(s):
            return
        self.scope.loop_vars.add(s.var)
        vector = s.vector and self.simd and self.scope.lanes is None
        if not isinstance(extent, int):
            self.scalars.alone(extent)
            stop = Register(self.fn.new_local(I32))
            self.fn.set(stop.local)
            if vector:
                self.in_lanes.unknown(s, stop)
            else:
                self.counted.emit(s.var, 0, stop, 1, 1, s.body)
            self.fn.release(I32, stop.local)
        elif vector:
            self.in_lanes.known(s, extent)
        else:
            self.counted.one_by_one(s, 0, extent)
        self.scope.loop_vars.discard(s.var)  # its name may belong to a negative variable from here on
