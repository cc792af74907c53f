"""weft.scipy's signal, ndimage, interpolate, optimize, cluster, spatial and sparse against SciPy; their derivatives,
vmap, jit; WebAssembly.
"""

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.spatial.transform
from scipy.interpolate import RegularGridInterpolator as ReferenceGrid
from scipy.spatial.transform import Rotation as ReferenceRotation

import weft
import weft.numpy as jnp
from weft.scipy import interpolate, ndimage, optimize, signal, window_functions
from weft.scipy.cluster import vq
from weft.scipy.sparse.linalg import bicgstab, cg, gmres
from weft.scipy.spatial.transform import Rotation, Slerp


def close(got, want, tol=1e-9):
    got, want = (x if isinstance(x, tuple) else (x,) for x in (got, want))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=tol, atol=tol)


@pytest.fixture
def double():
    with weft.enable_x64(True):
        yield np.random.default_rng(0)


PARAMETERS = {
    "kaiser": (4.0,),
    "gaussian": (2.0,),
    "general_gaussian": (1.5, 2.0),
    "general_cosine": ([0.5, 0.3, 0.2],),
    "general_hamming": (0.7,),
}


@pytest.mark.parametrize("name", sorted(window_functions._SHAPES))
def test_windows(name):
    for n in (1, 2, 5, 16):
        params = PARAMETERS.get(name, ())
        close(
            window_functions.window((name, *params), n),
            list(scipy.signal.get_window((name, *params) if params else name, n)),
        )


@pytest.mark.slow
def test_convolutions(double):
    for a, b in (((7,), (3,)), ((3,), (7,)), ((5, 6), (2, 3)), ((4, 5, 3), (2, 2, 2))):
        x, y = double.normal(size=a), double.normal(size=b) + 1j * double.normal(size=b)
        for mode in ("full", "same", "valid"):
            for name in (
                "convolve",
                "correlate",
                "fftconvolve",
                *(("convolve2d", "correlate2d") if len(a) == 2 else ()),
            ):
                for p, q in ((x, y), (y.real, x)):
                    close(
                        getattr(signal, name)(jnp.asarray(p), jnp.asarray(q), mode),
                        getattr(scipy.signal, name)(p, q, mode),
                    )
            close(signal.convolve(x, y, mode, method="fft"), scipy.signal.convolve(x, y, mode))


@pytest.mark.slow
def test_spectra(double):
    x, y = double.normal(size=(2, 3, 100))
    for options, scaling, average, boundary in (
        (dict(nperseg=33, noverlap=5), "density", "mean", "zeros"),
        (dict(nperseg=16, nfft=20, window="hamming"), "spectrum", "median", "even"),
        (dict(nperseg=16, window=("kaiser", 3.0), fs=4.0), "density", "median", "odd"),
        (dict(nperseg=16, return_onesided=False), "spectrum", "mean", "constant"),
    ):
        of_power = dict(scaling=scaling, average=average, **options)
        close(signal.welch(x, **of_power), scipy.signal.welch(x, **of_power))
        close(signal.csd(x, y, detrend="linear", **of_power), scipy.signal.csd(x, y, detrend="linear", **of_power))
        close(signal.stft(x, boundary=boundary, **options), scipy.signal.stft(x, boundary=boundary, **options))
    for options in (dict(nperseg=15, noverlap=10, window="hamming"), dict(nperseg=16, nfft=24)):
        Z = scipy.signal.stft(x, **options)[2]
        close(signal.istft(Z, **options), scipy.signal.istft(Z, **options))
        close(signal.istft(Z, **options)[1][..., :100], x)
    for bp in (0, [30, 60]):
        close(signal.detrend(x, bp=bp), scipy.signal.detrend(x, bp=bp))
    close(signal.detrend(x, axis=0, type="constant"), scipy.signal.detrend(x, axis=0, type="constant"))


@pytest.mark.slow
def test_values_between_points(double):
    image, at = double.normal(size=(5, 6)), double.uniform(-3, 9, size=(2, 40))
    for mode, theirs in (
        ("nearest", "nearest"),
        ("mirror", "mirror"),
        ("reflect", "reflect"),
        ("wrap", "grid-wrap"),
        ("constant", "grid-constant"),
    ):
        for order in (0, 1):
            close(
                ndimage.map_coordinates(image, list(at), order, mode, cval=2.5),
                scipy.ndimage.map_coordinates(image, at, order=order, mode=theirs, cval=2.5),
            )
    grid = [np.sort(double.uniform(size=n)) for n in (4, 5)]
    values, points = double.normal(size=(4, 5, 2)), double.uniform(-0.2, 1.2, size=(30, 2))
    for method in ("linear", "nearest"):
        for fill in (np.nan, 3.0, None):
            ours, theirs = (
                cls(grid_, v, method=method, bounds_error=False, fill_value=fill)
                for cls, grid_, v in (
                    (interpolate.RegularGridInterpolator, [jnp.asarray(g) for g in grid], jnp.asarray(values)),
                    (ReferenceGrid, grid, values),
                )
            )
            close(ours(jnp.asarray(points)), theirs(points))
            close(weft.jit(lambda f, p: f(p))(ours, jnp.asarray(points)), theirs(points))
    with pytest.raises(ValueError, match=r"points\[0\]"):
        interpolate.RegularGridInterpolator((jnp.arange(3.0),), jnp.arange(4.0))
    close(vq.vq(values[..., 0], values[:2, :, 1]), scipy.cluster.vq.vq(values[..., 0], values[:2, :, 1]))


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("f,start", [(rosenbrock, [0.0, 0.0, 0.0, 0.0]), (himmelblau, [1.0, 1.0])])
def test_minimize(double, f, start):
    start = jnp.array(start)
    want = scipy.optimize.minimize(
        lambda x: np.asarray(f(jnp.asarray(x))),
        start,
        jac=lambda x: np.asarray(weft.grad(f)(jnp.asarray(x))),
        method="BFGS",
    )
    for method in ("BFGS", "l-bfgs-experimental-do-not-rely-on-this"):
        got = weft.jit(lambda x: optimize.minimize(f, x, method=method, options={"gtol": 1e-6}))(start)
        close(got.fun, want.fun, 1e-6)
        close(got.x, want.x, 1e-4)
        close(got.jac, weft.grad(f)(got.x), 1e-12)
        assert int(got.nit) <= 3 * want.nit + 10 and got.nfev >= got.nit
    assert method.startswith("l-bfgs") and got.hess_inv is None
    if f is rosenbrock:
        return
    few = optimize.minimize(f, start, method="BFGS", options={"maxiter": 2})
    assert int(few.status) == 1 and not bool(few.success) and int(few.nit) == 2
    batch = weft.vmap(lambda x: optimize.minimize(f, x, method="BFGS").fun)(jnp.stack([start, start + 0.1]))
    close(batch, [want.fun] * 2, 1e-6)


@pytest.mark.slow
def test_minimize_differentiates_forwards(double):
    solve = lambda a: (
        optimize.minimize(lambda x: jnp.sum((x - a) ** 2 + 0.1 * x**4), jnp.zeros(2), method="BFGS", tol=1e-10).x
    )
    a, t, step = jnp.array([1.0, 2.0]), jnp.array([1.0, -1.0]), 1e-4
    close(weft.jvp(solve, (a,), (t,))[1], (solve(a + step * t) - solve(a - step * t)) / (2 * step), 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver", [cg, bicgstab, gmres, lambda *a, **k: gmres(*a, solve_method="incremental", restart=4, **k)]
)
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_linear_systems(double, solver, kind):
    a = double.normal(size=(6, 6)) + (1j * double.normal(size=(6, 6)) if kind == "complex" else 0)
    A = jnp.asarray(a @ a.conj().T + 6 * np.eye(6))
    b = jnp.asarray(double.normal(size=6) + (1j if kind == "complex" else 0))
    want = np.linalg.solve(A, b)
    if kind == "complex":
        for M in (None, jnp.diag(1 / jnp.diag(A)), lambda v: v / 8):
            close(solver(A, b, tol=1e-12, M=M)[0], want, 1e-8)
        return
    close(
        solver(
            lambda t: {
                "u": (A @ jnp.concatenate([t["u"], t["v"]]))[:2],
                "v": (A @ jnp.concatenate([t["u"], t["v"]]))[2:],
            },
            {"u": b[:2], "v": b[2:]},
            x0={"u": b[:2], "v": b[2:]},
            tol=1e-12,
        )[0]["v"],
        want[2:],
        1e-8,
    )
    close(
        weft.jit(weft.vmap(lambda b: solver(A, b, tol=1e-12)[0]))(jnp.stack([b, 2 * b])),
        np.stack([want, 2 * want]),
        1e-8,
    )
    f = lambda A, b: jnp.sum(jnp.sin(solver(A, b, tol=1e-12)[0]))
    g = lambda A, b: jnp.sum(jnp.sin(jnp.linalg.solve(A, b)))
    for got, wanted in zip(weft.grad(f, (0, 1))(A, b), weft.grad(g, (0, 1))(A, b)):
        close(got, wanted, 1e-7)
    close(weft.jvp(f, (A, b), (A, b))[1], weft.jvp(g, (A, b), (A, b))[1], 1e-7)


@pytest.mark.slow
def test_rotations(double):
    q = double.normal(size=(5, 4))
    ours, theirs = Rotation.from_quat(jnp.asarray(q)), ReferenceRotation.from_quat(q)
    v = double.normal(size=(5, 3))
    for name, args in (
        ("as_matrix", ()),
        ("as_rotvec", ()),
        ("as_mrp", ()),
        ("magnitude", ()),
        ("as_quat", (True,)),
        ("apply", (v,)),
        ("apply", (v, True)),
    ):
        close(getattr(ours, name)(*args), getattr(theirs, name)(*args))
    for seq in ("xyz", "ZYX", "zxz", "YXY", "xzy"):
        close(ours.as_euler(seq), theirs.as_euler(seq))
        close(Rotation.from_euler(seq, v).as_quat(True), ReferenceRotation.from_euler(seq, v).as_quat(True))
    for name, arg in (
        ("from_matrix", theirs.as_matrix()),
        ("from_rotvec", v),
        ("from_rotvec", v * 1e-6),
        ("from_mrp", v),
    ):
        close(
            getattr(Rotation, name)(jnp.asarray(arg)).as_quat(True), getattr(ReferenceRotation, name)(arg).as_quat(True)
        )
    close((ours * ours.inv()[::-1]).as_quat(True), (theirs * theirs.inv()[::-1]).as_quat(True))
    close(ours.mean(jnp.arange(1.0, 6)).as_quat(True), theirs.mean(np.arange(1.0, 6)).as_quat(True))
    close(Rotation.concatenate([ours, ours[0]]).as_quat(), np.concatenate([theirs.as_quat(), theirs.as_quat()[:1]]))
    times = np.array([0.0, 1.0, 2.5, 3.0, 4.0])
    at = np.array([0.0, 0.3, 2.5, 3.9, 4.0])
    close(Slerp.init(times, ours)(at).as_quat(True), scipy.spatial.transform.Slerp(times, theirs)(at).as_quat(True))
    assert len(Rotation.random(weft.random.key(0), 7)) == 7
    # derivatives at the angle zero, where the axis is not defined
    close(weft.jacfwd(lambda r: Rotation.from_rotvec(r).as_rotvec())(jnp.zeros(3)), np.eye(3), 1e-6)
    close(weft.jacrev(lambda r: Rotation.from_rotvec(r).as_matrix()[0, 1])(jnp.zeros(3)), [0, 0, -1], 1e-6)
    with pytest.raises(ValueError, match=r"\(…, 4\)"):
        Rotation.from_quat(jnp.ones(3))


GRAD = {
    "fftconvolve": lambda x: signal.fftconvolve(x, jnp.sin(x[:3]), mode="same"),
    "detrend": lambda x: signal.detrend(x, bp=[4]),
    "welch": lambda x: signal.welch(x, nperseg=8)[1],
    "istft": lambda x: signal.istft(signal.stft(x, nperseg=8)[2], nperseg=8)[1],
    "map_coordinates": lambda x: ndimage.map_coordinates(x, [jnp.abs(x) * 3], 1),
    "interpolator": lambda x: interpolate.RegularGridInterpolator((jnp.arange(12.0),), x)(jnp.abs(x) * 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAD)
def test_derivatives_vmap_and_jit(double, name):
    f = GRAD[name]
    x, t, step = jnp.asarray(double.normal(size=12)), jnp.asarray(double.normal(size=12)), 1e-6
    out, tangent = weft.jvp(f, (x,), (t,))
    close(tangent, (f(x + step * t) - f(x - step * t)) / (2 * step), 1e-5)
    ct = jnp.cos(jnp.arange(out.size)).reshape(out.shape)
    close(jnp.vdot(weft.vjp(f, x)[1](ct)[0], t), jnp.vdot(ct, tangent), 1e-8)
    close(weft.jit(weft.vmap(f))(jnp.stack([x, t])), np.stack([f(x), f(t)]))


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["reference", "wasm"])
def test_other_backends(platform):
    x = np.sin(np.arange(32.0)).astype("float32")
    k = np.array([[1.0, 2.0], [-1.0, 0.5]], "float32")
    A = np.array([[4.0, 1.0], [1.0, 3.0]], "float32")
    with weft.default_device(weft.devices(platform)[0]):
        close(signal.convolve(jnp.asarray(x), jnp.asarray(x[:3])), scipy.signal.convolve(x, x[:3]), 1e-5)
        close(signal.welch(jnp.asarray(x), nperseg=8), scipy.signal.welch(x, nperseg=8), 1e-5)
        close(ndimage.map_coordinates(jnp.asarray(k), [jnp.array([0.5]), jnp.array([0.25])], 1), [0.3125], 1e-5)
        close(cg(jnp.asarray(A), jnp.ones(2))[0], np.linalg.solve(A, np.ones(2)), 1e-5)
        close(gmres(jnp.asarray(A), jnp.ones(2))[0], np.linalg.solve(A, np.ones(2)), 1e-4)
        close(optimize.minimize(lambda v: jnp.sum((v - 1) ** 2), jnp.zeros(2), method="BFGS").x, np.ones(2), 1e-5)
        close(
            Rotation.from_euler("xyz", jnp.array([0.1, 0.2, 0.3])).as_matrix(),
            ReferenceRotation.from_euler("xyz", [0.1, 0.2, 0.3]).as_matrix(),
            1e-6,
        )
        close(
            interpolate.RegularGridInterpolator((jnp.arange(3.0),), jnp.array([0.0, 1.0, 4.0]))(jnp.array([1.5])),
            [2.5],
            1e-6,
        )
        assert vq.vq(jnp.asarray(k), jnp.asarray(k[::-1]))[0].tolist() == [1, 0]
