"""weft.lax.linalg: factorisations and triangular systems, on stacks of matrices of shape [..., m, n]."""
from __future__ import annotations

from typing import Any

from .. import dtypes
from ..control import factorise as factorise  # the primitives' loops
from ..ops import linalg as ops
from ..ops import linear
from ..ops import matrix, spectral
from ..ops.rules import dtype_of, shape_of
from .common import on_device, only, operand


def _matrix(name: str, x):
    """An array argument that has rows and columns; integers become floats where `x` is symmetrized anyhow."""
    x = on_device(operand(name, x))
    if len(shape_of(x)) < 2:
        raise TypeError(f"{name} takes arrays of at least two dimensions, got shape {shape_of(x)}.")
    return x


def _square(name: str, x):
    shape = shape_of(x)
    if shape[-1] != shape[-2]:
        raise TypeError(f"{name} takes square matrices, of shape (..., n, n), got shape {shape}.")


def _symmetrized(name: str, x, symmetrize: bool):
    x = _matrix(name, x)
    _square(name, x)
    if not symmetrize:
        return x
    if dtypes.kind(dtype_of(x)) not in "fc":
        x = linear.convert(x, dtypes.canonicalize(dtypes.float64))
    return matrix.symmetrized(x)


def cholesky(x, *, symmetrize_input: bool = True):
    """The lower triangular L with L Lᴴ = x, for Hermitian positive-definite x of shape [..., n, n].

    Where x is not positive-definite the result is NaN. With `symmetrize_input` (x + xᴴ) / 2 is factored, and so derivatives are symmetric;
    without, only the lower triangle is read.

    Raises:
        TypeError: if x is not square. NotImplementedError: for 16-bit floats.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.cholesky(jnp.array([[4., 2.], [2., 2.]])).tolist()
        [[2.0, 0.0], [1.0, 1.0]]
    """
    return matrix.tril(ops.cholesky_p.bind(_symmetrized("cholesky", x, symmetrize_input)))


def triangular_solve(a, b, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False):
    """X with op(A) X = B (`left_side`) or X op(A) = B; A is [..., n, n] and triangular, only that triangle is read.

    op transposes and conjugates as asked; a vector b ([..., n], one dimension less than a) is one column (row). With `unit_diagonal` the diagonal of a
    counts as ones.

    Raises:
        TypeError: if dtypes differ or a is not square. ValueError: if sizes do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.triangular_solve(jnp.array([[2., 0.], [1., 1.]]), jnp.array([[4.], [3.]]), left_side=True, lower=True).tolist()
        [[2.0], [1.0]]
    """
    a, b = _matrix("triangular_solve", a), on_device(operand("triangular_solve", b))
    single = len(shape_of(b)) == len(shape_of(a)) - 1
    axis = len(shape_of(b)) if left_side else len(shape_of(b)) - 1
    out = ops.triangular_solve(a, linear.expand_dims(b, (axis,)) if single else b, left_side=left_side, lower=lower, transpose_a=transpose_a,
                               conjugate_a=conjugate_a, unit_diagonal=unit_diagonal)
    return linear.squeeze(out, (axis,)) if single else out


def lu(x):
    """(LU, pivots, permutation) with x[permutation] = L U, by partial pivoting.

    LU holds L below its diagonal (L has ones there) and U on and above it; pivots[i] is the row swapped with row i. Singular matrices have zeros on
    the diagonal of U.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> [v.tolist() for v in lax.linalg.lu(jnp.array([[1., 2.], [2., 2.]]))]
        [[[2.0, 2.0], [0.5, 1.0]], [1, 1], [1, 0]]
    """
    return ops.lu_p.bind(_matrix("lu", x))


def lu_pivots_to_permutation(pivots, permutation_size: int):
    """The permutation of `permutation_size` rows that the swaps `pivots` ([..., k], int32) make.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.lu_pivots_to_permutation(jnp.array([1, 2, 2]), 4).tolist()
        [1, 2, 0, 3]
    """
    return ops.lu_pivots_to_permutation_p.bind(on_device(operand("lu_pivots_to_permutation", pivots)), permutation_size=int(permutation_size))


def qr(x, *, pivoting: bool = False, full_matrices: bool = True, use_magma: Any = None):
    """(Q, R) with x = Q R, Q unitary and R upper triangular.

    Q is [..., m, m] and R [..., m, n]; without `full_matrices`, [..., m, k] and [..., k, n] with k = min(m, n).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> q, r = lax.linalg.qr(jnp.array([[3., 1.], [4., 2.]]))
        >>> bool(jnp.allclose(q @ r, jnp.array([[3., 1.], [4., 2.]]), atol=1e-5))
        True
    """
    only("qr", use_magma=use_magma)
    if pivoting:
        raise NotImplementedError("qr: column pivoting is not computed by weft; factor without pivoting=True, or use svd to find a matrix's rank.")
    q, r = ops.qr_p.bind(_matrix("qr", x), pivoting=False, full_matrices=bool(full_matrices), use_magma=None)
    return q, r


def householder_product(a, taus):
    """The first n columns of H₁ H₂ … H_k, reflections 1 - tau v vᴴ whose v stand in the columns of a ([..., m, n], m >= n) below the diagonal.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.householder_product(jnp.zeros((3, 2)), jnp.zeros(2)).shape
        (3, 2)
    """
    return ops.householder_product_p.bind(_matrix("householder_product", a), on_device(operand("householder_product", taus)))


def symmetric_product(a_matrix, c_matrix, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False):
    """alpha A Aᵀ + beta C, for A [..., m, k] and symmetric C [..., m, m].

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.symmetric_product(jnp.ones((2, 3)), jnp.eye(2), beta=1.0).tolist()
        [[4.0, 3.0], [3.0, 4.0]]
    """
    a, c = _matrix("symmetric_product", a_matrix), _matrix("symmetric_product", c_matrix)
    out = ops.symmetric_product_p.bind(a, c, alpha=float(alpha), beta=float(beta))
    if symmetrize_output:
        low = matrix.tril(out, -1)
        return matrix.tril(out) + matrix.mT(low)
    return out


def eigh(x, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
         implementation: Any = None):
    """(eigenvectors, eigenvalues) of Hermitian matrices [..., n, n]: columns v[:, i] and real w[i], ascending.

    `subset_by_index` (start, end) keeps the values start..end-1. Derivatives need distinct eigenvalues. A matrix with NaN gives NaN.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.eigh(jnp.array([[2., 0.], [0., 1.]]))[1].tolist()
        [1.0, 2.0]
    """
    only("eigh", implementation=implementation)
    x = _symmetrized("eigh", x, symmetrize_input)
    subset = None if subset_by_index is None or tuple(subset_by_index) == (0, shape_of(x)[-1]) else tuple(map(int, subset_by_index))
    v, w = spectral.eigh_p.bind(x, lower=bool(lower), sort_eigenvalues=bool(sort_eigenvalues), subset_by_index=subset, algorithm=None)
    return v, w


def svd(x, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: tuple[int, int] | None = None, algorithm: Any = None):
    """(U, s, Vᴴ) with x = U diag(s) Vᴴ and s descending; s alone without `compute_uv`.

    U is [..., m, m] and Vᴴ [..., n, n]; without `full_matrices`, [..., m, k] and [..., k, n] with k = min(m, n). Derivatives of U and V need
    full_matrices=False and distinct singular values.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.svd(jnp.array([[0., 2.], [1., 0.]]), compute_uv=False).tolist()
        [2.0, 1.0]
    """
    only("svd", algorithm=algorithm)
    x = _matrix("svd", x)
    size = min(shape_of(x)[-2:])
    subset = None if subset_by_index is None or tuple(subset_by_index) == (0, size) else tuple(map(int, subset_by_index))
    out = spectral.svd_p.bind(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv), subset_by_index=subset, algorithm=None)
    return (out[1], out[0], out[2]) if compute_uv else out[0]


def eig(x, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True, enable_eigvec_derivs: bool = False,
        implementation: Any = None, use_magma: Any = None):
    """[eigenvalues, left eigenvectors, right eigenvectors] of square matrices, all complex; vectors as asked for, in columns of length 1.

    The eigenvalues are differentiable where they are distinct, the vectors are not.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> w, = lax.linalg.eig(jnp.array([[0., 1.], [-1., 0.]]), compute_left_eigenvectors=False, compute_right_eigenvectors=False)
        >>> sorted(w.imag.tolist())
        [-1.0, 1.0]
    """
    only("eig", implementation=implementation, use_magma=use_magma)
    return spectral.eig_p.bind(_matrix("eig", x), compute_left_eigenvectors=bool(compute_left_eigenvectors),
                               compute_right_eigenvectors=bool(compute_right_eigenvectors), enable_eigvec_derivs=bool(enable_eigvec_derivs), implementation=None)


def hessenberg(a):
    """(H, taus): a = Q H Qᴴ with H zero below its first subdiagonal, and Q's reflections stored there as for `householder_product`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> [v.shape for v in lax.linalg.hessenberg(jnp.ones((3, 3)))]
        [(3, 3), (2,)]
    """
    h, taus = spectral.hessenberg_p.bind(_matrix("hessenberg", a))
    return h, taus


def schur(x, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Any = None):
    """(T, Z): x = Z T Zᴴ with Z unitary and T upper triangular (block triangular for real x); T alone without `compute_schur_vectors`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.schur(jnp.array([[1., 2.], [0., 3.]]))[0].tolist()
        [[1.0, 2.0], [0.0, 3.0]]
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError("schur: sorting eigenvalues is not supported; leave sort_eig_vals and select_callable out.")
    return tuple(spectral.schur_p.bind(_matrix("schur", x), compute_schur_vectors=bool(compute_schur_vectors), sort_eig_vals=False, select_callable=None))
