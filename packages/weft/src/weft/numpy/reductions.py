"""Reductions of `weft.numpy`: sum, max, mean, var, cumsum, argmax, … and those that ignore NaN."""
from __future__ import annotations

import math
from typing import Any, Callable, Literal, overload

from .. import dtypes
from ..runtime.jit import inner_jit
from ..core.trace import get_aval
from ..errors import type_error
from ..lax.collectives import axis_size, pmax, pmin, psum
from ..ops import elementwise as el
from ..ops import linear
from ..ops import reduce as ops
from ..ops.rules import dtype_of, scalar_like, shape_of
from ..ops.shape import concatenate
from ..typing import Array, ArrayLike, Axis, DTypeLike
from .ufuncs import where_jit
from .util import accumulator, asked_dtype, canonical_axes, canonical_axis, index_dtype, inexact_dtype, no_out, on_device, operand, promote_inexact, size_along, split_names, strong, to_bool


def _keep(x, axes, keepdims: bool):
    return linear.expand_dims(x, axes) if keepdims and axes else x


def _mask(where):
    where = operand("where", where)
    if not dtypes.is_bool(get_aval(where).dtype):
        raise ValueError(f"where must be None or booleans, got {get_aval(where)}; compare, or convert it with astype(bool).")
    return where


def _initial(name: str, initial, dt):
    initial = operand(name, initial)
    if shape_of(initial):
        raise ValueError(f"{name}: initial must be a scalar, got {get_aval(initial)}.")
    return linear.convert(initial, dt)


def _masked(x, where, identity):
    """`x` with `identity` where the mask is false."""
    if where is None:
        return x
    return where_jit(_mask(where), x, scalar_like(x, identity))


def _document(function, name: str, text: str, result: str = ""):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text} over `axis` (None: all axes, an int, or a tuple of ints); `keepdims` keeps reduced axes with size 1.\n\n" \
        f"    Only elements where `where` is true count. {result}\n\n    Raises:\n        ValueError: for an axis out of bounds.\n\n" \
        f"    Example:\n        >>> import weft.numpy as jnp\n        >>> y = jnp.{name}(jnp.array([[3, 1], [2, 5]]), axis=0)\n    "
    return function


def _sum_like(name: str, text: str, op: Callable, identity: int, join: Callable, across: Callable | None):
    def function(a, axis=None, dtype: Any = None, out=None, keepdims: bool = False, initial=None, where=None, promote_integers: bool = True):
        no_out(name, out)
        x = operand(name, a)
        aval = get_aval(x)
        axis, names = split_names(axis)
        if names and across is None:
            raise NotImplementedError(f"{name} is not computed over named axes ({', '.join(names)}); gather them first, with weft.lax.all_gather.")
        axes = canonical_axes(axis, len(aval.shape))
        dt = asked_dtype(name, dtype)
        if dt is None:
            dt = accumulator(aval.dtype) if promote_integers or dtypes.is_bool(aval.dtype) else aval.dtype
        x = linear.convert(_masked(x, where, identity) if not dtypes.is_bool(aval.dtype) or where is None else
                           _masked(linear.convert(x, dt), where, identity), dt)
        narrow = dtypes.is_float(dt) and dtypes.bits(dt) < 32
        out_ = op(linear.convert(x, dtypes.float32) if narrow else x, axes) if axes else x
        out_ = across(out_, names) if across is not None and names else out_
        out_ = linear.convert(out_, dt) if narrow else out_
        if initial is not None:
            out_ = join(out_, _initial(name, initial, dt))
        return on_device(_keep(out_, axes, keepdims))
    return _document(function, name, text, "Booleans and integers are added up as the widest integers that are on (32 bits, or 64).")


sum = _sum_like("sum", "The sum", linear.reduce_sum, 0, el.add, psum)
prod = _sum_like("prod", "The product", ops.reduce_prod, 1, el.mul, None)


def _extremum(name: str, text: str, op: Callable, sign: int, join: Callable, across: Callable):
    def function(a, axis=None, out=None, keepdims: bool = False, initial=None, where=None):
        no_out(name, out)
        x = operand(name, a)
        aval = get_aval(x)
        axis, names = split_names(axis)
        axes = canonical_axes(axis, len(aval.shape))
        if where is not None and initial is None:
            raise ValueError(f"{name} with a mask needs `initial`, the value where the mask leaves nothing.")
        if initial is None and size_along(aval.shape, axes) == 0:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity.")
        x = _masked(x, where, ops._limit(aval.dtype, sign))
        out_ = linear.convert(op(x, axes) if axes else x, aval.dtype)
        out_ = across(out_, names) if names else out_
        if initial is not None:
            out_ = join(out_, _initial(name, initial, aval.dtype))
        return on_device(_keep(out_, axes, keepdims))
    return _document(function, name, text, "An empty array needs `initial`.")


max = _extremum("max", "The maximum", ops.reduce_max, -1, el.max_, pmax)
min = _extremum("min", "The minimum", ops.reduce_min, 1, el.min_, pmin)
amax, amin = max, min


def _truth(name: str, text: str, op: Callable, identity: bool):
    def function(a, axis=None, out=None, keepdims: bool = False, *, where=None):
        no_out(name, out)
        x = to_bool(name, a)
        axes = canonical_axes(axis, len(shape_of(x)))
        x = _masked(x, where, identity)
        return on_device(strong(_keep(op(x, axes) if axes else x, axes, keepdims)))
    return _document(function, name, text)


all = _truth("all", "Whether all elements are true (not zero)", ops.reduce_and, True)
any = _truth("any", "Whether some element is true (not zero)", ops.reduce_or, False)


def _count(shape, axes, where, dt, names=()):
    """How many elements are reduced: None where there is no mask to say which."""
    if where is None:
        return None
    return _across(linear.reduce_sum(linear.broadcast_in_dim(*_fit(linear.convert(_mask(where), dt), shape)), axes), names)


def _across(x, names):
    """The sum over named axes."""
    return psum(x, names) if names else x


def _size(shape, axes, names):
    return size_along(shape, axes) * (axis_size(names) if names else 1)


def _fit(x, shape):
    mine = shape_of(x)
    return x, shape, tuple(range(len(shape) - len(mine), len(shape)))


def mean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, *,
         where: ArrayLike | None = None) -> Array:
    """The mean over `axis`; integers give floats.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.mean(jnp.array([[1, 3], [2, 6]]), axis=1)
        Array([2., 4.], dtype=float32)
    """
    no_out("mean", out)
    x = operand("mean", a)
    aval = get_aval(x)
    dt = asked_dtype("mean", dtype)
    if dt is None:
        dt = inexact_dtype(aval.dtype)
    computed = dtypes.float32 if dtypes.is_float(dt) and dtypes.bits(dt) < 32 else dt
    axis, names = split_names(axis)
    axes = canonical_axes(axis, len(aval.shape))
    x = linear.convert(x, computed)
    count = _count(aval.shape, axes, where, computed, names)
    total = _keep(_across(linear.reduce_sum(_masked(x, where, 0), axes), names), axes, keepdims)
    n = _size(aval.shape, axes, names)
    out_ = el.div(total, scalar_like(total, n) if count is None else _keep(count, axes, keepdims))
    return on_device(linear.convert(out_, dt))


@overload
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: Literal[False] = False,
            keepdims: bool = False) -> Array: ...
@overload
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, *, returned: Literal[True],
            keepdims: bool = False) -> tuple[Array, Array]: ...
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False,
            keepdims: bool = False) -> Array | tuple[Array, Array]:
    """The mean, weighted by `weights` (of the shape of `a`, or of its axis).

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.average(jnp.array([1., 3.]), weights=jnp.array([3., 1.])))
        1.5
    """
    if weights is None:
        out = mean(a, axis, keepdims=keepdims)
        n = size_along(shape_of(a), canonical_axes(axis, len(shape_of(a))))
        return (out, linear.full(shape_of(out), n, dtype_of(out))) if returned else out
    x, w = promote_inexact("average", a, weights)
    if shape_of(w) != shape_of(x):
        if axis is None or isinstance(axis, (tuple, list)) or len(shape_of(w)) != 1:
            raise ValueError(f"average: weights of shape {shape_of(w)} need an axis, or the shape {shape_of(x)} of the array.")
        d = canonical_axis(axis, len(shape_of(x)))
        if shape_of(x)[d] != shape_of(w)[0]:
            raise ValueError(f"average: {shape_of(w)[0]} weights for an axis of size {shape_of(x)[d]}.")
        w = linear.broadcast_in_dim(w, shape_of(x), (d,))
    total = sum(w, axis, keepdims=keepdims)
    out = el.div(sum(el.mul(x, w), axis, keepdims=keepdims), total)
    return (out, total) if returned else out


@inner_jit(name="_var", static_argnames=("axes", "dtype", "keepdims", "names"))
def _var(x, ddof, where=None, center=None, *, axes, dtype, keepdims, names=()):
    aval = get_aval(x)
    computed = dtypes.float32 if dtypes.is_float(dtype) and dtypes.bits(dtype) < 32 else dtype
    if not (dtypes.is_complex(aval.dtype) and not dtypes.is_complex(computed)):
        x = linear.convert(x, computed)
    center = mean(x, (*axes, *names), keepdims=True, where=where) if center is None else linear.convert(center, dtype_of(x))
    centered = el.sub(x, center)
    squares = el.real(el.mul(centered, el.conj(centered))) if dtypes.is_complex(dtype_of(centered)) else el.square(centered)
    real = dtype_of(squares)
    count = _count(aval.shape, axes, where, real, names)
    ddof = linear.convert(ddof, real)
    n = linear.convert(_size(aval.shape, axes, names), real) if count is None else count
    norm = el.sub(n, ddof)
    out = el.div(_across(linear.reduce_sum(_masked(squares, where, 0), axes), names), norm)
    out = where_jit(el.gt(norm, scalar_like(norm, 0)), out, math.nan)
    return linear.convert(_keep(out, axes, keepdims), dtypes.real_of(dtype) if dtypes.is_complex(dtype) else dtype)


def _var_arguments(name, a, axis, dtype, ddof, correction):
    x = operand(name, a)
    aval = get_aval(x)
    dt = asked_dtype(name, dtype)
    if dt is None:
        dt = inexact_dtype(aval.dtype)
    elif not dtypes.is_inexact(dt):
        raise ValueError(f"{name}: dtype must be a float or complex one, got {dtypes.name(dt)}.")
    elif dtypes.is_complex(aval.dtype) and not dtypes.is_complex(dt):
        raise ValueError(f"{name} of complex numbers is not computed in {dtypes.name(dt)}; take it of their real and imaginary parts.")
    if correction is not None:
        if not isinstance(ddof, int) or ddof:
            raise ValueError(f"{name}: give ddof or correction, not both.")
        ddof = correction
    axis, names = split_names(axis)
    return x, canonical_axes(axis, len(aval.shape)), names, dt, ddof


def _center(name: str, mean):
    """A mean that is known already, with the reduced axes of size 1."""
    return None if mean is None else operand(name, mean)


def var(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
        correction: int | float | None = None) -> Array:
    """The variance over `axis`: the mean of |x - mean|², divided by n - ddof. A `mean` that is known has the reduced axes with size 1.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.var(jnp.array([1., 3.]))
        Array(1., dtype=float32)
    """
    no_out("var", out)
    x, axes, names, dt, ddof = _var_arguments("var", a, axis, dtype, ddof, correction)
    out_ = _var(x, ddof, where, _center("var", mean), axes=axes, dtype=dt, keepdims=bool(keepdims), names=names)
    return out_ if dtype is None else linear.convert(out_, dt)


@inner_jit(name="_std", static_argnames=("axes", "dtype", "keepdims", "names"))
def _std(x, ddof, where=None, center=None, *, axes, dtype, keepdims, names=()):
    return el.sqrt(_var(x, ddof, where, center, axes=axes, dtype=dtype, keepdims=keepdims, names=names))


def std(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
        correction: int | float | None = None) -> Array:
    """The standard deviation over `axis`: the square root of `var`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.std(jnp.array([1., 3.]))
        Array(1., dtype=float32)
    """
    no_out("std", out)
    x, axes, names, dt, ddof = _var_arguments("std", a, axis, dtype, ddof, correction)
    out_ = _std(x, ddof, where, _center("std", mean), axes=axes, dtype=dt, keepdims=bool(keepdims), names=names)
    return out_ if dtype is None else linear.convert(out_, dt)


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Maximum minus minimum over `axis`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ptp(jnp.array([1, 5, 3]))
        Array(4, dtype=int32)
    """
    no_out("ptp", out)
    return el.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements are not zero.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.count_nonzero(jnp.array([1, 0, 3]))
        Array(2, dtype=int32)
    """
    return sum(to_bool("count_nonzero", a), axis, dtype=index_dtype(), keepdims=keepdims)


def _cumulative(name: str, text: str, primitive, identity: int, nan: bool = False):
    @inner_jit(name=name, static_argnums=(1, 2))
    def run(x, axis, dt):
        if nan and dtypes.is_inexact(dtype_of(x)):
            x = where_jit(el.ne(x, x), scalar_like(x, identity), x)
        x = linear.convert(x, dt)
        return primitive.bind(x, axis=axis, reverse=False)

    def function(a, axis: int | None = None, dtype: Any = None, out=None):
        no_out(name, out)
        x = operand(name, a)
        dt = asked_dtype(name, dtype)
        if dt is None:
            dt = get_aval(x).dtype if not dtypes.is_bool(get_aval(x).dtype) else dtypes.canonicalize(int)
        if axis is None:
            x, axis = linear.reshape(x, (math.prod(shape_of(x)),)), 0
        if dtypes.is_bool(dt):      # whether the sums (or products) of so many truths are none
            return to_bool(name, run(to_bool(name, x), canonical_axis(axis, len(shape_of(x))), dtypes.int32))
        return run(x, canonical_axis(axis, len(shape_of(x))), dt)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The running {text} along `axis` (None: of the flattened array).\n\n    Example:\n        >>> import weft.numpy as jnp\n" \
        f"        >>> y = jnp.{name}(jnp.array([1, 2, 3]))\n    "
    return function


cumsum = _cumulative("cumsum", "sum", ops.cumsum_p, 0)
cumprod = _cumulative("cumprod", "product", ops.cumprod_p, 1)
nancumsum = _cumulative("nancumsum", "sum, NaN counting as 0,", ops.cumsum_p, 0, True)
nancumprod = _cumulative("nancumprod", "product, NaN counting as 1,", ops.cumprod_p, 1, True)


def _cumulative_with_initial(name: str, base: Callable, identity: int):
    def function(x, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False):
        x = operand(name, x)
        rank = len(shape_of(x))
        if rank == 0:
            raise ValueError(f"{name} takes arrays of rank 1 or more, got a scalar.")
        if axis is None:
            if rank != 1:
                raise ValueError(f"{name} needs an axis for an array of rank {rank}.")
            axis = 0
        axis = canonical_axis(axis, rank)
        if dtype is None and name == "cumulative_sum":      # the standard asks it of the product too, but JAX does not do it
            dtype = accumulator(dtype_of(x))
        out = base(x, axis, dtype)
        if not include_initial:
            return out
        shape = tuple(1 if d == axis else n for d, n in enumerate(shape_of(out)))
        return concatenate([linear.full(shape, identity, dtype_of(out)), out], axis)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{base.__name__}` with the array API's signature; `include_initial` puts the identity in front.\n\n    Example:\n" \
        f"        >>> import weft.numpy as jnp\n        >>> y = jnp.{name}(jnp.array([1, 2]), include_initial=True)\n    "
    return function


cumulative_sum = _cumulative_with_initial("cumulative_sum", cumsum, 0)
cumulative_prod = _cumulative_with_initial("cumulative_prod", cumprod, 1)


def _arg(name: str, text: str, op: Callable):
    def run(x, axis, keepdims):
        shape = shape_of(x)
        if axis is None:
            out = op(linear.reshape(x, (math.prod(shape),)), 0, index_dtype())
            return linear.reshape(out, (1,) * len(shape)) if keepdims else out
        out = op(x, axis, index_dtype())
        return linear.expand_dims(out, (axis,)) if keepdims else out

    def function(a, axis: int | None = None, out=None, keepdims: bool | None = None):
        no_out(name, out)
        x = operand(name, a)
        aval = get_aval(x)
        axis = None if axis is None else canonical_axis(axis, len(aval.shape))
        if (aval.size if axis is None else aval.shape[axis]) == 0:
            raise ValueError(f"attempt to get {name} of an empty sequence.")
        if dtypes.is_complex(aval.dtype):
            raise type_error(f"{name} does not take complex numbers, got {aval}; use it of their real parts, imaginary parts, or absolute values.")
        return run(x, axis, bool(keepdims))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text} along `axis` (None: in the flattened array).\n\n    Raises:\n        ValueError: for an empty array.\n\n" \
        f"    Example:\n        >>> import weft.numpy as jnp\n        >>> y = jnp.{name}(jnp.array([1., 5., 3.]))\n    "
    return function


argmax = _arg("argmax", "The index of the first maximum (NaN counts as one)", ops.argmax)
argmin = _arg("argmin", "The index of the first minimum (NaN counts as one)", ops.argmin)


def _nan_last(sign: int):
    def prepare(x):
        return where_jit(el.ne(x, x), scalar_like(x, sign * math.inf), x) if dtypes.is_float(dtype_of(x)) else x
    return prepare


def _nanarg(name: str, base: Callable, sign: int):
    prepare = _nan_last(sign)

    def function(a, axis: int | None = None, out=None, keepdims: bool | None = None):
        x = operand(name, a)
        found = base(prepare(x), axis, out, keepdims)
        if not dtypes.is_float(get_aval(x).dtype):
            return found
        nothing = all(el.ne(x, x), axis, keepdims=bool(keepdims))
        return where_jit(nothing, scalar_like(found, -1), found)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{base.__name__}` ignoring NaN; -1 where there is nothing else.\n\n    Example:\n        >>> import weft.numpy as jnp\n" \
        f"        >>> y = jnp.{name}(jnp.array([jnp.nan, 5., 3.]))\n    "
    return function


nanargmax = _nanarg("nanargmax", argmax, -1)
nanargmin = _nanarg("nanargmin", argmin, 1)


def _nan_reduction(name: str, base: Callable, identity):
    def function(a, axis=None, dtype: Any = None, out=None, keepdims: bool = False, initial=None, where=None):
        x = operand(name, a)
        if dtypes.is_inexact(get_aval(x).dtype):
            x = where_jit(el.ne(x, x), scalar_like(x, identity), x)
        return base(x, axis, dtype, out, keepdims, initial, where)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{base.__name__}` with NaN counting as {identity}.\n\n    Example:\n        >>> import weft.numpy as jnp\n" \
        f"        >>> y = jnp.{name}(jnp.array([jnp.nan, 5., 3.]))\n    "
    return function


nansum, nanprod = _nan_reduction("nansum", sum, 0), _nan_reduction("nanprod", prod, 1)


def _nan_extremum(name: str, base: Callable, sign: int):
    def function(a, axis=None, out=None, keepdims: bool = False, initial=None, where=None):
        x = operand(name, a)
        if not dtypes.is_inexact(get_aval(x).dtype):
            return base(x, axis, out, keepdims, initial, where)
        result = base(where_jit(el.ne(x, x), scalar_like(x, sign * math.inf), x), axis, out, keepdims, initial, where)
        nothing = all(el.ne(x, x), axis, keepdims=keepdims)
        return result if initial is not None else where_jit(nothing, scalar_like(result, math.nan), result)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{base.__name__}` ignoring NaN; NaN where there is nothing else.\n\n    Example:\n        >>> import weft.numpy as jnp\n" \
        f"        >>> y = jnp.{name}(jnp.array([jnp.nan, 5., 3.]))\n    "
    return function


nanmax, nanmin = _nan_extremum("nanmax", max, -1), _nan_extremum("nanmin", min, 1)


def _not_nan(x, where):
    good = el.eq(x, x)
    return good if where is None else el.and_(*[linear.broadcast_in_dim(*_fit(v, shape_of(x))) for v in (good, _mask(where))])


def nanmean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
            where: ArrayLike | None = None) -> Array:
    """The mean ignoring NaN.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.nanmean(jnp.array([jnp.nan, 5., 3.])))
        4.0
    """
    x = operand("nanmean", a)
    if not dtypes.is_inexact(get_aval(x).dtype):
        return mean(x, axis, dtype, out, keepdims, where=where)
    return mean(x, axis, dtype, out, keepdims, where=_not_nan(x, where))


def nanvar(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
           keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:
    """The variance ignoring NaN.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.nanvar(jnp.array([jnp.nan, 5., 3.])))
        1.0
    """
    x = operand("nanvar", a)
    return var(x, axis, dtype, out, ddof, keepdims, where=_not_nan(x, where) if dtypes.is_inexact(get_aval(x).dtype) else where, mean=mean)


def nanstd(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
           keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:
    """The standard deviation ignoring NaN.

    Example:
        >>> import weft.numpy as jnp
        >>> float(jnp.nanstd(jnp.array([jnp.nan, 5., 3.])))
        1.0
    """
    return el.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))

