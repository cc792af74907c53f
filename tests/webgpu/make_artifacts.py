"""Writes artifacts with inputs and expected outputs as JSON, for hosts that are not Python: `python
tests/webgpu/make_artifacts.py > artifacts.json`.

[{"name", "artifact": base64, "inputs": [base64], "outputs": [{"dtype", "expected": base64}]}]; expected values are the
interpreter's.
"""

import base64
import json
import random
import struct

from weft_wasm.interpreter import interpret
from weft_wasm.emit_wgsl import compile_webgpu
from weft_wasm.ir.nodes import (
    Assign,
    Binary,
    Buffer,
    Call,
    Declare,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    Program,
    Select,
    Store,
    Switch,
    Var,
    While,
    f32,
    gt,
    i32,
    lt,
    maximum,
    ne,
)
from weft_wasm.routines.gemm import gemm
from weft_wasm.routines.sort_parallel import sort_parallel


def functions() -> Program:
    """Elementary functions, NaN and infinity."""
    x, out, i = Buffer("x", "f32", (64,), "input"), Buffer("out", "f32", (6, 64), "output"), Var("i")
    stores = [Store(out, i + 64 * k, Call(fn, x[i])) for k, fn in enumerate(("exp", "sin", "tanh", "log", "erf"))]
    special = Select(ne(x[i], x[i]), f32(7.0), maximum(x[i] - x[i], x[i] * 0.0))
    return Program(
        "functions", [x], [out], [], [Kernel("f", [For(i, 64, [*stores, Store(out, i + 320, special)], "parallel")])]
    )


def matmul() -> Program:
    m, n, k = 17, 13, 40
    x, y, out = (
        Buffer("x", "f32", (m, k), "input"),
        Buffer("y", "f32", (k, n), "input"),
        Buffer("out", "f32", (m, n), "output"),
    )
    routine = gemm(
        "matmul",
        m,
        n,
        k,
        lambda _, i, q: x[i * k + q],
        lambda _, q, j: y[q * n + j],
        lambda _, i, j, v: [Store(out, i * n + j, v)],
        plain=True,
    )
    return Program("matmul", [x, y], [out], routine.temps, routine.kernels)


def softmax() -> Program:
    """A row for each workgroup."""
    rows, n = 3, 700
    x, out = Buffer("x", "f32", (rows, n), "input"), Buffer("out", "f32", (rows, n), "output")
    r, j, k, m, q = (Var(name) for name in "rjkmq")
    top, total = Local("top", "f32"), Local("total", "f32")
    body = [
        For(
            r,
            rows,
            [
                Declare(top, f32(float("-inf"))),
                For(j, n, [Assign(top, maximum(top, x[r * n + j]))], "reduce"),
                For(k, n, [Store(out, r * n + k, Call("exp", x[r * n + k] - top))], "parallel"),
                Declare(total, f32(0.0)),
                For(m, n, [Assign(total, total + out[r * n + m])], "reduce"),
                For(q, n, [Store(out, r * n + q, out[r * n + q] / total)], "parallel"),
            ],
            "parallel",
        )
    ]
    return Program("softmax", [x], [out], [], [Kernel("softmax", body)])


def sort() -> Program:
    """A loop with a counter, encoded into one submit."""
    x, out, order = (
        Buffer("x", "f32", (2, 50), "input"),
        Buffer("out", "f32", (2, 50), "output"),
        Buffer("order", "i32", (2, 50), "output"),
    )
    routine = sort_parallel("sort", 2, 50, [lambda i: x[i], lambda i: Binary("rem", i, i32(50))], [out, order])
    return Program("sort", [x], [out, order], routine.temps, routine.kernels)


def control() -> Program:
    """Values read back: doubles until the first element is 100 or more, then takes a branch."""
    x, out, kept = (
        Buffer("x", "i32", (4,), "input"),
        Buffer("out", "i32", (4,), "output"),
        Buffer("kept", "bool", (4,), "output"),
    )
    carry, flag = Buffer("carry", "i32", (4,)), Buffer("flag", "bool", ())

    def each(body) -> For:
        i = Var("i")
        return For(i, 4, body(i), "parallel")

    first = Var("first")
    return Program(
        "control",
        [x],
        [out, kept],
        [carry, flag],
        [
            Kernel("start", [each(lambda i: [Store(carry, i, x[i])])]),
            While(
                [Kernel("test", [Let(first, carry[0]), Store(flag, i32(0), lt(first, 100))])],
                flag[0],
                [Kernel("double", [each(lambda i: [Store(carry, i, carry[i] * 2)])])],
            ),
            Switch(
                Load(carry, i32(1)),
                [
                    [Kernel("zero", [each(lambda i: [Store(out, i, i32(0))])])],
                    [Kernel("copy", [each(lambda i: [Store(out, i, carry[i])])])],
                ],
            ),
            Kernel(
                "compare",
                [
                    each(
                        lambda i: [
                            If(gt(carry[i], 10), [Store(kept, i, gt(carry[i], 200))], [Store(kept, i, lt(carry[i], 0))])
                        ]
                    )
                ],
            ),
        ],
    )


def values(b: Buffer, rng: random.Random) -> bytes:
    if b.dtype == "i32":
        return struct.pack(f"<{b.size}i", *(3 + k for k in range(b.size)))
    special = [0.0, -0.0, float("inf"), float("-inf"), float("nan")]
    numbers = [special[k] if b.name == "x" and b.size == 64 and k < 5 else rng.gauss(0, 2) for k in range(b.size)]
    return struct.pack(f"<{b.size}f", *numbers)


def case(program: Program) -> dict:
    rng = random.Random(0)
    inputs = [values(b, rng) for b in program.inputs]
    expected = interpret.run(program, inputs)
    text = lambda data: base64.b64encode(data).decode()  # noqa: E731
    outputs = [{"dtype": b.dtype, "expected": text(data)} for b, data in zip(program.outputs, expected)]
    return {
        "name": program.name,
        "artifact": text(compile_webgpu(program).to_bytes()),
        "inputs": [text(x) for x in inputs],
        "outputs": outputs,
    }


if __name__ == "__main__":
    print(json.dumps([case(make()) for make in (functions, matmul, softmax, sort, control)]))
