"""Complex functions next to their zeros and far away, where formulas cancel or end: normwise errors in ulp."""

import numpy as np
import pytest
import weft
from platforms import need, under_test
from weft import lax

PI = np.longdouble("3.14159265358979323846264338327950288")
ZEROS = {
    "sin": (0, PI),
    "cos": (PI / 2, -PI / 2),
    "sinh": (0, PI * 1j),
    "cosh": (PI / 2 * 1j,),
    "atan": (0,),
    "atanh": (0,),
}
EXACT = {"sin": np.sin, "cos": np.cos, "sinh": np.sinh, "cosh": np.cosh, "atan": np.arctan, "atanh": np.arctanh}


@pytest.mark.parametrize("platform", under_test("cpu", "wasm", "webgpu"))
@pytest.mark.parametrize("name", ["sin", "cos", "sinh", "cosh", "atan", "atanh"])
def test_complex_functions(name, platform):
    need(platform)
    rng = np.random.default_rng(0)
    for dtype in (np.complex64, np.complex128) if platform != "webgpu" else (np.complex64,):
        directions = np.exp(2j * np.pi * rng.uniform(size=400))
        near = [mark + directions * 2.0 ** rng.uniform(-40, 0, 400) for mark in ZEROS[name]]
        sizes = (1e-3, 1e12) if name.startswith("a") else (1e-3, 80)
        far = directions * np.exp(rng.uniform(*np.log(sizes), 400))
        z = np.concatenate([*near, far]).astype(dtype)
        with weft.default_device(weft.devices(platform)[0]), weft.enable_x64(dtype == np.complex128):
            got = np.asarray(weft.jit(getattr(lax, name))(z))
        want = EXACT[name](z.astype(np.clongdouble))
        error = abs(got - want) / np.spacing(abs(want).astype(z.real.dtype))
        assert error.max() <= 6, (dtype, error.max(), z[error.argmax()])


@pytest.mark.parametrize("platform", under_test("cpu", "wasm", "webgpu"))
def test_sines_and_cosines_where_an_exponential_alone_is_too_large(platform):
    """And zero times infinity is zero."""
    need(platform)
    z = np.array(
        [1e-3 + 85j, 85 + 1e-3j, complex(0, np.inf), complex(0, -np.inf), complex(np.inf, 0), 1j, -1j, -1 + 0j],
        np.complex64,
    )
    with weft.default_device(weft.devices(platform)[0]), np.errstate(invalid="ignore"):
        for name in ("sin", "cos", "sinh", "cosh"):
            got, want = np.asarray(weft.jit(getattr(lax, name))(z)), EXACT[name](z)
            known = ~(np.isnan(want.real) | np.isnan(want.imag))
            np.testing.assert_allclose(got[known].real, want[known].real, rtol=1e-6)
            np.testing.assert_allclose(got[known].imag, want[known].imag, rtol=1e-6)


@pytest.mark.parametrize("platform", under_test("cpu", "wasm", "webgpu"))
def test_signs_of_zero_of_sines_and_cosines(platform):
    """Those of C's functions, which tell the sides of branch cuts apart in what follows: a zero part is a product,
    of whose signs it has that of one times that of the other.
    """
    need(platform)
    z = np.array(
        [complex(a, b) for a in (0.0, -0.0, 1.0, -1.0, 90.0) for b in (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf)],
        np.complex64,
    )
    with weft.default_device(weft.devices(platform)[0]), np.errstate(invalid="ignore", over="ignore"):
        for name in ("sin", "cos", "sinh", "cosh"):
            for x in (z, -z, z * 1j):
                got, want = np.asarray(weft.jit(getattr(lax, name))(x)), EXACT[name](x.astype(np.complex128))
                for part in ("real", "imag"):
                    a, b = getattr(got, part), getattr(want, part)
                    zero = (a == 0) & (b == 0)
                    np.testing.assert_array_equal(
                        np.signbit(a)[zero], np.signbit(b)[zero], f"{name}, {part} of {x[zero]}"
                    )
