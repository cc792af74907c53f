"""Products with windows: rows that overlap, with strides, groups, slices of the terms and results in between others,
against NumPy.
"""

import itertools

import numpy as np
import pytest
import test_tasks
from kernel_harness import NUMPY, RELAXED, run_interpreted, run_wasm
from weft_wasm.compile import compile_program
from weft_wasm.ir.affine import linear_index
from weft_wasm.ir.nodes import Buffer, Const, For, Kernel, Program, Store, Var, i32
from weft_wasm.routines import implicit_gemm
from weft_wasm.routines.implicit_gemm import Product, Slices

cut = test_tasks.cut

# group, rows (extent, stride, result stride), terms, columns
CASES = {
    "one image": ((1, 0), [(9, 44, 9), (9, 4, 1)], [(3, 44), (3, 4), (4, 1)], 16),
    "ragged": ((1, 0), [(2, 300, 35), (5, 50, 7), (7, 5, 1)], [(3, 50), (3, 5), (5, 1)], 13),
    "steps": ((1, 0), [(4, 120, 6), (6, 8, 1)], [(3, 60), (2, 8), (4, 1)], 9),
    "dilated": ((1, 0), [(7, 40, 7), (7, 4, 1)], [(3, 80), (3, 8), (4, 1)], 8),
    "groups": ((3, 4), [(8, 120, 8), (8, 12, 1)], [(3, 120), (3, 12), (4, 1)], 8),
    "one column": ((1, 0), [(200, 1, 1)], [(65, 1)], 1),
    "three columns": ((2, 40), [(20, 2, 1)], [(65, 1)], 3),
    "few rows": ((1, 0), [(3, 7, 1)], [(40, 20), (20, 1)], 33),
    "columns of x": ((1, 0), [(9, 1, 1)], [(7, 99), (11, 9)], 21),
    "every other row": ((1, 0), [(6, 70, 20), (5, 10, 2)], [(3, 70), (3, 10), (10, 1)], 8),
    "a long run": ((2, 3), [(30, 5, 1)], [(5, 1), (97, 2)], 10),
}


def product(group, rows, terms, n, *, dtype="f32", first=0, apart=-1, routine=implicit_gemm.implicit_gemm, **options):
    """out = the product; what no row writes is 0. apart: the axis of rows whose index is apart from the others'."""
    extent = lambda axes: sum((n - 1) * s for n, s, *_ in axes)
    x = Buffer("x", dtype, (3 + extent([group]) + extent(rows) + extent(terms) + 1,), "input")
    k = [n for n, _ in terms]
    y = Buffer("y", dtype, (group[0], *k, n), "input")
    results = first + sum((n - 1) * s for n, _, s in rows) + 1
    out = Buffer("out", dtype, (group[0], results, n), "output")
    steps = [int(np.prod(y.shape[d + 1 :])) for d in range(len(y.shape))]
    indices = [
        (first, [0 if d == apart else r[2] for d, r in enumerate(rows)]),
        (0, [r[2] if d == apart else 0 for d, r in enumerate(rows)]),
    ]
    p = Product(
        x, i32(3), group, [r[:2] for r in rows], terms, n, lambda g, t, j: y[linear_index([g, *t, j], steps)], indices
    )
    i = Var("i")
    clear = Kernel("clear", [For(i, out.size, [Store(out, i, Const(0, dtype))], "parallel")])
    made = routine(
        "conv",
        p,
        lambda g, at, j, value: [Store(out, (g * results + at[0] + at[1]) * n + j, value)],
        dtype=dtype,
        **options,
    )
    return Program("conv", [x, y], [out], made.temps, [clear, *made.kernels])


def expected(program, x, y, group, rows, terms, first=0):
    wide = np.float64 if x.dtype.kind == "f" else x.dtype
    out = np.zeros(program.outputs[0].shape, wide)
    for at in itertools.product(*(range(n) for n, *_ in rows)):
        place, row = (sum(i * r[c] for i, r in zip(at, rows)) for c in (1, 2))
        for g in range(group[0]):
            offsets = sum(
                np.arange(n).reshape([-1 if e == d else 1 for e in range(len(terms))]) * s
                for d, (n, s) in enumerate(terms)
            )
            out[g, first + row] = np.tensordot(
                x.astype(wide)[3 + g * group[1] + place + offsets], y[g].astype(wide), len(terms)
            )
    return out


def check(case, run=run_wasm, first=0, dtype="f32", **options):
    group, rows, terms, n = CASES[case]
    features = options.pop("features", frozenset(("simd128",)))
    if "routine" not in options:
        options["features"] = frozenset(features)
    program = product(group, rows, terms, n, first=first, dtype=dtype, **options)
    rng = np.random.default_rng(len(case))
    x, y = ((rng.normal(size=b.shape) * 4).astype(NUMPY[dtype]) for b in program.inputs)
    got = run(program, x, y, **({"features": features} if run is run_wasm else {}))[0]
    want = expected(program, x, y, group, rows, terms, first)
    if dtype[0] == "f":
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-3 if dtype == "f32" else 1e-11)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Tiles, slices and blocks also where there is little to compute."""
    monkeypatch.setattr(implicit_gemm, "SMALL", 0)
    monkeypatch.setattr(implicit_gemm, "ROWS", 12)


@pytest.mark.parametrize("features", [("simd128",), RELAXED, ()], ids=["simd128", "relaxed", "scalar"])
@pytest.mark.parametrize("case", CASES)
def test_tiles(case, features):
    check(case, features=features)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 7, 24, 50])
@pytest.mark.parametrize("case", CASES)
def test_slices(case, most, monkeypatch):
    monkeypatch.setattr(implicit_gemm, "TERMS", most)
    check(case)


@pytest.mark.parametrize("dtype", ["f64", "i32", "u32", "i64", "u64"])
def test_dtypes(dtype):
    check("ragged", dtype=dtype)
    check("groups", dtype=dtype)


@pytest.mark.parametrize("case", CASES)
def test_plain(case):
    check(case, plain=True)
    check(case, plain=True, first=5)


@pytest.mark.parametrize("apart", [-1, 0, 1])
def test_rows_of_the_result_may_be_anywhere(apart):
    check("ragged", first=4, apart=apart)
    check("every other row", first=1, apart=apart)
    check("groups", apart=apart)
    check("groups", apart=apart, plain=True)


def test_interpreted():
    check("every other row", run=run_interpreted)


@pytest.mark.parametrize("case", ["ragged", "groups", "few rows", "every other row", "a long run"])
def test_threads(cut, monkeypatch, case):
    monkeypatch.setattr(implicit_gemm, "TERMS", 30)
    check(case)
    group, rows, terms, n = CASES[case]
    assert compile_program(product(group, rows, terms, n)).metadata["tasks"]["count"] >= 1


def test_no_terms_give_zeros():
    x, y = Buffer("x", "f32", (4,), "input"), Buffer("y", "f32", (5, 8), "output")
    p = Product(x, i32(0), (1, 0), [(5, 1)], [(0, 1)], 8, lambda g, t, j: x[0], [(0, [1])])
    program = Program(
        "none",
        [x],
        [y],
        [],
        implicit_gemm.implicit_gemm("none", p, lambda g, at, j, v: [Store(y, at[0] * 8 + j, v)]).kernels,
    )
    np.testing.assert_array_equal(run_wasm(program, np.ones(4, "f4"))[0], np.zeros((5, 8)))


@pytest.mark.parametrize(
    "terms",
    [[(3, 100), (3, 10), (5, 1)], [(61, 70), (61, 1)], [(7, 1)], [(2, 900), (1543, 1)], [(4, 4), (1, 1)]],
    ids=str,
)
@pytest.mark.parametrize("most", [1, 6, 40, 640])
def test_slices_cover_the_terms_once(terms, most):
    s = Slices.of(terms, most)
    seen = []
    for at in itertools.product(*(range(n) for n, _ in s.outer)):
        extents = [n for n, _ in s.inner]
        if s.rest and at[-1] == s.outer[-1][0] - 1:
            extents[0] = s.rest
        for inside in itertools.product(*map(range, extents)):
            term = [*at[: s.cut], at[-1] * s.inner[0][0] + inside[0], *inside[1:]]
            place = sum(i * step for i, (_, step) in zip((*at, *inside), (*s.outer, *s.inner)))
            assert place == sum(i * step for i, (_, step) in zip(term, terms))
            seen.append(tuple(term))
    assert seen == list(itertools.product(*(range(n) for n, _ in terms)))
