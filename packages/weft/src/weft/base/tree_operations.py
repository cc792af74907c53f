"""Operations on whole pytrees: reductions over the leaves, transposing two structures, broadcasting a prefix."""

from __future__ import annotations

import functools
from typing import Any, Callable

from .annotations import PyTree
from .tree import IsLeaf, PyTreeDef, broadcast_prefix, tree_flatten, tree_leaves, tree_structure

_no_initializer = object()


def tree_all(tree: PyTree, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    Args:
        tree: pytree of values that have a truth value.
        is_leaf: function of a node that returns whether it is a leaf, or None.

    Returns:
        bool: True also for a tree without leaves.

    Example:
        >>> import weft
        >>> weft.tree.all({'a': True, 'b': [1, 0]})
        False
    """
    return all(tree_leaves(tree, is_leaf))


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: PyTree, initializer: object = _no_initializer, is_leaf: IsLeaf = None
) -> Any:
    """Folds a function of two values over the leaves, from the first to the last.

    Args:
        function: function of the value so far and the next leaf.
        tree: pytree of any values.
        initializer: the first value; without it, the first leaf is.
        is_leaf: function of a node that returns whether it is a leaf, or None.

    Returns:
        the last value.

    Raises:
        TypeError: for a tree without leaves, if there is no `initializer`.

    Example:
        >>> import weft
        >>> weft.tree.reduce(lambda a, b: a + b, {'a': 1, 'b': [2, 3]})
        6
    """
    leaves = tree_leaves(tree, is_leaf)
    return (
        functools.reduce(function, leaves)
        if initializer is _no_initializer
        else functools.reduce(function, leaves, initializer)
    )


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: PyTree, *, identity: object = _no_initializer, is_leaf: IsLeaf = None
) -> Any:
    """Folds an associative function over the leaves by combining adjacent pairs: the depth is logarithmic.

    Args:
        operation: associative function of two values.
        tree: pytree of any values.
        identity: the result for a tree without leaves.
        is_leaf: function of a node that returns whether it is a leaf, or None.

    Returns:
        the combined value.

    Raises:
        ValueError: for a tree without leaves, if there is no `identity`.

    Example:
        >>> import weft
        >>> weft.tree.reduce_associative(lambda a, b: a + b, {'a': 1, 'b': [2, 3]})
        6
    """
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is _no_initializer:
            raise ValueError("tree_reduce_associative of a tree without leaves needs an identity.")
        return identity
    while len(leaves) > 1:
        paired = [operation(a, b) for a, b in zip(leaves[::2], leaves[1::2])]
        leaves = paired + leaves[len(paired) * 2 :]
    return leaves[0]


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree) -> Any:
    """Turns an outer structure that contains inner ones into an inner structure that contains outer ones.

    Args:
        outer_treedef: `PyTreeDef` of the outer structure.
        inner_treedef: `PyTreeDef` of the structure at each leaf of the outer one; None takes it from the first.
        pytree_to_transpose: pytree of the structure that `outer_treedef` has with `inner_treedef` at each leaf.

    Returns:
        pytree of the inner structure, with the outer one at each leaf.

    Raises:
        TypeError: if the pytree has another structure.

    Example:
        >>> import weft
        >>> weft.tree.transpose(weft.tree.structure([0, 0]), weft.tree.structure({'a': 0}), [{'a': 1}, {'a': 2}])
        {'a': [1, 2]}
    """
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    expected = outer_treedef.compose(inner_treedef)
    if treedef != expected:
        raise TypeError(f"tree_transpose expected structure {expected}, got {treedef}.")
    n, m = outer_treedef.num_leaves, inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(leaves[i::m]) for i in range(m)] if n else [])


def tree_broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf = None) -> Any:
    """Copies each leaf of a prefix to all leaves below it in the full tree.

    Args:
        prefix_tree: pytree whose structure is a prefix of that of `full_tree`.
        full_tree: pytree of any values.
        is_leaf: function of a node of `prefix_tree` that returns whether it is a leaf, or None.

    Returns:
        pytree of the structure of `full_tree`, with the leaves of `prefix_tree`.

    Raises:
        ValueError: if `prefix_tree` is not a prefix of `full_tree`.

    Example:
        >>> import weft
        >>> weft.tree.broadcast({'a': 1, 'b': 2}, {'a': [0, 0], 'b': 0})
        {'a': [1, 1], 'b': 2}
    """
    return tree_structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))
