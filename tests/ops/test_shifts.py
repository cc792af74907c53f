"""Shifts of narrow integers by all amounts, against arithmetic on Python's."""

import numpy as np
import pytest
from platforms import on, under_test

import weft
import weft.numpy as jnp
from weft.base import dtypes
from weft import lax


def left(x, amount, bits):
    return x << amount if amount < bits else 0


def logical(x, amount, bits):
    return (x % 2**bits) >> amount


def arithmetic(x, amount, bits):
    """The top bit stands for the sign, also of unsigned numbers."""
    return ((x + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)) >> amount


SHIFTS = {lax.shift_left: left, lax.shift_right_logical: logical, lax.shift_right_arithmetic: arithmetic}


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4", "int8", "uint8"])
@pytest.mark.parametrize("platform", under_test("cpu", "reference", "wasm"))
def test_all_amounts(platform, name):
    """Amounts are unsigned; those of as many bits as there are, or more, leave nothing, or the sign."""
    bits, signed = int(name[-1]), name.startswith("i")
    numbers = np.arange(-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else np.arange(2**bits)
    x, y = (a.ravel() for a in np.meshgrid(numbers[::5] if bits == 8 else numbers, numbers))
    with on(platform):
        given = [jnp.asarray(a.astype(dtypes.dtype(name))) for a in (x, y)]
        for shift, in_python in SHIFTS.items():
            want = np.array([in_python(a, b % 2**bits, bits) % 2**bits for a, b in zip(x.tolist(), y.tolist())])
            got = weft.jit(shift)(*given)
            assert got.dtype == name
            np.testing.assert_array_equal(np.asarray(got).astype(int) % 2**bits, want, err_msg=shift.__name__)
