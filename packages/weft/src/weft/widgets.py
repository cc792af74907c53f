"""weft.widgets: things on a page that a reader moves, and functions that follow them.

    from weft.widgets import interact, slider

    @interact(frequency=(0.5, 8.0), n=200, shape=["sine", "square"])
    def draw(frequency, n, shape):
        ...                       # runs again whenever a widget moves; what it shows replaces what it showed

    speed = slider(0.0, 1.0)      # by itself, as the last value of a cell
    speed.observe(print)          # called with each new value
    speed.value                   # the value now

In the playground a widget is shown where it is displayed. Handlers run between runs, and while a program sleeps or
awaits. Outside of a page nobody moves a widget: `interact` calls its function once, with the first values, and
`animate` goes through its frames as fast as they come.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
import time
import traceback
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from json import loads
from typing import Any

from .base.annotations import override

try:
    import weft_display as _page
except ImportError:  # outside of a page
    _page = None

MOST_SAMPLES = 32_768
_MIME = "application/vnd.weft.widget+json"

__all__ = [
    "Widget",
    "animate",
    "button",
    "camera",
    "canvas",
    "checkbox",
    "colour",
    "file",
    "image",
    "interact",
    "microphone",
    "number",
    "select",
    "slider",
    "text",
]


def __dir__() -> list[str]:
    return sorted(__all__)


_widgets: dict[str, Widget] = {}
_names = count(1)


class Widget:
    """Something on the page with a value.

    Args:
        kind: which one, as the page names it.
        value: what it holds first.
        label: text beside it.
        options: what else the page needs to know of it.
    """

    def __init__(self, kind: str, value: Any, label: str = "", **options: Any):
        self.kind = kind
        self.name = f"widget-{next(_names)}"
        self.label = label
        self.options = options
        self._value = value
        self._shown = False
        self._handlers: list[Callable[[Any], object]] = []
        _widgets[self.name] = self

    @property
    def value(self) -> Any:
        """The value now; setting it moves the widget on the page and calls its handlers."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value
        if self._shown and _page is not None:
            _page.send(self.name, self._repr_mimebundle_(), [], update=True)
        self._changed()

    def observe(self, handler: Callable[[Any], object]) -> Callable[[Any], object]:
        """Calls `handler` with each new value; returns it, so that it can decorate."""
        self._handlers.append(handler)
        return handler

    def _changed(self) -> None:
        for handler in list(self._handlers):
            handler(self._value)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        self._shown = True
        plain = self._value if isinstance(self._value, (bool, int, float, str, type(None))) else None
        described = {"kind": self.kind, "name": self.name, "value": plain, "label": self.label, **self.options}
        return {_MIME: described, "text/plain": f"{self.kind} {self.label}".strip()}


def slider(low: float, high: float, value: float | None = None, step: float | None = None, label: str = "") -> Widget:
    """A slider between two numbers. With integers alone its value is an integer."""
    if not low < high:
        raise ValueError(f"slider: low must be less than high; got {low} and {high}")
    whole = all(
        isinstance(each, int) for each in (low, high, 0 if value is None else value, 1 if step is None else step)
    )
    step = (1 if whole else (high - low) / 200) if step is None else step
    if not step > 0:
        raise ValueError(f"slider: step must be positive; got {step}")
    value = ((low + high) // 2 if whole else (low + high) / 2) if value is None else value
    return Widget("slider", value, label, low=low, high=high, step=step, whole=whole)


def number(value: float = 0, label: str = "", step: float | None = None) -> Widget:
    """A field for a number; an integer if `value` is one."""
    whole = isinstance(value, int)
    return Widget("number", value, label, whole=whole, step=step if step is not None else 1 if whole else "any")


def select(options: Sequence[Any] | Mapping[str, Any], value: Any = None, label: str = "") -> Widget:
    """One of some values, shown by their texts, or by the keys of a mapping."""
    named = dict(options) if isinstance(options, Mapping) else {str(each): each for each in options}
    if not named:
        raise ValueError("select: give at least one option")
    held = list(named.values())
    widget = Widget("select", held[0] if value is None else value, label, options=list(named))
    widget.options["index"] = held.index(widget._value)
    widget.convert = lambda index: held[int(index)]  # type: ignore[attr-defined]
    return widget


def checkbox(value: bool = False, label: str = "") -> Widget:
    """On or off."""
    return Widget("checkbox", bool(value), label)


def button(label: str, handler: Callable[[int], object] | None = None) -> Widget:
    """A button; its value is how often it was pressed, with which handlers are called."""
    widget = Widget("button", 0, label)
    if handler is not None:
        widget.observe(handler)
    return widget


def text(value: str = "", label: str = "", lines: int = 1) -> Widget:
    """A field for text."""
    return Widget("text", str(value), label, lines=int(lines))


def colour(value: str = "#3c50bd", label: str = "") -> Widget:
    """A colour, as "#rrggbb"."""
    return Widget("colour", value, label)


def file(label: str = "", accept: str = "") -> Widget:
    """A file of the reader: its value is None, or an object with `name` and `data` (bytes)."""
    return Widget("file", None, label, accept=accept)


def canvas(width: int = 28, height: int = 28, label: str = "", scale: int = 8) -> Widget:
    """A field to draw on: its value is a float32 array of shape (height, width), 0 where nothing is drawn, 1 at
    most.
    """
    return Widget("canvas", None, label, width=int(width), height=int(height), scale=int(scale))


def image(label: str = "", width: int | None = None, height: int | None = None) -> Widget:
    """A picture that the reader chooses or drops: a uint8 array of shape (height, width, 3), scaled to the size that is
    given.
    """
    return Widget("image", None, label, width=width, height=height)


def camera(width: int = 320, height: int = 240, label: str = "") -> Widget:
    """The camera, once the reader has allowed it: a uint8 array of shape (height, width, 3) for each picture."""
    return Widget("camera", None, label, width=int(width), height=int(height))


def microphone(samples: int = 2048, label: str = "") -> Widget:
    """The microphone, once the reader has allowed it: the last `samples` samples (at most 32768), float32 between -1
    and 1; `rate` of the widget is samples per second.
    """
    if not 1 <= samples <= MOST_SAMPLES:
        raise ValueError(f"samples must be from 1 to {MOST_SAMPLES}, as many as a page keeps; got {samples}")
    return Widget("microphone", None, label, samples=int(samples))


class File:
    """A file that the reader gave."""

    def __init__(self, name: str, data: bytes):
        self.name, self.data = name, data

    @override
    def __repr__(self) -> str:
        return f"File({self.name!r}, {len(self.data)} bytes)"


def _array(data: bytes, dtype: str, shape: Sequence[int]) -> Any:
    import weft.numpy as jnp

    if dtype == "float32":
        return jnp.asarray(array("f", data), dtype="float32").reshape(tuple(shape))
    return jnp.frombuffer(data, dtype=dtype).reshape(tuple(shape))


def receive(name: str, event: str, buffers: Sequence[Any]) -> None:
    """Takes what the reader did with a widget; called by the page's worker."""
    widget = _widgets.get(name)
    if widget is None:
        return
    told = loads(event)
    try:
        if "array" in told:
            described = told["array"]
            widget._value = _array(bytes(buffers[0]), described["dtype"], described["shape"])
            if "rate" in told:
                widget.rate = told["rate"]  # type: ignore[attr-defined]
        elif "file" in told:
            widget._value = File(told["file"], bytes(buffers[0]))
        else:
            convert = getattr(widget, "convert", None)
            widget._value = told["value"] if convert is None else convert(told["value"])
        widget._changed()
        _flush()
    except KeyboardInterrupt:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _flush() -> None:
    """Draws the figures that wait to be drawn; the next function of `weft.plot` begins another."""
    plot = sys.modules.get("weft.plot")
    if plot is not None:
        plot.flush()


def forget() -> None:
    """Lets go of the widgets of an earlier program."""
    _widgets.clear()


def _widget_of(name: str, wanted: Any, value: Any = None) -> Widget:
    """The widget that suits what `interact` takes, with a value to begin with, if there is one."""
    if isinstance(wanted, Widget):
        wanted.label = wanted.label or name
        return wanted
    if isinstance(wanted, bool):
        return checkbox(wanted, name)
    if isinstance(wanted, tuple) and len(wanted) in (2, 3) and all(isinstance(each, (int, float)) for each in wanted):
        return slider(wanted[0], wanted[1], value, step=wanted[2] if len(wanted) == 3 else None, label=name)
    if isinstance(wanted, (int, float)):
        low, high = sorted((0 * wanted, 2 * wanted)) if wanted else (0 * wanted, wanted + 1)
        return slider(low, high, wanted, label=name)
    if isinstance(wanted, str):
        return text(wanted, name)
    if isinstance(wanted, (list, Mapping)):
        return select(wanted, value, label=name)
    raise TypeError(
        f"interact: {name} is {wanted!r}; give a number, (low, high), (low, high, step), a list, a mapping, a bool, "
        "a text, or a widget"
    )


def interact(function: Callable[..., Any] | None = None, /, **arguments: Any) -> Any:
    """Runs a function again whenever a widget moves; what it shows, prints and returns replaces what it did before.

    Args:
        function: the function; left out where `interact` decorates.
        arguments: for each parameter what it ranges over: `(low, high)` or `(low, high, step)` a slider, a number a
            slider from 0 to its double, a list or mapping a choice, a bool a checkbox, a text a field, or a widget.
            A parameter's default is what its widget begins with; parameters that are left out have widgets for their
            defaults.

    Returns:
        The function, or a decorator. Outside of a page the function has run once, with the first values.

    Raises:
        TypeError: a parameter has neither a range nor a default, or no widget suits what is given for it.

    Example:
        >>> from weft.widgets import interact
        >>> @interact(x=(0, 10))
        ... def double(x=4):
        ...     print(2 * x)
        8
    """
    if function is None:
        return lambda decorated: interact(decorated, **arguments)
    parameters = inspect.signature(function).parameters
    defaults = {name: each.default for name, each in parameters.items() if each.default is not inspect.Parameter.empty}
    wanted = defaults | arguments
    missing = [name for name in parameters if name not in wanted]
    if missing:
        raise TypeError(f"interact: say what {', '.join(missing)} ranges over, for example {missing[0]}=(0.0, 1.0)")
    widgets = {name: _widget_of(name, each, defaults.get(name)) for name, each in wanted.items()}
    if _page is None:
        function(**{name: widget.value for name, widget in widgets.items()})
        return function
    for widget in widgets.values():
        _page.send(widget.name, widget._repr_mimebundle_(), [], update=False)
    place = _page.Place()

    def run(_: Any = None) -> None:
        with place:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                value = function(**{name: widget.value for name, widget in widgets.items()})
            if printed.getvalue():
                _page.send("printed", {"text/plain": printed.getvalue().rstrip("\n")}, [], update=True)
            if value is not None:
                _page.display(value)

    for widget in widgets.values():
        widget.observe(run)
    run()
    return function


def animate(frames: Iterable[Any] | Callable[[], Iterable[Any]], fps: float = 60) -> None:
    """Shows values one after the other in one place, until there are no more or the program is stopped.

    Args:
        frames: the values, or a function that gives them, such as a generator function. None shows nothing new: what
            the generator draws itself is shown.
        fps: values for each second, at most. Outside of a page they come as fast as they are made.

    Raises:
        ValueError: `fps` is not positive.

    Example:
        >>> from weft.widgets import animate
        >>> animate([1, 2, 3], fps=30)
    """
    if not fps > 0:
        raise ValueError(f"animate: fps must be positive; got {fps}")
    iterator = iter(frames() if callable(frames) else frames)
    if _page is None:
        for _ in iterator:
            _flush()
        return
    place = _page.Place()
    due = time.monotonic()
    while True:
        with place:
            try:
                value = next(iterator)
            except StopIteration:
                place.keep()  # the last picture stays
                return
            if value is not None:
                _page.display(value)
        due = max(due + 1 / fps, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
