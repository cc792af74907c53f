"""Random loop nests: the compiled module and the interpreter agree, with every schedule."""

import numpy as np
import pytest
from kernel_harness import NUMPY, assert_same, random_array, run_interpreted, run_wasm
from random_kernels import Kernels
from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import (
    Assign,
    Binary,
    Bitcast,
    Buffer,
    Compare,
    Const,
    Convert,
    Declare,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    MulAdd,
    Program,
    Select,
    Store,
    Switch,
    Unary,
    Var,
    While,
    i32,
)

DTYPES = ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "f16", "bf16"]
COMPUTE = [d for d in DTYPES if d not in ("f16", "bf16")]
ARITHMETIC = ["add", "sub", "mul", "div", "min", "max"]


class Generator:
    """Expressions over some leaves, of a given dtype."""

    def __init__(self, rng: np.random.Generator, leaves: list[nodes.Expr]):
        self.rng, self.leaves, self.made = rng, leaves, []

    def pick(self, items):
        return items[self.rng.integers(len(items))]

    def leaf(self, dtype: str) -> nodes.Expr:
        same = [e for e in self.leaves if e.dtype == dtype]
        if same and self.rng.random() < 0.85:
            return self.pick(same)
        if self.rng.random() < 0.5 and self.leaves:
            return nodes.convert(self.pick(self.leaves), dtype)
        if dtype in ("f16", "bf16"):
            return Convert(Const(1.5, "f32"), dtype)
        return Const(bool(self.rng.integers(2)) if dtype == "bool" else int(self.rng.integers(0, 9)), dtype)

    def expr(self, dtype: str, depth: int) -> nodes.Expr:
        shared = [e for e in self.made if e.dtype == dtype]
        if shared and self.rng.random() < 0.2:
            return self.pick(shared)
        e = self.leaf(dtype) if depth == 0 else self.node(dtype, depth - 1)
        assert e.dtype == dtype
        self.made.append(e)
        return e

    def node(self, dtype: str, d: int) -> nodes.Expr:
        choice = self.rng.random()
        if choice < 0.12:
            return Select(
                self.expr("bool", d), self.expr(dtype, d), self.expr(dtype, d), rare=bool(self.rng.random() < 0.3)
            )
        if choice < 0.24 or dtype in ("f16", "bf16"):
            return nodes.convert(self.expr(self.pick(DTYPES if dtype == "f32" else COMPUTE), d), dtype)
        if choice < 0.3 and dtype != "bool":
            other = self.pick([x for x in COMPUTE if nodes.ITEMSIZE[x] == nodes.ITEMSIZE[dtype] and x != "bool"])
            # the payload of a NaN is unspecified, so float bits are only read from loads, which keep them
            source = self.leaf(other) if other[0] == "f" else self.expr(other, d)
            if other[0] == "f" and type(source) is not Load:
                return self.expr(dtype, d)
            return nodes.bitcast(source, dtype)
        if dtype == "bool":
            if choice < 0.65:
                other = self.pick(COMPUTE)
                return Compare(self.pick(sorted(nodes.COMPARE_OPS)), self.expr(other, d), self.expr(other, d))
            if choice < 0.75:
                return Unary("not", self.expr("bool", d))
            return Binary(self.pick(["and", "or", "xor"]), self.expr("bool", d), self.expr("bool", d))
        if dtype in ("f32", "f64"):
            if choice < 0.5:
                op = self.pick(["neg", "abs", "floor", "ceil", "trunc", "round_even", "round_away", "sqrt"])
                return Unary(op, self.expr(dtype, d))
            if choice < 0.6:
                return MulAdd(self.expr(dtype, d), self.expr(dtype, d), self.expr(dtype, d))
            return Binary(self.pick(ARITHMETIC), self.expr(dtype, d), self.expr(dtype, d))
        if choice < 0.45:
            return Unary(self.pick(["neg", "abs", "not", "popcount", "clz"]), self.expr(dtype, d))
        op = self.pick([*ARITHMETIC, "rem", "and", "or", "xor", "shl", "shr", "shl", "shr"])
        right = (
            Const(int(self.rng.integers(0, 8)), dtype)
            if op in ("shl", "shr") and self.rng.random() < 0.5
            else self.expr(dtype, d)
        )
        return Binary(op, self.expr(dtype, d), right)


def elementwise_program(rng: np.random.Generator) -> Program:
    n = int(rng.integers(1, 40))
    pad = 8
    pick = lambda items: items[rng.integers(len(items))]  # noqa: E731
    inputs = [Buffer(f"x{k}", pick(DTYPES), (3 * n + pad,), "input") for k in range(rng.integers(1, 5))]
    if rng.random() < 0.5:  # mostly one width, as real kernels are
        inputs = [Buffer(b.name, pick(["f32", "i32", "u32", "bool", "i8", "bf16"]), b.shape, "input") for b in inputs]
    i = Var("i")
    index = lambda: pick([i, i, i, i + 3, i * 2, i * 3 + 1, i32(2), i32(n) - i, nodes.rem(i * 7, n)])  # noqa: E731
    leaves: list = [b[index()] for b in inputs for _ in range(2)] + [i]
    generator = Generator(rng, leaves)
    body: list = []
    for k in range(rng.integers(0, 3)):
        value = generator.expr(pick(COMPUTE), int(rng.integers(1, 3)))
        v = Var(f"v{k}", value.dtype)
        body.append(Let(v, value))
        generator.leaves.append(v)
    outputs = []
    for k in range(rng.integers(1, 3)):
        dtype = pick(DTYPES)
        where, size = pick([(i, n), (i, n + 5), (i * 2, 2 * n), (i32(n - 1) - i, n), (i + 1, n + 1)])
        out = Buffer(f"o{k}", dtype, (size,), "output")
        outputs.append(out)
        body.append(Store(out, where, generator.expr(dtype, int(rng.integers(1, 5)))))
    first = [For(Var("z"), out.size, []) for out in outputs]
    for loop, out in zip(first, outputs):
        zero = Const(0, "f32") if out.dtype in ("f16", "bf16") else Const(0, out.dtype)
        loop.body.append(Store(out, loop.var, nodes.convert(zero, out.dtype)))
    vector = pick([0, 1, 2, 4])
    return Program(
        "random", inputs, outputs, [], [Kernel("random", [*first, For(i, n, body, "parallel", vector=vector)])]
    )


@pytest.mark.parametrize("block", range(8))
def test_elementwise(block):
    for seed in range(40 * block, 40 * block + 40):
        rng = np.random.default_rng(seed)
        program = elementwise_program(rng)
        inputs = [random_array(rng, b.dtype, b.shape) for b in program.inputs]
        expected = run_interpreted(program, *inputs)
        for schedule in (True, False):
            for a, b in zip(run_wasm(program, *inputs, schedule=schedule), expected):
                assert_same(a, b, f"seed {seed}, schedule={schedule}\n{program}")


@pytest.mark.parametrize("seed", range(60))
def test_reductions(seed):
    rng = np.random.default_rng(seed)
    dtype = ["i32", "u32", "i8", "u16", "i64", "u64", "bool", "f32", "f64"][seed % 9]
    ops = {"bool": ["and", "or", "xor"], "f32": ["min", "max", "add"], "f64": ["min", "max", "add"]}
    op = rng.choice(ops.get(dtype, ["add", "mul", "min", "max", "and", "or", "xor"]))
    rows, n = int(rng.integers(1, 9)), int(rng.integers(1, 90))
    x = Buffer("x", dtype, (rows, n), "input")
    by_row, by_column = Buffer("r", dtype, (rows,), "output"), Buffer("c", dtype, (n,), "output")
    i, j, i2, j2 = (Var(s) for s in ("i", "j", "i", "j"))
    acc, acc2 = Local("acc", dtype), Local("acc", dtype)
    start = Const({"min": 100, "mul": 1, "and": True if dtype == "bool" else 1}.get(op, 0), dtype)
    vector, unroll = int(rng.choice([0, 1, 2, 4])), int(rng.choice([1, 2, 3]))
    value, value2 = x[i * n + j], x[i2 * n + j2]
    kernel = Kernel(
        "k",
        [
            For(
                i,
                rows,
                [
                    Declare(acc, start),
                    For(j, n, [Assign(acc, Binary(op, acc, value))], "reduce", vector, unroll if not vector else 1),
                    Store(by_row, i, acc),
                ],
                "parallel",
            ),
            For(
                j2,
                n,
                [
                    Declare(acc2, start),
                    For(i2, rows, [Assign(acc2, Binary(op, value2, acc2))], "reduce", unroll=unroll),
                    Store(by_column, j2, acc2),
                ],
                "parallel",
                vector,
            ),
        ],
    )
    program = Program("reduce", [x], [by_row, by_column], [], [kernel])
    data = random_array(rng, dtype, x.shape)
    if dtype[0] == "f" and op == "add":
        data = np.nan_to_num(data, posinf=1, neginf=-1).clip(-100, 100)
    for schedule in (True, False):
        for a, b in zip(run_wasm(program, data, schedule=schedule), run_interpreted(program, data)):
            if dtype[0] == "f" and op == "add":
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-3)
            else:
                assert_same(a, b, f"{program}")


@pytest.mark.parametrize("block", range(5))
def test_kernels_and_control_flow(block):
    """Statements that lowering does not make, too."""
    for seed in range(8 * block, 8 * block + 8):
        made = Kernels(seed)
        program, data = made.program(), made.data()
        expected = run_interpreted(program, *data)
        for schedule in (True, False):
            for got, want in zip(run_wasm(program, *data, schedule=schedule), expected, strict=True):
                np.testing.assert_array_equal(got, want, f"seed {seed}, schedule={schedule}\n{program}")


@pytest.mark.parametrize("extent", [-3, 0, 1, 3, 4, 17, 64, 100])
@pytest.mark.parametrize("vector", [0, 1, 4])
def test_dynamic_extents(extent, vector):
    count, x = Buffer("count", "i32", (), "input"), Buffer("x", "f32", (100,), "input")
    out, total = Buffer("out", "f32", (100,), "output"), Buffer("total", "i32", (), "output")
    z, i, j, n = Var("z"), Var("i"), Var("j"), Var("n")
    acc = Local("acc", "i32")
    program = Program(
        "dynamic",
        [count, x],
        [out, total],
        [],
        [
            Kernel(
                "k",
                [
                    For(z, 100, [Store(out, z, nodes.f32(0.0))]),
                    Let(n, count[0]),
                    For(i, n, [Store(out, i, x[i] * 2.0)], "parallel", vector),
                    Declare(acc, i32(0)),
                    For(j, n, [Assign(acc, acc + j)], "reduce", vector),
                    Store(total, i32(0), acc),
                ],
            )
        ],
    )
    data = np.arange(100, dtype=np.float32)
    got, sum_ = run_wasm(program, np.int32(extent), data)
    k = max(extent, 0)
    np.testing.assert_array_equal(got, np.where(np.arange(100) < k, data * 2, 0))
    assert sum_ == k * (k - 1) // 2


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 7])
def test_control_flow(index):
    """Program-level loops, branches and conditions; kernels that use the loop variable; carries through copies."""
    where, x = Buffer("where", "i32", (), "input"), Buffer("x", "i32", (4, 3), "input")
    out, trace = Buffer("out", "i32", (3,), "output"), Buffer("trace", "i32", (4, 3), "output")
    carry, fresh, flag = Buffer("carry", "i32", (3,)), Buffer("fresh", "i32", (3,)), Buffer("flag", "bool", ())
    t, counter = Var("t"), Buffer("counter", "i32", ())

    def over(body, n=3):
        i = Var("i")
        return For(i, n, body(i), "parallel")

    step = Kernel(
        "step", [over(lambda i: [Store(fresh, i, carry[i] * 2 + x[t * 3 + i]), Store(trace, t * 3 + i, carry[i])])]
    )
    branches = [[Kernel(f"case{k}", [over(lambda i, k=k: [Store(carry, i, carry[i] + 10 * k)])])] for k in range(3)]
    low = Var("low")
    program = Program(
        "control",
        [where, x],
        [out, trace],
        [carry, fresh, flag, counter],
        [
            Kernel("zero", [over(lambda i: [Store(carry, i, i32(1))]), Store(counter, i32(0), i32(0))]),
            For(t, 4, [step, nodes.Copy(carry, fresh, 3)]),
            Switch(where[0], branches),
            While(
                [Kernel("test", [Store(flag, i32(0), nodes.lt(counter[0], 3))])],
                flag[0],
                [
                    Kernel(
                        "body",
                        [
                            Let(low, counter[0]),
                            Store(counter, i32(0), low + 1),
                            over(lambda i: [Store(carry, i, carry[i] + low)]),
                        ],
                    ),
                ],
            ),
            If(
                nodes.gt(where[0], 1),
                [Kernel("yes", [over(lambda i: [Store(out, i, carry[i])])])],
                [Kernel("no", [over(lambda i: [Store(out, i, -carry[i])])])],
            ),
        ],
    )
    data = np.arange(12, dtype=np.int32).reshape(4, 3)
    for a, b in zip(run_wasm(program, np.int32(index), data), run_interpreted(program, np.int32(index), data)):
        np.testing.assert_array_equal(a, b)


def test_in_place_with_ragged_ends():
    """Donated storage, lengths that no vector divides, nested rows: nothing is updated twice."""
    x, out = Buffer("x", "f32", (5, 7), "input"), Buffer("out", "f32", (5, 7), "output")
    i, j = Var("i"), Var("j")
    nest = For(i, 5, [For(j, 7, [Store(out, i * 7 + j, x[i * 7 + j] + 1.0)], "parallel", vector=1)], "parallel")
    program = Program("inplace", [x], [out], [], [Kernel("k", [nest])], donated={0: 0})
    from kernel_harness import compile_program, device

    d = device()
    data = np.arange(35, dtype=np.float32)
    p = d.alloc(data.nbytes)
    d.write(p, data)
    (q,) = d.run(d.load(compile_program(program)), [p], donated={0})
    assert q == p
    np.testing.assert_array_equal(np.frombuffer(d.read(q, data.nbytes), np.float32), data + 1)
    d.free(q)


@pytest.mark.parametrize("extent", range(2, 17))
@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_the_last_vector_stays_in_its_array(first, extent):
    """What it writes after the end would be in the next array where the padding is too short."""
    x, size = Buffer("x", "i32", (64,), "input"), first + extent
    out, last = Buffer("out", "i32", (size,), "output"), Buffer("last", "i32", (), "output")
    middle, after = Buffer("middle", "i32", (size,)), Buffer("after", "i32", (1,))  # larger temporaries lie first
    i, k, v = Var("i"), Var("k"), Var("v")
    body = [
        Kernel("after", [Store(after, i32(0), x[3] + 100)]),
        Kernel("start", [For(k, first, [Store(middle, k, k)], "parallel")]),
        Kernel("fill", [For(i, extent, [Store(middle, i + first, x[i] * 3)], "parallel", vector=1)]),
        Kernel("read", [For(v, size, [Store(out, v, middle[v])], "parallel")]),
        Kernel("last", [Store(last, i32(0), after[0])]),
    ]
    program = Program("padding", [x], [out, last], [middle, after], body)
    data = np.arange(64, dtype=np.int32) + 7
    for schedule in (True, False):
        for got, want in zip(run_wasm(program, data, schedule=schedule), run_interpreted(program, data), strict=True):
            np.testing.assert_array_equal(got, want)


def test_bitcast_keeps_bits():
    x, out = Buffer("x", "f32", (9,), "input"), Buffer("out", "u32", (9,), "output")
    i = Var("i")
    program = Program(
        "bits", [x], [out], [], [Kernel("k", [For(i, 9, [Store(out, i, Bitcast(x[i], "u32"))], "parallel")])]
    )
    data = np.array([0x7FA00001, 0xFFC00000, 0, 0x80000000, 1, 2, 3, 4, 5], np.uint32)
    np.testing.assert_array_equal(run_wasm(program, data.view(np.float32))[0], data)


@pytest.mark.parametrize("terms", ["hoisted first", "hoisted last"])
def test_an_index_that_a_hoisted_load_shares_with_a_pointer(terms):
    """What hoisting a load has computed is computed again for the pointers of the loop: its locals are given away by
    then.
    """
    row, weight, out = (
        Buffer("row", "f32", (2, 8), "input"),
        Buffer("weight", "f32", (2,), "input"),
        Buffer("out", "f32", (2, 8), "output"),
    )
    i, j = Var("i"), Var("j")
    above = nodes.clamp(0, i + (-1), 1)
    a, b = row[above * 8 + j], weight[above]
    value = row[i * 8 + j] + (b + a if terms == "hoisted first" else a + b)
    body = [For(i, 2, [For(j, 8, [Store(out, i * 8 + j, value)], "parallel")], "parallel")]
    program = Program("shared", [row, weight], [out], [], [Kernel("shared", body)])
    data = [np.arange(16, dtype=np.float32).reshape(2, 8), np.array([100, 200], np.float32)]
    np.testing.assert_array_equal(run_wasm(program, *data)[0], run_interpreted(program, *data)[0])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_bounds_that_are_constants(op, dtype):
    """NaN stays, and -0 is less than 0, whatever the bound and on whichever side it stands."""
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -1e-45, 3.0]
    x = Buffer("x", dtype, (len(special),), "input")
    bounds = [c for c in special if abs(c) != 5e-324 and abs(c) != 1e-45]
    out = Buffer("out", dtype, (2 * len(bounds), len(special)), "output")
    i = Var("i")
    made = [Binary(op, *pair) for c in bounds for pair in ((x[i], Const(c, dtype)), (Const(c, dtype), x[i]))]
    body = [Store(out, i + k * len(special), e) for k, e in enumerate(made)]
    program = Program("clip", [x], [out], [], [Kernel("clip", [For(i, len(special), body, "parallel", 1)])])
    data = np.array(special, NUMPY[dtype])
    assert_same(run_wasm(program, data)[0], run_interpreted(program, data)[0])
