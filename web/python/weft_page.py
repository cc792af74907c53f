"""Figures beside the output of the playground.

    from weft_page import curve, image, line, scatter

    line(x, y, label="fit")            # a figure of y over x
    scatter(x, y, label="data")        # points
    image(rows, label="digit 3")       # a matrix of numbers
    curve("loss", step, loss)          # one more point of a live curve

A label "figure: series" puts several series into one figure; what has a label already is replaced. Lists, tuples and
weft arrays are taken alike.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import _weft_page
import js

__all__ = ["curve", "image", "line", "scatter"]


def _flat(values: Any) -> list[float]:
    """The numbers of a list, an array, or a nest of them, row by row."""
    values = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(values, Iterable):
        return [number for value in values for number in _flat(value)]
    return [float(values)]


def _floats(values: list[float]) -> Any:
    target = js.Float64Array.new(len(values))
    target.assign(array("d", values))
    return target


def _figure(kind: str, label: str, x: list[float], y: list[float]) -> None:
    if len(x) != len(y):
        raise ValueError(f"{kind}: x has {len(x)} numbers and y has {len(y)}; give as many of each")
    _weft_page.plot(kind, label, _floats(x), _floats(y))


def line(x: Any, y: Any, label: str = "line") -> None:
    """Draws y over x as a line; both hold numbers, as many of each."""
    _figure("line", label, _flat(x), _flat(y))


def scatter(x: Any, y: Any, label: str = "points") -> None:
    """Draws points; x and y hold numbers, as many of each."""
    _figure("scatter", label, _flat(x), _flat(y))


def image(rows: Any, label: str = "image") -> None:
    """Draws a matrix (a rank-2 array, or a list of rows of one length), its smallest number dark, its largest
    bright.
    """
    rows = rows.tolist() if hasattr(rows, "tolist") else [list(row) for row in rows]
    if not rows or not all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows):
        raise ValueError("image: give a matrix, a list of rows of one length")
    _weft_page.plot("image", label, _floats([len(rows), len(rows[0])]), _floats(_flat(rows)))


def curve(label: str, x: Any, y: Any) -> None:
    """Appends the point (x, y) to the live curve of this label, which is drawn as the program runs."""
    _weft_page.live(label, float(x), float(y))
