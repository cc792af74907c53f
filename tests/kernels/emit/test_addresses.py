"""Addresses, made with an evaluator that knows numbers."""

import itertools

import pytest
from emit_harness import Base, Constants, run
from weft_wasm.emit_wasm.address import SAFE_OFFSET, Addresses
from weft_wasm.binary.encode import I32, I64
from weft_wasm.ir.affine import linear
from weft_wasm.ir.nodes import Buffer, Const, For, Store, Var, f32, i32


def made(buffers, values, **options):
    base = Base(buffers, list(values), **options)
    base.scope.loop_vars |= set(values)
    return base, Addresses(base.fn, base.scope, base.storage, base.shared), Constants(base.fn, values)


@pytest.mark.parametrize("pointer", [I32, I64])
@pytest.mark.parametrize("extra", [0, 3, -2])
def test_an_address_is_that_of_the_element(pointer, extra):
    x, i, j = Buffer("x", "f32", (100,), "input"), Var("i"), Var("j")
    base, addresses, evaluator = made([x], {i: 5, j: 2}, pointer=pointer)
    offset = addresses.push(evaluator, x, i * 10 + j + 7, extra)
    base.fn.add_bytes(offset)
    assert run(base.fn, 1000, 5, 2, results=[pointer])[0] == 1000 + 4 * (59 + extra) and not evaluator.asked


def test_terms_that_are_not_linear_are_evaluated():
    x, i, j = Buffer("x", "i64", (100,), "input"), Var("i"), Var("j")
    term = i * j
    base, addresses, evaluator = made([x], {i: 5, j: 2})
    evaluator.values = {term: 10}
    base.fn.add_bytes(addresses.push(evaluator, x, term * 2 + 1, at=(0, 3)))
    assert run(base.fn, 64, 5, 2, results=[I32])[0] == 64 + 8 * 21 and evaluator.asked == [(term, (0, 3))]


def test_constants_are_offsets_only_where_the_address_can_not_be_before_the_buffer():
    x, i, j = Buffer("x", "f32", (1000,), "input"), Var("i"), Var("j")
    _, addresses, evaluator = made([x], {i: 1, j: 1})
    assert addresses.push(evaluator, x, i + 500) == 2000
    assert addresses.push(evaluator, x, i * 2 - j + 500) == 0  # i·2 - j may be negative
    assert addresses.push(evaluator, x, i - j + 4) == 16 <= SAFE_OFFSET
    assert addresses.push(evaluator, x, i - 4) == 0


def test_an_unrolled_variable_counts_with_its_constant_part():
    x, i = Buffer("x", "f32", (1000,), "input"), Var("i")
    base, addresses, evaluator = made([x], {i: 1})
    base.scope.offset[i] = 3
    assert addresses.push(evaluator, x, i * 2) == 24
    base.scope.env[i] = None  # all of it is constant
    base.fn.code.clear()
    assert addresses.push(evaluator, x, i * 2) == 24 and base.fn.code.hex() == "2000"


class TestLoops:
    def test_accesses_that_differ_by_a_constant_share_a_pointer(self):
        x, out, i, n = Buffer("x", "f32", (100,), "input"), Buffer("o", "f32", (100,), "output"), Var("i"), Var("n")
        body = [Store(out, i, x[i * 3] + x[i * 3 + 2] + x[n])]
        base, addresses, evaluator = made([x, out], {i: 0, n: 4})
        locals_ = len(base.fn.local_types)
        increments = addresses.enter(evaluator, body, i, step=2)
        assert sorted(step for _, step in increments) == [8, 24] and len(base.fn.local_types) - locals_ == 3
        start = len(base.fn.code)
        assert addresses.push(evaluator, x, body[0].value.a.a.index) == 0
        assert addresses.push(evaluator, x, body[0].value.a.b.index) == 8
        code = bytes(base.fn.code[start:])
        assert code[:2] == code[2:]  # the same local twice
        addresses.leave()
        start = len(base.fn.code)
        assert addresses.push(evaluator, x, body[0].value.a.b.index) == 8 and len(base.fn.code) - start > 2
        assert [base.fn.new_local(I32) for _ in range(3)] and len(base.fn.local_types) - locals_ == 3

    @pytest.mark.parametrize("first", [0, 2])
    def test_a_pointer_that_moves_is_where_the_access_is(self, first):
        x, i, n = Buffer("x", "f64", (100,), "input"), Var("i"), Var("n")
        index = i * 3 + n * 7 - 2
        base, addresses, evaluator = made([x], {i: 0, n: 4})
        ((pointer, step),) = addresses.enter(evaluator, [Store(x, index, f32(0.0))], i, step=1)
        for _ in range(5):
            base.fn.get(pointer)
            base.fn.add_bytes(step)
            base.fn.set(pointer)
        base.fn.add_bytes(addresses.push(evaluator, x, index))
        assert run(base.fn, 800, first, 4, results=[I32])[0] == 800 + 8 * ((first + 5) * 3 + 4 * 7 - 2)

    def test_without_pointers_addresses_are_computed_where_they_are_used(self):
        x, i = Buffer("x", "f32", (100,), "input"), Var("i")
        base, _, evaluator = made([x], {i: 0})
        addresses = Addresses(base.fn, base.scope, base.storage, base.shared, loops=False)
        assert addresses.enter(evaluator, [Store(x, i, f32(0.0))], i, 1) == [] and not base.fn.code
        addresses.leave()

    def test_inner_loops_count_as_the_loop(self):
        x, i, j = Buffer("x", "f32", (100,), "input"), Var("i"), Var("j")
        body = [For(j, 5, [Store(x, i * 5 + j, x[i])])]
        _, addresses, _ = made([x], {i: 0})
        assert [(b, set(linear(e)[0])) for b, e in addresses.accesses(body)] == [(x, {i}), (x, {i, j})]


def test_strides_between_lanes():
    base, addresses, _ = made([], {})
    i, j, x = base.in_lanes(4), Var("j"), Buffer("x", "i32", (8,), "input")
    base.scope.env[j] = 0
    stride = addresses.stride
    assert [stride(e) for e in (i, i * 3 + j, j, i + x[j], x[i] + j, i * j)] == [1, 3, 0, 1, None, None]
    assert [addresses.lane_extra(i * 3 + j, u, lane) for u, lane in itertools.product(range(2), (0, 3))] == [
        0,
        9,
        12,
        21,
    ]
    assert linear(Const(4, "i32")) == ({}, 4) and addresses.stride(i32(3)) == 0
