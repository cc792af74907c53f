"""Statements: bindings, stores, and loops (counted, unrolled, SIMD)."""

from __future__ import annotations

from collections.abc import Callable

from weft_wasm import encode, scalar_math
from weft_wasm.emit_wasm.address import Lanes
from weft_wasm.emit_wasm.interleave import Interleaved
from weft_wasm.emit_wasm.steady import WORTH_DIVIDING, Steady
from weft_wasm.emit_wasm.tables import SCALAR, STORE
from weft_wasm.encode import I32, OP, V128, memarg, unsigned
from weft_wasm.ir import (
    ITEMSIZE,
    STORAGE_FLOATS,
    Assign,
    Barrier,
    Binary,
    Buffer,
    Const,
    Declare,
    Expr,
    For,
    If,
    Let,
    Load,
    Local,
    Store,
    Switch,
    Var,
    While,
    expressions,
    operands,
    walk,
    walk_expr,
)  # fmt: skip
from weft_wasm.reduce_loops import identity, reductions

_VOID = bytes((encode.VOID,))
_BR_IF_0 = OP["br_if"] + b"\0"


class Statements(Steady):
    """Adds statements. `overlap(a, b)` tells whether two buffers may share storage."""

    def __init__(self, params: list[int], features: frozenset[str], overlap: Callable[[Buffer, Buffer], bool]):
        super().__init__(params, features)
        self.overlap = overlap
        self.simd = "simd128" in features
        self.outlining: For | None = None
        self.sharing = False  # inside a loop that threads share
        self.depth = 0  # loops around the current statement

    def block(self, body: list) -> None:
        """Statements in order; what they bind ends with the block."""
        bound: list[Expr] = []
        for s in self.interleaved(body) if self.vec is not None else body:
            new = _STATEMENT[type(s)](self, s)
            if new is not None:
                bound.append(new)
        for name in bound:
            where = self.env.pop(name)
            if type(where) is list:
                for local in where:
                    self.release(V128, local)
            elif where is not None:
                self.release(SCALAR[name.dtype], where)

    def _bind(self, name: Expr, value: Expr, vectorise: bool) -> Expr:
        self.open(value)
        if vectorise:
            where: int | list[int] = [self.new_local(V128) for _ in range(self.vec.vectors)]
            for u, local in enumerate(where):
                self.vector(value, u)
                self.set(local)
        else:
            where = self.new_local(SCALAR[name.dtype])
            self.scalar(value)
            self.set(where)
        self.close()
        self.env[name] = where
        return name

    def _let(self, s: Let) -> Expr:
        return self._bind(s.var, s.value, self.vec is not None and self.varying(s.value))

    def _declare(self, s: Declare) -> Expr:
        return self._bind(s.local, s.init, self.vec is not None)

    def _assign(self, s: Assign) -> None:
        where = self.env[s.local]
        self.open(s.value)
        if type(where) is list:
            for u, local in enumerate(where):
                self.vector(s.value, u)
                self.set(local)
        else:
            self.scalar(s.value)
            self.set(where)
        self.close()

    def _store(self, s: Store) -> None:
        buffer, value = s.buffer, s.value
        if buffer.dtype in STORAGE_FLOATS:
            value = scalar_math.encode(value)
            view = self.views.get(buffer)
            if view is None:
                view = self.views[buffer] = Buffer(buffer.name, "u16", buffer.shape, buffer.role)
                self.view_of[view] = buffer
            buffer = view
        self.open(s.index, value)
        if self.vec is not None:
            for u in range(self.vec.vectors):
                self.vector_store(buffer, s.index, value, u)
        else:
            offset = self.address(buffer, s.index)
            self.scalar(value)
            self.code += STORE[buffer.dtype] + memarg(ITEMSIZE[buffer.dtype], offset)
        self.close()

    def _test(self, e: Expr) -> None:
        self.open(e)
        self.scalar(e)
        self.close()

    def _if(self, s: If) -> None:
        self._test(s.test)
        self.code += OP["if"] + _VOID
        self.block(s.then)
        if s.orelse:
            self.code += OP["else"]
            self.block(s.orelse)
        self.code += OP["end"]

    def _switch(self, s: Switch) -> None:
        n = len(s.branches)
        self._test(s.index)
        index = self.new_local(I32)
        self.set(index)
        # clamp below: a negative index is a large unsigned one, which br_table sends to the default (the last branch)
        self.code += OP["block"] + _VOID
        for _ in range(n):
            self.code += OP["block"] + _VOID
        self.const(0)
        self.get(index)
        self.get(index)
        self.const(0)
        self.code += OP["i32.lt_s"] + OP["select"]
        self.code += OP["br_table"] + unsigned(n - 1) + b"".join(unsigned(k) for k in range(n - 1)) + unsigned(n - 1)
        self.release(I32, index)
        for k, branch in enumerate(s.branches):
            self.code += OP["end"]
            self.block(branch)
            if k < n - 1:
                self.code += OP["br"] + unsigned(n - 1 - k)
        self.code += OP["end"]

    def _while(self, s: While) -> None:
        self.code += OP["block"] + _VOID + OP["loop"] + _VOID
        self.depth += 1
        bound: list[Expr] = []
        for inner in s.cond:  # its bindings are visible in the test
            new = _STATEMENT[type(inner)](self, inner)
            if new is not None:
                bound.append(new)
        self._test(s.test)
        for name in bound:
            where = self.env.pop(name)
            for local in where if type(where) is list else [where]:
                self.release(V128 if type(where) is list else SCALAR[name.dtype], local)
        self.code += OP["i32.eqz"] + OP["br_if"] + b"\1"
        self.block(s.body)
        self.code += OP["br"] + b"\0" + OP["end"] + OP["end"]
        self.depth -= 1

    # ---- loops

    def _for(self, s: For) -> None:
        if s.tasks and self.vec is None and not self.sharing:
            return self.share(s)
        if s.outline and self.vec is None and self.outlining is not s:
            return self.outline(s)
        self.loop_vars.add(s.var)
        extent = s.extent
        if isinstance(extent, Const):
            extent = extent.value
        if isinstance(extent, Expr):
            self._test(extent)
            stop = Register(self.new_local(I32))
            self.set(stop.local)
            if s.vector and self.simd and self.vec is None:
                self._vector_for_dynamic(s, stop)
            else:
                self._counted(s.var, 0, stop, 1, 1, s.body)
            self.release(I32, stop.local)
        elif extent > 0:
            if s.vector and self.simd and self.vec is None:
                self._vector_for(s, extent)
            else:
                self._scalar_for(s, 0, extent)
        self.loop_vars.discard(s.var)  # its name may be that of something negative from here on

    def _scalar_for(self, s: For, start: int, stop: int) -> None:
        unroll = min(max(1, s.unroll), stop - start)
        main = start + (stop - start) // unroll * unroll
        self._counted(s.var, start, main, 1, unroll, s.body)
        if main < stop:
            self._counted(s.var, main, stop, 1, 1, s.body)

    def _counted(
        self, var: Var, start: int | Register, stop: int | Register, step: int, copies: int, body: list
    ) -> None:
        """A bottom-tested loop: var from start below stop, `copies` bodies of `step` in an iteration."""
        static = type(start) is int and type(stop) is int
        if static and stop - start <= step * copies:
            self.env[var] = None
            for k in range(copies):
                self.offset[var] = start + k * step
                self.block(body)
            del self.env[var], self.offset[var]
            return
        i = self.new_local(I32)
        self._push(start)
        self.set(i)
        if not static:
            self.code += OP["block"] + _VOID
            self.get(i)
            self._push(stop)
            self.code += OP["i32.ge_s"] + _BR_IF_0
        self.env[var] = i
        outer_access, self.access = self.access, dict(self.access)
        outer_hoisted, self.hoisted = self.hoisted, dict(self.hoisted)
        held = self.hold_loads(body, var)
        if self.vec is not None and var is self.vec.var and not (static and stop - start < WORTH_DIVIDING * self.vec.lanes):
            held += self.hold_reciprocals(body)
        increments = self.enter_pointers(body, var, step * copies)
        self.depth += 1
        self.code += OP["loop"] + _VOID
        for k in range(copies):
            if k:
                self.offset[var] = k * step
            self.block(body)
        self.offset.pop(var, None)
        for pointer, amount in increments:
            self.get(pointer)
            self.add_bytes(amount)
            self.set(pointer)
        self.get(i)
        self.const(step * copies)
        self.code += OP["i32.add"]
        self.tee(i)
        self._push(stop)
        self.code += OP["i32.lt_s"] + _BR_IF_0 + OP["end"]
        self.depth -= 1
        if not static:
            self.code += OP["end"]
        self.leave_pointers()
        if self.vec is not None and var is self.vec.var:
            self.forget_reciprocals()
        for kind, local in held:
            self.release(kind, local)
        self.access, self.hoisted = outer_access, outer_hoisted
        del self.env[var]
        self.release(I32, i)

    def _push(self, value: int | Register) -> None:
        if type(value) is int:
            self.const(value)
        else:
            self.get(value.local)

    # ---- SIMD loops

    def lanes_of(self, body: list) -> int:
        """2 where a 64-bit value takes part, else 4."""
        seen: set[Expr] = set()

        def wide(e: Expr) -> bool:
            if e in seen:
                return False
            seen.add(e)
            if ITEMSIZE[e.dtype] == 8:
                return True
            if type(e) is Load:
                return False  # its index is computed as a scalar
            if scalar_math.needs_expansion(e):
                return wide(self.expanded(e))
            return any(map(wide, operands(e)))

        for s in walk(body):
            if type(s) in (Let, Assign):
                values = (s.value,)
            elif type(s) is Declare:
                values = (s.init,)
            elif type(s) is Store:
                values = (s.value,)
            else:
                continue
            if any(map(wide, values)):
                return 2
        return 4

    def _run_lanes(self, s: For, start: int | Register, stop: int | Register, lanes: int, vectors: int) -> None:
        outer_hoisted, self.hoisted = self.hoisted, dict(self.hoisted)
        held = []
        self.vec = Lanes(s.var, lanes, vectors)
        for (node, at), local in outer_hoisted.items():  # splats of what is already known, before the loop
            if at is None and node in self.steady_loads(s.body)[0]:
                splat = self.new_local(V128)
                self.get(local)
                self._splat(node.dtype)
                self.set(splat)
                held.append(splat)
                self.hoisted[(node, "splat")] = splat
        held += self.hold_constants(s.body)
        self._counted(s.var, start, stop, lanes * vectors, 1, s.body)
        self.held_constants.clear()
        self.vec = None
        for local in held:
            self.release(V128, local)
        self.hoisted = outer_hoisted

    def _vector_for(self, s: For, extent: int) -> None:
        lanes = self.lanes_of(s.body)
        if extent < lanes and not self._may_pad(s, extent, lanes):
            return self._scalar_for(s, 0, extent)
        wide = lanes * s.vector
        if s.kind == "reduce":
            main, rest = extent // wide * wide, extent // lanes * lanes
            with_accumulators = self._accumulators(s, lanes, s.vector if main else 1)
            if main:
                self._run_lanes(s, 0, main, lanes, s.vector)
            self._merge_accumulators(with_accumulators)
            if main < rest:
                self._run_lanes(s, main, rest, lanes, 1)
            self._finish_accumulators(with_accumulators, lanes)
            if rest < extent:
                self._scalar_for(s, rest, extent)
            return
        tail = extent % lanes
        whole = extent - tail
        if tail and self._may_pad(s, extent, lanes):
            whole, tail = whole + lanes, 0
        main = whole // wide * wide
        if main:
            self._run_lanes(s, 0, main, lanes, s.vector)
        if main < whole:
            self._run_lanes(s, main, whole, lanes, 1)
        if tail:
            if self._may_repeat(s):
                self._run_lanes(s, extent - lanes, extent, lanes, 1)
            else:
                self._scalar_for(s, whole, extent)

    def _vector_for_dynamic(self, s: For, stop: Register) -> None:
        lanes = self.lanes_of(s.body)
        wide = lanes * s.vector
        main = Register(self.new_local(I32))
        self.get(stop.local)
        self.const(-wide)
        self.code += OP["i32.and"]
        self.set(main.local)
        if s.kind == "reduce":
            accumulators = self._accumulators(s, lanes, s.vector)
            self._run_lanes(s, 0, main, lanes, s.vector)
            self._merge_accumulators(accumulators)
            self._finish_accumulators(accumulators, lanes)
        else:
            self._run_lanes(s, 0, main, lanes, s.vector)
        # a negative extent: main is negative too, and both loops run nothing
        self.get(main.local)
        self.const(0)
        self.get(main.local)
        self.const(0)
        self.code += OP["i32.gt_s"] + OP["select"]
        self.set(main.local)
        self._counted(s.var, main, stop, 1, 1, s.body)
        self.release(I32, main.local)

    def _may_pad(self, s: For, extent: int, lanes: int) -> bool:
        """Whether the last vector may run past the end: everything it touches beyond lies in the padding of a buffer."""
        if s.kind != "parallel" or self.depth:
            return False
        over = -extent % lanes
        for inner in s.body:
            if type(inner) not in (Let, Store):
                return False
        for buffer, index in self.accesses(s.body):
            terms, const = self.linear(index)
            stride = terms.get(s.var, 0)
            if any(t is not s.var for t in terms) or stride not in (0, 1):
                return False
            if stride == 1:
                padded = -(-buffer.nbytes // 64) * 64
                if const < 0 or (const + extent + over) * ITEMSIZE[buffer.dtype] > padded:
                    return False
        return all(
            self.linear(inner.index)[1] + extent == inner.buffer.size and self.linear(inner.index)[0].get(s.var) == 1
            for inner in s.body
            if type(inner) is Store
        )

    def _may_repeat(self, s: For) -> bool:
        """Whether iterations may run twice: nothing that the loop writes is read by it."""
        written = {inner.buffer for inner in walk(s.body) if type(inner) is Store}
        reads = {
            node.buffer
            for inner in walk(s.body)
            for e in expressions(inner)
            for node in walk_expr(e)
            if type(node) is Load
        }
        return not any(self.overlap(w, r) for w in written for r in reads)

    def _accumulators(self, s: For, lanes: int, vectors: int) -> list[tuple]:
        self.vec = Lanes(s.var, lanes, vectors)
        result = []
        for acc, op in reductions(s).items():
            locals_ = [self.new_local(V128) for _ in range(vectors)]
            for local in locals_:
                self._vector_constant(identity(op, acc.dtype))
                self.set(local)
            result.append((acc, op, self.env[acc]))
            self.env[acc] = locals_
        self.vec = None
        return result

    def _vector_op(self, op: str, dtype: str, lanes: int, push_a, push_b) -> None:
        a, b = Var("a", dtype), Var("b", dtype)
        self.vec = Lanes(Var("lane"), lanes, 1)
        self.env[a], self.env[b] = [push_a], [push_b]
        self.open()
        self.vector(Binary(op, a, b), 0)
        self.close()
        del self.env[a], self.env[b]
        self.vec = None

    def _merge_accumulators(self, accumulators: list[tuple]) -> None:
        """Several vectors of partial results into the first."""
        for acc, op, _ in accumulators:
            locals_ = self.env[acc]
            lanes = 2 if ITEMSIZE[acc.dtype] == 8 else 4
            while len(locals_) > 1:
                half = (len(locals_) + 1) // 2
                for k in range(half, len(locals_)):
                    self._vector_op(op, acc.dtype, lanes, locals_[k - half], locals_[k])
                    self.set(locals_[k - half])
                    self.release(V128, locals_[k])
                locals_ = locals_[:half]
            self.env[acc] = locals_

    def _finish_accumulators(self, accumulators: list[tuple], lanes: int) -> None:
        """The lanes of the vectors into the scalar accumulators."""
        for acc, op, scalar in accumulators:
            (vector,) = self.env[acc]
            self.env[acc] = scalar
            total = Local("total", acc.dtype)
            for lane in range(lanes):
                part = Var("part", acc.dtype)
                where = self.new_local(SCALAR[acc.dtype])
                self.vec = Lanes(Var("lane"), lanes, 1)
                self.get(vector)
                self._extract(acc.dtype, lane)
                self.vec = None
                self.set(where)
                self.env[part] = where
                if lane:
                    self.open()
                    self.scalar(Binary(op, total, part))
                    self.close()
                    self.set(self.env[total])
                    self.release(SCALAR[acc.dtype], where)
                    del self.env[part]
                else:
                    self.env[total] = where
            self.open()
            self.scalar(Binary(op, acc, total))
            self.close()
            self.set(scalar)
            self.release(SCALAR[acc.dtype], self.env.pop(total))
            self.release(V128, vector)


class Register:
    """A loop bound held in a local."""

    __slots__ = ("local",)

    def __init__(self, local: int):
        self.local = local


_STATEMENT = {
    Let: Statements._let, Declare: Statements._declare, Assign: Statements._assign, Store: Statements._store,
    If: Statements._if, Switch: Statements._switch, While: Statements._while, For: Statements._for,
    Barrier: lambda self, s: None, Interleaved: Statements.store_interleaved,
}  # fmt: skip
