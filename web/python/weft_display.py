"""Shows values beside the program, as notebooks do.

    from weft_display import display, clear_output

    display(x)                           # as it looks best
    shown = display(x, name="progress")  # shown.update(y) replaces it
    clear_output(wait=True)           # what was shown goes once something else comes

A value is shown by its `_repr_mimebundle_`, `_repr_html_`, `_repr_markdown_`, `_repr_svg_`, `_repr_png_`,
`_repr_jpeg_` or `_repr_latex_`, if it has one; arrays, and nests of them, by their shapes and dtypes; everything else
as `repr` prints it.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Mapping
from itertools import count
from json import dumps  # imported by itself, since a program may patch its json
from typing import Any

import _weft_page
import js

__all__ = ["Shown", "clear_output", "display"]

FIGURE = "application/vnd.weft.figure+json"
ARRAY = "application/vnd.weft.array+json"
WIDGET = "application/vnd.weft.widget+json"
TREE = "application/vnd.weft.tree+json"
FILE = "application/vnd.weft.file+json"

_METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_latex_": "text/latex",
}
# Nobody reads more text than this, and the page would have to lay it out.
MOST_CHARACTERS = 20_000
MOST_LEAVES = 200

_names = count(1)


class Shown:
    """A value that is shown, and can be replaced by another."""

    def __init__(self, name: str):
        self.name = name

    def update(self, value: Any) -> None:
        """Shows `value` in its place."""
        data, buffers = bundle(value)
        send(self.name, data, buffers, update=True)

    def __repr__(self) -> str:
        return f"<shown as {self.name!r}>"


def display(*values: Any, name: str | None = None) -> Shown | None:
    """Shows values below the program, one after the other.

    Args:
        values: what to show.
        name: replaces what an earlier call showed under this name.

    Returns:
        With a name, an object whose `update` replaces the value; else None.
    """
    for value in values:
        if name is None and shows_itself(value):
            continue
        data, buffers = bundle(value)
        # A widget has a name of its own, under which it changes.
        own = getattr(value, "name", None) if WIDGET in data else None
        send(name or own or f"display-{next(_names)}", data, buffers, update=name is not None)
    return None if name is None else Shown(name)


def shows_itself(value: Any) -> bool:
    """Lets a value show itself if its type can: a figure of `weft.plot`, which may be shown already."""
    show = getattr(type(value), "_ipython_display_", None)
    if show is None:
        return False
    try:
        show(value)
    except NotImplementedError:  # the protocol of notebooks for "not implemented"
        return False
    return True


def clear_output(wait: bool = False) -> None:
    """Takes away what the program has shown so far; with `wait`, only once it shows something else."""
    sys.stdout.flush()
    sys.stderr.flush()
    _weft_page.clear(bool(wait))


class Place:
    """A place on the page: what is shown while it is entered replaces, one by one, what was shown there before."""

    def __init__(self) -> None:
        self.name = f"place-{next(_names)}"
        self.names: dict[str, str] = {}
        self.shown = self.most = 0

    def __enter__(self) -> Place:
        _places.append(self)
        self.names, self.shown = {}, 0
        return self

    def __exit__(self, *_: object) -> None:
        plot: Any = sys.modules.get("weft.plot")
        if plot is not None:
            plot.flush()
        _places.remove(self)
        for k in range(self.shown, self.most):
            send(f"{self.name}/{k}", {"text/plain": ""}, [], update=True)
        self.most = self.shown

    def keep(self) -> None:
        """Keeps the values that were shown here before and have not been replaced."""
        self.shown = max(self.shown, self.most)

    def rename(self, name: str) -> str:
        """The name under which the page knows what a program shows as `name`."""
        if name not in self.names:
            self.names[name] = f"{self.name}/{self.shown}"
            self.shown += 1
        return self.names[name]


_places: list[Place] = []


def send(name: str, data: Mapping[str, Any], buffers: list[Any], update: bool) -> None:
    """Sends a bundle of MIME types and its buffers (of bytes) to the page."""
    if _places:
        # A new value may be the next picture of the one that is shown there.
        name, update = _places[-1].rename(name), True
    sys.stdout.flush()
    sys.stderr.flush()
    arrays = js.Array.new()
    for buffer in buffers:
        view = memoryview(buffer).cast("B")
        array = js.Uint8Array.new(view.nbytes)
        if view.nbytes:
            array.assign(view)
        arrays.push(array)
    _weft_page.display(name, dumps(data), arrays, bool(update))


def offer_zip(name: str, files: list[str]) -> None:
    """Offers files to the reader as `name.zip`, in a folder of that name."""
    import zipfile

    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, f"{name}/{file.rpartition('/')[2]}")
    about = {"name": f"{name}.zip", "type": "application/zip", "about": "a page and a program that need no Python"}
    send(f"export {name}", {FILE: about, "text/plain": f"{name}.zip"}, [data.getvalue()], update=True)


def bundle(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """The MIME bundle that shows a value best, and the buffers that it refers to."""
    buffers: list[Any] = []
    data: dict[str, Any] = {}
    own = getattr(type(value), "_repr_mimebundle_", None)
    if own is not None:
        made = own(value)
        if isinstance(made, tuple):
            made = made[0]
        if made:
            data.update(made)
            buffers += getattr(value, "_repr_buffers_", list)()
    for method, mime in _METHODS.items():
        if mime not in data and hasattr(type(value), method):
            made = getattr(value, method)()
            if made is not None:
                data[mime] = base64.b64encode(made).decode() if isinstance(made, bytes) else str(made)
    if not data:
        data = _figure_of_matplotlib(value) or _of_arrays(value)
    if "text/plain" not in data:
        data["text/plain"] = _text(value)
    return data, buffers


def _text(value: Any) -> str:
    text = repr(value)
    if len(text) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half:,} characters are left out …\n{text[-half:]}"
    return text


def _figure_of_matplotlib(value: Any) -> dict[str, Any]:
    figures: Any = sys.modules.get("matplotlib.figure")
    if figures is None or not isinstance(value, figures.Figure):
        return {}
    file = io.BytesIO()
    value.savefig(file, format="png", dpi=144, bbox_inches="tight")
    return {"image/png": base64.b64encode(file.getvalue()).decode()}


def _of_arrays(value: Any) -> dict[str, Any]:
    """An array with its shape and dtype; a nest of arrays as a tree."""
    described = _describe(value)
    if described is not None:
        return {ARRAY: described}
    if not isinstance(value, (dict, list, tuple)) and not hasattr(type(value), "tree_flatten"):
        return {}
    from weft import tree

    leaves, _ = tree.flatten_with_path(value)
    if not any(_describe(leaf) for _, leaf in leaves):
        return {}
    rows = [
        {"path": tree.keystr(path) if hasattr(tree, "keystr") else "".join(map(str, path)), **_leaf(leaf)}
        for path, leaf in leaves[:MOST_LEAVES]
    ]
    return {TREE: {"type": type(value).__name__, "leaves": rows, "more": max(0, len(leaves) - MOST_LEAVES)}}


def _describe(value: Any) -> dict[str, Any] | None:
    if not hasattr(type(value), "shape") or not hasattr(type(value), "dtype"):
        return None
    return {"dtype": str(value.dtype), "shape": list(value.shape), "text": _text(value)}


def _leaf(value: Any) -> dict[str, Any]:
    described = _describe(value)
    if described is None:
        return {"text": _text(value)[:200]}
    if not described["shape"]:
        described["text"] = str(value)
    else:
        del described["text"]
    return described


class _Input(io.TextIOBase):
    """Standard input: a line that the reader types below the program."""

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        sys.stdout.flush()
        sys.stderr.flush()
        plot: Any = sys.modules.get("weft.plot")
        if plot is not None:
            plot.flush(end=False)
        line = str(_weft_page.input())
        return line if size < 0 else line[:size]

    def read(self, size: int | None = -1) -> str:
        return self.readline(-1 if size is None else size)


def _show_figure(name: str, spec: Mapping[str, Any], buffers: list[Any], update: bool) -> None:
    send(name, {FIGURE: spec}, buffers, update)


def install() -> None:
    """Connects Python to the page: figures are shown there, and lines are read there."""
    sys.stdin = _Input()
    try:
        from weft import plot
    except ImportError:  # weft may be a stand-in, with which the page is tested alone
        return
    plot.set_renderer(_show_figure)


def forget() -> None:
    """Starts anew: the next program has shown nothing."""
    global _names
    _names = count(1)
    _places.clear()
    widgets = sys.modules.get("weft.widgets")
    if widgets is not None:
        widgets.forget()
