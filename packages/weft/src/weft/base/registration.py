"""Registering classes whose values are containers in pytrees."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from typing import Any, Callable, Self

from .annotations import override
from .errors import at_user_line
from .tree import (
    DictKey,
    GetAttrKey,
    NodeType,
    _register,
    _sorted_keys,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    tree_flatten,
    tree_flatten_with_path,
)


def register_pytree_node(
    nodetype: type, flatten_func: Callable, unflatten_func: Callable, flatten_with_keys_func=None
) -> None:
    """Makes values of `nodetype` containers in pytrees.

    Args:
        nodetype: the class.
        flatten_func: value -> (children, hashable auxiliary data).
        unflatten_func: (auxiliary data, children) -> value.
        flatten_with_keys_func: value -> ([(key, child)], auxiliary data), for key paths; without it, key paths number
            the children.

    Returns:
        None.

    Raises:
        ValueError: if the class is registered already.

    Example:
        >>> import weft
        >>> class Pair:
        ...     def __init__(self, a, b): self.a, self.b = a, b
        >>> weft.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))
        >>> weft.tree.leaves(Pair(1, 2))
        [1, 2]
    """
    _register(NodeType(nodetype, flatten_func, unflatten_func, flatten_with_keys_func))


def register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func=None) -> None:
    """`register_pytree_node` for a class whose children have names.

    Args:
        nodetype: the class.
        flatten_with_keys: value -> ([(key, child)], hashable auxiliary data).
        unflatten_func: (auxiliary data, children) -> value.
        flatten_func: value -> (children, auxiliary data), where this is faster; None derives it.

    Returns:
        None.

    Raises:
        ValueError: if the class is registered already.

    Example:
        >>> import weft
        >>> from weft.tree_util import GetAttrKey
        >>> class Named:
        ...     def __init__(self, a): self.a = a
        >>> weft.tree_util.register_pytree_with_keys(
        ...     Named, lambda n: ([(GetAttrKey("a"), n.a)], None), lambda _, children: Named(*children))
        >>> [(weft.tree_util.keystr(path), leaf) for path, leaf in weft.tree.leaves_with_path([Named(1)])]
        [('[0].a', 1)]
    """

    def flatten(x):
        keyed, aux = flatten_with_keys(x)
        return [child for _, child in keyed], aux

    _register(NodeType(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys))


def register_pytree_node_class(cls):
    """Class decorator: makes a class with `tree_flatten` and a classmethod `tree_unflatten` a container.

    Args:
        cls: class with the method `tree_flatten()` -> (children, auxiliary data), and the classmethod
            `tree_unflatten(auxiliary data, children)`.

    Returns:
        the class.

    Raises:
        ValueError: if the class is registered already.

    Example:
        >>> import weft
        >>> @weft.tree_util.register_pytree_node_class
        ... class Box:
        ...     def __init__(self, x): self.x = x
        ...     def tree_flatten(self): return (self.x,), None
        ...     @classmethod
        ...     def tree_unflatten(cls, aux, children): return cls(*children)
        >>> weft.tree.map(lambda x: x + 1, Box(1)).x
        2
    """
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls):
    """Class decorator: makes a class with `tree_flatten_with_keys` and a classmethod `tree_unflatten` a container.

    Args:
        cls: class with the method `tree_flatten_with_keys()` -> ([(key, child)], auxiliary data), and the classmethod
            `tree_unflatten(auxiliary data, children)`.

    Returns:
        the class.

    Raises:
        ValueError: if the class is registered already.

    Example:
        >>> import weft
        >>> @weft.tree_util.register_pytree_with_keys_class
        ... class Crate:
        ...     def __init__(self, x): self.x = x
        ...     def tree_flatten_with_keys(self): return [(weft.tree_util.GetAttrKey("x"), self.x)], None
        ...     @classmethod
        ...     def tree_unflatten(cls, aux, children): return cls(*children)
        >>> weft.tree_util.keystr(weft.tree.leaves_with_path(Crate(1))[0][0])
        '.x'
    """
    flatten = getattr(cls, "tree_flatten", None)
    register_pytree_with_keys(
        cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten, (lambda x: x.tree_flatten()) if flatten else None
    )
    return cls


def register_dataclass(nodetype, data_fields=None, meta_fields=None, drop_fields=()):
    """Makes the values of a dataclass containers in pytrees.

    Args:
        nodetype: the dataclass.
        data_fields: names of the fields that are children.
        meta_fields: names of the fields that are static: part of the structure, and hashable. If both this and
            `data_fields` are None, the fields made by `weft.tree.static` are static, and all others are children.
        drop_fields: names of fields that get their defaults back when a value is rebuilt.

    Returns:
        the class.

    Raises:
        TypeError: if only one of `data_fields` and `meta_fields` is given.
        ValueError: if the names are not exactly the fields that the constructor takes, or the class is registered
            already.

    Example:
        >>> import weft
        >>> import dataclasses
        >>> Point = weft.tree_util.register_dataclass(dataclasses.make_dataclass('Point', ['x', 'y']))
        >>> weft.tree.leaves(Point(1, 2))
        [1, 2]
    """
    if data_fields is None or meta_fields is None:
        if data_fields is not None or meta_fields is not None:
            raise TypeError("register_dataclass takes both data_fields and meta_fields, or neither.")
        mine = [f for f in nodetype.__dataclass_fields__.values() if f.init]
        meta_fields = [f.name for f in mine if f.metadata.get("static", False)]
        data_fields = [f.name for f in mine if not f.metadata.get("static", False)]
    data_fields, meta_fields = tuple(data_fields), tuple(meta_fields)
    taken = (
        {f.name for f in nodetype.__dataclass_fields__.values() if f.init}
        if hasattr(nodetype, "__dataclass_fields__")
        else {*data_fields, *meta_fields, *drop_fields}
    )
    missing, unknown = taken - {*data_fields, *meta_fields, *drop_fields}, {*data_fields, *meta_fields} - taken
    if missing or unknown:
        raise ValueError(
            at_user_line(
                f"register_dataclass({nodetype.__name__}): data_fields and meta_fields must name each field that the"
                " constructor takes; "
                + "; ".join(
                    [
                        *(
                            [f"{sorted(missing)} are missing (in drop_fields they get their defaults back)"]
                            if missing
                            else []
                        ),
                        *([f"it takes no {sorted(unknown)}"] if unknown else []),
                    ]
                )
                + "."
            )
        )

    def with_keys(x):
        return [(GetAttrKey(n), getattr(x, n)) for n in data_fields], tuple(getattr(x, n) for n in meta_fields)

    def flatten(x):
        return tuple(getattr(x, n) for n in data_fields), tuple(getattr(x, n) for n in meta_fields)

    def unflatten(aux, children):
        return nodetype(**dict(zip(meta_fields, aux)), **dict(zip(data_fields, children)))

    _register(NodeType(nodetype, flatten, unflatten, with_keys))
    return nodetype


def register_static(cls):
    """Makes the values of a class containers without leaves: they are part of the structure, and must be hashable.

    Args:
        cls: the class.

    Returns:
        the class.

    Raises:
        ValueError: if the class is registered already.

    Example:
        >>> import weft
        >>> import dataclasses
        >>> Name = weft.tree_util.register_static(dataclasses.make_dataclass('Name', ['text'], frozen=True))
        >>> weft.tree.leaves([Name('a'), 1])
        [1]
    """
    _register(NodeType(cls, lambda x: ((), x), lambda aux, _: aux, lambda x: ([], x)))
    return cls


def static(**kwargs) -> Any:
    """A `dataclasses.field` that `register_dataclass` makes part of the structure, not a child.

    Args:
        **kwargs: keyword arguments of `dataclasses.field`.

    Returns:
        the field.

    Example:
        >>> import dataclasses, weft
        >>> @weft.tree_util.register_dataclass
        ... @dataclasses.dataclass
        ... class Layer:
        ...     w: object
        ...     kind: str = weft.tree.static(default="dense")
        >>> weft.tree.leaves(Layer(1.0))
        [1.0]
    """
    import dataclasses  # which is slow to load, and other programs can do without

    return dataclasses.field(metadata={**(kwargs.pop("metadata", None) or {}), "static": True}, **kwargs)


class Partial(functools.partial):
    """A `functools.partial` that is a pytree: its arguments are children, its function is part of the structure.

    Example:
        >>> import weft
        >>> add = weft.tree_util.Partial(lambda x, y: x + y, 2.0)
        >>> weft.tree.leaves(add), float(weft.jit(lambda f, y: f(y))(add, 3.0))
        ([2.0], 5.0)
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kw: Any) -> Self:
        # `partial` would make arguments of another partial its own, and so children
        return super().__new__(cls, _Whole(func) if isinstance(func, functools.partial) else func, *args, **kw)

    def __init__(self, func: Callable[..., Any], *args: Any, **kw: Any):  # which `partial` takes when it is made
        super().__init__()


class _Whole:
    """A function, and nothing of what `functools.partial` knows of it."""

    __slots__ = ("fun",)

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    @override
    def __eq__(self, other: object) -> bool:
        return type(other) is _Whole and self.fun == other.fun

    @override
    def __hash__(self) -> int:
        return hash(self.fun)

    @override
    def __repr__(self) -> str:
        return repr(self.fun)


register_pytree_with_keys(
    Partial,
    lambda p: ([(GetAttrKey("args"), p.args), (GetAttrKey("keywords"), p.keywords)], p.func),
    lambda func, ab: Partial(func, *ab[0], **ab[1]),
)
register_pytree_with_keys(
    OrderedDict,
    lambda d: ([(DictKey(k), v) for k, v in d.items()], tuple(d)),
    lambda keys, values: OrderedDict(zip(keys, values)),
)


def _flatten_defaultdict(d):
    keys = _sorted_keys(d)
    return [(DictKey(k), d[k]) for k in keys], (d.default_factory, keys)


register_pytree_with_keys(
    defaultdict, _flatten_defaultdict, lambda aux, values: defaultdict(aux[0], zip(aux[1], values))
)


class PyTreeRegistry:
    """The registry of container types, as an object: `weft.tree_util.default_registry`."""

    def flatten(self, tree, leaf_predicate=None):
        """(leaves, structure)."""
        return tree_flatten(tree, leaf_predicate)

    def flatten_with_path(self, tree, leaf_predicate=None):
        """([(key path, leaf)], structure)."""
        return tree_flatten_with_path(tree, leaf_predicate)

    def flatten_one_level(self, tree):
        """(children, auxiliary data) of a container, None for a leaf."""
        return flatten_one_level(tree) if is_tree_node(type(tree)) else None

    def flatten_one_level_with_keys(self, tree):
        """([(key, child)], auxiliary data) of a container, None for a leaf."""
        return flatten_one_level_with_keys(tree) if is_tree_node(type(tree)) else None

    def is_node(self, typ: type) -> bool:
        """Whether values of this type are containers."""
        return is_tree_node(typ)

    def register_node(self, nodetype, flatten, unflatten, flatten_with_keys=None) -> None:
        """`register_pytree_node`."""
        register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)

    def register_dataclass_node(self, nodetype, data_fields, meta_fields) -> None:
        """`register_dataclass`."""
        register_dataclass(nodetype, data_fields, meta_fields)


default_registry = PyTreeRegistry()
