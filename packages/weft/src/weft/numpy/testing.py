"""Comparisons of whole arrays, and questions about dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import dtypes, limits, promotion
from ..base.config import config
from ..core.trace import get_aval
from ..base.dtypes import ElementType
from ..base.host import has_numpy, np
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.reduce import reduce_and
from ..primitives.rules import dtype_of, shape_of
from ..typing import Array, ArrayLike, DTypeLike
from .creation import asarray
from .ufuncs import abs as _abs
from .comparisons import equal, isfinite, isnan
from .util import broadcast_shapes, operand, promote, promote_shapes, strong

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = [
    "allclose",
    "array_equal",
    "array_equiv",
    "can_cast",
    "isclose",
    "isdtype",
    "issubdtype",
    "promote_types",
    "result_type",
]


def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether |a - b| <= atol + rtol * |b|, for each element.

    Args:
        a: array of numbers or booleans, any shape.
        b: array of numbers that broadcasts with a.
        rtol: number or array: the tolerance relative to b.
        atol: number or array: the absolute tolerance.
        equal_nan: bool: NaN equals NaN.

    Returns:
        array of booleans, the broadcast shape.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.isclose(jnp.array([1., 2.]), 1.)
        Array([ True, False], dtype=bool)
    """
    x, y = promote_shapes("isclose", *promote("isclose", a, b))
    if dtypes.is_key(dtype_of(x)):
        return equal(x, y)
    dt = dtype_of(x)
    if not dtypes.is_inexact(dt):
        x, y = [linear.convert(v, dtypes.canonicalize(float)) for v in (x, y)]
    size = _abs(y)
    real = dtype_of(size)
    bound = el.add(
        linear.convert(operand("isclose", atol), real), el.mul(linear.convert(operand("isclose", rtol), real), size)
    )
    close = el.le(_abs(el.sub(x, y)), bound)
    shape = shape_of(close)
    wide = lambda v: linear.broadcast_to_rank_shape(v, shape)
    finite = el.and_(wide(isfinite(x)), wide(isfinite(y)))
    out = el.select_n_p.bind(finite, equal(x, y), close)
    if equal_nan:
        out = el.or_(out, el.and_(wide(isnan(x)), wide(isnan(y))))
    return out


def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether all elements are close (see `isclose`).

    Args:
        a: array of numbers or booleans, any shape.
        b: array of numbers that broadcasts with a.
        rtol: number or array: the tolerance relative to b.
        atol: number or array: the absolute tolerance.
        equal_nan: bool: NaN equals NaN.

    Returns:
        array of one boolean, a scalar.

    Example:
        >>> import weft.numpy as jnp
        >>> bool(jnp.allclose(jnp.ones(2), 1.))
        True
    """
    out = isclose(a, b, rtol, atol, equal_nan)
    return reduce_and(out, range(len(shape_of(out))))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    Args:
        a1, a2: array of any dtype, any shape.
        equal_nan: bool: NaN equals NaN.

    Returns:
        array of one boolean, a scalar.

    Example:
        >>> import weft.numpy as jnp
        >>> bool(jnp.array_equal(jnp.ones(2), jnp.ones(2)))
        True
    """
    x, y = asarray(a1), asarray(a2)
    if shape_of(x) != shape_of(y):
        return asarray(False)
    same = equal(x, y)
    if equal_nan and dtypes.is_inexact(dtype_of(x)) and dtypes.is_inexact(dtype_of(y)):
        same = el.or_(same, el.and_(isnan(x), isnan(y)))
    return strong(reduce_and(same, range(len(shape_of(same)))))


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast to equal elements.

    Args:
        a1, a2: array of any dtype, any shape.

    Returns:
        array of one boolean, a scalar.

    Example:
        >>> import weft.numpy as jnp
        >>> bool(jnp.array_equiv(jnp.ones(2), 1.))
        True
    """
    x, y = asarray(a1), asarray(a2)
    try:
        broadcast_shapes([shape_of(x), shape_of(y)])
    except ValueError:
        return asarray(False)
    same = equal(x, y)
    return strong(reduce_and(same, range(len(shape_of(same)))))


def result_type(*args: ArrayLike | DTypeLike) -> ElementType:
    """The dtype to which arrays, numbers and dtypes promote.

    Args:
        *args: arrays, numbers and dtypes.

    Returns:
        dtype.

    Raises:
        ValueError: there are no arguments.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.result_type(jnp.ones(2), 1) == jnp.float32
        True
    """
    if not args:
        raise ValueError("result_type needs at least one array or dtype.")
    return promotion.promote(*[_kind_of(a) for a in args])[0]


_DTYPES = (dtypes.DType, dtypes.KeyDType) + ((np.dtype,) if has_numpy else ())


def _kind_of(x: Value) -> tuple[Any, ...]:
    if isinstance(x, type) and x in (bool, int, float, complex):  # numpy.dtype("float64") == float
        return dtypes.canonicalize(x), x is not bool
    if isinstance(x, (str, type)) or isinstance(x, _DTYPES) or not (hasattr(x, "shape") or dtypes.is_python_scalar(x)):
        return dtypes.canonicalize(x), False
    aval = get_aval(x) if not hasattr(x, "dtype") or not hasattr(x, "shape") else x
    return dtypes.canonicalize(aval.dtype), getattr(aval, "weak_type", False)


def promote_types(a: DTypeLike, b: DTypeLike) -> ElementType:
    """The dtype to which two dtypes promote.

    Args:
        a, b: dtype, or its name.

    Returns:
        dtype.

    Raises:
        TypeError: for dtypes that do not promote.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.promote_types('int32', 'bfloat16') == jnp.bfloat16
        True
    """
    pairs = [(dtypes.dtype(t), any(t is python for python in (int, float, complex))) for t in (a, b)]
    found = promotion._promote(tuple(pairs), config.numpy_dtype_promotion)[0]
    # as wide as requested, whether 64 bits are enabled or not
    return found if any(dtypes.canonicalize(t) != t for t, _ in pairs) else dtypes.canonicalize(found)


def can_cast(from_: DTypeLike, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether one dtype converts to another under a casting rule.

    Args:
        from_: dtype, or array or number, whose dtype it is.
        to: dtype, or its name.
        casting: 'no', 'equiv', 'safe', 'same_kind' or 'unsafe'.

    Returns:
        bool.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.can_cast('int32', 'int16')
        False
    """
    a, b = dtypes.dtype(from_), dtypes.dtype(to)
    if casting == "unsafe" or a == b:
        return True
    if casting in ("no", "equiv"):
        return False
    order = "buifc"
    if casting == "same_kind" and order.index(dtypes.kind(a)) <= order.index(dtypes.kind(b)):
        return True
    return _safe(a, b)


def _safe(a: Value, b: Value) -> bool:
    ka, kb, na, nb = dtypes.kind(a), dtypes.kind(b), dtypes.bits(a), dtypes.bits(b)
    if ka == "b":
        return True
    if kb == "b" or "biufc".index(kb) < "biufc".index(ka) and not (ka == "u" and kb == "i"):
        return False
    if ka == "u" and kb == "i":
        return nb > na
    if ka == "i" and kb == "u":
        return False
    if ka in "iu" and kb in "fc":
        digits = limits.finfo(dtypes.real_of(b) if kb == "c" else b).nmant + 1
        return digits >= na - (ka == "i") or digits == 53
    if ka == "f" and kb == "c":
        return nb // 2 >= na
    if ka == "f":  # bfloat16 has fewer digits than float16, which has smaller numbers
        wide, narrow = limits.finfo(b), limits.finfo(a)
        return wide.nmant >= narrow.nmant and wide.maxexp >= narrow.maxexp
    return nb >= na


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Whether a dtype is, or is a kind of, another.

    Args:
        arg1, arg2: dtype, or an abstract type such as `jnp.floating`.

    Returns:
        bool.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
        True
    """
    return dtypes.issubdtype(arg1, arg2)


def isdtype(dtype: DTypeLike, kind: str | DTypeLike | tuple[str | DTypeLike, ...]) -> bool:
    """Whether a dtype is of a kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex
    floating', 'numeric'.

    Args:
        dtype: dtype, or its name.
        kind: dtype, name of a kind, or tuple of them.

    Returns:
        bool.

    Raises:
        ValueError: for a kind that does not exist.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.isdtype(jnp.int32, 'integral')
        True
    """
    dt = dtypes.dtype(dtype)
    words = {
        "bool": "b",
        "signed integer": "i",
        "unsigned integer": "u",
        "integral": "iu",
        "real floating": "f",
        "complex floating": "c",
        "numeric": "iufc",
    }
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for k in kinds:
        if isinstance(k, str) and k in words:
            if dtypes.kind(dt) in words[k]:
                return True
        elif isinstance(k, str) and k not in dtypes._TABLE:
            raise ValueError(f"isdtype: unknown kind {k!r}; kinds are {', '.join(map(repr, words))} and dtypes.")
        elif dtypes.dtype(k) == dt:
            return True
    return False
