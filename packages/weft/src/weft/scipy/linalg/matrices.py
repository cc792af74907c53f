"""Matrices of `weft.scipy.linalg` made from a few numbers: Toeplitz and Hankel matrices, companions, Hilbert's,
Pascal's.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from ...base import dtypes
from ... import numpy as jnp
from ...numpy.util import asked_dtype, float_dtype, on_device, operand, promote, promote_inexact, in_own_terms


def _vectors(name: str, *args, rank: int = 0, inexact: bool = False) -> list:
    """The operands as arrays of one dtype, of one axis at least; those that have fewer than `rank` axes are refused."""
    out = [on_device(x) for x in (promote_inexact if inexact else promote)(name, *args)]
    for x in out:
        if x.ndim < rank:
            raise ValueError(
                f"{name} takes vectors, of shape [..., n], got a scalar; make it one with weft.numpy.atleast_1d."
            )
    return [jnp.atleast_1d(x) for x in out]


def _grid(rows: int, columns: int):
    return jnp.arange(rows)[:, None], jnp.arange(columns)


def _joined(parts):
    batch = jnp.broadcast_shapes(*[p.shape[:-1] for p in parts])
    return jnp.concatenate([jnp.broadcast_to(p, (*batch, p.shape[-1])) for p in parts], -1)


@in_own_terms
def toeplitz(c, r=None):
    """The matrix [..., m, n] with first column c and first row r (without its first element; by default the conjugate
    of c), constant along diagonals.

    Args:
        c: array of numbers, shape (..., m).
        r: array of numbers, shape (..., n); None for the conjugate of c.

    Returns:
        array of the dtype to which both promote, shape (..., m, n).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.toeplitz(jnp.array([1, 2]), jnp.array([1, 3])).tolist()
        [[1, 3], [2, 1]]
    """
    c, r = _vectors("toeplitz", c, jnp.conj(operand("toeplitz", c)) if r is None else r)
    m, n = c.shape[-1], r.shape[-1]
    i, j = _grid(m, n)
    return _joined([r[..., :0:-1], c])[..., i - j + max(n - 1, 0)]


@in_own_terms
def hankel(c, r=None):
    """The matrix [..., m, n] with first column c and last row r (without its first element; zeros by default), constant
    along antidiagonals.

    Args:
        c: array of numbers, shape (..., m).
        r: array of numbers, shape (..., n); None for zeros.

    Returns:
        array of the dtype to which both promote, shape (..., m, n).

    Raises:
        ValueError: for scalars.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.hankel(jnp.array([1, 2]), jnp.array([2, 3])).tolist()
        [[1, 2], [2, 3]]
    """
    c, r = _vectors("hankel", c, jnp.zeros_like(operand("hankel", c)) if r is None else r, rank=1)
    i, j = _grid(c.shape[-1], r.shape[-1])
    return _joined([c, r[..., 1:]])[..., i + j]


@in_own_terms
def circulant(c):
    """The matrix [..., n, n] whose columns are c rolled by 0, 1, … places.

    Args:
        c: array of numbers, shape (..., n).

    Returns:
        array of the dtype of c, shape (..., n, n).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.circulant(jnp.array([1, 2])).tolist()
        [[1, 2], [2, 1]]
    """
    (c,) = _vectors("circulant", c)
    i, j = _grid(*c.shape[-1:] * 2)
    return c[..., (i - j) % max(c.shape[-1], 1)]


def _subdiagonal(x, n: int):
    """The matrix [..., n, n] with x below its diagonal and zeros elsewhere."""
    i, j = _grid(n, n)
    return jnp.where(
        i == j + 1, jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])[..., None, :], jnp.zeros((), x.dtype)
    )


@in_own_terms
def companion(a):
    """The matrix [..., n - 1, n - 1] whose eigenvalues are the roots of the polynomial with coefficients a [..., n],
    the highest first.

    Args:
        a: array of numbers, shape (..., n).

    Returns:
        array of floats or complex numbers, shape (..., n - 1, n - 1).

    Raises:
        ValueError: for fewer than two coefficients.

    Source: Horn and Johnson, "Matrix analysis" (2012), 3.3.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.companion(jnp.array([1., -3., 2.])).tolist()
        [[3.0, -2.0], [1.0, 0.0]]
    """
    (a,) = _vectors("companion", a, inexact=True)
    n = a.shape[-1]
    if n < 2:
        raise ValueError(f"companion: a must have two coefficients at least along its last axis, got shape {a.shape}.")
    row = -a[..., 1:] / a[..., :1]
    return jnp.concatenate([row[..., None, :], _subdiagonal(jnp.ones_like(row[..., 1:]), n - 1)[..., 1:, :]], -2)


def fiedler(a):
    """The matrix [..., n, n] of the distances |a[i] - a[j]|.

    Args:
        a: array of numbers, shape (..., n).

    Returns:
        array of the dtype of the distances, integers or floats, shape (..., n, n).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.fiedler(jnp.array([1, 3])).tolist()
        [[0, 2], [2, 0]]
    """
    (a,) = _vectors("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a):
    """A pentadiagonal matrix with the eigenvalues of `companion(a)`.

    Args:
        a: array of numbers, shape (n,).

    Returns:
        array of floats or complex numbers, shape (n - 1, n - 1).

    Raises:
        ValueError: without coefficients.

    Source: Fiedler, "A note on companion matrices" (2003).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.fiedler_companion(jnp.array([1., -3., 2.])).tolist()
        [[3.0, -2.0], [1.0, 0.0]]
    """
    (a,) = _vectors("fiedler_companion", a, inexact=True)
    n = a.shape[-1] - 1
    if n < 0:
        raise ValueError(
            f"fiedler_companion: a must have a coefficient at least along its last axis, got shape {a.shape}."
        )
    minus = -a / a[..., :1]
    out = jnp.zeros((*a.shape[:-1], n, n), a.dtype)
    if n == 0:
        return out
    places = [
        ((range(3, n, 2), range(1, n - 2, 2)), 1),
        ((range(2, n, 2), range(1, n - 1, 2)), minus[..., 3::2]),
        ((range(0, n - 2, 2), range(2, n, 2)), 1),
        ((range(0, n - 1, 2), range(1, n, 2)), minus[..., 2::2]),
        ((range(1), range(1)), minus[..., 1:2]),
        ((range(1, min(n, 2)), range(min(n, 2) - 1)), 1),
    ]
    for (i, j), value in places:
        if len(i):
            out = out.at[..., jnp.array(i), jnp.array(j)].set(value)
    return out


def convolution_matrix(a, n: int, mode: str = "full"):
    """The matrix A with A @ v = convolve(a, v, mode) for vectors v of length n; of a [..., m].

    Args:
        a: array of numbers, shape (..., m).
        n: int, the size of the vectors.
        mode: 'full', 'valid' or 'same'.

    Returns:
        array of the dtype of a, shape (..., size of the convolution, n).

    Raises:
        ValueError: for empty or scalar a, n < 1, or another mode than 'full', 'valid' and 'same'.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.convolution_matrix(jnp.array([1, 2]), 2).tolist()
        [[1, 0], [2, 1], [0, 2]]
    """
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"convolution_matrix: n must be a positive integer, got {n}.")
    (a,) = _vectors("convolution_matrix", a, rank=1)
    m = a.shape[-1]
    if m == 0:
        raise ValueError(f"convolution_matrix: a must have an element at least, got shape {a.shape}.")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolution_matrix: mode must be 'full', 'valid' or 'same', got {mode!r}.")
    i, j = _grid(m + n - 1, n)
    matrix = jnp.where((i >= j) & (i < j + m), a[..., jnp.clip(i - j, 0, m - 1)], jnp.zeros((), a.dtype))
    trim = min(n, m) - 1
    top, bottom = {"full": (0, 0), "valid": (trim, trim), "same": (trim // 2, trim - trim // 2)}[mode]
    return matrix[..., top : m + n - 1 - bottom, :]


@in_own_terms
def leslie(f, s):
    """The Leslie matrix [..., n, n] of the fecundities f [..., n] and the survival s [..., n - 1] of age groups.

    Args:
        f: array of numbers, shape (..., n).
        s: array of numbers, shape (..., n - 1).

    Returns:
        array of the dtype to which both promote, shape (..., n, n).

    Raises:
        ValueError: for other lengths, or n < 2.

    Source: Leslie, "On the use of matrices in certain population mathematics" (1945).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import linalg
        >>> linalg.leslie(jnp.array([1., 2.]), jnp.array([0.5])).tolist()
        [[1.0, 2.0], [0.5, 0.0]]
    """
    f, s = _vectors("leslie", f, s)
    n = f.shape[-1]
    if n < 2:
        raise ValueError(f"leslie: f must have two elements at least along its last axis, got shape {f.shape}.")
    if s.shape[-1] != n - 1:
        raise ValueError(
            f"leslie: s must have one element less than f along its last axis, got shapes {s.shape} and {f.shape}."
        )
    batch = jnp.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    f, s = (jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in (f, s))
    return jnp.concatenate([f[..., None, :], _subdiagonal(s, n)[..., 1:, :]], -2)


@in_own_terms
def dft(n: int, scale: str | None = None, *, dtype: Any = None):
    """The matrix of the discrete Fourier transform, divided by n (`scale` 'n') or its root ('sqrtn').

    Args:
        n: int, the size of the transform; None for the size of the axis.
        scale: None, 'n' or 'sqrtn'.
        dtype: dtype of complex numbers; None for the default one.

    Returns:
        array of that dtype, shape (n, n).

    Raises:
        ValueError: for another scale, or a dtype that is not complex.

    Example:
        >>> from weft.scipy import linalg
        >>> linalg.dft(2).real.tolist()
        [[1.0, 1.0], [1.0, -1.0]]
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}.")
    dt = asked_dtype("dft", dtype) or dtypes.complex_of(float_dtype())
    if not dtypes.is_complex(dt):
        raise ValueError(f"dft: dtype must be complex, got {dtypes.name(dt)}.")
    n = max(int(n), 0)
    size = {None: 1, "sqrtn": math.sqrt(n), "n": n}[scale] or 1
    turns = [2 * math.pi * k / max(n, 1) for k in range(n)]
    roots = jnp.array([complex(math.cos(t), -math.sin(t)) / size for t in turns], dt)
    i, j = _grid(n, n)
    return roots[i * j % max(n, 1)]


@in_own_terms
def hadamard(n: int, dtype: Any = int):
    """Sylvester's Hadamard matrix, of 1 and -1 with orthogonal rows, for n a power of 2.

    Args:
        n: int, the size of the transform; None for the size of the axis.
        dtype: dtype of the result; None for int32.

    Returns:
        array of that dtype, shape (n, n).

    Raises:
        ValueError: for another n.

    Example:
        >>> from weft.scipy import linalg
        >>> linalg.hadamard(2).tolist()
        [[1, 1], [1, -1]]
    """
    n = int(n)
    if n < 1 or n & n - 1:
        raise ValueError(f"hadamard: n must be a positive power of 2, got {n}.")
    if dtypes.is_bool(dtypes.canonicalize(dtype)):
        raise TypeError("hadamard: booleans have no -1; give another dtype.")
    i, j = _grid(n, n)
    return (1 - 2 * (jnp.bitwise_count(i & j).astype(int) % 2)).astype(dtype)


@in_own_terms
def helmert(n: int, full: bool = False):
    """The n - 1 orthonormal contrasts of Helmert, the rows of a matrix [n - 1, n]; with `full` after a first row of 1 /
    sqrt(n).

    Args:
        n: int, the size of the transform; None for the size of the axis.
        full: bool.

    Returns:
        array of floats, shape (n - 1, n) or (n, n).

    Raises:
        ValueError: for n < 1.

    Example:
        >>> from weft.scipy import linalg
        >>> (linalg.helmert(2) / linalg.helmert(2)[0, 0]).round(3).tolist()
        [[1.0, -1.0]]
    """
    n = int(n)
    if n < 1:
        raise ValueError(f"helmert: n must be a positive integer, got {n}.")
    i, j = _grid(n, n)
    k = jnp.arange(n, dtype=float_dtype())[:, None]
    out = jnp.where(
        i == 0, 1 / math.sqrt(n), jnp.where(j < i, 1, jnp.where(i == j, -k, 0)) / jnp.sqrt(jnp.maximum(k * (k + 1), 1))
    )
    return out if full else out[1:]


def _exact(n, entry):
    """An n by n matrix of floats from a function of whole numbers."""

    def rounded(i, j):
        value = entry(i, j)
        try:
            return float(value)
        except OverflowError:
            return math.copysign(math.inf, value)

    n = max(int(n), 0)
    return jnp.array([[rounded(i, j) for j in range(n)] for i in range(n)], float_dtype()).reshape(n, n)


@in_own_terms
def hilbert(n: int):
    """Hilbert's matrix, 1 / (i + j + 1).

    Args:
        n: int, the size of the transform; None for the size of the axis.

    Returns:
        array of floats, shape (n, n).

    Raises:
        TypeError: if n is negative or no integer.

    Example:
        >>> from weft.scipy import linalg
        >>> linalg.hilbert(2)
        Array([[1.        , 0.5       ],
               [0.5       , 0.33333334]], dtype=float32)
    """
    if operator.index(n) < 0:
        raise TypeError(f"hilbert: n must not be negative, got {n}.")
    return 1 / (1 + sum(_grid(n, n))).astype(float_dtype())


def invhilbert(n: int):
    """The inverse of Hilbert's matrix: whole numbers, computed exactly and rounded to floats.

    Args:
        n: int, the size of the transform; None for the size of the axis.

    Returns:
        array of floats, shape (n, n).

    Raises:
        TypeError: if n is no integer.

    Source: Choi, "Tricks or treats with the Hilbert matrix" (1983).

    Example:
        >>> from weft.scipy import linalg
        >>> linalg.invhilbert(2).tolist()
        [[4.0, -6.0], [-6.0, 12.0]]
    """
    c, n = math.comb, max(int(n), 0)
    return _exact(
        n, lambda i, j: (-1) ** (i + j) * (i + j + 1) * c(n + i, n - j - 1) * c(n + j, n - i - 1) * c(i + j, i) ** 2
    )


def _pascal(name: str, n, kind: str | None, symmetric, lower):
    entries = {"symmetric": symmetric, "lower": lower, "upper": lambda i, j: lower(j, i)}
    if (kind or "symmetric") not in entries:
        raise ValueError(f"{name}: kind must be 'symmetric', 'lower' or 'upper', got {kind!r}.")
    return _exact(n, entries[kind or "symmetric"])


def pascal(n: int, kind: str | None = None):
    """Pascal's triangle as a 'symmetric' (the default), 'lower' or 'upper' matrix of floats.

    Args:
        n: int, the size of the transform; None for the size of the axis.
        kind: 'symmetric', 'lower' or 'upper'.

    Returns:
        array of floats, shape (n, n).

    Raises:
        ValueError: for another kind.

    Example:
        >>> from weft.scipy import linalg
        >>> linalg.pascal(3).tolist()
        [[1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [1.0, 3.0, 6.0]]
    """
    return _pascal("pascal", n, kind, lambda i, j: math.comb(i + j, i), math.comb)


def invpascal(n: int, kind: str | None = None):
    """The inverse of `pascal(n, kind)`.

    Args:
        n: int, the size of the transform; None for the size of the axis.
        kind: 'symmetric', 'lower' or 'upper'.

    Returns:
        array of floats, shape (n, n).

    Raises:
        ValueError: for another kind.

    Example:
        >>> from weft.scipy import linalg
        >>> linalg.invpascal(2).tolist()
        [[2.0, -1.0], [-1.0, 1.0]]
    """
    n, c = int(n), math.comb
    return _pascal(
        "invpascal",
        n,
        kind,
        lambda i, j: (-1) ** (i + j) * sum(c(k, i) * c(k, j) for k in range(max(i, j), n)),
        lambda i, j: (-1) ** (i + j) * c(i, j),
    )
