"""Loops, branches, and what they hold: each part alone, around statements that stand-ins emit."""

import itertools
import struct

import pytest
from emit_harness import Base, NoFunctions, run
from weft_wasm.emit_wasm import packing
from weft_wasm.emit_wasm.accumulators import Accumulators
from weft_wasm.emit_wasm.address import Addresses
from weft_wasm.emit_wasm.blocks import Blocks
from weft_wasm.emit_wasm.interleave import Interleaved, Interleaving
from weft_wasm.emit_wasm.lane_plan import LanePlan, Run
from weft_wasm.emit_wasm.loops import Counted, InLanes, Loops, Register
from weft_wasm.emit_wasm.scalars import Scalars
from weft_wasm.emit_wasm.statements import VOID, Branches, Simple
from weft_wasm.emit_wasm.loop_invariants import MAX_HOISTED, LoopInvariants
from weft_wasm.emit_wasm.tables import VECTOR_OP
from weft_wasm.emit_wasm.vectors import Vectors
from weft_wasm.binary.encode import F32, I32, OP
from weft_wasm.interpreter.interpret import from_bits
from weft_wasm.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Buffer,
    Compare,
    Const,
    Convert,
    Declare,
    Fail,
    For,
    If,
    Let,
    Local,
    Store,
    Switch,
    Var,
    While,
    f32,
    i32,
    lt,
)


class Parts(Base):
    """The parts below statements."""

    def __init__(self, buffers=(), variables=(), relaxed=False, **options):
        super().__init__(buffers, variables, **options)
        self.addresses = Addresses(self.fn, self.scope, self.storage, self.shared)
        self.scalars = Scalars(
            self.fn, self.scope, self.shared, self.held, self.expansions, self.addresses, NoFunctions()
        )
        self.vectors = Vectors(
            self.fn,
            self.scope,
            self.shared,
            self.held,
            self.expansions,
            self.addresses,
            self.scalars,
            NoFunctions(),
            relaxed,
        )
        self.invariants = LoopInvariants(
            self.fn, self.scope, self.storage, self.shared, self.held, self.expansions, self.scalars, self.vectors
        )
        self.plan = LanePlan(self.scope, self.storage, self.addresses, self.expansions)


class Trace:
    """A `BlockEmitter` whose statements are variables: it writes their values one after the other into memory, from
    address 8 on; at 0 it counts them.
    """

    def __init__(self, parts: Parts):
        self.parts, self.lanes = parts, []

    def block(self, body) -> None:
        fn, scope = self.parts.fn, self.parts.scope
        self.lanes.append((scope.lanes.lanes, scope.lanes.vectors) if scope.lanes else None)
        for var in body:
            fn.const(0)
            fn.const(0)
            fn.code += OP["i32.load"] + b"\2\0" + b"\x41\4" + OP["i32.add"] + OP["i32.store"] + b"\2\0"
            fn.const(0)
            fn.code += OP["i32.load"] + b"\2\0"
            self.parts.scalars.alone(var)
            fn.code += OP["i32.store"] + b"\2\4"

    def values(self, *args) -> list[int]:
        memory = run(self.parts.fn, *args)[1]
        return [from_bits(memory[8 + 4 * k :][:4], "i32") for k in range(from_bits(memory[:4], "i32") // 4)]


class Unchanging:
    """A `LoopInvariants` that holds nothing."""

    hold_loads = hold_reciprocals = hold_splats = hold_constants = lambda self, *args: []
    forget_reciprocals = lambda self: None


class NoPointers:
    """`Addresses` without accesses."""

    enter = lambda self, *args: []
    leave = lambda self: None


def counted(parts: Parts, body) -> Counted:
    return Counted(parts.fn, parts.scope, parts.held, NoPointers(), parts.scalars, Unchanging(), body)


class TestCounted:
    @pytest.mark.parametrize(
        ("start", "stop", "step", "copies"),
        [(0, 1, 1, 1), (0, 4, 1, 4), (3, 7, 1, 1), (0, 12, 4, 1), (0, 12, 2, 3), (2, 8, 2, 1)],
    )
    def test_known_bounds(self, start, stop, step, copies):
        parts, i = Parts(), Var("i")
        trace = Trace(parts)
        counted(parts, trace).emit(i, start, stop, step, copies, [i])
        assert trace.values() == list(range(start, stop, step))
        assert (
            (OP["loop"] + VOID in parts.fn.code) == (stop - start > step * copies)
            and i not in parts.scope.env
            and parts.scope.depth == 0
        )

    @pytest.mark.parametrize("n", [-1, 0, 1, 5])
    def test_a_bound_in_a_local(self, n):
        parts, i = Parts(variables=[Var("n")]), Var("i")
        trace = Trace(parts)
        counted(parts, trace).emit(i, 0, Register(0), 1, 1, [i])
        assert trace.values(n) == list(range(n))

    @pytest.mark.parametrize(("extent", "unroll"), [(1, 4), (7, 3), (6, 3), (5, 1)])
    def test_unrolled(self, extent, unroll):
        parts, i = Parts(), Var("i")
        trace = Trace(parts)
        counted(parts, trace).one_by_one(For(i, extent, [i], unroll=unroll), 0, extent)
        assert trace.values() == list(range(extent))

    def test_locals_are_given_back(self):
        parts, i = Parts(), Var("i")
        counted(parts, Trace(parts)).emit(i, 0, 9, 1, 1, [i])
        made = len(parts.fn.local_types)
        counted(parts, Trace(parts)).emit(i, 0, 9, 1, 1, [i])
        assert len(parts.fn.local_types) == made


class TestLanePlan:
    x, y, out = (
        Buffer("x", "f32", (100,), "input"),
        Buffer("y", "f32", (100,), "input"),
        Buffer("o", "f32", (64,), "output"),
    )

    def loop(self, extent, vector=2, kind="parallel", source=None):
        i = Var("i")
        return For(i, extent, [Store(self.out, i, (source or self.x)[i])], kind, vector)

    @pytest.mark.parametrize(
        ("extent", "vector", "kind"),
        list(itertools.product([1, 3, 4, 5, 8, 17, 32, 63, 64], [1, 2, 4], ["parallel", "reduce"])),
    )
    def test_every_iteration_runs_in_order(self, extent, vector, kind):
        s = self.loop(extent, vector, kind)
        runs = Parts().plan.runs(s, extent, 4)
        seen = [k for start, stop, _ in runs for k in range(start, stop)]
        assert sorted(set(seen)) == list(range(extent))
        assert all((stop - start) % (4 * vectors) == 0 for start, stop, vectors in runs if vectors)
        if kind == "reduce":
            assert seen == list(range(extent))  # none twice

    def test_the_last_vector_repeats_only_what_the_loop_does_not_read(self):
        assert Parts().plan.runs(self.loop(7), 7, 4) == [Run(0, 4, 1), Run(3, 7, 1)]
        assert Parts().plan.runs(self.loop(7, source=self.out), 7, 4) == [Run(0, 4, 1), Run(4, 7, 0)]
        every = Parts(overlap=lambda a, b: True)
        assert every.plan.runs(self.loop(7), 7, 4) == [Run(0, 4, 1), Run(4, 7, 0)]

    def test_the_last_vector_goes_past_the_end_only_into_padding(self):
        n, i = 61, Var("i")
        out, x = Buffer("o", "f32", (n,), "output"), Buffer("x", "f32", (n,), "input")
        s = For(i, n, [Store(out, i, x[i])], "parallel", 2)
        assert Parts().plan.runs(s, n, 4) == [Run(0, 64, 2)]
        inside = Parts()
        inside.scope.depth = 1
        assert inside.plan.runs(s, n, 4)[-1] == Run(n - 4, n, 1)
        later = For(i, n, [Store(out, i, Buffer("x", "f32", (n + 3,), "input")[i + 3])], "parallel", 2)
        assert Parts().plan.runs(later, n, 4)[-1] == Run(n - 4, n, 1)
        part = For(i, n - 4, [Store(out, i, x[i])], "parallel", 2)
        assert Parts().plan.runs(part, n - 4, 4)[-1] == Run(n - 8, n - 4, 1)

    def test_lanes(self):
        lanes, i, a = Parts().plan.lanes, Var("i"), Var("a", "f32")
        assert lanes([Let(a, self.x[i])]) == 4
        assert lanes([Let(a, Buffer("d", "f64", (4,))[i])]) == 2
        assert lanes([Declare(Local("n", "i64"), Const(0, "i64"))]) == 2
        assert lanes([If(lt(i, 3), [Store(self.out, i, Binary("rem", self.x[i], a))], [])]) == 2  # is made in f64


class TestInLanes:
    @pytest.mark.parametrize(("extent", "vector"), [(16, 2), (18, 2), (21, 2), (3, 2), (8, 1)])
    def test_iterations(self, extent, vector):
        parts, i = Parts(), Var("i")
        trace = Trace(parts)
        s = For(i, extent, [i], "reduce", vector)
        parts.plan.lanes = lambda body: 4
        InLanes(
            parts.fn, parts.scope, parts.held, parts.plan, Unchanging(), NoAccumulators(), counted(parts, trace)
        ).known(s, extent)
        main, rest = extent // (4 * vector) * 4 * vector, extent // 4 * 4
        assert trace.values() == [*range(0, main, 4 * vector), *range(main, rest, 4), *range(rest, extent)]
        assert trace.lanes == [(4, vector)] * (main > 0) + [(4, 1)] * (main < rest) + [None] * (rest < extent)

    @pytest.mark.parametrize("extent", [-5, 0, 3, 8, 13])
    def test_an_extent_in_a_local(self, extent):
        parts, i = Parts(variables=[Var("n")]), Var("i")
        trace = Trace(parts)
        parts.plan.lanes = lambda body: 4
        s = For(i, Var("n"), [i], "parallel", 2)
        InLanes(
            parts.fn, parts.scope, parts.held, parts.plan, Unchanging(), NoAccumulators(), counted(parts, trace)
        ).unknown(s, Register(0))
        main = max(extent, 0) // 8 * 8
        assert trace.values(extent) == [*range(0, main, 8), *range(main, extent)]


class NoAccumulators:
    begin = lambda self, *args: []
    merge = finish = lambda self, *args: None


class TestAccumulators:
    @pytest.mark.parametrize(
        ("op", "dtype", "want"),
        [("add", "f32", 40.0), ("mul", "f32", 362880.0), ("max", "f32", 9.0), ("min", "i32", 1), ("add", "i32", 40)],
    )
    @pytest.mark.parametrize("vectors", [1, 2, 3, 4])
    def test_partial_results_come_together(self, op, dtype, want, vectors):
        parts, acc, i = Parts(), Local("acc", dtype), Var("i")
        first = 3 if op == "min" else 1
        parts.scope.env[acc] = scalar = parts.fn.new_local(F32 if dtype == "f32" else I32)
        parts.scalars.alone(Const(4 if op == "add" else first, dtype))
        parts.fn.set(scalar)
        s = For(i, 36, [Assign(acc, Binary(op, acc, Const(1, dtype)))], "reduce", vectors)
        accumulators = Accumulators(parts.fn, parts.scope, parts.shared, parts.scalars, parts.vectors)
        begun = accumulators.begin(s, 4, vectors)
        parts.in_lanes(4, vectors)
        numbers = {"add": [1] * 36, "max": [9, *range(8)], "min": [5, 1, 7], "mul": range(2, 10)}[op]
        for k, n in enumerate(numbers):  # one lane after the other, in any vector
            vector = parts.scope.vectors(acc)[k % vectors]
            parts.fn.get(vector)
            parts.vectors.constant(Const({"add": 0, "mul": 1, "max": -5, "min": 99}[op], dtype))
            parts.scalars.push(Const(n, dtype))
            packing.insert(parts.fn, dtype, k % 4, 4)
            parts.fn.code += VECTOR_OP[(op, dtype)]
            parts.fn.set(vector)
        parts.scope.lanes = None
        accumulators.merge(begun, 4)
        accumulators.finish(begun, 4)
        assert parts.scope.env[acc] == scalar
        parts.fn.get(scalar)
        assert run(parts.fn, results=[F32 if dtype == "f32" else I32])[0] == want


class TestSteady:
    x, out = Buffer("x", "f32", (8,), "input"), Buffer("o", "f32", (8,), "output")

    def held(self, body, overlap=lambda a, b: a is b, variables=(), relaxed=False):
        parts, i = Parts([self.x, self.out], variables, relaxed, overlap=overlap), Var("i")
        parts.invariants.hold_loads(body(i), i)
        return parts

    def test_a_load_that_the_loop_repeats_is_held(self):
        load = self.x[i32(3)]
        parts = self.held(lambda i: [Store(self.out, i, load + self.x[i])])
        assert set(parts.held.scalars) == {load} and not parts.held.splats

    def test_but_not_one_that_it_may_change(self):
        load = self.x[i32(3)]
        assert not self.held(lambda i: [Store(self.out, i, load)], overlap=lambda a, b: True).held.scalars
        assert not self.held(lambda i: [Store(self.out, i, self.out[i32(0)])]).held.scalars

    def test_nor_one_that_may_not_run(self):
        load = self.x[i32(3)]
        n = Var("n")
        branch = lambda i: [If(lt(i, 3), [Store(self.out, i, load)], [])]
        assert not self.held(branch).held.scalars
        assert not self.held(lambda i: [For(Var("j"), n, [Store(self.out, i, load)])], variables=[n]).held.scalars
        assert not self.held(lambda i: [For(Var("j"), 0, [Store(self.out, i, load)])]).held.scalars
        assert not self.held(lambda i: [Fail(1), Store(self.out, i, load)]).held.scalars
        assert self.held(lambda i: [For(Var("j"), 2, [Store(self.out, i, load)])]).held.scalars

    def test_nor_more_than_some(self):
        loads = [self.x[i32(k % 8)] for k in range(MAX_HOISTED + 5)]
        parts = self.held(lambda i: [Store(self.out, i, e) for e in loads])
        assert len(parts.held.scalars) == MAX_HOISTED

    def test_splats_of_what_is_held(self):
        load, other = self.x[i32(3)], self.x[i32(4)]
        parts = self.held(lambda i: [Store(self.out, i, load + other)])
        parts.in_lanes(4)
        assert len(parts.invariants.hold_splats([Store(self.out, Var("i"), load)])) == 1 and set(parts.held.splats) == {
            load
        }

    def test_constants_are_held_once_each(self):
        parts, i = Parts([self.x, self.out]), Var("i")
        parts.in_lanes(4)
        body = [
            Store(self.out, i, self.x[i] * 2.0 + 2.0),
            Let(Var("z", "f32"), f32(0.0) * f32(-0.0)),
            Let(Var("s"), Binary("shl", i, i32(3))),
        ]
        assert len(parts.invariants.hold_constants(body)) == 3 and set(parts.held.constants) == {
            ("f32", "2.0"),
            ("f32", "0.0"),
            ("f32", "-0.0"),
        }

    def test_reciprocals(self):
        d, i = Var("d", "f32"), Var("i")
        parts = Parts([self.x, self.out], [d], relaxed=True)
        parts.scope.env[i] = 0
        var = parts.in_lanes(4)
        parts.scope.env[var] = 0
        invariants, changing = self.x[var] / d, self.x[var] / self.x[var]
        body = [Store(self.out, var, invariants + changing)]
        parts.invariants.hold_reciprocals(body)
        assert set(parts.held.quotients) == {invariants}
        parts.invariants.forget_reciprocals()
        assert not parts.held.quotients and set(parts.scope.env) == {d, i, var}
        assert parts.vectors.relaxed and not Parts([self.x], [d]).invariants.hold_reciprocals(body)


class TestBlocks:
    def test_bindings_end_with_their_block(self):
        parts, a, b = Parts(), Var("a"), Var("b")
        blocks = Blocks(parts.scope)

        def let(s):
            parts.scope.env[s.var] = parts.fn.new_local(I32)
            return s.var

        blocks.add({Let: let, Barrier: lambda s: None})
        bound = blocks.open_block([Let(a, i32(1)), Barrier(), Let(b, i32(2))])
        assert bound == [a, b] and set(parts.scope.env) == {a, b}
        parts.scope.end(bound)
        blocks.block([Let(a, i32(1))])
        assert not parts.scope.env and parts.fn.new_local(I32) in (0, 1)

    def test_kinds_that_nobody_emits_are_refused(self):
        with pytest.raises(KeyError):
            Blocks(Parts().scope).block([Barrier()])


class TestInterleaving:
    out, x = Buffer("o", "f32", (64,), "output"), Buffer("x", "f32", (64,), "input")

    def grouped(self, body, lanes=4, overlap=lambda a, b: a is b):
        parts = Parts([self.out, self.x], overlap=overlap)
        parts.scope.lanes = None
        parts.in_lanes(lanes)
        parts.scope.lanes.var = self.i
        part = Interleaving(
            parts.fn, parts.scope, parts.storage, parts.shared, parts.addresses, parts.scalars, parts.vectors
        )
        return [len(s.stores) if type(s) is Interleaved else 1 for s in part.grouped(body)]

    i = Var("i")

    def stores(self, stride, count, start=0):
        return [Store(self.out, self.i * stride + start + k, self.x[self.i] + float(k)) for k in range(count)]

    def test_neighbours_are_grouped(self):
        assert self.grouped(self.stores(4, 4)) == [4]
        assert self.grouped(self.stores(2, 2)) == [2]
        assert self.grouped(self.stores(7, 7)) == [4, 2, 1]
        assert self.grouped([*self.stores(4, 2), Let(Var("a"), i32(1)), *self.stores(4, 2, 2)]) == [2, 1, 2]

    def test_what_is_no_neighbour_or_may_be_read_is_not(self):
        assert self.grouped(self.stores(1, 1) + self.stores(1, 1)) == [1, 1]
        assert self.grouped([self.stores(4, 1)[0], *self.stores(4, 2, 2)]) == [1, 2]
        assert self.grouped(self.stores(4, 4), lanes=2) == [1] * 4  # f32 in 2 lanes are half a vector
        assert self.grouped(self.stores(4, 4), overlap=lambda a, b: True) == [1] * 4

    @pytest.mark.parametrize(("count", "stride"), [(2, 2), (2, 3), (2, 5), (4, 4), (4, 6)])
    def test_memory_is_as_if_stored_one_by_one(self, count, stride):
        parts = Parts([self.out, self.x])
        parts.in_lanes(4, 2)
        parts.scope.lanes.var = self.i
        parts.scope.env[self.i], parts.scope.offset[self.i] = None, 0
        part = Interleaving(
            parts.fn, parts.scope, parts.storage, parts.shared, parts.addresses, parts.scalars, parts.vectors
        )
        part.store(Interleaved(self.stores(stride, count)))
        memory = run(parts.fn, 512, 0, memory=struct.pack("<64f", *range(64)))[1][512:]
        want = [0.0] * 64
        for i, k in itertools.product(range(8), range(count)):
            want[i * stride + k] = float(i + k)
        assert list(struct.unpack_from("<64f", memory)) == want


class TestStatements:
    def made(self, buffers=(), variables=()):
        parts = Parts(buffers, variables)
        blocks = Blocks(parts.scope)
        blocks.add(Simple(parts.fn, parts.scope, parts.storage, parts.shared, parts.scalars, parts.vectors).kinds)
        blocks.add(Branches(parts.fn, parts.scope, parts.scalars, blocks).kinds)
        return parts, blocks

    def result(self, body, result, *args, variables=()):
        parts, blocks = self.made(variables=variables)
        acc = Local("acc", "i32")
        bound = blocks.open_block([Declare(acc, i32(0)), *body(acc)])
        parts.scalars.alone(result(acc))
        parts.scope.end(bound)
        assert set(parts.scope.env) == set(variables)
        return run(parts.fn, *args, results=[I32])[0]

    def test_bindings_and_changes(self):
        a = Var("a")
        assert (
            self.result(lambda acc: [Let(a, acc + 5), Assign(acc, a * a), Assign(acc, acc + a)], lambda acc: acc) == 30
        )

    @pytest.mark.parametrize(("x", "want"), [(1, 10), (5, 20)])
    def test_if(self, x, want):
        v = Var("x")
        body = lambda acc: [If(lt(v, 3), [Assign(acc, i32(10))], [Assign(acc, i32(20))])]
        assert self.result(body, lambda acc: acc, x, variables=[v]) == want

    @pytest.mark.parametrize("x", [-3, 0, 1, 2, 7])
    @pytest.mark.parametrize("n", [1, 3])
    def test_switch(self, x, n):
        v = Var("x")
        body = lambda acc: [Switch(v, [[Assign(acc, acc + (k + 1))] for k in range(n)])]
        assert self.result(body, lambda acc: acc * 10, x, variables=[v]) == 10 * (min(max(x, 0), n - 1) + 1)

    @pytest.mark.parametrize("x", [0, 1, 5])
    def test_while(self, x):
        v, twice = Var("x"), Var("twice")
        body = lambda acc: [While([Let(twice, acc * 2)], Compare("lt", twice, v * 2), [Assign(acc, acc + 1)])]
        assert self.result(body, lambda acc: acc, x, variables=[v]) == x

    @pytest.mark.parametrize("in_lanes", [False, True])
    @pytest.mark.parametrize("kind", ["let", "declare", "assign", "store"])
    def test_what_a_statement_shares_ends_with_it(self, kind, in_lanes):
        out, v, acc = Buffer("o", "i32", (8,), "output"), Var("v"), Local("acc", "i32")
        parts, blocks = self.made([out], [v])
        if in_lanes:
            parts.scope.env[parts.in_lanes(4)] = None
            parts.scope.offset[parts.scope.lanes.var] = 0
        blocks.open_block([Declare(acc, i32(0))])
        total = acc + v
        twice = total * total

        def emit():
            before = parts.fn.local_types.copy()
            statement = {
                "let": Let(Var("a"), twice),
                "declare": Declare(Local("b", "i32"), twice),
                "assign": Assign(acc, twice),
                "store": Store(out, i32(0), twice),
            }[kind]
            parts.scope.end(blocks.open_block([statement]))
            return parts.fn.local_types[len(before) :]

        assert emit() and not emit(), "the second takes the locals of the first"
        assert not parts.shared.cache and not parts.shared.refs

    def test_stores_of_16_bit_floats(self):
        half, v = Buffer("h", "f16", (4,), "output"), Var("v", "f32")
        parts, blocks = self.made([half], [v])
        blocks.block([Store(half, i32(2), Convert(v, "f16"))])
        assert from_bits(run(parts.fn, 0, 1.5)[1][4:6], "f16") == 1.5

    def test_in_lanes_names_have_a_local_for_each_vector(self):
        parts, blocks = self.made()
        i, a, acc = parts.in_lanes(4, 2), Var("a"), Local("acc", "i32")
        parts.scope.env[i] = None
        bound = blocks.open_block(
            [Let(a, i * 2), Let(Var("same"), i32(3) + i32(4)), Declare(acc, i32(0)), Assign(acc, acc + a)]
        )
        assert [len(parts.scope.vectors(n)) for n in (a, acc)] == [2, 2] and parts.scope.local(bound[1]) is not None


class TestLoops:
    class Nobody:
        takes = lambda self, s: False

    class Everybody:
        def __init__(self):
            self.taken = []

        def takes(self, s):
            self.taken.append(s)
            return True

    def emitted(self, s, functions, simd=True, in_lanes=None, variables=()):
        parts = Parts(variables=variables)
        trace = Trace(parts)
        Loops(parts.fn, parts.scope, parts.scalars, counted(parts, trace), in_lanes, functions, simd).loop(s)
        return parts, trace

    def test_extents(self):
        i, n = Var("i"), Var("n")
        for extent in (-2, 0, 3, i32(3)):
            _, trace = self.emitted(For(i, extent, [i]), self.Nobody())
            assert trace.values() == list(range(extent if isinstance(extent, int) else 3))
        _, trace = self.emitted(For(i, n + 1, [i]), self.Nobody(), variables=[n])
        assert trace.values(3) == [0, 1, 2, 3]

    def test_a_variable_counts_as_not_negative_in_its_loop_alone(self):
        i = Var("i")
        parts, _ = self.emitted(For(i, 4, [i]), self.Nobody())
        assert i not in parts.scope.loop_vars

    def test_functions_are_asked_first(self):
        s, everybody = For(Var("i"), 4, []), self.Everybody()
        parts, _ = self.emitted(s, everybody)
        assert everybody.taken == [s] and not parts.fn.code

    def test_vector_loops_run_in_lanes_where_there_are_any(self):
        class Lanes:
            seen = []
            known = lambda self, s, extent: self.seen.append(extent)

        i = Var("i")
        s = For(i, 8, [i], "parallel", 2)
        self.emitted(s, self.Nobody(), in_lanes=Lanes())
        assert Lanes.seen == [8]
        _, trace = self.emitted(s, self.Nobody(), simd=False)
        assert trace.values() == list(range(8))
