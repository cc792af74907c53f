"""Pytrees: nested containers of arrays, as `jax.tree` names what is done with them."""

from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from .base import registration as _registration, tree as _tree
from .base.tree import (
    tree_flatten as flatten,
    tree_flatten_with_path as flatten_with_path,
    tree_leaves as leaves,
    tree_leaves_with_path as leaves_with_path,
    tree_map as map,
    tree_map_with_path as map_with_path,
    tree_structure as structure,
    tree_unflatten as unflatten,
)
from .base.tree_operations import (
    tree_all as all,
    tree_broadcast as broadcast,
    tree_reduce as reduce,
    tree_reduce_associative as reduce_associative,
    tree_transpose as transpose,
)
from .base.registration import static

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]

# Types that pickles written before they moved name here (decision 028).
_PICKLED = {
    **dict.fromkeys(("DictKey", "FlattenedIndexKey", "GetAttrKey", "PyTreeDef", "SequenceKey", "_LEAF"), _tree),
    "Partial": _registration,
}

if not _TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every name

    def __getattr__(name: str) -> _Any:
        if name in _PICKLED:
            return getattr(_PICKLED[name], name)
        raise AttributeError(f"module 'weft.tree' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
