"""Pytrees: nested containers of leaves, taken apart into a list of leaves and a `PyTreeDef`, and put together again."""

from __future__ import annotations

from typing import Any, Callable, Iterable, NamedTuple, TypeAlias, TypeVar

from .annotations import PyTree, override
from .errors import at_user_line

KeyEntry = TypeVar("KeyEntry")
KeyPath = tuple[KeyEntry, ...]
IsLeaf: TypeAlias = Callable[[Any], bool] | None  # decides which containers are treated as leaves


class _Key:
    """A step of a key path. Two steps are equal if their types and values are."""

    __slots__ = ("value",)
    field = "value"
    value: Any

    @override
    def __eq__(self, other):
        return type(self) is type(other) and self.value == other.value

    @override
    def __hash__(self):
        return hash((type(self), self.value))

    @override
    def __repr__(self):
        return f"{type(self).__name__}({self.field}={self.value!r})"


class SequenceKey(_Key):
    """The step of a key path into a list or tuple.

    Example:
        >>> import weft
        >>> weft.tree.leaves_with_path([1])
        [((SequenceKey(idx=0),), 1)]
    """

    __slots__, field = (), "idx"
    idx = property(lambda self: self.value)

    def __init__(self, idx):
        self.value = idx

    @override
    def __str__(self):
        return f"[{self.value!r}]"


class DictKey(_Key):
    """The step of a key path into a dict.

    Example:
        >>> import weft
        >>> weft.tree.leaves_with_path({"a": 1})
        [((DictKey(key='a'),), 1)]
    """

    __slots__, field = (), "key"
    key = property(lambda self: self.value)

    def __init__(self, key):
        self.value = key

    @override
    def __str__(self):
        return f"[{self.value!r}]"


class GetAttrKey(_Key):
    """The step of a key path to an attribute.

    Example:
        >>> import weft
        >>> str(weft.tree_util.GetAttrKey("bias"))
        '.bias'
    """

    __slots__, field = (), "name"
    name = property(lambda self: self.value)

    def __init__(self, name):
        self.value = name

    @override
    def __str__(self):
        return f".{self.value}"


class FlattenedIndexKey(_Key):
    """The step of a key path into a registered class that names no keys.

    Example:
        >>> import weft
        >>> str(weft.tree_util.FlattenedIndexKey(2))
        '[<flat index 2>]'
    """

    __slots__, field = (), "key"
    key = property(lambda self: self.value)

    def __init__(self, key):
        self.value = key

    @override
    def __str__(self):
        return f"[<flat index {self.value}>]"


class NodeType(NamedTuple):
    """How values of one class are flattened and rebuilt; `with_keys` returns (key, child) pairs."""

    type: type
    flatten: Callable  # value -> (children, aux)
    unflatten: Callable  # (aux, children) -> value
    with_keys: Callable | None


registry: dict[type, NodeType] = {}
_listeners: list[Callable[[NodeType], None]] = []


def listen(callback: Callable[[NodeType], None]) -> None:
    """Calls `callback` with every node type: those registered so far now, later ones when they are registered. A
    backend uses this to keep its own copy of the registry.
    """
    for node in list(registry.values()):
        callback(node)
    _listeners.append(callback)


def _register(node: NodeType) -> None:
    if node.type in registry:
        raise ValueError(
            at_user_line(
                f"{node.type.__name__} is registered as a pytree node already. Register each class once, where it is"
                " defined."
            )
        )
    registry[node.type] = node
    for callback in _listeners:
        callback(node)


class PyTreeDef:
    """The structure of a pytree, without its leaves. Equal structures are equal and have equal hashes.

    Attributes:
        num_leaves: how many leaves it has.
        num_nodes: how many nodes it has: containers and leaves.

    Example:
        >>> import weft
        >>> weft.tree.structure({"a": 1, "b": (2, None)})
        PyTreeDef({'a': *, 'b': (*, None)})
    """

    __slots__ = ("node", "aux", "nodes", "num_leaves", "_hash")

    def __init__(self, node, aux, nodes: tuple):
        self.node, self.aux, self.nodes = node, aux, nodes
        self._hash: int | None = None
        self.num_leaves = 1 if node is _LEAF else sum([n.num_leaves for n in nodes])

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves the structure has."""
        return 1 + sum(n.num_nodes for n in self.nodes)

    @override
    def __reduce__(self):  # a hash is valid in one process only
        return PyTreeDef, (self.node, self.aux, self.nodes)

    def unflatten(self, leaves: Iterable):
        """The pytree of this structure with the given leaves. Raises ValueError for another number of leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                at_user_line(
                    f"this structure has {self.num_leaves} leaves; got {len(leaves)}: {self}. Give one leaf for each *."
                )
            )
        return self._build(iter(leaves))

    def _build(self, leaves):
        node = self.node
        if node is _LEAF:
            return next(leaves)
        if node is tuple:
            return tuple([n._build(leaves) for n in self.nodes])
        if node is list:
            return [n._build(leaves) for n in self.nodes]
        if node is dict:
            return dict(zip(self.aux, [n._build(leaves) for n in self.nodes]))
        if node is None:
            return None
        children = tuple([n._build(leaves) for n in self.nodes])
        if node in registry:
            return registry[node].unflatten(self.aux, children)
        return node(*children)  # a namedtuple

    def flatten_up_to(self, value) -> list:
        """The subtrees of `value` where this structure has leaves."""
        out: list = []
        _flatten_up_to(self, value, out, ())
        return out

    def children(self) -> list["PyTreeDef"]:
        """The structures of the children; empty for a leaf."""
        return list(self.nodes)

    def node_data(self):
        """(type, auxiliary data) of the outermost container; None for a leaf."""
        return None if self.node is _LEAF else (type(None) if self.node is None else self.node, self.aux)

    def compose(self, inner: "PyTreeDef") -> "PyTreeDef":
        """This structure with `inner` at every leaf."""
        return (
            inner if self.node is _LEAF else PyTreeDef(self.node, self.aux, tuple(n.compose(inner) for n in self.nodes))
        )

    @override
    def __eq__(self, other):
        if self is other:
            return True
        return (
            type(other) is PyTreeDef
            and self.node is other.node
            and self.num_leaves == other.num_leaves
            and self.aux == other.aux
            and self.nodes == other.nodes
        )

    @override
    def __hash__(self):
        if self._hash is None:
            try:
                self._hash = hash((self.node, self.aux, self.nodes))
            except TypeError:  # a class of nodes may have a list beside its children
                self._hash = hash((self.node, self.nodes))
        return self._hash

    def _text(self) -> str:
        inner = [n._text() for n in self.nodes]
        node = self.node
        if node is _LEAF:
            return "*"
        if node is None:
            return "None"
        if node is tuple:
            return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
        if node is list:
            return f"[{', '.join(inner)}]"
        if node is dict:
            return "{" + ", ".join(f"{k!r}: {t}" for k, t in zip(self.aux, inner)) + "}"
        if node in registry:
            return f"CustomNode({node.__name__}[{self.aux}], [{', '.join(inner)}])"
        return f"CustomNode(namedtuple[{node.__name__}], [{', '.join(inner)}])"

    @override
    def __repr__(self):
        return f"PyTreeDef({self._text()})"


class _Leaf:
    @override
    def __repr__(self):
        return "leaf"

    @override
    def __reduce__(self):
        return "_LEAF"


_LEAF = _Leaf()
LEAF = PyTreeDef(_LEAF, None, ())
_NONE = PyTreeDef(None, None, ())
_sequences: dict = {}  # (type, n) -> the treedef of n leaves; the most common structures are made once


def _flat_sequence(node, n: int) -> PyTreeDef:
    key = (node, n)
    if key not in _sequences:
        _sequences[key] = PyTreeDef(node, None, (LEAF,) * n)
    return _sequences[key]


def arrays_call(n: int) -> PyTreeDef:
    """The structure of the arguments of a call with n leaves: `((*, …), {})`."""
    if n not in _calls:
        _calls[n] = PyTreeDef(tuple, None, (_flat_sequence(tuple, n), PyTreeDef(dict, (), ())))
    return _calls[n]


_calls: dict[int, PyTreeDef] = {}


def _is_namedtuple(x) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_fields")


def _sorted_keys(d: dict) -> tuple:
    try:
        return tuple(sorted(d))
    except TypeError as e:
        raise ValueError(f"the keys of a dict in a pytree must be comparable with one another; got {list(d)!r}.") from e


def _flatten(x, leaves: list, is_leaf) -> PyTreeDef:
    if is_leaf is not None and is_leaf(x):
        leaves.append(x)
        return LEAF
    kind = type(x)
    if kind is tuple or kind is list:
        nodes = tuple([_flatten(child, leaves, is_leaf) for child in x])
        if all([n is LEAF for n in nodes]):
            return _flat_sequence(kind, len(nodes))
        return PyTreeDef(kind, None, nodes)
    if kind is dict:
        keys = _sorted_keys(x)
        return PyTreeDef(dict, keys, tuple([_flatten(x[k], leaves, is_leaf) for k in keys]))
    if x is None:
        return _NONE
    entry = registry.get(kind)
    if entry is not None:
        children, aux = entry.flatten(x)
        return PyTreeDef(kind, aux, tuple([_flatten(child, leaves, is_leaf) for child in children]))
    if _is_namedtuple(x):
        return PyTreeDef(kind, None, tuple([_flatten(child, leaves, is_leaf) for child in x]))
    leaves.append(x)
    return LEAF


def keyed_children(x):
    """[(key, child)] of a node, or None for a leaf."""
    kind = type(x)
    if kind is tuple or kind is list:
        return [(SequenceKey(i), c) for i, c in enumerate(x)]
    if kind is dict:
        return [(DictKey(k), x[k]) for k in _sorted_keys(x)]
    if x is None:
        return []
    entry = registry.get(kind)
    if entry is not None:
        if entry.with_keys is not None:
            return list(entry.with_keys(x)[0])
        return [(FlattenedIndexKey(i), c) for i, c in enumerate(entry.flatten(x)[0])]
    if _is_namedtuple(x):
        return [(GetAttrKey(f), getattr(x, f)) for f in x._fields]
    return None


def _paths(x, path: tuple, out: list, is_leaf) -> PyTreeDef:
    """Collects (key path, leaf) pairs; `is_leaf` takes the path and the value."""
    children = None if is_leaf is not None and is_leaf(path, x) else keyed_children(x)
    if children is None:
        out.append((path, x))
        return LEAF
    nodes = tuple([_paths(child, (*path, key), out, is_leaf) for key, child in children])
    if x is None:
        return _NONE
    kind = type(x)
    aux = _sorted_keys(x) if kind is dict else registry[kind].flatten(x)[1] if kind in registry else None
    return PyTreeDef(kind, aux, nodes)


def _mismatch(path, expected: PyTreeDef, value):
    where = f" at {keystr(path)}" if path else ""
    return ValueError(
        at_user_line(
            f"pytree structures differ{where}: expected {expected._text()}, got {tree_structure(value)._text()}. Give"
            " both the same containers and keys."
        )
    )


def _flatten_up_to(treedef: PyTreeDef, value, out: list, path: tuple) -> None:
    node = treedef.node
    if node is _LEAF:
        out.append(value)
        return
    if node is None:
        if value is not None:
            raise _mismatch(path, treedef, value)
        return
    children = keyed_children(value)
    same = type(value) is node and children is not None and len(children) == len(treedef.nodes)
    if same and node is dict:
        same = _sorted_keys(value) == treedef.aux
    elif same and node in registry:
        same = registry[node].flatten(value)[1] == treedef.aux
    if not same:
        raise _mismatch(path, treedef, value)
    for sub, (key, child) in zip(treedef.nodes, children):
        _flatten_up_to(sub, child, out, (*path, key))


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a pytree in a fixed order, and its structure.

    Tuples, lists, dicts (in the order of their sorted keys), named tuples, None and registered classes are containers.
    Every other value is a leaf. None has no leaves.

    Args:
        tree: pytree of any values.
        is_leaf: function of a node that returns whether it is a leaf; None: only values that are no containers are.

    Returns:
        (leaves, structure): a list of the leaves, and a `PyTreeDef`.

    Raises:
        ValueError: for a dict whose keys can't be compared with one another.

    Example:
        >>> import weft
        >>> weft.tree_util.tree_flatten({"b": 1, "a": (2, 3)})
        ([2, 3, 1], PyTreeDef({'a': (*, *), 'b': *}))
    """
    leaves: list = []
    treedef = _flatten(tree, leaves, is_leaf)
    return leaves, treedef


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The pytree of structure `treedef` with the given leaves; the inverse of `tree_flatten`.

    Args:
        treedef: `PyTreeDef`: the structure.
        leaves: iterable of the leaves, in the order of `tree_flatten`.

    Returns:
        pytree of that structure.

    Raises:
        ValueError: if the number of leaves is not that of the structure.

    Example:
        >>> import weft
        >>> weft.tree.unflatten(weft.tree.structure({'a': 0, 'b': 0}), [1, 2])
        {'a': 1, 'b': 2}
    """
    return treedef.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a pytree, in the order of `tree_flatten`.

    Args:
        tree: pytree of any values.
        is_leaf: function of a node that returns whether it is a leaf, or None.

    Returns:
        list of the leaves.

    Example:
        >>> import weft
        >>> weft.tree.leaves({'a': 1, 'b': [2, 3]})
        [1, 2, 3]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a pytree.

    Args:
        tree: pytree of any values.
        is_leaf: function of a node that returns whether it is a leaf, or None.

    Returns:
        `PyTreeDef`: equal for equal structures.

    Example:
        >>> import weft
        >>> weft.tree.structure({'a': 1, 'b': [2, 3]})
        PyTreeDef({'a': *, 'b': [*, *]})
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf = None) -> Any:
    """Applies `f` to the leaves of `tree` and the corresponding subtrees of `rest`, and keeps the structure of `tree`.

    Args:
        f: function of a leaf of `tree` and of one subtree of each pytree of `rest`.
        tree: pytree of any values.
        *rest: pytrees that have the structure of `tree` as a prefix.
        is_leaf: function of a node that returns whether it is a leaf, or None.

    Returns:
        pytree of the structure of `tree`.

    Raises:
        ValueError: if the structure of `tree` is not a prefix of a pytree of `rest`.

    Example:
        >>> import weft
        >>> weft.tree.map(lambda x, y: x + y, {"a": 1, "b": 2}, {"a": 10, "b": 20})
        {'a': 11, 'b': 22}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [leaves] + [treedef.flatten_up_to(r) for r in rest]
    return treedef.unflatten([f(*xs) for xs in zip(*columns)])


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath[Any], Any]], PyTreeDef]:
    """The leaves of a pytree, each with its key path, and the structure.

    Args:
        tree: pytree of any values.
        is_leaf: function of a node that returns whether it is a leaf, or None.
        is_leaf_takes_path: bool: call `is_leaf` with the key path and the node.

    Returns:
        (pairs, structure): a list of (key path, leaf), and a `PyTreeDef`. A key path is a tuple of keys.

    Example:
        >>> import weft
        >>> weft.tree.flatten_with_path({"a": (1, 2)}, lambda path, x: len(path) == 1, True)[0]
        [((DictKey(key='a'),), (1, 2))]
    """
    out: list = []
    test = is_leaf if is_leaf is None or is_leaf_takes_path else lambda path, x: is_leaf(x)
    treedef = _paths(tree, (), out, test)
    return out, treedef


def tree_leaves_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath[Any], Any]]:
    """The leaves of a pytree, each with its key path.

    Args:
        tree: pytree of any values.
        is_leaf: function of a node that returns whether it is a leaf, or None.
        is_leaf_takes_path: bool: call `is_leaf` with the key path and the node.

    Returns:
        list of (key path, leaf).

    Example:
        >>> import weft
        >>> [(weft.tree_util.keystr(p), x) for p, x in weft.tree.leaves_with_path({'a': 1, 'b': [2]})]
        [("['a']", 1), ("['b'][0]", 2)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: PyTree,
    *rest: PyTree,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Applies `f` to the leaves of `tree` as `tree_map` does, and also passes each leaf's key path.

    Args:
        f: function of a key path, a leaf of `tree`, and one subtree of each pytree of `rest`.
        tree: pytree of any values.
        *rest: pytrees that have the structure of `tree` as a prefix.
        is_leaf: function of a node that returns whether it is a leaf, or None.
        is_leaf_takes_path: bool: call `is_leaf` with the key path and the node.

    Returns:
        pytree of the structure of `tree`.

    Raises:
        ValueError: if the structure of `tree` is not a prefix of a pytree of `rest`.

    Example:
        >>> import weft
        >>> weft.tree.map_with_path(lambda path, x: (len(path), x), {'a': 1, 'b': [2]})
        {'a': (1, 1), 'b': [(2, 2)]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [treedef.flatten_up_to(r) for r in rest]
    return treedef.unflatten([f(path, leaf, *xs) for (path, leaf), *xs in zip(pairs, *columns)])


def is_tree_node(typ: type) -> bool:
    """Whether values of this type are containers in pytrees.

    Args:
        typ: type.

    Returns:
        bool: True for tuple, list, dict, NoneType, named tuples and registered classes.

    Example:
        >>> import weft
        >>> weft.tree_util.is_tree_node(dict), weft.tree_util.is_tree_node(set)
        (True, False)
    """
    return (
        typ in (tuple, list, dict, type(None)) or typ in registry or issubclass(typ, tuple) and hasattr(typ, "_fields")
    )


def flatten_one_level(tree) -> tuple:
    """The children and the auxiliary data of the outermost container.

    Args:
        tree: pytree that is not a leaf.

    Returns:
        (children, auxiliary data): for a dict, the data are its sorted keys; for a named tuple, its class; for a tuple
        or list, None.

    Raises:
        ValueError: for a leaf.

    Example:
        >>> import weft
        >>> weft.tree_util.flatten_one_level({"b": 1, "a": (2, 3)})
        (((2, 3), 1), ('a', 'b'))
    """
    keyed, aux = flatten_one_level_with_keys(tree)
    return type(keyed)(child for _, child in keyed), aux


def flatten_one_level_with_keys(tree) -> tuple:
    """The children of the outermost container, each with its key, and the auxiliary data.

    Args:
        tree: pytree that is not a leaf.

    Returns:
        ((key, child) pairs, auxiliary data), as for `flatten_one_level`.

    Raises:
        ValueError: for a leaf.

    Example:
        >>> import weft
        >>> weft.tree_util.flatten_one_level_with_keys({"a": 1})
        (((DictKey(key='a'), 1),), ('a',))
    """
    kind, keyed = type(tree), keyed_children(tree)
    if keyed is None:
        raise ValueError(f"a value of type {kind.__name__} is a leaf of pytrees: it has no children.")
    if kind in registry:
        return keyed, registry[kind].flatten(tree)[1]
    if kind is dict:
        return tuple(keyed), _sorted_keys(tree)
    return keyed if kind is list or _is_namedtuple(tree) else tuple(keyed), kind if _is_namedtuple(tree) else None


def keystr(keys, *, simple: bool = False, separator: str = "") -> str:
    """A key path as text, such as `['w'][0].bias`.

    Args:
        keys: key path, as `tree_flatten_with_path` returns it.
        simple: bool: write only the keys, without brackets, quotes and dots.
        separator: text between the keys.

    Returns:
        str.

    Example:
        >>> import weft
        >>> path = weft.tree.leaves_with_path({'a': [1]})[0][0]
        >>> weft.tree_util.keystr(path), weft.tree_util.keystr(path, simple=True, separator="/")
        ("['a'][0]", 'a/0')
    """
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(str(getattr(k, "value", k)) for k in keys)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is a single leaf.

    Args:
        treedef: `PyTreeDef`.

    Returns:
        bool.

    Example:
        >>> import weft
        >>> [weft.tree_util.treedef_is_leaf(weft.tree.structure(x)) for x in (1, [])]
        [True, False]
    """
    return treedef.node is _LEAF


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of a container's children.

    Args:
        treedef: `PyTreeDef`.

    Returns:
        list of `PyTreeDef`s; empty for a leaf.

    Example:
        >>> import weft
        >>> weft.tree_util.treedef_children(weft.tree.structure([1, (2, 3)]))
        [PyTreeDef(*), PyTreeDef((*, *))]
    """
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of pytrees, from their structures.

    Args:
        treedefs: iterable of `PyTreeDef`s.

    Returns:
        `PyTreeDef`.

    Example:
        >>> import weft
        >>> weft.tree_util.treedef_tuple([weft.tree.structure(1), weft.tree.structure([2])])
        PyTreeDef((*, [*]))
    """
    return PyTreeDef(tuple, None, tuple(treedefs))


def all_leaves(iterable, is_leaf=None) -> bool:
    """Whether every element is a leaf.

    Args:
        iterable: iterable of any values.
        is_leaf: function of a node that returns whether it is a leaf, or None.

    Returns:
        bool.

    Example:
        >>> import weft
        >>> weft.tree_util.all_leaves([1, 2]), weft.tree_util.all_leaves([[1], 2])
        (True, False)
    """
    return all(tree_structure(x, is_leaf) is LEAF for x in iterable)


def broadcast_prefix(prefix, tree, is_leaf=None) -> list:
    """Each leaf of `prefix` repeated for the leaves of `tree` below it. None counts as a leaf of `prefix`.

    Example:
        >>> import weft
        >>> weft.tree_util.tree_leaves(weft.base.tree.broadcast_prefix({'a': 1, 'b': 2}, {'a': [0, 0], 'b': 0}))
        [1, 1, 2]
    """
    is_none = lambda x: x is None
    test = is_none if is_leaf is None else lambda x: x is None or is_leaf(x)
    leaves, treedef = tree_flatten(prefix, test)
    out: list = []
    for leaf, subtree in zip(leaves, treedef.flatten_up_to(tree)):
        out.extend([leaf] * tree_structure(subtree).num_leaves)
    return out
