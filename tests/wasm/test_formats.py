"""Numbers of eight bits and fewer: every byte read and written, every pair of small integers, against ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest
import weft
import weft.numpy as jnp
from wasm_harness import check
from weft import lax

FLOATS = (
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3b11fnuz",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
)
INTS = ("int4", "uint4", "int2", "uint2")
rng = np.random.default_rng(0)
pytestmark = pytest.mark.slow  # the catalogue has a row for each


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name))


def every(name):
    return np.arange(16 if name.startswith("float4") else 256, dtype=np.uint8).view(dtype(name))


def same_bits(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype
    if got.dtype != np.float32:
        nan = np.isnan(want.astype(np.float32))
        np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), nan)
        got, want = (np.where(nan, 0, x.view(np.uint8)) for x in (got, want))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", FLOATS)
def test_every_code_is_read(name):
    x = every(name)
    same_bits(weft.jit(lambda v: v.astype("float32"))(x), x.astype(np.float32))
    same_bits(
        weft.jit(lambda v: v + jnp.zeros_like(v) if not name.endswith("e8m0fnu") else v)(x),
        x + x.dtype.type(0) if not name.endswith("e8m0fnu") else x,
    )


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("name", FLOATS)
def test_the_nearest_code_is_written(name, source):
    codes = np.abs(every(name).astype(np.float64))
    codes = np.sort(codes[np.isfinite(codes)])
    between = (codes[1:] + codes[:-1]) / 2
    x = np.concatenate(
        [
            codes,
            between,
            between * (1 + 1e-6),
            between * (1 - 1e-6),
            codes[-1:] * 1.2,
            codes[-1:] * 4,
            [np.inf, np.nan],
            rng.normal(size=500),
        ]
    )
    with np.errstate(over="ignore"):
        x = np.concatenate([x, -x]).astype(source)
        want = (x.astype(np.float32) if source == "float32" else x).astype(dtype(name))
    # where ml_dtypes rounds to the nearest
    kept = ~np.isnan(x) if name == "float4_e2m1fn" else (np.abs(x) >= 2.0**-126) | (not name.endswith("e8m0fnu"))
    x, want = x[kept], want[kept]
    same_bits(weft.jit(lambda v: v.astype(dtype(name)))(x), want)


BINARY = (
    lax.add,
    lax.sub,
    lax.mul,
    lax.max,
    lax.min,
    lax.div,
    lax.rem,
    lax.bitwise_and,
    lax.bitwise_or,
    lax.bitwise_xor,
    lax.lt,
    lax.eq,
    lax.shift_left,
    lax.shift_right_logical,
    lax.shift_right_arithmetic,
)


@pytest.mark.parametrize("name", INTS)
def test_integers(name):
    """All pairs, against the same in 32 bits, wrapped."""
    info = ml_dtypes.iinfo(dtype(name))
    values = np.arange(info.min, info.max + 1)
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    wrap = lambda v: v.astype(np.int32).astype(dtype(name))
    mask = (1 << info.bits) - 1
    amount = y & mask
    unsigned = np.where(amount >= info.bits, 0, (x & mask) >> np.minimum(amount, 31))
    # the highest bit is a sign to an arithmetic shift, as on XLA
    signed = np.where(x & (mask + 1) // 2, (x & mask) - mask - 1, x & mask)
    quotient = np.where(y == 0, -1, np.trunc(x / np.where(y == 0, 1, y))).astype(np.int64)
    wants = [
        x + y,
        x - y,
        x * y,
        np.maximum(x, y),
        np.minimum(x, y),
        quotient,
        np.where(y == 0, x, x - quotient * y),
        x & y,
        x | y,
        x ^ y,
        x < y,
        x == y,
        np.where(amount >= info.bits, 0, x << np.minimum(amount, 31)),
        unsigned,
        signed >> np.minimum(amount, 31),
    ]
    outs = weft.jit(lambda a, b: [f(a, b) for f in BINARY])(x.astype(dtype(name)), y.astype(dtype(name)))
    for f, got, want in zip(BINARY, outs, wants):
        got = np.asarray(got)
        assert got.dtype == (bool if f in (lax.lt, lax.eq) else dtype(name))
        np.testing.assert_array_equal(
            got.astype(np.int64), want if got.dtype == bool else wrap(want).astype(np.int64), err_msg=f.__name__
        )
    bits = [bin(v & mask)[2:].zfill(info.bits) for v in values]
    clz, ones, inverse = weft.jit(lambda a: (lax.clz(a), lax.population_count(a), lax.bitwise_not(a)))(
        values.astype(dtype(name))
    )
    np.testing.assert_array_equal(np.asarray(clz).astype(int) & mask, [(b + "1").index("1") & mask for b in bits])
    np.testing.assert_array_equal(np.asarray(ones).astype(int) & mask, [b.count("1") & mask for b in bits])
    np.testing.assert_array_equal(np.asarray(inverse).astype(int), wrap(~values).astype(int))


@pytest.mark.parametrize("name", INTS)
def test_floats_become_integers_within_the_range(name):
    info = ml_dtypes.iinfo(dtype(name))
    x = np.float32([0, -0.9, 1.7, -1.2, 100, -100, np.inf, -np.inf, np.nan, 7.9])
    want = np.clip(np.trunc(np.nan_to_num(x, posinf=1e9, neginf=-1e9)), info.min, info.max)
    np.testing.assert_array_equal(np.asarray(weft.jit(lambda v: v.astype(dtype(name)))(x)).astype(np.float32), want)


@pytest.mark.parametrize("name", ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_arrays_of_them_move_like_others(name):
    x = rng.integers(0 if name[0] == "u" else -4, 6, size=(4, 6)).astype(np.float32).astype(dtype(name))
    u = np.ones((2, 3), dtype(name))
    i = np.int32([[3], [0], [9]])
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    as_bytes = lambda f: (
        lambda *xs: [
            lax.bitcast_convert_type(v, "uint8")
            if v.dtype == dtype(name) and name[-1] != "4" and not name.startswith("float4")
            else v.astype("float32")
            for v in f(*xs)
        ]
    )
    check(
        as_bytes(
            lambda x, u, i: [
                x.T,
                x[:, ::2],
                lax.pad(x, u[0, 0], ((1, 2, 0), (0, -1, 1))),
                lax.concatenate([x, x], 0),
                lax.rev(x, (1,)),
                lax.dynamic_update_slice(x, u, (1, 2)),
                lax.gather(x, i, numbers, (1, 6), mode="clip"),
                lax.sort(x, dimension=1),
                lax.cummax(x, 1),
                lax.argmax(x, 1, "int32"),
                lax.reduce_min(x, (0,)),
                lax.fori_loop(0, 3, lambda k, v: v + v, x),
                lax.cond(x[0, 0] > u[0, 0], lambda v: v, lambda v: -v, x),
                lax.dot_general(x, x, (((1,), (1,)), ((), ())), preferred_element_type="float32"),
            ]
        ),
        x,
        u,
        i,
    )


@pytest.mark.parametrize("name", FLOATS)
def test_long_expressions_are_cut(name):
    """Each operation is rounded by many others, which nest: forty in one expression were too deep for the emitter."""

    def chain(x):
        for _ in range(40):
            x = lax.sub(x, lax.rev(lax.mul(x, x), (0,)))
        return x

    x = np.array([0.5, 1, 2], dtype(name))
    with weft.default_device(weft.devices("reference")[0]):
        want = np.asarray(weft.jit(chain)(x))
    with weft.default_device(weft.devices("wasm")[0]):
        same_bits(weft.jit(chain)(x), want)
