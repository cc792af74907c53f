"""Scalar and vector expressions, each operation on each dtype, against the interpreter of the loop IR. No addresses,
no statements.
"""

import functools
import math

import pytest
from emit_harness import Base, NoFunctions, lane_bytes, lane_value, put, put_vector, run
from weft_wasm.interpreter import interpret
from weft_wasm.emit_wasm.address import Addresses
from weft_wasm.emit_wasm.lane_plan import LanePlan
from weft_wasm.emit_wasm.scalars import Scalars
from weft_wasm.emit_wasm.tables import SCALAR
from weft_wasm.emit_wasm.vectors import Vectors
from weft_wasm.binary.encode import I32, OP, V128, memarg
from weft_wasm.ir.nodes import (
    BINARY_OPS,
    COMPARE_OPS,
    FLOATS,
    INTEGERS,
    ITEMSIZE,
    SIGNED,
    Binary,
    Bitcast,
    Buffer,
    Compare,
    Const,
    Convert,
    Let,
    Load,
    MulAdd,
    Select,
    Unary,
    Var,
    f32,
    i32,
)
from weft_wasm.ir.traversal import walk_expr
from weft_wasm.ir.nodes import int_range
from weft_wasm.ir.verify import _TYPES

DTYPES = ["bool", *sorted(INTEGERS), *sorted(FLOATS)]
UNARY = ["neg", "abs", "not", "floor", "ceil", "trunc", "round_even", "round_away", "sqrt", "popcount", "clz"]


def values(dtype: str) -> list:
    if dtype == "bool":
        return [False, True]
    if dtype in FLOATS:
        return [0.0, -0.0, 1.0, -2.5, 3.5, 1e9, -3e9, math.inf, -math.inf, math.nan]
    low, high = int_range(dtype)
    return sorted(
        {low, high, 0, 1, 3, high // 2 + 1, *([-1, -7] if dtype in SIGNED else [31, 64 if ITEMSIZE[dtype] > 1 else 8])}
    )


def same(got, want) -> bool:
    if isinstance(want, float):
        return (got != got and want != want) or (got == want and math.copysign(1, got) == math.copysign(1, want))
    return got == want


def expected(e, **bound):
    machine = interpret._Machine(interpret.Memory())
    machine.env.update({v: bound[v.name] for v in names(e)})
    return machine.value(e)


def names(e) -> list[Var]:
    return sorted({x for x in walk_expr(e) if type(x) is Var}, key=lambda v: v.name)


def parts(base: Base, relaxed=False):
    addresses = Addresses(base.fn, base.scope, base.storage, base.shared)
    scalars = Scalars(base.fn, base.scope, base.shared, base.held, base.expansions, addresses, NoFunctions())
    return scalars, Vectors(
        base.fn, base.scope, base.shared, base.held, base.expansions, addresses, scalars, NoFunctions(), relaxed
    )


def operations(dtype: str) -> list:
    """Well-typed expressions of a and b of a dtype, with an operation each."""
    a, b = Var("a", dtype), Var("b", dtype)
    made = (
        [Binary(op, a, b) for op in sorted(BINARY_OPS)]
        + [Compare(op, a, b) for op in sorted(COMPARE_OPS)]
        + [Unary(op, a) for op in UNARY]
    )
    made += [Convert(a, d) for d in DTYPES] + [
        Select(Compare("ne", a, b), a, b),
        Select(Compare("ne", a, b), a, b, rare=True),
    ]
    if dtype in FLOATS:
        made += [MulAdd(a, b, a), Select(Compare("lt", a, b), b, a), Select(Compare("gt", a, b), b, a)]
        made += [Binary(op, a, Const(c, dtype)) for op in ("min", "max") for c in (0.0, -0.0, 1.0, math.nan)]
    elif dtype != "bool":
        made += [Binary(op, a, Const(1, dtype)) for op in ("div", "rem", "shl", "shr")]
        made += [Bitcast(a, d) for d in sorted(INTEGERS) if ITEMSIZE[d] == ITEMSIZE[dtype]]
    return [e for e in made if _TYPES[type(e)](e) is None]


@functools.cache
def pairs(dtype: str) -> list[tuple]:
    return [(x, y) for x in values(dtype) for y in values(dtype)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars(dtype):
    for e in operations(dtype):
        todo = pairs(dtype)[:: 1 if len(names(e)) == 2 else len(values(dtype))]
        base = Base()
        scalars, _ = parts(base)
        local = {v: base.fn.new_local(SCALAR[dtype]) for v in names(e)}
        base.scope.env |= local
        for k, pair in enumerate(todo):
            for v in local:
                scalars.push(Const(pair["ab".index(v.name)], dtype))
                base.fn.set(local[v])
            scalars.alone(e)
            put(base.fn, 8 * k, e.dtype)
        memory = run(base.fn)[1]
        whole = {1: "i32", 2: "i32"}.get(ITEMSIZE[e.dtype], e.dtype)
        for k, (x, y) in enumerate(todo):
            got, want = interpret.from_bits(memory[8 * k :][: ITEMSIZE[whole]], whole), expected(e, a=x, b=y)
            assert same(got, want), (e, x, y, got, want)


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors(dtype, relaxed):
    for e in operations(dtype):
        base = Base()
        scalars, vectors = parts(base, relaxed)
        lanes = LanePlan(base.scope, base.storage, scalars.addresses, base.expansions).lanes(
            [Let(Var("e", e.dtype), e)]
        )
        base.in_lanes(lanes)
        todo = pairs(dtype)
        todo += todo[:1] * (-len(todo) % lanes)
        a, b, end = base.fn.new_local(V128), base.fn.new_local(V128), 16 * (len(todo) // lanes)
        base.scope.env |= {v: [{"a": a, "b": b}[v.name]] for v in names(e)}
        for k in range(0, end, 16):
            for local, start in ((a, 0), (b, end)):
                base.fn.const(start + k)
                base.fn.code += OP["v128.load"] + memarg(16, 0)
                base.fn.set(local)
            base.shared.open(e)
            vectors.push(e, 0)
            base.shared.close()
            put_vector(base.fn, 2 * end + k)
        data = [lane_bytes(pair[side], dtype, lanes) for side in range(2) for pair in todo]
        width = len(data[0])
        chunks = [b"".join(data[k : k + lanes]).ljust(16, b"\0") for k in range(0, len(data), lanes)]
        out = run(base.fn, memory=b"".join(chunks))[1][2 * end :]
        step = 16 // lanes if e.dtype == "bool" else max(4, ITEMSIZE[e.dtype])
        assert width in (4, 8)
        for k, (x, y) in enumerate(todo):
            at = 16 * (k // lanes) + step * (k % lanes)
            got, want = lane_value(out[at : at + step], e.dtype), expected(e, a=x, b=y)
            fused = relaxed and type(e) is MulAdd and math.isclose(got, want, rel_tol=1e-6)  # rounded once
            assert same(got, want) or fused, (e, x, y, got, want)


class TestScalars:
    def test_a_node_that_is_referred_to_twice_is_computed_once(self):
        x = Var("x")
        base = Base(variables=[x])
        scalars, _ = parts(base)
        twice = x * 3
        scalars.alone(twice + twice)
        assert bytes(base.fn.code).count(OP["i32.mul"]) == 1
        assert run(base.fn, 5, results=[I32])[0] == 30

    def test_what_a_rare_branch_computes_is_not_used_after_it(self):
        x = Var("x")
        base = Base(variables=[x])
        scalars, _ = parts(base)
        product = x * 3
        e = Select(Compare("lt", x, i32(0)), product + 1, i32(7), rare=True) + product
        scalars.alone(e)
        code = bytes(base.fn.code)
        for value, want in ((5, 22), (-2, -11)):
            base.fn.code[:] = code
            assert run(base.fn, value, results=[I32])[0] == want

    def test_a_value_held_by_a_loop_is_not_computed(self):
        x = Var("x")
        base = Base(variables=[x])
        scalars, _ = parts(base)
        e = x * x
        base.held.scalars[e] = 0
        scalars.alone(e)
        assert bytes(base.fn.code).hex() == "2000"

    def test_loads_of_every_dtype(self):
        for dtype in DTYPES:
            x, i = Buffer("x", dtype, (4,), "input"), Var("i")
            base = Base([x], [i])
            scalars, _ = parts(base)
            scalars.alone(Load(x, i + 1))
            put(base.fn, 128, dtype)
            want = values(dtype)[-1] if dtype not in FLOATS else 2.5
            memory = run(base.fn, 0, 1, memory=bytes(2 * ITEMSIZE[dtype]) + interpret.to_bits(want, dtype))[1]
            got = interpret.from_bits(
                memory[128:][: max(4, ITEMSIZE[dtype])], {1: "i32", 2: "i32"}.get(ITEMSIZE[dtype], dtype)
            )
            assert got == want, dtype

    def test_a_lane_of_what_all_lanes_share_is_that_value(self):
        x = Var("x")
        base = Base(variables=[x])
        scalars, _ = parts(base)
        i = base.in_lanes(4, 2)
        base.scope.env[i] = None
        base.scope.offset[i] = 10
        base.shared.open()
        scalars.push(x + 1, (1, 2))
        scalars.push(i * 10, (1, 2))  # lane 2 of vector 1: i = 10 + 4 + 2
        base.fn.code += OP["i32.add"]
        base.shared.close()
        assert run(base.fn, 5, results=[I32])[0] == 6 + 160

    def test_a_varying_name_needs_a_lane(self):
        base, y = Base(), Var("y", "f32")
        base.in_lanes(4)
        base.scope.env[y] = [base.fn.new_local(V128)]
        scalars, _ = parts(base)
        with pytest.raises(RuntimeError, match="another value in each lane"):
            scalars.push(y)


class TestVectors:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("stride", [1, 3])
    def test_loads_and_stores(self, dtype, stride):
        for lanes in (2,) if ITEMSIZE[dtype] == 8 else (2, 4):
            count, size = lanes * 2, ITEMSIZE[dtype]
            x, out = Buffer("x", dtype, (64,), "input"), Buffer("out", dtype, (64,), "output")
            base = Base([x, out])
            i = base.in_lanes(lanes, 2)
            base.scope.env[i], base.scope.offset[i] = None, 0
            _, vectors = parts(base)
            load = Load(x, i * stride + 1)
            for u in range(2):
                base.shared.open(load)
                vectors.store(out, i * stride + 2, load, u)
                base.shared.close()
            content = [values(dtype)[k % len(values(dtype))] for k in range(64)]
            data = b"".join(interpret.to_bits(v, dtype) for v in content)
            memory = run(base.fn, 0, 1024, memory=data)[1]
            for k in range(count):
                assert memory[1024 + (k * stride + 2) * size :][:size] == data[(k * stride + 1) * size :][:size], (
                    lanes,
                    k,
                )
            assert memory[1024 : 1024 + 2 * size] == bytes(2 * size)
            assert memory[1024 + (count * stride + 2) * size :][:64] == bytes(64)

    def test_constants_that_are_held_are_not_made(self):
        base = Base()
        base.in_lanes(4)
        _, vectors = parts(base)
        base.held.constants[("f32", "-0.0")] = 3
        vectors.constant(f32(-0.0))
        assert bytes(base.fn.code).hex() == "2003"
        vectors.constant(f32(0.0))
        assert len(base.fn.code) > 2

    def test_what_all_lanes_share_is_computed_once(self):
        x = Var("x", "i32")
        base = Base(variables=[x])
        base.in_lanes(4)
        _, vectors = parts(base)
        e = x * x
        base.shared.open(e, e)
        for address in (0, 16):
            vectors.push(e, address // 16)
            put_vector(base.fn, address)
        base.shared.close()
        assert bytes(base.fn.code).count(OP["i32.mul"]) == 1
        assert run(base.fn, 6)[1][:32] == (36).to_bytes(4, "little") * 8

    def test_a_quotient_is_what_stands_for_it(self):
        a, b = Var("a", "f32"), Var("b", "f32")
        base = Base()
        base.in_lanes(4)
        base.scope.env |= {a: [base.fn.new_local(V128)], b: [base.fn.new_local(V128)]}
        _, vectors = parts(base)
        e = a / b
        base.held.quotients[e] = a * b
        base.shared.open(e)
        vectors.push(e, 0)
        base.shared.close()
        assert OP["f32x4.mul"] in base.fn.code and OP["f32x4.div"] not in base.fn.code
