"""Loops that threads share: every cut gives what one thread gives. The harness's threads take turns and run the
iterations backwards.
"""

import functools
from dataclasses import replace
from types import SimpleNamespace

import changing_programs
import kernel_harness
import numpy as np
import pytest
import test_gemm
import test_random_programs
from kernel_harness import run_wasm
from weft_wasm.ir import nodes
from weft_wasm.passes import polls, threads
from weft_wasm.compile import compile_program
from weft_wasm.binary.encode import shared_memory_flag
from weft_wasm.ir.nodes import Assign, Buffer, Declare, For, HostCall, Kernel, Let, Local, Program, Store, Var
from weft_wasm.routines import gemm
from weft_wasm.ir.verify import VerifyError, verify
from weft_wasm.binary.decode import parts
from weft_wasm.runtimes.wasmtime_device import WasmtimeDevice


@functools.cache
def three_threads() -> WasmtimeDevice:
    return WasmtimeDevice(threads=3)


@pytest.fixture
def cut(monkeypatch):
    """However small a loop is, threads share it."""
    for module, name, value in [
        (threads, "WORTH", 0),
        (threads, "GRAIN", 1),
        (threads, "UNIT", 2),
        (gemm, "WORTH", 0),
        (gemm, "PACKING_WORTH", 0),
        (gemm, "SHARED_COLUMNS", 1),
        (kernel_harness, "device", three_threads),
    ]:
        monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("shape", [(97, 131, 77), (61, 64, 128), (250, 33, 31), (24, 24, 1030), (6, 200, 256)], ids=str)
@pytest.mark.parametrize("batch", [1, 5])
def test_products(cut, shape, batch):
    test_gemm.check(*shape, batch=batch, tile=gemm.Tile(mr=5, nr=8, kc=64, mc=15, nc=96))
    program = test_gemm.product(*shape, batch=batch, features=frozenset())
    assert compile_program(program).metadata["tasks"]["count"] >= 1


def test_random_nests(cut):
    for block in range(8):
        test_random_programs.test_elementwise(block)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_reductions(cut, seed):
    test_random_programs.test_reductions(seed)


@pytest.mark.parametrize("name", changing_programs.CASES)
def test_values_that_change(cut, name):
    changing_programs.check(name, run_wasm)


def scaled(n: int = 1000) -> Program:
    """out[i] = x[i] · a + b, where a (f64) and b (i64) are computed before the loop."""
    x, a, b = Buffer("x", "f64", (n,), "input"), Var("a", "f64"), Var("b", "i64")
    out, i = Buffer("out", "f64", (n,), "output"), Var("i")
    body = [
        Let(a, x[0] * 2.0),
        Let(b, nodes.convert(x[1], "i64")),
        For(i, n, [Store(out, i, x[i] * a + nodes.convert(b, "f64"))], "parallel"),
    ]
    return Program("scaled", [x], [out], [], [Kernel("scaled", body)])


@pytest.mark.parametrize("n", [4, 7, 64, 1001])
def test_tasks_get_what_was_computed_before(cut, n):
    x = np.linspace(1.5, 9, n)
    np.testing.assert_allclose(run_wasm(scaled(n), x)[0], x * 3 + np.trunc(x[1]), rtol=1e-15)


@pytest.mark.parametrize("known", [True, False], ids=["known", "computed"])
@pytest.mark.parametrize("extent", [-7, 0, 1, 5])
def test_a_shared_loop_may_have_no_iterations(cut, extent, known):
    n, out = Buffer("n", "i32", (1,), "input"), Buffer("out", "i32", (8,), "output")
    i, j = Var("i"), Var("j")
    body = [
        For(j, 8, [Store(out, j, nodes.i32(0))]),
        For(i, extent if known else n[0], [Store(out, nodes.minimum(i, 7), nodes.i32(1))], "parallel", tasks=1),
    ]
    (got,) = run_wasm(Program("none", [n], [out], [], [Kernel("none", body)]), np.array([extent], np.int32))
    assert got.sum() == max(extent, 0)


def test_only_what_takes_long_is_shared():
    small, large = compile_program(scaled()), compile_program(scaled(1 << 22))
    assert "tasks" not in small.metadata
    assert large.metadata["tasks"] == {"count": 1, "private": 0}


def test_estimates_count_every_part():
    """Memory, operations, functions and loops, each once: what is made of more takes longer."""
    cost = lambda body: threads.Costs().of(body)  # noqa: E731
    x, out, wide, i = (
        Buffer("x", "f32", (64,), "input"),
        Buffer("out", "f32", (64,), "output"),
        Buffer("w", "f64", (64,), "output"),
        Var("i"),
    )
    none, one = [], [Store(out, nodes.i32(0), nodes.f32(1.0))]
    store, node, call, byte = cost(one), threads.NODE, threads.CALL, threads.BYTE
    assert cost(none) == 0 and store == pytest.approx(2 * node + 4 * byte), "two constants, four bytes"
    assert cost([Store(wide, nodes.i32(0), nodes.Const(1.0, "f64"))]) == pytest.approx(2 * node + 8 * byte)
    loaded = cost([Store(out, nodes.i32(0), x[nodes.i32(0)])])
    assert loaded == pytest.approx(3 * node + 8 * byte)
    called = cost([Store(out, nodes.i32(0), nodes.Call("exp", nodes.f32(1.0)))])
    assert called == pytest.approx(store + call)
    for extent in (1, 10, 1000):
        assert cost([For(i, extent, one)]) == pytest.approx(extent * store)
        assert cost([For(i, extent, one, vector=1)]) == pytest.approx(extent * store / threads.LANES)
    assert cost([For(i, Var("n"), one)]) == pytest.approx(store + node), "how often is not known"
    test = nodes.lt(Var("n"), 3)
    assert cost([nodes.If(test, one, one * 3)]) == pytest.approx(3 * node + cost(one * 3))
    assert cost([Let(Var("a", "f32"), nodes.f32(1.0)), *one]) == pytest.approx(store + node)


def test_what_artifacts_say():
    said = {"abi", "kind", "name", "inputs", "outputs", "scratch", "memory", "features", "errors"}
    assert set(compile_program(scaled()).metadata) == said
    assert set(compile_program(scaled(1 << 22)).metadata) == {*said, "tasks"}


def test_what_modules_import():
    """Nothing, what shares a loop out, what calls the host, and both."""
    table, copied = Buffer("table", "i32", (4,), "temp"), Buffer("copied", "f64", (1 << 22,), "output")
    imports = []
    for program in (scaled(), scaled(1 << 22)):
        imports.append(parts(compile_program(program).code).imports)
        (x,) = program.inputs
        call = SimpleNamespace(ins=[x], outs=[copied])
        program = replace(
            program,
            outputs=[*program.outputs, copied],
            temps=[table],
            body=[*program.body, HostCall(0, table, [x], [copied])],
            calls=[call],
        )
        imports.append(parts(compile_program(program).code).imports)
    assert list(map(sorted, imports)) == [[], ["call"], ["share"], ["call", "share"]]


def test_the_place_of_the_memory_s_kind():
    artifact = compile_program(scaled())
    at = artifact.metadata["memory"]
    assert at == shared_memory_flag(artifact.code) and artifact.code[at] == 1


def row_sums(kind: str = "parallel", own: str = "private", outside: bool = False) -> Program:
    """Sums of rows through a buffer for one row."""
    x, out, row = (
        Buffer("x", "f32", (8, 4), "input"),
        Buffer("out", "f32", (8,), "output"),
        Buffer("row", "f32", (4,), own),
    )
    i, j, k, acc = Var("i"), Var("j"), Var("k"), Local("acc", "f32")
    loop = For(
        i,
        8,
        [
            For(j, 4, [Store(row, j, x[i * 4 + j])], "parallel"),
            Declare(acc, nodes.f32(0.0)),
            For(k, 4, [Assign(acc, acc + row[k])], "reduce"),
            Store(out, i, acc),
        ],
        kind,
        tasks=1,
    )
    before = [Store(row, nodes.i32(0), nodes.f32(1.0))] if outside else []
    return Program("rows", [x], [out], [row], [Kernel("rows", [*before, loop])])


def test_each_thread_has_its_own_private_buffers(cut):
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    assert compile_program(row_sums()).metadata["tasks"]["private"] == 64
    np.testing.assert_array_equal(run_wasm(row_sums(), x)[0], x.sum(1))


def test_runs_of_rows_and_the_rest_have_private_buffers(cut, monkeypatch):
    """A long loop of short iterations is cut into runs, with a poll in each, and 8 rows are no number of runs of 3."""
    for name, value in (("LONG", 20), ("SHORT", 10_000), ("RUN", 1), ("UNIT", 3)):
        monkeypatch.setattr(polls, name, value)
    made = polls.place(row_sums())
    verify(made)
    kernel = made.body[0]
    assert [(loop.extent, loop.tasks) for loop in kernel.body] == [(2, 1), (2, 1)]
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    np.testing.assert_array_equal(run_wasm(row_sums(), x)[0], x.sum(1))


@pytest.mark.parametrize(
    "bad, text", [({"kind": "sequential"}, "parallel loop"), ({"outside": True}, "inside and outside")]
)
def test_what_the_verifier_refuses(bad, text):
    with pytest.raises(VerifyError, match=text):
        verify(row_sums(**bad))
