"""Converts the values that users draw to dense arrays that any renderer can read. It works without NumPy."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from math import isfinite, prod
from typing import Any, NamedTuple, NoReturn

from ..base.errors import TracerArrayConversionError, at_user_line, type_error
from ..base.host import HostArray, has_numpy, is_host_array, np, pack, to_bytes, unpack
from ..base.tree import keyed_children, keystr
from ..core.trace import Tracer
from ..runtime.array import Array
from ..transforms.stage import concretization_error

# The dtypes that renderers read, and the struct code of each.
CODES = {
    "float64": "d",
    "float32": "f",
    "int32": "i",
    "uint32": "I",
    "int16": "h",
    "uint16": "H",
    "int8": "b",
    "uint8": "B",
}
# The dtypes to which others are converted.
INSTEAD = {"bool": "uint8", "int64": "float64", "uint64": "float64", "float16": "float32", "bfloat16": "float32"}


class Values(NamedTuple):
    """A dense array: the name of its dtype, its shape, and its bytes in row-major order."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def size(self) -> int:
        return prod(self.shape)

    def numbers(self) -> Any:
        """The elements in row-major order, as an indexable sequence of Python numbers."""
        return memoryview(self.data).cast(CODES[self.dtype])  # type: ignore[call-overload]

    def finite(self) -> list[float]:
        """The elements that are neither NaN nor infinite."""
        return [v for v in self.numbers() if isfinite(v)]

    def reshaped(self, *shape: int) -> Values:
        return self._replace(shape=shape)


def of_floats(numbers: Iterable[float], *shape: int) -> Values:
    """Python floats as `Values` of the shape, or of rank 1."""
    data = array("d", numbers)
    return Values("float64", shape or (len(data),), data.tobytes())


def read(what: str, x: object) -> Values:
    """The numbers of anything that holds some: an array of weft, NumPy or another library, a nest of lists, a number.

    Args:
        what: the function and the argument, such as "plot.line: y", for errors.
        x: the numbers. Complex ones, strings and objects are refused; None in a list is NaN.

    Raises:
        TypeError: it holds no real numbers.
        ValueError: the lists of a nest have different lengths.
        TracerArrayConversionError: it is traced, and has no numbers yet.
    """
    if isinstance(x, Tracer):
        function = what.partition(":")[0]
        raise TracerArrayConversionError(
            concretization_error(
                x,
                f"{what} is drawn; draw outside of the traced function, or with weft.debug.callback(weft.{function}, …)"
                " while it runs",
            )
        )
    if isinstance(x, Array):
        x = x._host()
    if is_host_array(x):
        return _of_host_array(what, x)
    if isinstance(x, (bool, int, float)):
        return Values("float64", (), array("d", [x]).tobytes())
    if isinstance(x, (list, tuple, range)):
        return _of_sequence(what, x)
    if has_numpy and hasattr(x, "__array__"):
        return _of_host_array(what, np.asarray(x))
    if isinstance(x, (str, bytes, Mapping, complex)) or x is None:
        _refuse(what, x)
    try:
        view = memoryview(x)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        if isinstance(x, Iterable):
            return _of_sequence(what, list(x))
        _refuse(what, x)
    return _of_buffer(what, view)


def _refuse(what: str, x: object) -> NoReturn:
    raise type_error(f"{what} must hold real numbers (a list, or an array of weft or NumPy); got {_described(x)}")


def _described(x: object) -> str:
    return f"the string {x[:40]!r}" if isinstance(x, str) else "None" if x is None else f"a {type(x).__name__}"


def _check_dtype(what: str, name: str) -> str:
    """The dtype in which numbers of dtype `name` are drawn."""
    wanted = name if name in CODES else INSTEAD.get(name)
    if wanted is not None:
        return wanted
    if name.startswith("complex"):
        raise type_error(f"{what} is complex; draw its real part, its imaginary part or its absolute value")
    if name.startswith(("float", "int", "uint")):  # of 8 bits or fewer
        return "float32"
    raise type_error(f"{what} must hold real numbers; its dtype is {name}")


def _of_host_array(what: str, x: Any) -> Values:
    name = str(x.dtype.name)
    if has_numpy and not isinstance(x, HostArray):
        if name == "object":
            try:
                x = x.astype("float64")
            except (TypeError, ValueError):
                _refuse(what, x.ravel()[0] if x.size else x)
            name = "float64"
        wanted = _check_dtype(what, name)
        if isinstance(x, np.ma.MaskedArray):
            x, wanted = np.ma.filled(x.astype("float64"), np.nan), "float64"
        return Values(wanted, x.shape, np.ascontiguousarray(x, dtype=wanted).tobytes())
    wanted = _check_dtype(what, name)
    if name == wanted or name == "bool":
        return Values(wanted, x.shape, bytes(to_bytes(x)))
    return Values(wanted, x.shape, bytes(pack(unpack(x.data, name), wanted)))


def _of_buffer(what: str, view: memoryview) -> Values:
    """The memory of another library's array, such as one of NumPy in a page where weft itself runs without NumPy."""
    code = view.format.lstrip("@=<") if view.format else ""
    kind = "float" if code in ("f", "d", "e") else "int" if code in ("b", "h", "i", "l", "q") else "uint"
    if code == "?":
        name = "bool"
    elif code in tuple("fdebhilqBHILQ"):
        name = f"{kind}{8 * view.itemsize}"
    else:
        raise type_error(f"{what} must hold real numbers; its memory has the format {view.format!r}")
    wanted, data = _check_dtype(what, name), view.tobytes()
    if name not in (wanted, "bool"):
        data = bytes(pack(unpack(data, name), wanted))
    return Values(wanted, view.shape or (), data)


def _of_sequence(what: str, x: list[Any] | tuple[Any, ...] | range) -> Values:
    if not any(isinstance(v, (str, list, tuple, Tracer)) or hasattr(v, "shape") for v in x[:1]):
        try:
            return of_floats(x)
        except TypeError:  # None among them, or nests after the first
            pass
    rows = [Values("float64", (), array("d", [float("nan")]).tobytes()) if v is None else read(what, v) for v in x]
    if not rows:
        return Values("float64", (0,), b"")
    different = next((row for row in rows if row.shape != rows[0].shape), None)
    if different is not None:
        raise ValueError(
            at_user_line(
                f"{what} has elements of different shapes, {rows[0].shape} and {different.shape}: give an array, or a"
                " list of rows of one length"
            )
        )
    shape = (len(rows), *rows[0].shape)
    if len({row.dtype for row in rows}) == 1:
        return Values(rows[0].dtype, shape, b"".join(row.data for row in rows))
    return of_floats((v for row in rows for v in row.numbers()), *shape)


def series(what: str, x: object) -> list[tuple[str, Values]]:
    """The leaves of a pytree with their labels, those of a dict in its own order; of what is no dict, dataclass or
    named tuple there is one, without a label.
    """
    if not is_tree(x):
        return [("", read(what, x))]
    found: list[tuple[str, Values]] = []
    for name, child in x.items() if isinstance(x, dict) else keyed_children(x):
        label = keystr((name,), simple=True)
        found += [(".".join(filter(None, (label, rest))), v) for rest, v in series(f"{what}[{label}]", child)]
    return found


def is_tree(x: object) -> bool:
    """Whether it is a pytree with names for its children; a list or a tuple is an array."""
    return type(x) not in (list, tuple) and x is not None and keyed_children(x) is not None


def vector(what: str, x: object) -> Values:
    """Numbers along one axis."""
    values = read(what, x)
    if len(values.shape) != 1:
        raise ValueError(at_user_line(f"{what} must have one axis; its shape is {values.shape}"))
    return values


def matrix(what: str, x: object) -> Values:
    """Numbers in rows and columns."""
    values = read(what, x)
    if len(values.shape) != 2:
        raise ValueError(
            at_user_line(f"{what} must have two axes, its rows and its columns; its shape is {values.shape}")
        )
    return values


def same_length(function: str, **given: Values) -> None:
    """Raises ValueError if the arguments of a function do not all have as many numbers."""
    if len({values.size for values in given.values()}) > 1:
        sizes = " and ".join(f"{name} has {values.size} numbers" for name, values in given.items())
        raise ValueError(at_user_line(f"plot.{function}: {sizes}; give as many of each"))
