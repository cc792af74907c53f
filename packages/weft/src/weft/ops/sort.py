"""Sorting and selecting the largest."""
from __future__ import annotations

from .. import dtypes
from ..avals import shaped, tangent_aval
from ..core.primitive import Primitive, Zero
from ..core.trace import get_aval
from ..errors import type_error
from ..host import np
from .index import GatherDimensionNumbers, GatherScatterMode, gather
from .linear import broadcast_to_axis, expand_dims, moveaxis
from .rules import shape_of
from .shape import iota, rev, slice_

sort_p = Primitive("sort", multiple_results=True)


def _sort_abstract(*xs, dimension, is_stable, num_keys):
    if any(x.shape != xs[0].shape for x in xs):
        raise type_error(f"sort: operands must have one shape, got {[x.shape for x in xs]}.")
    if not 0 <= dimension < len(xs[0].shape):
        raise type_error(f"sort: dimension {dimension} is out of range for shape {xs[0].shape}.")
    if not 1 <= num_keys <= len(xs):
        raise type_error(f"sort: num_keys {num_keys} must lie between 1 and the number of operands {len(xs)}.")
    return [shaped(x.shape, x.dtype, x.weak_type) for x in xs]


def sort_key(x):
    """NumPy keys in lax's total order: -0 and 0 equal, NaN equal to NaN and last, complex by real part and then imaginary."""
    if dtypes.is_complex(x.dtype):
        return [*sort_key(x.real), *sort_key(x.imag)]
    if dtypes.is_float(x.dtype):
        wide = x.astype(np.float64)
        nan = np.isnan(wide)
        return [nan, np.where(nan | (wide == 0), 0.0, wide)]
    return [x]


def _sort_reference(*xs, dimension, is_stable, num_keys):
    xs = [np.moveaxis(x, dimension, -1) for x in xs]
    keys = [k for x in xs[:num_keys] for k in sort_key(x)]
    order = np.lexsort(tuple(reversed(keys)), axis=-1)
    return [np.moveaxis(np.take_along_axis(x, order, -1), -1, dimension) for x in xs]


def take_along(x, order, dimension: int):
    """`x` rearranged along `dimension` by an array of positions (of the same shape but along `dimension`)."""
    rank = len(shape_of(x))
    x, order = moveaxis(x, dimension, rank - 1), moveaxis(order, dimension, rank - 1)
    numbers = GatherDimensionNumbers((), (rank - 1,), (rank - 1,), tuple(range(rank - 1)), tuple(range(rank - 1)))
    out = gather(x, expand_dims(order, (rank,)), numbers, (1,) * rank, mode=GatherScatterMode.PROMISE_IN_BOUNDS)
    return moveaxis(out, rank - 1, dimension)


def _sort_jvp(primals, tangents, *, dimension, is_stable, num_keys):
    if all(type(t) is Zero for t in tangents):
        outs = sort_p.bind(*primals, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
        return outs, [Zero(tangent_aval(get_aval(o))) for o in outs]
    positions = iota(dtypes.int32, shape_of(primals[0]), dimension)
    *outs, order = sort_p.bind(*primals, positions, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    return outs, [Zero(tangent_aval(get_aval(o))) if type(t) is Zero else take_along(t, order, dimension) for o, t in zip(outs, tangents)]


def _sort_batch(axis, args, dims, *, dimension, is_stable, num_keys):
    args = [broadcast_to_axis(x, axis.size) if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)]
    return sort_p.bind(*args, dimension=dimension + 1, is_stable=is_stable, num_keys=num_keys), [0] * len(args)


sort_p.abstract, sort_p.reference, sort_p.jvp, sort_p.batch = _sort_abstract, _sort_reference, _sort_jvp, _sort_batch

top_k_p = Primitive("top_k", multiple_results=True, basic=False)


def _top_k_abstract(x, *, k, axis):
    if not 0 <= axis < len(x.shape) or not 0 <= k <= x.shape[axis]:
        raise type_error(f"top_k: k={k} must lie between 0 and the size of axis {axis} of shape {x.shape}.")
    shape = tuple(k if d == axis else n for d, n in enumerate(x.shape))
    return [shaped(shape, x.dtype, x.weak_type), shaped(shape, dtypes.int32)]


def _top_k_reference(x, *, k, axis):
    flipped = np.moveaxis(x, axis, -1)[..., ::-1]
    n = flipped.shape[-1]
    order = n - 1 - np.lexsort(tuple(reversed(sort_key(flipped))), axis=-1)[..., ::-1][..., :k]
    return [np.moveaxis(np.take_along_axis(np.moveaxis(x, axis, -1), order, -1), -1, axis), np.moveaxis(order, -1, axis).astype(np.int32)]


def _top_k_decompose(x, *, k, axis):
    """Sorts the reversed array upwards and reads it backwards: equal elements keep their order."""
    shape = shape_of(x)
    positions = rev(iota(dtypes.int32, shape, axis), (axis,))
    ordered, order = sort_p.bind(rev(x, (axis,)), positions, dimension=axis, is_stable=True, num_keys=1)
    cut = lambda v: slice_(rev(v, (axis,)), (0,) * len(shape), tuple(k if d == axis else n for d, n in enumerate(shape)))
    return [cut(ordered), cut(order)]


def _top_k_jvp(primals, tangents, *, k, axis):
    values, order = top_k_p.bind(*primals, k=k, axis=axis)
    (t,) = tangents
    zero = Zero(tangent_aval(get_aval(order)))
    return [values, order], [Zero(tangent_aval(get_aval(values))) if type(t) is Zero else take_along(t, order, axis), zero]


def _top_k_batch(axis_, args, dims, *, k, axis):
    return top_k_p.bind(moveaxis(args[0], dims[0], 0), k=k, axis=axis + 1), [0, 0]


top_k_p.abstract, top_k_p.reference, top_k_p.decompose = _top_k_abstract, _top_k_reference, _top_k_decompose
top_k_p.jvp, top_k_p.batch = _top_k_jvp, _top_k_batch
