"""Each pass leaves what programs compute as it is: the whole catalogue of operations, with derivatives and batches, and
shapes on which passes do much.

`make test` compares the values of all rows and a part of the rest; WEFT_COMPARE_PASSES=all compares everything.
"""

import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import passes
import pytest
import weft
from weft.experimental import pallas as pl
from weft import lax
from weft import numpy as jnp
from weft.base.config import enable_x64
from weft.primitives.inspection import without_inspections
from weft.core.trace import get_aval
from weft.base.dtypes import dtype as dtype_of, is_float
from weft.runtime.dispatch import program_for
from weft.transforms.physical import lower_types
from weft.transforms.stage import stage_closed
from weft_wasm import compile as driver
from weft_wasm.compile import compile_program
from weft_wasm.interpreter import interpret
from weft_wasm.ir import nodes, traversal
from weft_wasm.ir.nodes import Assign, Buffer, Const, Declare, For, Kernel, Load, Local, Program, Store, Var, i32
from weft_wasm.passes.pipeline import AFTER_PLANNING, BEFORE_PLANNING, LOWERING, Pass, run_passes
from weft_wasm.lower.program import lower
from weft_wasm.passes.prefetch import fetch_ahead
from weft_wasm.ir.text import describe
from weft_wasm.ir.verify import VerifyError

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))
from catalogue import ROWS

FEATURES = [frozenset(), frozenset(("simd128",)), frozenset(("simd128", "relaxed-simd"))]
features_for = lambda name: FEATURES[zlib.crc32(name.encode()) % 3]


def lowered(fun, args, features, donated=()) -> tuple[Program, list[bytes]]:
    """The loop IR of a function, and its inputs."""
    flat = lambda *xs: weft.tree_util.tree_leaves(fun(*xs))
    jaxpr, consts = program_for(lower_types(stage_closed(flat, [get_aval(a) for a in args])), "wasm", ("wasm",))
    data = [np.asarray(c._host() if hasattr(c, "_host") else c) for c in consts] + [np.asarray(a) for a in args]
    program = lower(without_inspections(jaxpr)[0], "main", donated, features)[0]
    return program, [np.ascontiguousarray(x).tobytes() for x in data]


def of_row(form: str, row):
    """(function, arguments) of a row: itself, its vjp, or vmap of it."""
    args = row.sample()
    if form == "value":
        return row.fun, args
    if form == "vmap":
        return weft.vmap(row.fun), [np.stack([a, a[::-1] if a.ndim else a]) for a in args]
    at = [k for k, a in enumerate(args) if is_float(dtype_of(a.dtype))]

    def vjp(*floats):
        full = list(map(jnp.asarray, args))
        out, back = weft.vjp(
            lambda *xs: row.fun(*[xs[at.index(k)] if k in at else a for k, a in enumerate(full)]), *floats
        )
        return back(jnp.ones_like(out))

    return vjp, [args[k] for k in at]


def chosen(form: str):
    """The rows that are compared in a form."""
    fits = [r for r in ROWS if form != "vjp" or r.grad]
    return [r for r in fits if form == "value" or zlib.crc32(f"{form} {r.id}".encode()) % passes.SHARE == 0]


@pytest.mark.parametrize(
    ("form", "row"), [pytest.param(f, r, id=f"{f} {r.id}") for f in ("value", "vjp", "vmap") for r in chosen(f)]
)
def test_the_catalogue(form, row):
    with passes.small_sizes():
        passes.check(*lowered(*of_row(form, row), features_for(row.id)))


rng = np.random.default_rng(0)


def F(*shape):
    return rng.normal(size=shape).astype(np.float32)


def D(*shape):
    return rng.normal(size=shape)


def attention(q, k, v):
    scores = lax.dot_general(q, k, (((2,), (2,)), ((0,), (0,)))) * np.float32(0.3)
    return lax.dot_general(weft.nn.softmax(scores), v, (((2,), (1,)), ((0,), (0,))))


def layers(x, w1, w2):
    def loss(w1, w2):
        h = jnp.tanh(x @ w1)
        return jnp.mean((weft.nn.log_softmax(h @ w2, -1)) ** 2)

    return weft.grad(loss, (0, 1))(w1, w2)


def tiles(x, y):
    """A product in tiles, as a kernel of one's own."""

    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = jnp.exp(x_ref[...] @ y_ref[...])

    specs = [pl.BlockSpec((2, 4), lambda i, j: (i, 0)), pl.BlockSpec((4, 4), lambda i, j: (0, j))]
    out = pl.BlockSpec((2, 4), lambda i, j: (i, j))
    shape = weft.ShapeDtypeStruct((x.shape[0], y.shape[1]), x.dtype)
    return pl.pallas_call(kernel, shape, grid=(4, 2), in_specs=specs, out_specs=out)(x, y)


def alike(x, w, v):
    """Three layers on weights of one shape, their derivatives, and the same update of each."""

    def loss(weights):
        y = x
        for w in weights:
            y = jnp.tanh(weft.nn.softmax(y @ w) + y)
        return jnp.mean(y**2)

    weights = [w, v, w + 1]
    return [w - 0.1 * g / (1 + jnp.abs(g)) for w, g in zip(weights, weft.grad(loss)(weights))]


SHAPES = {
    "layers alike": (alike, [F(2, 3), F(3, 3), F(3, 3)]),
    "layers alike in a loop": (
        lambda x, w, v: lax.fori_loop(0, 2, lambda i, s: (s[1], s[0], alike(*s)[0]), (x, w, v)),
        [F(3, 3), F(3, 3), F(3, 3)],
    ),
    "softmax": (weft.nn.softmax, [F(9, 40)]),
    "normalised rows": (
        lambda x, g: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-3) * g,
        [F(7, 33), F(33)],
    ),
    "sum": (lambda x: x.sum(), [F(300)]),
    "sum of a matrix against the grain": (lambda x, y: (x.T * y).sum(), [F(20, 9), F(9, 20)]),
    "several reductions": (lambda x: (x.sum(), x.max(), x.min(), (x * x).sum()), [F(260)]),
    "sums of rows": (lambda x: (x.sum(-1), jnp.exp(x).sum(-1)), [F(6, 70)]),
    "largest of rows": (lambda x: (x.max(-1), x.argmax(-1)), [F(6, 70)]),
    "columns": (lambda x: (x.sum(0), x.max(0)), [F(30, 12)]),
    "columns, and what follows": (lambda x, b: jnp.tanh(x.mean(0)) - b, [F(20, 20), F(20)]),
    "columns of integers": (lambda x: x.sum(0), [rng.integers(-9, 9, size=(30, 12)).astype(np.int32)]),
    "product": (lambda a, b: jnp.maximum(a @ b, 0), [F(9, 11), F(11, 13)]),
    "products of batches": (lambda a, b: a @ b, [F(3, 8, 6), F(3, 6, 8)]),
    "attention": (attention, [F(4, 4, 5), F(4, 4, 5), F(4, 4, 5)]),
    "layers": (layers, [F(6, 5), F(5, 8), F(8, 4)]),
    "convolution": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"), [F(1, 2, 6, 6), F(3, 2, 3, 3)]),
    "pairs and quads": (lambda x: (jnp.stack([x, -x], -1), jnp.stack([x, -x, x * 2, x + 1], -1)), [F(40)]),
    "transposed": (lambda x: x.T + 1, [F(12, 10)]),
    "sorted": (lambda x: jnp.sort(x, -1), [F(3, 30)]),
    "sorted integers": (jnp.sort, [rng.integers(0, 99, size=60).astype(np.int32)]),
    "transform": (lambda x: jnp.abs(jnp.fft.fft(x)), [F(2, 16)]),
    "triangle": (lambda a: jnp.linalg.cholesky(a @ a.T + jnp.eye(5, dtype="float32")), [F(5, 5)]),
    "steps": (lambda x: lax.scan(lambda c, y: (c * 0.5 + y, c.sum()), x[0], x), [F(6, 9)]),
    "loop in a loop": (
        lambda n, x: lax.fori_loop(
            0, n, lambda i, s: lax.while_loop(lambda t: t[0] < i, lambda t: (t[0] + 1, t[1] * 0.5 + i), (0, s))[1], x
        ),
        [np.int32(5), F(7)],
    ),
    "branches": (lambda k, x: lax.switch(k, [jnp.sin, lambda y: y * 2, lambda y: y[::-1]], x), [np.int32(1), F(17)]),
    "shared storage": (lambda a, b: (a + b, a * b), [F(40), F(40)]),
    "gather and scatter": (lambda x, i: (x[i], x.at[i].add(1.0)), [F(20), np.array([3, 3, 19, 0], np.int32)]),
    "double": (lambda x: (x.sum(), jnp.exp(x), (x @ x.T)), [D(12, 12)]),
    "long integers": (lambda x: (x // 7, x.sum(), x.max()), [rng.integers(-(1 << 40), 1 << 40, size=70)]),
    "halves": (lambda x: (x.astype("bfloat16") * 2 + 1).sum(-1), [F(5, 40)]),
    "bytes": (lambda x: (x * 3, x.max(), x > 4), [rng.integers(-99, 99, size=77).astype(np.int8)]),
    "complex": (lambda a, b: (a + 1j * b) * (b - 1j * a), [F(30), F(30)]),
    "grid": (tiles, [F(8, 4), F(4, 8)]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_passes_change(name):
    fun, args = SHAPES[name]
    features = features_for(name)
    with passes.small_sizes(), enable_x64(any(a.dtype.itemsize == 8 for a in args)):
        donated = (True,) * len(args) if name == "shared storage" else ()
        program, inputs = lowered(fun, args, features, donated)
        assert passes.check(program, inputs, most=100_000) == len(BEFORE_PLANNING + AFTER_PLANNING)


def test_every_pass_changes_some_of_them():
    changed = dict.fromkeys((p.name for p in BEFORE_PLANNING + AFTER_PLANNING), 0)
    last = ""

    def after(step, program):
        nonlocal last
        text = describe(program)
        if step is not LOWERING:
            changed[step.name] += text != last
        last = text

    with passes.small_sizes():
        for name in ("softmax", "columns", "attention", "layers", "sum", "grid"):
            fun, args = SHAPES[name]
            compile_program(lowered(fun, args, FEATURES[1])[0], after=after)
    assert all(changed.values()), changed


# ---- what is found, and how it is said


def doubling(n=8) -> Program:
    x, out, i = Buffer("x", "f32", (n,), "input"), Buffer("o", "f32", (n,), "output"), Var("i")
    return Program("doubling", [x], [out], [], [Kernel("k", [For(i, n, [Store(out, i, x[i] * 2.0)], "parallel")])])


def edited(change):
    """A pass that changes the one store of `doubling`."""

    def run(program):
        (kernel,) = program.body
        (loop,) = kernel.body
        (store,) = loop.body
        return replace(program, body=[replace(kernel, body=[replace(loop, body=change(loop, store))])])

    return run


x = np.arange(8, dtype=np.float32)
TWICE = lambda loop, s: [Store(s.buffer, s.index, s.value * 2.0)]
OFF_BY_ONE = lambda loop, s: [Store(s.buffer, s.index, Load(s.value.a.buffer, s.index + 1))]
UNSEEN = lambda loop, s: [Store(s.buffer, s.index, Load(s.value.a.buffer, nodes.maximum(s.index + 1, 1)))]
UNBOUND = lambda loop, s: [Store(s.buffer, Var("j"), s.value)]
ROUNDED = lambda loop, s: [Store(s.buffer, s.index, s.value * (1 + 2.0**-22))]


@pytest.mark.parametrize(
    ("change", "exact", "error", "said"),
    [
        (
            TWICE,
            False,
            passes.PassError,
            r"broken has changed doubling: element 1 of o: f32\[8\] was .*2.0.* and is .*4.0.* \(7 of 8 differ\)",
        ),
        (
            OFF_BY_ONE,
            False,
            VerifyError,
            r"after broken: doubling, kernel k, loop i: the index runs from 1 to 8, outside x: f32\[8\]",
        ),
        (
            UNSEEN,
            False,
            passes.PassError,
            r"broken has changed doubling: it gave results, and gives the error 'index 8 is outside x",
        ),
        (UNBOUND, False, VerifyError, "after broken: doubling, kernel k, loop i: j is used but not bound here"),
        (ROUNDED, True, passes.PassError, "broken has changed doubling: element 1"),
    ],
    ids=["value", "index", "unseen index", "scope", "rounding"],
)
def test_a_broken_pass_is_named(monkeypatch, change, exact, error, said):
    broken = Pass("broken", edited(change), exact=exact)
    monkeypatch.setattr(driver, "BEFORE_PLANNING", (broken,))
    monkeypatch.setattr(passes, "BEFORE_PLANNING", (broken,))
    with pytest.raises(error, match=said):
        passes.check(doubling(), [x.tobytes()])
    with pytest.raises(error, match="broken"):
        compile_program(doubling(), after=passes.Checker([x.tobytes()]))


def test_rounding_is_left_to_passes_that_may():
    checker = passes.Checker([x.tobytes()])
    checker(LOWERING, doubling())
    run_passes([Pass("rounds", edited(ROUNDED), exact=False)], doubling(), checker)
    assert checker.compared == 1


def test_a_wide_result_may_be_off_as_the_narrow_numbers_that_it_is_made_of():
    """And one that is made of wide ones alone, in the same program, as these."""
    narrow, wide, i = Buffer("x", "f32", (8,), "input"), Buffer("y", "f64", (8,), "input"), Var("i")
    kept, mixed, pure = (
        Buffer("t", "f64", (8,), "temp"),
        Buffer("mixed", "f64", (8,), "output"),
        Buffer("pure", "f64", (8,), "output"),
    )
    store = lambda name, out, value: Kernel(name, [For(i, 8, [Store(out, i, value)], "parallel")])
    body = [
        store("a", kept, nodes.convert(narrow[i] * 2.0, "f64")),
        store("b", mixed, kept[i] + 1.0),
        store("c", pure, wide[i] + 1.0),
    ]
    found = passes.tolerances(Program("widened", [narrow, wide], [mixed, pure], [kept], body))
    assert [found[b] for b in (kept, mixed, pure)] == [
        passes.TOLERANCE["f32"],
        passes.TOLERANCE["f32"],
        passes.TOLERANCE["f64"],
    ]


def test_a_pass_that_changes_its_argument_is_found():
    def in_place(program):
        program.body[0].body[0].body[0] = Store(program.outputs[0], i32(0), Const(1.0, "f32"))
        return program

    checker, program = passes.Checker([x.tobytes()]), doubling()
    checker(LOWERING, program)
    with pytest.raises(passes.PassError, match="in place has changed"):
        run_passes([Pass("in place", in_place)], program, checker)


def test_programs_that_do_not_end_or_take_long_are_verified_only():
    flag = Buffer("flag", "bool", (), "temp")
    forever = doubling()
    forever.temps.append(flag)
    forever.body.append(nodes.While([Kernel("t", [Store(flag, i32(0), Const(True, "bool"))])], flag[i32(0)], []))
    assert passes.check(forever, [x.tobytes()]) == 0
    assert passes.check(doubling(100_000)) == 0
    assert passes.check(doubling()) == len(BEFORE_PLANNING + AFTER_PLANNING)


def test_a_backend_is_watched_while_it_is():
    from weft_wasm.backends.wasm import WasmBackend

    backend = WasmBackend()
    with passes.watching(backend) as watcher:
        after = backend.after
        assert after is watcher
        compile_program(doubling(), after=after)
        compile_program(doubling(100_000), after=after)
    assert watcher.compared == [len(BEFORE_PLANNING + AFTER_PLANNING), 0] and backend.after is None


# ---- rows that are fetched before their turn


def by_rows(second, extra: int = 0, n=5, m=8) -> Program:
    """Each row's largest number, and then a loop over it: `second(array, output, index)`, over `extra` more than a
    row.
    """
    x, a, out = (
        Buffer("x", "f32", (n, m), "input"),
        Buffer("a", "f32", (n, m), "temp"),
        Buffer("out", "f32", (n, m + extra), "output"),
    )
    i, j, k, t, top = Var("i"), Var("j"), Var("k"), Var("t"), Local("top", "f32")
    at = i * m + (nodes.minimum(k, i32(m - 1)) if extra else k)
    rows = For(
        i,
        n,
        [
            Declare(top, nodes.f32(-100.0)),
            For(j, m, [Assign(top, nodes.maximum(top, a[i * m + j]))], "reduce"),
            For(
                k,
                m + extra,
                [*second(a, at), Store(out, i * (m + extra) + k, nodes.Call("exp", a[at] - top))],
                "parallel",
                1,
            ),
        ],
        "parallel",
    )
    fill = Kernel("fill", [For(t, n * m, [Store(a, t, x[t])], "parallel")])
    return Program("ahead", [x], [out], [a], [fill, Kernel("rows", [rows])])


@pytest.mark.parametrize(
    ("program", "fetched"),
    [
        (by_rows(lambda a, at: []), 1),
        (by_rows(lambda a, at: [Store(a, at, a[at] * 0.5)]), 0),
        (by_rows(lambda a, at: [], extra=3), 0),
    ],
    ids=["rows that stay", "rows that the loop changes", "loops longer than a row"],
)
def test_rows_fetched_before_their_turn_are_there_and_stay(program, fetched):
    """A row that another iteration may be writing is none to be fetched, nor is there a row after the last one."""
    inputs = passes.inputs_for(program, 1)
    with passes.small_sizes():
        after = fetch_ahead(program)
    assert sum(type(s) is nodes.Let for s in traversal.walk(after.body)) == fetched
    assert interpret.run(after, inputs, strict=True) == interpret.run(program, inputs, strict=True)


def test_one_pass_alone_may_round_otherwise():
    inexact = [step.name for step in (LOWERING, *BEFORE_PLANNING, *AFTER_PLANNING) if not step.exact]
    assert inexact == ["schedule.schedule_loops"]
