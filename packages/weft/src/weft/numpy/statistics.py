"""Order statistics, histograms, covariance, and numerical helpers: diff, interp, convolve, trapezoid, …"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..lax.dots import PrecisionLike
from ..runtime.jit import inner_jit
from ..core.trace import Tracer, get_aval
from ..base.errors import ConcretizationTypeError
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives import shape as ops
from ..primitives.index import ScatterDimensionNumbers, scatter_add
from ..primitives.reduce import cumsum_p, reduce_or
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.sort import sort_p
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike, Axis, DTypeLike, OutSharding
from .creation import asarray, linspace
from .products import dot, matmul
from .reductions import mean
from .shapes import concatenate, moveaxis, ravel, take_rows
from .sorting import searchsorted
from .ufuncs import add, multiply, where_jit
from .util import (
    asked_dtype,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    flat_host,
    float_dtype,
    index_dtype,
    laid_out,
    no_complex,
    on_device,
    operand,
    promote,
    promote_inexact,
    static_int,
    strong,
)

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "bincount",
    "convolve",
    "corrcoef",
    "correlate",
    "cov",
    "diff",
    "ediff1d",
    "gradient",
    "histogram",
    "histogram_bin_edges",
    "interp",
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "polyval",
    "quantile",
    "trapezoid",
    "unwrap",
    "vander",
]
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@inner_jit(name="quantile", static_argnums=(2, 3, 4, 5))
def _quantile(
    x: Value, q: Value, axes: Any, method: str, keepdims: bool, ignore_nan: Value, weights: Value = None
) -> Value:
    shape = shape_of(x)
    kept = [d for d in range(len(shape)) if d not in axes]
    n = math.prod(shape[d] for d in axes)
    as_rows = lambda v: linear.reshape(linear.transpose(v, (*kept, *axes)), (*[shape[d] for d in kept], n))
    rows = as_rows(x)
    last = len(kept)
    nan = el.ne(rows, rows)
    if not ignore_nan:
        bad = linear.broadcast_in_dim(reduce_or(nan, (last,)), shape_of(rows), tuple(range(last)))
        rows = where_jit(bad, scalar_like(rows, math.nan), rows)
    weights = linear.full(shape_of(rows), 1, dtype_of(q)) if weights is None else as_rows(weights)
    weights = where_jit(nan, scalar_like(weights, 0), weights) if ignore_nan else weights
    rows, weights = (
        sort_p.bind(rows, weights, dimension=last, is_stable=True, num_keys=1)
        if method == "inverted_cdf"
        else (*sort_p.bind(rows, dimension=last, is_stable=True, num_keys=1), None)
    )
    q_shape = shape_of(q)
    if ignore_nan:
        counts = linear.reduce_sum(linear.convert(el.not_(nan), dtype_of(q)), (last,))
    else:
        counts = linear.full(shape_of(rows)[:-1], n, dtype_of(q))
    top = el.sub(counts, scalar_like(counts, 1))
    lead = shape_of(counts)
    both = (*q_shape, *lead)
    spread = lambda v, front: linear.broadcast_in_dim(
        v, both, tuple(range(len(q_shape))) if front else tuple(range(len(q_shape), len(both)))
    )
    position = el.mul(spread(q, True), spread(top, False))
    low, high = el.floor(position), el.ceil(position)
    weight = el.sub(position, low)
    limit = spread(el.max_(top, scalar_like(top, 0)), False)
    clip = lambda v: linear.convert(el.clamp(scalar_like(v, 0), v, limit), dtypes.int32)

    def pick(index: Value) -> Value:
        """rows[..., index] for every quantile."""
        cells = math.prod(lead)
        flat = linear.reshape(rows, (cells * n,))
        base = el.mul(ops.iota(dtypes.int32, (cells,), 0), linear.full((cells,), n, dtypes.int32))
        offset = linear.broadcast_in_dim(linear.reshape(base, lead), both, tuple(range(len(q_shape), len(both))))
        return take_rows(flat, linear.reshape(el.add(index, offset), (math.prod(both),)), 0)

    if method == "inverted_cdf":  # the first element up to which at least q of the weight lies
        total = linear.reduce_sum(weights, (last,))
        share = el.div(cumsum_p.bind(weights, axis=last, reverse=False), linear.expand_dims(total, (last,)))
        wide = (*both, n)
        below = el.lt(
            linear.broadcast_in_dim(share, wide, tuple(range(len(q_shape), len(wide)))),
            linear.broadcast_in_dim(q, wide, tuple(range(len(q_shape)))),
        )
        index = linear.reduce_sum(linear.convert(below, dtypes.int32), (len(both),))
        a = b = linear.reshape(pick(el.min_(index, scalar_like(index, n - 1))), both)
        no_weight = el.not_(el.gt(total, scalar_like(total, 0)))
        a = el.select_n_p.bind(spread(no_weight, False), a, linear.full(both, math.nan, dtype_of(a)))
    else:
        a, b = [linear.reshape(pick(clip(v)), both) for v in (low, high)]
    if method == "linear":
        weight = linear.convert(weight, dtype_of(a))
        out = el.add(el.mul(a, el.sub(scalar_like(weight, 1), weight)), el.mul(b, weight))
        out = el.select_n_p.bind(el.and_(el.eq(a, b), el.eq(weight, weight)), out, a)
    elif method == "midpoint":
        out = el.mul(el.add(a, b), scalar_like(a, 0.5))
    elif method == "nearest":
        out = el.select_n_p.bind(el.le(weight, scalar_like(weight, 0.5)), b, a)
    else:
        out = b if method == "higher" else a
    if ignore_nan:
        none = spread(el.lt(top, scalar_like(top, 0)), False)
        out = el.select_n_p.bind(none, out, linear.full(both, math.nan, dtype_of(out)))
    return linear.expand_dims(out, tuple(len(q_shape) + d for d in axes)) if keepdims and axes else out


def _quantile_of(
    name: str,
    a: Value,
    q: Value,
    axis: Any,
    out: Value,
    overwrite_input: bool,
    method: str,
    keepdims: bool,
    ignore_nan: bool,
    weights: Value,
) -> Value:
    if out is not None or overwrite_input:
        raise ValueError(
            f"{name}: arrays are immutable, so out must be None and overwrite_input False; use the result."
        )
    if weights is not None and method in _METHODS and method != "inverted_cdf":
        raise NotImplementedError(f"{name}: only method='inverted_cdf' takes weights, got {method!r}.")
    if method not in _METHODS:
        raise ValueError(f"{name}: method must be one of {', '.join(_METHODS)}, got {method!r}.")
    (x,) = promote_inexact(name, a)
    if dtypes.is_complex(dtype_of(x)):
        raise ValueError(f"{name} does not take complex numbers, got {get_aval(x)}.")
    dt = dtype_of(x)
    x, q = promote_inexact(name, x, q)
    if len(shape_of(q)) > 1:
        raise ValueError(
            f"{name}: q must be a number or a vector, got shape {shape_of(q)}; flatten it, and reshape the result."
        )
    x = on_device(x)
    axes, shape = canonical_axes(axis, len(shape_of(x))), shape_of(x)
    if 0 in [shape[d] for d in axes]:
        raise (IndexError if ignore_nan else TypeError)(
            f"{name} needs at least one element along the axes {axes} of shape {shape}."
        )
    if 0 in shape:
        rest = tuple(1 if d in axes else n for d, n in enumerate(shape) if keepdims or d not in axes)
        return linear.full((*shape_of(q), *rest), math.nan, dt)
    if weights is not None:
        weights = on_device(linear.convert(operand(name, weights), dtype_of(x)))
        if shape_of(weights) != shape:
            if axis is None or shape_of(weights) != tuple(shape[d] for d in axes):
                raise ValueError(
                    f"{name}: weights of shape {shape_of(weights)} must have the shape {shape} of the array, or that of"
                    f" the axes over which it is reduced, {tuple(shape[d] for d in axes)}."
                )
            weights = linear.broadcast_in_dim(weights, shape, axes)
    return linear.convert(_quantile(x, on_device(q), axes, method, bool(keepdims), ignore_nan, weights), dt)


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The q-quantiles (0 ≤ q ≤ 1) over `axis`; axes of q come first in the result. NaN if there is one.

    Between two elements `method` decides: linear, lower, higher, midpoint, nearest or inverted_cdf, which alone takes
    `weights`.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.quantile(jnp.array([1., 2., 4.]), 0.5))
        2.0
    """
    return _quantile_of("quantile", a, q, axis, out, overwrite_input, method, keepdims, False, weights)


def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`quantile` ignoring NaN.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.nanquantile(jnp.array([jnp.nan, 1., 3.]), .5)
        Array(2., dtype=float32)
    """
    return _quantile_of("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, True, weights)


def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """`quantile` with q from 0 to 100.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.percentile(jnp.array([1., 2., 4.]), 50))
        2.0
    """
    (q,) = promote_inexact("percentile", q)
    return laid_out(
        "percentile",
        quantile(a, el.div(q, scalar_like(q, 100)), axis, out, overwrite_input, method, keepdims, weights=weights),
        out_sharding,
    )


def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`percentile` ignoring NaN.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.nanpercentile(jnp.array([jnp.nan, 1., 3.]), 50)
        Array(2., dtype=float32)
    """
    (q,) = promote_inexact("nanpercentile", q)
    return nanquantile(a, el.div(q, scalar_like(q, 100)), axis, out, overwrite_input, method, keepdims, weights=weights)


@inner_jit(name="median", static_argnums=(1, 2))
def _median(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    return _quantile(linear.convert(x, dtype_of(x)), scalar_like(x, 0.5), axes, "midpoint", keepdims, False)


def median(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median over `axis`; NaN if there is one.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.median(jnp.array([1., 4., 2.])))
        2.0
    """
    if out is not None or overwrite_input:
        raise ValueError("median: arrays are immutable, so out must be None and overwrite_input False; use the result.")
    (x,) = promote_inexact("median", a)
    no_complex("median", x)
    axes, shape = canonical_axes(axis, len(shape_of(x))), shape_of(x)
    if 0 in shape:
        return _quantile_of("median", x, 0.5, axis, None, False, "midpoint", keepdims, False, None)
    return _median(x, axes, bool(keepdims))


def nanmedian(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median ignoring NaN.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.nanmedian(jnp.array([jnp.nan, 1., 3.]))
        Array(2., dtype=float32)
    """
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariance matrix of variables in rows (or columns).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.cov(jnp.array([[1., 2.], [2., 4.]])).tolist()
        [[0.5, 1.0], [1.0, 2.0]]
    """
    dt = asked_dtype("cov", dtype)
    if dt is not None and not dtypes.is_inexact(dt):
        raise ValueError(f"cov: dtype must be a float or complex one, got {dtypes.name(dt)}.")
    xs = [on_device(v) for v in promote_inexact("cov", m, *([] if y is None else [y]))]
    rows = []
    for x in xs:
        if len(shape_of(x)) > 2:
            raise ValueError(f"cov takes arrays of rank 2 at most, got shape {shape_of(x)}.")
        x = (
            linear.reshape(x, (1, math.prod(shape_of(x))))
            if len(shape_of(x)) < 2
            else x
            if rowvar
            else linear.transpose(x, (1, 0))
        )
        rows.append(x)
    x = concatenate(rows, 0)
    x = x if dt is None else linear.convert(x, dt)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = None
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None:
            w = on_device(operand("cov", w))
            if name == "fweights" and not dtypes.is_int(dtype_of(w)):
                raise TypeError(f"cov: fweights must be integer, got {get_aval(w)}.")
            if shape_of(w) != shape_of(x)[1:]:
                raise RuntimeError(
                    f"cov: incompatible numbers of samples and {name}: {shape_of(x)[1]} and shape {shape_of(w)}."
                )
            w = linear.convert(w, dtype_of(x))
            weights = w if weights is None else el.mul(weights, w)
    if weights is None:
        center, norm = mean(x, 1, keepdims=True), scalar_like(x, shape_of(x)[1] - ddof)
        left = x
    else:
        total = linear.reduce_sum(weights, (0,))
        left = el.mul(x, linear.expand_dims(weights, (0,)))
        center = el.div(linear.expand_dims(linear.reduce_sum(left, (1,)), (1,)), total)
        if aweights is None:
            norm = el.sub(total, scalar_like(total, ddof))
        else:
            aw = linear.convert(on_device(operand("cov", aweights)), dtype_of(x))
            norm = el.sub(
                total, el.mul(scalar_like(total, ddof), el.div(linear.reduce_sum(el.mul(weights, aw), (0,)), total))
            )
    centered = el.sub(x, center)
    other = centered if weights is None else el.mul(centered, linear.expand_dims(weights, (0,)))
    other = el.conj(other) if dtypes.is_complex(dtype_of(other)) else other
    out = el.div(matmul(centered, linear.transpose(other, (1, 0))), norm)
    return linear.reshape(out, ()) if shape_of(out) == (1, 1) else out


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """The matrix of correlation coefficients of variables in rows (or columns).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.corrcoef(jnp.array([[1., 2.], [2., 4.]])).shape
        (2, 2)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not shape_of(c):
        return el.div(c, c)
    n = shape_of(c)[0]
    i = ops.iota(dtypes.int32, (n,), 0)
    d = el.sqrt(el.real(c[i, i]) if dtypes.is_complex(dtype_of(c)) else c[i, i])
    d = linear.convert(d, dtype_of(c))
    out = el.div(el.div(c, linear.expand_dims(d, (1,))), linear.expand_dims(d, (0,)))
    return out if dtypes.is_complex(dtype_of(out)) else el.clamp(scalar_like(out, -1), out, scalar_like(out, 1))


def _count_into(positions: Value, weights: Value, length: int) -> Value:
    """Sums of `weights` by position; positions out of bounds are dropped."""
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    return scatter_add(
        linear.full((length,), 0, dtype_of(weights)), linear.expand_dims(positions, (1,)), weights, numbers
    )


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """How often each of 0, 1, 2, … appears (or the sum of its weights). Under jit `length` fixes the size of the
    result.

    Raises:
        ConcretizationTypeError: for a traced array without `length`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.bincount(jnp.array([1, 1, 3]))
        Array([0, 2, 0, 1], dtype=int32)
    """
    x = on_device(operand("bincount", x))
    if dtypes.is_inexact(get_aval(x).dtype):
        raise TypeError(f"bincount takes integers, got {get_aval(x)}.")
    if len(shape_of(x)) != 1:
        raise ValueError(f"bincount takes a vector, got shape {shape_of(x)}.")
    x = linear.convert(x, dtypes.int32) if dtypes.is_bool(dtype_of(x)) else x
    if length is None:
        if isinstance(x, Tracer):
            raise ConcretizationTypeError(
                concretization_error(
                    x,
                    "bincount needs the values, because the number of results depends on them; "
                    "give it length=… to use it under jit",
                )
            )
        length = max(max(flat_host(x), default=-1) + 1, static_int("minlength", minlength))
    weights = linear.full(shape_of(x), 1, index_dtype()) if weights is None else on_device(operand("bincount", weights))
    if shape_of(weights) != shape_of(x):
        raise ValueError(
            f"bincount: weights of shape {shape_of(weights)} must have the shape {shape_of(x)} of the positions."
        )
    if dtypes.is_bool(dtype_of(weights)):
        raise TypeError(
            f"bincount adds up the weights, which can't be booleans, got {get_aval(weights)}; convert them with astype."
        )
    zero = scalar_like(x, 0)
    return laid_out("bincount", _count_into(el.max_(x, zero), weights, static_int("length", length)), out_sharding)


def histogram_bin_edges(
    a: ArrayLike, bins: ArrayLike = 10, range: Sequence[ArrayLike] | None = None, weights: ArrayLike | None = None
) -> Array:
    """The edges of evenly spaced bins over the range of `a` (or a given one).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.histogram_bin_edges(jnp.array([0., 4.]), 2).tolist()
        [0.0, 2.0, 4.0]
    """
    if isinstance(bins, str):
        raise TypeError(
            f"histogram: bins must be a number or edges, got {bins!r}: named methods look at values, which programs"
            " don't have while they are traced."
        )
    (x,) = promote_inexact("histogram_bin_edges", a)
    if not isinstance(bins, int) and shape_of(operand("histogram", bins)):
        return linear.convert(asarray(bins), dtype_of(x))
    n = static_int("bins", bins)
    x = ravel(x)
    if range is None:
        if not shape_of(x)[0]:
            raise ValueError("histogram: an empty array has no range; say which with range=(low, high).")
        lo, hi = x.min(), x.max()
    else:
        lo, hi = [linear.convert(operand("histogram", v), dtype_of(x)) for v in range]
        lo, hi = on_device(lo), on_device(hi)
    flat = el.eq(lo, hi)
    half = scalar_like(lo, 0.5)
    lo, hi = el.select_n_p.bind(flat, lo, el.sub(lo, half)), el.select_n_p.bind(flat, hi, el.add(hi, half))
    return linspace(lo, hi, n + 1, dtype=dtype_of(x))


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """(counts, edges) of values in bins; the last bin includes its upper edge.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.histogram(jnp.array([0., 1., 4.]), 2)[0].tolist()
        [2.0, 1.0]
    """
    x = ravel(operand("histogram", a))
    if weights is not None and shape_of(operand("histogram", weights)) != shape_of(a):
        raise ValueError(
            f"histogram: weights of shape {shape_of(weights)} must have the shape {shape_of(a)} of the array."
        )
    edges = histogram_bin_edges(x, bins, range, weights)
    x, *given = promote_inexact("histogram", x, *([] if weights is None else [weights]))
    n = shape_of(edges)[0] - 1
    w = ravel(given[0]) if given else linear.full(shape_of(x), 1, dtype_of(x))
    position = searchsorted(edges, x, "right")
    last = edges[n]
    position = el.select_n_p.bind(
        el.eq(x, broadcast_to(last, shape_of(x))), position, linear.full(shape_of(x), n, dtypes.int32)
    )
    inside = el.and_(el.ge(position, scalar_like(position, 1)), el.le(position, scalar_like(position, n)))
    position = el.select_n_p.bind(
        inside, linear.full(shape_of(x), n, dtypes.int32), el.sub(position, scalar_like(position, 1))
    )
    counts = _count_into(position, w, n)
    if density:
        widths = diff(edges)
        counts = linear.convert(counts, dtype_of(widths))
        counts = el.div(el.div(counts, widths), linear.reduce_sum(counts, (0,)))
    return counts, edges


# differences, interpolation, integration -----------------------------------------------------------------------------


def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """The differences of neighbours along an axis, `n` times.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.diff(jnp.array([1, 4, 9]))
        Array([3, 5], dtype=int32)
    """
    x = on_device(operand("diff", a))
    n = static_int("n", n)
    if n == 0:
        return x
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}.")
    if not shape_of(x):
        raise ValueError("diff requires input that is at least one dimensional.")
    axis = canonical_axis(axis, len(shape_of(x)))
    parts = [x]
    lift = lambda v: (
        broadcast_to(v, tuple(1 if d == axis else m for d, m in enumerate(shape_of(x)))) if not shape_of(v) else v
    )
    parts = (
        ([lift(operand("diff", prepend))] if prepend is not None else [])
        + parts
        + ([lift(operand("diff", append))] if append is not None else [])
    )
    x = concatenate(parts, axis)
    for _ in range(n):
        shape = shape_of(x)
        cut = lambda lo, hi: ops.slice_(
            x,
            tuple(lo if d == axis else 0 for d in range(len(shape))),
            tuple(max(lo, m + hi) if d == axis else m for d, m in enumerate(shape)),
        )
        if shape[axis] == 0:
            return x
        x = (el.ne if dtypes.is_bool(dtype_of(x)) else el.sub)(cut(1, 0), cut(0, -1))
    return x


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """The differences of neighbours of the flattened array.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ediff1d(jnp.array([1, 4, 9]))
        Array([3, 5], dtype=int32)
    """
    x = ravel(ary)
    if dtypes.is_bool(dtype_of(x)):
        raise TypeError(f"ediff1d takes numbers, got {get_aval(x)}; use diff, or convert it with astype.")
    x = diff(x)
    parts = (
        ([ravel(linear.convert(asarray(to_begin), dtype_of(x)))] if to_begin is not None else [])
        + [x]
        + ([ravel(linear.convert(asarray(to_end), dtype_of(x)))] if to_end is not None else [])
    )
    return concatenate(parts)


def _gradient_at(x: Value, places: Any, d: int, at: Value) -> Value:
    """Differences along an axis whose points have coordinates: those of both sides, weighted so that parabolas come
    out right.
    """
    n = shape_of(x)[d]
    if shape_of(places) != (n,):
        raise ValueError(f"gradient: coordinates must have the length {n} of axis {d}, got shape {shape_of(places)}.")
    gaps = linear.broadcast_in_dim(
        el.sub(places[1:], places[:-1]), tuple(n - 1 if e == d else m for e, m in enumerate(shape_of(x))), (d,)
    )
    slopes = el.div(el.sub(at(x, 1, n), at(x, 0, n - 1)), gaps)
    before, after = at(gaps, 0, n - 2), at(gaps, 1, n - 1)
    middle = el.div(
        el.add(el.mul(at(slopes, 0, n - 2), after), el.mul(at(slopes, 1, n - 1), before)), el.add(before, after)
    )
    parts = [at(slopes, 0, 1), middle, at(slopes, n - 2, n - 1)]
    return ops.concatenate(parts if n > 2 else [parts[0], parts[2]], d)


def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: Axis = None, edge_order: int | None = None
) -> Array | list[Array]:
    """Central differences along axes, one-sided at the ends; spacings are numbers, or the coordinates along an axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.gradient(jnp.array([1., 4., 9.]))
        Array([3., 4., 5.], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError("gradient: edge_order is not supported.")
    x, *given = promote_inexact("gradient", f, *varargs)
    x = on_device(x)
    axes = canonical_axes(axis, len(shape_of(x)))
    spacings = given or [1.0]
    if len(spacings) == 1:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(f"gradient: {len(varargs)} spacings for {len(axes)} axes.")
    out = []
    for d, h in zip(axes, spacings):
        n = shape_of(x)[d]
        if n < 2:
            raise ValueError(f"gradient needs at least 2 elements along axis {d}, got {n}.")
        at = lambda v, lo, hi: ops.slice_(
            v,
            tuple(lo if e == d else 0 for e in range(len(shape_of(v)))),
            tuple(hi if e == d else m for e, m in enumerate(shape_of(v))),
        )
        if shape_of(h):
            out.append(_gradient_at(x, on_device(h), d, at))
            continue
        h = linear.convert(h, dtype_of(x), get_aval(x).weak_type)
        middle = el.div(el.mul(el.sub(at(x, 2, n), at(x, 0, n - 2)), scalar_like(x, 0.5)), h)
        first, last = (
            el.div(el.sub(at(x, 1, 2), at(x, 0, 1)), h),
            el.div(el.sub(at(x, n - 1, n), at(x, n - 2, n - 1)), h),
        )
        out.append(ops.concatenate([first, middle, last] if n > 2 else [first, last], d))
    return out[0] if len(out) == 1 else out


@inner_jit(name="interp", static_argnames=("period", "extend"))
def _interp(x: Value, xp: Value, fp: Value, left: Value, right: Value, *, period: Value, extend: Value) -> Value:
    if period is not None:
        wrap = lambda v: el.sub(v, el.mul(el.floor(el.div(v, scalar_like(v, period))), scalar_like(v, period)))
        x, xp = wrap(x), wrap(xp)
        xp, fp = sort_p.bind(xp, fp, dimension=0, is_stable=True, num_keys=1)
        n = shape_of(xp)[0]
        xp = ops.concatenate(
            [el.sub(xp[n - 1 :], scalar_like(xp, period)), xp, el.add(xp[:1], scalar_like(xp, period))], 0
        )
        fp = ops.concatenate([fp[n - 1 :], fp, fp[:1]], 0)
    n = shape_of(xp)[0]
    i = el.clamp(
        scalar_like(ops.iota(dtypes.int32, (1,), 0), 1),
        searchsorted(xp, x, "right"),
        scalar_like(ops.iota(dtypes.int32, (1,), 0), max(n - 1, 1)),
    )
    i = el.min_(i, scalar_like(i, n - 1))
    before = el.max_(el.sub(i, scalar_like(i, 1)), scalar_like(i, 0))
    pick = lambda v, k: take_rows(v, k, 0)
    df, dx, delta = (
        el.sub(pick(fp, i), pick(fp, before)),
        el.sub(pick(xp, i), pick(xp, before)),
        el.sub(x, pick(xp, before)),
    )
    none = el.eq(dx, scalar_like(dx, 0))
    safe = el.select_n_p.bind(none, dx, linear.full(shape_of(dx), 1, dtype_of(dx), get_aval(dx).weak_type))
    share, df, start = promote("interp", el.div(delta, safe), df, pick(fp, before))
    out = el.select_n_p.bind(none, el.add(start, el.mul(share, df)), start)
    if period is None:
        if "left" not in extend:
            out = where_jit(el.lt(x, xp[0]), fp[0] if left is None else left, out)
        if "right" not in extend:
            out = where_jit(el.gt(x, xp[n - 1]), fp[n - 1] if right is None else right, out)
    return out


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: float | None = None,
) -> Array:
    """Linear interpolation through the points (xp, fp), xp increasing; `left` and `right` stand outside of them, or
    'extrapolate' the outermost pieces.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.interp(0.5, jnp.array([0., 1.]), jnp.array([2., 4.])))
        3.0
    """
    x, xp = [on_device(v) for v in promote_inexact("interp", x, xp)]
    (fp,) = promote_inexact("interp", fp)
    no_complex("interp", x, xp)
    if len(shape_of(xp)) != 1 or shape_of(xp) != shape_of(fp):
        raise ValueError(f"interp: xp and fp must be vectors of one size, got {shape_of(xp)} and {shape_of(fp)}.")
    if period == 0:
        raise ValueError("interp: period must not be 0.")
    extend = tuple(side for side, value in (("left", left), ("right", right)) if isinstance(value, str))
    if any(value != "extrapolate" for value in (left, right) if isinstance(value, str)):
        raise ValueError(
            f"interp: the only text that left and right take is 'extrapolate', got {left!r} and {right!r}."
        )
    left, right = [None if isinstance(value, str) else value for value in (left, right)]
    return _interp(
        x, xp, on_device(fp), left, right, period=None if period is None else abs(float(period)), extend=extend
    )


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.trapezoid(jnp.array([1., 2., 3.])))
        4.0
    """
    if x is None:
        y, dx = promote_inexact("trapezoid", *promote_inexact("trapezoid", y), dx)
        y = moveaxis(strong(y), axis, -1)
        step = dx
    else:
        y, x = promote_inexact("trapezoid", y, x)
        y = moveaxis(strong(y), axis, -1)
        step = diff(x) if len(shape_of(x)) == 1 else moveaxis(diff(x, axis=axis), axis, -1)
    n = shape_of(y)[-1]
    both = el.add(y[..., 1:], y[..., : n - 1])
    step = broadcast_to(step, shape_of(both))
    return linear.reduce_sum(el.mul(el.mul(both, step), scalar_like(both, 0.5)), (len(shape_of(both)) - 1,))


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The discrete convolution of two vectors; mode 'full', 'same' or 'valid'.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.convolve(jnp.array([1., 2.]), jnp.array([1., 1.]))
        Array([1., 3., 2.], dtype=float32)
    """
    return _convolve("convolve", a, v, mode, True, precision, preferred_element_type)


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The cross-correlation of two vectors; mode 'full', 'same' or 'valid'.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.correlate(jnp.array([1., 2., 3.]), jnp.array([1., 1.]))
        Array([3., 5.], dtype=float32)
    """
    _, v2 = promote("correlate", a, v)
    return _convolve(
        "correlate",
        a,
        el.conj(on_device(v2)) if dtypes.is_complex(dtype_of(v2)) else v,
        mode,
        False,
        precision,
        preferred_element_type,
    )


def _convolve(
    name: str, a: Value, v: Value, mode: str, reverse: bool, precision: PrecisionLike, preferred: DTypeLike | None
) -> Value:
    """As a product with the matrix of all shifted windows."""
    x, w = [on_device(u) for u in promote_inexact(name, a, v)]
    preferred = asked_dtype(name, preferred)
    if preferred is not None and dtypes.bits(preferred) < dtypes.bits(dtype_of(x)):
        raise TypeError(
            f"{name}: preferred_element_type {dtypes.name(preferred)} must not be narrower than the dtype"
            f" {dtypes.name(dtype_of(x))} of the operands."
        )
    if len(shape_of(x)) != 1 or len(shape_of(w)) != 1:
        raise ValueError(f"{name} takes vectors, got shapes {shape_of(x)} and {shape_of(w)}.")
    n, m = shape_of(x)[0], shape_of(w)[0]
    if not n or not m:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes ({n},) and ({m},).")
    flip_result = False
    if n < m:
        x, w, n, m = w, x, m, n
        flip_result = not reverse
    w = ops.rev(w, (0,)) if reverse else w
    total = {"full": n + m - 1, "same": n, "valid": n - m + 1}.get(mode)
    if total is None:
        raise ValueError(f"{name}: mode must be one of 'full', 'same', 'valid', got {mode!r}.")
    lead = {"full": m - 1, "same": m // 2 if not reverse else (m - 1) - (m - 1) // 2, "valid": 0}[mode]
    if mode == "same" and not reverse and flip_result:
        lead = m - 1 - m // 2
    padded = ops.pad(x, scalar_like(x, 0), ((lead, max(0, total + m - 1 - lead - n), 0),))
    rows = el.add(ops.iota(dtypes.int32, (total, m), 0), ops.iota(dtypes.int32, (total, m), 1))
    out = dot(take_rows(padded, rows, 0), w, precision=precision, preferred_element_type=preferred)
    return ops.rev(out, (0,)) if flip_result else out


def unwrap(p: ArrayLike, discont: float | None = None, axis: int = -1, period: float = 2 * math.pi) -> Array:
    """Angles without jumps of more than half a period along an axis.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.unwrap(jnp.array([0., 4., 8.]), period=4.).tolist()
        [0.0, 0.0, 0.0]
    """
    (x,) = promote_inexact("unwrap", p)
    no_complex("unwrap", x)
    # integers in whole periods stay integers
    given = dtypes.promote((get_aval(p).dtype, False), (get_aval(period).dtype, True))[0]
    x = linear.convert(on_device(x), given if dtypes.is_inexact(given) else float_dtype())
    axis = canonical_axis(axis, len(shape_of(x)))
    if shape_of(x)[axis] == 0:
        return linear.convert(x, given)
    half = period / 2 if dtypes.is_inexact(given) else period // 2
    d = diff(x, axis=axis)
    shifted = el.add(d, scalar_like(d, half))
    wrapped = el.sub(
        el.sub(shifted, el.mul(el.floor(el.div(shifted, scalar_like(d, period))), scalar_like(d, period))),
        scalar_like(d, half),
    )
    wrapped = el.select_n_p.bind(
        el.and_(el.eq(wrapped, scalar_like(d, -half)), el.gt(d, scalar_like(d, 0))),
        wrapped,
        linear.full(shape_of(d), half, dtype_of(d)),
    )
    correction = el.sub(wrapped, d)
    limit = max(half, half if discont is None else discont)
    correction = el.select_n_p.bind(
        el.lt(el.abs_(d), scalar_like(d, limit)), correction, linear.full(shape_of(d), 0, dtype_of(d))
    )
    total = cumsum_p.bind(correction, axis=axis, reverse=False)
    first = ops.slice_(x, (0,) * len(shape_of(x)), tuple(1 if e == axis else m for e, m in enumerate(shape_of(x))))
    rest = ops.slice_(x, tuple(1 if e == axis else 0 for e in range(len(shape_of(x)))), shape_of(x))
    return linear.convert(ops.concatenate([first, el.add(rest, total)], axis), given)


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial whose coefficients start with the highest power.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.polyval(jnp.array([1., 0., 2.]), 3.))
        11.0
    """
    coefficients, x = [on_device(v) for v in promote("polyval", p, x)]
    out = linear.full(shape_of(x), 0, dtype_of(x))
    for i in range(shape_of(coefficients)[0]):
        out = add(multiply(out, x), coefficients[i])
    return out


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of powers of a vector.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.vander(jnp.array([2, 3])).tolist()
        [[2, 1], [3, 1]]
    """
    x = on_device(operand("vander", x))
    if len(shape_of(x)) != 1:
        raise ValueError("x must be a one-dimensional array")
    n = shape_of(x)[0] if N is None else static_int("N", N)
    if n < 0:
        raise ValueError(f"vander: N must not be negative, got {n}.")
    columns = [linear.full(shape_of(x), 1, dtype_of(x))]
    for _ in range(n - 1):
        columns.append(el.mul(columns[-1], x))
    columns = columns[:n] if increasing else columns[:n][::-1]
    return (
        ops.concatenate([linear.expand_dims(c, (1,)) for c in columns], 1)
        if columns
        else linear.full((shape_of(x)[0], 0), 0, dtype_of(x))
    )
