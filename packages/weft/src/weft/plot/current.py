"""The drawing functions on the current figure, as programs call them."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import Any, Callable, Concatenate, ParamSpec, Unpack

from ..base.errors import at_user_line
from .drawing import Drawing
from .figures import Figure, display
from .options import Axes, Frame, check_axes

Args = ParamSpec("Args")

__all__ = [
    "band",
    "bar",
    "contour",
    "curve",
    "figure",
    "heatmap",
    "histogram",
    "image",
    "line",
    "panel",
    "quiver",
    "scatter",
    "show",
]


def figure(
    name: str | None = None,
    *,
    title: str = "",
    columns: int | None = None,
    height: int = 300,
    **axes: Unpack[Frame],
) -> Figure:
    """Begins a figure, which the drawing functions draw into from now on.

    Args:
        name: names it: the same name gives the same figure again, until the run ends; str.
        title: stands above it; str.
        columns: in how many columns its panels stand; as many as there is room for, if left out; int.
        height: of a panel, in pixels; int.
        **axes: options of the axes. `xlabel` and `ylabel` (str) name what they measure; `xscale` and `yscale` are
            `"linear"` or `"log"`; `xlim` and `ylim` are pairs of floats; `aspect` is `"auto"`, or `"equal"` for units
            of the same length on both axes.

    Returns:
        the figure. Its methods are the drawing functions, `panel`, `show` and `save`.

    Raises:
        TypeError: an option does not exist, or has a wrong type.
        ValueError: an option has a value that it can't have.

    Example:
        >>> from weft import plot
        >>> fig = plot.figure(title="training", xlabel="step", yscale="log")
        >>> fig.line([1.0, 0.1, 0.01], label="loss")
        <Figure 'training': 1 line>
        >>> plot.flush()
    """
    found = display.named.get(name) if name is not None else None
    if found is None:
        if columns is not None and not 1 <= columns <= 12:
            raise ValueError(at_user_line(f"plot.figure: columns must lie between 1 and 12; got {columns}"))
        if not 60 <= height <= 4000:
            raise ValueError(at_user_line(f"plot.figure: height must lie between 60 and 4000 pixels; got {height}"))
        found = Figure(display.new_name(), check_axes(dict(axes)), str(title), columns, int(height))
    display.begin(found, name)
    return found


def _current() -> Figure:
    return display.current or figure()


def panel(**axes: Unpack[Axes]) -> Any:
    """Adds a panel to the current figure and draws into it from now on.

    Args:
        **axes: options of its axes, as `figure` takes them: `title` (str), `xlim` (two float scalars) and so on.

    Returns:
        the panel.

    Raises:
        TypeError: an option does not exist.

    Example:
        >>> from weft import plot
        >>> fig = plot.figure(columns=2)
        >>> _ = plot.panel(title="left"), plot.line([1, 2])
        >>> _ = plot.panel(title="right"), plot.line([2, 1])
        >>> fig
        <Figure: 2 lines>
        >>> plot.flush()
    """
    return _current().panel(**axes)


def show() -> None:
    """Shows the current figure; the next drawing function begins another.

    Natively it opens matplotlib's window, or shows the figure in a notebook. In a page figures are shown without it; it
    is needed only to begin another, or to show the next frame of an animation.

    Returns:
        `None`

    Raises:
        ImportError: matplotlib is not installed, outside of a page.

    Example:
        >>> from weft import plot
        >>> _ = plot.line([1, 3, 2])
        >>> plot.show()  # doctest: +SKIP
        >>> plot.flush()
    """
    if display.current is not None:
        display.current.show()


def curve(label: str, x: Any, y: Any, *, color: str | None = None, **axes: Unpack[Axes]) -> Figure:
    """Adds a point to a live curve, which a page draws as the program runs.

    Args:
        label: names the curve and its figure; in `"figure: curve"` each of them, so that several share one; str.
        x: where the point lies, such as the number of the step: a real scalar of any dtype.
        y: the value there: a real scalar of any dtype, or a pytree (a dict) of such, for a curve each.
        color: as `line` takes it.
        **axes: options of the axes, as `figure` takes them.

    Returns:
        the figure.

    Raises:
        TypeError: x or y is no number.

    Example:
        >>> from weft import plot
        >>> for step in range(3):
        ...     fig = plot.curve("loss: train", step, 1 / (step + 1))
        ...     fig = plot.curve("loss: test", step, 2 / (step + 1))
        >>> fig
        <Figure 'loss': 2 curves>
        >>> plot.flush()
    """
    title, _, name = label.partition(": ")
    found = display.named.get(title)
    if found is None:
        found = display.keep(title, Figure(display.new_name(), {}, title))
    return found.curve(name, x, y, color=color, **axes)


def _on_current(method: Callable[Concatenate[Drawing, Args], Drawing]) -> Callable[Args, Figure]:
    """The function that draws into the current figure what the method draws into its own."""

    @wraps(method)
    def function(*args: Args.args, **kwargs: Args.kwargs) -> Figure:
        drawn = _current()
        method(drawn, *args, **kwargs)
        return drawn

    parameters = list(inspect.signature(method).parameters.values())[1:]
    function.__signature__ = inspect.signature(method).replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


line = _on_current(Drawing.line)
scatter = _on_current(Drawing.scatter)
bar = _on_current(Drawing.bar)
histogram = _on_current(Drawing.histogram)
band = _on_current(Drawing.band)
image = _on_current(Drawing.image)
heatmap = _on_current(Drawing.heatmap)
contour = _on_current(Drawing.contour)
quiver = _on_current(Drawing.quiver)
