"""Elements of 8 and 16 bits in what programs are given and give: a word of such a buffer holds several."""

import numpy as np
import pytest
from platforms import need

import weft
import weft.numpy as jnp
from weft import lax

need("webgpu")

NARROW = ["bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16"]
SHAPES = [(), (1,), (3,), (4,), (16,), (5, 7), (6, 8), (2, 3, 4), (0, 4)]


def on_device(x):
    return weft.device_put(x, weft.devices("webgpu")[0])


def numbers(shape, dtype="float32", seed=0):
    return jnp.asarray(np.random.default_rng(seed).integers(-90, 90, shape), dtype)


def agree(f, *args):
    """On WebGPU as in the reference, bit by bit."""
    got = weft.jit(f)(*map(on_device, args))
    with weft.default_device(weft.devices("reference")[0]):
        want = f(*args)
    for a, b in zip(weft.tree.leaves(got), weft.tree.leaves(want), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.device.platform == "webgpu"
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", NARROW)
def test_through_programs(dtype, shape):
    x = numbers(shape, dtype)
    assert np.asarray(on_device(x)).tobytes() == np.asarray(x).tobytes()
    agree(lambda x: x, x)
    agree(lambda x: (x.T, x.ravel()[::-1], jnp.concatenate([x.ravel(), x.ravel()])), x)
    agree(lambda x: (x.astype("float32") + 1, x.astype("int32").sum()), x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_of_several_widths_in_one_kernel(shape):
    x, y = numbers(shape), numbers(shape, seed=1)
    agree(
        lambda x, y: [(x > y), (x + y).astype("int8"), (x - y).astype("bfloat16"), x * y, (x + y).astype("uint16")],
        x,
        y,
    )
    agree(lambda x, y: (x.T > y.T, (x.T * 2).astype("int16")), x, y)


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16"])
def test_results_that_no_invocation_computes_word_by_word(dtype):
    x = numbers((6, 8))
    agree(lambda x: (x.sum(1) / 64).astype(dtype), x)
    agree(lambda x: jnp.sort(x, 1).astype(dtype), x)
    agree(lambda x: jnp.zeros(10, dtype).at[jnp.array([3, 3, 9])].set(jnp.ones(3, dtype)), x)
    agree(lambda x: lax.fori_loop(0, 3, lambda k, a: a.at[k].set(x[k, 0].astype(dtype)), jnp.zeros(8, dtype)), x)
    agree(lambda x: lax.cond(x[0, 0] > 0, lambda a: a > 0, lambda a: a < 0, x).astype(dtype), x)
    agree(lambda x: lax.scan(lambda c, r: ((r > 0).astype(dtype), c), jnp.zeros(8, dtype), x), x)


def test_a_result_that_the_program_reads_again():
    def f(x):
        y = (x * 2).astype("int8")
        z = jnp.cumsum(y.astype("int32")).astype("int8")
        return y, z, (y[::-1] > z)

    agree(f, numbers(24))


def test_a_loop_that_begins_with_narrow_arguments():
    x = numbers(12, "int8")
    agree(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + jnp.int8(1)), (0, x)), x)
    agree(lambda x, k: lax.switch(k, [lambda v: v, lambda v: -v], x), x, jnp.int8(1))


def test_a_callback_takes_and_gives_narrow_arrays():
    x = numbers(5, "int8")
    double = lambda v: np.asarray(v) * np.int8(2)
    agree(lambda x: weft.pure_callback(double, weft.ShapeDtypeStruct((5,), "int8"), x), x)


def test_signalling_nans_and_their_bits():
    bits = np.array([0x7C01, 0xFC01, 0x7E00, 0x7FFF, 0x3C00], np.uint16)
    for dtype in (np.float16, jnp.bfloat16):
        x = on_device(jnp.asarray(bits.view(dtype)))
        assert np.asarray(weft.jit(lambda x: x)(x)).view(np.uint16).tolist() == bits.tolist()
        assert np.asarray(weft.jit(lambda x: x[::-1])(x)).view(np.uint16).tolist() == bits[::-1].tolist()


def test_they_take_their_bytes_and_no_more(only_own_memory):
    device = weft.devices("webgpu")[0]
    before = device.memory_stats()["allocated"]
    x = on_device(np.ones(1 << 16, np.int8))
    assert device.memory_stats()["allocated"] - before == 1 << 16
    y = weft.jit(lambda x: x > 0)(x)
    assert device.memory_stats()["allocated"] - before == 1 << 17
    del x, y


def test_elementwise_results_take_one_kernel():
    x = on_device(numbers(64))
    steps = lambda f: weft.jit(f).lower(x).compile().as_text("plan").count('"dispatch"')
    assert steps(lambda x: x > 0) == steps(lambda x: (x > 0, x.astype("bfloat16"), x + 1)) == 1
    assert steps(lambda x: x.reshape(4, 16).T > 0) == 1  # a nest of loops
    assert steps(lambda x: x.reshape(8, 8).sum(1) > 0) == 2  # whose last one packs
