"""Short functions for figures beside the output of the playground; `weft.plot` has all options.

    from weft_page import curve, image, line, scatter

    line(x, y, label="fit")            # a figure of y over x
    scatter(x, y, label="data")        # points
    image(rows, label="digit 3")       # a matrix of numbers
    curve("loss", step, loss)          # one more point of a live curve

A label "figure: series" puts several series into one figure; what has a label already is replaced. Lists, tuples and
weft arrays are taken alike.
"""

from __future__ import annotations

from typing import Any

from weft import plot

__all__ = ["curve", "image", "line", "scatter"]


def _without(label: str) -> tuple[plot.Figure, str]:
    """The figure of a label and the name of the series, which the figure does not have any more."""
    title, _, name = label.partition(": ")
    return plot.figure(title, title=title).remove(name), name


def line(x: Any, y: Any, label: str = "line") -> None:
    """Draws y over x as a line; both hold numbers, as many of each."""
    figure, name = _without(label)
    figure.line(x, y, label=name).show()


def scatter(x: Any, y: Any, label: str = "points") -> None:
    """Draws points; x and y hold numbers, as many of each."""
    figure, name = _without(label)
    figure.scatter(x, y, label=name).show()


def image(rows: Any, label: str = "image") -> None:
    """Draws a matrix (of rank 2, or a list of rows of one length), its smallest number dark, its largest bright; or an
    RGB or RGBA picture. Row 0 is on top.
    """
    plot.figure(label, title=label).clear().image(rows).show()


def curve(label: str, x: Any, y: Any) -> None:
    """Appends the point (x, y) to the live curve of this label, which is drawn as the program runs."""
    plot.curve(label, x, y)
