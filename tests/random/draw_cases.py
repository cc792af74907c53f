"""Random draws whose results must be those of real JAX, in both modes of threefry and from raw and new-style keys."""

from frozen import describe

WORDS_ARE = "weft.random"  # to tools/coverage.py


def make_cases(jax, jnp) -> dict:
    """name -> (partitionable mode, function that draws)."""
    r = jax.random
    cases = {
        "key": lambda: r.key_data(r.key(42)),
        "big": lambda: r.PRNGKey(0x123456789),
        "neg": lambda: r.PRNGKey(-1),
        "split": lambda: r.split(r.PRNGKey(1), 5),
        "fold": lambda: r.fold_in(r.PRNGKey(1), 7),
    }
    for mode in (True, False):
        for raw in (True, False):
            k = lambda raw=raw: r.PRNGKey(3) if raw else r.key(3)
            for name, f in {
                "bits8": lambda k: r.bits(k, (5,), "uint8"),
                "bits16": lambda k: r.bits(k, (5,), "uint16"),
                "bits32": lambda k: r.bits(k, (3, 3)),
                "uniform": lambda k: r.uniform(k, (5,)),
                "uniform0": lambda k: r.uniform(k),
                "unif2": lambda k: r.uniform(k, (3, 2), minval=-1, maxval=jnp.array([2.0, 3.0])),
                "unibf": lambda k: r.uniform(k, (5,), jnp.bfloat16).astype("float32"),
                "unif16": lambda k: r.uniform(k, (5,), "float16"),
                "normal": lambda k: r.normal(k, (4,)),
                "normalc": lambda k: r.normal(k, (4,), "complex64"),
                "normbf": lambda k: r.normal(k, (4,), jnp.bfloat16).astype("float32"),
                "randint": lambda k: r.randint(k, (6,), 0, 10),
                "randint2": lambda k: r.randint(k, (2, 3), -5, jnp.array([1, 100, 1000])),
                "ri8": lambda k: r.randint(k, (6,), 0, 300, "uint8"),
                "rimax": lambda k: r.randint(k, (6,), -(2**31), 2**31 - 1),
                "perm": lambda k: r.permutation(k, 10),
                "permarr": lambda k: r.permutation(k, jnp.arange(12.0).reshape(4, 3)),
                "permax": lambda k: r.permutation(k, jnp.arange(12.0).reshape(4, 3), axis=1, independent=True),
                "choice": lambda k: r.choice(k, 10, (4,)),
                "choicea": lambda k: r.choice(k, jnp.arange(12.0).reshape(4, 3), (2,)),
                "choicenr": lambda k: r.choice(k, 10, (4,), replace=False),
                "choicep": lambda k: r.choice(k, 4, (5,), p=jnp.array([0.1, 0.2, 0.3, 0.4])),
                "choicepn": lambda k: r.choice(k, 4, (3,), p=jnp.array([0.1, 0.2, 0.3, 0.4]), replace=False),
                "choicenra": lambda k: r.choice(k, jnp.arange(12.0).reshape(4, 3), (2,), replace=False, axis=1),
                "bern": lambda k: r.bernoulli(k, 0.3, (6,)),
                "bernp": lambda k: r.bernoulli(k, jnp.array([0.1, 0.5, 0.9])),
                "expo": lambda k: r.exponential(k, (3,)),
                "gumbel": lambda k: r.gumbel(k, (3,)),
                "laplace": lambda k: r.laplace(k, (3,)),
                "cauchy": lambda k: r.cauchy(k, (3,)),
                "logistic": lambda k: r.logistic(k, (3,)),
                "cat": lambda k: r.categorical(k, jnp.arange(12.0).reshape(4, 3)),
                "cat0": lambda k: r.categorical(k, jnp.arange(12.0).reshape(4, 3) / 5, axis=0),
                "catsh": lambda k: r.categorical(k, jnp.arange(12.0).reshape(4, 3) / 9, shape=(2, 4)),
                "catnr": lambda k: r.categorical(k, jnp.arange(5.0) / 5, shape=(3,), replace=False),
                "trunc": lambda k: r.truncated_normal(k, -2.0, 2.0, (4,)),
                "rade": lambda k: r.rademacher(k, (5,)),
                "pareto": lambda k: r.pareto(k, 2.0, (3,)),
                "weib": lambda k: r.weibull_min(k, 1.0, 2.0, (3,)),
                "rayl": lambda k: r.rayleigh(k, 2.0, (3,)),
                "geo": lambda k: r.geometric(k, 0.3, (5,)),
                "tri": lambda k: r.triangular(k, 0.0, 0.3, 1.0, (4,)),
                "logn": lambda k: r.lognormal(k, 0.5, (4,)),
                "maxw": lambda k: r.maxwell(k, (4,)),
                "vmapn": lambda k: jax.vmap(lambda k: r.normal(k, (2,)))(r.split(k, 3)),
                "jit": lambda k: jax.jit(lambda k: r.uniform(k, (3,)))(k),
                "loop": lambda k: jnp.stack([r.uniform(kk) for kk in r.split(k, 3)]),
                "splitsh": lambda k: jnp.stack([r.uniform(kk) for kk in r.split(k, (2, 3))[1]]),
                "odd": lambda k: r.uniform(k, (7,)),
            }.items():
                cases[f"{name}-{mode}-{raw}"] = lambda f=f, mode=mode, k=k: (lambda: f(k()))()
    return {name: (name.split("-")[1:2] != ["False"], f) for name, f in cases.items()}


def draw(jax, jnp, np) -> dict:
    out = {}
    for name, (mode, f) in make_cases(jax, jnp).items():
        with jax.threefry_partitionable(mode):
            out[name] = describe(f(), np)
    return out
