"""The bytes of pytree structures: tuples, lists, dicts, None, and the classes that are registered for serialization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..serialization.binary import Reader, Writer
from ..base.tree import LEAF, PyTreeDef
from ..base.tree import registry as node_types
from ..base.tree import tree_structure

_DEPTH = 100
_LEAF, _NONE, _TUPLE, _LIST, _DICT, _NODE = range(6)


class Registration(NamedTuple):
    """How the structure of one class is written and read."""

    nodetype: type[Any]
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    from_children: Callable[..., Any] | None


_by_type: dict[type[Any], Registration] = {}
_by_name: dict[str, Registration] = {}


def register_pytree_node_serialization(
    nodetype: type[Any],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type[Any]:
    """Lets structures with a registered pytree class be serialized.

    Args:
        nodetype: the class, which must be registered with `weft.tree_util` already.
        serialized_name: str: the name of the class in files; it must mean the same class wherever they are read.
        serialize_auxdata: function from the auxiliary data to bytes.
        deserialize_auxdata: function from bytes to the auxiliary data. Files may be hostile: do not unpickle.
        from_children: (auxiliary data, children) -> value; None for the class's own rule.

    Returns:
        the class.

    Raises:
        ValueError: for a class or name that is registered already, and for a class that is not a pytree node.

    Example:
        >>> import collections
        >>> from weft import export
        >>> _ = export.register_pytree_node_serialization(
        ...     collections.OrderedDict,
        ...     serialized_name="OrderedDict",
        ...     serialize_auxdata=lambda keys: ",".join(keys).encode(),
        ...     deserialize_auxdata=lambda b: tuple(b.decode().split(",")),
        ... )
    """
    if nodetype in _by_type:
        raise ValueError(
            f"Duplicate serialization registration for type `{nodetype}`. Previous registration was with"
            f" serialized_name `{_by_type[nodetype].name}`."
        )
    if serialized_name in _by_name:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{serialized_name}`. Previous registration was"
            f" for type `{_by_name[serialized_name].nodetype}`."
        )
    if nodetype not in node_types and not _is_namedtuple(nodetype):
        raise ValueError(
            f"`{nodetype}` is not a pytree node; register it first with weft.tree_util.register_pytree_node."
        )
    _by_type[nodetype] = _by_name[serialized_name] = Registration(
        nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children
    )
    return nodetype


def register_namedtuple_serialization(nodetype: Any, *, serialized_name: str) -> Any:
    """Lets structures with a named tuple be serialized.

    Args:
        nodetype: the named tuple's class.
        serialized_name: str: the name of the class in files; it must mean the same class wherever they are read.

    Returns:
        the class.

    Raises:
        ValueError: for a class or name that is registered already, and for a class that is not a named tuple.

    Example:
        >>> import collections
        >>> from weft import export
        >>> Pair = collections.namedtuple("Pair", "a b")
        >>> _ = export.register_namedtuple_serialization(Pair, serialized_name="docs.Pair")
    """
    if not _is_namedtuple(nodetype):
        raise ValueError(
            "Use `export.register_pytree_node_serialization` for types other than `collections.namedtuple`; got"
            f" {nodetype}."
        )

    def read(data: bytes) -> None:
        if data != ",".join(nodetype._fields).encode():
            raise ValueError(
                f"the named tuple {serialized_name} has the fields {','.join(nodetype._fields)} here, and"
                f" {data.decode(errors='replace')[:80]} in the file"
            )

    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda aux: ",".join(nodetype._fields).encode(),
        deserialize_auxdata=read,
    )


def _is_namedtuple(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def write_tree(w: Writer, tree: PyTreeDef) -> None:
    """Appends a structure. Raises ValueError for a class that is not registered."""
    if tree.node is LEAF.node:
        w.byte(_LEAF)
        return
    if tree.node is None:
        w.byte(_NONE)
        return
    if tree.node in (tuple, list):
        w.byte(_TUPLE if tree.node is tuple else _LIST)
        w.unsigned(len(tree.nodes))
    elif tree.node is dict:
        w.byte(_DICT)
        w.unsigned(len(tree.nodes))
        for key in tree.aux:
            if not isinstance(key, str):
                raise ValueError(
                    f"only dicts with string keys can be serialized; got the key {key!r} of type {type(key).__name__}."
                )
            w.string(key)
    else:
        found = _by_type.get(tree.node)
        if found is None:
            raise ValueError(
                f"Cannot serialize PyTreeDef containing an unregistered type `{tree.node}`. Use"
                " `export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`."
            )
        w.byte(_NODE)
        w.string(found.name)
        data = found.write(tree.aux)
        if not isinstance(data, (bytes, bytearray)):
            raise ValueError(f"serialize_auxdata of `{found.name}` must return bytes, got {type(data).__name__}.")
        w.bytes(data)
        w.unsigned(len(tree.nodes))
    for child in tree.nodes:
        write_tree(w, child)


def read_tree(r: Reader, depth: int = 0) -> PyTreeDef:
    """The structure that `write_tree` wrote."""
    start, tag = r.at, r.byte()
    if depth > _DEPTH:
        r.fail(f"a pytree is nested more than {_DEPTH} deep", start)
    if tag == _LEAF:
        return LEAF
    if tag == _NONE:
        return tree_structure(None)
    if tag in (_TUPLE, _LIST):
        return PyTreeDef(tuple if tag == _TUPLE else list, None, _children(r, depth))
    if tag == _DICT:
        keys = tuple([r.string() for _ in range(r.count())])
        if list(keys) != sorted(set(keys)):
            r.fail("the keys of a dict are not in order", start)
        return PyTreeDef(dict, keys, tuple([read_tree(r, depth + 1) for _ in keys]))
    if tag != _NODE:
        r.fail(f"there is no kind {tag} of pytree nodes", start)
    name = r.string()
    found = _by_name.get(name)
    if found is None:
        r.fail(
            f"the pytree class {name[:80]!r} is not registered here (export.register_pytree_node_serialization, or"
            " register_namedtuple_serialization)",
            start,
        )
    data = r.bytes()
    try:
        aux = found.read(data)
    except Exception as e:  # a user's function, given untrusted bytes
        r.fail(f"the data of the pytree class {name!r} can't be read: {type(e).__name__}: {e}", start)
    tree = PyTreeDef(found.nodetype, aux, _children(r, depth))
    fields = getattr(found.nodetype, "_fields", ())
    if _is_namedtuple(found.nodetype) and len(tree.nodes) != len(fields):
        r.fail(f"the named tuple {name} has {len(fields)} fields", start)
    return tree


def _children(r: Reader, depth: int) -> tuple[Any, ...]:
    return tuple([read_tree(r, depth + 1) for _ in range(r.count())])
