"""Trees of arrays in folders: one file for the structure and the types, one for the elements of each array.

The format is weft's own, the same on every backend and without NumPy; jax's, of TensorStore, is another. Custom nodes
must be registered for files, as for `weft.export`: nothing is unpickled, so that folders of strangers can be read.
"""

from __future__ import annotations

import math
import os
import pathlib
import shutil
from typing import Any

from ...base import dtypes
from ... import random
from ...api.tracing import device_put
from ...base.avals import ShapeDtypeStruct
from ...serialization.binary import Reader, Writer
from ...core.trace import get_aval
from ...export.trees import read_tree, write_tree
from ...base.host import from_bytes, to_bytes
from ...numpy import asarray
from ...base.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = ["load", "load_pytreedef", "save"]

_MAGIC, _INDEX = b"wefttree\x01", "tree"


def _folder(name: str, directory, ts_specs) -> pathlib.Path:
    if ts_specs is not None:
        raise NotImplementedError(
            f"{name}: ts_specs say how TensorStore lays out files, and weft writes its own. Leave ts_specs out."
        )
    return pathlib.Path(os.fspath(directory))


def save(data: Any, directory: str | os.PathLike, *, overwrite: bool = True, ts_specs: Any = None) -> None:
    """Writes a tree of arrays to a folder.

    Args:
        data: a pytree of arrays of any shapes and dtypes, random keys included.
        directory: the folder; str or path.
        overwrite: whether a tree in the folder is replaced; bool.
        ts_specs: must be None, since weft does not use TensorStore.

    Returns:
        None

    Raises:
        ValueError: a leaf is not an array, or a node type is not registered for files.
        RuntimeError: the folder holds other files, or it is not empty and `overwrite` is False.
        NotImplementedError: `ts_specs` is given.

    Example:
        >>> import tempfile, weft.numpy as jnp
        >>> from weft.experimental.array_serialization import pytree_serialization
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pytree_serialization.save({"w": jnp.ones(2)}, folder + "/step")
        ...     pytree_serialization.load(folder + "/step", {"w": None})
        {'w': Array([1., 1.], dtype=float32)}
    """
    folder = _folder("save", directory, ts_specs)
    leaves, tree = tree_flatten(data)
    w = Writer()
    write_tree(w, tree)
    plain = []
    for x in leaves:
        if not hasattr(x, "dtype") or not hasattr(x, "shape"):
            raise ValueError(
                f"save: every leaf must be an array, got {x!r} of type {type(x).__name__}. Make arrays of numbers with"
                " weft.numpy.asarray."
            )
        key = dtypes.is_key(x.dtype)
        w.string(str(random.key_impl(x)) if key else "")
        x = asarray(random.key_data(x) if key else x)
        aval = get_aval(x)
        w.string(dtypes.name(aval.dtype))
        w.unsigned(len(aval.shape))
        for n in aval.shape:
            w.unsigned(n)
        plain.append(bytes(to_bytes(x._host())))
    if folder.exists() and any(folder.iterdir()):
        if not overwrite or not (folder / _INDEX).exists():
            raise RuntimeError(
                f"save: {folder} is not empty, and {'holds no tree of arrays' if overwrite else 'overwrite is False'}."
                " Give a new folder, or remove this one."
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(plain):
        (folder / str(i)).write_bytes(data)
    (folder / _INDEX).write_bytes(_MAGIC + bytes(w.data))  # last: what was broken off has none


def _read(directory: pathlib.Path) -> tuple[Any, list]:
    """The structure, and of each leaf (implementation of keys or "", type of its data)."""
    try:
        data = (directory / _INDEX).read_bytes()
    except FileNotFoundError:
        raise ValueError(
            f"{directory} holds no tree of arrays: it has no file {_INDEX!r}, which save writes last."
        ) from None
    if not data.startswith(_MAGIC):
        raise ValueError(f"{directory / _INDEX} was not written by weft's save, or by another version of it.")
    r = Reader(data[len(_MAGIC) :])
    tree = read_tree(r)
    found = []
    for _ in range(tree.num_leaves):
        impl, dtype = r.string(), r.string()
        found.append((impl, ShapeDtypeStruct(tuple([r.unsigned() for _ in range(r.count())]), dtypes.dtype(dtype))))
    r.finish()
    return tree, found


def load_pytreedef(directory: str | os.PathLike) -> Any:
    """The structure of the tree in a folder, with the shapes and dtypes of its arrays.

    Args:
        directory: the folder; str or path.

    Returns:
        the tree, with a `ShapeDtypeStruct` in place of each array.

    Raises:
        ValueError: the folder has no tree that `save` wrote.
        DeserializationError: the tree's file is damaged.

    Example:
        >>> import tempfile, weft.numpy as jnp
        >>> from weft.experimental.array_serialization import pytree_serialization
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pytree_serialization.save([jnp.ones(2)], folder)
        ...     pytree_serialization.load_pytreedef(folder)
        [ShapeDtypeStruct(shape=(2,), dtype=float32)]
    """
    tree, found = _read(_folder("load_pytreedef", directory, None))
    return tree_unflatten(tree, [_with_keys(impl, t) for impl, t in found])


def _with_keys(impl: str, t: ShapeDtypeStruct) -> ShapeDtypeStruct:
    if not impl:
        return t
    key = random.key(0, impl=impl)
    return ShapeDtypeStruct(t.shape[: len(t.shape) - random.key_data(key).ndim], key.dtype)


def _each(given: Any, tree: Any) -> list:
    """The value for each leaf of a tree, where one stands for all below it."""
    out: list = []
    tree_map(lambda value, part: out.extend([value] * len(tree_leaves(part))), given, tree, is_leaf=lambda v: v is None)
    return out


def load(directory: str | os.PathLike, shardings: Any, *, mask: Any = None, ts_specs: Any = None) -> Any:
    """The tree of arrays that `save` wrote to a folder.

    Args:
        directory: the folder; str or path.
        shardings: the tree, or a part of it from the root, with a sharding, a device or None for each array. None
            is the default device.
        mask: a tree of bools of the same form; an array is read only where it is True. By default all are read.
        ts_specs: must be None, since weft does not use TensorStore.

    Returns:
        the tree. Its arrays have the shapes and dtypes that were saved; None stands in place of those that were not
        read.

    Raises:
        ValueError: the folder has no tree that `save` wrote, a file of an array is missing or has another size, or
            `shardings` or `mask` do not fit the tree.
        DeserializationError: the tree's file is damaged.
        NotImplementedError: `ts_specs` is given.

    Example:
        >>> import tempfile, weft.numpy as jnp
        >>> from weft.experimental.array_serialization import pytree_serialization
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pytree_serialization.save([jnp.ones(2), jnp.zeros(3)], folder)
        ...     pytree_serialization.load(folder, None, mask=[True, False])
        [Array([1., 1.], dtype=float32), None]
    """
    folder = _folder("load", directory, ts_specs)
    tree, found = _read(folder)
    numbers = tree_unflatten(tree, list(range(len(found))))
    where, wanted = _each(shardings, numbers), _each(True if mask is None else mask, numbers)
    out: list = []
    for i, ((impl, t), place, on) in enumerate(zip(found, where, wanted)):
        if not on:
            out.append(None)
            continue
        try:
            data = (folder / str(i)).read_bytes()
        except FileNotFoundError:
            raise ValueError(f"load: {folder} lacks the file {str(i)!r}, of an array of type {t}.") from None
        if len(data) != math.prod(t.shape) * dtypes.itemsize(t.dtype):
            raise ValueError(
                f"load: {folder / str(i)} has {len(data)} bytes, and an array of type {t} has"
                f" {math.prod(t.shape) * dtypes.itemsize(t.dtype)}."
            )
        x = asarray(from_bytes(data, t.shape, t.dtype))
        x = random.wrap_key_data(x, impl=impl) if impl else x
        out.append(x if place is None else device_put(x, place))
    return tree_unflatten(tree, out)
