"""How arrays lie in memory: the order of their axes, with where they lie."""

from __future__ import annotations

from ..base.layout import AutoLayout as AutoLayout, Format as Format, Layout as Layout
from ..base.tree import broadcast_prefix, tree_flatten
from ..lax.common import operand
from ..primitives.placement import layout_constraint_p
from ..typing import Tree

__all__ = ["AutoLayout", "Format", "Layout", "with_layout_constraint"]


def with_layout_constraint(x: Tree, layouts: Layout) -> Tree:
    """Says in which order the axes of arrays lie in memory, at this point of a compiled program. XLA follows it; other
    backends keep arrays row by row, and values are the same.

    Args:
        x: pytree of arrays of any dtype, any shape.
        layouts: `Layout`, or pytree prefix of x of them.

    Returns:
        pytree like x, of the same dtypes and shapes.

    Raises:
        ValueError: if a layout names other axes than its array has.
        TypeError: for what is no layout.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental.layout import Layout, with_layout_constraint
        >>> weft.jit(lambda x: with_layout_constraint(x.T, Layout((1, 0))) + 1)(jnp.zeros((1, 2))).shape
        (2, 1)
    """
    leaves, tree = tree_flatten(x)
    made = []
    for leaf, layout in zip(leaves, broadcast_prefix(layouts, x)):
        if not isinstance(layout, Layout):
            raise TypeError(f"with_layout_constraint takes a Layout for each array, got {layout!r}.")
        value = operand("with_layout_constraint", leaf)
        layout.check_compatible_aval(value.shape)
        made.append(layout_constraint_p.bind(value, layout=layout))
    return tree.unflatten(made)


def __dir__() -> list[str]:
    return sorted(__all__)
