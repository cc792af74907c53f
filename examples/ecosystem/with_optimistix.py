"""optimistix: minima, roots, fixed points and least squares, with derivatives of the solution by implicit
differentiation.
"""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import jax
import jax.numpy as jnp
import optimistix as optx


def rosenbrock(x, args):
    return (args - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2


def main() -> dict:
    start = jnp.array([-1.2, 1.0])
    for solver in (optx.BFGS(1e-6, 1e-6), optx.NelderMead(1e-6, 1e-6), optx.LBFGS(1e-6, 1e-6)):
        found = optx.minimise(rosenbrock, solver, start, args=1.0, max_steps=2000).value
        assert jnp.allclose(found, 1.0, atol=2e-2), (solver, found)

    def residuals(p, data):
        t, y = data
        return p[0] * jnp.exp(-p[1] * t) + p[2] - y

    t = jnp.linspace(0.0, 4.0, 30)
    y = 2.5 * jnp.exp(-1.3 * t) + 0.5
    for solver in (optx.LevenbergMarquardt(1e-6, 1e-6), optx.GaussNewton(1e-6, 1e-6), optx.Dogleg(1e-6, 1e-6)):
        p = optx.least_squares(residuals, solver, jnp.array([1.0, 1.0, 0.0]), args=(t, y), max_steps=500).value
        assert jnp.allclose(p, jnp.array([2.5, 1.3, 0.5]), atol=1e-3), (solver, p)

    def root(a):
        return optx.root_find(lambda x, a: x**3 - a, optx.Newton(1e-6, 1e-6), jnp.array(1.5), args=a).value

    assert abs(float(root(8.0)) - 2.0) < 1e-5 and abs(float(jax.grad(root)(8.0)) - 1 / 12) < 1e-4
    roots = jax.jit(jax.vmap(root))(jnp.array([1.0, 8.0, 27.0]))
    assert jnp.allclose(roots, jnp.array([1.0, 2.0, 3.0]), atol=1e-4)
    fixed = optx.fixed_point(lambda x, _: jnp.cos(x), optx.FixedPointIteration(1e-6, 1e-6), jnp.array(0.5)).value
    assert abs(float(fixed) - 0.7390851) < 1e-5
    bisected = optx.root_find(
        lambda x, _: x**2 - 2, optx.Bisection(1e-6, 1e-6), jnp.array(1.0), options={"lower": 0.0, "upper": 2.0}
    ).value
    assert abs(float(bisected) - 2**0.5) < 1e-4
    failed = optx.root_find(lambda x, _: x**2 + 1, optx.Newton(1e-6, 1e-6), jnp.array(1.0), max_steps=8, throw=False)
    assert failed.result != optx.RESULTS.successful
    return {"fixed point": float(fixed), "fit": float(p.sum()), "gradient of a root": float(jax.grad(root)(8.0))}


if __name__ == "__main__":
    print(main())
