"""The rarer functions of weft.numpy against NumPy, their derivatives, and parameters that say how and where to
compute.
"""

import copy
import pickle

import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.base import limits
from weft.test_util import check_grads

RNG = np.random.default_rng(0)


def close(got, want, tolerance=1e-5):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


# ufuncs --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "maximum", "minimum", "logaddexp", "logical_xor", "bitwise_xor"]
)
def test_ufunc_methods_as_numpy_s(name):
    ours, theirs = getattr(jnp, name), getattr(np, name)
    assert isinstance(ours, jnp.ufunc) and (ours.nin, ours.nout) == (theirs.nin, theirs.nout)
    x = RNG.integers(0, 5, (3, 4)) if name == "bitwise_xor" else RNG.normal(size=(3, 4)).round(2)
    small = x.astype("int32" if name == "bitwise_xor" else "float32")
    where = x > 0
    for axis in (0, 1):
        close(ours.reduce(small, axis), theirs.reduce(x, axis), 1e-4)
        close(ours.accumulate(small, axis), theirs.accumulate(x, axis), 1e-4)
        close(ours.reduce(small, axis, initial=2, where=where), theirs.reduce(x, axis, initial=2, where=where), 1e-4)
    close(ours.outer(small, small[0]), theirs.outer(x, x[0]), 1e-4)
    if name not in ("logical_xor",):
        starts = np.array([0, 2, 1, 1])
        close(ours.reduceat(small, jnp.array(starts), 1), theirs.reduceat(x, starts, 1), 1e-4)
        want = x.copy()
        theirs.at(want, (np.array([0, 0, 2]), np.array([1, 1, 0])), x[0, :3])
        close(ours.at(small, (jnp.array([0, 0, 2]), jnp.array([1, 1, 0])), small[0, :3], inplace=False), want, 1e-4)
        want = x.copy()
        theirs.at(want, (slice(1, None), np.array([1, 1])), x[0, :2])
        close(ours.at(small, (slice(1, None), jnp.array([1, 1])), small[0, :2], inplace=False), want, 1e-4)


@pytest.mark.slow
def test_own_ufuncs():
    calls = []
    f = jnp.ufunc(
        lambda x, y: x - y,
        2,
        1,
        name="minus",
        identity=0,
        reduce=lambda a, **keywords: calls.append(keywords) or a.sum(keywords["axis"]),
    )
    assert repr(f) == "<jnp.ufunc 'minus'>" and int(f.reduce(jnp.arange(4), axis=0)) == 6 and calls[0]["axis"] == 0
    g = lambda x, y: x + 2 * y
    assert (
        jnp.frompyfunc(g, 2, 1) == jnp.frompyfunc(g, 2, 1) != jnp.frompyfunc(g, 2, 1, identity=0)
        and len({jnp.add, jnp.add}) == 1
    )
    assert weft.jit(lambda op, x: op(x, x), static_argnums=0)(jnp.frompyfunc(g, 2, 1), jnp.arange(3)).tolist() == [
        0,
        3,
        6,
    ]
    check_grads(
        lambda x: jnp.frompyfunc(lambda x, y: x * y + y, 2, 1).reduce(x),
        (jnp.array([0.5, -1.0, 2.0]),),
        order=2,
        atol=1e-2,
        rtol=1e-2,
    )
    check_grads(jnp.logaddexp.reduce, (jnp.array([0.5, -1.0, 2.0]),), order=2, atol=1e-2, rtol=1e-2)
    assert pickle.loads(pickle.dumps(jnp.add)) is jnp.add and copy.deepcopy(jnp.maximum) is jnp.maximum
    assert weft.lax.reduce(jnp.arange(4), 0, jnp.add, (0,)) == 6 and weft.lax.associative_scan(
        jnp.multiply, jnp.arange(1, 4)
    ).tolist() == [1, 2, 6]
    assert weft.tree.map(jnp.add, [1, 2], [3, 4]) == [4, 6]
    with pytest.raises(NotImplementedError, match="add.*out"):
        jnp.add(1, 2, out=jnp.zeros(()))
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.add.at(jnp.ones(3), 0, 1.0)
    with pytest.raises(ValueError, match="negative takes 1"):
        jnp.negative.reduce(jnp.ones(3))


# polynomials, sets, histograms, bits ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("start, stop, step", [(-3.0, 7.0, 0.1), (0.0, 2.0, 0.03), (5.0, -1.0, -0.7)])
def test_arange_is_computed_in_its_own_type(start, stop, step):
    """As a device computes it: start + i · step, each operation rounded, not a sum of doubles that is rounded once."""
    got = np.asarray(jnp.arange(start, stop, step))
    np.testing.assert_array_equal(got, np.float32(start) + np.float32(step) * np.arange(len(got), dtype=np.float32))
    assert len(got) == len(np.arange(start, stop, step)) and got.dtype == np.float32


def test_spacing_goes_away_from_zero():
    x = np.float32([-0.0, 0.0, -1.0, 1.0, 3e38, -1e-44, np.inf, np.nan])
    away = np.where(np.signbit(x), -np.inf, np.inf).astype(np.float32)
    np.testing.assert_array_equal(
        np.asarray(jnp.spacing(x)), np.where(np.isfinite(x), np.nextafter(x, away) - x, np.nan)
    )


def test_polynomials_as_numpy_s():
    p, q = RNG.normal(size=6).astype("float32"), RNG.normal(size=3).astype("float32")
    for name in ("polyadd", "polysub", "polymul"):
        close(getattr(jnp, name)(p, q), getattr(np, name)(p, q))
        close(getattr(jnp, name)(q, p), getattr(np, name)(q, p))
    for got, want in zip(jnp.polydiv(p, q, trim_leading_zeros=False), np.polydiv(p, q)):
        close(got[-len(want) :], want, 1e-3)
    for m in range(4):
        close(jnp.polyder(p, m), np.polyder(p, m), 1e-4)
        close(jnp.polyint(p, m, k=jnp.arange(m) + 1), np.polyint(p, m, k=np.arange(m) + 1 if m else None), 1e-4)
    close(np.sort(np.asarray(jnp.roots(p))), np.sort(np.roots(p)), 1e-4)
    roots = weft.jit(lambda p: jnp.roots(p, strip_zeros=False))(np.array([0, 0, 1, -3, 2, 0], "float32"))
    close(
        np.sort(np.asarray(roots)[:3]),
        [0, 1, 2],
        1e-4,
    )
    close(jnp.poly(p), np.poly(p), 1e-4)
    x = np.linspace(-1, 1, 9, dtype="float32")
    for options in ({}, {"w": np.arange(1, 10, dtype="float32")}, {"cov": True}, {"cov": "unscaled"}):
        for got, want in zip(
            *[
                r if isinstance(r, tuple) else (r,)
                for r in (jnp.polyfit(x, np.sin(3 * x), 4, **options), np.polyfit(x, np.sin(3 * x), 4, **options))
            ]
        ):
            close(got, want, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_sets_as_numpy_s(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 6, rng.integers(0, 9)), rng.integers(0, 6, rng.integers(0, 9))
    for got, want in zip(jnp.intersect1d(a, b, return_indices=True), np.intersect1d(a, b, return_indices=True)):
        assert got.tolist() == want.tolist()
    assert jnp.setxor1d(a, b).tolist() == np.setxor1d(a, b).tolist()
    common, one = np.intersect1d(a, b), np.setxor1d(a, b)
    fixed = weft.jit(
        lambda a, b: (jnp.intersect1d(a, b, size=7, fill_value=-1), jnp.setxor1d(a, b, size=7, fill_value=-1))
    )(a, b)
    assert [x.tolist() for x in fixed] == [
        np.pad(x, (0, 7 - len(x)), constant_values=-1).tolist() for x in (common, one)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_weighted_quantiles_as_numpy_s(seed):
    rng = np.random.default_rng(seed)
    x, w, q = (
        rng.normal(size=(3, 5)).astype("float32"),
        rng.integers(0, 4, 5) + np.eye(5, dtype=int)[seed],
        rng.random(3).astype("float32"),
    )
    close(
        jnp.quantile(x, q, axis=1, weights=w, method="inverted_cdf"),
        np.quantile(x, q, axis=1, weights=w, method="inverted_cdf"),
    )
    close(jnp.percentile(x, 100 * q, method="inverted_cdf"), np.percentile(x, 100 * q, method="inverted_cdf"))
    holes = np.where(x > 0.5, np.nan, x)
    wide = np.broadcast_to(w + 1, x.shape)
    close(
        jnp.nanquantile(holes, 0.4, axis=1, weights=w + 1, method="inverted_cdf"),
        np.nanquantile(holes, 0.4, axis=1, weights=wide, method="inverted_cdf"),
    )


@pytest.mark.slow
def test_histograms_and_bits_as_numpy_s():
    points = RNG.normal(size=(50, 3)).astype("float32")
    for options in (
        {"bins": 4},
        {"bins": [2, 3, 4]},
        {"bins": 3, "range": [(-1, 1), None, (0, 1)]},
        {"bins": 3, "weights": RNG.random(50).astype("float32")},
        {"bins": 3, "density": True},
    ):
        options = {k: [None if r is None else r for r in v] if k == "range" else v for k, v in options.items()}
        with_range = (
            {**options, "range": [(-1, 1), (points[:, 1].min(), points[:, 1].max()), (0, 1)]}
            if "range" in options
            else options
        )
        got, want = jnp.histogramdd(points, **options), np.histogramdd(points, **with_range)
        close(got[0], want[0], 1e-4)
        for g, w in zip(got[1], want[1]):
            close(g, w)
    for got, want in zip(
        jnp.histogram2d(points[:, 0], points[:, 1], bins=[3, np.array([-1.0, 0, 2])]),
        np.histogram2d(points[:, 0], points[:, 1], bins=[3, np.array([-1.0, 0, 2])]),
    ):
        close(got, want)
    bits = RNG.integers(0, 2, (3, 11))
    for order in ("big", "little"):
        for axis in (None, 0, 1):
            packed = np.packbits(bits, axis=axis, bitorder=order)
            assert jnp.packbits(bits, axis, order).tolist() == packed.tolist()
            for count in (None, 5, -2, 30):
                assert (
                    jnp.unpackbits(packed, axis, count, order).tolist()
                    == np.unpackbits(packed, axis=axis, count=count, bitorder=order).tolist()
                )


@pytest.mark.slow
def test_windows_and_piecewise_as_numpy_s():
    for n in (0, 1, 2, 9, 10):
        for name in ("bartlett", "blackman", "hamming", "hanning"):
            close(getattr(jnp, name)(n), getattr(np, name)(n), 1e-6)
        close(jnp.kaiser(n, 3.5), np.kaiser(n, 3.5), 1e-6)
    x = np.array([0.0, 0.5, -3.0, 20.0], "float32")
    close(jnp.i0(x), np.i0(x), 1e-5)
    check_grads(jnp.i0, (jnp.array([0.5, -1.5]),), order=2, atol=2e-2, rtol=2e-2)
    close(jnp.spacing(x[1:]), np.spacing(x[1:]))
    f = lambda lib, x: lib.piecewise(x, [x < 0, x > 1], [lambda v: -v, lambda v: v * v, 7.0])
    close(f(jnp, x), f(np, x))
    log = lambda x: jnp.piecewise(x, [x > 0], [jnp.log, 0.0]).sum()
    close(weft.grad(log)(jnp.array([0.0, 2.0])), [0, 0.5])  # not NaN


@pytest.mark.slow
def test_tensor_equations_as_numpy_s():
    a, b = RNG.normal(size=(2, 3, 6)).astype("float32"), RNG.normal(size=(2, 3)).astype("float32")
    close(jnp.linalg.tensorsolve(a, b), np.linalg.tensorsolve(a, b), 1e-3)
    close(
        jnp.linalg.tensorsolve(np.moveaxis(a, 2, 0), b, axes=(0,)),
        np.linalg.tensorsolve(np.moveaxis(a, 2, 0), b, axes=(0,)),
        1e-3,
    )
    close(jnp.linalg.tensorinv(a, ind=2), np.linalg.tensorinv(a, ind=2), 1e-3)
    check_grads(jnp.linalg.tensorsolve, (a, b), order=1, atol=5e-2, rtol=5e-2)


# how and where -------------------------------------------------------------------------------------------------------


def test_einsum_paths():
    shapes = {"a": 3, "b": 4, "c": 5, "d": 2}
    terms = ("ab", "bc", "cd", "da")
    xs = [RNG.normal(size=[shapes[c] for c in t]).astype("float32") for t in terms]
    text = ",".join(terms) + "->ac"
    want = np.einsum(text, *xs)
    for optimize in (
        "auto",
        "greedy",
        "optimal",
        "dp",
        True,
        False,
        [(0, 1), (0, 1), (0, 1)],
        [(2, 3), (0, 1), (0, 1)],
        [(1, 3), (0, 2)],
    ):
        close(jnp.einsum(text, *xs, optimize=optimize), want, 1e-4)
    path, told = jnp.einsum_path(text, *xs)
    assert len(path) == 3 and "bc" in str(told)
    used = []
    multiply = lambda *args, **keywords: used.append(1) or weft.lax.dot_general(*args, **keywords)
    close(jnp.einsum(text, *xs, _dot_general=multiply), want, 1e-4)
    assert len(used) == 3
    for optimize, error in (("fast", KeyError), ([(0, 9)], IndexError), ([(0, 1, 2)], NotImplementedError)):
        with pytest.raises(error, match="einsum"):
            jnp.einsum(text, *xs, optimize=optimize)


def test_einsum_without_opt_einsum(monkeypatch):
    einsum = sys.modules["weft.numpy.einsum"]  # the function hides its module
    xs = [RNG.normal(size=s).astype("float32") for s in ((2, 3), (3, 9), (9, 1))]
    monkeypatch.setattr(einsum, "_opt_einsum", lambda: None)
    assert jnp.einsum_path("ij,jk,kl->il", *xs)[0] == [(1, 2), (0, 1)]
    close(jnp.einsum("ij,jk,kl->il", *xs, optimize="optimal"), xs[0] @ xs[1] @ xs[2], 1e-4)


def test_out_sharding():
    mesh = weft.make_mesh((1,), ("d",))
    where = weft.NamedSharding(mesh, weft.P("d"))
    x = jnp.ones((4, 4))
    made = [
        jnp.zeros(4, out_sharding=where),
        jnp.ones(4, out_sharding=where),
        jnp.full(4, 1.0, out_sharding=where),
        jnp.empty(4, out_sharding=where),
        jnp.zeros_like(x, out_sharding=where),
        jnp.ones_like(x, out_sharding=where),
        jnp.full_like(x, 2, out_sharding=where),
        jnp.arange(4, out_sharding=where),
        jnp.array([1, 2], out_sharding=where),
        jnp.asarray(x, out_sharding=where),
        jnp.broadcast_to(x, (2, 4, 4), out_sharding=where),
        jnp.reshape(x, (2, 8), out_sharding=where),
        jnp.ravel(x, out_sharding=where),
        jnp.repeat(x, 2, out_sharding=where),
        jnp.dot(x, x, out_sharding=where),
        jnp.matmul(x, x, out_sharding=where),
        jnp.tensordot(x, x, 1, out_sharding=where),
        jnp.einsum("ij,jk", x, x, out_sharding=where),
        jnp.bincount(jnp.arange(4), length=4, out_sharding=where),
        jnp.percentile(x, jnp.arange(4.0), out_sharding=where),
    ]
    assert [y.sharding for y in made] == [where] * len(made)
    with weft.set_mesh(mesh):
        assert weft.jit(lambda: jnp.zeros(4, out_sharding=weft.P("d")))().sharding.spec == weft.P("d")
    with pytest.raises(TypeError, match="zeros.*out_sharding"):
        jnp.zeros(4, out_sharding=3)
    with pytest.raises(ValueError, match="mesh"):
        jnp.zeros(4, out_sharding=weft.P("d"))
    with pytest.raises(ValueError, match="only one of device and out_sharding"):
        jnp.zeros(4, out_sharding=where, device=weft.devices()[0])


def test_dtypes_of_few_bits():
    assert [jnp.dtype(t).name for t in (jnp.int1, jnp.uint1, jnp.float6_e2m3fn, jnp.float6_e3m2fn)] == [
        "int1",
        "uint1",
        "float6_e2m3fn",
        "float6_e3m2fn",
    ]
    assert (jnp.iinfo(jnp.int1).min, jnp.iinfo(jnp.uint1).max, float(jnp.finfo(jnp.float6_e2m3fn).max)) == (-1, 1, 7.5)
    assert (
        jnp.issubdtype(jnp.int1, jnp.signedinteger)
        and jnp.isdtype(jnp.float6_e3m2fn, "real floating")
        and jnp.promote_types("int1", bool) == jnp.int1
    )
    assert (
        issubclass(jnp.character, jnp.flexible)
        and jnp.issubdtype(jnp.object_, jnp.generic)
        and issubclass(jnp.ComplexWarning, RuntimeWarning)
    )
    assert weft.eval_shape(lambda: jnp.zeros(3, jnp.float6_e2m3fn)).dtype == jnp.float6_e2m3fn
    with pytest.raises(RuntimeError, match="int1"):
        weft.jit(lambda x: x.astype(jnp.int1), backend="cpu")(jnp.arange(2))
    near = weft.jit(lambda x: x.astype(jnp.float6_e2m3fn).astype(jnp.float32), backend="reference")(
        np.float32([1.3, 9])
    )
    assert near.tolist() == [1.25, 7.5]


def test_limits_of_floats_without_numpy():
    for name, ours in limits._FINFO.items():  # what finfo gives where NumPy is not installed
        theirs = jnp.finfo(name)
        for limit in (
            "bits",
            "nmant",
            "nexp",
            "eps",
            "max",
            "min",
            "tiny",
            "smallest_normal",
            "smallest_subnormal",
            "maxexp",
            "minexp",
        ):
            assert float(getattr(ours, limit)) == float(getattr(theirs, limit)), (name, limit)


def test_files(tmp_path):
    x = jnp.arange(6.0).reshape(2, 3)
    jnp.save(tmp_path / "a", x)
    jnp.savez(tmp_path / "b", x, half=jnp.array([1, 2.5], "bfloat16"))
    assert jnp.load(tmp_path / "a.npy").tolist() == x.tolist() and np.load(tmp_path / "a.npy").dtype == np.float32
    assert sorted(jnp.load(tmp_path / "b.npz").files) == ["arr_0", "half"]
    jnp.save(tmp_path / "h", jnp.array([1, 2.5], "bfloat16"))
    assert jnp.load(tmp_path / "h.npy").dtype == jnp.bfloat16 and jnp.load(tmp_path / "h.npy").tolist() == [1, 2.5]
    for name in ("fromfile", "fromiter"):
        with pytest.raises(NotImplementedError, match=name):
            getattr(jnp, name)("x")
    with pytest.raises(FileNotFoundError):
        jnp.load(tmp_path / "none.npy")
