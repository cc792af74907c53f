"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base import dtypes
from ..base.errors import at_user_line, type_error
from ..numpy import comparisons, ufuncs
from ..numpy.creation import asarray
from ..numpy.einsum import einsum
from ..numpy.selecting import where
from ..numpy.util import on_device, operand
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.rules import dtype_of, shape_of
from ..primitives.shape import iota
from ..scipy.special import logsumexp
from ..typing import Array, ArrayLike
from .normalization import softmax

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["dot_product_attention"]
_NAME = "dot_product_attention"
_LOW = -0.7 * 3.4028234663852886e38  # lower than any logit, but finite: a difference of two is 0 and not NaN


def _error(text: str) -> ValueError:
    return ValueError(at_user_line(f"{_NAME}: {text}"))


def _rank4(name: str, x: Value) -> Value:
    """An argument with its batch axis."""
    x = asarray(x)
    rank = len(shape_of(x))
    if rank > 4:
        raise _error(
            f"{name} has axes (batch, length, heads, size), or is an array that broadcasts to (batch, heads, length,"
            f" length); got shape {shape_of(x)}."
        )
    return linear.expand_dims(x, tuple(range(4 - rank))) if rank < 4 else x


def _per_head(name: str, x: Value, sizes: tuple[Any, ...], groups: int) -> Value:
    """A bias or mask (batch, heads, queries, keys) as one that broadcasts to (batch, key heads, groups, queries,
    keys).
    """
    x = _rank4(name, x)
    if any(n not in (1, m) for n, m in zip(shape_of(x), sizes)):
        raise type_error(
            f"{_NAME}: {name} of shape {shape_of(x)} does not broadcast to (batch, heads, queries, keys) = {sizes}."
        )
    b, n, t, s = shape_of(x)
    return linear.reshape(x, (b, 1, 1, t, s) if n == 1 else (b, n // groups, groups, t, s))


def _lengths(name: str, lengths: Value, batch: int, size: int) -> Value:
    """A mask (batch, size) of the positions before the end of their sequence."""
    lengths = on_device(operand(_NAME, lengths))
    if dtype_of(lengths) != dtypes.int32 or shape_of(lengths) != (batch,):
        raise _error(
            f"{name} is an int32 array of shape ({batch},), got"
            f" {dtypes.name(dtype_of(lengths))}{list(shape_of(lengths))}."
        )
    return el.lt(
        linear.broadcast_in_dim(iota(dtypes.int32, (size,), 0), (batch, size), (1,)),
        linear.broadcast_in_dim(lengths, (batch, size), (0,)),
    )


def _window(window: Any) -> tuple[Any, ...]:
    left, right = (window, window) if isinstance(window, int) else window
    return left, right


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]:
    """softmax(query keyᵀ scale + bias) value, for each head.

    query: (batch, queries, heads, size); key and value: (batch, keys, key heads, size), all of one dtype. Without the
    batch axis the result has none.
    Where heads are a multiple of the key heads, as many neighbouring ones share a key head. `bias` and the boolean
    `mask` broadcast to (batch, heads, queries, keys). `is_causal` lets a query see keys up to its own place,
    `local_window_size` those at most (left, right) places away, and the int32 sequence lengths (batch,) those within
    their sequences; queries beyond theirs give zeros. `scale` is 1/√size by default. With `return_residual`, the log of
    each softmax's denominator (batch, queries, heads) comes with the result, without derivative.

    Args:
        query: array of floats, shape (batch, queries, heads, size), or without batch.
        key, value: array of floats, shape (batch, keys, key heads, size).
        bias: array of floats that broadcasts to (batch, heads, queries, keys), added to the products; None for none.
        mask: array of booleans that broadcasts to (batch, heads, queries, keys): which keys count; None for all.
        scale: number, the factor of the products; None for 1 / √size.
        is_causal: bool: a query sees no key behind its own place.
        query_seq_lengths: array of integers, shape (batch,): how many queries count; None for all.
        key_value_seq_lengths: array of integers, shape (batch,): how many keys count; None for all.
        local_window_size: int, or two ints: how many keys to the left and right a query sees; None for all.
        implementation: None or 'xla': the way that every backend has.
        return_residual: bool: return the logarithms of the sums of exponentials too.

    Returns:
        array of the dtype and shape of query; with `return_residual` a pair.

    Raises:
        ValueError: for shapes or dtypes that do not fit, or an unknown implementation. TypeError: for a bias or mask
            that does not broadcast. RuntimeError: for 'cudnn', which is not there.

    Source: Vaswani et al., "Attention is all you need" (2017).

    Example:
        >>> import weft
        >>> q = weft.numpy.ones((1, 2, 1, 4))
        >>> weft.nn.dot_product_attention(q, q, q, is_causal=True).shape
        (1, 2, 1, 4)
    """
    if implementation == "cudnn":
        raise RuntimeError(at_user_line(f"{_NAME}: cuDNN is not detected. Leave `implementation` out, or use 'xla'."))
    if implementation not in (None, "xla"):
        raise _error(f"implementation is 'xla', 'cudnn' or None, got {implementation!r}.")
    query = asarray(query)
    out_shape = shape_of(query)
    q, k, v = [_rank4(n, x) for n, x in (("query", query), ("key", key), ("value", value))]
    (b, t, n, h), (_, s, heads, _) = shape_of(q), shape_of(k)
    dt = dtype_of(k)
    if shape_of(k) != (b, s, heads, h) or shape_of(v) != shape_of(k):
        raise _error(
            "query, key and value are (batch, length, heads, size), with one batch and size, key and value of one"
            f" shape; got {shape_of(q)}, {shape_of(k)}, {shape_of(v)}."
        )
    if not dtype_of(q) == dt == dtype_of(v):
        raise _error(
            f"query, key and value have one dtype, got {', '.join(dtypes.name(dtype_of(x)) for x in (q, k, v))}."
            " Convert them with astype."
        )
    if not heads or n % heads:
        raise _error(
            f"the number of query heads must be a multiple of that of key and value heads, got {n} and {heads}."
        )
    groups = n // heads
    sizes = (b, n, t, s)
    logits = einsum(
        "btkgh,bskh->bkgts", linear.reshape(q, (b, t, heads, groups, h)), k, preferred_element_type=dtypes.float32
    )
    logits = ufuncs.multiply(logits, 1 / math.sqrt(h) if scale is None else scale)
    if bias is not None:
        bias = _per_head("bias", bias, sizes, groups)
        logits = ufuncs.add(logits, linear.convert(bias, dtype_of(logits)))

    keep: list[Any] = []
    if mask is not None:
        mask = _per_head("mask", mask, sizes, groups)
        if not dtypes.is_bool(dtype_of(mask)):
            raise _error(
                f"mask is a bool array, got {dtypes.name(dtype_of(mask))}. Add numbers to the logits with `bias`."
            )
        keep.append(mask)
    row, column = [linear.broadcast_in_dim(iota(dtypes.int32, (m,), 0), (t, s), (d,)) for d, m in enumerate((t, s))]
    if is_causal:
        keep.append(el.ge(row, column))
    if local_window_size is not None:
        left, right = _window(local_window_size)
        keep += [row <= column + left, row >= column - right]
    within = None if query_seq_lengths is None else _lengths("query_seq_lengths", query_seq_lengths, b, t)
    if within is not None:
        keep.append(linear.expand_dims(within, (1, 2, 4)))
    if key_value_seq_lengths is not None:
        keep.append(linear.expand_dims(_lengths("key_value_seq_lengths", key_value_seq_lengths, b, s), (1, 2, 3)))
    if keep:
        seen = keep[0]
        for more in keep[1:]:
            seen = comparisons.logical_and(seen, more)
        logits = where(seen, logits, _LOW)

    out = einsum("bkgts,bskh->btkgh", linear.convert(softmax(logits), dt), v)
    if within is not None:
        out = ufuncs.multiply(out, linear.convert(linear.expand_dims(within, (2, 3, 4)), dt))
    out = linear.reshape(out, out_shape)
    if not return_residual:
        return out
    residual = linear.stop_gradient_p.bind(logsumexp(logits, axis=-1))
    return out, linear.reshape(linear.transpose(residual, (0, 3, 1, 2)), out_shape[:-1])
