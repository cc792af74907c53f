"""Functions of `weft.lax` that place values on devices."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ..primitives.placement import constrain
from ..base.annotations import PyTree
from ..base.errors import at_user_line
from ..base.mesh import NamedSharding, P, PartitionSpec, Sharding, canonical_sharding, over_devices, type_of_sharding
from ..base.spec import named_axes
from ..core.shardings import parts_of, placed_of
from ..core.trace import get_aval, is_array
from ..base.tree import broadcast_prefix, tree_flatten
from ..typing import Tree
from .common import operand

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["with_sharding_constraint"]


def with_sharding_constraint(x: Tree, shardings: Sharding | PartitionSpec | PyTree) -> Tree:
    """Says how arrays lie over devices inside a compiled program; outside, it moves them. Along explicit axes of a
    mesh, where types say it, it checks them.

    Args:
        x: pytree of arrays of any dtype, any shape.
        shardings: pytree prefix of x of `Sharding`s or `PartitionSpec`s.

    Returns:
        pytree like x.

    Raises:
        AssertionError: if all axes of the mesh are explicit, and the type of an array says something else.
        ValueError: if an axis can't be cut evenly, or a spec names explicit axes of a mesh that has others too.
        RuntimeError: for a spec without a mesh.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> where = weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.P("x"))
        >>> weft.lax.with_sharding_constraint(jnp.ones(2), where).sharding.spec
        P('x',)
    """
    leaves, tree = tree_flatten(x)
    places = [canonical_sharding(s) for s in broadcast_prefix(shardings, x)]
    return tree.unflatten([_constrained(operand("with_sharding_constraint", v), s) for v, s in zip(leaves, places)])


def _constrained(x: Value, where: Any) -> Value:
    """`x` with a constraint. Of explicit axes it says nothing new: there it is checked."""
    if is_array(x) and isinstance(x.device, NamedSharding):
        where = over_devices(where, x.device.mesh)
    explicit = where.mesh.typed_axes if isinstance(where, NamedSharding) else ()
    if not explicit:
        return constrain(x, where)
    aval = get_aval(x)
    if not where.mesh.are_all_axes_explicit:
        for name in named_axes(where.spec):
            if name in explicit:
                raise ValueError(
                    at_user_line(
                        f"with_sharding_constraint: {where.spec} names the axis {name!r}, which is explicit; a"
                        " constraint is for axes along which the compiler decides. Use weft.sharding.reshard for it."
                    )
                )
        parts = [w or e for w, e in itertools.zip_longest(where.spec, parts_of(aval))]
        return constrain(x, where.update(spec=P(*parts)))
    if type_of_sharding(where, len(aval.shape)) != placed_of(aval):
        raise AssertionError(
            at_user_line(
                f"with_sharding_constraint: the value of type {aval.str_short()} is not divided as {where.spec} says;"
                " along explicit axes this only checks. Move it with weft.sharding.reshard."
            )
        )
    return x
