"""Divisions by loop invariants, which become products with a reciprocal: against NumPy, bit for bit."""

import numpy as np
import pytest
from kernel_harness import NUMPY, RELAXED, run_wasm
from weft_wasm.compile import compile_program
from weft_wasm.ir.nodes import Binary, Buffer, Const, For, Kernel, Let, Program, Store, Var

ROWS, COLUMNS = 60, 1003  # the last columns of a row don't fill a vector
MULTIPLY_ADD = b"\xfd\x85\x02"  # f32x4.relaxed_madd


def rows(dtype: str, divisor) -> Program:
    """out[i, j] = x[i, j] / divisor(d, i), and a second output that uses that quotient twice."""
    x, d = Buffer("x", dtype, (ROWS, COLUMNS), "input"), Buffer("d", dtype, (ROWS,), "input")
    out, more = (Buffer(name, dtype, (ROWS, COLUMNS), "output") for name in ("out", "more"))
    i, j = Var("i"), Var("j")
    q = Binary("div", x[i * COLUMNS + j], divisor(d, i))
    stores = [Store(out, i * COLUMNS + j, q), Store(more, i * COLUMNS + j, q + (q + 1.0))]
    return Program(
        "rows",
        [x, d],
        [out, more],
        [],
        [Kernel("rows", [For(i, ROWS, [For(j, COLUMNS, stores, "parallel")], "parallel")])],
    )


def operands(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Random bits, and whatever is special about a number, on both sides."""
    rng = np.random.default_rng(0)
    word, info = np.dtype(f"u{np.dtype(NUMPY[dtype]).itemsize}"), np.finfo(NUMPY[dtype])
    x, d = (
        rng.integers(0, np.iinfo(word).max, shape, word, endpoint=True).view(info.dtype)
        for shape in ((ROWS, COLUMNS), (ROWS,))
    )
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        info.max,
        -info.tiny,
        info.smallest_subnormal,
        1.0,
        3.0,
        -7.0,
        info.tiny / 3,
        info.max / 3,
        1e30,
    ]
    x[:, : len(special)] = d[: len(special)] = special
    x[ROWS // 2 :, 20:], d[ROWS // 2 :] = (
        rng.normal(size=(ROWS - ROWS // 2, COLUMNS - 20)),
        rng.normal(size=ROWS - ROWS // 2),
    )
    return x, d


def assert_quotients(got: np.ndarray, x: np.ndarray, d: np.ndarray) -> None:
    """Bit for bit, the signs of zeros too; next to the smallest numbers the last bit may differ."""
    info = np.finfo(x.dtype)
    with np.errstate(all="ignore"):
        want = x / d
        small = (np.abs(x) < info.tiny / info.eps) | (np.abs(want) < info.tiny)
        near = (got == want) | small & (np.abs(got - want) <= np.spacing(np.abs(want)))
    same = near & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    assert np.all(same), (x[~same][:3], got[~same][:3], want[~same][:3])


@pytest.mark.parametrize("features", [("simd128",), RELAXED], ids=["plain", "relaxed"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_quotients(dtype, features):
    x, d = operands(dtype)
    out, more = run_wasm(rows(dtype, lambda d, i: d[i]), x, d, features=features)
    assert_quotients(out, x, d[:, None])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(more, out + (out + NUMPY[dtype](1)))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("value", [3.0, -10.0, 255.0, 1e-30, 0.0, -0.0, np.inf, np.nan])
def test_constant_divisors(value, dtype):
    x, d = operands(dtype)
    out, _ = run_wasm(rows(dtype, lambda d, i: Const(value, dtype)), x, d, features=RELAXED)
    assert_quotients(out, x, np.full((1, 1), value, NUMPY[dtype]))


def test_quotients_are_made_of_products():
    program = rows("f32", lambda d, i: d[i] * 2.0)
    assert (
        compile_program(program, RELAXED).code.count(MULTIPLY_ADD)
        > compile_program(program).code.count(MULTIPLY_ADD)
        == 0
    )
    x, d = operands("f32")
    with np.errstate(all="ignore"):
        assert_quotients(run_wasm(program, x, d, features=RELAXED)[0], x, (d * np.float32(2))[:, None])


def by_own_element(x: Buffer, out: Buffer, j: Var) -> tuple[list, list]:
    d = Var("d", "f32")
    return [], [Let(d, x[j] + 1.0), Store(out, j, Binary("div", x[j], d))]


def by_what_is_written(x: Buffer, out: Buffer, j: Var) -> tuple[list, list]:
    """The divisor lies in the buffer that the loop writes."""
    return [Store(out, Const(COLUMNS, "i32"), x[0] + 2.0)], [Store(out, j, Binary("div", x[j], out[COLUMNS]))]


@pytest.mark.parametrize(
    "body, divisor",
    [(by_own_element, lambda x: x + np.float32(1)), (by_what_is_written, lambda x: x[0] + np.float32(2))],
)
def test_divisors_that_the_loop_may_change(body, divisor):
    """They are read anew."""
    x, out, j = Buffer("x", "f32", (COLUMNS,), "input"), Buffer("out", "f32", (COLUMNS + 1,), "output"), Var("j")
    before, inside = body(x, out, j)
    program = Program(
        "changing", [x], [out], [], [Kernel("changing", [*before, For(j, COLUMNS, inside, "parallel", 1)])]
    )
    assert MULTIPLY_ADD not in compile_program(program, RELAXED).code
    values = np.linspace(1, 2, COLUMNS, dtype=np.float32)
    np.testing.assert_array_equal(run_wasm(program, values, features=RELAXED)[0][:COLUMNS], values / divisor(values))
