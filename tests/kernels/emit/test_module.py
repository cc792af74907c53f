"""Functions that call functions, tasks, and the module around them: what is emitted once, what is passed, what is
refused.
"""

import pytest
from emit_harness import PAGE
import wasmtime
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.functions import FRAME_BYTES, Caller, Target, uses
from weft_wasm.emit_wasm.module import emit_module, frame_bytes, lay_out_constants
from weft_wasm.binary.encode import I32, Module
from weft_wasm.ir.nodes import (
    Assign,
    Buffer,
    Copy,
    Declare,
    Fail,
    For,
    HostCall,
    If,
    Kernel,
    Let,
    Local,
    Program,
    Store,
    Var,
    f32,
    i32,
    lt,
)
from weft_wasm.passes.buffers import plan

X, OUT = Buffer("x", "f32", (64,), "input"), Buffer("o", "f32", (64,), "output")


def made(frame=None, sharing=False, imports=("share",), private=None) -> Caller:
    target = Target(
        Module(imports), private or plan(Program("p", [], [], [], [])), frozenset(("simd128",)), lambda a, b: a is b
    )
    caller = Caller(target, Function([I32, I32, I32]), "f", frame, sharing)
    caller.parts.storage.at |= {X: 0, OUT: 1}
    return caller


def loop(**options) -> For:
    i = Var("i")
    return For(i, 64, [Store(OUT, i, X[i] + 1.0)], "parallel", **options)


def test_what_statements_use_from_outside():
    i, n, acc, own = Var("i"), Var("n"), Local("acc", "f32"), Local("own", "f32")
    used = uses(
        [
            Declare(own, f32(0.0)),
            For(i, n, [Let(a := Var("a", "f32"), X[i] + own), Assign(acc, a + acc), Store(OUT, i, acc)]),
        ]
    )
    assert (used.buffers, used.variables) == ([X, OUT], [n, acc]) and len(used) == 4


class TestCaller:
    def test_other_loops_are_not_taken(self):
        assert not made().takes(loop())
        assert not made(sharing=True).takes(loop(tasks=4))

    def test_an_outlined_loop_is_a_function_and_a_call(self):
        caller = made()
        assert caller.takes(loop(outline=True))
        assert len(caller.target.module.functions) == 1 and bytes(caller.parts.fn.code) == bytes.fromhex(
            "2000 2001 1001"
        )
        # equal functions are one
        assert caller.takes(loop(outline=True)) and len(caller.target.module.functions) == 1

    def test_a_shared_loop_is_a_task(self):
        caller = made(frame=2)
        assert caller.takes(loop(tasks=4)) and list(caller.target.module.tasks.values()) == [0]
        assert [name for name, _ in caller.target.module.exports] == ["task0"]

    def test_a_loop_that_needs_too_large_a_frame_stays_where_it_is(self):
        caller = made(frame=2)
        many = [Buffer(f"x{k}", "f32", (8,), "input") for k in range(FRAME_BYTES // 8 + 1)]
        caller.parts.storage.at |= {b: 0 for b in many}
        i = Var("i")
        assert caller.takes(For(i, 8, [Store(OUT, i, b[i]) for b in many], "parallel", tasks=2))
        assert not caller.target.module.tasks and len(caller.parts.fn.code) > 1000 and not caller.sharing

    def test_a_loop_that_fills_the_frame_is_a_task(self):
        caller = made(frame=2)
        many = [Buffer(f"x{k}", "f32", (8,), "input") for k in range(FRAME_BYTES // 8 - 1)]  # and OUT
        caller.parts.storage.at |= {b: 0 for b in many}
        i = Var("i")
        assert (
            caller.takes(For(i, 8, [Store(OUT, i, b[i]) for b in many], "parallel", tasks=2))
            and caller.target.module.tasks
        )

    def test_there_must_be_a_frame(self):
        with pytest.raises(RuntimeError, match="f shares a loop but has no frame"):
            made().takes(loop(tasks=4))

    def test_variables_that_are_never_negative_stay_so_inside(self):
        caller, n, m = made(), Var("n"), Var("m")
        caller.parts.scope.env |= {n: 2, m: 2}
        caller.parts.scope.loop_vars.add(n)
        # a pointer that may lie before the buffer carries no large offset
        for name, added in ((n, False), (m, True)):
            body = [Store(OUT, i32(0), X[name + 60])]
            number = caller.function(body, uses(body), f"of {name.name}").number
            assert (bytes.fromhex("41 f001 6a") in caller.target.module.bodies[number - 1]) == added


def program(body, temps=(), **options) -> Program:
    return Program("p", [X], [OUT], list(temps), body, **options)


def emitted(p: Program) -> tuple[bytes, int]:
    offsets, _ = lay_out_constants(p.constants)
    return emit_module(p, plan(p), offsets, frozenset(("simd128",)))


def functions(code: bytes) -> list[str]:
    module = wasmtime.Module(wasmtime.Engine(), code)
    return [e.name for e in module.exports]


class TestModule:
    def test_equal_kernels_are_emitted_once(self):
        a, b = Buffer("a", "f32", (64,)), Buffer("b", "f32", (64,))

        def double(name, source, target):
            i = Var("i")
            return Kernel(name, [For(i, 64, [Store(target, i, source[i] * 2.0)], "parallel")])

        chain = [double("first", X, a), double("second", a, b), double("third", b, OUT)]
        one = emitted(program([double("only", X, OUT)]))[0]
        three = emitted(program(chain, [a, b]))[0]
        assert b"first" in three and b"second" not in three and len(three) < 2 * len(one)

    def test_tasks_are_exported_and_have_a_frame(self):
        p = program([Kernel("k", [loop(tasks=8)])])
        code, tasks = emitted(p)
        assert tasks == 1 and sorted(functions(code)) == ["main", "task0", "threads"]
        assert frame_bytes(p) == FRAME_BYTES and frame_bytes(program([Kernel("k", [loop()])])) == 0

    def test_the_program_level(self):
        flag, table = Buffer("flag", "bool", ()), Buffer("table", "i32", (2,))
        body = [
            Copy(OUT, X, 8, 4, 2),
            Kernel("k", [Store(flag, i32(0), lt(X[i32(0)], 0.0))]),
            If(flag[i32(0)], [Fail(3)]),
            HostCall(0, table, [X], [OUT]),
        ]
        code, tasks = emitted(program(body, [flag, table], errors={3: "negative"}))
        assert tasks == 0 and b"call" in code and wasmtime.Module(wasmtime.Engine(), code)

    def test_equal_constants_are_laid_out_once(self):
        a, b, c = (
            Buffer(n, "i32", (4,), "constant", data) for n, data in zip("abc", (b"1" * 16, b"2" * 16, b"1" * 16))
        )
        offsets, data = lay_out_constants([a, b, c])
        assert (
            offsets == {a: 0, b: 64, c: 0}
            and data[:16] == b"1" * 16
            and data[64:80] == b"2" * 16
            and len(data) == 128 < PAGE
        )
