"""lineax: linear systems by direct and iterative solvers, through jit, vmap and grad."""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import jax
import jax.numpy as jnp
import lineax as lx


def main() -> dict:
    a = jax.random.normal(jax.random.key(0), (5, 5)) + 5 * jnp.eye(5)
    b = jnp.arange(5.0)
    plain = jnp.linalg.solve(a, b)
    operator = lx.MatrixLinearOperator(a)
    for solver in (lx.LU(), lx.QR(), lx.SVD(), lx.AutoLinearSolver(well_posed=True), lx.GMRES(1e-5, 1e-5, restart=5)):
        found = jax.jit(lambda v, solver=solver: lx.linear_solve(operator, v, solver).value)(b)
        assert jnp.allclose(found, plain, atol=1e-4), (solver, found, plain)
    spd = lx.MatrixLinearOperator(a @ a.T, lx.positive_semidefinite_tag)
    for solver in (lx.Cholesky(), lx.CG(1e-6, 1e-6)):
        assert jnp.allclose(lx.linear_solve(spd, b, solver).value, jnp.linalg.solve(a @ a.T, b), atol=1e-3), solver
    tall = jax.random.normal(jax.random.key(1), (8, 3))
    y = jnp.linspace(0.0, 1.0, 8)
    least = lx.linear_solve(lx.MatrixLinearOperator(tall), y, lx.QR()).value
    assert jnp.allclose(least, jnp.linalg.lstsq(tall, y)[0], atol=1e-4)
    tri = lx.TridiagonalLinearOperator(jnp.full(4, 4.0), jnp.ones(3), jnp.ones(3))
    assert jnp.allclose(tri.as_matrix() @ lx.linear_solve(tri, jnp.ones(4), lx.Tridiagonal()).value, 1.0, atol=1e-5)

    jacobian = lx.JacobianLinearOperator(lambda x, _: jnp.tanh(x) + 2 * x, jnp.ones(3), tags=lx.symmetric_tag)
    assert jnp.allclose(jacobian.mv(lx.linear_solve(jacobian, jnp.arange(3.0)).value), jnp.arange(3.0), atol=1e-5)

    def total(matrix):
        return lx.linear_solve(lx.MatrixLinearOperator(matrix), b, lx.LU()).value.sum()

    grad, wanted = jax.grad(total)(a), jax.grad(lambda m: jnp.linalg.solve(m, b).sum())(a)
    assert jnp.allclose(grad, wanted, atol=1e-4)
    many = jax.vmap(lambda v: lx.linear_solve(operator, v, lx.LU()).value)(jnp.eye(5))
    assert jnp.allclose(many.T, jnp.linalg.inv(a), atol=1e-4)
    singular = lx.linear_solve(lx.MatrixLinearOperator(jnp.zeros((2, 2))), jnp.ones(2), lx.LU(), throw=False)
    assert singular.result != lx.RESULTS.successful
    return {"solution": float(plain.sum()), "least squares": float(least.sum()), "gradient": float(jnp.abs(grad).sum())}


if __name__ == "__main__":
    print(main())
