"""Two arrays with one sharding, which the compiler chooses."""

from __future__ import annotations

from ..base.tree import tree_flatten
from ..core.trace import get_aval
from ..lax.common import operand
from ..primitives.placement import shard_alike_p
from ..typing import Tree

__all__ = ["shard_alike"]


def shard_alike(x: Tree, y: Tree) -> tuple[Tree, Tree]:
    """Has the compiler lay two pytrees of arrays out over devices in the same way, whichever that is. On one device,
    and on backends whose programs run on one, it changes nothing.

    Args:
        x: pytree of arrays of any dtypes and shapes.
        y: pytree of the same structure, whose arrays have the same shapes.

    Returns:
        (x, y).

    Raises:
        ValueError: if the structures, or the shapes of two arrays, differ.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental.shard_alike import shard_alike
        >>> x, y = shard_alike(jnp.ones(2), jnp.zeros(2))
        >>> y
        Array([0., 0.], dtype=float32)
    """
    ours, tree = tree_flatten(x)
    theirs, other = tree_flatten(y)
    if tree != other:
        raise ValueError(f"shard_alike takes two pytrees of one structure; got {tree} and {other}.")
    pairs = []
    for a, b in zip(ours, theirs):
        one, two = operand("shard_alike", a), operand("shard_alike", b)
        if get_aval(one).shape != get_aval(two).shape:
            raise ValueError(
                f"shard_alike takes arrays of one shape; got {get_aval(one).str_short()} and"
                f" {get_aval(two).str_short()}. What one sharding means for both is not defined otherwise."
            )
        pairs.append(shard_alike_p.bind(one, two))
    return tree.unflatten([a for a, _ in pairs]), tree.unflatten([b for _, b in pairs])


def __dir__() -> list[str]:
    return list(__all__)
