"""The polar decomposition by the dynamically weighted Halley iteration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Sequence

from ..base import dtypes, limits
from ..higher_order.while_loop import while_loop
from ..primitives import linalg as ops
from ..primitives.elementwise import add, and_, div, gt, le, lt, min_, mul, or_, select, sub
from ..primitives.transcendental import cbrt, sqrt
from ..primitives.linear import broadcast_in_dim, convert, full, reduce_sum
from ..primitives.matrix import conjugate, eye, index, mH, matmul, real_part, symmetrized
from ..primitives.reduce import reduce_max
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import concatenate, slice_
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike
from .common import on_device, operand

if TYPE_CHECKING:
    from ..core.types import Value


def _weights(low: float) -> tuple[float, float, float]:
    """Halley's weights (a, b, c) for singular values of `low`..1: Y. Nakatsukasa, Z. Bai, F. Gygi, "Optimizing Halley's
    iteration for computing the matrix polar decomposition" (2010), equation 3.10.
    """
    d = (4 * (1 - low**2) / low**4) ** (1 / 3)
    a = math.sqrt(1 + d) + 0.5 * math.sqrt(8 - 4 * d + 8 * (2 - low**2) / (low**2 * math.sqrt(1 + d)))
    b = (a - 1) ** 2 / 4
    return a, b, a + b - 1


def _weights_of(low: Value) -> tuple[Value, Value, Value]:
    """The same of an array; 3, 1, 3 where low is 1."""
    one = scalar_like(low, 1)
    square = mul(low, low)
    d = cbrt(div(_scaled(sub(one, square), 4), mul(square, square)))
    root = sqrt(add(one, d))
    inner = add(
        sub(scalar_like(low, 8), _scaled(d, 4)), div(_scaled(sub(scalar_like(low, 2), square), 8), mul(square, root))
    )
    a = add(root, _scaled(sqrt(inner), 0.5))
    rest = sub(a, one)
    b = _scaled(mul(rest, rest), 0.25)
    return a, b, sub(add(a, b), one)


def _grown(low: Value, a: Value, b: Value, c: Value) -> Value:
    """The bound on the singular values after a step: low (a + b low²) / (1 + c low²)."""
    return low * (a + b * low**2) / (1 + c * low**2)


def _size(x: Value) -> Value:
    """The Frobenius norm."""
    return sqrt(reduce_sum(real_part(mul(x, conjugate(x))), (0, 1)))


def _scaled(x: Value, value: float) -> Value:
    return mul(x, scalar_like(x, value))


def _by_qr(u: Value, a: float, b: float, c: float) -> Value:
    """(b/c) u + (a - b/c) Q₁ Q₂ᴴ / √c, for the QR factorisation of √c u above the identity: stable however small
    singular values are.
    """
    m, n = shape_of(u)
    q, _ = ops.qr_p.bind(
        concatenate([_scaled(u, math.sqrt(c)), eye((n, n), dtype_of(u))], 0),
        pivoting=False,
        full_matrices=False,
        use_magma=None,
    )
    product = matmul(slice_(q, (0, 0), (m, n)), mH(slice_(q, (m, 0), (m + n, n))))
    return add(_scaled(u, b / c), _scaled(product, (a - b / c) / math.sqrt(c)))


def _by_cholesky(u: Value, a: Value, b: Value, c: Value) -> Value:
    """(b/c) u + (a - b/c) u (1 + c uᴴ u)⁻¹: cheaper, once the weights are small."""
    ratio = div(b, c)
    gram = add(eye((shape_of(u)[1],) * 2, dtype_of(u)), mul(matmul(mH(u), u), convert(c, dtype_of(u))))
    factor = ops.cholesky_p.bind(gram)
    how = dict(left_side=True, lower=True, unit_diagonal=False)
    solved = ops.triangular_solve(factor, mH(u), transpose_a=False, conjugate_a=False, **how)
    solved = ops.triangular_solve(factor, solved, transpose_a=True, conjugate_a=True, **how)
    return add(mul(u, convert(ratio, dtype_of(u))), mul(mH(solved), convert(sub(a, ratio), dtype_of(u))))


@inner_jit(name="qdwh", static_argnums=(1, 2, 3))
def _qdwh(x: Value, max_iterations: int, eps: float, masked: bool, *sizes: Value) -> tuple[Value, Value, Value, Value]:
    m, n = shape_of(x)
    if masked:  # what is outside the true shape counts as zero
        rows, columns = [broadcast_in_dim(convert(size, dtypes.int32), (m, n), ()) for size in sizes]
        inside = and_(lt(index((m, n), 0), rows), lt(index((m, n), 1), columns))
        x = select(inside, x, full((m, n), 0, dtype_of(x)))
    size = real_part(mul(x, conjugate(x)))
    entries = sqrt(size)
    # ‖x‖₂² <= ‖x‖₁ ‖x‖_∞
    bound = sqrt(mul(reduce_max(reduce_sum(entries, (0,)), (0,)), reduce_max(reduce_sum(entries, (1,)), (0,))))
    u = div(x, convert(select(gt(bound, scalar_like(bound, 0)), bound, full((), 1, dtype_of(bound))), dtype_of(x)))
    # the lower bound on singular values, and so the first steps, are known beforehand
    low, count, moved = float(limits.finfo(dtype_of(x)).eps), 0, full((), math.inf, dtype_of(bound))
    while count < max_iterations and _weights(low)[2] > 100:
        weights = _weights(low)
        u, before = _by_qr(u, *weights), u
        low, count, moved = _grown(low, *weights), count + 1, _size(sub(u, before))
    tolerance, close = (4 * eps) ** (1 / 3), 1 - 10 * eps

    def proceed(state: Sequence[Value]) -> Value:
        k, u, low, moved = state
        unfinished = or_(lt(low, scalar_like(low, close)), gt(moved, _scaled(_size(u), tolerance)))
        return and_(lt(k, scalar_like(k, max_iterations)), unfinished)

    def advance(state: Sequence[Value]) -> tuple[Value, Value, Value, Value]:
        k, u, low, _ = state
        a, b, c = _weights_of(low)
        new, square = _by_cholesky(u, a, b, c), mul(low, low)
        low = div(mul(low, add(a, mul(b, square))), add(mul(c, square), scalar_like(c, 1)))
        return add(k, scalar_like(k, 1)), new, min_(low, scalar_like(low, 1)), _size(sub(new, u))

    k, u, _, moved = while_loop(proceed, advance, (count, u, full((), min(low, 1.0), dtype_of(bound)), moved))
    # one Newton-Schulz step makes u unitary to the last digits
    u = sub(_scaled(u, 1.5), _scaled(matmul(u, matmul(mH(u), u)), 0.5))
    return u, symmetrized(matmul(mH(u), x)), k, le(moved, _scaled(_size(u), tolerance))


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[ArrayLike, ArrayLike] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """(u, h, iterations, converged): the polar decomposition x = u h of a matrix [m, n] with m >= n, u with orthonormal
    columns and h Hermitian.

    It stops after `max_iterations` (10), or when a step changes u by less than (4 eps)^(1/3) of its size.
    `dynamic_shape` (rows, columns) says what part of x counts; the rest of u is zero. `is_hermitian` changes nothing:
    the iteration is the same for all matrices.

    Args:
        x: array of floats or complex numbers, shape (m, n) with m >= n.
        is_hermitian: bool.
        max_iterations: int; None for 10.
        eps: number; None for that of the dtype.
        dynamic_shape: two integer scalars; None for the shape of x.

    Returns:
        (u, h, iterations, converged): u and h have the dtype of x; an integer and a boolean, both scalars.

    Raises:
        ValueError: if x is no matrix with m >= n, or for a dtype that is not float or complex.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> x = jnp.array([[0., 2.], [3., 0.]])
        >>> u, h, _, converged = lax.linalg.qdwh(x)
        >>> bool(jnp.allclose(u @ h, x, atol=1e-5)), bool(converged)
        (True, True)
    """
    x = on_device(operand("qdwh", x))
    if len(shape_of(x)) != 2 or shape_of(x)[0] < shape_of(x)[1]:
        raise ValueError(f"qdwh takes a matrix with at least as many rows as columns, got shape {shape_of(x)}.")
    if dtypes.name(dtype_of(x)) not in ops.LAPACK_DTYPES:
        kind = NotImplementedError if dtypes.is_inexact(dtype_of(x)) else ValueError
        raise kind(f"qdwh does not accept dtype {dtypes.name(dtype_of(x))}; it takes {', '.join(ops.LAPACK_DTYPES)}.")
    eps = float(limits.finfo(dtype_of(x)).eps) if eps is None else float(eps)
    return _qdwh(
        x, 10 if max_iterations is None else int(max_iterations), eps, dynamic_shape is not None, *(dynamic_shape or ())
    )
