"""Options of figures, and the values that each may have."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any, Literal, Sequence, TypedDict

from ..base.errors import at_user_line, type_error

# A mark's options by name. Those that are `Values` travel as arrays.
Mark = dict[str, Any]

Scale = Literal["linear", "log"]

# Colour maps by their names in matplotlib: four for amounts, one for grey pictures, one for deviations from a middle,
# one for angles.
COLORMAPS = ("viridis", "magma", "inferno", "plasma", "gray", "coolwarm", "twilight")
STYLES = ("solid", "dashed", "dotted")
_COLOR = re.compile(r"#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})|[a-z]{3,20}|C[0-9]")


class Frame(TypedDict, total=False):
    """Options of axes."""

    xlabel: str
    ylabel: str
    xscale: Scale
    yscale: Scale
    xlim: tuple[float, float]
    ylim: tuple[float, float]
    aspect: Literal["auto", "equal"]


class Axes(Frame, total=False):
    """Options that every drawing function takes: those of the axes that it draws into, and their title."""

    title: str


def _limits(name: str, value: Any) -> tuple[float, float]:
    try:
        low, high = (float(each) for each in value)
    except (TypeError, ValueError):
        raise type_error(f"plot: {name} must be two numbers, (low, high); got {value!r}") from None
    if not (isfinite(low) and isfinite(high) and low != high):
        raise ValueError(at_user_line(f"plot: {name} must be two different finite numbers; got {value!r}"))
    return low, high


def check_axes(options: dict[str, Any]) -> dict[str, Any]:
    """The options of axes, checked."""
    checked: dict[str, Any] = {}
    for name, value in options.items():
        if name in ("title", "xlabel", "ylabel"):
            checked[name] = str(value)
        elif name in ("xscale", "yscale"):
            checked[name] = one_of(name, value, ("linear", "log"))
        elif name in ("xlim", "ylim"):
            checked[name] = _limits(name, value)
        elif name == "aspect":
            checked[name] = one_of(name, value, ("auto", "equal"))
        else:
            known = ", ".join(["title", *Frame.__annotations__])
            raise type_error(f"plot: there is no option {name!r}; the options of axes are {known}")
    return checked


def one_of(name: str, value: Any, known: Sequence[str]) -> str:
    """`value`, if it is one of those known; otherwise a ValueError names them."""
    if value not in known:
        raise ValueError(at_user_line(f"plot: {name} must be one of {', '.join(map(repr, known))}; got {value!r}"))
    return str(value)


def check_color(color: Any) -> str | None:
    """A colour as CSS and matplotlib both understand it: "#4060c0", "crimson", or "C2" for the third of a theme."""
    if color is None:
        return None
    if not isinstance(color, str) or not _COLOR.fullmatch(color):
        raise ValueError(at_user_line(f'plot: color must be like "#4060c0", "crimson", or "C0" to "C9"; got {color!r}'))
    return color


def positive(name: str, value: Any) -> float:
    """`value` as a float above zero."""
    number = float(value)
    if not (isfinite(number) and number > 0):
        raise ValueError(at_user_line(f"plot: {name} must be a finite number above 0; got {value!r}"))
    return number


def optional_float(name: str, value: Any) -> float | None:
    """`value` as a finite float, or None."""
    if value is None:
        return None
    number = float(value)
    if not isfinite(number):
        raise ValueError(at_user_line(f"plot: {name} must be finite; got {value!r}"))
    return number
