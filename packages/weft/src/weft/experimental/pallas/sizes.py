"""Arithmetic of sizes of blocks and grids, arrays without particular content, and estimates of costs."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

from ... import numpy as jnp
from ...api.refs import Ref, empty_ref
from ...api.tracing import make_jaxpr
from ...base.avals import array_aval
from ...core.jaxpr import Jaxpr, JaxprEqn, subjaxprs
from ...typing import Array, DTypeLike
from .specs import CostEstimate

_FUNCTIONS = frozenset(
    "exp exp2 expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 pow sqrt rsqrt cbrt"
    " logistic erf erfc erf_inv lgamma digamma".split()
)
_ARITHMETIC = frozenset(
    "add add_any sub mul div rem neg abs max min square integer_pow sign floor ceil round select_n clamp eq ne lt le gt"
    " ge".split()
)


def cdiv(a: Any, b: Any) -> Any:
    """How many blocks of `b` elements hold `a` elements: a / b, rounded up.

    Args:
        a: int or array of integers.
        b: int or array of integers, positive.

    Returns:
        int, or array of integers.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.cdiv(1000, 128)
        8
    """
    return (a + b - 1) // b


def align_to(a: Any, alignment: Any) -> Any:
    """The least multiple of `alignment` that is not less than `a`.

    Args:
        a: int or array of integers.
        alignment: int or array of integers, positive.

    Returns:
        int, or array of integers.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.align_to(1000, 128)
        1024
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The least power of two that is not less than `x`.

    Args:
        x: int, not negative.

    Returns:
        int

    Raises:
        ValueError: for a negative number.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.next_power_of_2(100)
        128
    """
    if x < 0:
        raise ValueError(f"next_power_of_2 takes a number that is not negative; got {x}.")
    return 1 << max(x - 1, 0).bit_length()


def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """How many elements of a dense array lie between neighbours along each axis.

    Args:
        shape: sequence of ints.

    Returns:
        tuple of ints.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.strides_from_shape((2, 3, 4))
        (12, 4, 1)
    """
    return tuple([math.prod(shape[d + 1 :]) for d in range(len(shape))])


def empty(shape: Sequence[int], dtype: DTypeLike, *, out_sharding: Any = None) -> Array:
    """An array without particular content, for `input_output_aliases`.

    Args:
        shape: sequence of ints.
        dtype: of any kind.
        out_sharding: as for `weft.numpy.empty`.

    Returns:
        array of that dtype and shape.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> pl.empty((2, 3), jnp.float32).shape
        (2, 3)
    """
    return jnp.empty(tuple(shape), dtype, out_sharding=out_sharding)


def empty_like(x: Any) -> Array:
    """An array without particular content, of the dtype and shape of another.

    Args:
        x: array, or `ShapeDtypeStruct`.

    Returns:
        array of the dtype and shape of `x`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> pl.empty_like(jnp.ones(3)).shape
        (3,)
    """
    return empty(x.shape, x.dtype)


def empty_ref_like(x: Any) -> Ref:
    """A reference to new memory, of the dtype and shape of an array.

    Args:
        x: array, or `ShapeDtypeStruct`.

    Returns:
        `Ref` to an array of the dtype and shape of `x`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> ref = pl.empty_ref_like(jnp.ones(2))
        >>> ref[...] = jnp.arange(2.0)
        >>> ref[1]
        Array(1., dtype=float32)
    """
    return empty_ref(x)


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """Counts the operations of a function and the bytes of its arguments and results.

    Args:
        fun: function of arrays.
        *args: arrays or `ShapeDtypeStruct`, of any dtype and shape.
        **kwargs: the same.

    Returns:
        `CostEstimate`: a product of matrices counts two operations for each term, an elementary function as one of
        `transcendentals`; loops count as often as they run, those that run until something holds, once.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> pl.estimate_cost(lambda a, b: jnp.exp(a @ b), jnp.ones((4, 5)), jnp.ones((5, 6)))
        CostEstimate(flops=240, transcendentals=24, bytes_accessed=296, remote_bytes_transferred=0)
    """
    closed = make_jaxpr(lambda: fun(*args, **kwargs))() if not args and not kwargs else make_jaxpr(fun)(*args, **kwargs)
    flops, functions = _count(closed.jaxpr)
    moved = [*closed.in_avals, *closed.out_avals]
    return CostEstimate(flops, functions, sum(array_aval(a).size * array_aval(a).dtype.itemsize for a in moved))


def _count(jaxpr: Jaxpr) -> tuple[int, int]:
    """(arithmetic operations, elementary functions) of a program."""
    found = [_of(eqn) for eqn in jaxpr.eqns]
    return sum(f for f, _ in found), sum(t for _, t in found)


def _of(eqn: JaxprEqn) -> tuple[int, int]:
    name, size = eqn.primitive.name, sum(v.aval.size for v in eqn.outvars if hasattr(v.aval, "size"))
    inner = subjaxprs(eqn.params)
    if inner:
        counted = None if eqn.primitive.carries is None else eqn.primitive.carries.counted
        times = eqn.params[counted.length] if counted is not None else 1
        counts = [_count(j) for j in inner]
        return times * sum(f for f, _ in counts), times * sum(t for _, t in counts)
    if name == "dot_general":
        (contract, _), _ = eqn.params["dimension_numbers"]
        return 2 * size * math.prod(eqn.invars[0].aval.shape[d] for d in contract), 0
    if name.startswith(("reduce_", "arg", "cum")):
        return eqn.invars[0].aval.size, 0
    return (0, size) if name in _FUNCTIONS else (size, 0) if name in _ARITHMETIC else (0, 0)
