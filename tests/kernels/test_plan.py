"""Buffer planning: buffers that are live at the same time never share bytes; others do."""

import numpy as np
import pytest
from kernel_harness import run_interpreted, run_wasm
from weft_wasm.ir import nodes
from weft_wasm.ir.addresses import most_bytes
from weft_wasm.ir.nodes import ALIGNMENT, padded, Buffer, Copy, For, If, Kernel, Program, Store, Switch, Var, While, i32
from weft_wasm.ir.reductions import identity
from weft_wasm.passes import buffers
from weft_wasm.passes.buffers import Slot, plan


def move(dst: Buffer, src: Buffer, step: int = 0) -> Kernel:
    i = Var("i")
    return Kernel("move", [For(i, dst.size, [Store(dst, i, src[nodes.rem(i, src.size)] + step)], "parallel")])


def chain(rng: np.random.Generator) -> Program:
    """A random straight-line program whose result depends on every live value."""
    x = Buffer("x", "i32", (int(rng.integers(1, 50)),), "input")
    out = Buffer("out", "i32", (20,), "output")
    temps = [Buffer(f"t{k}", "i32", (int(rng.integers(1, 200)),)) for k in range(rng.integers(1, 12))]
    body: list = []
    written: list[Buffer] = [x]
    for k, temp in enumerate(temps):
        body.append(move(temp, written[rng.integers(len(written))], k))
        written.append(temp)
        if rng.random() < 0.3:
            t = Var("t")
            target = written[-1]
            body.append(For(t, 2, [move(target, written[rng.integers(len(written) - 1)], 3), _increment(target)]))
    i = Var("i")
    sums = [
        b[nodes.rem(i, b.size)] * (k + 1) for k, b in enumerate(written) if rng.random() < 0.7 or k == len(written) - 1
    ]
    total: nodes.Expr = sums[0]
    for s in sums[1:]:
        total = total + s
    body.append(Kernel("sum", [For(i, 20, [Store(out, i, total)], "parallel")]))
    return Program("chain", [x], [out], temps, body)


def _increment(b: Buffer) -> Kernel:
    i = Var("i")
    return Kernel("increment", [For(i, b.size, [Store(b, i, b[i] + 1)], "parallel")])


@pytest.mark.parametrize("seed", range(60))
def test_no_overlap_of_live_buffers(seed):
    rng = np.random.default_rng(seed)
    program = chain(rng)
    p = plan(program)
    placed = [(p.offsets[b], p.offsets[b] + padded(b.nbytes), *p.lives[b]) for b in p.offsets]
    for k, (start, end, first, last) in enumerate(placed):
        assert start % ALIGNMENT == 0 and end <= p.size
        for start2, end2, first2, last2 in placed[:k]:
            assert end <= start2 or end2 <= start or last < first2 or last2 < first
            # (buffers that take over another's storage in place have tests of their own: `move` isn't elementwise)
    data = rng.integers(-99, 99, program.inputs[0].shape)
    for a, b in zip(run_wasm(program, data), run_interpreted(program, data)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_leave_an_arena_that_is_bound_to_be_small(seed, monkeypatch):
    """As few of them as can be told from few placements, however many there are."""
    program = chain(np.random.default_rng(seed))
    whole, place, placements = plan(program), buffers._place, []
    monkeypatch.setattr(buffers, "_place", lambda temps, *rest: placements.append(temps) or place(temps, *rest))
    for limit in (whole.size, whole.size - 1, whole.size // 2, padded(4), 0):
        placements.clear()
        p = plan(program, limit)
        inside = sorted((b.nbytes for b in p.offsets), reverse=True)
        assert p.size <= limit and len(inside) + len(p.alone) == len(p.lives) and not set(p.alone) & set(p.offsets)
        assert not inside or all(b.nbytes >= inside[0] for b in p.alone)
        assert all(place([p.alone[-1], *p.offsets], p.lives, {})[1] > limit for _ in p.alone[:1])
        assert len(placements) <= 2 + len(p.lives).bit_length()


def test_reuse():
    """A chain of equal buffers needs two."""
    x, out = Buffer("x", "f32", (100,), "input"), Buffer("out", "f32", (100,), "output")
    temps = [Buffer(f"t{k}", "f32", (100,)) for k in range(10)]
    body = [move(b, a) for a, b in zip([x, *temps], [*temps, out])]
    assert plan(Program("chain", [x], [out], temps, body)).size == 2 * padded(400)


def test_loop_carries_live_through_the_loop():
    x, out = Buffer("x", "i32", (16,), "input"), Buffer("out", "i32", (16,), "output")
    carry, new, other = (Buffer(n, "i32", (16,)) for n in ("carry", "new", "other"))
    t = Var("t")
    program = Program(
        "loop",
        [x],
        [out],
        [carry, new, other],
        [
            move(carry, x),
            For(t, 3, [move(new, carry, 1), move(other, new, 1), Copy(carry, other, 16)]),
            move(out, carry),
        ],
    )
    p = plan(program)
    assert not p.overlap(carry, new) and not p.overlap(carry, other) and not p.overlap(new, other)
    data = np.arange(16)
    np.testing.assert_array_equal(run_wasm(program, data)[0], data + 6)


@pytest.mark.parametrize("depth", [1, 2])
def test_rows_written_in_a_loop_survive_to_its_end(depth):
    """A temp that a loop fills row by row, read after the loop, shares no bytes with what the loop uses before it
    writes the row.
    """
    x, out = Buffer("x", "i32", (8,), "input"), Buffer("out", "i32", (32,), "output")
    rows, outer, early, late = (
        Buffer("rows", "i32", (4, 8)),
        Buffer("outer", "i32", (4, 8)),
        Buffer("early", "i32", (8,)),
        Buffer("late", "i32", (8,)),
    )
    t, u, j = Var("t"), Var("u"), Var("j")
    loop = For(
        t,
        4,
        [
            move(early, x),
            move(late, early),
            Kernel("row", [For(j, 8, [Store(rows, t * 8 + j, late[j] + t)], "parallel")]),
        ],
    )
    body = [loop, move(out, rows)] if depth == 1 else [For(u, 3, [loop, move(outer, rows)]), move(out, outer)]
    program = Program("rows", [x], [out], [rows, outer, early, late], body)
    p = plan(program)
    assert not p.overlap(rows, early) and not (depth == 2 and (p.overlap(outer, rows) or p.overlap(outer, early)))
    data = np.arange(8) * 10
    np.testing.assert_array_equal(run_wasm(program, data)[0], (np.arange(4)[:, None] + data).ravel())


@pytest.mark.parametrize("kind", ["if", "switch", "while"])
def test_conditional_writes_survive(kind):
    """A temp written in one iteration under a condition and read in a later one keeps its content."""
    x, out = Buffer("x", "i32", (8,), "input"), Buffer("out", "i32", (8,), "output")
    kept, noise, flag, counter = (
        Buffer("kept", "i32", (8,)),
        Buffer("noise", "i32", (8,)),
        Buffer("flag", "bool", ()),
        Buffer("n", "i32", ()),
    )
    t = Var("t")
    write, spoil, read = move(kept, x, 5), move(noise, x, 77), move(out, kept)
    tick = Kernel("tick", [Store(counter, i32(0), counter[0] + 1)])
    test = Kernel("test", [Store(flag, i32(0), nodes.lt(counter[0], 1))])
    first = {
        "if": If(nodes.eq(counter[0], 0), [write], []),
        "switch": Switch(counter[0], [[write], []]),
        "while": While([test], flag[0], [write, Kernel("tick", [Store(counter, i32(0), counter[0] + 1)])]),
    }[kind]
    program = Program(
        "keep",
        [x],
        [out],
        [kept, noise, flag, counter],
        [Kernel("zero", [Store(counter, i32(0), i32(0))]), For(t, 3, [first, tick, read, spoil])],
    )
    data = np.arange(8)
    np.testing.assert_array_equal(run_wasm(program, data)[0], data + 5)


def elementwise(dst: Buffer, *sources: Buffer, at=lambda i: i) -> Kernel:
    i = Var("i")
    value = i * 1
    for s in sources:
        value = value + s[at(i)]
    return Kernel("elementwise", [For(i, dst.size, [Store(dst, i, value)], "parallel")])


@pytest.mark.parametrize("n", [1, 3, 16, 37])
def test_in_place(n):
    """A chain of elementwise kernels runs in the storage of one buffer."""
    x, out = Buffer("x", "i32", (n,), "input"), Buffer("out", "i32", (n,), "output")
    temps = [Buffer(f"t{k}", "i32", (n,)) for k in range(5)]
    program = Program("chain", [x], [out], temps, [elementwise(b, a) for a, b in zip([x, *temps], [*temps, out])])
    assert plan(program).size == padded(4 * n)
    data = np.arange(n) * 10
    np.testing.assert_array_equal(run_wasm(program, data)[0], data + 6 * np.arange(n))


@pytest.mark.parametrize("case", ["read later", "other index", "read after the write", "wider"])
def test_not_in_place(case):
    x, out = Buffer("x", "i32", (40,), "input"), Buffer("out", "i32", (40,), "output")
    a, b, c = (
        Buffer("a", "i32", (40,)),
        Buffer("b", "i64" if case == "wider" else "i32", (40,)),
        Buffer("c", "i32", (40,)),
    )
    i, j = Var("i"), Var("j")
    first = (
        elementwise(b, a, at=(lambda i: nodes.sub(i32(39), i)) if case == "other index" else lambda i: i)
        if case != "wider"
        else None
    )
    if case == "wider":
        first = Kernel("wide", [For(i, 40, [Store(b, i, nodes.convert(a[i], "i64"))], "parallel")])
    if case == "read after the write":
        first = Kernel("two", [For(i, 40, [Store(b, i, a[i] + 1), Store(c, i, a[i] + 2)], "parallel")])
    total = nodes.convert(b[j], "i32")
    if case == "read later":
        total = total + a[j]
    if case == "read after the write":
        total = total + c[j]
    program = Program(
        "p",
        [x],
        [out],
        [a, b, c],
        [elementwise(a, x), first, Kernel("sum", [For(j, 40, [Store(out, j, total)], "parallel")])],
    )
    p = plan(program)
    assert not p.overlap(a, b)
    data = np.arange(40) ** 2
    np.testing.assert_array_equal(run_wasm(program, data)[0], run_interpreted(program, data)[0])


def test_large_buffers_lie_first():
    """Small ones then take what is left between them."""
    x, out = Buffer("x", "f32", (100,), "input"), Buffer("out", "f32", (100,), "output")
    temps = [Buffer(f"t{n}", "f32", (n,)) for n in (10, 100, 40)]
    kernels = [Kernel("fill", [For(i := Var("i"), t.size, [Store(t, i, x[i])], "parallel")]) for t in temps]
    last = Kernel(
        "last", [For(k := Var("k"), 10, [Store(out, k, temps[0][k] + temps[1][k] + temps[2][k])], "parallel")]
    )
    placed = plan(Program("p", [x], [out], temps, [*kernels, last]))
    assert [placed.offsets[t] for t in temps] == [448 + 192, 0, 448]


def test_how_much_memory_addresses_reach():
    assert most_bytes({"simd128"}) == 1 << 32 and most_bytes({"simd128", "memory64"}) == 1 << 34


def test_what_is_said_of_the_place_of_a_buffer():
    slot = Slot(name="t", type="f32[4]", nbytes=16, offset=64, first=1, last=3)
    assert str(slot) == "t: f32[4], 16 bytes at 64, used from step 1 to 3"


@pytest.mark.parametrize("op", ["add", "mul", "min", "max"])
@pytest.mark.parametrize("x", [0.0, -0.0, 1.5, float("inf"), float("-inf")])
def test_an_identity_changes_nothing(op, x):
    apply = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "min": min, "max": max}[op]
    assert repr(apply(x, identity(op, "f32").value)) == repr(x)
