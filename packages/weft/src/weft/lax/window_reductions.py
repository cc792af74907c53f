"""Windows of `weft.lax`: reduce_window, its shapes, and the meaning of the names of paddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence, overload

from ..base.annotations import PyTree
from ..base.avals import Size, as_size
from ..higher_order.window import reduce_window_p
from ..symbolic.dims import max_dim
from ..core.jaxpr import TypedScalar
from ..core.trace import Tracer, get_aval
from ..base.errors import type_error
from ..primitives import linear
from ..primitives import window as ops
from ..primitives.rules import dtype_of, shape_of
from ..transforms.stage import stage_closed
from ..base.tree import tree_flatten
from ..typing import Array, ArrayLike, Shape
from .common import ints
from .common import operand as checked

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["padtype_to_pads", "reduce_window", "reduce_window_shape_tuple"]

# The reduction for a jaxpr of one operation, and the initial value with which it is equivalent.
_MONOIDS = {
    "add": (ops.reduce_window_sum_p, lambda dt: 0),
    "max": (ops.reduce_window_max_p, ops.lowest),
    "min": (ops.reduce_window_min_p, ops.highest),
}


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """Tells the (low, high) padding of each axis that 'VALID', 'SAME' or 'SAME_LOWER' stands for.

    With 'SAME' the result has one element for each stride; what must be added unevenly goes to the end, with
    'SAME_LOWER' to the start.

    Args:
        in_shape: the shape of the array, one int for each axis.
        window_shape: the shape of the window, one int for each axis.
        window_strides: the steps of the window, one positive int for each axis.
        padding: str: 'VALID', 'SAME' or 'SAME_LOWER'.

    Returns:
        list of (low, high), two ints for each axis.

    Raises:
        RuntimeError: for another name.
        ValueError: if a stride is not positive.

    Example:
        >>> from weft import lax
        >>> lax.padtype_to_pads((5, 6), (3, 3), (1, 2), 'SAME')
        [(1, 1), (0, 1)]
    """
    name = str(getattr(padding, "name", padding)).upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(
            f"unknown padding {padding!r}: expected 'VALID', 'SAME', 'SAME_LOWER', or a (low, high) pair for each axis."
        )
    if any(s < 1 for s in window_strides):
        raise ValueError(f"window_strides must be positive, got {tuple(window_strides)}.")
    pads = []
    for n, w, s in zip(in_shape, window_shape, window_strides):
        total = max_dim(((n + s - 1) // s - 1) * s + w - n, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if name == "SAME" else (more, less))
    return pads


def pairs(name: str, padding: Any) -> tuple[Any, ...]:
    """A padding as a tuple of pairs of ints."""
    try:
        return tuple((as_size(lo), as_size(hi)) for lo, hi in padding)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: padding must be 'VALID', 'SAME', 'SAME_LOWER' or a sequence of (low, high) pairs, got"
            f" {padding!r}."
        ) from None


def _canonical(
    shape: tuple[Size, ...],
    window_dimensions: Sequence[Any],
    window_strides: Any,
    padding: Any,
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> dict[Any, Any]:
    ones = (1,) * len(window_dimensions)
    window, strides, base, dilation = [
        ints(v) if v is not None else ones for v in (window_dimensions, window_strides, base_dilation, window_dilation)
    ]
    if isinstance(padding, str) or hasattr(padding, "name"):
        sizes = [ops.dilated(n, b) for n, b in zip(shape, base)]
        padding = padtype_to_pads(sizes, [ops.dilated(w, d) for w, d in zip(window, dilation)], strides, padding)
    return dict(
        window_dimensions=window,
        window_strides=strides,
        padding=pairs("reduce_window", padding),
        base_dilation=base,
        window_dilation=dilation,
    )


@overload
def reduce_window(
    operand: ArrayLike,
    init_value: ArrayLike,
    computation: Callable[[Array, Array], ArrayLike],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array: ...
@overload
def reduce_window(
    operand: PyTree,
    init_value: PyTree,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any: ...
def reduce_window(
    operand: PyTree,
    init_value: PyTree,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Folds a function over every window of an array, or of several of one shape.

    Args:
        operand: array of any dtype, any shape, or a pytree of arrays of one shape.
        init_value: pytree like operand of scalars of the same dtypes, where each fold starts, and what padding is
            filled with; an identity of `computation`.
        computation: an associative function of two elements. `lax.add`, `lax.max` and `lax.min` with their identities
            become reduce_window_sum, _max and _min, which are differentiable in their own right; any other function is
            differentiated through.
        window_dimensions: the shape of the window, one int for each axis.
        window_strides: the steps of the window, one int for each axis; None for ones.
        padding: 'VALID', 'SAME', 'SAME_LOWER' or a (low, high) pair for each axis.
        base_dilation: the distance of neighbouring elements of the array, one int for each axis; None for ones.
        window_dilation: the distance of neighbouring elements of the window, one int for each axis; None for ones.

    Returns:
        pytree like operand: arrays of the same dtypes, with one element for each window.

    Raises:
        TypeError: if an argument does not have one entry for each axis, or dtypes differ.

    Example:
        >>> from weft import lax
        >>> lax.reduce_window(lax.iota('float32', 6), -float('inf'), lax.max, (2,), (2,))
        Array([1., 3., 5.], dtype=float32)
    """
    xs, tree = tree_flatten(operand)
    inits, init_tree = tree_flatten(init_value)
    if tree != init_tree:
        raise TypeError(
            f"reduce_window: operands and initial values must have one structure, got {tree} and {init_tree}."
        )
    if not xs:
        raise TypeError("reduce_window requires at least one array.")
    xs, inits = [checked("reduce_window", x) for x in xs], [checked("reduce_window", x) for x in inits]
    inits = [linear.convert(i, dtype_of(x)) if get_aval(i).weak_type else i for x, i in zip(xs, inits)]
    params = _canonical(shape_of(xs[0]), window_dimensions, window_strides, padding, base_dilation, window_dilation)

    def combine(*flat: Value) -> Value:
        out, out_tree = tree_flatten(computation(tree.unflatten(flat[: len(xs)]), tree.unflatten(flat[len(xs) :])))
        if out_tree != tree:
            raise TypeError(
                f"reduce_window: computation must return the structure of its arguments {tree}, got {out_tree}."
            )
        return out

    jaxpr = stage_closed(combine, [get_aval(i) for i in inits] * 2, "reduce_window")
    have, want = [(a.shape, a.dtype) for a in jaxpr.out_avals], [((), dtype_of(x)) for x in xs]
    if have != want:
        raise type_error(
            "reduce_window: computation must return scalars of the dtypes of its operands, got"
            f" {', '.join(a.str_short() for a in jaxpr.out_avals)}."
        )
    if any(isinstance(c, Tracer) for c in jaxpr.consts):
        raise TypeError("reduce_window: computation uses a value that is being traced; pass it as a further operand.")
    if len(xs) == 1 and len(jaxpr.eqns) == 1 and jaxpr.eqns[0].primitive.name in _MONOIDS:
        (eqn,), inner = jaxpr.eqns, jaxpr.jaxpr
        primitive, identity = _MONOIDS[eqn.primitive.name]
        if eqn.invars == inner.invars and eqn.outvars == inner.outvars and _is(inits[0], identity(dtype_of(xs[0]))):
            return tree.unflatten([primitive.bind(xs[0], **params)])
    return tree.unflatten(reduce_window_p.bind(*xs, *inits, jaxpr=jaxpr, consts=(), **params))


def _is(x: Value, value: Value) -> bool:
    """Whether a scalar is known now, and is `value`."""
    if isinstance(x, Tracer):
        return False
    if type(x) is TypedScalar:
        x = x.val
    # an array's own == would be recorded in the program that is traced
    return bool((x.item() if hasattr(x, "item") else x) == value)


def reduce_window_shape_tuple(
    operand_shape: Shape,
    window_dimensions: Shape,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[Size, ...]:
    """Computes the shape that `reduce_window` gives.

    Args:
        operand_shape: the shape of the array, one int for each axis.
        window_dimensions: the shape of the window, one int for each axis.
        window_strides: the steps of the window, one int for each axis.
        padding: 'VALID', 'SAME', 'SAME_LOWER' or a (low, high) pair for each axis.
        base_dilation: the distance of neighbouring elements of the array, one int for each axis; None for ones.
        window_dilation: the distance of neighbouring elements of the window, one int for each axis; None for ones.

    Returns:
        tuple of ints, the shape.

    Example:
        >>> from weft import lax
        >>> lax.reduce_window_shape_tuple((5, 6), (3, 3), (1, 2), ((0, 0), (1, 1)))
        (3, 3)
    """
    params = _canonical(
        tuple(operand_shape), window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    return ops.window_shape("reduce_window", tuple(operand_shape), **params)
