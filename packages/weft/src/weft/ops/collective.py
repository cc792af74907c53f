"""Primitives that communicate over named axes. Under `vmap` they act on the batch axis."""
from __future__ import annotations

import math

from .. import dtypes
from ..avals import shaped, tangent_aval
from ..core.primitive import Primitive, Zero, unsupported
from ..core.trace import axis_size_of, get_aval
from ..errors import type_error
from .elementwise import mul as _mul
from .index import dynamic_slice_p as _dynamic_slice_p
from .linear import broadcast_in_dim, full, moveaxis, reduce_sum
from .linear import reshape as _reshape
from .reduce import reduce_max, reduce_min
from .rules import is_linear_arg, shape_of
from .shape import concatenate as _concatenate
from .shape import iota
from .shape import slice_ as _slice

_OUTSIDE = "a collective has a value only inside vmap, pmap or shard_map, which replace it"


def _names(axes) -> tuple:
    return tuple(a for a in axes if not isinstance(a, int))


def _all_reduce(name: str, reduce, scale_constant) -> Primitive:
    """A reduction over named axes; an axis that vmap has bound becomes a position of its operand and is reduced there."""
    primitive = Primitive(name, multiple_results=True)

    def abstract(*xs, axes, axis_index_groups):
        for axis in _names(axes):
            axis_size_of(axis)
        positions = [a for a in axes if isinstance(a, int)]
        return [shaped(tuple(n for d, n in enumerate(x.shape) if d not in positions), x.dtype, x.weak_type) for x in xs]

    def batch(axis, args, dims, *, axes, axis_index_groups):
        if axis_index_groups is not None:
            raise type_error(f"{name} under vmap does not take axis_index_groups.")
        mine = axis.name in axes
        rest = tuple(a for a in axes if a != axis.name)
        outs, out_dims = [], []
        for x, d in zip(args, dims):
            if mine:
                x = scale_constant(x, axis.size) if d is None else reduce(x, (d,))
                d = None
            outs.append(x)
            out_dims.append(d)
        return (primitive.bind(*outs, axes=rest, axis_index_groups=None) if rest else outs), out_dims

    primitive.abstract, primitive.batch = abstract, batch
    primitive.reference = unsupported(_OUTSIDE)
    primitive.axis_names = lambda params: _names(params["axes"])
    return primitive


psum_p = _all_reduce("psum", lambda x, d: reduce_sum(x, d), lambda x, n: _times(x, n))
pmax_p = _all_reduce("pmax", lambda x, d: reduce_max(x, d), lambda x, n: x)
pmin_p = _all_reduce("pmin", lambda x, d: reduce_min(x, d), lambda x, n: x)


def _times(x, n: int):
    aval = get_aval(x)
    return _mul(x, full((), n, aval.dtype))


def _psum_jvp(primals, tangents, **params):
    outs = psum_p.bind(*primals, **params)
    live = [t for t in tangents if type(t) is not Zero]
    sums = iter(psum_p.bind(*live, **params) if live else [])
    return outs, [Zero(tangent_aval(get_aval(o))) if type(t) is Zero else next(sums) for o, t in zip(outs, tangents)]


def _psum_transpose(cts, *xs, **params):
    live = [c for c, x in zip(cts, xs) if is_linear_arg(x) and type(c) is not Zero]
    sums = iter(psum_p.bind(*live, **params) if live else [])
    return [next(sums) if is_linear_arg(x) and type(c) is not Zero else None for c, x in zip(cts, xs)]


psum_p.jvp, psum_p.transpose = _psum_jvp, _psum_transpose


def _pmax_jvp(primals, tangents, **params):
    raise NotImplementedError("pmax and pmin have no derivative; use weft.lax.psum or all_gather and a local max.")


pmax_p.jvp = pmin_p.jvp = _pmax_jvp

axis_index_p = Primitive("axis_index")
axis_index_p.abstract = lambda *, axis_name: (axis_size_of(axis_name), shaped((), dtypes.int32))[1]
axis_index_p.axis_names = lambda params: (params["axis_name"],)
axis_index_p.jvp = lambda primals, tangents, **params: (axis_index_p.bind(**params), Zero(tangent_aval(shaped((), dtypes.int32))))
axis_index_p.batch = lambda axis, args, dims, *, axis_name: (iota(dtypes.int32, (axis.size,), 0), 0)
axis_index_p.reference = unsupported(_OUTSIDE)

all_gather_p = Primitive("all_gather")


def _all_gather_abstract(x, *, axis_name, all_gather_dimension, axis_size, tiled, axis_index_groups):
    d = all_gather_dimension
    if tiled:
        return shaped((*x.shape[:d], x.shape[d] * axis_size, *x.shape[d + 1:]), x.dtype, x.weak_type)
    return shaped((*x.shape[:d], axis_size, *x.shape[d:]), x.dtype, x.weak_type)


def _all_gather_batch(axis, args, dims, *, axis_name, all_gather_dimension, axis_size, tiled, axis_index_groups):
    (x,), (dim,) = args, dims
    names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    if len(names) > 1:
        raise type_error("all_gather over several axes at once under vmap: gather them one after another.")
    if axis.name not in names:
        out = all_gather_p.bind(moveaxis(x, dim, 0), axis_name=axis_name, all_gather_dimension=all_gather_dimension + 1, axis_size=axis_size,
                                tiled=tiled, axis_index_groups=axis_index_groups)
        return out, 0
    shape = shape_of(x)
    if dim is None:
        d = all_gather_dimension
        kept = tuple(i + (i >= d) for i in range(len(shape)))
        x, dim = broadcast_in_dim(x, (*shape[:d], axis_size, *shape[d:]), kept), d
    x = moveaxis(x, dim, all_gather_dimension)
    if tiled:
        d, shape = all_gather_dimension, shape_of(x)
        x = _reshape(x, (*shape[:d], shape[d] * shape[d + 1], *shape[d + 2:]))
    return x, None


def _all_gather_jvp(primals, tangents, **params):
    out = all_gather_p.bind(*primals, **params)
    (t,) = tangents
    return out, Zero(tangent_aval(get_aval(out))) if type(t) is Zero else all_gather_p.bind(t, **params)


all_gather_p.abstract, all_gather_p.batch, all_gather_p.jvp = _all_gather_abstract, _all_gather_batch, _all_gather_jvp
all_gather_p.axis_names = lambda params: params["axis_name"] if isinstance(params["axis_name"], tuple) else (params["axis_name"],)
all_gather_p.reference = unsupported(_OUTSIDE)

ppermute_p = Primitive("ppermute")
ppermute_p.abstract = lambda x, *, axis_name, perm: x
ppermute_p.axis_names = lambda params: (params["axis_name"],)
ppermute_p.reference = unsupported(_OUTSIDE)


def _ppermute_batch(axis, args, dims, *, axis_name, perm):
    (x,), (dim,) = args, dims
    if axis.name != axis_name:
        return ppermute_p.bind(x, axis_name=axis_name, perm=perm), dim
    if dim is None:
        x = broadcast_in_dim(x, (axis.size, *shape_of(x)), tuple(range(1, len(shape_of(x)) + 1)))
    else:
        x = moveaxis(x, dim, 0)
    source = {dst: src for src, dst in perm}
    zero = full((1, *shape_of(x)[1:]), 0, get_aval(x).dtype)
    row = lambda i: _slice(x, (i,) + (0,) * (len(shape_of(x)) - 1), (i + 1, *shape_of(x)[1:]))
    return _concatenate([row(source[i]) if i in source else zero for i in range(axis.size)], 0), 0


def _ppermute_jvp(primals, tangents, **params):
    out = ppermute_p.bind(*primals, **params)
    (t,) = tangents
    return out, Zero(tangent_aval(get_aval(out))) if type(t) is Zero else ppermute_p.bind(t, **params)


ppermute_p.batch, ppermute_p.jvp = _ppermute_batch, _ppermute_jvp
ppermute_p.transpose = lambda ct, x, *, axis_name, perm: [ppermute_p.bind(ct, axis_name=axis_name, perm=tuple((b, a) for a, b in perm))]


def _all_gather_transpose(ct, x, *, axis_name, all_gather_dimension, axis_size, tiled, axis_index_groups):
    """Every member sums all cotangents and keeps its own part."""
    total = psum_p.bind(ct, axes=(axis_name,) if not isinstance(axis_name, tuple) else axis_name, axis_index_groups=None)[0]
    index = axis_index_p.bind(axis_name=axis_name)
    shape, d = x.aval.shape, all_gather_dimension
    size = shape[d] if tiled else 1
    starts = [full((), 0, dtypes.int32)] * len(shape_of(total))
    starts[d] = _mul(index, full((), size, dtypes.int32))
    sizes = (*shape_of(total)[:d], size, *shape_of(total)[d + 1:])
    return [_reshape(_dynamic_slice_p.bind(total, *starts, slice_sizes=sizes), shape)]


all_gather_p.transpose = _all_gather_transpose


# which axes are in scope decides whether there is a result at all
for _p in (psum_p, pmax_p, pmin_p, axis_index_p, all_gather_p, ppermute_p):
    _p.cache = None


def axis_size(names) -> int:
    """The product of the sizes of named axes."""
    return math.prod(axis_size_of(n) for n in (names if isinstance(names, tuple) else (names,)))
