"""Fourier transforms against NumPy's, and their derivatives."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax


def random(shape, dtype="complex64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 1, 4, 5, 9])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_axis(name, n, norm):
    x = random((3, 6, 2), "float32" if name in ("rfft", "ihfft") else "complex64")
    got = np.asarray(getattr(jnp.fft, name)(jnp.asarray(x), n, 1, norm))
    want = getattr(np.fft, name)(x, n, 1, norm)
    assert got.dtype == ("float32" if name in ("irfft", "hfft") else "complex64")
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("s,axes", [(None, None), (None, (0, 2)), ((3, 6), (2, 1)), ((2, 5), None)])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_several_axes(name, s, axes):
    x = random((3, 4, 5), "float32" if name == "rfftn" else "complex64")
    axes_np = axes if axes is not None or s is None else tuple(range(-len(s), 0))
    np.testing.assert_allclose(
        np.asarray(getattr(jnp.fft, name)(jnp.asarray(x), s, axes)),
        getattr(np.fft, name)(x, s, axes_np),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "rfft2", "ifft2", "irfft2"])
def test_five_axes_in_parts(name):
    x = random((2, 3, 2, 4, 3), "float32" if name.startswith("r") else "complex64")
    np.testing.assert_allclose(
        np.asarray(getattr(jnp.fft, name)(jnp.asarray(x))), getattr(np.fft, name)(x), rtol=1e-3, atol=1e-3
    )


def test_double_precision():
    with weft.enable_x64(True):
        x = random((7,), "complex128")
        got = jnp.fft.fft(jnp.asarray(x))
        assert got.dtype == "complex128"
        np.testing.assert_allclose(np.asarray(got), np.fft.fft(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("n", [4, 5])
def test_derivatives(name, n):
    """The transform is linear: its jvp is itself, its vjp its transposed matrix."""
    real = name in ("rfft", "ihfft")
    with weft.enable_x64(True):
        f = lambda x: getattr(jnp.fft, name)(x, n)
        x, t = (random((4,), "float64" if real else "complex128", s) for s in (0, 1))
        out, tangent = weft.jvp(f, (jnp.asarray(x),), (jnp.asarray(t),))
        np.testing.assert_allclose(np.asarray(tangent), np.asarray(f(jnp.asarray(t))), atol=1e-12)
        ct = random(out.shape, str(out.dtype), 2)
        (back,) = weft.vjp(f, jnp.asarray(x))[1](jnp.asarray(ct))
        assert np.sum(np.asarray(back) * t).real == pytest.approx(np.sum(ct * np.asarray(tangent)).real)


@pytest.mark.parametrize("name,given,made", [("FFT", "c", "c"), ("RFFT", "f", "c"), ("IRFFT", "c", "f")])
def test_the_reference_of_no_numbers_has_the_dtype_of_the_transform(name, given, made):
    dtypes = {"c": np.complex64, "f": np.float32}
    x = np.zeros((0, 3 if name == "IRFFT" else 4), dtypes[given])
    got = lax.fft_p.reference(x, fft_type=lax.FftType[name], fft_lengths=(4,))
    assert got.dtype == dtypes[made] and got.shape == (0, 3 if name == "RFFT" else 4)


def test_frequencies_and_shifts():
    for n in (4, 5):
        for d in (1.0, 0.25):
            np.testing.assert_allclose(np.asarray(jnp.fft.fftfreq(n, d)), np.fft.fftfreq(n, d), rtol=1e-6)
            np.testing.assert_allclose(np.asarray(jnp.fft.rfftfreq(n, d)), np.fft.rfftfreq(n, d), rtol=1e-6)
        x = np.arange(n * 3).reshape(n, 3)
        for axes in (None, 0, (0, 1)):
            assert np.array_equal(jnp.fft.fftshift(jnp.asarray(x), axes), np.fft.fftshift(x, axes))
            assert np.array_equal(jnp.fft.ifftshift(jnp.asarray(x), axes), np.fft.ifftshift(x, axes))


@pytest.mark.parametrize(
    "call,words",
    [
        (lambda: lax.fft(jnp.ones(4, "float16"), "rfft", (4,)), "float16"),
        (lambda: lax.fft(jnp.ones(4, "complex64"), "rfft", (4,)), "real valued"),
        (lambda: lax.fft(jnp.ones(4, "complex64"), "fft", (3,)), r"\(4,\).*\(3,\)"),
        (lambda: lax.fft(jnp.ones(4, "complex64"), "irfft", (4,)), r"\(4,\)"),
        (lambda: lax.fft(jnp.ones(4, "complex64"), "xx", (4,)), "'xx'"),
        (lambda: lax.fft(jnp.ones((2,) * 4, "complex64"), "fft", (2,) * 4), "one to three"),
        (lambda: jnp.fft.fft(jnp.ones(4), norm="x"), "norm value x"),
        (lambda: jnp.fft.fft(jnp.ones(4), n=0), "positive"),
        (lambda: jnp.fft.rfft(jnp.ones(4, "complex64")), "real valued"),
        (lambda: jnp.fft.fft(jnp.ones(4), axis=(0,)), "fftn"),
        (lambda: jnp.fft.fft(jnp.ones(4), axis=3), "axis 3"),
        (lambda: jnp.fft.fft2(jnp.ones((2, 2, 2)), axes=(0, 1, 2)), "2 axes"),
    ],
)
def test_wrong_arguments(call, words):
    with pytest.raises(ValueError, match=words):
        call()
