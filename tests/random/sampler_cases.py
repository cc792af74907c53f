"""Expressions whose outcomes under weft must be real JAX's: the samplers that reject, and those made of them."""

from frozen import outcome, split

# in every mode of `modes`
EVERY = """
r.gamma(k, a, (2, 5)); r.loggamma(k, a); r.beta(k, a, 2., (2, 5)); r.dirichlet(k, a, (3,)); r.chisquare(k, a)
r.f(k, a, 3.); r.t(k, a)
r.generalized_normal(k, 1.5, (4,)); r.ball(k, 3, 1.5, (2,)); r.wald(k, a); r.double_sided_maxwell(k, 1., 2., (4,))
r.binomial(k, 40., p); r.multinomial(k, 30., p / p.sum(), shape=(2, 5)); r.orthogonal(k, 2, (2,))
r.multivariate_normal(k, jnp.ones(2), cov, (3,))
"""
ONCE = """
r.poisson(k, jnp.linspace(0., 60., 100)); r.poisson(k, 2, (3,)); r.poisson(k, 200., (4,), 'int8')
r.poisson(k, jnp.array([-1., jnp.nan, 0., 1e6])); r.poisson(k, jnp.float16(3), (4,))
r.poisson(k, 2., (3,), float); r.poisson(k, jnp.ones(3), (2,)); r.poisson(raw, 3., (2, 2), 'uint8')
r.gamma(k, 2); r.gamma(k, jnp.array([1, 2])); r.gamma(k, 2., (3,), 'float16'); r.gamma(k, .3, (3,), 'bfloat16')
r.gamma(k, jnp.array([0., -1., jnp.nan, jnp.inf, 1e-5])); r.loggamma(k, jnp.array([0., -1., jnp.nan, jnp.inf, 1e-5]))
r.gamma(k, jnp.linspace(.01, 20., 100)); r.gamma(k, jnp.zeros((0, 2))); r.gamma(k, 2., (2,), int)
r.gamma(k, 2., (2,), 'complex64'); r.gamma(k, jnp.ones(3), (2,)); r.gamma(k, jnp.ones((2, 3)), (3,))
r.gamma(jnp.ones(3), 2.); r.gamma(k, 'a'); r.gamma(r.split(k), 2.)
r.binomial(k, 10, .3); r.binomial(k, jnp.linspace(1, 200., 100).round(), jnp.linspace(0, 1., 100))
r.binomial(k, jnp.array([10., -1, jnp.nan, jnp.inf, 5, 5, 5]), jnp.array([.3, .6, .3, .3, -.1, 1.5, jnp.nan]))
r.binomial(k, 10., .3, (4,), 'float16')
r.binomial(k, jnp.float16(10), jnp.float16(.3), (4,)); r.binomial(k, jnp.ones(3), .3, (2,))
r.binomial(k, 10, .3, (2,), int); r.binomial(k, jnp.array([10, 20]), .4)
r.multinomial(k, 10, jnp.array([.2, .8])); r.multinomial(k, 10, [.2, .8])
r.multinomial(k, 10., jnp.array([.2, .8]), shape=(3,)); r.multinomial(k, 10., jnp.array(.2))
r.multinomial(k, jnp.array([10., 20.]), jnp.array([.2, .8]))
r.multinomial(k, 10., jnp.array([.2, .8, 0.]), dtype=int, unroll=2)
r.dirichlet(k, 1.); r.dirichlet(k, jnp.ones((2, 3)), (3,)); r.dirichlet(k, jnp.ones((2, 3)), (2, 2))
r.dirichlet(k, jnp.full(3, 1e-7)); r.dirichlet(k, jnp.ones(3), dtype='float16'); r.beta(k, 1, 2)
r.beta(k, 1., 2., (2,), 'int32'); r.beta(k, jnp.array([1e-10, 1e-3, jnp.nan, 0., -1.]), 2.)
r.t(k, 2., (3,), 'float16'); r.chisquare(k, jnp.array([1., 2., 3.]), (2, 3)); r.f(k, 2, 3); r.wald(k, 2)
r.double_sided_maxwell(k, jnp.ones(2), 2.); r.double_sided_maxwell(k, jnp.ones(2), 2., (3,))
r.double_sided_maxwell(k, 1, 2, (2,), int)
r.generalized_normal(k, 2., (3,), 'float16'); r.generalized_normal(k, jnp.ones(2), (2,))
r.ball(k, 3, 1.5, (), 'bfloat16'); r.ball(k, 2.5); r.ball(k, 0); r.ball(k, 3, jnp.inf)
r.orthogonal(k, 2, m=3); r.orthogonal(k, 3, m=2); r.orthogonal(k, 2, (), 'complex64', 3); r.orthogonal(k, 0)
r.orthogonal(k, 2.); r.orthogonal(k, 2, (), int); r.orthogonal(k, 2, (), 'float16')
r.multivariate_normal(k, jnp.zeros(2), jnp.eye(3)); r.multivariate_normal(k, 0., jnp.eye(3))
r.multivariate_normal(k, jnp.zeros(2), jnp.zeros(2)); r.multivariate_normal(k, jnp.zeros((4, 2)), cov)
r.multivariate_normal(k, jnp.zeros((4, 2)), cov, (3,)); r.multivariate_normal(k, jnp.zeros((4, 2)), cov, (3, 4))
r.multivariate_normal(k, jnp.zeros(2), cov, (2,), 'float16'); r.multivariate_normal(k, jnp.zeros(2), cov, method='lu')
r.multivariate_normal(k, [0, 0], cov); r.multivariate_normal(k, jnp.zeros(2), cov, dtype=int)
r.multivariate_normal(k, jnp.zeros(2), jnp.array([[1., 2.], [2., 1.]]))
jnp.abs(r.multivariate_normal(k, jnp.zeros(2), cov, (2,), method='eigh'))
jnp.abs(r.multivariate_normal(k, jnp.zeros(2), cov, (2,), method='svd'))
jax.vmap(lambda k, a: r.gamma(k, a, (3,)))(r.split(k, 5), a); jax.vmap(lambda a: r.gamma(k, a, (3,)))(a)
jax.vmap(lambda k: r.poisson(k, 12., (2,)))(r.split(k, 2))
jax.vmap(lambda k: r.binomial(k, 30., .5, (3,)))(r.split(k, 2))
jax.vmap(lambda k: r.gamma(k, 1., (3,)))(r.split(r.key(1, impl='rbg'), 2))
jax.jit(lambda k, a: r.beta(k, a, a))(k, a); jax.jit(lambda k: r.multinomial(k, 9., p))(raw)
jax.grad(lambda a: r.gamma(k, a, (3,)).sum())(2.); jax.grad(lambda a: r.loggamma(k, a, (3,)).sum())(.1)
jax.grad(lambda a: r.beta(k, a, 2., (3,)).sum())(.1); jax.grad(lambda a: (r.dirichlet(k, a, (3,)) ** 2).sum())(a)
jax.grad(lambda a: r.t(k, a, (3,)).sum())(.7)
jax.jit(jax.grad(lambda a: r.gamma(k, a).sum()))(a); jax.jvp(lambda a: r.gamma(k, a), (a,), (jnp.ones(5),))[1]
jax.vmap(jax.grad(lambda a: r.gamma(k, a)))(a); jax.jacrev(lambda m: r.multivariate_normal(k, m, cov))(jnp.ones(2))
jax.jacfwd(lambda c: r.multivariate_normal(k, jnp.ones(2), c))(cov)
jax.grad(lambda a: r.chisquare(k, a))(3.); jax.grad(lambda a: r.loggamma(k, a))(1e-9)
"""


def modes(jax) -> dict:
    """name -> (options to set, the key's implementation, whether the key is raw, dtype of the parameters)."""
    return {
        "": ({}, None, False, "float32"),
        "raw": ({}, None, True, "float32"),
        "original": ({"jax_threefry_partitionable": False}, None, False, "float32"),
        "rbg": ({}, "rbg", False, "float32"),
        "unsafe_rbg": ({}, "unsafe_rbg", False, "float32"),
        "x64": ({"jax_enable_x64": True}, None, False, "float64"),
    }


def outcomes(jax, jnp, np):
    """name -> a function that gives the outcome, each in its mode."""

    def run(text, options, impl, is_raw, dtype):
        before = {name: getattr(jax.config, name) for name in options}
        for name, value in options.items():
            jax.config.update(name, value)
        try:
            k = jax.random.key(7, impl=impl)
            scope = {
                "jax": jax,
                "jnp": jnp,
                "np": np,
                "r": jax.random,
                "k": jax.random.key_data(k) if is_raw else k,
                "raw": jax.random.PRNGKey(3),
                "a": jnp.array([0.05, 0.5, 1.0, 2.5, 30.0], dtype),
                "p": jnp.array([0.02, 0.2, 0.5, 0.7, 1.0], dtype),
                "cov": jnp.array([[2.0, 0.5], [0.5, 1.0]], dtype),
            }
            return outcome(text, scope)
        finally:
            for name, value in before.items():
                jax.config.update(name, value)

    found = {
        f"{mode}: {text}": lambda text=text, m=m: run(text, *m)
        for mode, m in modes(jax).items()
        for text in split(EVERY)
    }
    return found | {text: lambda text=text: run(text, *modes(jax)[""]) for text in split(ONCE)}
