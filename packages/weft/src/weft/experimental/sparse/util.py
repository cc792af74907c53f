"""What the formats share, under the names that libraries take it from: warnings, errors, vmaps of several axes."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from ... import numpy as jnp
from ...api.vmap import vmap
from ...base.errors import at_user_line
from ...base.tree import broadcast_prefix, tree_flatten
from .base import (
    CuSparseEfficiencyWarning as CuSparseEfficiencyWarning,
    SparseEfficiencyError as SparseEfficiencyError,
    SparseEfficiencyWarning as SparseEfficiencyWarning,
)

__all__ = [
    "CuSparseEfficiencyWarning",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseInfo",
    "broadcasting_vmap",
    "nfold_vmap",
]


class SparseInfo(NamedTuple):
    """The shape of a sparse array, and whether its indices are sorted and differ from each other."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


def broadcasting_vmap(fun: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Callable:
    """`vmap` in which axes of size 1 broadcast: such an argument is the same for all elements.

    Args:
        fun: function of pytrees of arrays.
        in_axes: int, None, or a tree prefix of the arguments: the axes, as for `weft.vmap`.
        out_axes: int, None, or a tree prefix of the result.

    Returns:
        function of the same arguments, positional ones alone.

    Raises:
        ValueError: if sizes other than 1 differ, or nothing is mapped.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental.sparse.util import broadcasting_vmap
        >>> broadcasting_vmap(jnp.dot)(jnp.ones((1, 2)), jnp.ones((3, 2)))
        Array([2., 2., 2.], dtype=float32)
    """

    def mapped(*args: Any) -> Any:
        leaves, tree = tree_flatten(args)
        axes = broadcast_prefix(in_axes, args)
        sizes = {jnp.shape(x)[a] for x, a in zip(leaves, axes) if a is not None}
        if not sizes:
            raise ValueError(at_user_line("broadcasting_vmap maps nothing: in_axes is None for all arguments."))
        if len(sizes - {1}) > 1:
            raise ValueError(at_user_line(f"broadcasting_vmap got axes of different sizes: {sorted(sizes)}."))
        size = max(sizes - {1}, default=1) if sizes != {0, 1} else 0
        alike = [a is not None and jnp.shape(x)[a] == 1 != size for x, a in zip(leaves, axes)]
        leaves = [jnp.squeeze(x, a) if same else x for x, a, same in zip(leaves, axes, alike)]
        flat_axes = tuple(None if same else a for a, same in zip(axes, alike))
        return vmap(lambda *xs: fun(*tree.unflatten(xs)), flat_axes, out_axes)(*leaves)

    return mapped


def nfold_vmap(fun: Callable, N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Callable:
    """`fun` mapped over N leading axes; those of size 1 broadcast if `broadcasted`.

    Args:
        fun: function of pytrees of arrays.
        N: int, the number of axes.
        broadcasted: bool: axes of size 1 broadcast.
        in_axes: int, None, or a tree prefix of the arguments.

    Returns:
        function of the same arguments.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental.sparse.util import nfold_vmap
        >>> nfold_vmap(jnp.dot, 2)(jnp.ones((2, 1, 4)), jnp.ones((1, 3, 4))).shape
        (2, 3)
    """
    for _ in range(N):
        fun = broadcasting_vmap(fun, in_axes) if broadcasted else vmap(fun, in_axes)
    return fun
