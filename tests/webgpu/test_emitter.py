"""What the WGSL emitter decides: grids, bindings, buffers, steps, refusals."""

import functools
import json
import operator
import re

import numpy as np
import pytest
from kernel_harness import NUMPY, run_interpreted
from weft_wasm.emit_wgsl import WgslError, as_words, compile_webgpu, from_words, memory_plan
from weft_wasm.ir.nodes import (
    ITEMSIZE,
    Assign,
    Barrier,
    Binary,
    Buffer,
    Call,
    Const,
    Convert,
    Copy,
    Declare,
    Fail,
    For,
    If,
    Kernel,
    Let,
    Local,
    MulAdd,
    Program,
    Store,
    Switch,
    Unary,
    Var,
    f32,
    gt,
    i32,
)
from webgpu_harness import device as make_device, kernels, plan_of, run_webgpu

gpu = pytest.mark.usefixtures("device")


def over(n, body) -> For:
    i = Var("i")
    return For(i, n, body(i), "parallel")


def vector(name, role="temp", n=10, dtype="f32") -> Buffer:
    return Buffer(name, dtype, (n,), role)


def steps_of(program, **limits) -> list[dict]:
    return plan_of(program, limits)["steps"]


def agree(program, *inputs, **limits):
    for a, b in zip(run_webgpu(program, *inputs, limits=limits), run_interpreted(program, *inputs)):
        np.testing.assert_array_equal(a, b)


# ---- dispatches


def test_a_nest_is_one_grid():
    x, out, i, j = vector("x", "input", 35), vector("out", "output", 35), Var("i"), Var("j")
    nest = For(i, 5, [For(j, 7, [Store(out, i * 7 + j, x[i * 7 + j])], "parallel")], "parallel")
    program = Program("p", [x], [out], [], [Kernel("k", [nest])])
    assert steps_of(program) == [{"op": "dispatch", "kernel": 0, "bind": [0, 1], "groups": [1, 1, 1]}]
    (text,) = kernels(program)
    assert "for (" not in text and "if (point >= 35u) { return; }" in text and "b1: array<f32>" in text


@gpu
def test_a_grid_of_many_groups_has_two_dimensions():
    n = 64 * 23
    x, out = vector("x", "input", n), vector("out", "output", n)
    program = Program("p", [x], [out], [], [Kernel("k", [over(n, lambda i: [Store(out, i, x[i] + 1.0)])])])
    assert steps_of(program, maxComputeWorkgroupsPerDimension=5)[0]["groups"] == [5, 5, 1]
    agree(program, np.arange(n), maxComputeWorkgroupsPerDimension=5)


@gpu
def test_statements_before_and_after_a_loop_get_dispatches():
    """A binding that a later loop needs is evaluated there again; equal kernels are kept once."""
    x, a, out = vector("x", "input"), vector("a"), vector("out", "output")
    scale = Var("scale", "f32")
    kernel = Kernel(
        "k",
        [
            Let(scale, x[0] * 2.0),
            over(10, lambda i: [Store(a, i, x[i] + scale)]),
            over(10, lambda i: [Store(out, i, a[Binary("sub", i32(9), i)] * scale)]),
            Store(out, i32(3), a[1]),
        ],
    )
    program = Program("p", [x], [out], [a], [kernel])
    assert [s["groups"] for s in steps_of(program)] == [[1, 1, 1]] * 3 and len(kernels(program)) == 3
    agree(program, np.arange(10))


@gpu
def test_a_binding_that_would_change_keeps_the_kernel_whole():
    x, out = vector("x", "input"), vector("out", "output")
    old = Var("old", "f32")
    kernel = Kernel(
        "k",
        [
            over(10, lambda i: [Store(out, i, x[i])]),
            Let(old, out[2]),
            over(10, lambda i: [Store(out, i, out[i] + old)]),
        ],
    )
    program = Program("p", [x], [out], [], [kernel])
    assert len(steps_of(program)) == 1
    agree(program, np.arange(10))


@gpu
def test_workgroup_memory_and_barriers_run_in_one_invocation():
    x, out, shared = vector("x", "input"), vector("out", "output"), Buffer("shared", "f32", (10,), "workgroup")
    fill, turn = (
        over(10, lambda i: [Store(shared, i, x[i])]),
        over(10, lambda i: [Store(out, i, shared[Binary("sub", i32(9), i)])]),
    )
    kernel = Kernel("k", [fill, Barrier(), turn], [shared])
    agree(Program("p", [x], [out], [], [kernel]), np.arange(10))


# ---- buffers


@gpu
@pytest.mark.parametrize("limit", [4, 8, 10])
def test_more_arrays_than_bindings(limit):
    """Arguments beyond the limit are copied into the arena, results out of it."""
    inputs = [vector(f"x{k}", "input") for k in range(13)]
    outs = [vector(f"o{k}", "output") for k in range(5)]
    total = lambda i, k: sum((x[i] for x in inputs[1:]), inputs[0][i] * float(k))  # noqa: E731
    program = Program(
        "many",
        inputs,
        outs,
        [],
        [Kernel("k", [over(10, lambda i: [Store(o, i, total(i, k)) for k, o in enumerate(outs)])])],
    )
    plan = plan_of(program, {"maxStorageBuffersPerShaderStage": limit})
    assert max(len(s["bind"]) for s in plan["steps"] if s["op"] == "dispatch") <= limit
    agree(program, *[np.arange(10) * k for k in range(13)], maxStorageBuffersPerShaderStage=limit)


@gpu
def test_copies_at_places_that_a_loop_counts_keep_to_the_bindings():
    x, out, t = vector("x", "input"), vector("out", "output"), Var("t")
    program = Program(
        "copies",
        [x],
        [out],
        [],
        [Kernel("k", [over(10, lambda i: [Store(out, i, x[i])])]), For(t, 3, [Copy(out, x, 2, t * 3, t)])],
    )
    (loop,) = [s for s in plan_of(program, {"maxStorageBuffersPerShaderStage": 3})["steps"] if s["op"] == "loop"]
    assert max(len(s["bind"]) for s in loop["body"] if s["op"] == "dispatch") <= 3
    agree(program, np.arange(10), maxStorageBuffersPerShaderStage=3)


@gpu
def test_large_temps_leave_the_arena():
    x, a, b, out = vector("x", "input", 1000), vector("a", n=1000), vector("b", n=1000), vector("out", "output", 1000)
    program = Program(
        "p",
        [x],
        [out],
        [a, b],
        [
            Kernel("k1", [over(1000, lambda i: [Store(a, i, x[i] + 1.0)])]),
            Kernel("k2", [over(1000, lambda i: [Store(b, i, a[Binary("sub", i32(999), i)])])]),
            Kernel("k3", [over(1000, lambda i: [Store(out, i, a[i] + b[i])])]),
        ],
    )
    assert sum(s["role"] == "temp" for s in plan_of(program)["buffers"]) == 1
    assert sum(s["role"] == "temp" for s in plan_of(program, {"maxStorageBufferBindingSize": 5000})["buffers"]) == 2
    lives = {"a": (1, 3), "b": (2, 3)}
    for limits in ({}, {"maxStorageBufferBindingSize": 5000}):  # apart: shown as if it lay behind the others
        first, second = memory_plan(program, limits)
        assert {slot.name: (slot.first, slot.last) for slot in (first, second)} == lives
        assert (first.type, first.nbytes, first.offset) == ("f32[1000]", 4000, 0) and second.offset >= 4000
    agree(program, np.arange(1000), maxStorageBufferBindingSize=5000)
    with pytest.raises(WgslError, match="binds at most 3000"):
        compile_webgpu(program, {"maxStorageBufferBindingSize": 3000})


NARROW = ["bool", "i8", "u8", "i16", "u16", "bf16", "f16"]


def bits(dtype, size):
    """Elements of a dtype, NaNs with all kinds of bits among them."""
    random = np.random.default_rng(size)
    if dtype == "bool":
        return random.integers(0, 2, size).astype(np.uint8)
    return random.integers(0, 1 << 8 * ITEMSIZE[dtype], size).astype(f"<u{ITEMSIZE[dtype]}")


@gpu
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 63, 130])
@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_elements_have_no_gaps(dtype, size):
    """In what a program is given, gives and has as constants: and all their bits are kept."""
    item, data = ITEMSIZE[dtype], bits(dtype, size)
    constant = Buffer("c", dtype, (size,), "constant", data.tobytes())
    x, temp = Buffer("x", dtype, (size,), "input"), Buffer("t", dtype, (size,))
    outs = [Buffer(f"out{k}", dtype, (size,), "output") for k in range(3)]
    body = [
        Kernel("k", [over(size, lambda i: [Store(outs[0], i, constant[i])])]),
        Copy(temp, x, size),
        Copy(outs[1], temp, size),
        Kernel("back", [over(size, lambda i: [Store(outs[2], i, x[i32(size - 1) - i])])]),
    ]
    program = Program("p", [x], outs, [temp], body)
    artifact = compile_webgpu(program)
    assert [spec["bytes"] for spec in artifact.metadata["inputs"]] == [-(-size * item // 4) * 4]
    assert [spec["bytes"] for spec in artifact.metadata["outputs"]] == 3 * [-(-size * item // 4) * 4]
    assert artifact.constants[: size * item] == data.tobytes()
    first, second, third = run_webgpu(program, data.view(NUMPY[dtype]))
    assert first.tobytes() == second.tobytes() == data.tobytes() and third.tobytes() == data[::-1].tobytes()


def test_the_size_of_a_float_is_in_its_bits():
    """Mesa 22 miscompiles the built-in function below some selects."""
    x, out = vector("x", "input"), vector("out", "output")
    (text,) = kernels(
        Program("p", [x], [out], [], [Kernel("k", [over(10, lambda i: [Store(out, i, Unary("abs", x[i]))])])])
    )
    assert "0x7fffffffu" in text and not re.search(r"\babs\(", text)


@gpu
@pytest.mark.parametrize("op, start", [("add", 7.0), ("mul", 3.0), ("max", 9.0), ("min", -9.0)])
def test_a_workgroup_counts_once_what_reductions_begin_with(op, start):
    x, out, j = vector("x", "input", 1000), vector("out", "output", 6), Var("j")
    one, two = Local("one", "f32"), Local("two", "f32")
    body = lambda i: [
        Declare(one, f32(start)),
        Declare(two, f32(start + 1)),
        For(j, 1000, [Assign(one, Binary(op, one, x[j])), Assign(two, Binary(op, two, x[j]))], "reduce"),
        Store(out, i, one),
        Store(out, i + 3, two),
    ]
    program = Program("p", [x], [out], [], [Kernel("k", [over(3, body)])])
    assert "workgroupBarrier" in kernels(program)[0]
    agree(program, np.random.default_rng(0).choice([-1, 1], 1000).astype("f"))


@gpu
@pytest.mark.parametrize("within", [False, True], ids=["a kernel", "a loop"])
def test_a_narrow_output_that_is_read_later(within):
    """It has a word for each element until the end."""
    size = 64
    x, y = vector("x", "input", size), vector("y", "input", size)
    positive, out = vector("positive", "output", size, "bool"), vector("out", "output", size)
    read = Kernel(
        "read", [over(size, lambda i: [Store(out, i, x[i] * y[i] + Convert(positive[i32(size - 1) - i], "f32"))])]
    )
    body = [
        Kernel("compare", [over(size, lambda i: [Store(positive, i, gt(x[i], y[i]))])]),
        For(Var("t"), 2, [read]) if within else read,
    ]
    agree(Program("p", [x, y], [positive, out], [], body), *np.random.default_rng(0).normal(size=(2, size)).astype("f"))


@gpu
@pytest.mark.parametrize("dtype", ["bool", "i8", "u16"])
def test_narrow_inputs_that_exceed_the_bindings(dtype):
    """Those beyond the most buffers that a stage binds go through temps, element by element."""
    size = 37
    ins = [Buffer(f"x{k}", dtype, (size,), "input") for k in range(11)]
    out = Buffer("out", "f32", (size,), "output")
    terms = lambda i: [Convert(x[i], "f32") * Const(float(k + 1), "f32") for k, x in enumerate(ins)]
    program = Program(
        "p",
        ins,
        [out],
        [],
        [Kernel("k", [over(size, lambda i: [Store(out, i, functools.reduce(operator.add, terms(i)))])])],
    )
    values = [np.random.default_rng(k).integers(0, 2, size).astype(NUMPY[dtype]) for k in range(11)]
    (got,) = run_webgpu(program, *values)
    assert got.tolist() == sum((k + 1) * v.astype(np.float32) for k, v in enumerate(values)).tolist()


def test_words():
    assert as_words(b"\1\2\3\4", 8) == b"\1\2\0\0\3\4\0\0" and from_words(b"\1\2\0\0\3\4\0\0", 2) == b"\1\2\3\4"


@gpu
def test_copies():
    """Between buffers a command; with computed places, or within the arena, a kernel; overlapping ranges through a
    temp.
    """
    x, n, a, b, out = (
        vector("x", "input"),
        vector("n", "input", 1, "i32"),
        vector("a"),
        vector("b"),
        vector("out", "output"),
    )
    t = Var("t")
    program = Program(
        "p",
        [x, n],
        [out],
        [a, b],
        [
            Copy(a, x, 10),
            Copy(b, a, 10),
            Copy(b, b, 6, 3, 1),
            For(t, 2, [Copy(b, x, 2, t * 4, i32(8))]),
            Copy(out, b, 10),
            Copy(out, x, 1, n[0], i32(7)),
        ],
    )
    assert [s["op"] for s in steps_of(program)] == [
        "copy",
        "dispatch",
        "dispatch",
        "dispatch",
        "loop",
        "copy",
        "dispatch",
    ]
    agree(program, np.arange(10), np.int32([5]))


# ---- control flow


@gpu
def test_a_loop_of_a_computed_count_is_counted_on_the_device():
    n, out = vector("n", "input", 1, "i32"), vector("out", "output", 8, "i32")
    t, u = Var("t"), Var("u")
    program = Program(
        "p",
        [n],
        [out],
        [],
        [
            Kernel("zero", [over(8, lambda i: [Store(out, i, i32(0))])]),
            For(t, n[0], [For(u, 2, [Kernel("k", [over(8, lambda i: [Store(out, i, out[i] + t * 10 + u)])])])]),
        ],
    )
    assert [s["op"] for s in steps_of(program)] == ["dispatch", "dispatch", "while"]
    for count in (-1, 0, 3):
        agree(program, np.int32([count]))


@gpu
def test_loops_of_known_counts_are_one_submit():
    x, out, i = vector("x", "input"), vector("out", "output"), Var("i")
    t, u = Var("t"), Var("u")
    body = Kernel("k", [over(10, lambda i: [Store(out, i, out[i] * 0.5 + Convert(t * 3 + u, "f32"))])])
    program = Program("p", [x], [out], [], [Copy(out, x, 10), For(t, 4, [For(u, 3, [body])])])
    d = make_device()
    before = d.submits
    agree(program, np.arange(10))
    assert d.submits == before + 1
    assert (
        steps_of(program)[1]["counter"] is not None
        and steps_of(Program("p", [x], [out], [], [For(i, 4, [Copy(out, x, 10)])]))[0]["counter"] is None
    )


@gpu
@pytest.mark.parametrize("n", [100_000, 65_536])
def test_long_loops_are_several_dispatches(n):
    """A running sum over two rows, then its last value twice; an invocation of llvmpipe ends after 65,535
    iterations.
    """
    x, out, last = (
        vector("x", "input", 2 * n, "i32"),
        vector("out", "output", 2 * n, "i32"),
        vector("last", "output", 2, "i32"),
    )
    r, t, acc, twice = Var("r"), Var("t"), Local("acc", "i32"), Var("twice")
    body = [
        Let(twice, r + 2),
        Declare(acc, r),
        For(t, n, [Assign(acc, acc + x[r * n + t]), Store(out, r * n + t, acc)]),
        Store(last, r, acc * twice),
    ]
    program = Program("p", [x], [out, last], [], [Kernel("k", [For(r, 2, body, "parallel")])])
    assert [s["op"] for s in steps_of(program)] == ["dispatch", "loop", "dispatch"]
    data = np.random.default_rng(0).integers(-9, 9, (2, n))
    want = data.cumsum(1) + [[0], [1]]
    got = run_webgpu(program, data)
    np.testing.assert_array_equal(got[0].reshape(2, n), want)
    np.testing.assert_array_equal(got[1], want[:, -1] * [2, 3])


@gpu
def test_long_updates_are_several_dispatches():
    """Updates one after another, in one invocation, a window each."""
    n, m = 9000, 7
    index, out = vector("index", "input", n, "i32"), vector("out", "output", 50, "i32")
    u, w, start = Var("u"), Var("w"), Var("start")
    update = [Let(start, index[u]), If(gt(start, -1), [For(w, m, [Store(out, start + w, out[start + w] * 3 + u)])])]
    program = Program(
        "p",
        [index],
        [out],
        [],
        [Kernel("zero", [over(50, lambda i: [Store(out, i, i32(0))])]), Kernel("k", [For(u, n, update)])],
    )
    assert [s["op"] for s in steps_of(program)] == ["dispatch", "loop"]
    agree(program, np.random.default_rng(0).integers(-1, 43, n))


# ---- expressions


@gpu
def test_constant_expressions_are_not_folded():
    """What overflows or divides by zero in a constant expression is an error of WGSL, and a value of the loop IR."""
    out = vector("out", "output", 6, "i32")
    top, one, zero, low = Const((1 << 31) - 1, "i32"), i32(1), i32(0), Const(-(1 << 31), "i32")
    values = [
        Binary("add", top, one),
        Binary("div", one, zero),
        Binary("rem", low, Const(-1, "i32")),
        Binary("shl", one, Const(40, "i32")),
        Binary("mul", low, low),
        Convert(Const(3e9, "f32"), "i32"),
    ]
    agree(Program("p", [], [out], [], [Kernel("k", [Store(out, i32(k), v) for k, v in enumerate(values)])]))


def of_infinities(value):
    """A program that computes `value` of NaN and infinities."""
    x, out = vector("x", "input"), vector("out", "output")
    return Program("p", [x], [out], [], [Kernel("k", [over(10, lambda i: [Store(out, i, value(x[i]))])])])


ZERO_FACTORS = [
    lambda x: x * f32(0),
    lambda x: f32(0) * x,
    lambda x: MulAdd(x, f32(0), x),
    lambda x: MulAdd(f32(-0.0), x, f32(2)),
    lambda x: Binary("div", f32(0), x),
]


@pytest.mark.parametrize("value", ZERO_FACTORS)
def test_factors_of_zero_are_hidden_from_compilers(value):
    """Zero times infinity is NaN, but a compiler that knows the zero may say zero."""
    text = kernels(of_infinities(value))[0]
    assert "as_f32(0x00000000u)" in text or "as_f32(0x80000000u)" in text
    assert not re.search(r"(?<![\w.])-?0(\.0*)?f?\b *[*/]|[*/] *\(?-?0(\.0*)?f?\b(?!x)", text.split("@compute")[1])


@gpu
@pytest.mark.parametrize("value", ZERO_FACTORS)
def test_factors_of_zero_of_infinities(value):
    agree(of_infinities(value), np.float32([np.nan, np.inf, -np.inf, 0, -0.0, 1, -2, 3e38, 1e-40, 5]))


def test_what_is_shared_is_computed_once():
    x, out = vector("x", "input"), vector("out", "output")
    text = kernels(
        Program("p", [x], [out], [], [Kernel("k", [over(10, lambda i: [Store(out, i, (e := Call("exp", x[i])) * e)])])])
    )[0]
    assert text.count("weft_exp(") == 2, "one definition, one call"


# ---- refusals


@pytest.mark.parametrize("dtype", ["f64", "i64", "u64"])
def test_wide_dtypes_are_refused(dtype):
    out = vector("out", "output", dtype=dtype)
    with pytest.raises(WgslError, match=f"out: {dtype}.*WebGPU devices do not have"):
        compile_webgpu(Program("p", [], [out], [], [Kernel("k", [Store(out, i32(0), Const(0, dtype))])]))
    small = vector("small", "output")
    wide = Binary("add", Const(1, dtype), Const(2, dtype))
    with pytest.raises(WgslError, match=f"kernel summing computes in {dtype}"):
        compile_webgpu(Program("p", [], [small], [], [Kernel("summing", [Store(small, i32(0), Convert(wide, "f32"))])]))


def test_errors_of_programs_are_refused():
    x, out = vector("x", "input"), vector("out", "output")
    program = Program("p", [x], [out], [], [If(gt(x[0], 1.0), [Fail(2)]), Copy(out, x, 10)], errors={2: "too large"})
    with pytest.raises(WgslError, match="too large"):
        compile_webgpu(program)


def test_the_program_is_left_as_it_was():
    x, out, a = vector("x", "input"), vector("out", "output"), vector("a", dtype="bool")
    acc, j = Local("acc", "f32"), Var("j")
    program = Program(
        "p",
        [x],
        [out],
        [a],
        [
            Kernel("k", [over(10, lambda i: [Store(a, i, gt(x[i], 0.0))])]),
            Switch(
                i32(0),
                [
                    [
                        Kernel(
                            "s",
                            [
                                Declare(acc, f32(0.0)),
                                For(j, 10, [Assign(acc, acc + x[j])], "reduce"),
                                Store(out, i32(0), acc),
                            ],
                        )
                    ]
                ],
            ),
        ],
    )
    before = str(program), a.nbytes, a.role
    first = compile_webgpu(program, {"maxStorageBufferBindingSize": 64})
    assert (str(program), a.nbytes, a.role) == before
    assert first.to_bytes() == compile_webgpu(program, {"maxStorageBufferBindingSize": 64}).to_bytes()
    assert json.loads(first.code)["steps"][-1]["op"] == "switch"
