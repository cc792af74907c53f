"""The samplers that reject, and those made of them, draw what real JAX drew (sampler_expected.json, written by
make_sampler_expected.py), and what SciPy says they should.
"""

import json
import pathlib
import sys
import warnings

import numpy as np
import pytest
from frozen import compare, expected_class
from platforms import on
from scipy import stats

import weft
import weft.numpy as jnp
from weft import random

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from sampler_cases import outcomes  # noqa: E402

EXPECTED = json.loads((HERE / "sampler_expected.json").read_text())
RUN = outcomes(weft, jnp, np)
QUICK = ("r.gamma(k, a, (2, 5))", "r.binomial(k, 40., p)", "r.poisson(k, 2, (3,))")
K = random.key(11)


@pytest.mark.parametrize(
    "name", [n if n.removeprefix(": ") in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in EXPECTED]
)
def test_draws_as_jax(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = RUN[name]()
    want = EXPECTED[name]
    if want[0] == "error":
        assert got[0] == "error" and set(expected_class(want[1], weft.errors)) & set(got[1]), (got, want)
    else:
        compare(got, want)


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw, law",
    [
        (lambda: random.gamma(K, 0.4, (4000,)), stats.gamma(0.4)),
        (lambda: random.gamma(K, 7.0, (4000,)), stats.gamma(7)),
        (lambda: random.beta(K, 0.5, 2.0, (4000,)), stats.beta(0.5, 2)),
        (lambda: random.t(K, 3.0, (4000,)), stats.t(3)),
        (lambda: random.chisquare(K, 5.0, (4000,)), stats.chi2(5)),
        (lambda: random.f(K, 4.0, 6.0, (4000,)), stats.f(4, 6)),
        (lambda: random.wald(K, 2.0, (4000,)), stats.invgauss(2)),
        (lambda: random.generalized_normal(K, 1.5, (4000,)), stats.gennorm(1.5)),
        (lambda: jnp.abs(random.double_sided_maxwell(K, 0.0, 2.0, (4000,))), stats.maxwell(scale=2)),
        (lambda: jnp.linalg.norm(random.ball(K, 3, 2.0, (4000,)), axis=-1) ** 3, stats.uniform()),
        (
            lambda: random.multivariate_normal(K, jnp.zeros(2), jnp.array([[4.0, 1.0], [1.0, 1.0]]), (4000,))[:, 0],
            stats.norm(0, 2),
        ),
    ],
)
def test_continuous_samples_follow_their_law(draw, law):
    assert stats.kstest(np.asarray(draw()), law.cdf).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw, law",
    [
        (lambda: random.poisson(K, 4.0, (4000,)), stats.poisson(4)),
        (lambda: random.poisson(K, 40.0, (4000,)), stats.poisson(40)),
        (lambda: random.binomial(K, 15, 0.3, (4000,)), stats.binom(15, 0.3)),
        (lambda: random.binomial(K, 90, 0.7, (4000,)), stats.binom(90, 0.7)),
    ],
)
def test_counts_follow_their_law(draw, law):
    x = np.asarray(draw()).astype(int)
    edges = np.unique(law.ppf(np.linspace(0.05, 0.95, 10))).astype(int)
    observed = np.diff([0, *[(x <= e).sum() for e in edges], len(x)])
    expected = len(x) * np.diff([0, *law.cdf(edges), 1])
    assert stats.chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["wasm", "reference"])
def test_other_backends_draw_the_same(platform):
    draws = lambda: [
        random.gamma(K, jnp.array([0.3, 1.0, 8.0])),
        random.poisson(K, jnp.array([2.0, 30.0])),
        random.binomial(K, 40.0, jnp.array([0.1, 0.5])),
    ]
    want = [np.asarray(x) for x in draws()]
    with on(platform):
        got = [np.asarray(x) for x in draws()]
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=3e-6)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: random.gamma(K, jnp.ones(3), (2,)), ("gamma", "(3,)", "(2,)")),
        (lambda: random.gamma(K, [1.0]), ("gamma", "list")),
        (lambda: random.beta(K, jnp.ones(3), jnp.ones(2)), ("beta", "(3,)", "(2,)")),
        (lambda: random.poisson(K, 2.0, dtype=float), ("poisson", "float32")),
        (lambda: random.poisson(random.key(0, impl="rbg"), 2.0), ("poisson", "threefry2x32", "not rbg")),
        (lambda: random.ball(K, 2.5), ("ball", "2.5")),
        (lambda: random.dirichlet(K, 1.0), ("dirichlet", "alpha")),
        (lambda: random.multivariate_normal(K, jnp.zeros(2), jnp.eye(3)), ("cov", "(3, 3)")),
        (lambda: random.gamma(jnp.ones(2), 1.0), ("gamma", "float32[2]")),
        (lambda: random.t(random.split(K), 1.0), ("t ", "(2,)")),
    ],
)
def test_errors_name_the_function_and_the_argument(call, words):
    with pytest.raises((TypeError, ValueError, NotImplementedError)) as e:
        call()
    assert all(w in str(e.value) for w in words), str(e.value)
