"""Arguments of marks with two or more axes: pictures, cells with names, functions on a grid."""

from __future__ import annotations

from typing import Any

from ..base.errors import at_user_line
from ..base.host import pack
from .values import Values, matrix, of_floats, read


def pixels(what: str, given: object) -> Values:
    """A picture: of rank 2, or RGB or RGBA as bytes or as floats."""
    values = read(what, given)
    if len(values.shape) == 3 and values.shape[2] == 1:
        values = values.reshaped(*values.shape[:2])
    if len(values.shape) == 2:
        return values
    if len(values.shape) != 3 or values.shape[2] not in (3, 4):
        raise ValueError(
            at_user_line(
                f"{what} must have the shape (rows, columns), (rows, columns, 3) for RGB or (rows, columns, 4) for"
                f" RGBA; it is {values.shape}"
            )
        )
    if values.dtype == "uint8" or values.dtype.startswith("float") and not _holds_integers(given):
        return values
    clipped = [min(max(v, 0), 255) for v in values.numbers()]
    return Values("uint8", values.shape, bytes(pack(clipped, "uint8")))


def _holds_integers(given: object) -> bool:
    """Whether numbers are integers by their type; `read` has made floats of some."""
    if isinstance(given, (list, tuple)):
        return all(map(_holds_integers, given))
    dtype = getattr(given, "dtype", None)
    return isinstance(given, int) or dtype is not None and str(dtype).lstrip("u").startswith("int")


def _increasing(what: str, values: Values, count: int, axis: str) -> Values:
    if values.shape != (count,):
        raise ValueError(
            at_user_line(f"{what} must have one number for each of the {count} {axis}; its shape is {values.shape}")
        )
    numbers = values.numbers()
    if not all(a < b for a, b in zip(numbers, numbers[1:])):
        raise ValueError(at_user_line(f"{what} must increase; sort it, and the {axis} of z with it"))
    return values


def _along(what: str, given: object, count: int, axis: str) -> tuple[Values | None, list[str] | None]:
    """The positions of rows or columns, or their names."""
    if given is None:
        return None, None
    if isinstance(given, (list, tuple)) and given and all(isinstance(name, str) for name in given):
        if len(given) != count:
            raise ValueError(at_user_line(f"{what} has {len(given)} names for {count} {axis}"))
        return None, list(given)
    return _increasing(what, read(what, given), count, axis), None


def cells(z: object, x: object, y: object) -> dict[str, Any]:
    """A heat map's numbers, the positions or names of its cells, and whether row 0 is on top."""
    numbers = matrix("plot.heatmap: z", z)
    rows, columns = numbers.shape
    across, names = _along("plot.heatmap: x", x, columns, "columns")
    up, row_names = _along("plot.heatmap: y", y, rows, "rows")
    return {
        "z": numbers,
        "x": across if across is not None else of_floats(range(columns)),
        "y": up if up is not None else of_floats(range(rows)),
        "xnames": names,
        "ynames": row_names,
        "origin": "lower" if up is not None else "upper",
    }


def _axis(what: str, values: Values, rows: int, columns: int, along_rows: bool) -> Values:
    """A grid's x or y of rank 1, where `meshgrid` may have repeated it."""
    if values.shape != (rows, columns):
        return values
    numbers = values.numbers()
    first = [numbers[k * columns] for k in range(rows)] if along_rows else [*numbers[:columns]]
    if any(numbers[i * columns + j] != first[i if along_rows else j] for i in range(rows) for j in range(columns)):
        raise ValueError(
            at_user_line(
                f"{what} must be a grid, as meshgrid makes it; its {'rows' if along_rows else 'columns'} differ"
            )
        )
    return of_floats(first)


def regular(function: str, x: object, y: object, z: object) -> dict[str, Values]:
    """A function of two variables on a grid: the positions of its columns and rows, and its values."""
    if (y is None) != (z is None):
        raise ValueError(at_user_line(f"plot.{function} takes z alone, or x, y and z"))
    numbers = matrix(f"plot.{function}: z", x if z is None else z)
    rows, columns = numbers.shape
    if z is None:
        return {"x": of_floats(range(columns)), "y": of_floats(range(rows)), "z": numbers}
    across = _axis(f"plot.{function}: x", read(f"plot.{function}: x", x), rows, columns, False)
    up = _axis(f"plot.{function}: y", read(f"plot.{function}: y", y), rows, columns, True)
    across = _increasing(f"plot.{function}: x", across, columns, "columns")
    return {"x": across, "y": _increasing(f"plot.{function}: y", up, rows, "rows"), "z": numbers}
