"""Functions of `weft.lax` that place values on devices."""

from __future__ import annotations

from ..primitives.placement import constrain
from ..base.annotations import PyTree
from ..base.mesh import PartitionSpec, Sharding, canonical_sharding
from ..base.tree import broadcast_prefix, tree_flatten
from ..typing import Tree
from .common import operand

__all__ = ["with_sharding_constraint"]


def with_sharding_constraint(x: Tree, shardings: Sharding | PartitionSpec | PyTree) -> Tree:
    """Says how arrays lie over devices inside a compiled program; outside, it moves them.

    Args:
        x: pytree of arrays of any dtype, any shape.
        shardings: pytree prefix of x of `Sharding`s or `PartitionSpec`s.

    Returns:
        pytree like x.

    Raises:
        ValueError: if an axis can't be cut evenly.
        RuntimeError: for a spec without a mesh.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> where = weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.P("x"))
        >>> weft.lax.with_sharding_constraint(jnp.ones(2), where).sharding.spec
        P('x',)
    """
    leaves, tree = tree_flatten(x)
    places = [canonical_sharding(s) for s in broadcast_prefix(shardings, x)]
    return tree.unflatten([constrain(operand("with_sharding_constraint", leaf), s) for leaf, s in zip(leaves, places)])
