"""jaxopt: gradient, quasi-Newton and proximal solvers, a projected problem, and hyperparameters through implicit
differentiation.
"""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import jax
import jax.numpy as jnp
import jaxopt


def main() -> dict:
    x = jax.random.normal(jax.random.key(0), (60, 5))
    weights = jnp.array([1.0, -2.0, 0.0, 0.0, 0.5])
    y = x @ weights + 0.01 * jax.random.normal(jax.random.key(1), (60,))

    def squares(w, data):
        x, y = data
        return jnp.mean((x @ w - y) ** 2)

    start = jnp.zeros(5)
    for solver in (
        jaxopt.GradientDescent(squares, maxiter=300),
        jaxopt.LBFGS(squares, maxiter=100),
        jaxopt.BFGS(squares, maxiter=100),
        jaxopt.NonlinearCG(squares, maxiter=100),
    ):
        assert jnp.allclose(solver.run(start, data=(x, y)).params, weights, atol=2e-2), solver
    lasso = jaxopt.ProximalGradient(jaxopt.objective.least_squares, jaxopt.prox.prox_lasso, maxiter=500)
    sparse = lasso.run(start, hyperparams_prox=0.1, data=(x, y)).params
    assert float(jnp.abs(sparse[2:4]).max()) < 0.02 and abs(float(sparse[1])) > 1.5, sparse
    simplex = (
        jaxopt.ProjectedGradient(squares, jaxopt.projection.projection_simplex, maxiter=300)
        .run(jnp.full(5, 0.2), data=(x, y))
        .params
    )
    assert abs(float(simplex.sum()) - 1.0) < 1e-4 and float(simplex.min()) >= 0.0

    def ridge(penalty, data):
        solver = jaxopt.LBFGS(lambda w, penalty, data: squares(w, data) + penalty * jnp.sum(w**2), maxiter=100)
        return solver.run(start, penalty, data=data).params

    exact = lambda penalty: jnp.linalg.solve(x.T @ x / 60 + penalty * jnp.eye(5), x.T @ y / 60)
    slope, wanted = jax.jacrev(ridge)(0.5, (x, y)), jax.jacrev(exact)(0.5)
    assert jnp.allclose(slope, wanted, atol=1e-3), (slope, wanted)
    root = jaxopt.Bisection(lambda v: v**3 - v - 2.0, 1.0, 2.0, tol=1e-6).run().params
    fit = (
        jaxopt.LevenbergMarquardt(
            lambda p: (
                p[0] * jnp.exp(-p[1] * jnp.linspace(0.0, 1.0, 9)) - 2.0 * jnp.exp(-0.7 * jnp.linspace(0.0, 1.0, 9))
            )
        )
        .run(jnp.ones(2))
        .params
    )
    assert abs(float(root) - 1.5213797) < 1e-4 and jnp.allclose(fit, jnp.array([2.0, 0.7]), atol=1e-3)
    return {"lasso": float(sparse.sum()), "simplex": float(simplex[0]), "slope": float(slope.sum())}


if __name__ == "__main__":
    print(main())
