"""weft.lax.linalg: factorisations and triangular systems, on stacks of matrices of shape [..., m, n]."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Callable

from ..base import dtypes
from ..decompositions import bidiagonal, factorise, schur as schur_loops  # noqa: F401  the primitives' loops
from ..base.errors import warn
from ..primitives import linalg as ops
from ..primitives import linear
from ..primitives import matrix, spectral, tridiagonal as _tridiagonal
from ..primitives.linalg import (
    cholesky_p as cholesky_p,
    cholesky_update_p as cholesky_update_p,
    householder_product_p as householder_product_p,
    lu_p as lu_p,
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p,
    ormqr_p as ormqr_p,
    qr_p as qr_p,
    symmetric_product_p as symmetric_product_p,
    triangular_solve_p as triangular_solve_p,
)
from ..primitives.rules import dtype_of, shape_of
from ..primitives.spectral import (
    EighImplementation as EighImplementation,
    EigImplementation as EigImplementation,
    SvdAlgorithm as SvdAlgorithm,
    eig_p as eig_p,
    eigh_p as eigh_p,
    hessenberg_p as hessenberg_p,
    schur_p as schur_p,
    svd_p as svd_p,
)
from ..primitives.tridiagonal import tridiagonal_p as tridiagonal_p, tridiagonal_solve_p as tridiagonal_solve_p
from ..typing import Array, ArrayLike
from .common import on_device, operand
from .polar import qdwh as qdwh

if TYPE_CHECKING:
    from ..core.primitive import Primitive
    from ..core.types import Value

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "cholesky_update_p",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "hessenberg",
    "hessenberg_p",
    "householder_product",
    "householder_product_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "ormqr",
    "ormqr_p",
    "qdwh",
    "qr",
    "qr_p",
    "schur",
    "schur_p",
    "svd",
    "svd_p",
    "symmetric_product",
    "symmetric_product_p",
    "triangular_solve",
    "triangular_solve_p",
    "tridiagonal",
    "tridiagonal_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]


def _matrix(name: str, x: Value) -> Value:
    """An array argument that has rows and columns."""
    x = on_device(operand(name, x))
    if len(shape_of(x)) < 2:
        raise TypeError(f"{name} takes arrays of at least two dimensions, got shape {shape_of(x)}.")
    return x


def _square(name: str, x: Value) -> None:
    shape = shape_of(x)
    if shape[-1] != shape[-2]:
        raise TypeError(f"{name} takes square matrices, of shape (..., n, n), got shape {shape}.")


def _symmetrized(name: str, x: Value, symmetrize: bool) -> Value:
    x = _matrix(name, x)
    if not symmetrize:
        return x
    _square(name, x)
    if dtypes.kind(dtype_of(x)) not in "fc":
        x = linear.convert(x, dtypes.canonicalize(dtypes.float64))
    return matrix.symmetrized(x)


def _choice(name: str, keyword: str, kind: type[enum.Enum], value: object) -> Any:
    """A member of an enum, or None; a member's value stands for it."""
    try:
        return value if value is None else kind(value)
    except ValueError:
        raise ValueError(
            f"{name}: {keyword} must be None or one of {', '.join(str(k) for k in kind)}, got {value!r}."
        ) from None


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L Lᴴ = x, for Hermitian positive-definite x of shape [..., n, n].

    Where x is not positive-definite the result is NaN. With `symmetrize_input` (x + xᴴ) / 2 is factored, and so
    derivatives are symmetric; without, only the lower triangle is read.

    Args:
        x: array of floats or complex numbers, shape (..., n, n).
        symmetrize_input: bool.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: if x is not square. NotImplementedError: for 16-bit floats.

    Source: Murray, "Differentiation of the Cholesky decomposition" (2016), for derivatives.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.cholesky(jnp.array([[4., 2.], [2., 2.]])).tolist()
        [[2.0, 0.0], [1.0, 1.0]]
    """
    return matrix.tril(ops.cholesky_p.bind(_symmetrized("cholesky", x, symmetrize_input)))


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """X with op(A) X = B (`left_side`) or X op(A) = B; A is [..., n, n] and triangular, only that triangle is read.

    op transposes and conjugates as asked; a vector b ([..., n], one dimension less than a) is one column (row). With
    `unit_diagonal` the diagonal of a counts as ones.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).
        b: array of the dtype of a, shape (..., n, k), (..., k, n) on the right, or (..., n).
        left_side: bool.
        lower: bool: the lower triangle is read.
        transpose_a, conjugate_a, unit_diagonal: bool.

    Returns:
        array of the dtype and shape of b.

    Raises:
        TypeError: if dtypes differ or a is not square. ValueError: if sizes do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> a, b = jnp.array([[2., 0.], [1., 1.]]), jnp.array([[4.], [3.]])
        >>> lax.linalg.triangular_solve(a, b, left_side=True, lower=True).tolist()
        [[2.0], [1.0]]
    """
    a, b = _matrix("triangular_solve", a), on_device(operand("triangular_solve", b))
    single = len(shape_of(b)) == len(shape_of(a)) - 1
    axis = len(shape_of(b)) if left_side else len(shape_of(b)) - 1
    out = ops.triangular_solve(
        a,
        linear.expand_dims(b, (axis,)) if single else b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )
    return linear.squeeze(out, (axis,)) if single else out


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """(LU, pivots, permutation) with x[permutation] = L U, by partial pivoting.

    LU holds L below its diagonal (L has ones there) and U on and above it; pivots[i] is the row swapped with row i.
    Singular matrices have zeros on the diagonal of U.

    Args:
        x: array of floats or complex numbers, shape (..., m, n).

    Returns:
        (LU, pivots, permutation): LU has the dtype and shape of x, the others are int32 of shape (..., min(m, n)) and
        (..., m).

    Raises:
        TypeError: for rank 0 and 1, or another dtype.

    Source: de Hoog et al., "Sensitivity of the LU factorisation" (2011), for derivatives.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> [v.tolist() for v in lax.linalg.lu(jnp.array([[1., 2.], [2., 2.]]))]
        [[[2.0, 2.0], [0.5, 1.0]], [1, 1], [1, 0]]
    """
    return ops.lu_p.bind(_matrix("lu", x))


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation of `permutation_size` rows that the swaps `pivots` ([..., k], int32) make.

    Args:
        pivots: array of int32, shape (..., k).
        permutation_size: int, at least k.

    Returns:
        array of int32, shape (..., permutation_size).

    Raises:
        ValueError: for a size below k.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.lu_pivots_to_permutation(jnp.array([1, 2, 2]), 4).tolist()
        [1, 2, 0, 3]
    """
    return ops.lu_pivots_to_permutation_p.bind(
        on_device(operand("lu_pivots_to_permutation", pivots)), permutation_size=int(permutation_size)
    )


def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """(Q, R) with x = Q R, Q unitary and R upper triangular; with `pivoting` (Q, R, P), where x[:, P] = Q R and R's
    diagonal falls in size.

    Q is [..., m, m] and R [..., m, n]; without `full_matrices`, [..., m, k] and [..., k, n] with k = min(m, n). P is
    int32, [..., n]. `use_magma` says whether a GPU pivots with MAGMA's kernel; None leaves it to the size. Derivatives
    need m >= n, and full_matrices=False unless m = n.

    Args:
        x: array of floats or complex numbers, shape (..., m, n).
        pivoting, full_matrices: bool.
        use_magma: bool or None.

    Returns:
        (Q, R), of the dtype of x; with `pivoting` also P, int32.

    Raises:
        TypeError: if x has no rows and columns, or for a dtype that is not float or complex.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> q, r = lax.linalg.qr(jnp.array([[3., 1.], [4., 2.]]))
        >>> bool(jnp.allclose(q @ r, jnp.array([[3., 1.], [4., 2.]]), atol=1e-5))
        True
    """
    return tuple(
        ops.qr_p.bind(
            _matrix("qr", x),
            pivoting=bool(pivoting),
            full_matrices=bool(full_matrices),
            use_magma=None if use_magma is None else bool(use_magma),
        )
    )


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first n columns of H₁ H₂ … H_k, reflections 1 - tau v vᴴ whose v stand in the columns of a ([..., m, n], m >=
    n) below the diagonal.

    Args:
        a: array of floats or complex numbers, shape (..., m, n).
        taus: array of the dtype of a, shape (..., k) with k at most n.

    Returns:
        array of the dtype and shape of a.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.householder_product(jnp.zeros((3, 2)), jnp.zeros(2)).shape
        (3, 2)
    """
    return ops.householder_product_p.bind(
        _matrix("householder_product", a), on_device(operand("householder_product", taus))
    )


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """Q c, for the Q of a QR factorisation that is given by its reflections, without forming it.

    a [..., m, n] holds the reflections below its diagonal and taus [..., k] their factors, as `weft.numpy.linalg.qr(x,
    mode='raw')` gives them (a transposed); c has m rows, or m columns where the result is c Q (`left` False).
    `transpose` takes Qᴴ for Q.

    Args:
        a: array of floats or complex numbers, shape (..., m, n).
        taus: array of the dtype of a, shape (..., k).
        c: array of the dtype of a, shape (..., m, p), or (..., p, m) on the right.
        left, transpose: bool.

    Returns:
        array of the dtype and shape of c.

    Raises:
        ValueError: if sizes do not fit. TypeError: if dtypes or batch dimensions differ.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.ormqr(jnp.zeros((3, 2)), jnp.zeros(2), jnp.ones((3, 1))).ravel().tolist()
        [1.0, 1.0, 1.0]
    """
    taus, c = [on_device(operand("ormqr", v)) for v in (taus, c)]
    return ops.ormqr_p.bind(_matrix("ormqr", a), taus, c, left=bool(left), transpose=bool(transpose))


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular R' with R'ᵀ R' = Rᵀ R + w wᵀ, for upper triangular R [n, n] and w [n], in O(n²).

    Args:
        r_matrix: array of floats, shape (n, n), upper triangular.
        w_vector: array of the same dtype, shape (n,).

    Returns:
        array of the dtype and shape of r_matrix.

    Raises:
        TypeError: for complex numbers, or an R of another rank than 2. ValueError: if R is not square or w not of its
            size.

    Source: Golub and Van Loan, "Matrix computations" (2013), 6.5.4.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.cholesky_update(3 * jnp.eye(2), jnp.array([4., 0.])).tolist()
        [[5.0, 0.0], [0.0, 3.0]]
    """
    r, w = _matrix("cholesky_update", r_matrix), on_device(operand("cholesky_update", w_vector))
    if len(shape_of(r)) != 2 or len(shape_of(w)) != 1:
        raise TypeError(
            f"cholesky_update takes one matrix and one vector, got shapes {shape_of(r)} and {shape_of(w)}; use"
            " weft.vmap for stacks of them."
        )
    return _single(ops.cholesky_update_p, r, w)


def _single(primitive: Primitive, *xs: Value, **params: Any) -> Value:
    """Applies the primitive; operands of 16 bits are computed in single precision."""
    narrow = {dt for dt in map(dtype_of, xs) if dtypes.is_inexact(dt) and dtypes.bits(dt) == 16}
    if not narrow or len(set(map(dtype_of, xs))) > 1:
        return primitive.bind(*xs, **params)
    return linear.convert(primitive.bind(*[linear.convert(x, dtypes.float32) for x in xs], **params), narrow.pop())


def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """alpha A Aᵀ + beta C, for A [..., m, k] and symmetric C [..., m, m].

    Args:
        a_matrix: array of floats or complex numbers, shape (..., m, k).
        c_matrix: array of the same dtype, shape (..., m, m).
        alpha, beta: number.
        symmetrize_output: bool: both triangles are written; else one alone is defined.

    Returns:
        array of the dtype and shape of c_matrix.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.symmetric_product(jnp.ones((2, 3)), jnp.eye(2), beta=1.0).tolist()
        [[4.0, 3.0], [3.0, 4.0]]
    """
    a, c = _matrix("symmetric_product", a_matrix), _matrix("symmetric_product", c_matrix)
    out = _single(ops.symmetric_product_p, a, c, alpha=float(alpha), beta=float(beta))
    if symmetrize_output:
        low = matrix.tril(out, -1)
        return matrix.tril(out) + matrix.mT(low)
    return out


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """(eigenvectors, eigenvalues) of Hermitian matrices [..., n, n]: columns v[:, i] and real w[i], ascending.

    `subset_by_index` (start, end) keeps the values start..end-1. Derivatives need distinct eigenvalues. A matrix with
    NaN gives NaN. The CPU has the `implementation` QR, a GPU that and JACOBI; others are NotImplementedErrors when the
    program is compiled.

    Args:
        x: array of floats or complex numbers, shape (..., n, n).
        lower: bool: the lower triangle is read.
        symmetrize_input: bool: compute with (x + xᴴ) / 2.
        sort_eigenvalues: bool.
        subset_by_index: two ints; None for all.
        implementation: `lax.linalg.EighImplementation`; None for the backend's own.

    Returns:
        (eigenvectors, eigenvalues): of the dtype and shape of x; floats of shape (..., n).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.eigh(jnp.array([[2., 0.], [0., 1.]]))[1].tolist()
        [1.0, 2.0]
    """
    implementation = _choice("eigh", "implementation", EighImplementation, implementation)
    x = _symmetrized("eigh", x, symmetrize_input)
    subset = (
        None
        if subset_by_index is None or tuple(subset_by_index) == (0, shape_of(x)[-1])
        else tuple(map(int, subset_by_index))
    )
    v, w = spectral.eigh_p.bind(
        x, lower=bool(lower), sort_eigenvalues=bool(sort_eigenvalues), subset_by_index=subset, algorithm=implementation
    )
    return v, w


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]:
    """(U, s, Vᴴ) with x = U diag(s) Vᴴ and s descending; s alone without `compute_uv`.

    U is [..., m, m] and Vᴴ [..., n, n]; without `full_matrices`, [..., m, k] and [..., k, n] with k = min(m, n).
    Derivatives of U and V need full_matrices=False and distinct singular values. The CPU has the algorithms QR and
    DIVIDE_AND_CONQUER (its default), a GPU QR, JACOBI and POLAR; others are NotImplementedErrors when the program is
    compiled.

    Args:
        x: array of floats or complex numbers, shape (..., m, n).
        full_matrices, compute_uv: bool.
        subset_by_index: two ints; None for all.
        algorithm: `lax.linalg.SvdAlgorithm`; None for the backend's own.

    Returns:
        (U, s, Vᴴ): of the dtype of x, and s of floats, shape (..., k).

    Source: Townsend, "Differentiating the singular value decomposition" (2016), for derivatives.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.svd(jnp.array([[0., 2.], [1., 0.]]), compute_uv=False).tolist()
        [2.0, 1.0]
    """
    algorithm, x = _choice("svd", "algorithm", SvdAlgorithm, algorithm), _matrix("svd", x)
    size = min(shape_of(x)[-2:])
    subset = (
        None if subset_by_index is None or tuple(subset_by_index) == (0, size) else tuple(map(int, subset_by_index))
    )
    out = spectral.svd_p.bind(
        x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv), subset_by_index=subset, algorithm=algorithm
    )
    return (out[1], out[0], out[2]) if compute_uv else out[0]


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """[eigenvalues, left eigenvectors, right eigenvectors] of square matrices, all complex; vectors as asked for, in
    columns of length 1.

    The eigenvalues are differentiable where they are distinct, and so are the vectors if `enable_eigvec_derivs` says
    that they are. The CPU has the `implementation` LAPACK; a GPU runs that on the host, or MAGMA's. `use_magma` is the
    old way to ask for one of these two.

    Args:
        x: array of floats or complex numbers, shape (..., n, n).
        compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs: bool.
        implementation: `lax.linalg.EigImplementation`; None for the backend's own.
        use_magma: bool or None, for GPUs.

    Returns:
        list of arrays of complex numbers, shape (..., n) and (..., n, n).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> a = jnp.array([[0., 1.], [-1., 0.]])
        >>> w, = lax.linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
        >>> sorted(w.imag.tolist())
        [-1.0, 1.0]
    """
    implementation = _choice("eig", "implementation", EigImplementation, implementation)
    if use_magma is not None:
        warn("eig: use_magma is deprecated, pass implementation=EigImplementation.MAGMA or LAPACK.", DeprecationWarning)
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    return spectral.eig_p.bind(
        _matrix("eig", x),
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=implementation,
    )


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """(H, taus): a = Q H Qᴴ with H zero below its first subdiagonal, and Q's reflections stored there as for
    `householder_product`.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).

    Returns:
        (H, taus): of the dtype and shape of a; of that dtype and shape (..., n - 1).

    Raises:
        ValueError: if a is not square.

    Source: Golub and Van Loan, "Matrix computations" (2013), 7.4.2.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> [v.shape for v in lax.linalg.hessenberg(jnp.ones((3, 3)))]
        [(3, 3), (2,)]
    """
    h, taus = spectral.hessenberg_p.bind(_matrix("hessenberg", a))
    return h, taus


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., bool] | None = None,
) -> tuple[Array, Array]:
    """(T, Z): x = Z T Zᴴ with Z unitary and T upper triangular (block triangular for real x); T alone, in a tuple,
    without `compute_schur_vectors`.

    No backend sorts eigenvalues: with `sort_eig_vals` the program can be traced, and compiling it is a
    NotImplementedError.

    Args:
        x: array of floats or complex numbers, shape (..., n, n).
        compute_schur_vectors, sort_eig_vals: bool.
        select_callable: None: no backend sorts.

    Returns:
        (T, Z), of the dtype and shape of x.

    Raises:
        ValueError: if x is not square.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.schur(jnp.array([[1., 2.], [0., 3.]]))[0].tolist()
        [[1.0, 2.0], [0.0, 3.0]]
    """
    return tuple(
        spectral.schur_p.bind(
            _matrix("schur", x),
            compute_schur_vectors=bool(compute_schur_vectors),
            sort_eig_vals=bool(sort_eig_vals),
            select_callable=select_callable,
        )
    )


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """[a', d, e, taus]: Hermitian a [..., n, n] turned by reflections into the tridiagonal matrix with the real
    diagonals d [..., n] and e [..., n-1].

    Only the lower (or upper) triangle of a is read. a' holds d and e, and beyond them the reflections whose factors are
    taus.

    Args:
        a: array of floats or complex numbers, shape (..., n, n).
        lower: bool: the lower triangle is read.

    Returns:
        (a', d, e, taus): a' has the dtype and shape of a, d and e are real, taus has shape (..., n - 1).

    Raises:
        ValueError: if a is not square, or has no rows. TypeError: for a dtype that is not float or complex.

    Source: Golub and Van Loan, "Matrix computations" (2013), 8.3.1.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> lax.linalg.tridiagonal(jnp.array([[2., 1.], [1., 3.]]))[1].tolist()
        [2.0, 3.0]
    """
    return _tridiagonal.tridiagonal_p.bind(_matrix("tridiagonal", a), lower=bool(lower))


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """X with A X = b, for the tridiagonal A with the diagonals dl, d, du [..., m] (dl[0] and du[m-1] are not read) and
    b [..., m, n].

    Singular matrices give NaN, or with `perturb_singular` what a tiny change of their zero pivots gives.

    Args:
        dl: array of floats or complex numbers, shape (..., m).
        d, du: array of the same dtype, shape (..., m).
        b: array of the same dtype, shape (..., m, n).
        perturb_singular: bool.

    Returns:
        array of the dtype and shape of b.

    Raises:
        TypeError: if shapes do not fit or dtypes differ.

    Source: Golub and Van Loan, "Matrix computations" (2013), 4.3.6.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> one = jnp.ones(3)
        >>> lax.linalg.tridiagonal_solve(0 * one, 2 * one, 0 * one, one[:, None]).ravel().tolist()
        [0.5, 0.5, 0.5]
    """
    dl, d, du, b = [on_device(operand("tridiagonal_solve", v)) for v in (dl, d, du, b)]
    return _tridiagonal.tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=bool(perturb_singular))


def __dir__() -> list[str]:
    return sorted(__all__)
