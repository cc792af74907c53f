"""numpyro: NUTS and variational inference on a hierarchical model, predictive draws, and log densities of
distributions.
"""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, autoguide

Y = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SIGMA = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(y=None):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("schools", 8):
        with numpyro.handlers.reparam(config={"theta": numpyro.infer.reparam.LocScaleReparam(0)}):
            theta = numpyro.sample("theta", dist.Normal(mu, tau))
        return numpyro.sample("y", dist.Normal(theta, SIGMA), obs=y)


def main() -> dict:
    mcmc = MCMC(NUTS(schools), num_warmup=300, num_samples=600, progress_bar=False)
    mcmc.run(jax.random.key(0), y=Y)
    draws = mcmc.get_samples()
    assert 3.0 < float(draws["mu"].mean()) < 6.0 and 2.0 < float(draws["tau"].mean()) < 6.0, {
        k: v.mean() for k, v in draws.items()
    }
    assert int(mcmc.get_extra_fields()["diverging"].sum()) < 30
    predicted = Predictive(schools, draws)(jax.random.key(1))["y"]
    assert predicted.shape == (600, 8) and 2.0 < float(predicted.mean()) < 7.0

    def line(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 10.0))
        b = numpyro.sample("b", dist.Normal(0.0, 10.0))
        s = numpyro.sample("s", dist.Gamma(2.0, 2.0))
        numpyro.sample("y", dist.Normal(w * x + b, s), obs=y)

    x = jnp.linspace(-1.0, 1.0, 100)
    y = 2.0 * x - 1.0 + 0.3 * jax.random.normal(jax.random.key(2), (100,))
    guide = autoguide.AutoNormal(line)
    result = SVI(line, guide, numpyro.optim.Adam(0.02), Trace_ELBO()).run(
        jax.random.key(3), 1000, x, y, progress_bar=False
    )
    fitted = guide.median(result.params)
    assert (
        abs(float(fitted["w"]) - 2.0) < 0.15
        and abs(float(fitted["b"]) + 1.0) < 0.15
        and abs(float(fitted["s"]) - 0.3) < 0.1
    ), fitted
    density, _ = numpyro.infer.util.log_density(
        schools, (), {"y": Y}, {"mu": 4.0, "tau": 3.0, "theta_decentered": jnp.linspace(-1.0, 1.0, 8)}
    )
    values = [
        dist.Gamma(2.0, 3.0).log_prob(0.5),
        dist.Dirichlet(jnp.ones(3)).log_prob(jnp.full(3, 1 / 3)),
        dist.LKJ(3, 1.5).log_prob(jnp.eye(3)),
        dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2)).log_prob(jnp.ones(2)),
        dist.NegativeBinomial2(3.0, 2.0).log_prob(4),
    ]
    return {
        "log density": float(density),
        "densities": float(sum(values)),
        "ELBO at the start": float(result.losses[0]),
    }


if __name__ == "__main__":
    print(main())
