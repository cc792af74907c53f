"""weft.scipy.stats gives what real JAX gave (stats_expected.json) and what SciPy gives; its derivatives are the
numerical ones; it maps and compiles.
"""

import json
import pathlib
import sys

import numpy as np
import pytest
import scipy.stats as reference

import weft
import weft.numpy as jnp
from weft.scipy import stats

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import checks  # noqa: E402
import frozen  # noqa: E402
from stats_cases import CONTINUOUS, DISCRETE, SETUP, expressions  # noqa: E402

EXPECTED = json.loads((HERE / "stats_expected.json").read_text())
LOOSE = ("beta.", "betabinom", "poisson.entropy")  # where JAX has half the digits that SciPy and we have

# parameters for values inside the support; where loc and scale are taken, they are 0.25 and 1.5
PARAMETERS = {
    "beta": (2.0, 1.5),
    "chi2": (3.5,),
    "gamma": (2.25,),
    "gennorm": (1.5,),
    "pareto": (2.5,),
    "t": (3.5,),
    "truncnorm": (-1.25, 1.75),
    "vonmises": (1.5,),
    "wrapcauchy": (0.5,),
    "bernoulli": (0.25,),
    "betabinom": (7.0, 1.5, 2.5),
    "binom": (7.0, 0.25),
    "geom": (0.25,),
    "nbinom": (4.0, 0.25),
    "poisson": (2.5,),
}
INSIDE = {
    "pareto": (1.9, 6.0),
    "wrapcauchy": (0.2, 3.0),
    "beta": (0.35, 1.6),
    "uniform": (0.3, 1.7),
    "truncnorm": (-1.2, 2.4),
}


NAMES: dict = {}


@pytest.fixture
def scope():
    with weft.enable_x64(True), weft.default_device(checks.REFERENCE):
        if not NAMES:
            NAMES.update({"jax": weft, "jnp": jnp, "stats": stats, "np": np})
            exec(SETUP, NAMES)
        yield NAMES


@pytest.mark.slow
@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    loose = 3e-6 if any(name in text for name in LOOSE) else 1e-9
    frozen.check(text, scope, EXPECTED[text], weft.errors, tolerance={"float64": loose, "float32": 2e-5})


def cases(name: str) -> tuple:
    """(functions of a value, functions of a probability, arguments) of a distribution, as weft has them and as SciPy
    has them.
    """
    _, kind, names = {**CONTINUOUS, **DISCRETE}[name]
    low, high = INSIDE.get(name, (0.3, 4.0))
    x = (
        np.array([0.0, 1.0])
        if name == "bernoulli"
        else np.arange(1.0, 7.0)
        if name in DISCRETE
        else np.linspace(low, high, 9)
    )
    params = [np.full(len(x), p) for p in (*PARAMETERS.get(name, ()), *{"ls": (0.25, 1.5), "l": (), "": ()}[kind])]
    inverse = [n for n in names.split() if n in ("ppf", "isf")]
    return [n for n in names.split() if n not in inverse], inverse, (x, *params)


def together(module, names):
    return lambda *args: tuple(getattr(module, n)(*args) for n in names)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_values_derivatives_and_maps(name):
    ours, theirs = getattr(stats, name), getattr(reference, name)
    direct, inverse, args = cases(name)
    wide = {"float16": (5e-2, 3e-2), "bfloat16": (2e-1, 2e-1)}  # 16 bits stay 16 bits all the way
    # log_ndtr has no others
    wanted = tuple(checks.TOLERANCE) if name not in ("norm", "truncnorm") else ("float64", "float32")
    for names, xs in ((direct, args), (inverse, (np.linspace(0.05, 0.95, len(args[0])), *args[1:]))):
        if names:
            checks.values(together(ours, names), together(theirs, names), xs, wanted, wide)
            smooth = [
                i for i in range(len(xs)) if not (i == 0 and name in DISCRETE) and not (name == "betabinom" and i == 1)
            ]
            # no derivative by a and b
            steady = [
                n for n in names if not (name == "beta" and "cdf" in n or n in ("sf", "logsf") and name == "beta")
            ]
            checks.slopes(together(ours, steady), xs, smooth)
            checks.maps(together(ours, names), xs)


@pytest.mark.slow
def test_nan_and_infinities_are_scipy_s():
    x = np.array([np.nan, np.inf, -np.inf, -8.0, 20.0])
    with weft.enable_x64(True), weft.default_device(checks.REFERENCE), np.errstate(all="ignore"):
        for name in CONTINUOUS:
            if name in ("vonmises", "wrapcauchy"):  # SciPy wraps the circle
                continue
            print(name)  # for whoever reads a failure
            direct, _, (_, *params) = cases(name)
            params = [np.full(5, p[0]) for p in params]
            checks.same(
                together(getattr(stats, name), direct)(jnp.asarray(x), *params),
                together(getattr(reference, name), direct)(x, *params),
                1e-9,
                1e-300,
            )


@pytest.mark.slow
def test_entropy_of_poisson():
    mu = np.array([0.01, 0.5, 3.0, 30.0, 99.0, 101.0, 400.0])
    checks.values(stats.poisson.entropy, reference.poisson.entropy, (mu,), ("float64", "float32"))
    checks.slopes(stats.poisson.entropy, (mu,))


@pytest.mark.slow
def test_vectors():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    cov, x, p = root @ root.T + np.eye(3), rng.normal(size=(4, 3)), np.array([0.2, 0.3, 0.5])
    with weft.enable_x64(True), weft.default_device(checks.REFERENCE):
        checks.same(
            stats.multivariate_normal.pdf(x, x[0], cov), reference.multivariate_normal.pdf(x, x[0], cov), 1e-12, 0
        )
        checks.same(stats.dirichlet.logpdf(p, p + 1), reference.dirichlet.logpdf(p, p + 1), 1e-12, 0)
        counts = np.array([[1, 2, 3], [0, 0, 6], [2, 2, 2]])
        checks.same(
            stats.multinomial.logpmf(counts, np.array([6, 6, 5]), p[None]),
            reference.multinomial.logpmf(counts, np.array([6, 6, 5]), p),
            1e-12,
            0,
        )
        slope = weft.jacrev(stats.multivariate_normal.logpdf, (0, 1, 2))(x[1], x[0], cov)
        inverse, d = np.linalg.inv(cov), x[1] - x[0]
        checks.same(
            slope, (-inverse @ d, inverse @ d, (np.outer(inverse @ d, inverse @ d) - inverse) / 2), 1e-10, 1e-12
        )
        kde, theirs = (
            stats.gaussian_kde(x.T, weights=np.arange(1.0, 5)),
            reference.gaussian_kde(x.T, weights=np.arange(1.0, 5)),
        )
        checks.same(kde(x.T + 0.5), theirs(x.T + 0.5), 1e-10, 0)
        checks.same(weft.jit(lambda k, y: k.logpdf(y))(kde, x.T), theirs.logpdf(x.T), 1e-10, 0)
        other = reference.gaussian_kde(x.T + 1)
        checks.same(kde.integrate_kde(stats.gaussian_kde(x.T + 1)), theirs.integrate_kde(other), 1e-10, 0)
        checks.same(
            weft.grad(lambda y: stats.gaussian_kde(y).logpdf(np.zeros((3, 1)))[0])(jnp.asarray(x.T)).shape, (3, 4), 0, 0
        )
        with pytest.raises(AttributeError, match="immutable"):
            kde.dataset = x


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float16", "float64"])
def test_ranks_and_modes(dtype):
    x = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 5, (4, 7)).astype(dtype)
    with weft.enable_x64(True), weft.default_device(checks.REFERENCE):
        for axis in (None, 0, 1, -1):
            for method in ("average", "min", "max", "dense", "ordinal"):
                checks.same(stats.rankdata(x, method, axis=axis), reference.rankdata(x, method, axis=axis), 0, 0)
            if dtype != "bool":
                mode, count = reference.mode(x, axis=axis)
                got = stats.mode(x, axis=axis)
                checks.same(got, (mode, count), 0, 0)
                assert got.mode.dtype == dtype
        checks.same(weft.vmap(stats.rankdata)(jnp.asarray(x)), stats.rankdata(x, axis=1), 0, 0)


@pytest.mark.slow
def test_on_wasm():
    """A function of each kind needs nothing that only XLA has."""
    z = np.array([0.3, 0.9, 1.5])
    checks.on_wasm(
        lambda x: (
            stats.norm.logpdf(x, 0.5, 2.0),
            stats.gamma.cdf(x, 2.0),
            stats.beta.cdf(x / 2, 2.0, 3.0),
            stats.t.pdf(x, 3.0),
            stats.truncnorm.logcdf(x, -1.0, 2.0),
            stats.poisson.logpmf(jnp.floor(x), 2.0),
            stats.rankdata(x),
        ),
        (z,),
    )
    checks.on_wasm(lambda x: stats.multivariate_normal.logpdf(x, 0 * x, jnp.eye(3) + 0.25), (z,))


def test_broadcasting_and_promotion():
    assert stats.norm.pdf(jnp.ones((3, 1)), jnp.zeros(2)).shape == (3, 2)
    assert stats.gamma.logpdf(jnp.arange(3), 2).dtype == jnp.float32
    assert stats.norm.pdf(jnp.float16(1), 0, 1).dtype == jnp.float16
    with pytest.raises(TypeError, match="norm.pdf"):
        stats.norm.pdf([1.0])
    with pytest.raises(TypeError, match="broadcast"):
        stats.norm.pdf(jnp.ones(3), jnp.ones(2))
