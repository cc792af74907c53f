"""The drawing functions: each adds a mark to a panel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, Protocol, Self, Sequence, Unpack

from ..base.errors import at_user_line
from . import binning, grids
from .options import COLORMAPS, STYLES, Axes, Mark, check_color, one_of, optional_float, positive
from .values import Values, of_floats, read, same_length, series, vector

Numbers = Any  # an array of weft or NumPy, a list, anything that `values.read` takes
Style = Literal["solid", "dashed", "dotted"]


def _columns(what: str, given: object, label: str) -> list[tuple[str, Values]]:
    """The series in `given`: the leaves of a pytree, the columns of a matrix, or one."""
    found: list[tuple[str, Values]] = []
    for name, values in series(what, given):
        if len(values.shape) == 2:
            rows, count = values.shape
            numbers = values.numbers()
            found += [
                (
                    f"{name or label} {k}" if name or label else "",
                    of_floats(numbers[k + count * i] for i in range(rows)),
                )
                for k in range(count)
            ]
        elif len(values.shape) == 1:
            found.append((name or label, values))
        else:
            raise ValueError(
                at_user_line(f"{what} must have one axis, or two for several series; its shape is {values.shape}")
            )
    return found


class TakesMarks(Protocol):
    """The interface of a panel that drawing needs: marks are added to it."""

    def add(self, marks: Sequence[Mark]) -> None: ...


class Drawing(ABC):
    """Base of panels and figures. A figure draws into the last of its panels."""

    @abstractmethod
    def _panel(self, axes: Axes) -> TakesMarks:
        """The panel to draw into, whose axes have these options from now on."""

    def _add(self, marks: Sequence[Mark], axes: Axes) -> Self:
        self._panel(axes).add(marks)
        return self

    def line(
        self,
        x: Numbers,
        y: Numbers = None,
        *,
        label: str = "",
        color: str | None = None,
        width: float = 2.0,
        style: Style = "solid",
        markers: bool = False,
        **axes: Unpack[Axes],
    ) -> Self:
        """Draws y over x as a line through the points in the order in which they are given.

        A point that is not finite leaves a gap.

        Args:
            x: n real numbers, of any dtype. If y is left out, these are y, and x counts 0, 1, 2, ...
            y: n real numbers of shape (n,); of shape (n, k) for k lines; or a pytree (a dict, say) of such, for a
                line each, named after its place.
            label: the line's name in the legend; str.
            color: `"#4060c0"`, `"crimson"`, or `"C2"` for the third colour of the theme; None for the next one.
            width: of the line, in pixels; float.
            style: `"solid"`, `"dashed"` or `"dotted"`.
            markers: whether to draw the points too; bool.
            **axes: options of the axes, as `figure` takes them, such as `title="loss"` or `yscale="log"`.

        Returns:
            the figure (or the panel) drawn into.

        Raises:
            TypeError: x or y holds no real numbers.
            ValueError: x and y do not hold as many.

        Example:
            >>> import weft.numpy as jnp
            >>> from weft import plot
            >>> t = jnp.linspace(0, 6.28, 50)
            >>> plot.line(jnp.cos(t), jnp.sin(t), label="circle", aspect="equal")
            <Figure: 1 line>
            >>> plot.flush()
        """
        given = _columns("plot.line: y", x if y is None else y, label)
        options = {
            "color": check_color(color),
            "width": positive("width", width),
            "style": one_of("style", style, STYLES),
            "markers": bool(markers),
        }
        shared = None if y is None else vector("plot.line: x", x)
        marks: list[Mark] = []
        for name, values in given:
            place = of_floats(range(values.size)) if shared is None else shared
            same_length("line", x=place, y=values)
            marks.append({"kind": "line", "label": name, "x": place, "y": values, **options})
        return self._add(marks, axes)

    def scatter(
        self,
        x: Numbers,
        y: Numbers,
        *,
        label: str = "",
        color: Any = None,
        size: float = 6.0,
        cmap: str = "viridis",
        vmin: float | None = None,
        vmax: float | None = None,
        **axes: Unpack[Axes],
    ) -> Self:
        """Draws points. One that is not finite is left out.

        Args:
            x: n real numbers, of any dtype.
            y: n real numbers of shape (n,); of shape (n, k), or a pytree of such, for several series.
            label: the name in the legend; str.
            color: of all points, as `line` takes it; or n real numbers, which a colour map turns into colours.
            size: of a point, in pixels across; float.
            cmap: the colour map, where `color` holds numbers: `"viridis"`, `"magma"`, `"inferno"`, `"plasma"`,
                `"gray"`, `"coolwarm"` or `"twilight"`.
            vmin: the number at the lower end of the colour map; the least, if left out.
            vmax: the number at its upper end; the greatest, if left out.
            **axes: options of the axes, as `figure` takes them.

        Returns:
            the figure (or the panel) drawn into.

        Raises:
            TypeError: an argument holds no real numbers.
            ValueError: they do not hold as many.

        Example:
            >>> from weft import plot
            >>> plot.scatter([0, 1, 1, 1], [0, 1, 5, 9], color=[1.0, 2.0, 3.0, 4.0])
            <Figure: 1 scatter>
            >>> plot.flush()
        """
        given, place = _columns("plot.scatter: y", y, label), vector("plot.scatter: x", x)
        options: dict[str, Any] = {"size": positive("size", size)}
        if color is None or isinstance(color, str):
            options["color"] = check_color(color)
        else:
            values = vector("plot.scatter: color", color)
            same_length("scatter", x=place, color=values)
            options |= {"color": None, "values": values, **_colormap(cmap, vmin, vmax, True)}
        for _, values in given:
            same_length("scatter", x=place, y=values)
        marks = [{"kind": "scatter", "label": name, "x": place, "y": values, **options} for name, values in given]
        return self._add(marks, axes)

    def bar(
        self,
        x: Any,
        height: Numbers = None,
        *,
        label: str = "",
        color: str | None = None,
        width: float = 0.8,
        **axes: Unpack[Axes],
    ) -> Self:
        """Draws bars from zero. Those of several calls stand side by side.

        Args:
            x: where the n bars stand: real numbers, or names (a list of str). A dict of numbers gives names and
                heights in one.
            height: n real numbers, of any dtype and shape (n,); or a dict of such, for several bars at each place.
            label: the name in the legend; str.
            color: as `line` takes it.
            width: of the bars at one place together, as a share of the distance between places; float.
            **axes: options of the axes, as `figure` takes them.

        Returns:
            the figure (or the panel) drawn into.

        Raises:
            TypeError: `height` holds no real numbers.
            ValueError: there are not as many heights as places.

        Example:
            >>> from weft import plot
            >>> plot.bar(["wasm", "webgpu"], [3.1, 0.4], ylabel="ms")
            <Figure: 1 bar>
            >>> plot.bar({"wasm": 3.1, "webgpu": 0.4})
            <Figure: 2 bars>
            >>> plot.flush()
        """
        if height is None:
            found = series("plot.bar: x", x)
            if len(found) == 1 and not found[0][0]:
                x, height = range(found[0][1].size), x
            else:
                x, height = [name for name, _ in found], [values.numbers()[0] for _, values in found]
        names = [str(name) for name in x] if len(x) and isinstance(x[0], str) else None
        place = of_floats(range(len(names))) if names is not None else vector("plot.bar: x", x)
        options = {"color": check_color(color), "width": positive("width", width), "names": names}
        marks: list[Mark] = []
        for name, values in _columns("plot.bar: height", height, label):
            same_length("bar", x=place, height=values)
            marks.append({"kind": "bar", "label": name, "x": place, "height": values, **options})
        return self._add(marks, axes)

    def histogram(
        self,
        values: Numbers,
        *,
        bins: int | Sequence[float] | Literal["auto"] = "auto",
        range: tuple[float, float] | None = None,
        density: bool = False,
        label: str = "",
        color: str | None = None,
        **axes: Unpack[Axes],
    ) -> Self:
        """Counts values in bins and draws a bar for each. Values that are not finite are not counted.

        Args:
            values: real numbers, of any dtype and shape; or a pytree (a dict) of such, for several histograms.
            bins: their number (int), their edges (floats that increase), or `"auto"` for a number that fits the data.
            range: the lowest and the highest edge, (float, float); those of the values, if left out.
            density: whether the bars' areas sum to 1; bool.
            label: the name in the legend; str.
            color: as `line` takes it.
            **axes: options of the axes, as `figure` takes them.

        Returns:
            the figure (or the panel) drawn into.

        Raises:
            TypeError: `values` holds no real numbers.
            ValueError: the bins are none.

        Example:
            >>> from weft import plot, random
            >>> plot.histogram(random.normal(random.key(0), (1000,)), bins=20)
            <Figure: 1 histogram>
            >>> plot.flush()
        """
        marks: list[Mark] = []
        for name, found in series("plot.histogram: values", values):
            finite = found.finite()
            edges, counts = binning.histogram(finite, bins, range)
            total = sum(counts) or 1
            heights = [n / (total * (b - a)) for n, a, b in zip(counts, edges, edges[1:])] if density else counts
            marks.append(
                {
                    "kind": "histogram",
                    "label": name or label,
                    "edges": of_floats(edges),
                    "heights": of_floats(heights),
                    "density": bool(density),
                    "color": check_color(color),
                    "dropped": found.size - len(finite),
                }
            )
        return self._add(marks, axes)

    def band(
        self,
        x: Numbers,
        low: Numbers,
        high: Numbers,
        *,
        label: str = "",
        color: str | None = None,
        **axes: Unpack[Axes],
    ) -> Self:
        """Fills the area between two curves: an error band.

        Args:
            x: n real numbers, of any dtype.
            low: n real numbers: the lower curve; shape (n,).
            high: n real numbers: the upper curve; shape (n,).
            label: the name in the legend; str. A band with the label of a line has its colour and its place there.
            color: as `line` takes it.
            **axes: options of the axes, as `figure` takes them.

        Returns:
            the figure (or the panel) drawn into.

        Raises:
            TypeError: an argument holds no real numbers.
            ValueError: they do not hold as many.

        Example:
            >>> from weft import plot
            >>> plot.line([0, 1, 2], [1.0, 2.0, 4.0], label="mean").band([0, 1, 2], [0, 1, 2], [2, 3, 6], label="mean")
            <Figure: 1 line, 1 band>
            >>> plot.flush()
        """
        place = vector("plot.band: x", x)
        below, above = vector("plot.band: low", low), vector("plot.band: high", high)
        same_length("band", x=place, low=below, high=above)
        mark = {"kind": "band", "label": label, "x": place, "low": below, "high": above, "color": check_color(color)}
        return self._add([mark], axes)

    def image(
        self,
        pixels: Numbers,
        *,
        cmap: str = "viridis",
        vmin: float | None = None,
        vmax: float | None = None,
        origin: Literal["upper", "lower"] = "upper",
        extent: tuple[float, float, float, float] | None = None,
        colorbar: bool = True,
        **axes: Unpack[Axes],
    ) -> Self:
        """Draws an array as a picture, a square for each pixel.

        Args:
            pixels: of shape (rows, columns), real numbers of any dtype, which a colour map turns into colours; or of
                shape (rows, columns, 3) or (rows, columns, 4), RGB or RGBA: integers from 0 to 255, or floats from 0
                to 1. What lies outside is clipped.
            cmap: the colour map: `"viridis"`, `"magma"`, `"inferno"`, `"plasma"`, `"gray"`, `"coolwarm"` or
                `"twilight"`.
            vmin: the number at the lower end of the colour map; the least, if left out.
            vmax: the number at its upper end; the greatest, if left out.
            origin: where row 0 lies: `"upper"` (on top) or `"lower"`.
            extent: (left, right, bottom, top) of the picture on the axes; without it, pixel (i, j) is centred at
                x = j, y = i.
            colorbar: whether to show which number has which colour; bool.
            **axes: options of the axes, as `figure` takes them.

        Returns:
            the figure (or the panel) drawn into.

        Raises:
            TypeError: it holds no real numbers.
            ValueError: its shape is none of these.

        Example:
            >>> import weft.numpy as jnp
            >>> from weft import plot
            >>> plot.image(jnp.eye(8), cmap="gray", title="identity")
            <Figure: 1 image>
            >>> plot.flush()
        """
        found = grids.pixels("plot.image: pixels", pixels)
        rows, columns = found.shape[:2]
        upper = one_of("origin", origin, ("upper", "lower")) == "upper"
        if extent is None:
            edges = (-0.5, columns - 0.5, rows - 0.5, -0.5) if upper else (-0.5, columns - 0.5, -0.5, rows - 0.5)
        else:
            left, right, bottom, top = (float(edge) for edge in extent)
            edges = (left, right, bottom, top)
        colors = _colormap(cmap, vmin, vmax, colorbar) if len(found.shape) == 2 else {}
        mark = {
            "kind": "image",
            "label": "",
            "pixels": found,
            "origin": origin,
            "extent": list(edges),
            "square": extent is None,
            **colors,
        }
        return self._add([mark], axes)

    def heatmap(
        self,
        z: Numbers,
        x: Any = None,
        y: Any = None,
        *,
        cmap: str = "viridis",
        vmin: float | None = None,
        vmax: float | None = None,
        annotate: bool = False,
        colorbar: bool = True,
        **axes: Unpack[Axes],
    ) -> Self:
        """Draws a matrix as coloured cells between axes: a confusion matrix, or a function of two variables.

        Args:
            z: real numbers, of any dtype and shape (rows, columns).
            x: what the columns stand for: names (str), or real numbers that increase; their indices, if left out.
            y: what the rows stand for, likewise. Row 0 is on top, unless y holds numbers: then they grow upwards.
            cmap: the colour map, as `image` takes it.
            vmin: the number at the lower end of the colour map; the least, if left out.
            vmax: the number at its upper end; the greatest, if left out.
            annotate: whether to write each number into its cell; bool.
            colorbar: whether to show which number has which colour; bool.
            **axes: options of the axes, as `figure` takes them.

        Returns:
            the figure (or the panel) drawn into.

        Raises:
            TypeError: z holds no real numbers.
            ValueError: z has not two axes, or x and y do not fit it.

        Example:
            >>> from weft import plot
            >>> plot.heatmap([[8, 1], [2, 9]], ["cat", "dog"], ["cat", "dog"], annotate=True)
            <Figure: 1 heatmap>
            >>> plot.flush()
        """
        mark = {"kind": "heatmap", "label": "", **grids.cells(z, x, y), "annotate": bool(annotate)}
        return self._add([{**mark, **_colormap(cmap, vmin, vmax, colorbar)}], axes)

    def contour(
        self,
        x: Numbers,
        y: Numbers = None,
        z: Numbers = None,
        *,
        levels: int | Sequence[float] = 8,
        filled: bool = False,
        cmap: str = "viridis",
        color: str | None = None,
        colorbar: bool = True,
        **axes: Unpack[Axes],
    ) -> Self:
        """Draws the lines along which a function of two variables is constant.

        Args:
            x: where the columns of z lie: real numbers of shape (columns,), or as `meshgrid` gives them. If it is the
                only argument, it is z, and x and y count its columns and rows.
            y: where the rows lie: real numbers of shape (rows,), or as `meshgrid` gives them.
            z: real numbers, of any dtype and shape (rows, columns).
            levels: about how many (int), or which (floats).
            filled: whether to fill the areas between the lines too; bool.
            cmap: the colour map, as `image` takes it.
            color: one colour for all lines, in place of the colour map.
            colorbar: whether to show which level has which colour; bool.
            **axes: options of the axes, as `figure` takes them.

        Returns:
            the figure (or the panel) drawn into.

        Raises:
            TypeError: an argument holds no real numbers.
            ValueError: z has not two axes, or x and y do not fit it or do not increase.

        Example:
            >>> import weft.numpy as jnp
            >>> from weft import plot
            >>> a = jnp.linspace(-2, 2, 40)
            >>> plot.contour(a, a, a[:, None] ** 2 + a**2, levels=[1, 2, 3])
            <Figure: 1 contour>
            >>> plot.flush()
        """
        grid = grids.regular("contour", x, y, z)
        mark = {
            "kind": "contour",
            "label": "",
            **grid,
            "levels": of_floats(binning.levels(grid["z"].finite(), levels)),
            "filled": bool(filled),
            "color": check_color(color),
            **_colormap(cmap, None, None, colorbar and color is None),
        }
        return self._add([mark], axes)

    def quiver(
        self,
        x: Numbers,
        y: Numbers,
        u: Numbers,
        v: Numbers,
        *,
        scale: float | None = None,
        label: str = "",
        color: str | None = None,
        **axes: Unpack[Axes],
    ) -> Self:
        """Draws a vector field: an arrow from each (x, y) to (x + u / scale, y + v / scale).

        Args:
            x: where the arrows begin: real numbers of the shape of u, or of shape (columns,) where u is a matrix.
            y: likewise; or of shape (rows,).
            u: the arrows' components along x: real numbers, of any dtype.
            v: their components along y; of the shape of u.
            scale: what to divide arrows by; if left out, the longest reaches about the next arrow; float.
            label: the name in the legend; str.
            color: as `line` takes it.
            **axes: options of the axes, as `figure` takes them.

        Returns:
            the figure (or the panel) drawn into.

        Raises:
            TypeError: an argument holds no real numbers.
            ValueError: the shapes do not fit each other.

        Example:
            >>> import weft.numpy as jnp
            >>> from weft import plot
            >>> x, y = jnp.meshgrid(jnp.linspace(-1, 1, 8), jnp.linspace(-1, 1, 8))
            >>> plot.quiver(x, y, -y, x, title="rotation", aspect="equal")
            <Figure: 1 quiver>
            >>> plot.flush()
        """
        across, up = read("plot.quiver: u", u), read("plot.quiver: v", v)
        left, below = read("plot.quiver: x", x), read("plot.quiver: y", y)
        if len(across.shape) == 2 and (left.shape, below.shape) == ((across.shape[1],), (across.shape[0],)):
            rows, columns = across.shape
            left = of_floats([*left.numbers()] * rows)
            below = of_floats(b for b in below.numbers() for _ in range(columns))
        same_length("quiver", x=left, y=below, u=across, v=up)
        flat = [each.reshaped(each.size) for each in (left, below, across, up)]
        wanted = optional_float("scale", scale) or binning.arrow_scale(*(each.numbers() for each in flat))
        mark = {"kind": "quiver", "label": label, **dict(zip("xyuv", flat)), "scale": wanted}
        return self._add([{**mark, "color": check_color(color)}], axes)


def _colormap(cmap: str, vmin: float | None, vmax: float | None, colorbar: bool) -> dict[str, Any]:
    return {
        "cmap": one_of("cmap", cmap, COLORMAPS),
        "vmin": optional_float("vmin", vmin),
        "vmax": optional_float("vmax", vmax),
        "colorbar": bool(colorbar),
    }
