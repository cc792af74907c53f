"""A panel: marks between two axes; and live curves, which grow point by point."""

from __future__ import annotations

from array import array
from typing import Any, Callable, Protocol, Sequence, Unpack

from ..base.annotations import override
from ..base.errors import TracerArrayConversionError, at_user_line
from ..core.trace import Tracer
from ..transforms.stage import concretization_error
from .drawing import Drawing
from .options import Axes, Mark, check_axes, check_color
from .values import Values, of_floats

# A live curve keeps at most this many points. One that has more keeps every second of them, and so on.
MOST_POINTS = 65_536


class Live:
    """A curve that grows: the points that it keeps, and how many of them have been sent."""

    __slots__ = ("label", "color", "x", "y", "every", "count", "sent")

    def __init__(self, label: str, color: str | None):
        self.label, self.color = label, color
        self.x, self.y = array("d"), array("d")
        self.every, self.count, self.sent = 1, 0, 0

    def append(self, x: float, y: float) -> bool:
        """Keeps a point; whether points that were sent are dropped."""
        self.count += 1
        if (self.count - 1) % self.every:
            return False
        self.x.append(x)
        self.y.append(y)
        if len(self.x) < MOST_POINTS:
            return False
        self.x, self.y, self.every, self.sent = self.x[::2], self.y[::2], 2 * self.every, 0
        return True

    def mark(self) -> Mark:
        """The whole curve as a mark."""
        options = {"color": self.color, "width": 2.0, "style": "solid", "markers": False, "every": self.every}
        return {"kind": "line", "label": self.label, "x": of_floats(self.x), "y": of_floats(self.y), **options}


class Owner(Protocol):
    """The interface of a figure that its panels need: they tell it of their changes."""

    whole: bool  # whether more has changed than that live curves have grown

    def changed(self) -> None: ...

    def emptied(self) -> None: ...


class Panel(Drawing):
    """Marks between two axes: what a figure consists of. `Figure.panel` makes one.

    Example:
        >>> from weft import plot
        >>> figure = plot.figure(columns=2)
        >>> figure.panel(title="left").line([1, 2])
        <Panel 'left': 1 line>
        >>> figure.panel(title="right").scatter([1, 2], [3, 4])
        <Panel 'right': 1 scatter>
    """

    def __init__(self, figure: Owner):
        self.figure = figure
        self.options: dict[str, Any] = {}
        self.marks: list[Mark | Live] = []

    @override
    def _panel(self, axes: Axes) -> Panel:
        for name, value in check_axes(dict(axes)).items():
            if self.options.get(name) != value:
                self.options[name] = value
                self.figure.whole = True
        return self

    def set(self, **axes: Unpack[Axes]) -> Panel:
        """Sets options of the axes.

        Args:
            **axes: the options, as `figure` takes them.

        Returns:
            the panel.

        Raises:
            TypeError: an option does not exist.

        Example:
            >>> from weft import plot
            >>> plot.figure().panel().set(xlabel="step", yscale="log")
            <Panel>
        """
        self._panel(axes)
        self.figure.changed()
        return self

    def add(self, marks: Sequence[Mark]) -> None:
        """Adds marks and shows them, in a page."""
        self.marks += marks
        self.figure.changed()

    def remove(self, label: str) -> None:
        """Removes the marks of a label."""
        self.marks = [mark for mark in self.marks if label_of(mark) != label]
        self.figure.emptied()

    def live(self, label: str, x: float, y: float, color: str | None) -> None:
        """Adds a point to the live curve of a label."""
        for mark in self.marks:
            if isinstance(mark, Live) and mark.label == label:
                break
        else:
            mark = Live(label, check_color(color))
            self.marks.append(mark)
            self.figure.whole = True
        if mark.append(x, y):
            self.figure.whole = True

    def spec(self, put: Callable[[Values], dict[str, Any]]) -> dict[str, Any]:
        """The panel as data; `put` gives what stands for an array."""
        marks = [mark.mark() if isinstance(mark, Live) else mark for mark in self.marks]
        bars = [mark for mark in marks if mark["kind"] == "bar"]
        described = []
        for mark in marks:
            if mark["kind"] == "bar":  # how many stand at one place, and which of them this is
                mark = {**mark, "slot": [next(k for k, bar in enumerate(bars) if bar is mark), len(bars)]}
            described.append({name: put(v) if isinstance(v, Values) else v for name, v in mark.items()})
        options = self.options
        square = any(mark["kind"] == "image" and mark["square"] for mark in marks)
        return {
            "title": options.get("title", ""),
            "x": self._axis("x"),
            "y": self._axis("y"),
            "aspect": options.get("aspect", "equal" if square else "auto"),
            "marks": described,
        }

    def _axis(self, name: str) -> dict[str, Any]:
        options = self.options
        limits = options.get(f"{name}lim")
        return {
            "label": options.get(f"{name}label", ""),
            "scale": options.get(f"{name}scale", "linear"),
            "limits": list(limits) if limits else None,
        }

    @override
    def __repr__(self) -> str:
        marks = described(self.marks)
        title = f" {self.options['title']!r}" if "title" in self.options else ""
        return f"<Panel{title}{': ' if marks else ''}{marks}>"


def label_of(mark: Mark | Live) -> str:
    return mark.label if isinstance(mark, Live) else mark["label"]


def described(marks: Sequence[Mark | Live]) -> str:
    """A summary such as "2 lines, 1 scatter"."""
    counts: dict[str, int] = {}
    for mark in marks:
        kind = "curve" if isinstance(mark, Live) else mark["kind"]
        counts[kind] = counts.get(kind, 0) + 1
    return ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items())


def number(what: str, x: object) -> float:
    """A real number from any value that holds exactly one."""
    if isinstance(x, Tracer):
        raise TracerArrayConversionError(
            concretization_error(
                x,
                f"{what} is drawn; draw outside of the traced function, or with weft.debug.callback(weft.plot.curve, …)"
                " while it runs",
            )
        )
    try:
        return float(x)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise type(error)(at_user_line(f"{what} must be one real number: {error}")) from None
