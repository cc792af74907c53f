"""How the compiler runs kernels over references (weft.experimental.pallas): which axes of the grid are parallel, where
blocks are, and that threads share them.
"""

import pathlib
import sys

import numpy as np
import passes
import pytest
from platforms import need

import weft
import weft.numpy as jnp
from weft.core.trace import get_aval
from weft.runtime.backend import CompileOptions
from weft import lax
from weft.experimental import pallas as pl
from weft_wasm.backends.wasm import WasmBackend
from weft_wasm.ir.nodes import For, Kernel
from weft_wasm.lower.kernels import dependencies
from weft_wasm.ir.traversal import walk
from weft_wasm.lower.program import lower
from weft_wasm.passes.grids import join
from weft_wasm.passes.pipeline import BEFORE_PLANNING, run_passes
from weft_wasm.runtimes.desktop import DesktopRuntime

need("wasm")
sys.path.append(str(pathlib.Path(__file__).parents[1] / "experimental"))
from pallas_cases import cases  # noqa: E402

CASES = cases(weft, pl, pl.pallas_call)


def program(f, *args):
    closed = weft.make_jaxpr(f)(*args)
    assert not closed.consts
    return lower(closed.jaxpr)[0]


def parallel_loops(body):
    """The names of parallel loops around kernels."""
    return [
        name
        for s in body
        if type(s) is For
        for name in ([s.var.name] if s.kind == "parallel" else []) + parallel_loops(s.body)
    ]


# case -> axes of its grid that are parallel
PARALLEL = {
    "add": ["g0"],
    "matmul": ["g0", "g1"],
    "matmul_in_scratch": ["g0", "g1"],  # what scratch memory held before does not matter: when(k == 0)
    "accumulated_first_axis": ["g1", "g2"],
    "attention": ["g0", "g1"],
    "scratch_stays": [],
    "scratch_by_name": [],
    "reversed_blocks": [],  # not found: the number of the block is not an index itself
    "one_block_again_and_again": [],
    "three_axes": ["g0", "g1", "g2"],
    "mapped": ["g0", "g1"],
    "mapped_matmul": ["g0", "g1", "g2"],
    "two_results": ["g0"],
    "squeezed": [],
    "integer_arrays_as_indices": ["g0"],
}


@pytest.mark.parametrize("name", PARALLEL)
def test_parallel_axes(name):
    f, args = CASES[name]
    made = program(f, *args)
    assert parallel_loops(made.body) == PARALLEL[name]
    joined = join(made)
    kernels = [s for s in joined.body if type(s) is Kernel and s.name.startswith("grid_")]
    assert len(kernels) == bool(PARALLEL[name]) and not parallel_loops(joined.body)


def test_a_promise_about_scratch_memory():
    """Points of parallel axes have scratch memory of their own."""

    def kernel(x_ref, o_ref, s_ref):
        o_ref[...] = x_ref[...] + s_ref[...]
        s_ref[...] = x_ref[...]

    def run(x, **more):
        part = pl.BlockSpec((4,), lambda i: i)
        shape = weft.ShapeDtypeStruct((8,), jnp.float32)
        scratch = [pl.ANY((4,), jnp.float32)]
        return pl.pallas_call(kernel, shape, grid=2, in_specs=[part], out_specs=part, scratch_shapes=scratch, **more)(x)

    promise = pl.CompilerParams(dimension_semantics=("parallel",))
    assert parallel_loops(program(run, np.ones(8, np.float32)).body) == []
    assert parallel_loops(program(lambda x: run(x, compiler_params=promise), np.ones(8, np.float32)).body) == ["g0"]
    found = weft.jit(lambda x: run(x, compiler_params=promise), backend="wasm")(np.ones(8, np.float32))
    assert np.isnan(found).all()


def test_blocks_are_used_in_place():
    """No operand is copied, and the sum of products goes right into its tile."""
    f, args = CASES["matmul"]
    made = program(f, *args)
    assert max((b.size for b in made.temps), default=0) <= 16 * 8  # a tile, never an array


def test_blocks_that_are_copied():
    """A sort takes elements that lie one behind the other."""

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.sort(x_ref[...], axis=0)

    tile = pl.BlockSpec((4, 4), lambda i, j: (i, j))
    x = np.random.RandomState(0).randn(8, 12).astype(np.float32)
    f = pl.pallas_call(
        kernel, weft.ShapeDtypeStruct((8, 12), jnp.float32), grid=(2, 3), in_specs=[tile], out_specs=tile
    )
    found = weft.jit(f, backend="wasm")(x)
    np.testing.assert_array_equal(found, np.concatenate([np.sort(x[:4], 0), np.sort(x[4:], 0)]))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: jnp.concatenate([x[:2], 2 * x[2:]]).at[0].set(1),
        lambda x: lax.cond(x[0, 0] > 0, lambda: jnp.concatenate([x[2:], x[:2]]), lambda: x),
        lambda x: lax.scan(lambda c, r: (c + r, c), x[0], x)[1],
        lambda x: lax.fori_loop(0, 3, lambda i, c: c @ c * 0.5, x),
        lambda x: jnp.cumsum(x, axis=0)[::-1],
        lambda x: x[lax.iota("int32", 4)[::-1] // 2],
        lambda x: jnp.fft.fft(x).real,
        lambda x: lax.conv(x[None, None], jnp.ones((1, 1, 3, 3), jnp.float32), (1, 1), "SAME")[0, 0],
        lambda x: x.at[jnp.arange(2)].add(1.0),
    ],
)
def test_operations_on_blocks(fun):
    """As on arrays, for each tile."""

    def kernel(x_ref, o_ref):
        o_ref[...] = fun(x_ref[...])

    tile = pl.BlockSpec((4, 4), lambda i, j: (i, j))
    x = np.random.RandomState(0).randn(8, 8).astype(np.float32)
    shape = weft.ShapeDtypeStruct((8, 8), jnp.float32)
    f = pl.pallas_call(kernel, shape, grid=(2, 2), in_specs=[tile], out_specs=tile)
    want = np.block([[np.asarray(fun(jnp.asarray(x[i : i + 4, j : j + 4]))) for j in (0, 4)] for i in (0, 4)])
    np.testing.assert_allclose(weft.jit(f, backend="wasm")(x), want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(weft.jit(f, backend="cpu")(x), want, rtol=1e-4, atol=1e-4)


def product(n, size):
    """A product of n × n matrices in tiles, which are summed up in scratch memory."""

    def kernel(x_ref, y_ref, o_ref, acc_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        acc_ref[...] += x_ref[...] @ y_ref[...]

        @pl.when(pl.program_id(2) == n // size - 1)
        def _():
            o_ref[...] = acc_ref[...]

    tile = lambda index: pl.BlockSpec((size, size), index)
    return pl.pallas_call(
        kernel,
        weft.ShapeDtypeStruct((n, n), jnp.float32),
        grid=(n // size,) * 3,
        in_specs=[tile(lambda i, j, k: (i, k)), tile(lambda i, j, k: (k, j))],
        out_specs=tile(lambda i, j, k: (i, j)),
        scratch_shapes=[pl.ANY((size, size), jnp.float32)],
    )


@pytest.mark.parametrize("count, n, size", [(2, 256, 64), (5, 256, 64), (2, 512, 256)])
def test_threads_share_the_grid(count, n, size):
    """And no loop inside, as those of large products would else."""
    backend = WasmBackend(DesktopRuntime(threads=count))
    x, y = np.random.RandomState(1).randn(2, n, n).astype(np.float32)
    f = product(n, size)
    made = run_passes(BEFORE_PLANNING, program(f, x, y))
    (grid,) = [s for s in made.body if type(s) is Kernel and s.name.startswith("grid_")]
    assert [s.tasks > 0 for s in grid.body if type(s) is For] == [True]
    assert [s.tasks for s in walk(grid.body) if type(s) is For and s.tasks] == [s.tasks for s in grid.body[-1:]]
    device = backend.devices()[0]
    executable = backend.compile(weft.make_jaxpr(f)(x, y).jaxpr, device, CompileOptions())
    (found,) = executable.execute([backend.put(a, get_aval(a), device, False) for a in (x, y)])
    np.testing.assert_allclose(np.asarray(found._host()), x @ y, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ["softmax", "two_results", "beyond_two_edges", "branches", "three_axes"])
def test_each_pass_keeps_the_results(name):
    f, args = CASES[name]
    assert passes.check(program(f, *args), most=1e5) > 0


def test_each_pass_keeps_a_product():
    x = np.ones((4, 4), np.float32)
    assert passes.check(program(product(4, 2), x, x), most=1e5) > 0


def test_dependencies():
    def f(i, x, y):
        first = lax.cond(i == 0, lambda: x, lambda: y)
        return first, weft.jit(lambda a, b: (b, a))(x, y)[0], i + 1

    jaxpr = weft.make_jaxpr(f)(0, 1.0, 2.0).jaxpr
    i, x, y = jaxpr.invars
    assert dependencies(jaxpr, {}) == [{i, x, y}, {y}, {i}]
    assert dependencies(jaxpr, {i: 0})[0] == {x} and dependencies(jaxpr, {i: 1})[0] == {y}


def increased(x_ref, o_ref):
    o_ref[...] = x_ref[...] + pl.program_id(0)


PAIRS = pl.BlockSpec((2,), lambda i: i)
STEPS = pl.pallas_call(increased, weft.ShapeDtypeStruct((4,), jnp.float32), grid=2, in_specs=[PAIRS], out_specs=PAIRS)


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_around_and_inside(backend):
    """Kernels in loops, branches and kernels; carries and donated arguments are not overwritten too soon."""
    need(backend)
    run = lambda f, *args, **more: weft.jit(f, backend=backend, **more)(*args).tolist()
    thrice = lambda x: lax.scan(lambda c, _: (STEPS(c), None), x, None, length=3)[0]
    assert run(thrice, jnp.zeros(4, jnp.float32)) == [0, 0, 3, 3]
    assert run(lambda x: STEPS(STEPS(x) * 2) + x, jnp.ones(4, jnp.float32), donate_argnums=0) == [3, 3, 6, 6]
    assert run(lambda x: lax.cond(x[0] > 0, STEPS, lambda x: x, x), jnp.ones(4, jnp.float32)) == [1, 1, 2, 2]
    half = pl.BlockSpec((None, 4), lambda i, j: (i, j))

    def outer(x_ref, o_ref):
        o_ref[...] = STEPS(x_ref[...])

    f = pl.pallas_call(outer, weft.ShapeDtypeStruct((2, 8), jnp.float32), grid=(2, 2), in_specs=[half], out_specs=half)
    assert run(f, jnp.zeros((2, 8), jnp.float32)) == [[0, 0, 1, 1] * 2] * 2


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "bfloat16", "float8_e5m2", "complex64"])
def test_types(dtype, backend):
    need(backend)
    part = pl.BlockSpec((1, 2), lambda i, j: (i, 1 - j))
    x = (np.arange(8).reshape(2, 4) % 3).astype(np.complex64 if dtype == "complex64" else np.float32)
    shape = weft.ShapeDtypeStruct((2, 4), dtype)
    flip = lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[..., ::1][:, ::-1])
    f = pl.pallas_call(flip, shape, grid=(2, 2), in_specs=[part], out_specs=part)
    found = weft.jit(f, backend=backend)(jnp.asarray(x).astype(dtype)).astype(x.dtype)
    want = np.asarray(jnp.asarray(x).astype(dtype).astype(x.dtype)).reshape(2, 2, 2)[:, :, ::-1].reshape(2, 4)
    np.testing.assert_array_equal(found, want)
