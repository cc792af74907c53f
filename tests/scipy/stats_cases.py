"""Expressions over `stats`, `jnp`, `jax` and `np`, with 64-bit types on, whose results (or error classes) must be
those of real JAX.
"""

SETUP = """
X = jnp.array([-2., -.5, 0., .25, .5, 1., 1.9, 3., 6.5, 40., jnp.inf, -jnp.inf])
Q = jnp.array([-.1, 0., 1e-10, .01, .3, .5, .99, 1., 1.1, jnp.nan])
K = jnp.array([-1., 0., 1., 2., 3., 7., 20.])
I = jnp.array([-1, 0, 1, 2, 5, 9])
A = jnp.array([.5, 1., 2.5, 30.])[:, None]
B = jnp.array([1.5, .5, 4., 2.])[:, None]
P = jnp.array([.1, .5, .9])[:, None]
bad = jnp.array([-1., 0., 2.])[:, None]
v = jnp.array([.2, .3, .5])
D = jnp.array([[1., 2., 4., 3.], [0., 1., -1., 2.]])
S = jnp.array([[2., .5, .1], [.5, 3., .2], [.1, .2, 1.]])
n = jnp.array([3, 1, 3, 1, 2])
m = jnp.array([[3, 1, 1], [3, 2, 1]])
w = jnp.array([2., jnp.nan, 1., 5.])
kde = stats.gaussian_kde(D)
"""

# of each distribution: the parameters without defaults, whether it takes loc and scale ("ls"), loc ("l") or none, and
# its functions
CONTINUOUS = {
    "beta": ("A, B", "ls", "pdf logpdf cdf logcdf sf logsf"),
    "cauchy": ("", "ls", "pdf logpdf cdf logcdf sf logsf ppf isf"),
    "chi2": ("A", "ls", "pdf logpdf cdf logcdf sf logsf"),
    "expon": ("", "ls", "pdf logpdf cdf logcdf sf logsf ppf"),
    "gamma": ("A", "ls", "pdf logpdf cdf logcdf sf logsf"),
    "gennorm": ("B", "", "pdf logpdf cdf"),
    "gumbel_l": ("", "ls", "pdf logpdf cdf logcdf sf logsf ppf"),
    "gumbel_r": ("", "ls", "pdf logpdf cdf logcdf sf logsf ppf"),
    "laplace": ("", "ls", "pdf logpdf cdf"),
    "logistic": ("", "ls", "pdf logpdf cdf sf ppf isf"),
    "norm": ("", "ls", "pdf logpdf cdf logcdf sf logsf ppf isf"),
    "pareto": ("B", "ls", "pdf logpdf cdf logcdf sf logsf ppf"),
    "t": ("A", "ls", "pdf logpdf"),
    "truncnorm": ("-A, B", "ls", "pdf logpdf cdf logcdf sf logsf"),
    "uniform": ("", "ls", "pdf logpdf cdf ppf"),
    "vonmises": ("A", "", "pdf logpdf"),
    "wrapcauchy": ("P", "", "pdf logpdf"),
}
DISCRETE = {
    "bernoulli": ("P", "l", "pmf logpmf"),
    "betabinom": ("7, A, B", "l", "pmf logpmf"),
    "binom": ("7, P", "l", "pmf logpmf"),
    "geom": ("P", "l", "pmf logpmf"),
    "nbinom": ("4, P", "l", "pmf logpmf"),
    "poisson": ("A", "l", "pmf logpmf cdf"),
}
OTHERS = """
stats.bernoulli.cdf(X, P); stats.bernoulli.ppf(Q, P); stats.bernoulli.cdf(X, bad); stats.bernoulli.ppf(Q, bad)
stats.poisson.entropy(A); stats.poisson.entropy(bad)
stats.poisson.entropy(np.float32(3)); stats.poisson.entropy(3); stats.poisson.entropy(3, 1.)
stats.poisson.entropy(jnp.array([200., 1000., jnp.nan])); stats.poisson.logpmf(K, bad)
stats.norm.pdf([1.]); stats.norm.pdf(X, K); stats.norm.pdf('a'); stats.norm.pdf(); stats.norm.pdf(1., 2., 3., 4.)
stats.norm.pdf(1., spread=2.); stats.norm.pdf(x=1., scale=2.)
stats.norm.pdf(1); stats.norm.pdf(I); stats.norm.logpdf(X.astype('float16')); stats.gamma.logpdf(jnp.float32(2), 3)
stats.beta.pdf(.5, 2, 3); stats.expon.cdf(jnp.array([True, False]))
stats.wrapcauchy.logpdf(X, bad); stats.gumbel_l.pdf(X, 0., bad); stats.truncnorm.pdf(X, 1., bad)
stats.truncnorm.logcdf(.5, -31., -30., loc=31.); stats.truncnorm.logpdf(X, -jnp.inf, jnp.inf)
stats.binom.pmf(I, 5, .25); stats.betabinom.pmf(K, bad, 1., 1.); stats.betabinom.pmf(K, 5, bad, 1.)
stats.multinomial.logpmf(jnp.array([1, 2, 3]), 6, v); stats.multinomial.pmf(jnp.array([1, 2, 3]), 6, v)
stats.multinomial.logpmf(jnp.array([1, 2, 3]), 5, v)
stats.multinomial.logpmf(jnp.array([0, 2, 3]), 5, jnp.array([0., .3, .7]))
stats.multinomial.logpmf(jnp.array([1., 2., 3.]), 6, v); stats.multinomial.logpmf(jnp.array([1, 2]), 3, v)
stats.multinomial.pmf(jnp.array([1, 2, 3]), 6., v); stats.multinomial.logpmf([1, 2, 3], 6, v)
stats.dirichlet.logpdf(v, K[2:5]); stats.dirichlet.pdf(v, K[2:5]); stats.dirichlet.logpdf(v[:2], K[2:5])
stats.dirichlet.logpdf(v * 2, K[2:5]); stats.dirichlet.logpdf(v[:, None] * jnp.ones(2), K[2:5])
stats.dirichlet.logpdf(v, A); stats.dirichlet.logpdf(v[:1], K[2:5])
stats.dirichlet.logpdf(jnp.array([.2, .8, 0.]), jnp.ones(3)); stats.dirichlet.logpdf([.2], K)
stats.multivariate_normal.logpdf(v, K[2:5], S); stats.multivariate_normal.pdf(v, K[2:5], S)
stats.multivariate_normal.logpdf(jnp.stack([v, 2 * v]), v, S); stats.multivariate_normal.logpdf(1., 0., 2.)
stats.multivariate_normal.logpdf(v, 0., 2.); stats.multivariate_normal.logpdf(v, v, S, allow_singular=True)
stats.multivariate_normal.logpdf(v, v, v); stats.multivariate_normal.logpdf(v, v[:2], S)
stats.multivariate_normal.logpdf(v, v, jnp.stack([S, 2 * S])); stats.multivariate_normal.logpdf(v, v, -S)
stats.multivariate_normal.logpdf(v, v, jnp.ones((3, 2)))
stats.multivariate_normal.logpdf(jnp.stack([v, 2 * v]), jnp.stack([v, v, v])[:, None], S)
stats.multivariate_normal.logpdf([1.], v, S)
stats.mode(n); stats.mode(m); stats.mode(m, axis=1); stats.mode(m, None); stats.mode(m, -1, keepdims=True)
stats.mode(m, None, keepdims=True); stats.mode(w[jnp.array([0, 2, 0])]); stats.mode(jnp.array([]))
stats.mode(jnp.zeros((0, 3))); stats.mode(jnp.zeros((3, 0))); stats.mode(m, 2); stats.mode(m, (0,)); stats.mode(1.)
stats.mode([1, 2]); stats.mode(n > 1); stats.mode(n, nan_policy='omit'); stats.mode(n, nan_policy='no')
stats.rankdata(n); stats.rankdata(n, 'min'); stats.rankdata(n, 'max'); stats.rankdata(n, 'dense')
stats.rankdata(n, 'ordinal'); stats.rankdata(n, 'first'); stats.rankdata(m); stats.rankdata(m, axis=0)
stats.rankdata(m, 'max', axis=1); stats.rankdata(w); stats.rankdata(w, 'dense')
stats.rankdata(jnp.stack([w, w[::-1] * 0 + 1.]), axis=1); stats.rankdata(jnp.array([])); stats.rankdata(1.)
stats.rankdata([1])
stats.rankdata(n, axis=1); stats.rankdata(n, nan_policy='omit'); stats.rankdata(n, nan_policy='raise')
stats.rankdata(n, nan_policy='no'); stats.rankdata(jnp.zeros((2, 0)), axis=1)
stats.sem(n); stats.sem(m); stats.sem(m, None); stats.sem(m, 1, 0, keepdims=True); stats.sem(w)
stats.sem(w, nan_policy='omit'); stats.sem(w, nan_policy='no'); stats.sem(m, None, keepdims=True); stats.sem([1.])
stats.sem(w, nan_policy='omit', keepdims=True); stats.sem(v.astype('float16')); stats.sem(v.astype('float32'))
kde.covariance; kde.inv_cov; kde.neff; kde.dataset; kde.weights; kde.d; kde.n; kde(D); kde.evaluate(D[:, 0])
kde.pdf(D + 1); kde.logpdf(jnp.array([100., 0.])); kde(1.); kde(v); kde(jnp.ones((2, 2, 2)))
kde.integrate_gaussian(v[:2], S[:2, :2]); kde.integrate_gaussian(v, S[:2, :2]); kde.integrate_gaussian(v[:2], S)
kde.integrate_box_1d(0, 1); kde.integrate_box(0, 1); kde.set_bandwidth()
kde.integrate_kde(stats.gaussian_kde(D + 1)); kde.integrate_kde(stats.gaussian_kde(D[0]))
stats.gaussian_kde(D[0]).integrate_box_1d(0, 1); stats.gaussian_kde(D[0]).integrate_box_1d(v, 1)
stats.gaussian_kde(D, .5).covariance; stats.gaussian_kde(D, lambda k: .7).inv_cov
stats.gaussian_kde(D, 'silverman').covariance; stats.gaussian_kde(D, weights=jnp.array([1, 2, 3, 4])).covariance
stats.gaussian_kde(D, 'x'); stats.gaussian_kde(D, v); stats.gaussian_kde(D, weights=v); stats.gaussian_kde(D, weights=S)
stats.gaussian_kde(D + 1j); stats.gaussian_kde([1., 2.]); stats.gaussian_kde(jnp.array([1.]))
stats.gaussian_kde(jnp.ones((2, 2, 2))); kde.resample(jax.random.key(0)); kde.resample(jax.random.key(0), (3,))
stats.gaussian_kde(D[0]).resample(jax.random.key(1), (2,)); stats.gaussian_kde(n)(v)
"""


def expressions() -> list[str]:
    """Every expression, once."""
    from frozen import split

    out = []
    for table, value, tails in ((CONTINUOUS, "X", {"ls": (".3, 1.7",), "": ("",)}), (DISCRETE, "K", {"l": ("", "1.")})):
        for name, (params, kind, functions) in table.items():
            for f in functions.split():
                for tail in tails[kind]:
                    args = ", ".join(filter(None, ("Q" if f in ("ppf", "isf") else value, params, tail)))
                    out.append(f"stats.{name}.{f}({args})")
    return list(dict.fromkeys([*out, *split(OTHERS)]))
