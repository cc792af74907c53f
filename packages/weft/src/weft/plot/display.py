"""Sends figures to the renderer that a page has installed, at once or a little later, and knows the current figure."""

from __future__ import annotations

from time import perf_counter, sleep
from typing import Any, Callable, Generic, Protocol, TypeVar

# Draws a figure: its name, its description, the arrays that this refers to, and whether it replaces an earlier one.
Renderer = Callable[[str, dict[str, Any], list[bytes], bool], None]

# A figure is sent at most once in this many seconds: as often as a screen shows another picture.
FRAME = 1 / 60


class Shown(Protocol):
    """The interface of a figure that the display needs."""

    name: str
    drawn_at: float  # when a renderer was last given it,
    drawn_in: int  # and in which run
    shown_at: float  # when `show` was last called

    def news(self) -> tuple[dict[str, Any], list[bytes]]: ...

    def complete(self) -> bool: ...


F = TypeVar("F", bound=Shown)


class Display(Generic[F]):
    """The renderer, the figures that have changed since they were drawn, and the current figure."""

    def __init__(self) -> None:
        self.renderer: Renderer | None = None
        self.changed: dict[str, F] = {}
        self.current: F | None = None
        self.named: dict[str, F] = {}
        self.count = 0
        self.runs = 0  # that have ended

    def new_name(self) -> str:
        self.count += 1
        return f"figure-{self.count}"

    def begin(self, figure: F, name: str | None) -> None:
        """Makes a figure the current one, to be found again by its name if it has one."""
        self.current = figure
        if name is not None:
            self.named[name] = figure

    def keep(self, name: str, figure: F) -> F:
        """Keeps a figure that is not the current one under a name."""
        self.named[name] = figure
        return figure

    def release(self, figure: F) -> None:
        """Forgets the figure if it is the current one."""
        if self.current is figure:
            self.current = None

    def touch(self, figure: F, live: bool = False) -> None:
        """Notes that a figure has changed. It is drawn now if nobody has seen it yet, or if it is live; otherwise it
        may be in the making, and waits to be shown. Others that wait are drawn too. None is drawn twice within the
        time of a frame.
        """
        if self.renderer is None:
            return
        self.changed[figure.name] = figure
        now = perf_counter()
        for each in list(self.changed.values()):
            unseen = each.drawn_at == float("-inf")
            if now - each.drawn_at >= FRAME and (live or unseen or each is not figure):
                self.draw(each, now)

    def show(self, figure: F) -> None:
        """Draws a figure. If it was shown less than one frame ago, it waits until the frame is over."""
        rest = figure.shown_at + FRAME - perf_counter()
        if rest > 0:
            sleep(rest)
        figure.shown_at = perf_counter()
        self.draw(figure, figure.shown_at)

    def wait(self, figure: F) -> None:
        """Notes that a figure has changed and will change more."""
        if self.renderer is not None and figure.drawn_at > float("-inf"):
            self.changed[figure.name] = figure

    def draw(self, figure: F, now: float) -> None:
        self.changed.pop(figure.name, None)
        if self.renderer is not None:
            update = figure.drawn_at > float("-inf")
            figure.drawn_at, figure.drawn_in = now, self.runs
            spec, buffers = figure.news()
            self.renderer(figure.name, spec, buffers, update)

    def catch_up(self) -> None:
        """Draws all that has changed."""
        for figure in list(self.changed.values()):
            self.draw(figure, perf_counter())

    def finish(self) -> None:
        """Draws all that has changed, with live curves as a whole, and forgets the current figure and those with
        names.
        """
        self.current = None
        for figure in self.named.values():
            if figure.complete():
                self.changed[figure.name] = figure
        self.named.clear()
        self.catch_up()
        self.runs += 1


display: Display[Any] = Display()


def set_renderer(renderer: Renderer | None) -> None:
    """Says what draws figures from now on: a page calls this, or a notebook of your own.

    Args:
        renderer: a function of the figure's name (str), its description (a dict, fit for JSON), the arrays that the
            description refers to by position (a list of bytes), and whether an earlier figure of that name is
            replaced, or added to (bool). `None` goes back to matplotlib.

    Returns:
        `None`

    Example:
        >>> from weft import plot
        >>> plot.set_renderer(lambda name, spec, buffers, update: print(spec["panels"][0]["marks"][0]["kind"]))
        >>> plot.line([1, 3, 2]).show()
        line
        >>> plot.set_renderer(None)
    """
    display.renderer = renderer


def flush(end: bool = True) -> None:
    """Draws what has changed and waits to be drawn. A page calls this when a run has ended, or waits for the reader.

    Args:
        end: whether the run has ended (bool), so that the next one begins a figure of its own.

    Returns:
        `None`

    Example:
        >>> from weft import plot
        >>> first = plot.line([1, 3, 2])
        >>> plot.flush()
        >>> plot.line([1, 3, 2]) is first
        False
        >>> plot.flush()
    """
    if end:
        display.finish()
    else:
        display.catch_up()
