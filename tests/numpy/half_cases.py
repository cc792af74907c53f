"""Linear algebra of matrices of 16 bits, of integers and of booleans: what it computes and what it refuses, as real
JAX.
"""

from frozen import split

SETUP = """
m = jnp.array([[3, 1], [0, 2]])
s = jnp.array([[4, 1], [1, 3]])
w = jnp.array([2, -1])
t = jnp.arange(9).reshape(3, 3) % 4 + 3 * jnp.eye(3, dtype=int)
"""
DTYPES = ("float16", "bfloat16", "int32", "bool")
CASES = """
inv(m); solve(m, w); solve(m, m); det(m); det(t); slogdet(m); slogdet(m[:1, :1]); slogdet(m, method='qr'); cholesky(s)
qr(m)[1].shape; svdvals(m); svd(s, hermitian=True)[1]; eigvalsh(s); eigh(s)[0]
eigvals(m).shape; lstsq(m, w)[0]; pinv(m); pinv(s, hermitian=True); matrix_rank(m); matrix_power(m, 3)
matrix_power(m, -2); matrix_power(m, 0); norm(m); norm(m, 2); norm(m, 'nuc'); norm(m, 1); norm(w, 3); norm(w, 0)
matrix_norm(m); matrix_norm(m, ord=2); vector_norm(w); vector_norm(w, ord=1); vector_norm(w, ord=jnp.inf)
vector_norm(w, ord=-jnp.inf); cond(m); cond(m, 1); multi_dot([m, m, m]); tensorinv(m, ind=1); tensorsolve(m, w)
vecdot(w, w); trace(m)
"""
SCIPY = """
inv(m); solve(m, w); solve(s, w, assume_a='pos'); solve_triangular(m, w); det(m); cholesky(s); lu(m)[2].shape
lu_factor(m)[0].shape; eigh(s)[0]; eigh_tridiagonal(w, w[1:], eigvals_only=True); expm(m); block_diag(m, w)
toeplitz(w); hankel(w); hadamard(2, dtype=m.dtype)
"""
NARROW = """
jax.scipy.linalg.schur(m)[0].shape; jax.scipy.linalg.hessenberg(m).shape; jax.scipy.linalg.sqrtm(s)
jax.scipy.linalg.funm(m, jnp.exp).shape; jax.scipy.linalg.polar(m)[0].shape; jax.scipy.linalg.solve_sylvester(m, m, m)
jax.scipy.linalg.expm_frechet(m, m); jax.lax.linalg.cholesky(s); jax.lax.linalg.eigh(s); jax.lax.linalg.qdwh(m)
jax.lax.linalg.lu(m); jax.lax.linalg.tridiagonal_solve(w, w, w, w[:, None])
jax.lax.linalg.symmetric_product(m, s, beta=1.); jax.lax.linalg.cholesky_update(jnp.triu(m), w)
jax.lax.linalg.householder_product(m, w)
"""


def expressions() -> list[tuple[str, str]]:
    texts = [f"jnp.linalg.{c}" for c in split(CASES)] + [f"jax.scipy.linalg.{c}" for c in split(SCIPY)]
    return [(d, e) for d in DTYPES for e in [*texts, *(split(NARROW) if "float" in d else ())]]


def evaluate(dtype: str, text: str, outcome, jax, np) -> list:
    scope = {"jax": jax, "jnp": jax.numpy, "np": np}
    exec(SETUP, scope)
    scope.update({name: scope[name].astype(dtype) for name in "mswt"})
    return outcome(text, scope)
