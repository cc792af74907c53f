"""Checkpoints: trees of arrays in folders, with arrays over devices as parts, checksums, and a name that appears when
everything is on the disk.

A checkpoint is a folder. Its file `index.json` has the structure of the tree and, for each array, its path in the tree,
dtype, shape and parts; the file `I.J` has the elements of part J of array I, row by row, little-endian. The index has
the SHA-256 of each part and of itself. Nothing is unpickled, so folders of strangers can be read: sizes are checked
before memory is taken for them. docs/decisions/052 describes the format.

Example:
    >>> import tempfile, weft.numpy as jnp
    >>> from weft.experimental import checkpoints
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoints.save(folder + "/10", {"w": jnp.ones(2), "step": 10})
    ...     checkpoints.restore(folder + "/10")
    {'step': Array(10, dtype=int32), 'w': Array([1., 1.], dtype=float32)}
"""

from __future__ import annotations

import base64
import binascii
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import random
from ..api.parts import make_array_from_callback
from ..base import dtypes
from ..base.avals import ShapeDtypeStruct
from ..base.errors import WeftError
from ..base.host import from_bytes, np, require_numpy, to_bytes
from ..base.mesh import Sharding
from ..base.tree import broadcast_prefix, keystr, tree_flatten_with_path, tree_unflatten
from ..core.trace import get_aval, is_array
from ..export.trees import read_tree, write_tree
from ..numpy import asarray
from ..runtime.dispatch import move
from ..serialization.binary import DeserializationError, Reader, Writer

__all__ = ["CheckpointError", "describe", "restore", "save", "save_async"]

_FORMAT, _VERSION, _INDEX = "weft checkpoint", 1, "index.json"
_INDEX_BYTES, _RANK, _PARTS = 256 << 20, 64, 65_536  # more is no checkpoint of ours


class CheckpointError(WeftError):
    """A checkpoint is damaged, or a folder holds none of this version of weft: a file has another size or another
    checksum than the index says, or the index is not one. Nothing of it has been run. Restore another checkpoint.

    Example:
        >>> import pathlib, tempfile
        >>> from weft.experimental import checkpoints
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "index.json").write_text("{}")
        ...     checkpoints.restore(folder)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.experimental.checkpoints.CheckpointError: …
    """


class _Part(NamedTuple):
    """The part of an array that one device holds."""

    start: tuple[int, ...]
    shape: tuple[int, ...]
    sha256: str


class _Leaf(NamedTuple):
    """What the index says of an array."""

    path: str
    key: str  # the implementation of random keys, whose words are stored; "" for other arrays
    dtype: Any
    shape: tuple[int, ...]
    parts: tuple[_Part, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * dtypes.itemsize(self.dtype)


# saving --------------------------------------------------------------------------------------------------------------


def save(folder: str | os.PathLike, tree: Any, *, overwrite: bool = False) -> None:
    """Writes a tree of arrays to a folder, which appears under its name once all of it is on the disk: whoever reads it
    finds all or nothing, also after a crash.

    Args:
        folder: str or path; its parent must be there.
        tree: pytree of arrays of any dtypes and shapes, random keys included, and of numbers. Arrays over several
            devices are written as the parts that the devices hold, each once.
        overwrite: bool: replace the folder if it is a checkpoint. (Between two renames there is none for a moment;
            a folder for each step avoids that.)

    Returns:
        None

    Raises:
        FileExistsError: if the folder is there, and `overwrite` is False or it is no checkpoint.
        ValueError: for a leaf that is no array or number, or for an array with parts in other processes.
        OSError: if the disk can't be written.

    Example:
        >>> import tempfile, weft.numpy as jnp
        >>> from weft.experimental import checkpoints
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoints.save(folder + "/1", [jnp.zeros(3)])
        ...     checkpoints.describe(folder + "/1")
        [ShapeDtypeStruct(shape=(3,), dtype=float32)]
    """
    path = pathlib.Path(os.fspath(folder))
    _check_free(path, overwrite)
    _write(path, *_taken("save", tree, copy=False), overwrite)


def save_async(folder: str | os.PathLike, tree: Any, *, overwrite: bool = False) -> concurrent.futures.Future[None]:
    """The same in another thread. The values are copied to the host's memory before this returns, so the arrays may be
    donated or deleted afterwards. Several are written one after the other, in the order of the calls.

    Args:
        folder: as in `save`.
        tree: as in `save`.
        overwrite: as in `save`.

    Returns:
        `concurrent.futures.Future`: its `result()` returns None when the checkpoint is on the disk, and raises what
        `save` would raise.

    Raises:
        FileExistsError, ValueError: as `save`, for what is known before anything is written.

    Example:
        >>> import tempfile, weft.numpy as jnp
        >>> from weft.experimental import checkpoints
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = checkpoints.save_async(folder + "/1", jnp.zeros(3))
        ...     saved.result()
        ...     checkpoints.restore(folder + "/1")
        Array([0., 0., 0.], dtype=float32)
    """
    path = pathlib.Path(os.fspath(folder))
    _check_free(path, overwrite)
    taken = _taken("save_async", tree, copy=True)
    if sys.platform == "emscripten":  # a page has no threads
        done: concurrent.futures.Future[None] = concurrent.futures.Future()
        done.set_result(_write(path, *taken, overwrite))
        return done
    return _writer.submit(_write, path, *taken, overwrite)


_writer = concurrent.futures.ThreadPoolExecutor(1, "weft-checkpoints")  # waits at the end of the process


def _check_free(path: pathlib.Path, overwrite: bool) -> None:
    if not path.exists() and not path.is_symlink():
        return
    if not overwrite or not (path / _INDEX).is_file():
        why = "overwrite is False" if not overwrite else f"it has no {_INDEX}, so it is no checkpoint"
        raise FileExistsError(f"{path} is there already, and {why}. Give a new folder for each checkpoint.")


def _taken(what: str, tree: Any, copy: bool) -> tuple[str, list[tuple[_Leaf, list[Any]]]]:
    """(the structure as text, for each leaf what the index will say of it and the elements of its parts)."""
    flat, structure = tree_flatten_with_path(tree)
    w = Writer()
    write_tree(w, structure)
    taken = []
    for path, x in flat:
        name = keystr(path)
        if not is_array(x) and not dtypes.is_python_scalar(x) and not hasattr(x, "__array__"):
            raise ValueError(
                f"{what}: every leaf must be an array or a number; the one at {name or 'the root'} is a"
                f" {type(x).__name__}. Leave it out of the tree."
            )
        x = x if is_array(x) else asarray(x)
        impl = str(random.key_impl(x)) if dtypes.is_key(x.dtype) else ""
        x = random.key_data(x) if impl else x
        if not x.is_fully_addressable:
            raise ValueError(
                f"{what}: the array at {name or 'the root'} has parts in other processes. Gather it first:"
                " weft.experimental.multihost_utils.process_allgather(x, tiled=True)."
            )
        aval, parts, values = get_aval(x), [], []
        for shard in x.addressable_shards:
            if shard.replica_id == 0:
                start = tuple(s.start or 0 for s in shard.index)
                data = to_bytes(shard.data._host())
                values.append(bytes(data) if copy else data)
                parts.append(_Part(start, tuple(shard.data.shape), ""))
        taken.append((_Leaf(name, impl, aval.dtype, tuple(aval.shape), tuple(parts)), values))
    return base64.b64encode(bytes(w.data)).decode(), taken


def _write(path: pathlib.Path, structure: str, taken: list[tuple[_Leaf, list[Any]]], overwrite: bool) -> None:
    """Writes to a folder of another name, waits for the disk, and renames it."""
    room = pathlib.Path(tempfile.mkdtemp(".writing", f".{path.name}.", path.parent))
    try:
        room.chmod(0o777 & ~_umask())
        leaves = []
        for i, (leaf, values) in enumerate(taken):
            parts = []
            for j, (part, data) in enumerate(zip(leaf.parts, values)):
                _to_disk(room / f"{i}.{j}", data)
                parts.append(part._replace(sha256=hashlib.sha256(data).hexdigest()))
            leaves.append(_described(leaf._replace(parts=tuple(parts))))
        index = {"format": _FORMAT, "version": _VERSION, "structure": structure, "leaves": leaves}
        _to_disk(room / _INDEX, json.dumps({**index, "sha256": _digest(index)}).encode())
        _sync(room)
        old = None
        if overwrite and path.exists():
            old = pathlib.Path(tempfile.mkdtemp(".old", f".{path.name}.", path.parent)) / "checkpoint"
            path.rename(old)
        elif path.exists():
            raise FileExistsError(f"{path} has been made meanwhile. Give a new folder for each checkpoint.")
        room.rename(path)
        _sync(path.parent)
        if old is not None:
            shutil.rmtree(old.parent)
    except BaseException:
        shutil.rmtree(room, ignore_errors=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _described(leaf: _Leaf) -> dict[str, Any]:
    parts = [{"start": p.start, "shape": p.shape, "sha256": p.sha256} for p in leaf.parts]
    return {**leaf._asdict(), "dtype": dtypes.name(leaf.dtype), "parts": parts}


def _digest(index: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(index, sort_keys=True).encode()).hexdigest()


def _to_disk(path: pathlib.Path, data: Any) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: pathlib.Path) -> None:
    """Waits until the names in a folder are on the disk."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


# restoring -----------------------------------------------------------------------------------------------------------


def describe(folder: str | os.PathLike) -> Any:
    """The structure of a checkpoint, with the shapes and dtypes of its arrays. No array is read.

    Args:
        folder: str or path.

    Returns:
        the tree, with a `ShapeDtypeStruct` in place of each array.

    Raises:
        FileNotFoundError: if there is no checkpoint.
        CheckpointError: if its index is damaged, or no index of a checkpoint.

    Example:
        >>> import tempfile, weft.numpy as jnp
        >>> from weft.experimental import checkpoints
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoints.save(folder + "/1", {"a": jnp.zeros((2, 3))})
        ...     checkpoints.describe(folder + "/1")
        {'a': ShapeDtypeStruct(shape=(2, 3), dtype=float32)}
    """
    structure, leaves = _read_index(pathlib.Path(os.fspath(folder)))
    return tree_unflatten(structure, [_outside(leaf) for leaf in leaves])


def restore(folder: str | os.PathLike, shardings: Any = None, *, like: Any = None, max_bytes: int | None = None) -> Any:
    """The tree of arrays in a checkpoint, on the devices that are wanted now, which may be others than those that wrote
    it.

    Args:
        folder: str or path.
        shardings: where the arrays go: a pytree prefix of the tree with a sharding, a device or None (the default
            device) for each.
        like: pytree of the expected structure, whose leaves have the expected shapes and dtypes (`describe` gives one,
            and so does `weft.eval_shape`); without `shardings`, the shardings of its leaves are taken too. None: the
            structure of the checkpoint.
        max_bytes: int: refuse a checkpoint whose arrays have more bytes in all, before any is read.

    Returns:
        the tree; its arrays have the dtypes and shapes that were saved.

    Raises:
        FileNotFoundError: if there is no checkpoint, or a file of it is missing.
        CheckpointError: if a file is damaged: another size or another checksum than the index says.
        ValueError: if the arrays are larger than `max_bytes`, or differ from `like`.

    Example:
        >>> import tempfile, weft, weft.numpy as jnp
        >>> from weft.experimental import checkpoints
        >>> mesh = weft.make_mesh((1,), ("x",))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoints.save(folder + "/1", {"a": jnp.arange(2.0)})
        ...     checkpoints.restore(folder + "/1", weft.NamedSharding(mesh, weft.P("x")))
        {'a': Array([0., 1.], dtype=float32)}
    """
    path = pathlib.Path(os.fspath(folder))
    structure, leaves = _read_index(path)
    total = sum(leaf.nbytes for leaf in leaves)
    if max_bytes is not None and total > max_bytes:
        raise ValueError(f"restore: the arrays of {path} have {total:,} bytes, and max_bytes is {max_bytes:,}.")
    if like is not None:
        structure, expected = _expected(path, leaves, like)
        wanted = [getattr(x, "sharding", None) for x in expected] if shardings is None else None
    else:
        wanted = None
    numbers = tree_unflatten(structure, list(range(len(leaves))))
    wanted = broadcast_prefix(shardings, numbers, lambda s: s is None) if wanted is None else wanted
    return tree_unflatten(structure, [_load(path, i, leaf, s) for i, (leaf, s) in enumerate(zip(leaves, wanted))])


def _expected(path: pathlib.Path, leaves: list[_Leaf], like: Any) -> tuple[Any, list[Any]]:
    """The structure and the leaves of a tree that the checkpoint must fit."""
    flat, structure = tree_flatten_with_path(like)
    ours, theirs = [leaf.path for leaf in leaves], [keystr(at) for at, _ in flat]
    if ours != theirs:
        more, fewer = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
        raise ValueError(
            f"restore: {path} has another structure than `like`: it has {', '.join(more[:5]) or 'nothing'} in addition,"
            f" and lacks {', '.join(fewer[:5]) or 'nothing'}. checkpoints.describe(folder) shows what it has."
        )
    for leaf, (_, x) in zip(leaves, flat):
        found = _outside(leaf)
        shape, dtype = tuple(getattr(x, "shape", ())), getattr(x, "dtype", None)
        if shape != found.shape or dtype is not None and dtype != found.dtype:
            raise ValueError(
                f"restore: the array at {leaf.path or 'the root'} of {path} is {found}, and `like` has"
                f" {dtype}{list(shape)} there. checkpoints.describe(folder) shows what it has."
            )
    return structure, [x for _, x in flat]


def _outside(leaf: _Leaf) -> ShapeDtypeStruct:
    """The type of a leaf as users see it: of keys, not of their words."""
    if not leaf.key:
        return ShapeDtypeStruct(leaf.shape, leaf.dtype)
    key = random.key(0, impl=leaf.key)
    return ShapeDtypeStruct(leaf.shape[: len(leaf.shape) - random.key_data(key).ndim], key.dtype)


def _read_index(path: pathlib.Path) -> tuple[Any, list[_Leaf]]:
    """The structure and the leaves, of which nothing is believed before it was checked."""
    place = path / _INDEX
    if not place.is_file():
        raise FileNotFoundError(f"{path} is no checkpoint: it has no file {_INDEX}, which is written last.")
    data = _bytes_of(place, None)
    try:
        index = json.loads(data)
        digest = index.pop("sha256")
        if index["format"] != _FORMAT or index["version"] != _VERSION:
            raise ValueError(f"its format is {str(index['format'])[:40]!r}, version {str(index['version'])[:20]}")
        if digest != _digest(index):
            raise ValueError("its checksum is another")
        r = Reader(base64.b64decode(index["structure"], validate=True))
        structure = read_tree(r)
        r.finish()
        leaves = [_leaf(described) for described in index["leaves"]]
        if structure.num_leaves != len(leaves):
            raise ValueError(f"its structure has {structure.num_leaves} leaves, and {len(leaves)} are described")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error, DeserializationError) as e:
        raise CheckpointError(
            f"{place} is damaged, or no index of a checkpoint of this version of weft: {e}. Restore another checkpoint."
        ) from None
    return structure, leaves


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > _RANK or not all(type(n) is int and 0 <= n < 1 << 48 for n in value):
        raise ValueError(f"{str(value)[:60]} is no shape")
    return tuple(value)


def _leaf(described: Any) -> _Leaf:
    """One entry of an index. Raises ValueError, KeyError or TypeError for what it can't be."""
    dtype, shape = dtypes.dtype(described["dtype"]), _sizes(described["shape"])
    path, key = described["path"], described["key"]
    if not (isinstance(path, str) and isinstance(key, str)):
        raise ValueError("an entry has no path")
    if key:
        random.key_data(random.key(0, impl=key))  # raises for an unknown implementation
    listed = described["parts"]
    if not isinstance(listed, list) or not 0 < len(listed) <= _PARTS:
        raise ValueError(f"{path} has no parts")
    parts = tuple([_Part(_sizes(p["start"]), _sizes(p["shape"]), str(p["sha256"])) for p in listed])
    _check_tiles(path, shape, parts)
    return _Leaf(path, key, dtype, shape, parts)


def _check_tiles(path: str, shape: tuple[int, ...], parts: tuple[_Part, ...]) -> None:
    """Raises ValueError unless the parts are the cells of one grid over the array, each once."""
    for part in parts:
        if len(part.start) != len(shape) or len(part.shape) != len(shape):
            raise ValueError(f"a part of {path} has another rank")
        if part.shape != parts[0].shape:
            raise ValueError(f"the parts of {path} differ in shape")
    cell = parts[0].shape
    cuts = [1 if n == 0 else n // max(k, 1) for n, k in zip(shape, cell)]
    if any(n % max(k, 1) or n > 0 and k == 0 for n, k in zip(shape, cell)) or math.prod(cuts) != len(parts):
        raise ValueError(f"the parts of {path} do not cover it")
    places = {tuple(s // max(k, 1) for s, k in zip(part.start, cell)) for part in parts}
    aligned = all(s % max(k, 1) == 0 and s < max(n, 1) for p in parts for s, k, n in zip(p.start, cell, shape))
    if len(places) != len(parts) or not aligned:
        raise ValueError(f"the parts of {path} overlap")


def _bytes_of(path: pathlib.Path, size: int | None) -> bytes:
    """The bytes of a file that must have this size (None: at most that of an index), which is looked at before memory
    is taken. Links are not followed.
    """
    try:
        opened = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing: the checkpoint is not whole.") from None
    except OSError as e:
        raise CheckpointError(f"{path} can't be read: {e.strerror}.") from None
    with open(opened, "rb") as file:
        found = os.fstat(file.fileno()).st_size
        if found > _INDEX_BYTES if size is None else found != size:
            wanted = f"at most {_INDEX_BYTES:,}" if size is None else f"{size:,}"
            raise CheckpointError(f"{path} has {found:,} bytes, where {wanted} are right: the file is damaged.")
        return file.read(found)


def _pieces(path: pathlib.Path, i: int, leaf: _Leaf) -> Iterator[tuple[_Part, Any]]:
    """The parts of an array with their elements, checked."""
    for j, part in enumerate(leaf.parts):
        place = path / f"{i}.{j}"
        data = _bytes_of(place, math.prod(part.shape) * dtypes.itemsize(leaf.dtype))
        if hashlib.sha256(data).hexdigest() != part.sha256:
            raise CheckpointError(
                f"{place}, a part of {leaf.path or 'the root'}, has another checksum than the index says: the file is"
                " damaged. Restore another checkpoint."
            )
        yield part, from_bytes(data, part.shape, leaf.dtype)


def _load(path: pathlib.Path, i: int, leaf: _Leaf, where: Any) -> Any:
    """One array, on a device or as a sharding says."""
    pieces = list(_pieces(path, i, leaf))
    if len(pieces) == 1:
        whole = pieces[0][1]
    else:
        require_numpy("restoring arrays that were saved in parts")
        whole = np.empty(leaf.shape, leaf.dtype)
        for part, elements in pieces:
            whole[tuple(slice(s, s + n) for s, n in zip(part.start, part.shape))] = elements
    if isinstance(where, Sharding) and where.num_devices > 1:
        made = make_array_from_callback(leaf.shape, where, lambda index: whole[index])
    else:
        made = asarray(whole) if where is None else move(whole, where)
    return random.wrap_key_data(made, impl=leaf.key) if leaf.key else made


def __dir__() -> list[str]:
    return sorted(__all__)
