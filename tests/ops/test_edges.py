"""Operations at edges of their domains, where backends once differed: poles, arrays without elements."""

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from platforms import need, under_test
from weft import lax
from weft.base.config import enable_x64
from weft.primitives.dynamic_slice import dynamic_slice_p

PLATFORMS = under_test("cpu", "wasm", "webgpu", "reference")


@pytest.fixture(params=PLATFORMS)
def device(request):
    need(request.param)
    with weft.default_device(weft.devices(request.param)[0]):
        yield request.param


def test_poles_of_digamma(device):
    assert np.isnan(lax.digamma(jnp.array([0.0, -0.0, -1.0, -7.0]))).all()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_scatter_into_nothing(device, dtype):
    empty, updates = jnp.zeros((2, 0), dtype), jnp.ones((2, 3), dtype)
    at = jnp.array([0, 1, 2])
    assert weft.vmap(lambda x, u: x.at[at].min(u))(empty, updates).shape == (2, 0)


@pytest.mark.parametrize("preset", ["F32_F32_F32", "BF16_BF16_F32"])
@pytest.mark.parametrize("dtype, least, most", [("uint4", 0, 15), ("int8", -128, 127), ("int32", -(2**31), 2**31 - 1)])
def test_products_of_integers_by_an_algorithm_of_floats(device, dtype, least, most, preset):
    """Floats are added, and what the dtype does not hold becomes its end."""
    x, y = np.array([[8, 6, 15], [2, 7, 5]]), np.array([[8, 6, 15, 2], [7, 5, 0, 0], [5, 11, 4, 1]])
    precision = lax.DotAlgorithmPreset[preset]
    multiply = lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), precision=precision)
    got = weft.jit(multiply)(jnp.asarray(x, dtype), jnp.asarray(y, dtype))
    np.testing.assert_array_equal(np.asarray(got).astype(int), np.clip(x @ y, least, most))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz", "bfloat16"])
def test_extrema_of_nothing(device, dtype):
    """Of a dtype without infinities its ends."""
    empty, ends = jnp.zeros((0, 2), dtype), jnp.finfo(dtype)
    end = float("inf") if dtype in ("float8_e5m2", "bfloat16") else float(ends.max)
    for reduce, want in ((lax.reduce_max, -end), (lax.reduce_min, end)):
        assert np.asarray(weft.jit(lambda x: reduce(x, (0,)))(empty), np.float32).tolist() == [want] * 2


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("size", [4, 300])
@pytest.mark.parametrize("kind", ["int", "uint"])
def test_start_indices_of_several_widths(device, kind, size):
    """Each is limited to the array as the number that it is, whatever type stands beside it, mapped or not."""
    narrow = device == "webgpu"  # which has no integers of 64 bits
    dtypes = [name for name in INTEGERS if name.startswith(kind) and not (narrow and name.endswith("64"))]

    @weft.jit
    def first(x, starts, others):
        return [dynamic_slice_p.bind(x, start, other, slice_sizes=(2, 1))[0, 0] for start in starts for other in others]

    with enable_x64(not narrow):
        x = np.arange(size * 2.0, dtype=np.float32).reshape(size, 2)
        starts = [np.array(n, dt) for dt in dtypes for n in (np.iinfo(dt).min, np.iinfo(dt).max, 3)]
        others = [np.array(0, dt) for dt in dtypes]
        got = first(x, starts, others)
        mapped = weft.vmap(first, (None, 0, None))(x, [np.stack([start, start]) for start in starts], others)
        want = [2.0 * min(max(int(start), 0), size - 2) for start in starts for _ in dtypes]
    assert [float(v) for v in got] == want
    assert [np.asarray(v).tolist() for v in mapped] == [[v, v] for v in want]


def test_start_indices_of_signed_and_unsigned_integers(device):
    x, mixed = jnp.zeros((4, 2)), (np.int16(-6), np.uint8(0))
    with pytest.raises(TypeError, match="all signed or all unsigned, got int16.*uint8"):
        dynamic_slice_p.bind(x, *mixed, slice_sizes=(2, 1))
    assert lax.dynamic_slice(x, mixed, (2, 1)).shape == (2, 1)  # converts them to one type
    with enable_x64(True), pytest.raises(TypeError, match="no integers hold all start indices"):
        lax.dynamic_slice(x, (np.int64(-6), np.uint64(0)), (2, 1))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e5m2"])
def test_the_largest_in_total_order(device, dtype):
    """The sign of a zero and of a NaN counts, as it does in jax."""
    x = np.array([0, np.nan, 1, -np.nan, np.inf, -np.inf, -0.0, np.nan, -np.nan], "float32")
    values, order = lax.top_k(jnp.asarray(x).astype(dtype), 9)
    assert order.tolist() == [1, 7, 4, 2, 0, 6, 5, 3, 8]
    np.testing.assert_array_equal(np.asarray(values, "float32"), x[[1, 7, 4, 2, 0, 6, 5, 3, 8]])
    assert np.signbit(np.asarray(values, "float32")).tolist() == [False] * 5 + [True] * 4
    assert weft.jit(lambda x: lax.top_k(x, 2)[1])(jnp.array([-0.0, 0.0, -0.0], dtype)).tolist() == [1, 0]
