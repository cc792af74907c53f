"""Figures drawn by matplotlib."""

from __future__ import annotations

import io
import os
from typing import Any, Protocol

import matplotlib.pyplot
from matplotlib.figure import Figure as Drawn

from ..base.host import np
from .options import Mark
from .panels import Live, Panel
from .values import Values


_DOTS = 100  # of matplotlib's figures, to an inch; heights are given in pixels


class Picture(Protocol):
    """The interface of a figure that matplotlib is to draw."""

    title: str
    columns: int | None
    height: int
    panels: list[Panel]


def array(values: Values) -> Any:
    """Values as a NumPy array."""
    return np.frombuffer(values.data, dtype=values.dtype).reshape(values.shape)


def draw(figure: Picture, on: Drawn) -> Drawn:
    """Draws the figure into a figure of matplotlib."""
    panels = figure.panels
    columns = min(figure.columns or (len(panels) + 1) // 2 if len(panels) > 1 else 1, max(len(panels), 1))
    rows = -(-len(panels) // columns) if panels else 1
    on.set_size_inches(6.4 * columns, max(figure.height * 1.3 / _DOTS, 2.0) * rows)
    on.set_layout_engine("constrained")
    if figure.title:
        on.suptitle(figure.title)
    for k, panel in enumerate(panels):
        _draw_panel(panel, on.add_subplot(rows, columns, k + 1), on)
    return on


def picture(figure: Picture, form: str) -> bytes:
    """The figure as a file of the format "png", "svg" or "pdf"."""
    file = io.BytesIO()
    draw(figure, Drawn(dpi=_DOTS)).savefig(file, format=form)
    return file.getvalue()


def save(figure: Picture, path: str | os.PathLike[str], form: str) -> None:
    """Writes `picture` to a file."""
    data = picture(figure, form)
    with open(path, "wb") as file:
        file.write(data)


def show(figure: Picture) -> None:
    """Shows the figure in a window of matplotlib's, or in the notebook that it is set up for."""
    draw(figure, matplotlib.pyplot.figure())
    matplotlib.pyplot.show()


def _draw_panel(panel: Panel, axes: Any, on: Drawn) -> None:
    spec = panel.spec(lambda values: {"values": values})
    marks = [mark.mark() if isinstance(mark, Live) else mark for mark in panel.marks]
    axes.set_xscale(spec["x"]["scale"])
    axes.set_yscale(spec["y"]["scale"])
    colors: dict[str, Any] = {}  # the colours of marks with a label; marks with the same label share one
    for mark, described in zip(marks, spec["marks"]):
        _KINDS[mark["kind"]]({**mark, "slot": described.get("slot")}, axes, on, colors)
    axes.set(title=spec["title"], xlabel=spec["x"]["label"], ylabel=spec["y"]["label"])
    if spec["x"]["limits"]:
        axes.set_xlim(spec["x"]["limits"])
    if spec["y"]["limits"]:
        axes.set_ylim(spec["y"]["limits"])
    axes.set_aspect(spec["aspect"])
    if any(mark["label"] for mark in marks):
        axes.legend()


def _style(mark: Mark, colors: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Label and colour as matplotlib takes them. Marks with the same label share the colour and one entry of the
    legend.
    """
    label = mark["label"]
    color = mark["color"] or colors.get(label)
    if color is not None:
        options["color"] = color
    if label and label not in colors:
        options["label"] = label
    return options


def _keep(mark: Mark, colors: dict[str, Any], color: Any) -> None:
    if mark["label"]:
        colors.setdefault(mark["label"], color)


def _line(mark: Mark, axes: Any, on: Drawn, colors: dict[str, Any]) -> None:
    styles = {"solid": "-", "dashed": "--", "dotted": ":"}
    options = _style(mark, colors, linewidth=mark["width"] * 0.75, linestyle=styles[mark["style"]])
    x, y = array(mark["x"]), array(mark["y"])
    finite = np.isfinite(x) & np.isfinite(y)
    # a point between two gaps would not be seen without a marker
    alone = finite & ~np.r_[False, finite[:-1]] & ~np.r_[finite[1:], False]
    every = np.flatnonzero(finite if mark["markers"] else alone)
    (drawn,) = axes.plot(x, y, marker="o", markersize=4, markevery=list(every), **options)
    _keep(mark, colors, drawn.get_color())


def _scatter(mark: Mark, axes: Any, on: Drawn, colors: dict[str, Any]) -> None:
    x, y, area = array(mark["x"]), array(mark["y"]), (mark["size"] * 0.75) ** 2
    if "values" in mark:
        label = {"label": mark["label"]} if mark["label"] else {}
        drawn = axes.scatter(x, y, s=area, c=array(mark["values"]), **label, **_colormap(mark))
        _colorbar(mark, drawn, axes, on)
        return
    drawn = axes.scatter(x, y, s=area, **_style(mark, colors))
    _keep(mark, colors, drawn.get_facecolor()[0])


def _bar(mark: Mark, axes: Any, on: Drawn, colors: dict[str, Any]) -> None:
    slot, count = mark["slot"]
    x = array(mark["x"])
    apart = float(np.min(np.diff(np.unique(x)))) if np.unique(x).size > 1 else 1.0
    width = mark["width"] * apart / count
    drawn = axes.bar(x + width * (slot - (count - 1) / 2), array(mark["height"]), width, **_style(mark, colors))
    if mark["names"] is not None:
        axes.set_xticks(x, mark["names"])
    if drawn.patches:
        _keep(mark, colors, drawn.patches[0].get_facecolor())


def _histogram(mark: Mark, axes: Any, on: Drawn, colors: dict[str, Any]) -> None:
    drawn = axes.stairs(array(mark["heights"]), array(mark["edges"]), fill=True, alpha=0.7, **_style(mark, colors))
    _keep(mark, colors, drawn.get_facecolor()[:3])


def _band(mark: Mark, axes: Any, on: Drawn, colors: dict[str, Any]) -> None:
    options = _style(mark, colors, alpha=0.25, linewidth=0)
    drawn = axes.fill_between(array(mark["x"]), array(mark["low"]), array(mark["high"]), **options)
    _keep(mark, colors, drawn.get_facecolor()[0][:3])


def _image(mark: Mark, axes: Any, on: Drawn, colors: dict[str, Any]) -> None:
    pixels = array(mark["pixels"])
    options = _colormap(mark) if pixels.ndim == 2 else {}
    if pixels.ndim == 3 and pixels.dtype != np.uint8:
        pixels = np.clip(np.nan_to_num(pixels), 0, 1)
    aspect = "equal" if mark["square"] else "auto"
    drawn = axes.imshow(pixels, origin=mark["origin"], extent=mark["extent"], aspect=aspect, **options)
    if pixels.ndim == 2:
        _colorbar(mark, drawn, axes, on)


def _edges(centres: Any) -> Any:
    """The edges of cells around their centres."""
    if centres.size == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middles = (centres[1:] + centres[:-1]) / 2
    return np.r_[2 * centres[0] - middles[0], middles, 2 * centres[-1] - middles[-1]]


def _heatmap(mark: Mark, axes: Any, on: Drawn, colors: dict[str, Any]) -> None:
    x, y, z = array(mark["x"]), array(mark["y"]), array(mark["z"])
    drawn = axes.pcolormesh(_edges(x), _edges(y), z, **_colormap(mark))
    if mark["origin"] == "upper":
        axes.invert_yaxis()
    if mark["xnames"] is not None:
        axes.set_xticks(x, mark["xnames"])
    if mark["ynames"] is not None:
        axes.set_yticks(y, mark["ynames"])
    if mark["annotate"]:
        for i, j in np.ndindex(*z.shape):
            red, green, blue, _ = drawn.cmap(drawn.norm(z[i, j]))
            light = 0.3 * red + 0.59 * green + 0.11 * blue > 0.55
            axes.text(x[j], y[i], f"{z[i, j]:.4g}", ha="center", va="center", color="black" if light else "white")
    _colorbar(mark, drawn, axes, on)


def _contour(mark: Mark, axes: Any, on: Drawn, colors: dict[str, Any]) -> None:
    x, y, z, levels = (array(mark[name]) for name in ("x", "y", "z", "levels"))
    if not levels.size or min(z.shape) < 2:
        return
    if mark["filled"]:
        drawn = axes.contourf(x, y, z, levels, cmap=mark["cmap"], extend="both")
        axes.contour(x, y, z, levels, colors="black", linewidths=0.5, alpha=0.5)
    else:
        drawn = axes.contour(
            x, y, z, levels, **({"colors": mark["color"]} if mark["color"] else {"cmap": mark["cmap"]})
        )
    _colorbar(mark, drawn, axes, on)


def _quiver(mark: Mark, axes: Any, on: Drawn, colors: dict[str, Any]) -> None:
    x, y, u, v = (array(mark[name]) for name in "xyuv")
    axes.quiver(x, y, u, v, angles="xy", scale_units="xy", scale=mark["scale"], **_style(mark, colors))
    tips = np.c_[x + u / mark["scale"], y + v / mark["scale"]]
    axes.update_datalim(tips[np.isfinite(tips).all(axis=1)])
    axes.autoscale_view()


def _colormap(mark: Mark) -> dict[str, Any]:
    return {"cmap": mark["cmap"], "vmin": mark["vmin"], "vmax": mark["vmax"]}


def _colorbar(mark: Mark, drawn: Any, axes: Any, on: Drawn) -> None:
    if mark["colorbar"]:
        on.colorbar(drawn, ax=axes)


_KINDS = {
    "line": _line,
    "scatter": _scatter,
    "bar": _bar,
    "histogram": _histogram,
    "band": _band,
    "image": _image,
    "heatmap": _heatmap,
    "contour": _contour,
    "quiver": _quiver,
}
