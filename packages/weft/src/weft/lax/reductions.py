"""Reductions, cumulative operations, sorting and arg-reductions of `weft.lax`."""
from __future__ import annotations

from typing import Any, Callable

from .. import dtypes
from ..avals import reshaped
from ..control.fold import reduce_p
from ..core.primitive import registry
from ..core.trace import get_aval
from ..errors import type_error
from ..ops import linear
from ..ops import reduce as ops
from ..ops import sort as sort_ops
from ..ops.rules import dtype_of, shape_of
from ..transforms.stage import stage_closed
from ..tree import tree_flatten
from .common import canonical_axes, canonical_axis, only, operand as checked


def _reduction(name: str, text: str):
    op = linear.reduce_sum if name == "reduce_sum" else getattr(ops, name)
    if name == "reduce_sum":
        def function(operand, axes, *, out_sharding=None):
            only(name, out_sharding=out_sharding)
            x = checked(name, operand)
            if dtypes.is_bool(dtype_of(x)):
                raise type_error("reduce_sum does not accept dtype bool: it takes numbers. Convert first, or use reduce_or.")
            return op(x, canonical_axes(tuple(axes), len(shape_of(x)), "axes"))
    else:
        def function(operand, axes):
            x = checked(name, operand)
            return op(x, canonical_axes(tuple(axes), len(shape_of(x)), "axes"))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text} over `axes`; the result has the other axes.\n\n    Example:\n        >>> from weft import lax\n" \
        f"        >>> y = lax.{name}(lax.broadcast({'True' if name in ('reduce_and', 'reduce_or', 'reduce_xor') else '2.0'}, (3,)), (0,))\n    "
    return function


reduce_sum = _reduction("reduce_sum", "The sum")
reduce_max = _reduction("reduce_max", "The maximum")
reduce_min = _reduction("reduce_min", "The minimum")
reduce_prod = _reduction("reduce_prod", "The product")
reduce_and = _reduction("reduce_and", "The bitwise and")
reduce_or = _reduction("reduce_or", "The bitwise or")
reduce_xor = _reduction("reduce_xor", "The bitwise exclusive or")


_MONOIDS = {"add": reduce_sum, "max": reduce_max, "min": reduce_min, "mul": reduce_prod, "and": reduce_and, "or": reduce_or,
            "xor": reduce_xor}


def reduce(operands: Any, init_values: Any, computation: Callable, dimensions, out_sharding=None):
    """Folds `computation` (associative, on scalars; pytrees allowed) over `dimensions`, starting from `init_values`.

    Raises:
        TypeError: if dtypes of operands, initial values and results of the computation differ.
        ValueError: if structures or shapes of operands and initial values do not match.

    Example:
        >>> from weft import lax
        >>> float(lax.reduce(lax.broadcast(2.0, (3,)), 1.0, lax.mul, (0,)))
        8.0
    """
    only("reduce", out_sharding=out_sharding)
    xs, tree = tree_flatten(operands)
    inits, init_tree = tree_flatten(init_values)
    if tree != init_tree:
        raise ValueError(f"reduce: operands and init_values must have one structure, got {tree} and {init_tree}.")
    xs, inits = [checked("reduce", x) for x in xs], [checked("reduce", x) for x in inits]
    dims = canonical_axes(tuple(dimensions), len(shape_of(xs[0])), "dimensions")
    scalars = [reshaped(get_aval(x), ()) for x in xs] * 2

    def combine(*flat):
        n = len(xs)
        out, out_tree = tree_flatten(computation(tree.unflatten(flat[:n]), tree.unflatten(flat[n:])))
        if out_tree != tree:
            raise TypeError(f"reduce: computation must return the structure of its arguments {tree}, got {out_tree}.")
        return out
    jaxpr = stage_closed(combine, scalars, "reduce")
    if len(xs) == 1 and len(jaxpr.eqns) == 1 and jaxpr.eqns[0].primitive.name in _MONOIDS:
        eqn = jaxpr.eqns[0]
        if eqn.invars == jaxpr.jaxpr.invars and eqn.outvars == jaxpr.jaxpr.outvars:
            out = _MONOIDS[eqn.primitive.name](xs[0], dims)
            init = linear.convert(inits[0], dtype_of(xs[0])) if get_aval(inits[0]).weak_type else inits[0]
            return tree.unflatten([eqn.primitive.bind(out, init)])
    for x, i in zip(xs, inits):
        if dtype_of(x) != dtype_of(i):
            raise type_error(f"reduce: operands and initial values must have the same dtypes, got {get_aval(x)} and {get_aval(i)}.")
    return tree.unflatten(reduce_p.bind(*xs, *inits, jaxpr=jaxpr, dimensions=dims))


def argmax(operand, axis: int, index_dtype):
    """The index of the first maximum along `axis`.

    Raises:
        ValueError: if the axis is empty.

    Example:
        >>> from weft import lax
        >>> lax.argmax(lax.iota('float32', 3), 0, 'int32')
        Array(2, dtype=int32)
    """
    x = checked("argmax", operand)
    return ops.argmax(x, canonical_axis(axis, len(shape_of(x))), index_dtype)


def argmin(operand, axis: int, index_dtype):
    """The index of the first minimum along `axis`.

    Raises:
        ValueError: if the axis is empty.

    Example:
        >>> from weft import lax
        >>> lax.argmin(lax.iota('float32', 3), 0, 'int32')
        Array(0, dtype=int32)
    """
    x = checked("argmin", operand)
    return ops.argmin(x, canonical_axis(axis, len(shape_of(x))), index_dtype)


def _cumulative(name: str, text: str):
    primitive = registry[name]

    def function(operand, axis: int = 0, reverse: bool = False):
        x = checked(name, operand)
        return primitive.bind(x, axis=canonical_axis(axis, len(shape_of(x))), reverse=bool(reverse))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The running {text} along `axis`, from the end when `reverse`.\n\n    Example:\n        >>> from weft import lax\n" \
        f"        >>> y = lax.{name}(lax.iota('float32', 3))\n    "
    return function


cumsum, cumprod = _cumulative("cumsum", "sum"), _cumulative("cumprod", "product")
cummax, cummin = _cumulative("cummax", "maximum"), _cumulative("cummin", "minimum")
cumlogsumexp = _cumulative("cumlogsumexp", "log of the sum of exponentials")


def sort(operand, dimension: int = -1, is_stable: bool = True, num_keys: int = 1):
    """The array sorted upwards along `dimension` (NaN last); of several arrays the first `num_keys` decide the order.

    Example:
        >>> from weft import lax
        >>> lax.sort(lax.rev(lax.iota('int32', 3), (0,)))
        Array([0, 1, 2], dtype=int32)
    """
    many = isinstance(operand, (list, tuple))
    xs = [checked("sort", x) for x in (operand if many else [operand])]
    if not xs:
        raise TypeError("sort requires at least one array.")
    if len({shape_of(x) for x in xs}) > 1:
        raise type_error(f"sort: operands must have one shape, got {[shape_of(x) for x in xs]}.")
    out = sort_ops.sort_p.bind(*xs, dimension=canonical_axis(dimension, len(shape_of(xs[0])), "dimension"), is_stable=bool(is_stable), num_keys=int(num_keys))
    return tuple(out) if many else out[0]


def sort_key_val(keys, values, dimension: int = -1, is_stable: bool = True):
    """`keys` sorted along `dimension`, and `values` in the same order.

    Example:
        >>> from weft import lax
        >>> keys, values = lax.sort_key_val(lax.iota('int32', 3), lax.iota('float32', 3))
    """
    return sort((keys, values), dimension=dimension, is_stable=is_stable, num_keys=1)


def top_k(operand, k: int, *, axis: int = -1):
    """The `k` largest elements along `axis`, largest first, and their indices.

    Example:
        >>> from weft import lax
        >>> values, indices = lax.top_k(lax.iota('int32', 5), 2)
        >>> values
        Array([4, 3], dtype=int32)
    """
    x = checked("top_k", operand)
    if dtypes.is_complex(dtype_of(x)):
        raise ValueError(f"top_k takes real numbers, got {get_aval(x)}; sort sorts complex ones.")
    if k < 0:
        raise ValueError(f"top_k: k must not be negative, got {k}.")
    return sort_ops.top_k_p.bind(x, k=int(k), axis=canonical_axis(axis, len(shape_of(x))))

