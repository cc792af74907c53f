"""The GEMM routine over odd shapes, transposes, batches, dtypes and epilogues, against NumPy."""

import numpy as np
import pytest
from kernel_harness import NUMPY, RELAXED, run_wasm
from weft_wasm.ir import nodes, traversal
from weft_wasm.ir.nodes import Buffer, Call, Program, Store, f32
from weft_wasm.routines.gemm import Panels, Tile, default_tile, gemm

SHAPES = [
    (1, 1, 1),
    (1, 64, 300),
    (64, 1, 64),
    (3, 5, 2),
    (5, 7, 9),
    (16, 16, 16),
    (33, 17, 65),
    (6, 8, 256),
    (61, 64, 128),
    (128, 10, 64),
    (7, 100, 1000),
    (100, 9, 3),
    (97, 131, 77),
    (24, 24, 1030),
    (4, 4, 2000),
    (250, 33, 31),
    (0, 4, 4),
    (4, 4, 0),
    (20, 140, 1301),
    (200, 136, 1301),
    (200, 136, 7),
    (200, 40, 1301),
    (13, 130, 1290),
]


def product(m, n, k, *, ta=False, tb=False, batch=1, dtype="f32", epilogue=None, routine=gemm, **options):
    x = Buffer("x", dtype, (batch, k, m) if ta else (batch, m, k), "input")
    y = Buffer("y", dtype, (batch, n, k) if tb else (batch, k, n), "input")
    bias, out = Buffer("bias", dtype, (n,), "input"), Buffer("out", dtype, (batch, m, n), "output")
    made = routine(
        "matmul",
        m,
        n,
        k,
        lambda b, i, q: x[b * (m * k) + (q * m + i if ta else i * k + q)],
        lambda b, q, j: y[b * (k * n) + (j * k + q if tb else q * n + j)],
        lambda b, i, j, value: [Store(out, b * (m * n) + i * n + j, epilogue(bias[j], value) if epilogue else value)],
        batch=batch,
        dtype=dtype,
        **options,
    )
    return Program("matmul", [x, y, bias], [out], made.temps, made.kernels)


def check(m, n, k, *, ta=False, tb=False, batch=1, dtype="f32", features=("simd128",), seed=0, **options):
    rng = np.random.default_rng(seed)
    if "routine" not in options:
        options["features"] = frozenset(features)
    program = product(m, n, k, ta=ta, tb=tb, batch=batch, dtype=dtype, **options)
    if dtype[0] == "f":
        draw = lambda shape: rng.normal(size=shape).astype(NUMPY[dtype])  # noqa: E731
    else:
        draw = lambda shape: rng.integers(0, 7, shape).astype(NUMPY[dtype])  # noqa: E731
    a, b = draw((batch, m, k)), draw((batch, k, n))
    bias = draw((n,))
    got = run_wasm(program, a.swapaxes(1, 2) if ta else a, b.swapaxes(1, 2) if tb else b, bias, features=features)[0]
    if dtype[0] != "f":
        np.testing.assert_array_equal(got, a @ b)
        return
    expected = a.astype(np.float64) @ b.astype(np.float64)
    if "epilogue" in options:
        expected = np.maximum(expected + bias, 0)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * max(k, 1) ** 0.5 if dtype == "f32" else 1e-12)


@pytest.mark.parametrize("features", [("simd128",), RELAXED, ()], ids=["simd128", "relaxed", "scalar"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(shape, features):
    check(*shape, features=features)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("shape", [(33, 41, 70), (64, 64, 64), (40, 3, 100)], ids=str)
def test_transposed_operands(shape, ta, tb):
    check(*shape, ta=ta, tb=tb)


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(
    "shape,together",
    [((40, 160, 700), 2), ((40, 160, 1280), 2), ((40, 160, 1301), 2), ((40, 168, 700), 1), ((40, 150, 90), 1)],
    ids=str,
)
def test_panels_that_are_packed_together(shape, together, tb):
    (columns,) = [b for b in product(*shape, tb=tb).temps if b.name == "matmul.b"]
    assert columns.shape[0] == together
    check(*shape, tb=tb)


@pytest.mark.parametrize("dtype", ["f64", "i32", "u8", "bool", "i64"])
def test_dtypes(dtype):
    check(29, 35, 41, dtype=dtype)


@pytest.mark.parametrize("shape", [(30, 20, 40), (8, 8, 3)], ids=str)
def test_batch_and_epilogue(shape):
    check(*shape, batch=3, epilogue=lambda bias, value: nodes.maximum(value + bias, 0.0))


@pytest.mark.parametrize("shape", [(256, 20, 300), (256, 130, 1280), (384, 32, 100), (211, 30, 200)], ids=str)
@pytest.mark.parametrize("ta", [False, True])
def test_batches_in_blocks_of_rows(shape, ta):
    m, n, k = shape
    assert product(m, n, k, ta=ta, batch=4).body[0].depth == (1 if m == 211 else 2)
    check(*shape, ta=ta, batch=4, epilogue=lambda bias, value: nodes.maximum(value + bias, 0.0))


@pytest.mark.parametrize("shape", [(128, 10, 512), (300, 5, 64), (50, 10, 100), (31, 9, 70), (65, 17, 200)], ids=str)
@pytest.mark.parametrize("ta,tb", [(False, False), (True, False), (False, True)])
def test_few_columns_become_rows(shape, ta, tb):
    check(*shape, ta=ta, tb=tb, epilogue=lambda bias, value: nodes.maximum(value + bias, 0.0))
    assert np.prod(product(*shape).temps[0].shape) == shape[2] * -(-shape[1] // -(-shape[1] // 5)) * -(-shape[1] // 5)


@pytest.mark.parametrize("seed", range(12))
def test_random_tiles(seed):
    rng = np.random.default_rng(seed)
    tile = Tile(
        mr=int(rng.integers(1, 8)),
        nr=int(rng.choice([4, 8, 16])),
        kc=int(rng.choice([8, 16, 40])),
        mc=int(rng.integers(8, 40)),
        nc=int(rng.choice([16, 32, 200])),
        unroll=int(rng.choice([1, 2, 4])),
    )
    check(*(int(v) for v in rng.integers(20, 90, 3)), tile=tile, seed=seed)


def test_operands_are_any_expression():
    """A fused producer and a conversion of the result."""
    m, n, k = 20, 24, 28
    x, y = Buffer("x", "bf16", (m, k), "input"), Buffer("y", "f32", (k, n), "input")
    out = Buffer("out", "bf16", (m, n), "output")
    routine = gemm(
        "fused",
        m,
        n,
        k,
        lambda _, i, q: nodes.convert(x[i * k + q], "f32"),
        lambda _, q, j: Call("exp", y[q * n + j] * f32(0.5)),
        lambda _, i, j, value: [Store(out, i * n + j, nodes.convert(value, "bf16"))],
    )
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(m, k)).astype(NUMPY["bf16"]), rng.normal(size=(k, n)).astype(np.float32)
    got = run_wasm(Program("fused", [x, y], [out], routine.temps, routine.kernels), a, b)[0]
    np.testing.assert_allclose(got.astype(np.float32), a.astype(np.float32) @ np.exp(b * 0.5), rtol=1e-2, atol=2e-2)


def test_nan_stays_in_its_row():
    """Padding of ragged panels never leaks into results."""
    m, n, k = 13, 11, 67
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(1, m, k)).astype(np.float32), rng.normal(size=(1, k, n)).astype(np.float32)
    a[0, 12, 66], b[0, 66, 10] = np.nan, np.inf
    got = run_wasm(product(m, n, k), a, b, np.zeros(n))[0]
    assert np.isnan(got[0, 12]).all() and not np.isnan(got[0, :12]).any()
    assert np.isinf(got[0, :12, 10]).all() and np.isfinite(got[0, :12, :10]).all()


@pytest.mark.parametrize("extent", range(1, 40))
@pytest.mark.parametrize("most", [1, 5, 6])
def test_panels_hold_every_row_once(extent, most):
    panels = Panels(extent, most)
    heights = [panels.height] * panels.tall + [panels.height - 1] * (panels.count - panels.tall)
    assert sum(heights) == extent and max(heights) <= most and panels.count == -(-extent // most)


def test_narrow_products_read_rows_where_they_lie():
    """No copy of the left operand is made where there are few columns, none of the whole right one where there are
    few rows.
    """
    sizes = lambda *shape, **options: {t.name[7:]: t.size for t in product(*shape, **options).temps}  # noqa: E731
    assert sizes(400, 64, 96) == {"b": 64 * 96} and "a" in sizes(400, 64, 96, ta=True) and "a" in sizes(400, 264, 96)
    assert sizes(96, 264, 100) == {"b": 8 * 100}


def test_partial_sums_of_few_columns_are_kept():
    """All slices of some columns come before the next columns, unless the rows of the right operand lie in too many
    pages.
    """
    partial = lambda *shape: next(t.size for t in product(*shape).temps if t.name == "matmul.c")  # noqa: E731
    assert partial(40, 160, 1000) == 8 * 2 * 5 * 8 and partial(40, 160, 1280) == 8 * 20 * 5 * 8


@pytest.mark.parametrize("shape", [(6, 264, 100), (5, 160, 700), (40, 160, 700), (190, 264, 100)], ids=str)
@pytest.mark.parametrize("ta", [False, True])
def test_columns_are_packed_by_the_first_panel_of_rows(shape, ta):
    """One panel of rows has nobody to pack for."""
    assert any(t.name == "matmul.b" for t in product(*shape, ta=ta, features=RELAXED).temps) == (shape[0] > 6)
    check(*shape, ta=ta, features=RELAXED, batch=2)


def test_the_panel_that_packs_has_one_height():
    """Which height it has is known: one tile for it, and one for each height of the others."""
    tiles = [
        s
        for s in traversal.walk(product(40, 160, 300, features=RELAXED).body[0].body)
        if type(s) is nodes.For and s.outline
    ]
    assert Panels(40, 6).tall < Panels(40, 6).count and len(tiles) == 3


def test_default_tiles_fit_the_registers():
    for features, rows in ((frozenset(), 5), (RELAXED, 6)):
        tile = default_tile("f32", features)
        assert (tile.mr, tile.nr) == (rows, 8) and tile.mc % rows == 0
