"""Reductions down columns, which are computed row by row: all that may stand in the loops, around them and after
them.
"""

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from wasm_harness import assert_close, compiled, jaxpr_of, reference, run, values
from weft.core.trace import get_aval
from weft.runtime.backend import CompileOptions
from weft_wasm.passes import schedule, threads
from weft_wasm.backends.wasm import WasmBackend
from weft_wasm.compile import compile_program
from weft_wasm.runtimes.desktop import DesktopRuntime

SHAPES = [(128, 256), (131, 300), (203, 1100), (300, 2048)]  # one part, several, and a rest
F32 = np.float32
rng = np.random.default_rng(5)


def scheduled(fun, *args):
    """The buffers that hold what is known of columns."""
    program = schedule.schedule_loops(compiled(fun, *args)[0].program)
    return [b for b in program.temps if b.role == "private"]


def columns(*shape):
    return rng.normal(size=shape).astype(F32)


CASES = {
    "mean": lambda x, row, column: x.mean(0),
    "bias": lambda x, row, column: row - 0.01 * x.sum(0),
    "two sums": lambda x, row, column: (x.sum(0), (x * x).sum(0) * 2),
    "sum and extrema": lambda x, row, column: (x.sum(0), x.max(0) - x.min(0)),
    "less a row": lambda x, row, column: ((x - row) ** 2).sum(0),
    "weighed": lambda x, row, column: (x * column[:, None]).sum(0) + row,
    "variance": lambda x, row, column: jnp.var(x, 0),
    "softmax": lambda x, row, column: weft.nn.softmax(x, axis=0),
    "logsumexp": lambda x, row, column: weft.nn.logsumexp(x * row, axis=0),
    "functions": lambda x, row, column: jnp.tanh(x * column[:, None]).sum(0) / row,
    "product": lambda x, row, column: (1 + x / 100).prod(0),
    "largest size": lambda x, row, column: jnp.abs(x).max(0) * 2,
    "of rows of matrices": lambda x, row, column: jnp.stack([x, x + 1]).mean(1),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_float_sums_and_extrema(name, shape):
    args = columns(*shape), columns(shape[1]) + 3, columns(shape[0])
    assert scheduled(CASES[name], *args)
    wide = reference(CASES[name], *[a.astype(np.float64) for a in args])
    for got, want in zip(run(CASES[name], *args), wide, strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(
            got, want, rtol=2e-5 if name in ("product", "softmax", "functions") else 3e-6, atol=3e-5
        )


@pytest.mark.parametrize("rows", [128, 131, 203, 1000])
def test_rows_are_combined_side_by_side(rows):
    x, i = rng.normal(size=(rows, 1536)).astype(np.float32), rng.integers(-50, 50, (rows, 67)).astype(np.int32)
    for op in ("max", "min", "sum"):
        np.testing.assert_array_equal(np.asarray(weft.jit(lambda i: getattr(i, op)(0))(i)), getattr(i, op)(0))
        np.testing.assert_allclose(
            np.asarray(weft.jit(lambda x: getattr(x, op)(0))(x)), getattr(x.astype(np.float64), op)(0), atol=2e-5
        )
    near_one = (1 + x / 100).astype(np.float32)
    np.testing.assert_allclose(
        np.asarray(weft.jit(lambda x: x.prod(0))(near_one)), near_one.astype(np.float64).prod(0), rtol=5e-5
    )
    squares, above = weft.jit(lambda x: ((x * x).sum(0) + 1, (x > 2).any(0)))(x)
    np.testing.assert_allclose(np.asarray(squares), (x.astype(np.float64) ** 2).sum(0) + 1, rtol=3e-7)
    np.testing.assert_array_equal(np.asarray(above), (x > 2).any(0))


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16", "int32", "int8", "uint16", "int64", "bool"])
@pytest.mark.parametrize("op", ["sum", "max", "min", "prod", "any", "all"])
def test_dtypes(dtype, op):
    x = values(rng, dtype, (150, 1100), 0.9, 1.1)
    fun = lambda x: getattr(jnp, op)(x, 0)  # noqa: E731
    assert scheduled(fun, x)
    (got,), (want,) = run(fun, x), reference(fun, x)
    assert_close(got, want, 1e-12 if dtype == "float64" else 2e-2 if "16" in dtype and "float" in dtype else None)


@pytest.mark.parametrize("shape", SHAPES)
def test_where_extrema_are(shape):
    x = rng.integers(-40, 40, shape).astype(F32)
    x[5, 7] = x[9, 7] = np.nan
    x[3, 8] = np.inf
    fun = lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 0))  # noqa: E731
    assert scheduled(fun, x)
    for got, want in zip(run(fun, x), (x.argmax(0), x.argmin(0))):
        np.testing.assert_array_equal(got, want)


def test_special_values():
    x = columns(200, 600)
    x[7, 1], x[8, 2], x[9, 3], x[:, 4], x[:, 5], x[10, 6], x[11, 6] = (
        np.nan,
        np.inf,
        -np.inf,
        -0.0,
        np.where(np.arange(200) == 50, 0.0, -0.0),
        np.inf,
        -np.inf,
    )
    top, least, total = run(lambda x: (x.max(0), x.min(0), x.sum(0)), x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(top, x.max(0))
        np.testing.assert_array_equal(least, x.min(0))
        np.testing.assert_allclose(total, x.sum(0), rtol=1e-4, atol=1e-4)
    assert np.signbit(top[4]) and not np.signbit(top[5]) and np.signbit(least[5])


def test_long_sums_lose_nothing():
    """What rounding takes from the total is kept and added."""
    x = np.full((1 << 15, 256), 0.1, F32)
    assert scheduled(lambda x: x.mean(0), x)
    want = np.float64(F32(0.1))
    for got in run(lambda x: (x.mean(0), x.sum(0) * F32(2.0**-15)), x):
        assert np.abs(got - want).max() < 1e-8


def test_an_argument_may_be_the_result():
    """Donated storage is read before it is written, whatever column is computed first."""
    bias, x = columns(1100), columns(140, 1100)
    step = weft.jit(lambda b, x: b - 0.1 * x.sum(0), donate_argnums=0)
    want = bias - 0.1 * x.astype(np.float64).sum(0)
    np.testing.assert_allclose(np.asarray(step(jnp.asarray(bias), x)), want, rtol=1e-5, atol=1e-5)


def test_threads_share_the_columns(monkeypatch):
    fun = lambda x, row: (row - x.mean(0), jnp.argmax(x, 0))  # noqa: E731
    args = columns(160, 4096 + 70), columns(4096 + 70)
    want = run(fun, *args)
    monkeypatch.setattr(threads, "WORTH", 0)
    backend = WasmBackend(DesktopRuntime(threads=3))
    device = backend.devices()[0]
    shared = backend.compile(jaxpr_of(fun, args)[0], device, CompileOptions())
    assert compile_program(shared.program, schedule=True).metadata["tasks"]["count"] >= 2
    outs = shared.execute([backend.put(a, get_aval(a), device, False) for a in args])
    for got, expected in zip(outs, want, strict=True):
        np.testing.assert_array_equal(np.asarray(got._host()), expected)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, i: x[:100].sum(0),  # too few rows
        lambda x, i: x[:, :60].mean(0),  # too few columns
        lambda x, i: x.reshape(600, -1)[:, :90].mean(0),  # rows near each other
        lambda x, i: x[i].sum(1),  # along the rows
        # wherever the indices say
        lambda x, i: jnp.take_along_axis(x, i[:, None] + jnp.arange(256)[None, :], 1).sum(0),
    ],
)
def test_what_is_left_as_it_is(fun):
    x, i = columns(200, 300), rng.integers(0, 40, 200).astype(np.int32)
    (got,), (want,) = run(fun, x, i), reference(fun, x.astype(np.float64), i)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=3e-5)
    assert not scheduled(fun, x, i)
