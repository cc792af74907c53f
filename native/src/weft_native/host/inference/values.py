"""Arguments and results of programs as JSON and as NumPy's files, checked before anything is made of them."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from weft.base import dtypes
from weft.base.annotations import override
from weft.base.avals import AbstractValue, physical

from .errors import RequestError

if TYPE_CHECKING:
    from weft.base.tree import PyTreeDef
    from weft.export import Exported

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_PLAIN = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
Array = np.ndarray[Any, Any]


class Leaf(NamedTuple):
    """An array among a program's arguments or results."""

    path: str  # such as "0.weights.1"
    dtype: str
    shape: tuple[int | str, ...]  # a text is a size that each request chooses

    @override
    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    def check(self, shape: Sequence[int], where: str) -> None:
        """Raises RequestError for a shape that does not fit."""
        fits = len(shape) == len(self.shape) and all(
            n == want or isinstance(want, str) for n, want in zip(shape, self.shape)
        )
        if not fits:
            raise RequestError(400, f"{where} must be {self}; got an array of shape {list(shape)}.")


class Signature:
    """The arguments and results of an exported program."""

    def __init__(self, exported: Exported):
        self.name = exported.fun_name
        arguments, keywords = exported.in_tree.nodes
        self.arguments, self.keywords, self.result = arguments, keywords, exported.out_tree
        paths = [*_paths(arguments, ""), *_paths(keywords, "")]
        self.inputs = [_leaf(path, aval) for path, aval in zip(paths, exported.in_avals)]
        self.outputs = [_leaf(path, aval) for path, aval in zip(_paths(exported.out_tree, ""), exported.out_avals)]

    # JSON -------------------------------------------------------------------------------------------------------------

    def from_json(self, body: Any) -> list[Array]:
        """The arrays of `{"args": […], "kwargs": {…}}`."""
        if not isinstance(body, dict) or not set(body) <= {"args", "kwargs"}:
            raise RequestError(
                400, 'the body is an object with "args", a list, and "kwargs", an object, if there are any.'
            )
        values: list[tuple[Any, str]] = []
        _flatten(self.arguments, body.get("args", []), "args", values)
        _flatten(self.keywords, body.get("kwargs", {}), "kwargs", values)
        return [_from_lists(value, leaf, where) for (value, where), leaf in zip(values, self.inputs)]

    def to_json(self, results: Sequence[Array]) -> dict[str, Any]:
        return {"result": _unflatten(self.result, iter([_to_lists(x) for x in results]))}

    # NumPy's files ----------------------------------------------------------------------------------------------------

    def from_npz(self, data: bytes, most: int) -> list[Array]:
        """The arrays of an .npz file, each named by its path; of an .npy file for a program of one array."""
        if data[:6] == npy.MAGIC_PREFIX:
            if len(self.inputs) != 1:
                names = ", ".join(leaf.path for leaf in self.inputs)
                raise RequestError(400, f"{self.name} takes {len(self.inputs)} arrays ({names}): send an .npz file.")
            return [_read_npy(io.BytesIO(data), self.inputs[0], len(data))]
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                missing = [leaf.path for leaf in self.inputs if leaf.path not in infos]
                extra = sorted(set(infos) - {leaf.path for leaf in self.inputs})
                if missing or extra:
                    raise RequestError(
                        400,
                        f"the .npz file of {self.name} has an array for each of"
                        f" {', '.join(leaf.path for leaf in self.inputs)}; missing: {', '.join(missing) or 'none'},"
                        f" unknown: {', '.join(x[:40] for x in extra[:5]) or 'none'}.",
                    )
                if sum(infos[leaf.path].file_size for leaf in self.inputs) > most:
                    raise RequestError(413, f"the arrays take more than {most} bytes.")
                found = []
                for leaf in self.inputs:
                    info = infos[leaf.path]
                    with archive.open(info) as file:
                        found.append(_read_npy(file, leaf, info.file_size))
                return found
        except RequestError:
            raise
        except Exception as e:  # zipfile raises whatever its bytes lead it to
            raise RequestError(400, f"the body is no .npz file: {e}.") from None

    def to_npz(self, results: Sequence[Array]) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for leaf, x in zip(self.outputs, results):
                with archive.open(f"{leaf.path or 'result'}.npy", "w", force_zip64=True) as file:
                    npy.write_array(file, _portable(x), allow_pickle=False)
        return out.getvalue()


def _leaf(path: str, aval: AbstractValue) -> Leaf:
    kept = physical(aval)
    return Leaf(path, dtypes.name(kept.dtype), tuple([n if isinstance(n, int) else str(n) for n in kept.shape]))


def _paths(tree: PyTreeDef, before: str) -> list[str]:
    if tree.num_leaves == 1 and not tree.nodes:
        return [before]
    names = [str(k) for k in tree.aux] if tree.node is dict else map(str, range(len(tree.nodes)))
    return [p for name, node in zip(names, tree.nodes) for p in _paths(node, f"{before}.{name}" if before else name)]


def _flatten(tree: PyTreeDef, value: Any, where: str, leaves: list[tuple[Any, str]]) -> None:
    if tree.num_leaves == 1 and not tree.nodes:
        leaves.append((value, where))
    elif tree.node is dict:
        if not isinstance(value, dict) or set(value) != set(tree.aux):
            raise RequestError(400, f"{where} must be an object with {', '.join(map(str, tree.aux)) or 'nothing'}.")
        for key, node in zip(tree.aux, tree.nodes):
            _flatten(node, value[key], f"{where}.{key}", leaves)
    elif tree.node is None:
        if value is not None:
            raise RequestError(400, f"{where} must be null.")
    else:
        if not isinstance(value, list) or len(value) != len(tree.nodes):
            raise RequestError(400, f"{where} must be a list of {len(tree.nodes)}.")
        for i, (node, part) in enumerate(zip(tree.nodes, value)):
            _flatten(node, part, f"{where}[{i}]", leaves)


def _unflatten(tree: PyTreeDef, leaves: Any) -> Any:
    if tree.num_leaves == 1 and not tree.nodes:
        return next(leaves)
    if tree.node is None:
        return None
    parts = [_unflatten(node, leaves) for node in tree.nodes]
    return dict(zip(map(str, tree.aux), parts)) if tree.node is dict else parts


def _from_lists(value: Any, leaf: Leaf, where: str) -> Array:
    """Nested lists as an array. A complex number is a list of its two parts."""
    kind = dtypes.kind(dtypes.dtype(leaf.dtype))
    try:
        found = np.array(_words(value) if kind in "fc" else value)
    except (ValueError, OverflowError, RecursionError):
        raise RequestError(400, f"{where} must be {leaf}, as lists in lists of equal lengths.") from None
    if kind == "c":
        if found.ndim == 0 or found.shape[-1] != 2:
            raise RequestError(400, f"{where} must be {leaf}, each number a list of its real and imaginary part.")
        leaf.check(found.shape[:-1], where)
    else:
        leaf.check(found.shape, where)
    allowed = {"b": "b", "i": "iu", "u": "iu", "f": "iuf", "c": "iuf"}[kind]
    if found.dtype.kind not in allowed and found.size:
        raise RequestError(400, f"{where} must be {leaf}; it has elements that are no such numbers.")
    if kind == "c":
        pairs = found.astype(np.float32 if leaf.dtype == "complex64" else np.float64)
        return np.ascontiguousarray(pairs).view(leaf.dtype)[..., 0]
    made = found.astype(dtypes.dtype(leaf.dtype))
    if kind in "iu" and not np.array_equal(made, found):
        raise RequestError(400, f"{where} must be {leaf}; it has numbers beyond that type.")
    return made


def _words(value: Any) -> Any:
    """The words for numbers that JSON lacks, as numbers."""
    if isinstance(value, list):
        return [_words(v) for v in value]
    return _WORDS.get(value, value) if isinstance(value, str) else value


def _to_lists(x: Array) -> Any:
    if x.dtype.kind == "c":
        parts = np.float32 if x.dtype == np.complex64 else np.float64
        x = np.ascontiguousarray(x).view(parts).reshape(*x.shape, 2)
    x = _portable(x)
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        return _spelled(x.tolist())
    return x.tolist()


def _spelled(value: Any) -> Any:
    if isinstance(value, list):
        return [_spelled(v) for v in value]
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _portable(x: Array) -> Array:
    """An array of a dtype that NumPy's files and JSON have."""
    if x.dtype.name in _PLAIN:
        return x
    kind = dtypes.kind(x.dtype)
    return x.astype(np.float32 if kind == "f" else np.uint8 if kind == "u" else np.int8)


def _read_npy(file: Any, leaf: Leaf, size: int) -> Array:
    """An array from an .npy file, whose header is read before anything is allocated."""
    where = f"the array {leaf.path}"
    try:
        version = npy.read_magic(file)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, fortran, dtype = read(file)
    except Exception as e:  # NumPy raises whatever a header leads it to
        raise RequestError(400, f"{where} is no .npy file: {str(e)[:200]}.") from None
    leaf.check(shape, where)
    want = np.dtype(dtypes.dtype(leaf.dtype)) if leaf.dtype in _PLAIN else np.dtype(np.float32)
    if dtype.hasobject or dtype.newbyteorder("=") != want:
        raise RequestError(400, f"{where} must be {leaf}; its dtype is {dtype.name}.")
    count = math.prod(shape)
    if count * dtype.itemsize > size:
        raise RequestError(400, f"{where} has fewer bytes than its shape {list(shape)} takes.")
    data = file.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise RequestError(400, f"{where} ends early.")
    found = np.frombuffer(data, dtype).reshape(shape[::-1]).T if fortran else np.frombuffer(data, dtype).reshape(shape)
    return found.astype(dtypes.dtype(leaf.dtype))
