"""weft.experimental.quantized: what it stores, how far off it is, and its products on every platform."""

import numpy as np
import pytest
from platforms import first_device, under_test

import weft
import weft.numpy as jnp
from weft.experimental import quantized
from weft.experimental.quantized import QuantizedArray, matmul, quantize, quantize_tree

RANDOM = np.random.default_rng(0)
BITS = [8, 4]


def weights(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def reference(x, bits, axis, block):
    """Scales and numbers by another way: a loop over the blocks, in float64."""
    x = np.moveaxis(np.asarray(x, np.float64), axis, -1)
    most, out, scales = (127 if bits == 8 else 7), np.empty(x.shape), []
    for k in range(0, x.shape[-1], block):
        part = x[..., k : k + block]
        scale = np.abs(part).max(-1, keepdims=True) / most
        out[..., k : k + block] = np.clip(np.rint(part / np.where(scale, scale, 1)), -most, most) * scale
        scales.append(scale)
    return np.moveaxis(out, -1, axis), np.moveaxis(np.concatenate(scales, -1), -1, axis)


@pytest.mark.parametrize("axis", [-2, -1])
@pytest.mark.parametrize("block", [None, 4, 16])
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("lead", [(), (3,)])
def test_half_a_scale_off_at_most(bits, block, axis, lead):
    x = weights(*lead, 32, 64)
    w = quantize(x, bits, axis=axis, block=block)
    size = x.shape[axis]
    want, scales = reference(x, bits, axis, block or size)
    assert w.values.dtype == np.int8 and w.values.size == x.size * bits // 8
    assert w.scales.size == x.size // (block or size) and w.nbytes == w.values.size + 4 * w.scales.size
    assert (w.shape, w.ndim, w.size, w.dtype) == (x.shape, x.ndim, x.size, x.dtype)
    got = np.asarray(w.dequantize())
    np.testing.assert_allclose(w.scales, scales, rtol=1e-6)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    each = np.repeat(scales, block or size, axis)
    assert (np.abs(got - x) <= 0.5001 * each).all() and np.abs(got - x).max() > 0.4 * each.min()


@pytest.mark.parametrize("platform", under_test())
@pytest.mark.parametrize("rows", [(), (1,), (8,), (9,), (2, 3)])
@pytest.mark.parametrize("bits,block", [(8, None), (8, 8), (4, None), (4, 8)])
def test_products_are_those_of_the_array(platform, rows, bits, block):
    device = first_device(platform)
    w = weft.device_put(quantize(weights(32, 24), bits, block=block), device)
    x = weft.device_put(weights(*rows, 32), device)
    want = np.asarray(x, np.float64) @ np.asarray(w.dequantize(), np.float64)
    for got in (x @ w, matmul(x, w), weft.jit(lambda x, w: x @ w)(x, w)):
        assert got.shape == (*rows, 24) and got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    turned = x @ quantize(weft.device_put(weights(24, 32), device), bits, axis=-1, block=block).T
    assert turned.shape == (*rows, 24)


@pytest.mark.parametrize("platform", under_test())
@pytest.mark.parametrize("bits", BITS)
def test_of_half_precision(platform, bits):
    """Numbers of 16 bits are summed in 32: 2048 ones would stay 2048 in float16 else, and in bfloat16 256."""
    device = first_device(platform)
    for dtype in ("float16", "bfloat16"):
        w = quantize(weft.device_put(jnp.ones((4096, 2), dtype), device), bits)
        got = weft.jit(matmul)(weft.device_put(jnp.ones((1, 4096), dtype), device), w)
        assert w.dtype == got.dtype == jnp.dtype(dtype)
        np.testing.assert_allclose(np.asarray(got, np.float32), 4096, rtol=2e-2)


@pytest.mark.parametrize("bits", BITS)
def test_in_transformations(bits):
    w, x = quantize(weights(3, 16, 8), bits), weights(3, 5, 16)
    each = [np.asarray(x[k] @ w[k]) for k in range(3)]
    np.testing.assert_allclose(x @ w, each, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(weft.vmap(matmul)(x, w), each, rtol=1e-5, atol=1e-5)
    total = weft.lax.scan(lambda c, k: (c + (k[0] @ k[1]).sum(), None), 0.0, (x, w))[0]
    np.testing.assert_allclose(total, np.sum(each), rtol=1e-4)
    got = weft.grad(lambda x: (x @ w[0]).sum())(x[0])
    np.testing.assert_allclose(got, np.tile(np.asarray(w[0].dequantize()).sum(1), (5, 1)), rtol=1e-5, atol=1e-5)
    leaves, tree = weft.tree.flatten(w)
    assert len(leaves) == 2 and isinstance(weft.tree.unflatten(tree, leaves), QuantizedArray)


def test_tables_of_embeddings():
    table = quantize(weights(50, 16), 8, axis=-1)
    whole = np.asarray(table.dequantize())
    ids = np.array([[3, 49], [0, 3]])
    np.testing.assert_array_equal(table[ids].dequantize(), whole[ids])
    np.testing.assert_array_equal(table[3].dequantize(), whole[3])
    np.testing.assert_array_equal(table[whole[:, 0] > 0].dequantize(), whole[whole[:, 0] > 0])
    np.testing.assert_allclose(jnp.ones((2, 16)) @ table.T, np.ones((2, 16)) @ whole.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(table.T @ jnp.ones(50), whole.T @ np.ones(50), rtol=1e-4, atol=1e-4)
    assert repr(table.T) == "QuantizedArray(shape=(16, 50), bits=8, dtype=float32)"


def test_trees():
    tree = {"w": weights(4, 4), "b": weights(4), "n": np.arange(4).reshape(2, 2), "table": weights(8, 4)}
    got = quantize_tree(tree, 4, block=2)
    assert {k for k, v in got.items() if isinstance(v, QuantizedArray)} == {"table", "w"}
    got = quantize_tree(tree, where=lambda path, leaf: weft.tree_util.keystr(path) == "['w']")
    assert isinstance(got["w"], QuantizedArray) and not isinstance(got["table"], QuantizedArray)


def test_zeros_and_nothing():
    assert quantize(jnp.zeros((4, 2)), 4).dequantize().tolist() == [[0, 0]] * 4
    for shape in ((0, 3), (4, 0)):
        w = quantize(jnp.zeros(shape), 8)
        assert (
            w.dequantize().shape == shape and (jnp.ones((2, shape[0])) @ w).tolist() == np.zeros((2, shape[1])).tolist()
        )


def test_a_model_keeps_what_it_has_learnt():
    """A classifier of two spirals, trained in float32: of 8 bits, it decides as before; of 4 in blocks, nearly."""
    t = np.linspace(0.5, 3.5, 200)
    points = np.concatenate([np.stack([s * t * np.cos(2 * t), s * t * np.sin(2 * t)], 1) for s in (1, -1)])
    x, y = jnp.asarray(points, jnp.float32), jnp.repeat(jnp.arange(2), 200)
    sizes, keys = (2, 64, 64, 2), weft.random.split(weft.random.key(0), 3)
    params = [(weft.random.normal(k, (a, b)) / a**0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]

    def logits(params, x):
        for w, b in params[:-1]:
            x = jnp.tanh(x @ w + b)
        return x @ params[-1][0] + params[-1][1]

    def loss(params):
        return -jnp.take_along_axis(weft.nn.log_softmax(logits(params, x)), y[:, None], 1).mean()

    @weft.jit
    def step(state, _):
        params, speed = state
        speed = weft.tree.map(lambda v, g: 0.9 * v + g, speed, weft.grad(loss)(params))
        return (weft.tree.map(lambda p, v: p - 0.1 * v, params, speed), speed), None

    (params, _), _ = weft.lax.scan(step, (params, weft.tree.map(jnp.zeros_like, params)), length=1000)
    right = lambda params: float((logits(params, x).argmax(1) == y).mean())
    assert right(params) > 0.97
    of = lambda bits, block: quantize_tree(params, bits, block=block, where=lambda path, p: p.shape == (64, 64))
    eight, four = of(8, None), of(4, 16)
    assert abs(float(loss(eight)) - float(loss(params))) < 0.02 and right(eight) > 0.97
    assert abs(float(loss(four)) - float(loss(params))) < 0.3 and right(four) > 0.9
    # and the fewer bits, the further off
    off = [float(jnp.abs(logits(q, x) - logits(params, x)).max()) for q in (eight, of(4, 16), of(4, None))]
    assert 0 < off[0] < off[1] < off[2]


@pytest.mark.parametrize(
    "call,error,message",
    [
        (lambda: quantize(jnp.arange(4).reshape(2, 2)), TypeError, "floating-point numbers, got int32"),
        (lambda: quantize(jnp.ones((2, 2)), 3), ValueError, "bits are 8 or 4 and axis is -2 or -1, got 3 and -2"),
        (lambda: quantize(jnp.ones((2, 2)), axis=0), ValueError, "got 8 and 0"),
        (lambda: quantize(jnp.ones(2)), ValueError, r"takes arrays \(..., k, n\), got shape \(2,\)"),
        (
            lambda: quantize(jnp.ones((6, 2)), block=4),
            ValueError,
            r"blocks of 4 do not divide axis -2 of shape \(6, 2\)\.",
        ),
        (lambda: quantize(jnp.ones((6, 2)), block=0), ValueError, "blocks of 0 do not divide"),
        (lambda: quantize(jnp.ones((12, 2)), 4, block=4), ValueError, "into two halves of whole blocks"),
        (lambda: quantize(jnp.ones((3, 2)), 4), ValueError, "pad x with zeros"),
        (lambda: jnp.ones((2, 3)) @ quantize(jnp.ones((2, 2))), ValueError, r"\(2, 3\) @ \(2, 2\) don't fit"),
        (lambda: matmul(jnp.ones((2, 2)), jnp.ones((2, 2))), TypeError, "takes a QuantizedArray on its right"),
        (lambda: quantize(jnp.ones((2, 2)))[0], IndexError, "indexes the axes before axis -2"),
        (lambda: quantize(jnp.ones((2, 2)), axis=-1)[:, 0], IndexError, "indexes the axes before axis -1"),
        (lambda: quantize(jnp.ones((2, 2)), axis=-1)[..., 0], IndexError, "indexes the axes before axis -1"),
        (lambda: quantize(jnp.ones((2, 2)), axis=-1)[np.ones((2, 2), bool)], IndexError, "before axis -1"),
        (lambda: quantize(jnp.ones((2, 2, 2))).T, ValueError, "is of matrices"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_names():
    assert quantized.__all__ == ["QuantizedArray", "matmul", "quantize", "quantize_tree"]
