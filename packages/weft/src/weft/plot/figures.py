"""A figure: panels with marks, described as data that any renderer can draw."""

from __future__ import annotations

import os
from typing import Any, Collection, Unpack

from ..base.annotations import override
from ..base.errors import at_user_line, type_error
from .drawing import Drawing
from .options import Axes, check_axes
from .panels import Live, Panel, described, number
from .display import Display, display as _display
from .values import Values, is_tree, of_floats, series

MIME = "application/vnd.weft.figure+json"
VERSION = 1


class Figure(Drawing):
    """A drawing: panels of marks between axes, without a say in how it is drawn.

    `weft.plot.figure` makes one, and so does the first drawing function. In a page of the playground it is shown as the
    program draws; elsewhere `show` and `save` draw it with matplotlib. In a notebook it is shown where it is a cell's
    last value.

    Example:
        >>> from weft import plot
        >>> figure = plot.figure(title="two waves")
        >>> figure.line([0, 1, 0, -1], label="sine").line([1, 0, -1, 0], label="cosine")
        <Figure 'two waves': 2 lines>
        >>> plot.flush()
    """

    def __init__(
        self, name: str, options: dict[str, Any], title: str = "", columns: int | None = None, height: int = 300
    ):
        self.name, self.title, self.columns, self.height = name, title, columns, height
        self.panels: list[Panel] = []
        self._axes = options  # options of the first panel, which is made without a call
        self.drawn_at = float("-inf")  # when a renderer was last given it,
        self.drawn_in = 0  # and in which run
        self.shown_at = float("-inf")  # when `show` was last called
        self.whole = True  # whether more has changed than that live curves have grown

    @override
    def _panel(self, axes: Axes) -> Panel:
        if not self.panels:
            self.panels.append(Panel(self))
            self.panels[0].options |= self._axes
        return self.panels[-1]._panel(axes)

    def panel(self, **axes: Unpack[Axes]) -> Panel:
        """Adds a panel, which is what the figure draws into from now on.

        Args:
            **axes: options of its axes, as `figure` takes them.

        Returns:
            the panel, which has the drawing functions too.

        Raises:
            TypeError: an option does not exist.

        Example:
            >>> from weft import plot
            >>> figure = plot.figure(columns=2)
            >>> left, right = figure.panel(title="left"), figure.panel(title="right")
            >>> left.line([1, 2, 3])
            <Panel 'left': 1 line>
        """
        panel = Panel(self)
        panel.options |= check_axes({**self._axes, **axes})
        self.panels.append(panel)
        return panel

    def curve(self, label: str, x: Any, y: Any, *, color: str | None = None, **axes: Unpack[Axes]) -> Figure:
        """Adds a point to a live curve of this figure, which a page draws as the program runs.

        Args:
            label: the curve's name; str.
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
            >>> figure = plot.figure(title="training")
            >>> for step in range(3):
            ...     figure = figure.curve("loss", step, {"train": 1 / (step + 1), "test": 2 / (step + 1)})
            >>> figure
            <Figure 'training': 2 curves>
            >>> plot.flush()
        """
        panel = self._panel(axes)
        place = number("plot.curve: x", x)
        if is_tree(y):
            for name, values in series("plot.curve: y", y):
                if values.size != 1:
                    raise type_error(f"plot.curve: y[{name}] must be one number; its shape is {values.shape}")
                panel.live(f"{label} {name}".strip(), place, float(values.numbers()[0]), color)
        else:
            panel.live(label, place, number("plot.curve: y", y), color)
        display.touch(self, live=True)
        return self

    def remove(self, label: str) -> Figure:
        """Removes the marks of a label from the panel that the figure draws into.

        Args:
            label: their label; str.

        Returns:
            the figure.

        Example:
            >>> from weft import plot
            >>> plot.figure().line([1, 2], label="a").line([2, 1], label="b").remove("a")
            <Figure: 1 line>
        """
        self._panel({}).remove(label)
        return self

    def clear(self) -> Figure:
        """Removes all marks, so that the figure can show something else: the next frame of an animation.

        Returns:
            the figure.

        Example:
            >>> from weft import plot
            >>> figure = plot.figure()
            >>> for frame in range(3):
            ...     figure.clear().image([[frame, 1], [2, 3]]).show()  # doctest: +SKIP
        """
        for panel in self.panels:
            panel.marks.clear()
        self.emptied()
        return self

    def changed(self) -> None:
        """Called when a mark or an option has changed, so that a page shows it."""
        self.whole = True
        display.touch(self)

    def emptied(self) -> None:
        """Called when marks have been removed and others will replace them."""
        self.whole = True
        display.wait(self)

    # What renderers get -----------------------------------------------------------------------------------------------

    def spec(self) -> tuple[dict[str, Any], list[bytes]]:
        """The figure as data fit for JSON, and the bytes of its arrays, which stand there as `{"buffer": index,
        "dtype": name, "shape": sizes}`.
        """
        buffers = _Buffers()
        panels = [panel.spec(buffers.put) for panel in self.panels]
        about = {"title": self.title, "columns": self.columns, "height": self.height}
        return {"version": VERSION, **about, "panels": panels}, buffers.data

    def complete(self) -> bool:
        """Whether live curves have grown since the whole figure was sent; it will be sent whole next."""
        grown = any(isinstance(mark, Live) and mark.sent for panel in self.panels for mark in panel.marks)
        self.whole = self.whole or grown
        return grown

    def news(self) -> tuple[dict[str, Any], list[bytes]]:
        """What a renderer has not got yet: the figure, as `spec` has it, or the new points of live curves, as a list
        under `append`.
        """
        live = [
            (at, k, mark)
            for at, panel in enumerate(self.panels)
            for k, mark in enumerate(panel.marks)
            if isinstance(mark, Live)
        ]
        if self.whole:
            self.whole = False
            sent, data = self.spec()
        else:
            buffers = _Buffers()
            grown = [(at, k, mark) for at, k, mark in live if mark.sent < len(mark.x)]
            points = [
                {
                    "panel": at,
                    "mark": k,
                    "x": buffers.put(of_floats(mark.x[mark.sent :])),
                    "y": buffers.put(of_floats(mark.y[mark.sent :])),
                }
                for at, k, mark in grown
            ]
            sent, data = {"version": VERSION, "append": points}, buffers.data
        for _, _, mark in live:
            mark.sent = len(mark.x)
        return sent, data

    # Showing ----------------------------------------------------------------------------------------------------------

    def show(self) -> None:
        """Shows the figure: in a page beside the output, elsewhere in a window or a notebook, with matplotlib.

        A page shows what has changed of it, at most 60 times a second: a call waits for the time of a frame to be over.
        One that an earlier run has shown is shown anew.

        Returns:
            `None`

        Raises:
            ImportError: matplotlib is not installed, outside of a page.

        Example:
            >>> from weft import plot
            >>> plot.line([1, 3, 2]).show()  # doctest: +SKIP
        """
        display.release(self)
        if display.renderer is None:
            _matplotlib().show(self)
            return
        if self.drawn_at > float("-inf") and self.drawn_in != display.runs:
            # figures that an earlier cell has shown stay there
            self.name, self.drawn_at, self.whole = display.new_name(), float("-inf"), True
        if self.whole:
            display.show(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the figure to a file, with matplotlib.

        Args:
            path: the file; its ending says what is written: `.png`, `.svg` or `.pdf`. str or path.

        Returns:
            `None`

        Raises:
            ImportError: matplotlib is not installed.
            ValueError: the ending is another.

        Example:
            >>> from weft import plot
            >>> plot.line([1, 3, 2]).save("line.svg")  # doctest: +SKIP
        """
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending not in (".png", ".svg", ".pdf"):
            raise ValueError(at_user_line(f"plot: a figure is saved as .png, .svg or .pdf; got {os.fspath(path)!r}"))
        _matplotlib().save(self, path, ending[1:])

    def _ipython_display_(self) -> None:
        """Shows the figure where it is the last value of a cell; a page, which draws figures itself, does that only if
        it has not yet.
        """
        if display.renderer is None:
            raise NotImplementedError  # the protocol's word for "see _repr_mimebundle_"
        self.show()

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The figure by MIME type, for notebooks: as data, whose arrays `_repr_buffers_` has, where a renderer is
        installed; elsewhere as a picture, where matplotlib is.
        """
        wanted = lambda mime: (include is None or mime in include) and mime not in (exclude or ())
        data: dict[str, Any] = {"text/plain": repr(self)} if wanted("text/plain") else {}
        if display.renderer is not None:
            return data | ({MIME: self.spec()[0]} if wanted(MIME) else {})
        try:
            drawn = _matplotlib()
        except ImportError:
            return data
        if wanted("image/png"):
            data["image/png"] = drawn.picture(self, "png")
        if include is not None and wanted("image/svg+xml"):  # a second picture takes room in a notebook
            data["image/svg+xml"] = drawn.picture(self, "svg").decode()
        return data

    def _repr_buffers_(self) -> list[bytes]:
        """The arrays that the figure as data refers to."""
        return self.spec()[1] if display.renderer is not None else []

    @override
    def __repr__(self) -> str:
        marks = described([mark for panel in self.panels for mark in panel.marks])
        title = f" {self.title!r}" if self.title else ""
        return f"<Figure{title}{': ' if marks else ''}{marks}>"


display: Display[Figure] = _display


class _Buffers:
    """The arrays that a description refers to. An array that several marks share is stored once."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self._places: dict[int, int] = {}

    def put(self, values: Values) -> dict[str, Any]:
        place = self._places.get(id(values.data))
        if place is None:
            place = self._places[id(values.data)] = len(self.data)
            self.data.append(values.data)
        return {"buffer": place, "dtype": values.dtype, "shape": list(values.shape)}


def _matplotlib() -> Any:
    """The module that draws with matplotlib: few machines have it, and few programs draw."""
    try:
        from . import native
    except ImportError as error:
        raise ImportError(
            f"drawing a figure outside of a page needs matplotlib ({error}). Install it: pip install matplotlib"
        ) from None
    return native
