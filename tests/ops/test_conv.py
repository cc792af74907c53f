"""Convolutions and windows: values and cotangents as real JAX has them, derivatives, batching over any operand, and
what does not fit.
"""

import itertools
import json
import pathlib
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.transforms.portable import portable
from weft.serialization.programs import deserialize, serialize
from weft.runtime.device import devices

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import conv_cases  # noqa: E402

pytestmark = pytest.mark.slow

EXPECTED = json.loads((HERE / "conv_expected.json").read_text())
array = conv_cases.array


@pytest.fixture(scope="module")
def computed():
    return json.loads(json.dumps(conv_cases.evaluate(weft, lax)))


@pytest.mark.parametrize("name", EXPECTED)
def test_as_jax(name, computed):
    got, want = computed[name], EXPECTED[name]
    assert [g[:2] for g in got] == [w[:2] for w in want]
    for (*_, g), (*_, w) in zip(got, want):
        finite = [abs(v) for v in w if np.isfinite(v)]
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5 * max([1.0, *finite]))


def test_every_case_is_there(computed):
    assert computed.keys() == EXPECTED.keys()


# derivatives and batching --------------------------------------------------------------------------------------------

# Every odd thing at once, under orders of axes that are none of the usual ones.
STRANGE = {
    "features": (
        ("HNCW", "WOHI", "CWNH"),
        dict(N=2, C=4, H=5, W=4),
        dict(O=6, I=2, H=2, W=3),
        dict(
            window_strides=(1, 2),
            padding=[(2, -1), (1, 3)],
            lhs_dilation=(2, 1),
            rhs_dilation=(1, 2),
            feature_group_count=2,
        ),
    ),
    "images": (
        ("NHWC", "IOHW", "WCHN"),
        dict(N=4, C=3, H=4, W=5),
        dict(O=6, I=3, H=2, W=2),
        dict(
            window_strides=(2, 1),
            padding=[(0, 1), (-1, 2)],
            lhs_dilation=(1, 2),
            rhs_dilation=(2, 1),
            batch_group_count=2,
        ),
    ),
    "plain": (
        ("NCHW", "OIHW", "NHWC"),
        dict(N=2, C=3, H=4, W=5),
        dict(O=2, I=3, H=3, W=2),
        dict(window_strides=(1, 2), padding="SAME"),
    ),
}


def strange(name):
    specs, sizes, kernel, keywords = STRANGE[name]
    f = lambda x, k: lax.conv_general_dilated(x, k, dimension_numbers=specs, **keywords)
    return f, [sizes[c] for c in specs[0]], [kernel[c] for c in specs[1]]


@pytest.mark.parametrize("name", STRANGE)
def test_derivatives_to_the_second_order(name):
    f, x, k = strange(name)
    rng = np.random.default_rng(0)
    x, k, dx, dk = [jnp.asarray(rng.normal(size=s), "float32") for s in (x, k, x, k)]
    out, tangent = weft.jvp(f, (x, k), (dx, dk))
    # bilinear: exact
    numeric = np.asarray(f(x + 0.5 * dx, k + 0.5 * dk), "float64") - np.asarray(
        f(x - 0.5 * dx, k - 0.5 * dk), "float64"
    )
    np.testing.assert_allclose(tangent, numeric, rtol=1e-3, atol=1e-3)
    ct = jnp.asarray(rng.normal(size=out.shape), "float32")
    grad = weft.grad(lambda x, k: jnp.vdot(ct, f(x, k)), (0, 1))
    gx, gk = grad(x, k)
    assert float(jnp.vdot(gx, dx) + jnp.vdot(gk, dk)) == pytest.approx(float(jnp.vdot(ct, tangent)), rel=1e-3)
    # the gradient is bilinear in turn: <grad at (x, dk), (dx, k)> = <ct, f(dx, dk) + f(x, k)>
    hx, hk = weft.jvp(grad, (x, k), (dx, dk))[1]
    np.testing.assert_allclose(hx, grad(x, dk)[0], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(hk, grad(dx, k)[1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("axes", [*itertools.product((None, 0, 2, 4), repeat=2)][1:])
def test_vmap_is_the_loop(name, axes):
    f, *shapes = strange(name)
    rng = np.random.default_rng(1)
    args = [
        jnp.asarray(rng.normal(size=s if a is None else [*s[:a], 3, *s[a:]]), "float32") for s, a in zip(shapes, axes)
    ]
    pick = lambda i: [v if a is None else jnp.take(v, i, a) for v, a in zip(args, axes)]
    for g in (f, weft.grad(lambda x, k: jnp.sum(f(x, k) ** 2), 0), weft.grad(lambda x, k: jnp.sum(f(x, k) ** 2), 1)):
        want = np.stack([g(*pick(i)) for i in range(3)])
        got = weft.jit(weft.vmap(g, in_axes=axes))(*args)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


def test_decomposition_of_every_case_is_xla_s_convolution():
    """Backends that know no convolution compute the same."""
    reference = devices("reference")[0]
    for x, k, keywords in conv_cases.CONVOLUTIONS:
        jaxpr = weft.make_jaxpr(lambda a, b, keywords=keywords: lax.conv_general_dilated(a, b, **keywords))(
            array(*x), array(*k)
        )
        (eqn,) = jaxpr.eqns
        with weft.default_device(reference):
            seen = np.asarray(eqn.primitive.decompose(jnp.asarray(array(*x)), jnp.asarray(array(*k)), **eqn.params))
        want = EXPECTED[f"conv {x} {k} {keywords}"][0]
        assert list(seen.shape) == want[1]
        np.testing.assert_allclose(seen.ravel(), want[2], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_ties_go_to_the_first(name):
    with weft.default_device(devices(name)[0]):
        x = jnp.array([1.0, 3.0, 3.0, 2.0, 2.0, 0.0])
        pool = lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), (1,), "SAME")
        out, tangent = weft.jvp(pool, (x,), (jnp.arange(6.0),))
        assert tangent.tolist() == [1, 1, 2, 3, 4, 5]
        assert weft.grad(lambda x: jnp.sum(pool(x) * jnp.arange(1.0, 7.0)))(x).tolist() == [0, 3, 3, 4, 5, 6]
        low = lambda x: lax.reduce_window(x, np.inf, lax.min, (3,), (3,), "VALID")
        assert weft.grad(lambda x: jnp.sum(low(x)))(x).tolist() == [1, 0, 0, 0, 0, 1]


def test_windows_with_gaps_have_cotangents():
    x = jnp.asarray(array(9))
    pool = lambda x: jnp.sum(
        lax.reduce_window(x, -np.inf, lax.max, (3,), (2,), [(1, 2)], (1,), (2,)) * jnp.arange(1.0, 5.0)
    )
    numeric = [(float(pool(x.at[i].add(1e-2))) - float(pool(x.at[i].add(-1e-2)))) / 2e-2 for i in range(9)]
    np.testing.assert_allclose(weft.grad(pool)(x), numeric, rtol=1e-2, atol=1e-2)


def test_any_function_is_differentiated_and_batched():
    x = jnp.asarray(array(2, 6))
    logsumexp = lambda x, init=-np.inf: lax.reduce_window(x, init, jnp.logaddexp, (1, 3), (1, 1), "VALID")
    want = np.log(np.sum([np.exp(np.asarray(x, "float64")[:, i : i + 4]) for i in range(3)], 0))
    np.testing.assert_allclose(logsumexp(x), want, rtol=1e-5, atol=1e-5)
    gradient = weft.grad(lambda x: jnp.sum(logsumexp(x)))(x)
    share = np.exp(np.asarray(x, "float64"))
    np.testing.assert_allclose(
        gradient,
        sum(np.pad(share[:, j : j + 4] / np.exp(want), ((0, 0), (j, 2 - j))) for j in range(3)),
        rtol=1e-4,
        atol=1e-5,
    )
    starts = jnp.array([1.0, 2.0, -1.0])
    got = weft.vmap(lambda i: logsumexp(x, i))(starts)
    np.testing.assert_allclose(got, np.logaddexp(want, np.asarray(starts, "float64")[:, None, None]), rtol=1e-5)


def test_a_wider_result_has_derivatives():
    x, k = jnp.asarray(array(1, 2, 5), "bfloat16"), jnp.asarray(array(2, 2, 3), "bfloat16")
    f = lambda x, k: jnp.sum(lax.conv(x, k, (1,), "SAME", preferred_element_type="float32") ** 2)
    gx, gk = weft.grad(f, (0, 1))(x, k)
    assert gx.dtype == gk.dtype == "bfloat16"
    wx, wk = weft.grad(f, (0, 1))(x.astype("float32"), k.astype("float32"))
    np.testing.assert_allclose(np.asarray(gx, "float32"), wx, rtol=2e-2, atol=0.5)
    np.testing.assert_allclose(np.asarray(gk, "float32"), wk, rtol=2e-2, atol=0.5)


def test_complex():
    x, k = (
        (array(1, 2, 6) + 1j * array(1, 2, 6)[..., ::-1]).astype("complex64"),
        (array(3, 2, 3) * (1 - 2j)).astype("complex64"),
    )
    got = lax.conv(x, k, (1,), "VALID")
    np.testing.assert_allclose(
        got, np.stack([np.einsum("nis,ois->no", x[..., r : r + 3], k) for r in range(4)], -1), rtol=1e-4, atol=1e-4
    )


# what does not fit ---------------------------------------------------------------------------------------------------

X, K = np.ones((1, 2, 5), "float32"), np.ones((3, 2, 2), "float32")
BAD = [
    (TypeError, "same dtypes", dict(rhs=K.astype("int32"))),
    (TypeError, r"\(1, 2, 5\) and \(3, 2\)", dict(rhs=K[..., 0])),
    (ValueError, "2 / 2 input features", dict(feature_group_count=2)),
    (ValueError, "must have 2 / 1", dict(rhs=np.ones((3, 3, 2), "float32"))),
    (ValueError, "divide", dict(batch_group_count=2)),
    (RuntimeError, "'SAME_LOWER'", dict(padding="FOO")),
    (ValueError, "conv_transpose", dict(lhs_dilation=(2,))),
    (ValueError, "spatial", dict(window_strides=(1, 1))),
    (ValueError, "positive", dict(window_strides=(0,))),
    (ValueError, "cuts more", dict(padding=[(-9, 0)])),
    (TypeError, "same spatial", dict(dimension_numbers=("NCH", "OIH", "NCW"))),
    (TypeError, "exactly once", dict(dimension_numbers=("NCC", "OIH", "NCH"))),
    (TypeError, "three strings", dict(dimension_numbers=("NCH", "OIH"))),
    (TypeError, "3 axes", dict(dimension_numbers=("NCHW", "OIHW", "NCHW"))),
    (TypeError, "can't hold", dict(preferred_element_type="int32")),
    (TypeError, "pairs", dict(padding=[1])),
]


@pytest.mark.parametrize("kind,text,change", BAD, ids=lambda v: v if isinstance(v, str) else None)
def test_convolutions_that_do_not_fit(kind, text, change):
    with pytest.raises(kind, match=text):
        lax.conv_general_dilated(**{**dict(lhs=X, rhs=K, window_strides=(1,), padding="SAME"), **change})


@pytest.mark.parametrize(
    "kind,text,change",
    [
        (TypeError, "window_dimensions", dict(window_dimensions=(2,))),
        (TypeError, "window_strides", dict(window_strides=(1,))),
        (ValueError, "positive", dict(window_strides=(1, 0, 1), padding="SAME")),
        (TypeError, "positive", dict(window_dilation=(1, 0, 1))),
        (ValueError, "cuts more", dict(padding=[(0, 0), (-3, 0), (0, 0)])),
        (RuntimeError, "unknown padding", dict(padding="HALF")),
        (TypeError, "dtype", dict(init_value=np.int32(1))),
        (TypeError, "structure", dict(computation=lambda a, b: (a, b))),
        (TypeError, "scalars of the dtypes", dict(computation=lambda a, b: a < b)),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_windows_that_do_not_fit(kind, text, change):
    with pytest.raises(kind, match=text):
        lax.reduce_window(
            **{**dict(operand=X, init_value=0.0, computation=lax.add, window_dimensions=(1, 1, 2)), **change}
        )


def test_shapes_without_arrays():
    assert lax.conv_shape_tuple((4, 3, 8), (6, 3, 3), (2,), "VALID", batch_group_count=2) == (2, 6, 3)
    assert lax.reduce_window_shape_tuple((5, 6), (2, 3), None, "SAME", (2, 1), (1, 2)) == (9, 6)
    numbers = lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NWHC"))
    assert (
        numbers
        == lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 2, 1))
        == lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), numbers)
    )
    assert lax.padtype_to_pads((5,), (4,), (1,), "SAME_LOWER") == [(2, 1)]


def test_programs_of_them_can_leave_the_process():
    def step(x, k):
        h = lax.reduce_window(lax.conv(x, k, (1,), "SAME"), -np.inf, lax.max, (1, 1, 2), (1, 1, 2), "SAME")
        return jnp.sum(h) + jnp.sum(lax.reduce_window(x, 1.0, lax.mul, (1, 1, 2)))

    jaxpr = weft.make_jaxpr(weft.grad(step, 1))(X, K).jaxpr
    assert {"conv_general_dilated", "select_and_scatter_add"} <= {e.primitive.name for e in jaxpr.eqns}
    for program in (jaxpr, weft.make_jaxpr(step)(X, K).jaxpr):
        opened, consts = portable(program)
        assert not consts and str(deserialize(serialize(opened)).jaxpr) == str(opened)


@pytest.mark.parametrize("mapped", [(0, None), (None, 0), (0, 0)], ids=["images", "kernels", "both"])
@pytest.mark.parametrize("groups", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}], ids=str)
def test_a_batch_of_no_convolutions(mapped, groups):
    x, w = np.ones((2, 4, 5), np.float32), np.ones((6, 4 // groups.get("feature_group_count", 1), 3), np.float32)
    convolve = lambda x, w: lax.conv_general_dilated(x, w, (1,), "VALID", **groups)
    one = weft.eval_shape(convolve, x, w)
    none = [np.zeros((0, *a.shape), a.dtype) if d == 0 else a for a, d in zip((x, w), mapped)]
    out = weft.vmap(convolve, mapped)(*none)
    assert (out.shape, out.dtype) == ((0, *one.shape), one.dtype)
