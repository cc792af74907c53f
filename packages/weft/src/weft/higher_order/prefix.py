"""associative_scan: running combinations in logarithmically many parallel steps; and map, an element (or a few) at a
time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar

from ..core.trace import Axis, get_aval
from ..primitives.linear import expand_dims, reshape
from ..primitives.rules import shape_of
from ..primitives.shape import concatenate, rev, slice_
from ..base.source_info import api_boundary
from ..transforms.batch import batch_flat, to_front
from ..base.tree import tree_flatten
from .scan import scan

if TYPE_CHECKING:
    from ..core.types import Value

_T = TypeVar("_T")
_X = TypeVar("_X")
_Y = TypeVar("_Y")


def _take(x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
    """`x[start:stop:step]` along `axis`."""
    shape = shape_of(x)
    lo, hi, by = [0] * len(shape), list(shape), [1] * len(shape)
    lo[axis], hi[axis], by[axis] = start, max(stop, start), step
    return slice_(x, lo, hi, by)


def _interleave(even: Value, odd: Value, axis: int) -> Value:
    """Interleaves the elements of two arrays; the first may have one element more."""
    n = shape_of(odd)[axis]
    pairs = concatenate([expand_dims(_take(even, axis, 0, n), (axis + 1,)), expand_dims(odd, (axis + 1,))], axis + 1)
    shape = shape_of(odd)
    joined = reshape(pairs, (*shape[:axis], 2 * n, *shape[axis + 1 :]))
    rest = shape_of(even)[axis] - n
    return concatenate([joined, _take(even, axis, n, n + 1)], axis) if rest else joined


@api_boundary
def associative_scan(fn: Callable[[_T, _T], _T], elems: _T, reverse: bool = False, axis: int = 0) -> _T:
    """The running combinations of `elems` along `axis` by an associative `fn`, in log2(n) rounds.

    Args:
        fn: (a, b) -> combination, elementwise over the axis; a and b are pytrees like `elems`.
        elems: pytree of arrays with one size along `axis`.
        reverse: combine from the end.
        axis: int, the axis.

    Returns:
        pytree like elems, of the same dtypes and shapes.

    Raises:
        TypeError: `fn` is not callable, or does not return what it takes.
        ValueError: the axis does not exist, or the arrays have different sizes along it.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.lax.associative_scan(jnp.add, jnp.arange(5))
        Array([ 0,  1,  3,  6, 10], dtype=int32)
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, tree = tree_flatten(elems)
    if not leaves:
        return elems
    ranks = [len(get_aval(x).shape) for x in leaves]
    if any(not -r <= axis < r for r in ranks):
        raise ValueError(
            f"associative_scan: axis {axis} is out of range for arrays of shapes {[get_aval(x).shape for x in leaves]}."
        )
    axes = [axis % r for r in ranks]
    if len({a for a in axes}) != 1:
        raise ValueError(
            "associative_scan: a negative axis must mean the same position in every array; use a positive one."
        )
    at = axes[0]
    sizes = {get_aval(x).shape[at] for x in leaves}
    if len(sizes) != 1:
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. (saw:"
            f" {[get_aval(x).shape for x in leaves]})"
        )

    def combine(a: Sequence[Value], b: Sequence[Value]) -> Sequence[Value]:
        out, out_tree = tree_flatten(fn(tree.unflatten(a), tree.unflatten(b)))
        if out_tree != tree:
            raise TypeError(f"associative_scan: fn must return what it takes, of structure {tree}; got {out_tree}.")
        return out

    def go(xs: Sequence[Value]) -> Sequence[Value]:
        n = shape_of(xs[0])[at]
        if n < 2:
            return xs
        paired = combine([_take(x, at, 0, n - 1, 2) for x in xs], [_take(x, at, 1, n, 2) for x in xs])
        odd = go(paired)
        rest = [_take(x, at, 2, n, 2) for x in xs]
        if shape_of(rest[0])[at]:
            between = combine([_take(x, at, 0, shape_of(r)[at]) for x, r in zip(odd, rest)], rest)
            even = [concatenate([_take(x, at, 0, 1), b], at) for x, b in zip(xs, between)]
        else:
            even = [_take(x, at, 0, 1) for x in xs]
        return [_interleave(e, o, at) for e, o in zip(even, odd)]

    if reverse:
        leaves = [rev(x, (at,)) for x in leaves]
    outs = go(leaves)
    return tree.unflatten([rev(x, (at,)) for x in outs] if reverse else outs)


@api_boundary
def map_(f: Callable[[_X], _Y], xs: _X, *, batch_size: int | None = None) -> _Y:
    """Applies `f` to each element of the leading axis of `xs` and stacks the results.

    Elements are processed one after another, or `batch_size` at a time under `vmap`: this takes less memory than `vmap`
    over all, and is faster than one by one.

    Args:
        f: function of one element that returns a pytree of arrays.
        xs: pytree of arrays of any dtype, with one leading size n.
        batch_size: int, how many elements at a time; None for one.

    Returns:
        pytree of arrays of the dtypes that f returns, each with the leading size n.

    Raises:
        ValueError: for leading sizes that differ, and without arrays.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.lax.map(lambda x: x * 2, jnp.arange(5), batch_size=2)
        Array([0, 2, 4, 6, 8], dtype=int32)
    """
    if not batch_size:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    if batch_size < 0:
        raise ValueError(f"map's batch_size must be positive, got {batch_size}.")
    leaves, tree = tree_flatten(xs)
    n = get_aval(leaves[0]).shape[0]
    whole = n // batch_size

    def batched(part: Any, size: int) -> Any:
        box: list[Any] = []

        def flat(*ys: Value) -> list[Value]:
            out, out_tree = tree_flatten(f(tree.unflatten(ys)))
            box.append(out_tree)
            return out

        axis = Axis(None, size)
        outs, dims = batch_flat(flat, axis, part, [0] * len(part))
        return box[0].unflatten([to_front(axis, x, d) for x, d in zip(outs, dims)])

    results = []
    if whole or not n:  # of no elements, as many times nothing: a program of no rows at all may be none
        blocks = [reshape(_take(x, 0, 0, whole * batch_size), (whole, batch_size, *shape_of(x)[1:])) for x in leaves]
        stacked = scan(lambda _, part: ((), batched(part, batch_size)), (), blocks)[1]
        out, out_tree = tree_flatten(stacked)
        results.append([reshape(x, (whole * batch_size, *shape_of(x)[2:])) for x in out])
    if n % batch_size:
        out, out_tree = tree_flatten(
            batched([_take(x, 0, whole * batch_size, n) for x in leaves], n - whole * batch_size)
        )
        results.append(out)
    return out_tree.unflatten([concatenate(list(parts), 0) for parts in zip(*results)])
