"""How arrays print: NumPy's look and NumPy's options, without NumPy."""

from __future__ import annotations

import contextlib
import math
import operator
import struct
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, Iterator

from ..base.scoped import scoped
from ..base import dtypes
from ..core.trace import Tracer, get_aval
from ..base.errors import TracerArrayConversionError
from ..base.host import has_numpy, np, round_bfloat16
from ..transforms.stage import concretization_error
from ..typing import ArrayLike
from .util import host_list, operand

if TYPE_CHECKING:
    from ..core.types import Value
    from ..base.dtypes import ElementType

__all__ = ["array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions"]
_DEFAULTS = {
    "edgeitems": 3,
    "threshold": 1000,
    "floatmode": "maxprec",
    "precision": 8,
    "suppress": False,
    "linewidth": 75,
    "nanstr": "nan",
    "infstr": "inf",
    "sign": "-",
    "formatter": None,
    "legacy": False,
    "override_repr": None,
}
_own: ContextVar[dict[Any, Any]] = ContextVar("printoptions", default=_DEFAULTS)
# floats from this size on print in scientific notation, by dtype
_LARGE = {"float32": 1e6, "complex64": 1e6, "float16": 1e3}
_DIGITS = {
    "float64": ("d", 17),
    "float32": ("f", 9),
    "float16": ("e", 5),
    "complex64": ("f", 9),
    "complex128": ("d", 17),
}


# options -------------------------------------------------------------------------------------------------------------


def get_printoptions() -> dict[Any, Any]:
    """The options by which arrays print (NumPy's own, where NumPy is there).

    Returns:
        dict of options by name.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.get_printoptions()["precision"]
        8
    """
    return dict(np.get_printoptions() if has_numpy else _own.get())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Changes options by which arrays print: precision, threshold, edgeitems, linewidth, suppress, nanstr, infstr,
    formatter, sign, floatmode.

    Args:
        *args: as `numpy.set_printoptions` takes them.
        **kwargs: options by name.

    Returns:
        None.

    Raises:
        TypeError, ValueError: for options that do not exist, and values that they can't have.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.set_printoptions(precision=8)
    """
    if has_numpy:
        np.set_printoptions(*args, **kwargs)
    else:
        _own.set(_changed(*args, **kwargs))


@contextlib.contextmanager
def printoptions(*args: Any, **kwargs: Any) -> Iterator[Any]:
    """A context in which `set_printoptions` holds.

    Args:
        *args: as `numpy.set_printoptions` takes them.
        **kwargs: options by name.

    Returns:
        context manager; inside of it, the options by name.

    Example:
        >>> import weft.numpy as jnp
        >>> with jnp.printoptions(precision=2):
        ...     print(jnp.array([1 / 3]))
        [0.33]
    """
    if has_numpy:
        with np.printoptions(*args, **kwargs) as options:
            yield options
        return
    with scoped(_own, _changed(*args, **kwargs)):
        yield get_printoptions()


def _changed(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    suppress: bool | None = None,
    nanstr: str | None = None,
    infstr: str | None = None,
    formatter: Any = None,
    sign: str | None = None,
    floatmode: str | None = None,
    *,
    legacy: Any = None,
    override_repr: Any = None,
) -> dict[Any, Any]:
    """The print options, with changes, where NumPy is absent."""
    given = dict(
        edgeitems=edgeitems,
        threshold=threshold,
        floatmode=floatmode,
        precision=precision,
        suppress=suppress,
        linewidth=linewidth,
        nanstr=nanstr,
        infstr=infstr,
        sign=sign,
    )
    if floatmode not in (None, "fixed", "unique", "maxprec", "maxprec_equal"):
        raise ValueError(f"floatmode must be one of 'fixed', 'unique', 'maxprec', 'maxprec_equal', got {floatmode!r}.")
    if sign not in (None, " ", "+", "-"):
        raise ValueError(f"sign must be one of ' ', '+', '-', got {sign!r}.")
    if threshold is not None and not isinstance(threshold, (int, float)):
        raise TypeError(f"threshold must be a number, got {threshold!r}.")
    if threshold is not None and threshold != threshold:
        raise ValueError("threshold must not be NaN; use a large number to print all elements.")
    if legacy or override_repr:
        raise NotImplementedError(
            "the print options 'legacy' and 'override_repr' need NumPy, which is not installed here; leave them out."
        )
    if precision is not None:
        operator.index(precision)
    return {**_own.get(), **{k: v for k, v in given.items() if v is not None}, "formatter": formatter}


# numbers -------------------------------------------------------------------------------------------------------------


def shortest(value: float, name: str) -> str:
    """The shortest scientific notation that reads back as the same number of dtype `name`."""
    if name in ("float64", "complex128"):
        return f"{value:.{_repr_digits(value) - 1}e}"
    code, most = _DIGITS.get(name, ("b", 9))
    for digits in range(most):
        text = f"{value:.{digits}e}"
        if code == "b":
            same = round_bfloat16(float(text)) == round_bfloat16(value)
        else:
            try:
                same = struct.pack(code, float(text)) == struct.pack(code, value)
            except OverflowError:
                same = False
        if same:
            return text
    return f"{value:.{most}e}"


def _repr_digits(value: float) -> int:
    digits = repr(abs(value)).split("e")[0].replace(".", "").lstrip("0").rstrip("0")
    return max(1, len(digits))


def _positional(text: str, negative: bool) -> str:
    """Shortest digits in positional notation: '1.', '0.25'."""
    mantissa, exponent = text.split("e")
    digits, shift = mantissa.lstrip("-").replace(".", ""), int(exponent)
    if shift >= 0:
        digits = digits.ljust(shift + 1, "0")
        whole, fraction = digits[: shift + 1], digits[shift + 1 :]
    else:
        whole, fraction = "0", "0" * (-shift - 1) + digits
    return f"{'-' if negative else ''}{whole}.{fraction.rstrip('0')}"


class _FloatFormat:
    """One format for all floats of an array: positional, or scientific when the range is wide."""

    def __init__(self, values: list[Any], name: str, options: dict[Any, Any], sign: str):
        self.name, self.sign, self.options = name, sign, options
        self.mode = options["floatmode"]
        self.limit: int | None = None if self.mode == "unique" else options["precision"]
        finite = [v for v in values if math.isfinite(v)]
        sizes = [abs(v) for v in finite if v != 0]
        self.scientific = bool(sizes) and (
            max(sizes) >= _LARGE.get(name, 1e8)
            or not options["suppress"]
            and (min(sizes) < 1e-4 or max(sizes) / min(sizes) > 1e3)
        )
        self.left = self.right = 0
        self.least: int = self.limit if self.limit is not None and self.scientific and self.mode == "fixed" else 0
        texts = [self._digits(v) for v in dict.fromkeys(finite)]
        texts += ["-0."] if any(v == 0 and math.copysign(1, v) < 0 for v in finite) and not self.scientific else []
        if self.scientific:
            parts = [t.split("e") for t in texts]
            self.exponent = max(len(e) - 1 for _, e in parts)
            self.least = self.limit = max(len(m.split(".")[1]) for m, _ in parts)
            self.left = max(len(m.split(".")[0]) for m, _ in parts)
            self.right = self.exponent + 2 + self.least
        elif texts:
            parts = [t.split(".") for t in texts]
            self.left, self.right = max(len(w) for w, _ in parts), max(len(f) for _, f in parts)
            if self.mode in ("fixed", "maxprec_equal"):
                self.least = self.limit = self.right
        if sign == " " and not any(math.copysign(1, v) < 0 for v in finite):
            self.left += 1
        special = [v for v in values if not math.isfinite(v)]
        if special:
            signed = sign != "-" or any(v < 0 for v in special)
            self.left = max(
                self.left, len(options["nanstr"]) - self.right - 1, len(options["infstr"]) + signed - self.right - 1
            )

    def _digits(self, v: float) -> str:
        """At most `limit` and at least `least` digits behind the point; those beyond the shortest are those of the
        exact value.
        """
        text = shortest(v, self.name)
        code = "e" if self.scientific else "f"
        if not self.scientific:
            text = _positional(text, math.copysign(1, v) < 0)
        elif "." not in text:
            text = text.replace("e", ".e")
        mantissa, mark, exponent = text.partition("e")
        mantissa = mantissa.rstrip("0") if self.scientific else mantissa
        count = len(mantissa.split(".")[1])
        if self.limit is not None and (count > self.limit or self.mode == "fixed" and not self.scientific):
            mantissa, mark, exponent = f"{v:#.{self.limit}{code}}".partition("e")
            if self.mode != "fixed" or self.scientific:
                mantissa = mantissa.rstrip("0")
        count = len(mantissa.split(".")[1])
        if count < self.least:
            mantissa, mark, exponent = f"{v:#.{self.least}{code}}".partition("e")
        return ("+" if self.sign == "+" and not mantissa.startswith("-") else "") + mantissa + mark + exponent

    def __call__(self, v: float) -> str:
        if not math.isfinite(v):
            plus = "+" if self.sign == "+" else ""
            text = plus + self.options["nanstr"] if v != v else ("-" if v < 0 else plus) + self.options["infstr"]
            return text.rjust(self.left + 1 + self.right)
        text = self._digits(v)
        if self.scientific:
            mantissa, exponent = text.split("e")
            whole, _, fraction = mantissa.partition(".")
            return f"{whole.rjust(self.left)}.{fraction}e{exponent[0]}{exponent[1:].rjust(self.exponent, '0')}"
        whole, fraction = text.split(".")
        return f"{whole.rjust(self.left)}.{fraction.ljust(self.right)}"


_FORMATTERS = {
    "b": ("bool", "all"),
    "i": ("int", "int_kind", "all"),
    "u": ("int", "int_kind", "all"),
    "f": ("float", "float_kind", "all"),
    "c": ("complexfloat", "complex_kind", "all"),
}


def _formatter(values: list[Any], dt: ElementType, options: dict[Any, Any], scalar: bool) -> Callable[..., Any]:
    kind, name = dtypes.kind(dt), dtypes.name(dt)
    # dtypes that NumPy stores as objects
    narrow = kind in "iu" and dtypes.bits(dt) < 8 or kind == "f" and name not in _DIGITS
    given = {k: f for k, f in (options["formatter"] or {}).items() if f is not None}
    for key in ("numpystr", "str_kind", "all") if narrow else _FORMATTERS[kind]:
        if key in given:
            return given[key]
    if kind == "b":
        return str if scalar else lambda v: str(v).rjust(5)
    if kind in "iu" and narrow:
        return str
    if kind in "iu":
        sign = "-" if options["sign"] == " " and min(values) < 0 else options["sign"]
        width = max(len(str(max(values))) + (sign in "+ " and max(values) >= 0), len(str(min(values))))
        return lambda v: f"{v:{sign}{width}d}"
    if kind == "f" and narrow:
        return lambda v: f"{v:g}"
    if kind == "f":
        return _FloatFormat([float(v) for v in values], name, options, options["sign"])
    real, imag = (
        _FloatFormat([v.real for v in values], name, options, options["sign"]),
        _FloatFormat([v.imag for v in values], name, options, "+"),
    )

    def complex_format(v: Value) -> str:
        part = imag(v.imag)
        body = part.rstrip()
        return real(v.real) + body + "j" + part[len(body) :]

    return complex_format


# arrays --------------------------------------------------------------------------------------------------------------


def _shown(data: Any, shape: tuple[Any, ...], edge: int | None) -> list[Any]:
    """The elements that are printed, as a flat list."""
    if not shape:
        return [data]
    rows = data if edge is None or len(data) <= 2 * edge else data[:edge] + data[len(data) - max(edge, 1) :]
    return list(rows) if len(shape) == 1 else [v for row in rows for v in _shown(row, shape[1:], edge)]


def array_text(
    data: Any,
    shape: tuple[Any, ...],
    dt: ElementType,
    prefix: str = "",
    separator: str = " ",
    suffix: str = "",
    **changes: Any,
) -> str:
    """Nested lists as text. `prefix` precedes it on the first line, and `suffix` follows it on the last."""
    options = {**get_printoptions(), **changes}
    if options["legacy"]:
        return np.array2string(
            np.asarray(data).astype(dt).reshape(shape),
            prefix=prefix,
            separator=separator,
            suffix=suffix,
            max_line_width=options["linewidth"],
            precision=options["precision"],
            suppress_small=options["suppress"],
        )
    if not math.prod(shape):
        return "[]"
    edge = options["edgeitems"] if math.prod(shape) > options["threshold"] else None
    values = _shown(data, shape, edge)
    fmt = _formatter(values, dt, options, not shape)
    if not shape:
        return fmt(data)
    sep = separator.rstrip(" ")

    def block(rows: Any, dims: tuple[Any, ...], indent: str, width: int) -> str:
        lead, trail, gap = rows, [], []
        if edge is not None and len(rows) > 2 * edge:
            lead, trail, gap = rows[:edge], rows[len(rows) - max(edge, 1) :], ["..."]
        if len(dims) > 1:
            parts = (
                [block(r, dims[1:], indent + " ", width - 1) for r in lead]
                + gap
                + [block(r, dims[1:], indent + " ", width - 1) for r in trail]
            )
            return "[" + (sep + "\n" * (len(dims) - 1) + indent).join(parts) + "]"
        words = [fmt(v) for v in lead] + gap + [fmt(v) for v in trail]
        lines, line = [], indent
        room = width - max(len(sep), 1)
        for i, word in enumerate(words):
            if len(line) + len(word) > room and len(line) > len(indent):
                lines.append(line.rstrip())
                line = indent
            line += word + (separator if i < len(words) - 1 else "")
        return "[" + "\n".join([*lines, line])[len(indent) :] + "]"

    return block(data, shape, " " * (len(prefix) + 1), options["linewidth"] - len(suffix))


def repr_text(data: Any, shape: tuple[Any, ...], dt: ElementType, weak_type: bool) -> str:
    """`Array([0, 1, 2], dtype=int32)`, with `weak_type=True` where it is so."""
    prefix = "Array("
    tail = f"dtype={dtypes.name(dt)}{', weak_type=True' if weak_type else ''})"
    if not math.prod(shape):
        return f"{prefix}[], shape={shape}, {tail}"
    text = array_text(data, shape, dt, prefix, ", ", ",")
    last = len(text) - (text.rfind("\n") + 1)
    # on one line, as in JAX
    sep = " " if last + len(tail) + 2 < get_printoptions()["linewidth"] else " " * len(prefix)
    return f"{prefix}{text},{sep}{tail}"


def scalar_text(value: Value, dt: ElementType) -> str:
    """How a number prints by itself: `1.5`, `1e-05`, `3`."""
    kind, name = dtypes.kind(dt), dtypes.name(dt)
    if kind == "f":
        if not math.isfinite(value):
            return str(value)
        text = shortest(value, name)
        if name not in _DIGITS:
            return f"{value:g}"
        mantissa, exponent = text.split("e")
        if value != 0 and not 1e-4 <= abs(value) < _LARGE.get(name, 1e16):
            return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{exponent}"
        positional = _positional(text, math.copysign(1, value) < 0)
        return positional + "0" if positional.endswith(".") else positional
    if kind == "c":
        real, imag = (scalar_text(v, dtypes.real_of(dt)).removesuffix(".0") for v in (value.real, value.imag))
        return (
            f"({real}{imag if imag[0] in '+-' else '+' + imag}j)"
            if value.real or math.copysign(1, value.real) < 0
            else f"{imag}j"
        )
    return str(value)


def str_text(data: Any, shape: tuple[Any, ...], dt: ElementType) -> str:
    """`[0 1 2]`: an array without its dtype."""
    return array_text(data, shape, dt) if shape else scalar_text(data, dt)


# functions of arrays -------------------------------------------------------------------------------------------------

_IMPLIED = ("bool", "int64", "float64", "complex128")


def _read(name: str, x: Value) -> tuple[Any, ...]:
    x = operand(name, x)
    if isinstance(x, Tracer):
        raise TracerArrayConversionError(
            concretization_error(x, f"{name} prints the values of an array; use weft.debug.print in traced functions")
        )
    return host_list(x), get_aval(x)


def _changes(max_line_width: int | None, precision: int | None, suppress_small: bool | None) -> dict[Any, Any]:
    given = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    return {k: v for k, v in given.items() if v is not None}


def array_repr(
    arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """An array as text with its class and dtype, as NumPy writes it (its own default dtypes are left out).

    Args:
        arr: array of any dtype, any shape.
        max_line_width: int, characters in a line; None for the option.
        precision: int, digits behind the point; None for the option.
        suppress_small: bool: numbers near zero as 0; None for the option.

    Returns:
        str.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.array_repr(jnp.array([0.5, 0.25]), precision=1).endswith("([0.5, 0.2], dtype=float32)")
        True
    """
    if has_numpy and isinstance(arr, np.ndarray):
        return np.array_repr(arr, max_line_width, precision, suppress_small)
    data, aval = _read("array_repr", arr)
    changes = _changes(max_line_width, precision, suppress_small)
    prefix = f"{'Array' if dtypes.is_python_scalar(arr) else type(arr).__name__}("
    shape, size, name = tuple(aval.shape), math.prod(aval.shape), dtypes.name(aval.dtype)
    options = {**get_printoptions(), **changes}
    extras = [f"shape={shape}"] if not size and shape != (0,) or size > options["threshold"] else []
    extras += [] if name in _IMPLIED and size else [f"dtype={name}"]
    text = prefix + array_text(data, shape, aval.dtype, prefix, ", ", "," if extras else ")", **changes)
    if not extras:
        return text + ")"
    tail = ", ".join(extras) + ")"
    last = len(text) + 1 - (text.rfind("\n") + 1)
    return text + "," + (" " if last + len(tail) + 1 <= options["linewidth"] else "\n" + " " * len(prefix)) + tail


def array_str(
    a: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The elements of an array as text.

    Args:
        a: array of any dtype, any shape.
        max_line_width: int, characters in a line; None for the option.
        precision: int, digits behind the point; None for the option.
        suppress_small: bool: numbers near zero as 0; None for the option.

    Returns:
        str.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.array_str(jnp.array([1 / 3, 0.5]), precision=2)
        '[0.33 0.5 ]'
    """
    data, aval = _read("array_str", a)
    if not aval.shape:
        return scalar_text(data, aval.dtype)
    return array_text(data, tuple(aval.shape), aval.dtype, **_changes(max_line_width, precision, suppress_small))
