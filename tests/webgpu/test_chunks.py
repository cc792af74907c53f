"""Long loops are cut, wherever they lie: the parts compute what the kernel did. Most of it is asked of the
interpreter, with a limit of a few iterations.
"""

from dataclasses import replace

import numpy as np
import pytest
import weft
from changing_programs import CASES
from kernel_harness import run_interpreted
from random_kernels import Statements
from test_dispatches import gpu
from weft import lax
from weft import numpy as jnp
from weft.core.trace import get_aval
from weft.runtime.dispatch import program_for
from weft.transforms.physical import lower_types
from weft.transforms.stage import stage_closed
from weft_wasm.ir import nodes
from weft_wasm.emit_wgsl import chunks, workgroup_reductions
from weft_wasm.emit_wgsl.shader import WgslError
from weft_wasm.ir.nodes import (
    Assign,
    Buffer,
    Const,
    Declare,
    For,
    If,
    Kernel,
    Let,
    Local,
    Program,
    Store,
    Switch,
    Var,
    While,
    i32,
    lt,
)
from weft_wasm.lower.program import lower
from weft_wasm.ir.rewriting import map_blocks
from weft_wasm.ir.traversal import walk
from weft_wasm.ir.verify import verify
from webgpu_harness import run_webgpu


def cut(program: Program) -> Program:
    """The program with all its kernels cut, as the emitter cuts them."""
    temps: list[Buffer] = []

    def temp(name, dtype, shape):
        temps.append(Buffer(name, dtype, shape))
        return temps[-1]

    def kernel(k):
        parts = chunks.chunked(k, temp) if type(k) is Kernel else None
        return [k] if parts is None else map_blocks(parts, lambda block: [new for s in block for new in kernel(s)])

    body = map_blocks(program.body, lambda block: [new for s in block for new in kernel(s)])
    new = replace(program, body=body, temps=[*program.temps, *temps], constants=[])
    verify(new)
    for k in walk(new.body):
        if type(k) is Kernel and not k.workgroup:
            assert chunks.chunked(k, temp) is None
    return new


def same(program: Program, inputs: list[np.ndarray]) -> bool:
    """Compares; whether anything was cut."""
    made = cut(program)
    for got, want in zip(run_interpreted(made, *inputs), run_interpreted(program, *inputs), strict=True):
        np.testing.assert_array_equal(got, want)
    return len(made.temps) > len(program.temps) or len(list(walk(made.body))) > len(list(walk(program.body)))


@pytest.fixture(params=[2, 5, 12])
def limit(request, monkeypatch):
    monkeypatch.setattr(chunks, "LIMIT", request.param)
    return request.param


# what the interpreter takes seconds for
LONG_BODIES = {"long_loop_of_rows_that_keep_a_row", "long_loop_that_changes_what_it_reads"}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if len(case) == 2 and name not in LONG_BODIES])
def test_values_that_change(name, limit):
    program, inputs = CASES[name]
    within = [
        s
        for k in walk(program.body)
        if type(k) is Kernel
        for s in walk(k.body)
        if type(s) is While or type(s) is For and isinstance(s.extent, nodes.Expr)
    ]
    if any(chunks.iterations(block) > limit for s in within for block in chunks.blocks(s)):
        with pytest.raises(WgslError, match="has a loop whose length only the device knows"):
            cut(program)
    else:
        same(program, inputs)


@pytest.mark.parametrize("block", range(6))
def test_random_statements(block, limit):
    done = 0
    for seed in range(25 * block, 25 * block + 25):
        made = Statements(seed)
        done += same(made.program(), made.data())
    assert done > 1, "else nothing was cut"


def test_reductions_that_a_workgroup_shares(monkeypatch):
    """Their loops are cut where an invocation's share is too long, and are shared as before."""
    monkeypatch.setattr(workgroup_reductions, "LONG", 8)
    monkeypatch.setattr(chunks, "LIMIT", 3)
    n = 1000
    x, out, top = (
        Buffer("x", "i32", (3, n), "input"),
        Buffer("out", "i32", (3,), "output"),
        Buffer("top", "i32", (3, n), "output"),
    )
    i, k, t, acc, last = Var("i"), Var("k"), Var("t"), Local("acc", "i32"), Var("last")
    body = [
        Declare(acc, i),
        For(k, n, [Assign(acc, acc + x[i * n + k])], "reduce"),
        Let(last, acc),
        Store(out, i, last),
        For(t, n, [Store(top, i * n + t, x[i * n + t] - last)], "parallel"),
    ]
    program = Program("p", [x], [out, top], [], [Kernel("k", [For(i, 3, body, "parallel")])])
    assert same(program, [np.arange(3 * n, dtype=np.int32).reshape(3, n)])
    loops = [s for s in walk(cut(program).body) if type(s) is For and s.kind == "reduce"]
    assert [s.extent for s in loops] == [3 * 256], "three iterations for each of the 256 invocations"


@gpu
def test_loops_within_what_a_workgroup_shares(monkeypatch):
    """One has a single iteration, around another stands a statement more."""
    monkeypatch.setattr(workgroup_reductions, "LONG", 8)
    x, out, i, acc = (
        Buffer("x", "i32", (3, 600), "input"),
        Buffer("out", "i32", (3,), "output"),
        Var("i"),
        Local("acc", "i32"),
    )
    j, one, k = Var("j"), Var("one"), Var("k")
    inner = For(
        one, 1, [For(k, 300, [Assign(acc, acc + x[i * 600 + j * 300 + one * 7 + k] * (k + 1))], "reduce")], "reduce"
    )
    nests = For(j, 2, [inner], "reduce"), For(j, 2, [inner, Assign(acc, acc + (j + 5))], "reduce")
    data = np.arange(1800, dtype=np.int32).reshape(3, 600) % 13
    for nest, more in zip(nests, (0, 11), strict=True):
        (got,) = run_webgpu(
            Program(
                "p", [x], [out], [], [Kernel("k", [For(i, 3, [Declare(acc, i), nest, Store(out, i, acc)], "parallel")])]
            ),
            data,
        )
        np.testing.assert_array_equal(got, data.reshape(3, 2, 300).sum(1) @ np.arange(1, 301) + np.arange(3) + more)


def test_long_loops_in_ones_of_unknown_length_are_refused():
    out, i, k, t, n = (
        Buffer("out", "i32", (4,), "output"),
        Var("i"),
        Var("k"),
        Var("t"),
        Buffer("n", "i32", (), "input"),
    )
    inner = For(k, chunks.LIMIT, [Store(out, i, k)])
    for loop in (For(t, n[0], [inner]), While([], lt(out[i], n[0]), [inner])):
        kernel = Kernel("k", [For(i, 4, [Store(out, i, i), loop], "parallel")])
        with pytest.raises(
            WgslError, match="kernel k has a loop whose length only the device knows around 32768 iterations"
        ):
            run_webgpu(Program("p", [n], [out], [], [kernel]), np.int32(1))
    strided = Kernel("k", [For(t, n[0], [For(k, chunks.LIMIT + 1, [Store(out, t, k)])], "parallel")])
    with pytest.raises(WgslError, match="kernel k has a loop whose length"):
        run_webgpu(Program("p", [n], [out], [], [strided]), np.int32(1))


def test_a_part_of_a_known_size_bounds_a_loop():
    k = Var("k")
    loop = For(Var("t"), nodes.minimum(i32(64), k), [For(Var("u"), 3, [])])
    assert chunks.iterations([loop]) == 64 * 4 and chunks.iterations([replace(loop, extent=k)]) == 4
    assert chunks.iterations([While([loop], Const(True, "bool"), [loop])]) == 1 + 2 * 64 * 4


# ---- on the device, with its own limit


@gpu
@pytest.mark.parametrize("around", ["if", "switch", "loop and if", "nothing"])
def test_long_loops_inside_of_branches_and_after_each_other(around):
    n, out, i, acc = 30_000, Buffer("out", "i32", (4,), "output"), Var("i"), Local("acc", "i32")
    loops = [For(Var(f"t{k}"), n, [Assign(acc, acc + (k + 1))]) for k in range(4)]
    inside = {
        "if": [If(lt(i, 2), loops, [Assign(acc, acc - 1)])],
        "switch": [Switch(i, [[Assign(acc, acc - 1)], loops, []])],
        "loop and if": [For(t := Var("t"), 3, [If(nodes.eq(i, t), loops)])],
        "nothing": loops,
    }[around]
    (got,) = run_webgpu(
        Program(
            "p", [], [out], [], [Kernel("k", [For(i, 4, [Declare(acc, i), *inside, Store(out, i, acc)], "parallel")])]
        )
    )
    long = 10 * n
    want = {
        "if": [long, 1 + long, 1, 2],
        "switch": [-1, 1 + long, 2, 3],
        "loop and if": [long, 1 + long, 2 + long, 3],
        "nothing": [k + long for k in range(4)],
    }
    np.testing.assert_array_equal(got, want[around])


def on_webgpu(backend, function, *args):
    with weft.default_device(backend.devices()[0]):
        return np.asarray(weft.jit(function)(*args))


def test_sums_of_many_elements(backend):
    """Of which each of a workgroup's 256 invocations has more than 65,535."""
    assert on_webgpu(backend, lambda: jnp.sum(lax.iota("int32", 1 << 25) & 1)) == 1 << 24


def test_scatter_of_long_windows(backend):
    where = lax.ScatterDimensionNumbers((1,), (), (0,))
    n = 70_000
    got = on_webgpu(
        backend,
        lambda x, i, u: lax.scatter_add(x, i, u, where, mode="fill"),
        np.zeros(n + 5, np.int32),
        np.array([[0], [3], [9]]),
        np.ones((3, n), np.int32),
    )
    assert got.sum() == 2 * n and got.max() == 2 and (got[:3] == 1).all() and (got[3:n] == 2).all()


# ---- what is lowered


def plain(fun, args) -> Program:
    jaxpr, consts = program_for(
        lower_types(stage_closed(lambda *xs: weft.tree_util.tree_leaves(fun(*xs)), [get_aval(a) for a in args])),
        "webgpu",
        ("webgpu",),
    )
    return lower(jaxpr, "main", plain=True)[0]


def lengths(program: Program) -> list[object]:
    """The loops in kernels of which it isn't known how long they are."""
    found = []
    for k in walk(program.body):
        if type(k) is Kernel:
            found += [
                s
                for s in walk(k.body)
                if type(s) is While or type(s) is For and isinstance(s.extent, nodes.Expr) and chunks.trips(s) == 1
            ]
    return found


EXAMPLES = {
    "running sum": (lambda x: jnp.cumsum(x), [np.zeros(40_001, np.float32)]),
    "sort": (lambda x: jnp.sort(x), [np.zeros(300, np.float32)]),
    "stable order": (lambda x: jnp.argsort(x), [np.zeros((3, 70), np.float32)]),
    "search": (lambda x: jnp.searchsorted(x, x), [np.zeros(300, np.float32)]),
    "transform": (lambda x: jnp.abs(jnp.fft.fft(x)), [np.zeros(1000, np.float32)]),
    "triangle": (lambda x: jnp.linalg.cholesky(x), [np.zeros((9, 9), np.float32)]),
    "random": (lambda x: weft.random.gamma(weft.random.key(0), x), [np.zeros(9, np.float32)]),
    "convolution": (lambda x: jnp.convolve(x, x), [np.zeros(90, np.float32)]),
    "scatter": (lambda x: x.at[x.astype(int)].add(1), [np.zeros(90, np.float32)]),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_lowering_makes_no_loops_of_unknown_length(name):
    assert not lengths(plain(*EXAMPLES[name]))
