"""The boundary between the language and the host's memory. Only this module knows whether NumPy is installed.

With NumPy, host values are `numpy.ndarray`. Without it (a page that did not download it), they are `HostArray`: a
shape, a dtype and bytes, which is all that the language itself ever asks for.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from typing import TYPE_CHECKING, Any

from .annotations import override
from .hooks import Hook
from .late_numpy import when_numpy_comes

if TYPE_CHECKING:
    import numpy

    np = numpy  # others import the name from here
else:
    np = None
    if os.environ.get("WEFT_NUMPY", "1") != "0":
        try:
            import numpy as np
        except ImportError:
            pass

# read instead of `np is None`, which a type checker takes for False, so that it skips the code after it
has_numpy: bool = np is not None


HAS_BUFFERS = sys.version_info >= (3, 12)  # a class of Python can offer its memory


late: list[Any] = []  # NumPy, where it has come after the language
_late_types: tuple[type, ...] = ()


def _came(numpy: Any) -> None:
    global _late_types
    late.append(numpy)
    _late_types = (numpy.ndarray, numpy.generic)


def require_numpy(what: str):
    """NumPy, or an error that names what needs it."""
    if late:
        return late[0]
    if not has_numpy:
        raise ImportError(
            f"{what} needs NumPy, which is not installed here. Install numpy, or use tolist() or"
            f" {'memoryview()' if HAS_BUFFERS else 'tobytes()'} instead."
        )
    return np


# struct codes by dtype name; bfloat16 has no code and is packed by hand.
CODES = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "complex64": "ff",
    "complex128": "dd",
}
# integers that take a byte each, whose upper bits have no meaning
NARROW = {"int2": "b", "int4": "b", "uint2": "B", "uint4": "B"}


def round_bfloat16(value: float) -> int:
    """The 16 bits of the bfloat16 nearest to `value`, ties to even."""
    try:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        bits = 0x7F800000 if value > 0 else 0xFF800000
    if bits & 0x7F800000 == 0x7F800000 and bits & 0x007FFFFF:
        return (bits >> 16) | 0x40
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def _wrap(value: int, name: str) -> int:
    bits = int(name.lstrip("uint") or 0)
    value &= (1 << bits) - 1
    return value - (1 << bits) if name[0] == "i" and value >> (bits - 1) else value


def pack(values, name: str) -> bytearray:
    """Flat Python scalars as the little-endian bytes of dtype `name`."""
    values = list(values)
    n = len(values)
    if name == "bool":
        return bytearray(1 if v else 0 for v in values)
    if name == "bfloat16":
        return bytearray(struct.pack(f"<{n}H", *[round_bfloat16(float(v)) for v in values]))
    if name in ("complex64", "complex128"):
        return _pack_floats([p for v in map(complex, values) for p in (v.real, v.imag)], CODES[name][0])
    code = _code(name)
    if name.startswith("float"):
        return _pack_floats(values, code)
    return bytearray(struct.pack(f"<{n}{code}", *[_wrap(int(v), name) for v in values]))


def _code(name: str) -> str:
    """The struct code of a dtype; TypeError for the formats that only NumPy's extensions know."""
    code = CODES.get(name) or NARROW.get(name)
    if code is None:
        raise TypeError(
            f"without NumPy the host can't read or write {name}: convert on the"
            f" device, with x.astype('float32') before reading, and with jnp.zeros(…).astype(…) to make an array."
        )
    return code


def _pack_floats(values: list, code: str) -> bytearray:
    """Those too large for the format are infinite in it."""
    try:
        return bytearray(struct.pack(f"<{len(values)}{code}", *values))
    except OverflowError:
        return bytearray(b"".join(_pack_float(float(v), code) for v in values))


def _pack_float(value: float, code: str) -> bytes:
    try:
        return struct.pack("<" + code, value)
    except OverflowError:
        return struct.pack("<" + code, float("inf") if value > 0 else float("-inf"))


def unpack(data, name: str) -> list:
    """The inverse of `pack`: bytes of dtype `name` as a flat list of Python scalars."""
    data = memoryview(data).cast("B")
    if name == "bfloat16":
        halves = struct.unpack(f"<{len(data) // 2}H", data)
        return list(struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *[h << 16 for h in halves])))
    if name in ("complex64", "complex128"):
        code = CODES[name][0]
        flat = struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)
        return [complex(re, im) for re, im in zip(flat[::2], flat[1::2])]
    if name == "float16":  # memoryviews have no halves
        return list(struct.unpack(f"<{len(data) // 2}e", data))
    values = data.cast(_code(name)).tolist()
    return [_wrap(v, name) for v in values] if name in NARROW else values


def round_narrow(value: float, dtype) -> float:
    """A float as a dtype of 8 bits or fewer holds it; where NumPy is absent no array has such a dtype, and the value
    stays as it is.
    """
    return float(np.asarray(value).astype(dtype)) if has_numpy else value


def nest(flat: list, shape: tuple):
    """A flat list as nested lists of `shape`; a scalar for shape ()."""
    if not shape:
        return flat[0]
    for size in reversed(shape[1:]):
        flat = (
            [flat[i : i + size] for i in range(0, len(flat), size)]
            if size
            else [[] for _ in range(_product(shape[:-1]) if size == 0 else 0)]
        )
    return flat


def _product(sizes) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


class HostArray:
    """A dense, row-major host array where NumPy is absent: `shape`, `dtype` and the bytes behind the buffer
    protocol.
    """

    __slots__ = ("shape", "dtype", "data")

    def __init__(self, shape: tuple, dtype, data):
        self.shape, self.dtype, self.data = tuple(shape), dtype, memoryview(data).cast("B")

    def __buffer__(self, flags):
        return self.data

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return _product(self.shape)

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    def tolist(self):
        return nest(unpack(self.data, self.dtype.name), self.shape)

    @override
    def __repr__(self):
        return f"HostArray({self.tolist()}, dtype={self.dtype.name})"


def from_flat(values, shape: tuple, dtype):
    """A host array of `shape` and `dtype` from flat Python scalars."""
    if has_numpy:
        data = pack(values, dtype.name) if dtype.name in CODES or dtype.name == "bfloat16" else None
        if data is None:
            return np.array(list(values)).astype(dtype).reshape(shape)
        return np.frombuffer(data, dtype=dtype).reshape(shape)
    return HostArray(shape, dtype, pack(values, dtype.name))


def from_bytes(data, shape: tuple, dtype):
    """A host array of `shape` and `dtype` over `data`, without a copy."""
    if has_numpy:
        return np.frombuffer(data, dtype=dtype).reshape(shape)
    return HostArray(shape, dtype, data)


def part(value, index: tuple[slice, ...]):
    """The elements of a host array in a slice of each axis, as a dense host array; slices have no steps."""
    if not isinstance(value, HostArray):
        return np.ascontiguousarray(value[index])
    size = value.dtype.itemsize
    shape = tuple([len(range(*s.indices(n))) for s, n in zip(index, value.shape)])
    return HostArray(
        shape, value.dtype, b"".join([value.data[at * size : (at + n) * size] for at, n in _runs(index, value.shape)])
    )


def joined(parts, shape: tuple, dtype):
    """A host array that can't be written, from pairs of an index as `part` takes it and the elements there."""
    if has_numpy:
        whole = np.empty(shape, dtype)
        for index, value in parts:
            whole[index] = value
        whole.flags.writeable = False
        return whole
    size = dtype.itemsize
    data = bytearray(_product(shape) * size)
    for index, value in parts:
        done = 0
        for at, n in _runs(index, shape):
            data[at * size : (at + n) * size] = value.data[done * size : (done + n) * size]
            done += n
    return HostArray(shape, dtype, bytes(data))


def _runs(index: tuple[slice, ...], shape: tuple):
    """The (first element, number of elements) of the rows of a part, in order; rows that follow each other are one."""
    stride, whole = 1, True  # of the axes behind: whether the part has all of them
    runs = [(0, 1)]
    for s, size in zip(reversed(index), reversed(shape)):
        places = range(*s.indices(size))
        if not places:
            return []
        if whole:
            runs = [(places[0] * stride, len(places) * stride)]
        else:
            runs = [(k * stride + at, n) for k in places for at, n in runs]
        whole = whole and len(places) == size
        stride *= size
    return runs


def foreign(data: bytes, dtype) -> int | None:
    """The first byte that is not an element of bool or a dtype of fewer than 8 bits, or None if all bytes are. Such a
    dtype stores each element in a byte: the bits of a number, extended by zeros or by its sign.
    """
    name = dtype.name
    found = re.fullmatch(r"(u?int|float)([1246])(_\w+)?", name)
    if name != "bool" and found is None:
        return None
    width = 1 if found is None else int(found[2])
    allowed = bytes(range(1 << width)) + (bytes(range(256 - (1 << width - 1), 256)) if name.startswith("int") else b"")
    left = bytes(data).translate(None, allowed)
    return left[0] if left else None


def adopted(value):
    """An array or scalar of a NumPy that came late as a host array of the language; others as they are."""
    if not isinstance(value, _late_types):
        return value
    value = late[0].asarray(value)
    dtype = late_dtypes(value.dtype)
    native = late[0].ascontiguousarray(value, value.dtype.newbyteorder("="))
    return HostArray(value.shape, dtype, native.tobytes())


def to_numpy(value):
    """A host array as NumPy's, without a copy; it can't be written."""
    numpy = require_numpy("conversion to a NumPy array")
    if not isinstance(value, HostArray):
        return numpy.asarray(value)
    try:
        dtype = numpy.dtype(value.dtype.name)
    except TypeError:
        raise TypeError(
            f"NumPy has no dtype {value.dtype.name} of its own. Convert the array first, as by x.astype('float32')."
        ) from None
    return numpy.frombuffer(value.data.toreadonly(), dtype).reshape(value.shape)


# the language's dtype of NumPy's; `dtypes` defines it
late_dtypes: Hook[[Any], Any] = Hook("reading an array of NumPy")


def to_bytes(value) -> memoryview:
    """The dense row-major bytes of a host array."""
    value = adopted(value)
    if isinstance(value, HostArray):
        return value.data
    value = np.ascontiguousarray(value)
    return memoryview(value.reshape(-1).view(np.uint8)) if value.size else memoryview(b"")


def as_view(value) -> memoryview:
    """A host array as a memoryview of its shape that can't be written, since arrays don't change; BufferError for a
    dtype that memoryviews have no format for.
    """
    if not isinstance(value, HostArray):
        return memoryview(value).toreadonly()
    code = CODES.get(value.dtype.name, "")
    try:
        whole: Any = value.data.toreadonly()
        view: memoryview = whole.cast(code, value.shape) if value.size else whole.cast(code)
        return view
    except ValueError:
        raise BufferError(
            f"memoryviews have no format for {value.dtype.name}. Convert the array, as by x.astype('float32') or"
            " lax.real(x), or use tolist() or tobytes()."
        ) from None


def converted(value, dtype):
    """A host array with exactly this dtype."""
    value = adopted(value)
    if value.dtype == dtype:
        return value
    if not isinstance(value, HostArray):
        return value.astype(dtype)
    return from_flat(flat_list(value), value.shape, dtype)


def flat_list(value) -> list:
    """The elements of a host array as Python scalars."""
    out = value.tolist()
    for _ in value.shape[1:]:
        out = [x for row in out for x in row]
    return out if value.shape else [out]


def is_host_array(value) -> bool:
    return isinstance(value, HostArray) or isinstance(value, HOST_TYPES if has_numpy else _late_types)


HOST_TYPES: tuple[type, ...] = (np.ndarray, np.generic) if has_numpy else ()
if not has_numpy:
    when_numpy_comes(_came)
