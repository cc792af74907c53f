"""Functions that make arrays: array, asarray, zeros, full, eye, from_dlpack, …"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base import dtypes, limits, promotion
from ..base.avals import array_aval, shaped
from ..core.jaxpr import TypedScalar
from ..core.shardings import placed_of
from ..core.trace import Tracer, aval_of, get_aval, is_array, is_array_like
from ..base.errors import at_user_line
from ..base.host import from_bytes, from_flat, has_numpy, is_host_array, late, np, require_numpy
from ..lax.shape import filled
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.random_bits import random_seed_p, random_unwrap_p, random_wrap_p
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import concatenate, iota
from ..runtime import dispatch
from ..runtime.array import KeyArray
from ..transforms.auto_axes import named_sharding
from ..typing import Array, ArrayLike, DTypeLike, Nested, OutSharding, Placement, ShapeLike, SizeLike
from .util import (
    asked_dtype,
    broadcast_to,
    canonical_shape,
    float_dtype,
    laid_out,
    on_device,
    operand,
    static_int,
    static_size,
)

if TYPE_CHECKING:
    from ..core.types import Value
    from ..base.dtypes import ElementType
    from typing_extensions import Buffer

__all__ = [
    "array",
    "asarray",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "frombuffer",
    "full",
    "full_like",
    "identity",
    "ones",
    "ones_like",
    "tri",
    "zeros",
    "zeros_like",
]
_FORMATS = {
    "?": "bool",
    "b": "int8",
    "B": "uint8",
    "h": "int16",
    "H": "uint16",
    "i": "int32",
    "I": "uint32",
    "l": "int64",
    "L": "uint64",
    "q": "int64",
    "Q": "uint64",
    "e": "float16",
    "f": "float32",
    "d": "float64",
}


def _check_int(value: int, dt: ElementType) -> None:
    info = limits.iinfo(dt)
    if not int(info.min) <= value <= int(info.max):
        raise OverflowError(f"Python integer {value} is out of bounds for {dtypes.name(dt)}.")


def _scalar(value: Value, dt: ElementType, device: Placement) -> Value:
    weak = dt is None and type(value) is not bool
    dt = dtypes.python_scalar_dtype(value) if dt is None else dt
    if type(value) is int and dtypes.is_int(dt):
        _check_int(value, dt)
    value = _real(value, dt) if type(value) is complex else value
    return dispatch.put(TypedScalar(_round(value, dt), shaped((), dt, weak)), shaped((), dt, weak), device)


def _real(value: complex, dt: ElementType) -> Any:
    """A complex number where it is one, or a truth; TypeError for other dtypes."""
    if not dtypes.is_complex(dt) and not dtypes.is_bool(dt):
        raise TypeError(f"the complex number {value} can't become a {dtypes.name(dt)}; give its real part.")
    return value != 0 if dtypes.is_bool(dt) else value


def _round(value: Value, dt: ElementType) -> Any:
    if dtypes.is_int(dt) and isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            raise ValueError(f"cannot convert {value} to {dtypes.name(dt)}.")
        return int(value)
    return value


def _is_array(x: Value) -> bool:
    return bool(getattr(x, "shape", ()))


def _shape_of_nested(x: Value) -> tuple[Any, ...]:
    """The shape of nested sequences; ValueError if they are ragged."""
    if isinstance(x, (list, tuple)):
        shapes = {_shape_of_nested(item) for item in x}
        if len(shapes) > 1:
            raise (TypeError if any(map(_is_array, x)) else ValueError)(
                f"the elements of a nested list have different shapes: {', '.join(map(str, sorted(shapes)))}. "
                "All rows of an array have one length."
            )
        return (len(x), *(shapes.pop() if shapes else ()))
    return tuple(getattr(x, "shape", ()))


def _leaves(x: Value, out: list[Any]) -> list[Any]:
    if isinstance(x, (list, tuple)):
        for item in x:
            _leaves(item, out)
    else:
        out.append(x)
    return out


def _number(x: Value) -> Any:
    """A leaf as a Python number: NumPy's scalars are unwrapped."""
    return x if dtypes.is_python_scalar(x) else x.item()


def _from_list(x: Value, dt: ElementType, device: Placement) -> Value:
    leaves = [leaf.__jax_array__() if hasattr(leaf, "__jax_array__") else leaf for leaf in _leaves(x, [])]
    for leaf in leaves:
        if leaf is None:
            raise ValueError("None is not a valid element of an array.")
        if not (
            isinstance(leaf, Tracer) or type(leaf) in aval_of or any(b in aval_of for b in type(leaf).__mro__[:-1])
        ):
            if hasattr(leaf, "__array__") or isinstance(leaf, range):
                return array(require_numpy("an array of such elements").asarray(x), dt, device=device)
            raise TypeError(f"a value of type {type(leaf).__name__} ({leaf!r}) can't be an element of an array.")
    shape = _shape_of_nested(x)
    if dt is None:
        dt = (
            promotion.promote(*[(a.dtype, a.weak_type) for a in {get_aval(v) for v in leaves}])[0]
            if leaves
            else float_dtype()
        )
        if (
            leaves
            and all(has_numpy and isinstance(v, np.generic) or dtypes.is_python_scalar(v) for v in leaves)
            and any(has_numpy and isinstance(v, np.generic) for v in leaves)
        ):
            dt = dtypes.canonicalize(np.asarray(x).dtype)
    host = all(dtypes.is_python_scalar(v) or is_host_array(v) and not v.shape for v in leaves)
    if host and not dtypes.is_key(dt):
        values = [_number(v) for v in leaves]
        if dtypes.is_int(dt):
            for v in values:
                if type(v) is int and dtypes.bits(dt) >= 8:
                    _check_int(v, dt)
            values = [_round(v, dt) for v in values]
        elif not dtypes.is_complex(dt):
            values = [(v != 0 if dtypes.is_bool(dt) else v.real) if type(v) is complex else v for v in values]
        return dispatch.put(from_flat(values, shape, dt), shaped(shape, dt), device)
    return _stack(
        [
            (
                linear.convert(v, dt)
                if dtypes.is_python_scalar(v) and not dtypes.is_key(dt)
                else asarray(v, dt, device=device)
            )
            for v in x
        ]
    )


def _stack(rows: list[Any]) -> Value:
    return concatenate([linear.expand_dims(r, (0,)) for r in rows], 0)


def _from_buffer(view: memoryview, dt: ElementType, device: Placement) -> Value:
    name = _FORMATS.get(view.format.lstrip("<=@"))
    if name is None:
        raise TypeError(f"a buffer of format {view.format!r} can't become an array.")
    host = from_bytes(bytes(view), tuple(view.shape or ()), dtypes.dtype(name))
    return array(host, dt, device=device)


def array(
    object: Nested,
    dtype: DTypeLike | None = None,
    *args: object,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of numbers, (nested) sequences of numbers or arrays, a NumPy array, or a buffer.

    Without `dtype`, Python numbers get the default dtypes (int32, float32) and a lone number is weakly typed.

    Args:
        object: number, array, or nested sequences of them, of any dtype and shape.
        dtype: dtype of the result; None for that to which the elements promote.
        *args: `copy`, `order` and `ndmin` by position, as NumPy takes them.
        copy: bool: make a copy even where none is needed.
        order: memory order by NumPy's letter; it does not change the values.
        ndmin: int, the least rank; axes of size 1 come first.
        device: device or sharding: where the result lies; None for the default device.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and the shape of the nesting.

    Raises:
        TypeError: for values that are not numbers. ValueError: for ragged lists and None. OverflowError: for an int
            that does not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.array([1, 2.5])
        Array([1. , 2.5], dtype=float32)
    """
    if args:  # copy, order and ndmin may still be given by position
        if len(args) > 3:
            raise TypeError(f"array takes from 1 to 5 positional arguments, got {2 + len(args)}.")
        by_position: list[Any] = [*args, *(copy, order, ndmin)[len(args) :]]
        copy, order, ndmin = by_position
    if out_sharding is not None:
        return laid_out(
            "array", lambda: array(object, dtype, copy=copy, order=order, ndmin=ndmin), out_sharding, device
        )
    if order not in (None, "K", "C"):
        raise NotImplementedError("weft.numpy.array: arrays are row-major; order takes None, 'K' or 'C'.")
    dt = asked_dtype("array", dtype)
    out = _array(object, dt, copy, device)
    missing = ndmin - len(shape_of(out))
    return linear.expand_dims(out, tuple(range(missing))) if missing > 0 else out


def _array(x: Value, dt: ElementType, copy: bool, device: Placement) -> Value:
    if hasattr(x, "__jax_array__"):
        x = x.__jax_array__()
    if dtypes.is_python_scalar(x):
        return _scalar(x, dt, device)
    if x is None:
        raise ValueError("None is not a valid value for weft.numpy.array.")
    if isinstance(x, (list, tuple, range)):
        return _from_list(list(x) if isinstance(x, range) else x, dt, device)
    if isinstance(x, (str, bytes)):
        raise TypeError(f"a value of type {type(x).__name__} ({x!r}) is not numeric, so it can't become an array.")
    if is_host_array(x):
        have = dtypes.float0 if x.dtype == dtypes.float0 else _host_dtype(x)
        aval = shaped(tuple(x.shape), dtypes.canonicalize(have) if dt is None else dt)
        if dtypes.is_complex(have) and not dtypes.is_complex(aval.dtype):
            x = x != 0 if dtypes.is_bool(aval.dtype) else x.real
        return dispatch.put(x, aval, device)
    if isinstance(x, Tracer) or type(x) in aval_of:
        return _from_array(x, dt, copy, device)
    if hasattr(x, "__array__") and (has_numpy or late):
        return _array(require_numpy("conversion of an object with __array__").asarray(x), dt, copy, device)
    if any(base in aval_of for base in type(x).__mro__[:-1]):  # a subclass of int or float
        bases: tuple[Any, ...] = (bool, int, float, complex)
        return _array(next(base(x) for base in bases if isinstance(x, base)), dt, copy, device)
    try:
        view = memoryview(x)
    except TypeError:
        raise TypeError(f"a value of type {type(x).__name__} can't become an array: {str(x)[:80]}.") from None
    return _from_buffer(view, dt, device)


def _host_dtype(x: Value) -> ElementType:
    try:
        return dtypes.dtype(x.dtype)
    except TypeError:
        raise TypeError(
            f"a NumPy array of dtype {x.dtype} can't become an array: only booleans and numbers can."
        ) from None


def _from_array(x: Value, dt: ElementType, copy: bool, device: Placement) -> Value:
    aval = get_aval(x)
    if type(x) is TypedScalar:
        x = on_device(x)
    if device is not None and not isinstance(x, Tracer) and not isinstance(x, KeyArray):
        return dispatch.put(
            x._host(), aval if dt is None else array_aval(aval).update(dtype=dt, weak_type=False), device
        )
    if dt is None or dt == aval.dtype:
        out = x if dt is None or not aval.weak_type else linear.convert(x, aval.dtype)
        return linear.copy_p.bind(out) if copy and out is x else out
    if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(dt):
        x = el.ne(x, scalar_like(x, 0)) if dtypes.is_bool(dt) else el.real(x)
    return linear.convert(x, dt)


def asarray(
    a: Nested,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """`a` as an array, without a copy where it is one already.

    Args:
        a: number, array, or nested sequences of them, of any dtype and shape.
        dtype: dtype of the result; None for that of a.
        order: memory order by NumPy's letter; it does not change the values.
        copy: bool: make a copy even where none is needed.
        device: device or sharding: where the result lies; None for the default device.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and the shape of a.

    Raises:
        as `array` does.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.asarray([1, 2])
        Array([1, 2], dtype=int32)
    """
    if isinstance(a, Tracer) and dtype is None and not copy:
        return on_device(a)
    return array(a, dtype, copy=bool(copy), order=order, device=device, out_sharding=out_sharding)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of an array.

    Args:
        a: array of any dtype, any shape.
        order: memory order by NumPy's letter; it does not change the values.

    Returns:
        array of the dtype and shape of a.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.copy(jnp.ones(2))
        Array([1., 1.], dtype=float32)
    """
    return array(operand("copy", a), copy=True, order=order)


def placed(out: Any, device: Placement) -> Array:
    """A new array on the device that was asked for; inside a program, where the program runs."""
    return out if device is None or isinstance(out, Tracer) else dispatch.move(out, device)


def _full(
    name: str,
    shape: Any,
    value: Value,
    dtype: ElementType,
    device: Placement,
    out_sharding: OutSharding = None,
) -> Value:
    if out_sharding is not None:
        where = named_sharding(name, out_sharding)
        make = lambda: _full(name, shape, value, dtype, device)
        if not where.mesh.typed_axes or shape_of(operand(name, value, any_int=True)) or device is not None:
            return laid_out(name, make, out_sharding, device)
    else:
        where = None
    dt = asked_dtype(name, dtype)
    shape = canonical_shape(shape)
    if dt is not None and dtypes.is_key(dt) and type(value) is int and value == 0:  # keys whose words are zeros
        words = shape_of(random_unwrap_p.bind(random_seed_p.bind(0, impl=dt)))
        return placed(random_wrap_p.bind(linear.full((*shape, *words), 0, dtypes.uint32), impl=dt), device)
    value = operand(name, value, any_int=True)
    aval = get_aval(value)
    dt, weak = (aval.dtype, aval.weak_type) if dt is None else (dt, False)
    value = (
        _real(value, dt)
        if type(value) is complex
        else el.real(value)
        if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(dt)
        else value
    )
    if aval.shape:
        return placed(broadcast_to(linear.convert(value, dt, weak), shape), device)
    value = linear.convert(value, dt, weak)
    return filled(value, shape, device) if where is None else linear.broadcast_in_dim(value, shape, (), where)


def zeros(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Placement = None, out_sharding: OutSharding = None
) -> Array:
    """Zeros.

    Args:
        shape: int or sequence of ints.
        dtype: dtype of the result; None for float32.
        device: device or sharding: where the result lies; None for the default device.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        TypeError: if the shape is not made of concrete integers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.zeros(2)
        Array([0., 0.], dtype=float32)
    """
    return _full("zeros", shape, 0, float if dtype is None else dtype, device, out_sharding)


def ones(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Placement = None, out_sharding: OutSharding = None
) -> Array:
    """Ones.

    Args:
        shape: int or sequence of ints.
        dtype: dtype of the result; None for float32.
        device: device or sharding: where the result lies; None for the default device.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        TypeError: if the shape is not made of concrete integers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ones((1, 2))
        Array([[1., 1.]], dtype=float32)
    """
    return _full("ones", shape, 1, float if dtype is None else dtype, device, out_sharding)


def empty(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Placement = None, out_sharding: OutSharding = None
) -> Array:
    """An array whose content does not matter: zeros.

    Args:
        shape: int or sequence of ints.
        dtype: dtype of the result; None for float32.
        device: device or sharding: where the result lies; None for the default device.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.empty((2, 0)).shape
        (2, 0)
    """
    return zeros(shape, dtype, device=device, out_sharding=out_sharding)


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of one value (or of values that broadcast to `shape`).

    Args:
        shape: int or sequence of ints.
        fill_value: number or array that broadcasts to the shape.
        dtype: dtype of the result; None for that of the value.
        device: device or sharding: where the result lies; None for the default device.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        TypeError: if the shape is not made of concrete integers. ValueError: if the values do not broadcast to it.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.full((2,), 7.0, 'float32')
        Array([7., 7.], dtype=float32)
    """
    return _full("full", shape, fill_value, dtype, device, out_sharding)


def _like(
    name: str,
    a: Value,
    value: Value,
    dtype: ElementType,
    shape: Any,
    device: Placement,
    out_sharding: OutSharding = None,
) -> Value:
    if hasattr(a, "shape") and hasattr(a, "dtype"):
        have, weak, mine = a.dtype, getattr(a, "weak_type", False), a.shape
    else:
        aval = get_aval(operand(name, a))
        have, weak, mine = aval.dtype, aval.weak_type, aval.shape
    like = placed_of(get_aval(a)) if shape is None and is_array_like(a) else None
    if like is not None and out_sharding is None and device is None:
        out_sharding = a.sharding if is_array(a) else like
    shape = tuple(mine) if shape is None else canonical_shape(shape)
    if device is None and out_sharding is None and not shape_of(operand(name, value)):
        device = dispatch.place_like(a, shape)
    if dtype is None and weak and not shape_of(operand(name, value)) and out_sharding is None and device is None:
        return linear.broadcast_in_dim(linear.convert(value, dtypes.canonicalize(have), True), shape)
    return _full(name, shape, value, dtypes.canonicalize(have) if dtype is None else dtype, device, out_sharding)


def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Zeros of the shape and dtype of `a`.

    Args:
        a: array of any dtype, any shape.
        dtype: dtype of the result; None for that of the argument.
        shape: int or sequence of ints; None for the shape of a.
        device: device or sharding: where the result lies; None for the default device.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.zeros_like(jnp.ones(2))
        Array([0., 0.], dtype=float32)
    """
    return _like("zeros_like", a, 0, dtype, shape, device, out_sharding)


def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Ones of the shape and dtype of `a`.

    Args:
        a: array of any dtype, any shape.
        dtype: dtype of the result; None for that of the argument.
        shape: int or sequence of ints; None for the shape of a.
        device: device or sharding: where the result lies; None for the default device.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ones_like(jnp.zeros(2))
        Array([1., 1.], dtype=float32)
    """
    return _like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(
    prototype: ArrayLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, *, device: Placement = None
) -> Array:
    """Zeros of the shape and dtype of `prototype`.

    Args:
        prototype: array of any dtype, any shape.
        dtype: dtype of the result; None for that of the argument.
        shape: int or sequence of ints; None for the shape of the prototype.
        device: device or sharding: where the result lies; None for the default device.

    Returns:
        array of that dtype and shape.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.empty_like(jnp.zeros(2)).shape
        (2,)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of one value, of the shape and dtype of `a`.

    Args:
        a: array of any dtype, any shape.
        fill_value: number or array that broadcasts to the shape.
        dtype: dtype of the result; None for that of the argument.
        shape: int or sequence of ints; None for the shape of a.
        device: device or sharding: where the result lies; None for the default device.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.full_like(jnp.zeros(2), 3)
        Array([3., 3.], dtype=float32)
    """
    return _like("full_like", a, fill_value, dtype, shape, device, out_sharding)


def eye(
    N: SizeLike,
    M: SizeLike | None = None,
    k: int | ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
) -> Array:
    """A matrix with ones on the `k`-th diagonal.

    Args:
        N: int, the number of rows.
        M: int, the number of columns; None for N.
        k: int: how far the diagonal lies above the main one.
        dtype: dtype of the result; None for float32.
        device: device or sharding: where the result lies; None for the default device.

    Returns:
        array of that dtype and shape (N, M).

    Raises:
        ValueError: a size is negative, or `k` is not an integer.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.eye(2)
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    n, m = static_size("N", N), static_size("N" if M is None else "M", N if M is None else M)
    if n < 0 or m < 0:
        raise ValueError(f"negative dimensions are not allowed, got {n} and {m}.")
    dt = asked_dtype("eye", dtype) or float_dtype()
    k = operand("eye", k)
    if not dtypes.is_int(dtype_of(k)) or shape_of(k):
        raise ValueError(f"eye: k must be an integer, got {get_aval(k)}.")
    rows, columns = iota(dtypes.int32, (n, m), 0), iota(dtypes.int32, (n, m), 1)
    return placed(linear.convert(el.eq(el.add(rows, linear.convert(k, dtypes.int32)), columns), dt), device)


def identity(n: SizeLike, dtype: DTypeLike | None = None) -> Array:
    """The identity matrix.

    Args:
        n: int, the number of rows and of columns.
        dtype: dtype of the result; None for float32.

    Returns:
        array of that dtype and shape (n, n).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.identity(1)
        Array([[1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: SizeLike, M: SizeLike | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Ones at and below the `k`-th diagonal.

    Args:
        N: int, the number of rows.
        M: int, the number of columns; None for N.
        k: int: how far the diagonal lies above the main one.
        dtype: dtype of the result; None for float32.

    Returns:
        array of that dtype and shape (N, M).

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.tri(2)
        Array([[1., 0.],
               [1., 1.]], dtype=float32)
    """
    return linear.convert(
        lower_mask(
            static_size("N", N), static_size("N" if M is None else "M", N if M is None else M), static_int("k", k)
        ),
        asked_dtype("tri", dtype) or dtypes.float32,
    )


def lower_mask(n: int, m: int, k: int) -> Array:
    """Booleans that are true at and below the `k`-th diagonal."""
    if n < 0 or m < 0:
        raise TypeError(f"sizes of a matrix must not be negative, got ({n}, {m}).")
    rows = iota(dtypes.int32, (n, m), 0)
    return el.ge(el.add(rows, scalar_like(rows, k)), iota(dtypes.int32, (n, m), 1))


def frombuffer(buffer: Buffer, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """An array of the elements in a buffer of bytes.

    Args:
        buffer: object with Python's buffer interface.
        dtype: dtype of the elements.
        count: int, how many elements are read; -1 for all.
        offset: int, the byte at which they begin.

    Returns:
        array of that dtype and shape (count,).

    Raises:
        ValueError: if the bytes are no whole number of elements, or too few.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.frombuffer(bytes([1, 2]), 'uint8')
        Array([1, 2], dtype=uint8)
    """
    dt = dtypes.dtype(dtype)
    data = memoryview(buffer).cast("B")[offset:]
    size = dtypes.itemsize(dt)
    n = len(data) // size if count < 0 else count
    if count < 0 and len(data) % size or n * size > len(data):
        raise ValueError(
            f"frombuffer: a buffer of {len(data)} bytes does not hold {n} elements of {size} bytes exactly."
        )
    return array(from_bytes(bytes(data[: n * size]), (n,), dt))


def from_dlpack(x: object, /, *, device: Placement = None, copy: bool | None = None) -> Array:
    """An array from any object that offers DLPack.

    Args:
        x: array of any library, of any dtype and shape.
        device: where the array shall lie; by default where `x` does, if that is an array of weft's.
        copy: True for a copy of a weft array, too; False to get an error instead of a copy.

    Returns:
        array of the dtype and shape of x.

    Raises:
        TypeError: for an object that does not offer DLPack.
        ValueError: with `copy=False`, for what can't be had without a copy: everything but an array of weft's.

    Example:
        >>> import numpy, weft.numpy as jnp
        >>> jnp.from_dlpack(numpy.ones(2, 'float32'))
        Array([1., 1.], dtype=float32)
    """
    given: Any = x
    if is_array(x):
        return array(given, copy=bool(copy), device=device)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(
            at_user_line(
                "from_dlpack takes an object with the methods __dlpack__ and __dlpack_device__, got a"
                f" {type(x).__name__}. Use jnp.asarray."
            )
        )
    if copy is False:
        raise ValueError(
            at_user_line(
                f"from_dlpack: a {type(x).__name__} can't become an array without a copy, which copy=False forbids."
                " Leave copy out."
            )
        )
    if not has_numpy:
        raise ImportError("from_dlpack needs NumPy, which is not installed here. Use jnp.asarray(memoryview(x)).")
    return array(np.from_dlpack(given), device=device)
