"""Transforms that go by columns, on short lengths too, against NumPy."""

import numpy as np
import pytest
from kernel_harness import NUMPY, RELAXED, run_wasm
from test_tasks import cut  # noqa: F401
from weft_wasm.ir.nodes import ITEMSIZE, Buffer, Program
from weft_wasm.routines import fft


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Small lengths go by columns, with factors of at most 128."""
    monkeypatch.setattr(fft, "FITS", 100)
    monkeypatch.setattr(fft, "TALL", 64)


def program(n: int, batch: int, dtype: str, scale: float) -> Program:
    re, im = (Buffer(name, dtype, (batch, n), "input") for name in ("re", "im"))
    out = [Buffer(f"out.{name}", dtype, (batch, n), "output") for name in ("re", "im")]
    constant = lambda kind, data: Buffer("k", kind, (len(data) // ITEMSIZE[kind],), "constant", data=data)  # noqa: E731
    made = fft.fft("fft", batch, n, lambda b, i: (re[b * n + i], im[b * n + i]), *out, constant, scale)
    return Program("fft", [re, im], out, made.temps, made.kernels)


def check(n: int, batch: int, dtype: str = "f32", features=("simd128",), scale: float = 1.0) -> None:
    rng = np.random.default_rng(n)
    x = rng.standard_normal((2, batch, n)).astype(NUMPY[dtype])
    got = run_wasm(program(n, batch, dtype, scale), *x, features=features)
    expected = np.fft.fft(x[0].astype(np.float64) + 1j * x[1]) * scale
    error = np.abs(got[0].reshape(batch, n) + 1j * got[1].reshape(batch, n) - expected).max()
    assert error < (2e-6 if dtype == "f32" else 2e-15) * np.abs(expected).max()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    "n, batch, factors",
    [
        (256, 3, [16, 16]),
        (4096, 1, [64, 64]),
        (1 << 13, 2, [32, 16, 16]),
        (12 * 20, 2, [20, 12]),
        (720, 1, [20, 36]),
        (13440, 1, [28, 20, 24]),
    ],
    ids=str,
)
def test_columns(n, batch, factors, dtype):
    assert fft.tall_factors(n) == factors
    check(n, batch, dtype, scale=0.25 if batch == 1 else 1.0)


@pytest.mark.parametrize("features", [(), RELAXED], ids=["scalar", "relaxed"])
def test_features(features):
    check(1024, 2, features=features)


@pytest.mark.parametrize("n", [243, 315, 486, 1984])
def test_lengths_without_columns(n):
    assert fft.tall_factors(n) is None
    check(n, 2)


@pytest.mark.parametrize("n", [4096, 1 << 13])
def test_threads(cut, n):  # noqa: F811
    check(n, 2)


def test_factors_of_eight():
    assert [fft.factors(n) for n in (16, 32, 64, 128, 512, 1024, 37)] == [
        [4, 4],
        [8, 4],
        [8, 8],
        [8, 4, 4],
        [8, 8, 8],
        [8, 8, 4, 4],
        None,
    ]
