"""Factorisations: Cholesky, QR, eigenvalues and singular values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from ...base import limits
from ...lax import linalg as lax
from ...runtime.jit import inner_jit
from ...primitives import elementwise as el
from ...primitives import linear, matrix
from ...primitives import linalg as ops
from ...primitives.reduce import reduce_max
from ...primitives.rules import dtype_of, shape_of
from ...typing import Array, ArrayLike
from ..sorting import argsort as _argsort
from ..taking import take_along_axis
from ..ufuncs import abs as _abs
from ..util import on_device, operand, promote_inexact

if TYPE_CHECKING:
    from ...base.avals import Size
    from ...core.types import Value

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class SVDResult(NamedTuple):
    """U, the singular values and Vᴴ."""

    U: Array
    S: Array
    Vh: Array


class QRResult(NamedTuple):
    """Q and R."""

    Q: Array
    R: Array


def _inexact(name: str, *args: Value) -> list[Any]:
    return [on_device(x) for x in promote_inexact(name, *args)]


def _square(name: str, a: Value) -> Value:
    (x,) = _inexact(name, a)
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got {shape}.")
    return x


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower (or upper) triangular factor of Hermitian positive-definite matrices [..., n, n]; NaN where they are
    not positive-definite.

    Args:
        a: array of numbers, shape (..., n, n): Hermitian, positive-definite.
        upper: bool: the upper factor, U with a = Uᴴ U.
        symmetrize_input: bool: compute with (a + aᴴ) / 2.

    Returns:
        array of floats or complex numbers, the shape of a.

    Raises:
        TypeError: if a is not square.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.cholesky(jnp.array([[4., 2.], [2., 2.]])).tolist()
        [[2.0, 0.0], [1.0, 1.0]]
    """
    (x,) = _inexact("cholesky", a)
    return _cholesky(x, bool(upper), bool(symmetrize_input))


@inner_jit(name="cholesky", static_argnums=(1, 2))
def _cholesky(x: Value, upper: bool, symmetrize: bool) -> Value:
    if upper and not symmetrize:
        x = matrix.mH(x)
    factor = lax.cholesky(x, symmetrize_input=symmetrize)
    return matrix.mH(factor) if upper else factor


@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "raw", "full"] = "reduced") -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: str) -> Array | QRResult: ...
def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """(Q, R) with a = Q R; mode 'reduced' (Q is [..., m, k]), 'complete' ([..., m, m]), 'r' (R alone) or 'raw'
    (reflections and their factors).

    Args:
        a: array of numbers, shape (..., m, n).
        mode: 'fill', 'clip' or 'wrap', or None: what becomes of positions out of bounds.

    Returns:
        (Q, R), arrays of floats or complex numbers; R alone for mode 'r'.

    Raises:
        ValueError: for another mode.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.qr(jnp.ones((3, 2))).Q.shape
        (3, 2)
    """
    mode = "complete" if mode == "full" else mode
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unsupported QR decomposition mode {mode!r}; modes are 'reduced', 'complete', 'r' and 'raw'.")
    (x,) = _inexact("qr", a)
    if mode == "raw":
        reflections, taus = ops.geqrf_p.bind(x)
        return QRResult(matrix.mT(reflections), taus)
    q, r = _qr(x, mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@inner_jit(name="qr", static_argnums=(1,))
def _qr(x: Value, full: bool) -> Value:
    return lax.qr(x, full_matrices=full)


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """(eigenvalues, eigenvectors) of Hermitian matrices [..., n, n], eigenvalues ascending, vectors in columns.

    Args:
        a: array of numbers, shape (..., n, n): Hermitian.
        UPLO: 'L' or 'U', the triangle that is read; None for 'L'.
        symmetrize_input: bool: compute with (a + aᴴ) / 2.

    Returns:
        (eigenvalues, eigenvectors): floats of shape (..., n), and an array of the dtype and shape of a.

    Raises:
        ValueError: for a UPLO other than None, 'L' and 'U'.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.eigh(jnp.array([[2., 0.], [0., 1.]])).eigenvalues.tolist()
        [1.0, 2.0]
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    (x,) = _inexact("eigh", a)
    v, w = _eigh(x, UPLO != "U", bool(symmetrize_input))
    return EighResult(w, v)


@inner_jit(name="eigh", static_argnums=(1, 2))
def _eigh(x: Value, lower: bool, symmetrize: bool) -> Any:
    return lax.eigh(x, lower=lower, symmetrize_input=symmetrize)


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, ascending.

    Args:
        a: array of numbers, shape (..., n, n): Hermitian.
        UPLO: 'L' or 'U', the triangle that is read; None for 'L'.
        symmetrize_input: bool: compute with (a + aᴴ) / 2.

    Returns:
        array of floats, shape (..., n).

    Raises:
        ValueError: for a UPLO other than None, 'L' and 'U'.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.eigvalsh(jnp.array([[2., 0.], [0., 1.]])).tolist()
        [1.0, 2.0]
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def eig(a: ArrayLike) -> EigResult:
    """(eigenvalues, eigenvectors) of square matrices, complex; vectors in columns of length 1. Computed on the CPU.

    Args:
        a: array of numbers, shape (..., n, n).

    Returns:
        (eigenvalues, eigenvectors), complex, of shape (..., n) and (..., n, n).

    Raises:
        ValueError: if a is not square.

    Example:
        >>> import weft.numpy as jnp
        >>> sorted(jnp.linalg.eig(jnp.array([[0., 1.], [-1., 0.]])).eigenvalues.imag.tolist())
        [-1.0, 1.0]
    """
    (x,) = _inexact("eig", a)
    return EigResult(*lax.eig(x, compute_left_eigenvectors=False))


def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices, complex, in no order; differentiable where they are distinct.

    Args:
        a: array of numbers, shape (..., n, n).

    Returns:
        array of complex numbers, shape (..., n).

    Raises:
        ValueError: if a is not square.

    Example:
        >>> import weft.numpy as jnp
        >>> sorted(jnp.linalg.eigvals(jnp.array([[3., 1.], [0., 2.]])).real.tolist())
        [2.0, 3.0]
    """
    (x,) = _inexact("eigvals", a)
    return lax.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """(U, S, Vᴴ) with a = U diag(S) Vᴴ; S alone without `compute_uv`. `hermitian` takes the values from `eigh`.

    Args:
        a: array of numbers, shape (..., m, n).
        full_matrices: bool: U and V are square, (m, m) and (n, n); else (m, k) and (k, n) with k = min(m, n).
        compute_uv: bool: return U and V too.
        hermitian: bool: a is Hermitian.
        subset_by_index: (first, last) of the singular values that are returned; None for all.

    Returns:
        (U, S, Vᴴ): arrays of the dtype of a, and S of floats, shape (..., k).

    Raises:
        ValueError: both `hermitian` and `subset_by_index` are given.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.svd(jnp.ones((3, 2)), full_matrices=False).U.shape
        (3, 2)
    """
    (x,) = _inexact("svd", a)
    if hermitian:
        if subset_by_index is not None:
            raise ValueError("svd: subset_by_index and hermitian can't both be given.")
        return _hermitian_svd(x, compute_uv)
    if not compute_uv:
        return _svd(x, False, False, subset_by_index)
    return SVDResult(*_svd(x, bool(full_matrices), True, subset_by_index))


@inner_jit(name="svd", static_argnums=(1, 2, 3))
def _svd(x: Value, full: bool, uv: bool, subset: tuple[int, int] | None) -> Any:
    return lax.svd(x, full_matrices=full, compute_uv=uv, subset_by_index=subset)


def _hermitian_svd(x: Value, compute_uv: bool) -> Any:
    w, v = eigh(x)
    order = _argsort(-_abs(w))
    s = take_along_axis(_abs(w), order, -1)
    if not compute_uv:
        return s
    v = take_along_axis(v, order[..., None, :], -1)
    sign = linear.convert(el.sign(take_along_axis(w, order, -1)), dtype_of(v))
    return SVDResult(v, s, matrix.mH(el.mul(v, matrix.rows(sign, shape_of(v)[-2]))))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values, descending.

    Args:
        x: array of numbers, shape (..., m, n).

    Returns:
        array of floats, shape (..., min(m, n)).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.linalg.svdvals(jnp.array([[0., 2.], [1., 0.]])).tolist()
        [2.0, 1.0]
    """
    return svd(x, compute_uv=False)


def _cutoff(s: Any, shape: tuple[Size, ...], rtol: Value) -> Value:
    """The size below which singular values count as zero, [...]."""
    if rtol is None:
        rtol = max(shape[-2:]) * float(limits.finfo(dtype_of(s)).eps)
    largest = reduce_max(s, (len(shape_of(s)) - 1,))
    return largest * linear.convert(operand("rtol", rtol), dtype_of(s))
