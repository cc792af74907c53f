"""Kernels over the same rows are fused: those that are, those that must not be, and their results."""

import numpy as np
import pytest
from wasm_harness import check, compiled, values
from weft import lax, nn
from weft_wasm.ir import nodes, traversal
from weft_wasm.passes import buffers, kernel_fusion, schedule
from weft_wasm.compile import compile_program
from weft_wasm.ir.nodes import Assign, Buffer, Declare, For, Kernel, Local, Program, Store, Var, f32
from weft_wasm.passes.prefetch import fetch_ahead
from weft_wasm.runtimes.wasmtime_device import WasmtimeDevice

rng = np.random.default_rng(5)
F = lambda *shape: values(rng, "float32", shape)
ROWS, SIZE = 300, 131  # more than what two kernels must share to become one, and no whole vectors


def merged(fun, *args) -> tuple[Program, list[Kernel]]:
    program = kernel_fusion.fuse_kernels(compiled(fun, *args)[0].program)
    return program, [s for s in traversal.walk(program.body) if type(s) is Kernel]


def layer_norm(x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("fun", [nn.softmax, nn.log_softmax, layer_norm], ids=["softmax", "log_softmax", "layer_norm"])
def test_a_row_is_finished_before_the_next(fun):
    import weft.numpy as jnp

    f = lambda x: fun(jnp.asarray(x))
    check(f, F(ROWS, SIZE), tolerance=1e-5)
    program, kernels = merged(f, F(ROWS, SIZE))
    assert len(kernels) == 1
    assert max(b.size for b in program.temps) <= ROWS, "no array in between, one row at most"
    check(lambda x: f(lax.dot(x, x[:SIZE])), F(ROWS, SIZE), tolerance=1e-3)


@pytest.mark.parametrize("fun", [nn.softmax, nn.log_softmax, layer_norm], ids=["softmax", "log_softmax", "layer_norm"])
@pytest.mark.parametrize(
    "shape,ahead",
    [((512, 521), True), ((60, 8191), True), ((300, 131), False), ((4096, 128), False), ((30, 1 << 14), False)],
)
def test_the_next_row_of_a_large_array_is_fetched(fun, shape, ahead):
    import weft.numpy as jnp

    f = lambda x: fun(jnp.asarray(x))
    scheduled = kernel_fusion.fuse_batches(
        schedule.schedule_loops(kernel_fusion.fuse_kernels(compiled(f, F(*shape))[0].program))
    )
    loads = [
        s.value for s in traversal.walk(fetch_ahead(scheduled).body) if type(s) is nodes.Let and s.var.name == "ahead"
    ]
    assert [x.buffer.role for x in loads] == ["input"] * ahead
    if ahead:
        check(f, F(*shape), tolerance=2e-5)


def test_small_arrays_and_long_rows_stay_as_they_are():
    assert len(merged(nn.softmax, F(20, SIZE))[1]) > 1
    assert len(merged(nn.softmax, F(4, 1 << 15))[1]) > 1


def test_rows_inside_a_loop():
    f = lambda x: lax.fori_loop(0, 3, lambda i, x: nn.softmax(x * np.float32(2)), x)
    check(f, F(ROWS, SIZE), tolerance=1e-5)
    g = lambda xs: lax.scan(lambda c, x: (c + 1, nn.softmax(x)), np.float32(0), xs)
    check(lambda xs: list(g(xs)), F(2, ROWS, SIZE), tolerance=1e-5)


def outputs(program: Program, inputs, **options) -> list[np.ndarray]:
    device = WasmtimeDevice()
    pointers = [device.alloc(x.nbytes) for x in inputs]
    for p, x in zip(pointers, inputs):
        device.write(p, x.tobytes())
    results = device.run(device.load(compile_program(program, **options)), pointers)
    return [np.frombuffer(device.read(p, b.nbytes), np.float32) for p, b in zip(results, program.outputs)]


def store_rows(name: str, out: Buffer, value, index=lambda i, j: i * SIZE + j) -> Kernel:
    i, j = Var("i"), Var("j")
    return Kernel(name, [For(i, ROWS, [For(j, SIZE, [Store(out, index(i, j), value(i, j))], "parallel")], "parallel")])


def sum_rows(name: str, out: Buffer, x: Buffer, index=lambda i, j: i * SIZE + j) -> Kernel:
    i, j, acc = Var("i"), Var("j"), Local("acc", "f32")
    body = [Declare(acc, f32(0.0)), For(j, SIZE, [Assign(acc, acc + x[index(i, j)])], "reduce"), Store(out, i, acc)]
    return Kernel(name, [For(i, ROWS, body, "parallel")])


def programs():
    """(program, kernels that are left)."""
    new = lambda name, role: Buffer(name, "f32", (ROWS, SIZE), role)
    x, y, t, u, out = new("x", "input"), new("y", "input"), new("t", "temp"), new("u", "temp"), new("out", "output")
    sums, flipped = Buffer("sums", "f32", (ROWS,), "output"), lambda i, j: (ROWS - 1 - i) * SIZE + j
    at = lambda i, j: i * SIZE + j
    double = store_rows("double", t, lambda i, j: x[at(i, j)] * 2.0)
    yield "sum", Program("sum", [x], [sums], [t], [double, sum_rows("sum", sums, t)]), 1
    yield "reads other rows", Program("flip", [x], [sums], [t], [double, sum_rows("sum", sums, t, flipped)]), 2
    yield (
        "writes other rows",
        Program("back", [x], [out], [t], [double, store_rows("back", out, lambda i, j: t[at(i, j)], flipped)]),
        1,
    )
    yield (
        "writes what was read elsewhere",
        Program(
            "over",
            [x],
            [out, sums],
            [],
            [
                store_rows("first", out, lambda i, j: x[at(i, j)]),
                sum_rows("sum", sums, out, flipped),
                store_rows("second", out, lambda i, j: x[at(i, j)] * 3.0),
            ],
        ),
        3,
    )
    yield (
        "both read",
        Program(
            "both",
            [x, y],
            [out, sums],
            [],
            [store_rows("a", out, lambda i, j: x[at(i, j)] + y[at(i, j)]), sum_rows("b", sums, x)],
        ),
        1,
    )
    yield (
        "columns",
        Program("columns", [x], [sums], [t], [double, sum_rows("sum", sums, t, lambda i, j: j * SIZE + i % SIZE)]),
        2,
    )
    yield (
        "in place",
        Program(
            "chain",
            [x],
            [out],
            [t, u],
            [
                double,
                store_rows("more", u, lambda i, j: t[at(i, j)] + x[at(i, j)]),
                store_rows("last", out, lambda i, j: u[at(i, j)] * t[at(i, j)]),
            ],
        ),
        1,
    )
    parts = Buffer("parts", "f32", (ROWS, SIZE), "temp")
    half = store_rows("half", parts, lambda i, j: x[at(i, j)], lambda i, j: i * SIZE + j // 2)
    yield (
        "a row not written once",
        Program("half", [x], [sums], [parts], [half, sum_rows("sum", sums, parts, lambda i, j: i * SIZE + j // 2)]),
        2,
    )


@pytest.mark.parametrize("program,left", [p[1:] for p in programs()], ids=[p[0] for p in programs()])
def test_which_kernels_become_one(program, left):
    assert len([s for s in kernel_fusion.fuse_kernels(program).body if type(s) is Kernel]) == left
    if "half" in program.name:
        return
    inputs = [F(ROWS, SIZE) for _ in program.inputs]
    for a, b in zip(outputs(program, inputs), outputs(program, inputs, schedule=False)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "value,index,fused",
    [
        (lambda x: x * 2.0, lambda i, j: i * SIZE + j, True),
        # its constants take the registers of the sums
        (lambda x: nodes.Call("exp", x), lambda i, j: i * SIZE + j, False),
        (lambda x: x * 2.0, lambda i, j: i * SIZE, False),
    ],
    ids=["sum", "function", "another element"],
)
def test_a_row_is_reduced_as_it_is_written(value, index, fused):
    x, t = Buffer("x", "f32", (ROWS, SIZE), "input"), Buffer("t", "f32", (ROWS, SIZE), "temp")
    sums, out = Buffer("sums", "f32", (ROWS,), "output"), Buffer("out", "f32", (ROWS, SIZE), "output")
    program = Program(
        "centred",
        [x],
        [sums, out],
        [t],
        [
            store_rows("first", t, lambda i, j: value(x[i * SIZE + j])),
            sum_rows("sum", sums, t, index),
            store_rows("last", out, lambda i, j: t[i * SIZE + j] - sums[i]),
        ],
    )
    merged = kernel_fusion.fuse_kernels(program)
    (kernel,) = merged.body
    assert (
        any(
            type(s) is For and s.kind == "reduce" and any(type(inner) is Store for inner in s.body)
            for s in traversal.walk(kernel.body)
        )
        == fused
    )
    assert [b.size for b in merged.temps] == [SIZE]
    data = F(ROWS, SIZE)
    want = np.exp(data) if value(x[0]).__class__ is nodes.Call else data * 2
    for scheduled in (True, False):
        total, rest = outputs(merged, [data], schedule=scheduled)
        terms = want if index(0, 1) else np.repeat(want[:, :1], SIZE, 1)
        np.testing.assert_allclose(total, terms.sum(1, dtype=np.float64), rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(rest.reshape(ROWS, SIZE), want - total[:, None], rtol=1e-5, atol=1e-4)


def test_a_result_in_the_storage_of_an_argument():
    x, out = Buffer("x", "f32", (ROWS, SIZE), "input"), Buffer("out", "f32", (ROWS, SIZE), "output")
    sums = Buffer("sums", "f32", (ROWS,), "output")
    at, flipped = lambda i, j: i * SIZE + j, lambda i, j: (ROWS - 1 - i) * SIZE + j
    for index, left in ((at, 1), (flipped, 2)):
        program = Program(
            "donated",
            [x],
            [sums, out],
            [],
            [sum_rows("sum", sums, x, index), store_rows("out", out, lambda i, j: f32(1.0) * x[at(i, j)])],
            donated={1: 0},
        )
        assert len(kernel_fusion.fuse_kernels(program).body) == left


def test_a_row_kernels_result_takes_the_storage_of_what_it_has_read():
    program, (kernel,) = merged(lambda x: nn.softmax(x), F(ROWS, SIZE))
    pairs = kernel_fusion.in_place_pairs(kernel)
    assert (program.inputs[0], program.outputs[0]) in pairs
    assert buffers.plan(program).size < 4 * ROWS * SIZE


def joined(fun, *args) -> Program:
    return kernel_fusion.fuse_batches(
        schedule.schedule_loops(kernel_fusion.fuse_kernels(compiled(fun, *args)[0].program))
    )


def by_batch(fun, *args) -> list[Kernel]:
    return [s for s in traversal.walk(joined(fun, *args).body) if type(s) is Kernel]


def scores(q, k):
    return lax.dot_general(q, k, (((2,), (2,)), ((0,), (0,)))) * np.float32(0.125)


def times(s, v):
    return lax.dot_general(s, v, (((2,), (1,)), ((0,), (0,))))


def attention(q, k, v):
    return times(nn.softmax(scores(q, k)), v)


def qkv(size: int) -> list[np.ndarray]:
    """Enough for threads to share the batch."""
    return [F(6, size, 64) for _ in range(3)]


@pytest.mark.parametrize("queries,each", [(131, 131), (192, 192), (256, 128), (300, 150), (509, 509)])
def test_attention_is_finished_for_a_block_of_queries_before_the_next(queries, each):
    """Also of a head with so many queries that no equal blocks are small enough."""
    args = F(6, queries, 64), *(F(6, 131, 64) for _ in range(2))
    (kernel,) = by_batch(attention, *args)
    assert len(kernel.parts) == 3 and kernel.body[0].extent == 6 and kernel.body[0].tasks == 1
    assert kernel.depth == (1 if each == queries else 2)
    check(attention, *args, tolerance=1e-5)
    program = joined(attention, *args)
    own = [b for b in program.temps if b.role == "private" and b.size == each * 131]
    assert len(own) == 1, "the weights take the place of the scores"
    assert max(b.size for b in program.temps) == max(each * 131, 136 * 64), (
        "the scores of a block, or a head's keys in panels"
    )


def test_attention_over_long_sequences_keeps_no_scores():
    args = [F(4, 2048, 16) for _ in range(3)]
    check(attention, *args, tolerance=1e-5)
    assert buffers.plan(joined(attention, *args)).private_size < 4 * 2048 * 2048 / 8


def test_weights_that_are_needed_later_are_kept():
    both = lambda q, k, v: (lambda p: (times(p, v), p))(nn.softmax(scores(q, k)))
    check(both, *(F(6, 256, 64) for _ in range(3)), tolerance=1e-5)
    twice = lambda q, k, v: times(p := nn.softmax(scores(q, k)), v) + times(p[:, ::-1], v)
    check(twice, *(F(6, 256, 64) for _ in range(3)), tolerance=1e-5)


def test_gradients_of_attention():
    import weft

    loss = lambda q, k, v: (attention(*map(weft.numpy.asarray, (q, k, v))) ** 2).sum()
    check(weft.grad(loss, (0, 1, 2)), *(F(4, 256, 32) for _ in range(3)), tolerance=1e-4)


@pytest.mark.parametrize("size", [131, 256], ids=["a head at a time", "blocks of rows"])
@pytest.mark.parametrize(
    "fun,kernels",
    [
        (lambda q, k, v: times(nn.softmax(scores(q, k)[::-1]), v), None),  # other matrices of the batch
        (lambda q, k, v: scores(q, k) - scores(q, k).sum(0), None),
        (lambda q, k, v: lax.cumsum(scores(q, k), 0), None),
        (lambda q, k, v: times(nn.softmax(scores(q, k), axis=0), v), None),
        (
            lambda q, k, v: times(nn.softmax(scores(q, k).reshape(3, -1, q.shape[1])).reshape(6, *2 * q.shape[1:2]), v),
            1,
        ),
        (lambda q, k, v: (nn.softmax(scores(q, k)), times(scores(q, k), v)), None),
        (lambda q, k, v: times(scores(q, k) + times(nn.softmax(scores(k, q)), v)[:, :, :1], v), None),
        (lambda q, k, v: times(nn.softmax(scores(q, k).transpose(0, 2, 1)), v), None),
    ],
    ids=["flipped", "sum", "cumsum", "across", "reshaped", "used twice", "two", "transposed"],
)
def test_neighbours_of_a_product_of_batches(fun, kernels, size):
    import weft

    fun = lambda q, k, v, fun=fun: fun(*map(weft.numpy.asarray, (q, k, v)))
    args = qkv(size)
    check(fun, *args, tolerance=1e-3)
    if kernels:
        assert len(by_batch(fun, *args)) == kernels
    run, device = compiled(fun, *args)[0].program, WasmtimeDevice(threads=3)
    loaded = device.load(compile_program(run))
    alone = outputs(run, args)
    pointers = [device.alloc(x.nbytes) for x in args]
    for p, x in zip(pointers, args):
        device.write(p, x.tobytes())
    for p, want in zip(device.run(loaded, pointers), alone):
        np.testing.assert_array_equal(np.frombuffer(device.read(p, want.nbytes), np.float32), want)


@pytest.mark.parametrize("stored", [False, True])
def test_what_the_first_pass_stores_is_looked_at(stored):
    """The row that it reads is fetched, whichever statement reads it; no loop runs twice for that."""
    rows, size = 128, 4096
    x, out = Buffer("x", "f32", (rows, size), "input"), Buffer("out", "f32", (rows, size), "output")
    line, r, i, j, acc = Buffer("line", "f32", (size,), "private"), Var("r"), Var("i"), Var("j"), Local("acc", "f32")
    value = x[r * size + i]
    first = Store(line, i, value * 2.0) if stored else Assign(acc, acc + value)
    last = Store(out, r * size + j, nodes.Call("exp", line[j] if stored else x[r * size + j] + acc))
    kind = "parallel" if stored else "reduce"
    passes = [For(i, size, [first], kind, vector=1), For(j, size, [last], "parallel", vector=1)]
    kernel = Kernel("k", [For(r, rows, [Declare(acc, f32(0.0)), *passes], "parallel")])
    fetched = fetch_ahead(Program("p", [x], [out], [line] if stored else [], [kernel]))
    inside = list(traversal.walk(fetched.body))
    assert [s.var.name for s in inside if type(s) is nodes.Let] == ["ahead"]
    assert sum(type(s) is For for s in inside) == 3
