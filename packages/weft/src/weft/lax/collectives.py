"""Communication over named axes (`vmap(axis_name=…)` and its siblings). Arguments may be pytrees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..core.trace import axis_size_of, get_aval
from ..primitives import collective as ops
from ..primitives import linear
from ..primitives.elementwise import add, div, mul
from ..primitives.rules import scalar_like, shape_of
from ..base.tree import tree_flatten, tree_map
from ..typing import Array, AxisName, Tree
from .common import canonical_axis, on_device, operand

if TYPE_CHECKING:
    from ..base.annotations import PyTree
    from ..core.primitive import Primitive
    from ..core.types import Value

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pbroadcast",
    "pcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
]


def _names(axis_name: AxisName) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _groups(
    name: str, axis_index_groups: Sequence[Sequence[int]] | None, axis_name: AxisName
) -> tuple[Any, ...] | None:
    """The groups as tuples; they must name each member once and be of one size."""
    if axis_index_groups is None:
        return None
    groups = tuple(tuple(int(m) for m in group) for group in axis_index_groups)
    if any(isinstance(a, int) for a in _names(axis_name)):
        raise ValueError(f"{name}: axis_index_groups goes with named axes only, got axis_name={axis_name!r}.")
    members, n = sorted(m for group in groups for m in group), ops.axis_size(_names(axis_name))
    if members != list(range(n)):
        raise ValueError(
            f"{name}: axis_index_groups must name each of the {n} members of {axis_name!r} exactly once, got"
            f" {axis_index_groups}."
        )
    if len({len(group) for group in groups}) != 1:
        raise ValueError(f"{name}: the groups of axis_index_groups must have one size, got {axis_index_groups}.")
    return groups


def _checked(primitive: Primitive, x: Value, **params: Any) -> Value:
    """Binds a collective whose operand must have the right sizes, which batching rules take for granted."""
    primitive.abstract(get_aval(x), **params)
    return primitive.bind(x, **params)


def _all_reduce(
    name: str, primitive: Primitive, x: PyTree, axis_name: AxisName, axis_index_groups: Sequence[Sequence[int]] | None
) -> Any:
    leaves, tree = tree_flatten(x)
    leaves = [operand(name, leaf) for leaf in leaves]
    rank = {len(shape_of(leaf)) for leaf in leaves}
    axes = tuple(canonical_axis(a, min(rank, default=0)) if isinstance(a, int) else a for a in _names(axis_name))
    groups = _groups(name, axis_index_groups, axis_name)
    return tree.unflatten(primitive.bind(*leaves, axes=axes, axis_index_groups=groups) if leaves else [])


def psum(x: Tree, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Tree:
    """Sums over one or more named axes; booleans count as int32.

    Args:
        x: pytree of arrays of integers, floats or complex numbers, any shape, the same on all members.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        axis_index_groups: lists of members, all of one size, each of which works for itself; None for all together.

    Returns:
        pytree like x, the sum on every member; of a Python number, its product with the axis size.

    Raises:
        NameError: if the axis is not in scope.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.psum(x, 'i'), axis_name='i')(jnp.arange(3.))
        Array([3., 3., 3.], dtype=float32)
    """
    leaves, tree = tree_flatten(x)
    sizes = [1 if isinstance(a, int) else axis_size_of(a) for a in _names(axis_name)]
    if leaves and all(dtypes.is_python_scalar(leaf) for leaf in leaves) and axis_index_groups is None:
        total = 1
        for n in sizes:
            total *= n
        return tree.unflatten([leaf * total for leaf in leaves])
    leaves = [linear.convert(leaf, dtypes.int32) if dtypes.is_bool(get_aval(leaf).dtype) else leaf for leaf in leaves]
    return _all_reduce("psum", ops.psum_p, tree.unflatten(leaves), axis_name, axis_index_groups)


def pmax(x: Tree, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Tree:
    """Takes the maximum over one or more named axes.

    Args:
        x: pytree of arrays of any dtype but random keys, any shape, the same on all members.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        axis_index_groups: lists of members, all of one size, each of which works for itself; None for all together.

    Returns:
        pytree like x, the maximum on every member.

    Raises:
        NameError: if the axis is not in scope.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.pmax(x, 'i'), axis_name='i')(jnp.arange(3.))
        Array([2., 2., 2.], dtype=float32)
    """
    return _all_reduce("pmax", ops.pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Tree, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Tree:
    """Takes the minimum over one or more named axes.

    Args:
        x: pytree of arrays of any dtype but random keys, any shape, the same on all members.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        axis_index_groups: lists of members, all of one size, each of which works for itself; None for all together.

    Returns:
        pytree like x, the minimum on every member.

    Raises:
        NameError: if the axis is not in scope.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.pmin(x, 'i'), axis_name='i')(jnp.arange(3.))
        Array([0., 0., 0.], dtype=float32)
    """
    return _all_reduce("pmin", ops.pmin_p, x, axis_name, axis_index_groups)


def pmean(x: Tree, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Tree:
    """Computes the mean over one or more named axes.

    Args:
        x: pytree of arrays of integers, floats or complex numbers, any shape, the same on all members.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        axis_index_groups: lists of members, all of one size, each of which works for itself; None for all together.

    Returns:
        pytree like x, the mean on every member; float32 (float64 in 64-bit mode) for integers.

    Raises:
        NameError: if the axis is not in scope.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.pmean(x, 'i'), axis_name='i')(jnp.arange(3.))
        Array([1., 1., 1.], dtype=float32)
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    n = len(axis_index_groups[0]) if axis_index_groups is not None else psum(1, axis_name)

    def mean(leaf: Value) -> Any:
        aval = get_aval(leaf)
        if not dtypes.is_inexact(aval.dtype):
            leaf = linear.convert(leaf, dtypes.canonicalize(float))
        return on_device(div(leaf, scalar_like(leaf, n)))

    return tree_map(mean, total)


def axis_index(axis_name: AxisName) -> Array:
    """Tells the position of this member along one or more named axes.

    Args:
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.

    Returns:
        scalar of int32; along several axes in row-major order.

    Raises:
        NameError: if the axis is not in scope.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.axis_index('i'), axis_name='i')(jnp.zeros(3))
        Array([0, 1, 2], dtype=int32)
    """
    if not isinstance(axis_name, (tuple, list)):
        return ops.axis_index_p.bind(axis_name=axis_name)
    index: Any = 0
    for name in axis_name:
        here = ops.axis_index_p.bind(axis_name=name)
        index = here if isinstance(index, int) else add(mul(index, scalar_like(index, axis_size_of(name))), here)
    return index


def axis_size(axis_name: AxisName) -> int:
    """Tells the number of members along one or more named axes.

    Args:
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.

    Returns:
        int, the product of the sizes.

    Raises:
        NameError: if the axis is not in scope.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: x * weft.lax.axis_size('i'), axis_name='i')(jnp.ones(2))
        Array([2., 2.], dtype=float32)
    """
    return ops.axis_size(tuple(axis_name) if isinstance(axis_name, list) else axis_name)


def all_gather(
    x: Tree,
    axis_name: AxisName,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Tree:
    """Gathers the values of all members on every member.

    Args:
        x: pytree of arrays of any dtype, any shape, the same on all members.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        axis_index_groups: lists of members, all of one size, each of which works for itself; None for all together.
        axis: int, the place of the new axis, or with `tiled` the axis that grows.
        tiled: bool: concatenate along the axis, in place of stacking along a new one.
        to: what the result's type says inside `shard_map`: that it may be 'varying' over the members, whose cotangents
            are then added up, or, 'invarying', that it is the same on all of them, so that it may leave where
            `out_specs` does not name the axis, and its cotangent is taken once.

    Returns:
        pytree of arrays of the dtypes of x: with n members, a new axis of size n, or n times the size with `tiled`.

    Raises:
        ValueError: if `to` is another word.
        NotImplementedError: for 'reduced', a type that weft does not have, and for groups of which each has a result of
            its own, which are not the same.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.all_gather(x, 'i').sum(), axis_name='i')(jnp.arange(3.))
        Array([3., 3., 3.], dtype=float32)
    """
    if to == "reduced":
        raise NotImplementedError(
            "all_gather: weft has no types that say 'reduced'; gather to='varying' or to='invarying'."
        )
    if to not in ("varying", "invarying"):
        raise ValueError(f"all_gather: `to` must be 'varying' or 'invarying', got {to!r}.")
    if to == "invarying" and axis_index_groups is not None:
        raise NotImplementedError(
            "all_gather: groups gather different results, so to='invarying' is"
            " not possible; leave axis_index_groups out, or use to='varying'."
        )
    names, groups = _names(axis_name), _groups("all_gather", axis_index_groups, axis_name)

    def one(leaf: Value) -> Value:
        leaf = operand("all_gather", leaf)
        d = canonical_axis(axis, len(shape_of(leaf)) + (not tiled))
        params = {
            "axis_name": names,
            "all_gather_dimension": d,
            "axis_size": ops.group_size(names, groups),
            "tiled": bool(tiled),
        }
        if to == "invarying":
            return ops.all_gather_invariant_p.bind(leaf, **params)
        return ops.all_gather_p.bind(leaf, **params, axis_index_groups=groups)

    return tree_map(one, x)


def psum_scatter(
    x: Tree,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Tree:
    """Sums over members, of which each keeps its own part of an axis: the parts of `all_gather(psum_scatter(x))` make
    `psum(x)`.

    The scattered axis must have one entry for each member, and is removed; `tiled`, it is cut into as many equal parts.

    Args:
        x: pytree of arrays of integers, floats or complex numbers, any shape, the same on all members.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        scatter_dimension: int, the axis that is cut: of size n, one entry for each member, or with `tiled` a multiple
            of n.
        axis_index_groups: lists of members, all of one size, each of which works for itself; None for all together.
        tiled: bool: cut the axis into n equal parts and keep it, in place of removing it.

    Returns:
        pytree of arrays of the dtypes of x: their shapes without the axis, or with an n-th of its size with `tiled`.

    Raises:
        WeftTypeError: if the axis can't be cut so.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.psum_scatter(x, 'i'), axis_name='i')(jnp.ones((2, 2)))
        Array([2., 2.], dtype=float32)
    """
    names, groups = _names(axis_name), _groups("psum_scatter", axis_index_groups, axis_name)

    def one(leaf: Value) -> Value:
        leaf = operand("psum_scatter", leaf)
        if dtypes.is_bool(get_aval(leaf).dtype):
            leaf = linear.convert(leaf, dtypes.int32)
        d = canonical_axis(scatter_dimension, len(shape_of(leaf)))
        return _checked(
            ops.reduce_scatter_p,
            leaf,
            axis_name=names,
            scatter_dimension=d,
            axis_size=ops.group_size(names, groups),
            tiled=bool(tiled),
            axis_index_groups=groups,
        )

    return tree_map(one, x)


def all_to_all(
    x: Tree,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Tree:
    """Exchanges parts: member j sends its i-th part along one axis to member i, which joins what it gets along another
    one, in the order of members.

    The split axis must have one entry for each member: it goes, and the axis of members stands at `concat_axis`.
    `tiled`, the split axis is cut into equal parts, and these are concatenated.

    Args:
        x: pytree of arrays of any dtype, any shape, the same on all members.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        split_axis: int, the axis that is cut: of size n, one entry for each member, or with `tiled` a multiple of n.
        concat_axis: int, where the parts are joined.
        axis_index_groups: lists of members, all of one size, each of which works for itself; None for all together.
        tiled: bool: cut `split_axis` into n equal parts and concatenate, in place of moving an axis.

    Returns:
        pytree of arrays of the dtypes of x: the axis of size n moved to `concat_axis`; with `tiled` an n-th of the size
        along `split_axis` and n times that along `concat_axis`.

    Raises:
        WeftTypeError: if the axis can't be cut so.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.all_to_all(x, 'i', 0, 0), axis_name='i')(jnp.array([[0, 1], [2, 3]]))
        Array([[0, 2],
               [1, 3]], dtype=int32)
    """
    groups = _groups("all_to_all", axis_index_groups, axis_name)

    def one(leaf: Value) -> Value:
        leaf = operand("all_to_all", leaf)
        rank = len(shape_of(leaf))
        split, concat = canonical_axis(split_axis, rank), canonical_axis(concat_axis, rank)
        return _checked(
            ops.all_to_all_p,
            leaf,
            axis_name=tuple(axis_name) if isinstance(axis_name, list) else axis_name,
            split_axis=split,
            concat_axis=concat,
            axis_index_groups=groups,
            tiled=bool(tiled),
        )

    return tree_map(one, x)


def pswapaxes(
    x: Tree, axis_name: AxisName, axis: int, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> Tree:
    """Exchanges the named axis with an axis of arrays.

    Args:
        x: pytree of arrays of any dtype, any shape, the same on all members.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        axis: int, an axis of the size of the named one.
        axis_index_groups: lists of members, all of one size, each of which works for itself; None for all together.

    Returns:
        pytree of arrays of the dtypes and shapes of x.

    Raises:
        WeftTypeError: if the sizes differ.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.pswapaxes(x, 'i', 0), axis_name='i')(jnp.array([[0, 1], [2, 3]]))
        Array([[0, 2],
               [1, 3]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: Tree, axis_name: AxisName, source: int) -> Tree:
    """Sends the value of one member to every member.

    Args:
        x: pytree of arrays of any dtype, any shape, the same on all members.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        source: int, the member.

    Returns:
        pytree like x.

    Raises:
        ValueError: if there is no such member.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.pbroadcast(x, 'i', 1), axis_name='i')(jnp.arange(3.))
        Array([1., 1., 1.], dtype=float32)
    """
    n = ops.axis_size(_names(axis_name))
    if not 0 <= source < n:
        raise ValueError(f"pbroadcast: source {source} is not a member of {axis_name!r}, which has {n}.")
    return tree_map(
        lambda leaf: ops.pbroadcast_p.bind(
            operand("pbroadcast", leaf), axis_name=_names(axis_name), source=int(source)
        ),
        x,
    )


def ppermute(x: Tree, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Tree:
    """Sends values along pairs of members; those that receive nothing get zeros.

    Args:
        x: pytree of arrays of any dtype, any shape, the same on all members.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        perm: pairs of ints (source, destination), the sources distinct and the destinations distinct.

    Returns:
        pytree like x.

    Raises:
        ValueError: if sources or destinations are no members or not distinct.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.ppermute(x, 'i', [(0, 1), (1, 0)]), axis_name='i')(jnp.arange(2.))
        Array([1., 0.], dtype=float32)
    """
    pairs, n = tuple((int(a), int(b)) for a, b in perm), ops.axis_size(_names(axis_name))
    if len({a for a, _ in pairs}) != len(pairs) or len({b for _, b in pairs}) != len(pairs):
        raise ValueError(f"ppermute: sources and destinations must each be distinct, got {pairs}.")
    if any(not 0 <= m < n for pair in pairs for m in pair):
        raise ValueError(
            f"ppermute: sources and destinations must be members of {axis_name!r}, 0 to {n - 1}, got {pairs}."
        )
    return tree_map(
        lambda leaf: ops.ppermute_p.bind(operand("ppermute", leaf), axis_name=_names(axis_name), perm=pairs), x
    )


def pshuffle(x: Tree, axis_name: AxisName, perm: Sequence[int]) -> Tree:
    """Permutes values: member i receives that of member perm[i].

    Args:
        x: pytree of arrays of any dtype, any shape, the same on all members.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        perm: sequence of ints, a permutation of all members.

    Returns:
        pytree like x.

    Raises:
        ValueError: if it is no permutation.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(lambda x: weft.lax.pshuffle(x, 'i', [1, 0]), axis_name='i')(jnp.arange(2.))
        Array([1., 0.], dtype=float32)
    """
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"pshuffle: perm must be a permutation, got {perm}.")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def pcast(x: Tree, axis_name: AxisName, *, to: str) -> Tree:
    """Lets the type of values say that they may vary along named axes of `shard_map`; their cotangents are then added
    up over them.

    Values are made varying by themselves where they meet varying ones. `to` is 'varying'; other kinds of types weft
    does not have.

    Args:
        x: pytree of arrays of any dtype, any shape.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        to: str, 'varying'.

    Returns:
        pytree like x.

    Raises:
        ValueError: for another `to`.
        NameError: if the axis is not in scope.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> f = lambda x: x * weft.lax.pcast(2., "x", to="varying")
        >>> mesh = weft.make_mesh((1,), ("x",))
        >>> weft.shard_map(f, mesh=mesh, in_specs=weft.P("x"), out_specs=weft.P("x"))(jnp.ones(2))
        Array([2., 2.], dtype=float32)
    """
    if to != "varying":
        raise ValueError(
            f"pcast: `to` must be 'varying', got {to!r}; weft's types have no values that are unreduced or reduced."
        )
    names = _names(axis_name)
    ops.axis_size(names)
    return tree_map(lambda leaf: ops.pvary_p.bind(operand("pcast", leaf), axes=names), x)
