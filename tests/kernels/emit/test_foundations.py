"""The parts that all others stand on: functions, scopes, storage, values that are there already, lanes of vectors."""

import struct

import pytest
from emit_harness import Base, put, run
from weft_wasm.emit_wasm import packing
from weft_wasm.emit_wasm.function import Function
from weft_wasm.binary.encode import F32, I32, I64, OP, V128
from weft_wasm.ir.nodes import Binary, Buffer, Call, Load, Local, Var, f32, i32


class TestFunction:
    def test_locals_that_were_given_back_are_given_out_by_type(self):
        fn = Function([I32, F32])
        a, b = fn.new_local(I32), fn.new_local(F32)
        assert (a, b) == (2, 3)
        fn.release(I32, a)
        assert fn.new_local(F32) == 4 and fn.new_local(I32) == a and fn.local_types == [I32, F32, F32]

    def test_many_locals(self):
        fn = Function([I32])
        locals_ = [fn.new_local(I32) for _ in range(400)]
        for k, local in enumerate(locals_):
            fn.const(k)
            fn.tee(local)
            fn.set(0)
        for local in locals_:
            fn.get(0)
            fn.get(local)
            fn.code += OP["i32.add"]
            fn.set(0)
        fn.get(0)
        assert run(fn, 0, results=[I32])[0] == 399 + sum(range(400))

    @pytest.mark.parametrize("pointer", [I32, I64])
    @pytest.mark.parametrize("factor", [0, 1, 2, 3, 64, 12, -4, 1 << 20])
    def test_arithmetic_on_addresses(self, pointer, factor):
        fn = Function([I32], pointer)
        fn.get(0)
        fn.as_bytes()
        fn.scale(factor)
        fn.add_bytes(-24)
        assert run(fn, 7, results=[pointer])[0] == 7 * factor - 24


class TestScope:
    def test_names_end_and_their_locals_are_given_back(self):
        base, x, y, n = Base(), Var("x", "f32"), Local("y", "f32"), Var("n")
        base.scope.env[x] = base.fn.new_local(F32)
        base.scope.env[y] = [base.fn.new_local(V128), base.fn.new_local(V128)]
        base.scope.env[n] = None
        assert (base.scope.local(x), base.scope.vectors(y)) == (0, [1, 2])
        base.scope.end([x, y, n])
        assert not base.scope.env and [base.fn.new_local(k) for k in (F32, V128, V128)] == [0, 2, 1]

    def test_what_is_somewhere_else_is_refused(self):
        base, x = Base(), Var("x", "f32")
        base.scope.env[x] = [5]
        with pytest.raises(RuntimeError, match="x is not in one local"):
            base.scope.local(x)
        base.scope.env[x] = 5
        with pytest.raises(RuntimeError, match="x is not in vectors"):
            base.scope.vectors(x)
        with pytest.raises(RuntimeError, match="no vector loop"):
            base.scope.vector

    def test_what_lanes_see(self):
        base = Base()
        i, j, x, y = base.in_lanes(4), Var("j"), Var("x", "f32"), Local("y", "f32")
        base.scope.env |= {i: 0, j: 1, x: 2, y: [3]}
        varying = base.scope.varying
        assert varying(i) and varying(i + j) and varying(x + y) and not varying(j * 2) and not varying(x)
        available = lambda e: base.scope.available(e, {})
        assert available(j * 3 + 1) and not available(i + j) and not available(y)
        assert not available(Buffer("b", "i32", (4,))[j]) and not available(Var("unbound"))


def test_views_of_half_precision_have_the_memory_of_their_buffer():
    storage, half = Base().storage, Buffer("x", "bf16", (8,), "input")
    view = storage.bits(half)
    assert (view.dtype, view.shape) == ("u16", (8,)) and storage.bits(half) is view
    assert storage.of(view) is half and storage.of(half) is half


class TestShared:
    def test_references_are_counted_through_what_is_emitted_instead(self):
        base, x = Base(), Var("x", "f32")
        once = Call("tanh", x)
        base.shared.open(once, x)
        assert base.shared.refs[once] == 1 and base.shared.refs[x] > 2
        quotient, instead = Binary("div", x, f32(2.0)), x * 0.5
        base.held.quotients[quotient] = instead
        base.shared.open(quotient, quotient)
        assert base.shared.refs[quotient] == 2 and base.shared.refs[instead] == base.shared.refs[x] == 1

    def test_temporaries_end_with_the_statement(self):
        base, x = Base(), Var("x", "f32")
        base.shared.open(x)
        local = base.shared.temporary(F32)
        base.shared.cache[(x, None)] = local
        base.shared.close()
        assert not base.shared.cache and not base.shared.refs and base.fn.new_local(F32) == local


def test_what_a_loop_holds_ends_with_it():
    held, x, y = Base().held, Var("x"), Var("y")
    held.scalars[x] = 1
    held.enter()
    held.scalars[y], held.splats[x] = 2, 3
    assert (held.scalars, held.splats) == ({x: 1, y: 2}, {x: 3})
    held.leave()
    assert (held.scalars, held.splats) == ({x: 1}, {})


def test_expansions_are_made_once():
    base, half = Base(), Buffer("x", "f16", (8,), "input")
    load, e = Load(half, i32(3)), Call("exp", Var("x", "f32"))
    assert base.expansions.of(e) is base.expansions.of(e) is not None
    assert base.expansions.of(Var("x")) is base.expansions.of(f32(1.0)) is None
    assert base.expansions.of(load) is base.expansions.of(load) is not None


@pytest.mark.parametrize(
    ("dtype", "lanes"), [(d, n) for d in ("bool", "i32", "u8", "f32") for n in (2, 4)] + [("i64", 2), ("f64", 2)]
)
def test_lanes_go_in_and_come_out(dtype, lanes):
    values = [0, 1, 1, 0][:lanes] if dtype == "bool" else [3, 5, 7, 11][:lanes]
    fn = Function([])
    literals = {"f32": OP["f32.convert_i32_s"], "f64": OP["f64.convert_i32_s"], "i64": OP["i64.extend_i32_s"]}
    literal = literals.get(dtype, b"")
    for k, value in enumerate(values):
        fn.const(value)
        fn.code += literal
        packing.insert(fn, dtype, k, lanes) if k else packing.splat(fn, dtype, lanes)
    vector = fn.new_local(V128)
    fn.set(vector)
    for k in range(lanes):
        fn.get(vector)
        packing.extract(fn, dtype, k, lanes)
        put(fn, 64 + 8 * k, dtype)
    memory = run(fn)[1]
    width = {"f64": "<d", "i64": "<q", "f32": "<f"}.get(dtype, "<i")
    assert [struct.unpack_from(width, memory, 64 + 8 * k)[0] for k in range(lanes)] == values
