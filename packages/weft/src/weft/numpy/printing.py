"""How arrays print: NumPy's look, without NumPy."""
from __future__ import annotations

import math
import struct
from typing import Callable

from .. import dtypes
from ..host import round_bfloat16

LINE_WIDTH, THRESHOLD, EDGE_ITEMS, PRECISION = 75, 1000, 3, 8
_LARGE = {"float32": 1e6, "complex64": 1e6, "float16": 1e3}     # from here on floats of a dtype print in scientific notation
_DIGITS = {"float64": ("d", 17), "float32": ("f", 9), "float16": ("e", 5), "complex64": ("f", 9), "complex128": ("d", 17)}


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


def _positional(text: str, value: float) -> str:
    """Shortest digits in positional notation with at most PRECISION decimals, trailing zeros cut: '1.', '0.25'."""
    mantissa, exponent = text.split("e")
    digits, shift = mantissa.lstrip("-").replace(".", ""), int(exponent)
    sign = "-" if value < 0 or value == 0 and math.copysign(1, value) < 0 else ""
    if shift >= 0:
        digits = digits.ljust(shift + 1, "0")
        whole, fraction = digits[:shift + 1], digits[shift + 1:]
    else:
        whole, fraction = "0", "0" * (-shift - 1) + digits
    if len(fraction) > PRECISION:
        whole, fraction = f"{abs(value):.{PRECISION}f}".split(".")
    return f"{sign}{whole}.{fraction.rstrip('0')}"


class _FloatFormat:
    """One format for all floats of an array: positional, or scientific when the range is wide."""

    def __init__(self, values: list, name: str, sign: bool = False):
        self.name, self.sign = name, sign
        finite = [v for v in values if math.isfinite(v)]
        sizes = [abs(v) for v in finite if v != 0]
        self.scientific = bool(sizes) and (max(sizes) >= _LARGE.get(name, 1e8) or min(sizes) < 1e-4 or max(sizes) / min(sizes) > 1e3)
        texts = {v: self._digits(v) for v in set(finite)}
        if self.scientific:
            parts = [t.split("e") for t in texts.values()]
            self.decimals = max([len(m.split(".")[1]) for m, _ in parts], default=0)
            self.left = max([len(m.split(".")[0]) for m, _ in parts], default=1)
            self.exponent = max([len(e) - 1 for _, e in parts], default=2)
            self.right = self.exponent + 2 + self.decimals
        else:
            parts = [t.split(".") for t in texts.values()]
            self.left = max([len(w) for w, _ in parts], default=0)
            self.right = max([len(f) for _, f in parts], default=0)
        special = [v for v in values if not math.isfinite(v)]
        if special:
            self.left = max(self.left, max(len(self._special(v)) for v in special) - self.right - 1)

    def _sign(self, text: str) -> str:
        return "+" + text if self.sign and not text.startswith("-") else text

    def _special(self, v: float) -> str:
        return self._sign("nan" if v != v else "inf" if v > 0 else "-inf")

    def _digits(self, v: float) -> str:
        text = shortest(v, self.name)
        if not self.scientific:
            return self._sign(_positional(text, v))
        mantissa, exponent = text.split("e")
        whole, _, fraction = mantissa.partition(".")
        if len(fraction) > PRECISION:
            mantissa, exponent = f"{v:.{PRECISION}e}".split("e")
            whole, _, fraction = mantissa.partition(".")
        return self._sign(f"{whole}.{fraction.rstrip('0')}e{exponent}")

    def __call__(self, v: float) -> str:
        if not math.isfinite(v):
            return self._special(v).rjust(self.left + 1 + self.right)
        text = self._digits(v)
        if self.scientific:
            if len(text.split("e")[0].split(".")[1]) < self.decimals:      # further digits are those of the exact value
                text = self._sign(f"{v:.{self.decimals}e}")
            mantissa, exponent = text.split("e")
            whole, _, fraction = mantissa.partition(".")
            exponent = exponent[0] + exponent[1:].rjust(self.exponent, "0")
            return f"{whole.rjust(self.left)}.{fraction.ljust(self.decimals, '0')}e{exponent}"
        whole, fraction = text.split(".")
        return f"{whole.rjust(self.left)}.{fraction.ljust(self.right)}"


def _formatter(values: list, dt) -> Callable:
    kind, name = dtypes.kind(dt), dtypes.name(dt)
    if kind == "b":
        width = max([len(str(bool(v))) for v in values], default=0)
        return lambda v: str(bool(v)).rjust(width)
    if kind in "iu":
        width = max([len(str(v)) for v in values], default=0)
        return lambda v: str(v).rjust(width)
    if kind == "f" and name not in _DIGITS:      # bfloat16 and the float8 types
        return lambda v: f"{v:g}"
    if kind == "f":
        return _FloatFormat([float(v) for v in values], name)
    real, imag = _FloatFormat([v.real for v in values], name), _FloatFormat([v.imag for v in values], name, True)

    def complex_format(v):
        part = imag(v.imag)
        body = part.rstrip()
        return real(v.real) + body + "j" + part[len(body):]
    return complex_format


def _shown(data, shape: tuple, summarize: bool) -> list:
    """The elements that are printed, flat."""
    if not shape:
        return [data]
    rows = data[:EDGE_ITEMS] + data[-EDGE_ITEMS:] if summarize and len(data) > 2 * EDGE_ITEMS else data
    return list(rows) if len(shape) == 1 else [v for row in rows for v in _shown(row, shape[1:], summarize)]


def _size(shape: tuple) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def array_text(data, shape: tuple, dt, prefix: str = "", separator: str = " ", suffix: int = 0) -> str:
    """Nested lists as text. `prefix` is what stands before on the first line; `suffix` is how much comes after on the last."""
    if not _size(shape):
        return "[]"
    summarize = _size(shape) > THRESHOLD
    fmt = _formatter(_shown(data, shape, summarize), dt)
    if not shape:
        return fmt(data)
    width = LINE_WIDTH - suffix
    sep = separator.rstrip(" ")

    def block(rows, dims: tuple, indent: str) -> str:
        cut = summarize and len(rows) > 2 * EDGE_ITEMS
        if len(dims) == 1:
            words = [fmt(v) for v in rows[:EDGE_ITEMS]] + ["..."] + [fmt(v) for v in rows[-EDGE_ITEMS:]] if cut else [fmt(v) for v in rows]
            lines, line = [], indent
            # the innermost axis leaves room for the brackets that close behind it
            room = width - (len(shape) if len(shape) >= 1 else 0)
            for i, word in enumerate(words):
                last = i == len(words) - 1
                limit = room if last else width - len(sep)
                if len(line) + len(word) > limit and len(line) > len(indent):
                    lines.append(line.rstrip(" "))
                    line = indent
                line += word + ("" if last else sep + " ")
            lines.append(line)
            return "[" + "\n".join(lines)[len(indent):] + "]"
        inner = indent + " "
        parts = [block(r, dims[1:], inner) for r in (rows[:EDGE_ITEMS] if cut else rows)]
        if cut:
            parts += ["..."] + [block(r, dims[1:], inner) for r in rows[-EDGE_ITEMS:]]
        glue = sep + "\n" * (len(dims) - 1) + indent
        return "[" + glue.join(parts) + "]"
    return block(data, shape, " " * (len(prefix) + 1))


def array_repr(data, shape: tuple, dt, weak_type: bool) -> str:
    """`Array([0, 1, 2], dtype=int32)`, with `weak_type=True` where it is so."""
    prefix = "Array("
    tail = f"dtype={dtypes.name(dt)}{', weak_type=True' if weak_type else ''})"
    if not _size(shape):
        return f"{prefix}[], shape={shape}, {tail}"
    text = array_text(data, shape, dt, prefix, ", ", 1)
    last = len(text) - (text.rfind("\n") + 1)
    first = len(prefix) if "\n" not in text else 0
    sep = " " if first + last + len(tail) + 2 <= LINE_WIDTH else " " * len(prefix)      # as JAX does it, on one line
    return f"{prefix}{text},{sep}{tail}"


def scalar_text(value, dt) -> str:
    """How a number prints by itself: `1.5`, `1e-05`, `3`."""
    kind, name = dtypes.kind(dt), dtypes.name(dt)
    if kind == "f":
        if not math.isfinite(value):
            return str(value)
        text = shortest(value, name)
        if name not in _DIGITS:
            return f"{value:g}"
        if value != 0 and not 1e-4 <= abs(value) < _LARGE.get(name, 1e16):
            mantissa, exponent = text.split("e")
            return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{exponent}"
        mantissa, exponent = text.split("e")
        positional = _exact(text, value)
        return positional + "0" if positional.endswith(".") else positional
    if kind == "c":
        real, imag = (scalar_text(v, dtypes.real_of(dt)).removesuffix(".0") for v in (value.real, value.imag))
        return f"({real}{imag if imag[0] in '+-' else '+' + imag}j)" if value.real or math.copysign(1, value.real) < 0 else f"{imag}j"
    return str(value)


def _exact(text: str, value: float) -> str:
    mantissa, exponent = text.split("e")
    digits, shift = mantissa.lstrip("-").replace(".", ""), int(exponent)
    sign = "-" if math.copysign(1, value) < 0 else ""
    if shift >= 0:
        digits = digits.ljust(shift + 1, "0")
        return f"{sign}{digits[:shift + 1]}.{digits[shift + 1:].rstrip('0')}"
    return f"{sign}0.{'0' * (-shift - 1)}{digits.rstrip('0') or '0'}"


def array_str(data, shape: tuple, dt) -> str:
    """`[0 1 2]`: an array without its dtype."""
    return array_text(data, shape, dt) if shape else scalar_text(data, dt)
