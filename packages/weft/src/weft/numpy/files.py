"""Arrays in files of NumPy's formats .npy and .npz, and numbers in text."""

from __future__ import annotations

import ast
import io
import math
import os
import re
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Any, Iterator, NoReturn, Self

from ..base import dtypes
from ..base.avals import countable
from ..core.trace import Tracer
from ..base.errors import TracerArrayConversionError
from ..base.host import CODES, HostArray, foreign, from_bytes, has_numpy, is_host_array, np, to_bytes
from ..transforms.stage import concretization_error
from ..typing import Array, ArrayLike, DTypeLike
from .creation import asarray

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["fromfile", "fromiter", "fromstring", "load", "save", "savez"]
_MAGIC = b"\x93NUMPY"
_LONGEST = 10_000  # bytes of a header
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


def load(file: IO[bytes] | str | os.PathLike[str], *args: Any, **kwargs: Any) -> Any:
    """The array of a .npy file; of a .npz file its arrays by name, read when they are asked for. Further arguments are
    those of `numpy.load`.

    Args:
        file: path or open binary file.
        *args, **kwargs: as `numpy.load` takes them.

    Returns:
        array of the dtype and shape that the file says; of a .npz file a mapping from names to arrays.

    Raises:
        OSError: if the file can't be read. ValueError: if it holds something else.

    Example:
        >>> import io, weft.numpy as jnp
        >>> f = io.BytesIO()
        >>> jnp.save(f, jnp.arange(3)); _ = f.seek(0)
        >>> jnp.load(f)
        Array([0, 1, 2], dtype=int32)
    """
    if has_numpy:
        found = np.load(file, *args, **kwargs)
        if not isinstance(found, np.ndarray):
            return found
        return (
            asarray(found.view(dtypes.bfloat16) if found.dtype == np.dtype("V2") else found)
            if found.dtype.kind != "V" or found.dtype.itemsize == 2
            else found
        )
    if args or kwargs:
        raise NotImplementedError(
            "load takes only the file where NumPy is not installed: nothing is mapped or unpickled. Install numpy for"
            " its other arguments."
        )
    data = file.read() if hasattr(file, "read") else _contents(file)
    return _Archive(io.BytesIO(data)) if data[:2] == b"PK" else asarray(_parse(data))


def _contents(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as f:
        return f.read()


class _Archive:
    """The arrays of a .npz file by name, where NumPy is absent."""

    def __init__(self, stream: Any):
        try:
            self.zip = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, NotImplementedError, OSError) as e:
            raise ValueError(f"not a .npz file: {e}. Save arrays with weft.numpy.savez.") from None
        self.files = [name.removesuffix(".npy") for name in self.zip.namelist()]

    def __getitem__(self, name: str) -> Value:
        if name not in self.files:
            raise KeyError(f"{name!r} is not in the archive, which has {', '.join(self.files)}.")
        try:
            data = self.zip.read(name + ".npy")
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as e:
            raise ValueError(f"{name!r} of the .npz file can't be read: {e}.") from None
        return asarray(_parse(data))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.zip.close()


def _refuse(what: str) -> NoReturn:
    raise ValueError(f"not a .npy file: {what}. Save arrays with weft.numpy.save.")


def _header(data: bytes) -> tuple[str, bool, tuple[int, ...], int]:
    """The dtype, the order and the shape in the header of a .npy file, and where its elements begin."""
    if data[:6] != _MAGIC:
        _refuse("it does not begin with \\x93NUMPY")
    if len(data) < 12 or data[6] not in (1, 2, 3) or data[7]:
        _refuse(f"its version is {data[6:8].hex('.')}")
    width = 2 if data[6] == 1 else 4
    count = int.from_bytes(data[8 : 8 + width], "little")
    start = 8 + width + count
    if count > _LONGEST or start > len(data):
        _refuse(f"its header of {count} bytes is longer than {'the file' if start > len(data) else _LONGEST}")
    try:
        found = ast.literal_eval(data[8 + width : start].decode("utf-8" if data[6] == 3 else "latin1"))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        _refuse("its header is not a dict of constants")
    if not isinstance(found, dict) or found.keys() != {"descr", "fortran_order", "shape"}:
        _refuse("its header must have descr, fortran_order and shape")
    descr, fortran, shape = found["descr"], found["fortran_order"], found["shape"]
    if type(fortran) is not bool or type(shape) is not tuple or any(type(n) is not int or n < 0 for n in shape):
        _refuse(
            f"fortran_order must be a bool and shape a tuple of sizes, got {str(fortran)[:40]} and {str(shape)[:80]}"
        )
    return descr, fortran, shape, start


def _parse(data: bytes) -> HostArray:
    """The host array in the bytes of a .npy file."""
    descr, fortran, shape, start = _header(data)
    parts = re.fullmatch(r"([<>|=]?)([biufcV])(\d{1,2})", descr) if type(descr) is str else None
    order, kind, size = (parts[1], parts[2], int(parts[3])) if parts is not None else ("", "?", 0)
    name = (
        "bool"
        if kind == "b" and size == 1
        else "bfloat16"
        if kind == "V" and size == 2
        else f"{_KINDS.get(kind, '?')}{8 * size}"
    )
    if name not in (*CODES, "bfloat16") or order == ">" and size > 1:
        raise ValueError(
            f"a .npy file with elements of type {str(descr)[:40]!r} can't be read without NumPy; numbers in"
            " little-endian order can."
        )
    n = math.prod(shape)
    if n * size > len(data) - start:
        _refuse(
            f"an array of shape {str(shape)[:80]} and dtype {name} has {n * size} bytes, and {len(data) - start} are"
            " there"
        )
    if not countable(shape, dtypes.dtype(name)):
        _refuse(f"an array of shape {str(shape)[:80]} is too large, though it has no elements")
    values = data[start : start + n * size]
    wrong = foreign(values, dtypes.dtype(name))
    if wrong is not None:
        _refuse(f"an element of dtype {name} has the bits {wrong:#x}")
    if fortran and len(shape) > 1:
        values = _row_major(values, shape, size)
    return from_bytes(values, shape, dtypes.dtype(name))


def _row_major(values: bytes, shape: tuple[int, ...], size: int) -> bytes:
    """The elements of a column-major array, in row-major order; as bytes, since a NaN that becomes a number of Python's
    has other bits afterwards.
    """
    n, rows = math.prod(shape), bytearray()
    for k in range(n):  # the k-th element in row-major order lies at the place of its indices in reverse order
        at, stride, rest = 0, n, k
        for length in reversed(shape):
            stride //= length
            at, rest = at + rest % length * stride, rest // length
        rows += values[at * size : (at + 1) * size]
    return bytes(rows)


def _host(name: str, x: Value) -> Any:
    if isinstance(x, Tracer):
        raise TracerArrayConversionError(concretization_error(x, f"{name} writes the values of an array"))
    return x if is_host_array(x) else asarray(x)._host()


def _bytes(x: Value) -> bytes:
    """A host array as a .npy file."""
    name = dtypes.name(x.dtype)
    size = dtypes.itemsize(x.dtype)
    kind = "V" if name == "bfloat16" else dtypes.kind(x.dtype)
    text = (
        f"{{'descr': '{'|' if size == 1 else '<'}{kind}{size}', 'fortran_order': False, 'shape': {tuple(x.shape)!r}, }}"
    )
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return _MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin1") + bytes(to_bytes(x))


def _write(file: Any, suffix: str, data: bytes) -> None:
    if hasattr(file, "write"):
        file.write(data)
        return
    path = os.fspath(file)
    with open(path if path.endswith(suffix) else path + suffix, "wb") as f:
        f.write(data)


def save(file: IO[bytes] | str | os.PathLike[str], arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Writes an array to a .npy file (an open file, or a path, to which .npy is added where it does not end so).

    Args:
        file: path or open binary file.
        arr: array of any dtype, any shape.
        allow_pickle: bool, without effect: arrays hold no Python objects.

    Returns:
        None.

    Raises:
        OSError: if the file can't be written.

    Example:
        >>> import io, weft.numpy as jnp
        >>> f = io.BytesIO()
        >>> jnp.save(f, jnp.arange(3))
        >>> f.getvalue()[1:6]
        b'NUMPY'
    """
    if has_numpy:
        np.save(file, arr, allow_pickle=allow_pickle)
    else:
        _write(file, ".npy", _bytes(_host("save", arr)))


def savez(
    file: IO[bytes] | str | os.PathLike[str], *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike
) -> None:
    """Writes arrays to a .npz file: those with a keyword under that name, the others as arr_0, arr_1, …

    Args:
        file: path or open binary file.
        *args: arrays of any dtype and shape.
        allow_pickle: bool, without effect: arrays hold no Python objects.
        **kwds: arrays by name.

    Returns:
        None.

    Raises:
        OSError: if the file can't be written.
        ValueError: if a keyword is the name of an array without one.

    Example:
        >>> import io, weft.numpy as jnp
        >>> f = io.BytesIO()
        >>> jnp.savez(f, jnp.arange(3), x=jnp.ones(2)); _ = f.seek(0)
        >>> sorted(jnp.load(f).files)
        ['arr_0', 'x']
    """
    if has_numpy:
        np.savez(file, *args, allow_pickle=allow_pickle, **kwds)
        return
    named = {f"arr_{k}": x for k, x in enumerate(args)}
    if named.keys() & kwds.keys():
        raise ValueError(
            f"savez: {', '.join(sorted(named.keys() & kwds.keys()))} is the name of an array that was given without"
            " one."
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, x in {**named, **kwds}.items():
            archive.writestr(name + ".npy", _bytes(_host("savez", x)))
    _write(file, ".npz", buffer.getvalue())


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """The numbers in a text, between separators (spaces in `sep` stand for any white space).

    Args:
        string: text with numbers.
        dtype: dtype of the numbers.
        count: int, how many are read; -1 for all.
        sep: text that stands between numbers.

    Returns:
        array of that dtype, shape (count,).

    Raises:
        ValueError: for text that is not a number of that dtype, for fewer numbers than `count`, and for an empty
            separator.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fromstring("1, 2.5", sep=",")
        Array([1. , 2.5], dtype=float32)
    """
    if not sep:
        raise ValueError("fromstring: the separator is empty; to read bytes, use weft.numpy.frombuffer.")
    if isinstance(string, (bytes, bytearray)):
        string = bytes(string).decode("latin1")
    if not isinstance(string, str):
        raise TypeError(f"fromstring takes a string, got {type(string).__name__}.")
    parts = [part.strip() for part in (string.split(sep.strip()) if sep.strip() else string.split())]
    parts = parts[:-1] if parts and not parts[-1] else parts
    dt = dtypes.dtype(dtype)
    read = float if dtypes.is_float(dt) else complex if dtypes.is_complex(dt) else int
    try:
        values: list[Any] = [read(part) for part in parts[: count if count >= 0 else None]]
    except ValueError as e:
        raise ValueError(
            f"fromstring: the text could not be read to its end as {dtypes.name(dt)} between {sep!r}: {e}."
        ) from None
    if len(values) < count:
        raise ValueError(f"fromstring: {count} numbers were asked for, but the text has {len(values)}.")
    if dtypes.is_int(dt):  # as in C: values that are too large wrap
        bits = dtypes.bits(dt)
        values = [v & (1 << bits) - 1 for v in values]
        values = [v - (1 << bits) if dtypes.is_signed(dt) and v >> (bits - 1) else v for v in values]
    return asarray(values, dt)


def _unsafe(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name} does not exist here: what it reads may change between a function's traces. "
        f"Use weft.numpy.asarray(numpy.{name}(…)) outside of traced functions."
    )


def fromfile(*args: object, **kwargs: object) -> NoReturn:
    """Not offered, as in JAX: raises NotImplementedError. Read with `numpy.fromfile` and convert.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fromfile()  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        NotImplementedError: …
    """
    _unsafe("fromfile")


def fromiter(*args: object, **kwargs: object) -> NoReturn:
    """Not offered, as in JAX: raises NotImplementedError. Read with `numpy.fromiter` and convert.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.fromiter()  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        NotImplementedError: …
    """
    _unsafe("fromiter")
