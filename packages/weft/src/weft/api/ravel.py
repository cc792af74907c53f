"""A pytree of arrays as one vector, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from ..base import dtypes, promotion
from .. import lax, numpy as jnp
from ..core.trace import get_aval
from ..base.tree import tree_flatten, tree_unflatten

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All leaves of a pytree as one vector, and the function that undoes this.

    Args:
        pytree: pytree of arrays, of any dtype and shape.

    Returns:
        (vector, unravel). The vector has the dtype that the leaves promote to, and as many elements as all leaves
        together. `unravel` returns leaves of the original shapes and dtypes. It raises ValueError for a vector of
        another length and, unless all leaves had one dtype, TypeError for one of another dtype.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> flat, unravel = weft.flatten_util.ravel_pytree({"a": jnp.ones(2), "b": 3})
        >>> flat
        Array([1., 1., 3.], dtype=float32)
        >>> unravel(flat)["b"]
        Array(3, dtype=int32)
    """
    leaves, tree = tree_flatten(pytree)
    if not leaves:
        return jnp.zeros(0), _Unravel(tree, (), None)
    types = tuple(get_aval(x) for x in leaves)
    wide = promotion.result_type(*types)
    flat = jnp.concatenate([jnp.ravel(jnp.asarray(x).astype(wide)) for x in leaves])
    return flat, _Unravel(tree, types, None if all(t.dtype == wide for t in types) else wide)


@dataclass(frozen=True)
class _Unravel:
    """From the vector to the tree. Equal for equal trees, so it can be a static argument."""

    tree: Any
    types: tuple
    wide: Any  # the vector's dtype, or None if all leaves have it

    def __call__(self, flat):
        aval, total = get_aval(flat), sum(t.size for t in self.types)
        if aval.shape != (total,):
            raise ValueError(
                f"unravel takes a vector of {total} elements, as ravel_pytree made; got shape {aval.shape}."
            )
        if self.wide is not None and aval.dtype != self.wide:
            raise TypeError(
                f"unravel function given array of dtype {dtypes.name(aval.dtype)}, but expected dtype"
                f" {dtypes.name(self.wide)}."
            )
        leaves, start = [], 0
        for t in self.types:
            part = lax.slice(flat, (start,), (start + t.size,)).reshape(t.shape)
            leaves.append(part if self.wide is None else part.astype(t.dtype))
            start += t.size
        return tree_unflatten(self.tree, leaves)
