"""Arrays and indices written with brackets: r_, c_, mgrid, ogrid, s_, ix_."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, cast

from ..base.annotations import override
from ..base import dtypes
from ..core.trace import get_aval
from ..primitives import linear
from ..primitives.rules import shape_of
from ..typing import Array, ArrayLike
from .creation import array, asarray, ones
from .ranges import arange, linspace, meshgrid
from .selecting import nonzero
from .joining import concatenate, stack
from .util import on_device, operand, promote, static_int

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["c_", "index_exp", "iterable", "ix_", "mask_indices", "mgrid", "ogrid", "r_", "s_"]


def _from_slice(name: str, s: slice) -> Value:
    """The numbers of a slice. An imaginary step is their count, both ends included."""
    if not isinstance(s, slice):
        raise TypeError(f"{name} takes slices such as {name}[0:3, 0:1:5j], got {s!r}.")
    start, step = 0 if s.start is None else s.start, 1 if s.step is None else s.step
    if isinstance(step, complex):
        return linspace(start, s.stop, int(abs(step)))
    if s.stop is None:
        start, stop = 0, start
    else:
        stop = s.stop
    if isinstance(start, complex) or isinstance(stop, complex):
        raise ValueError(f"{name}: the ends of a slice are real; only the step may be imaginary, got {s}.")
    return arange(start, stop, step)


class _Grid:
    """Coordinates of the points of a grid: one array for each axis."""

    def __init__(self, name: str, sparse: bool):
        self.name, self.sparse = name, sparse

    @override
    def __repr__(self) -> str:
        return f"jnp.{self.name}"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _from_slice(self.name, key)
        if not isinstance(key, tuple):
            raise TypeError(f"{self.name} takes slices such as {self.name}[0:3, 0:1:5j], got {key!r}.")
        axes = promote(self.name, *[_from_slice(self.name, s) for s in key]) if key else []
        grids = meshgrid(*axes, indexing="ij", sparse=self.sparse) if axes else []
        if self.sparse:
            return list(grids)
        return stack(grids, 0) if grids else array([], dtypes.int32)


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)


class _Concatenator:
    """Slices, numbers and arrays joined along an axis, as a directive at the front says: 'axis,ndmin,place of the
    axis', 'r' or 'c'.
    """

    def __init__(self, name: str, axis: int, ndmin: int, place: int):
        self.name, self.defaults = name, (axis, ndmin, place)

    @override
    def __repr__(self) -> str:
        return f"jnp.{self.name}"

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Array:
        items = list(key) if isinstance(key, tuple) else [key]
        (axis, ndmin, place), matrix = self.defaults, None
        if items and isinstance(items[0], str):
            directive = items.pop(0)
            if directive in ("r", "c"):
                matrix = directive
            else:
                try:
                    given = [int(part) for part in directive.split(",")]
                except ValueError:
                    raise ValueError(
                        f"{self.name}: could not understand directive {directive!r}; write 'axis', 'axis,ndmin', "
                        "'axis,ndmin,place', 'r' or 'c'."
                    ) from None
                axis, ndmin, place = (*given, *self.defaults[len(given) :])[:3]
        if any(isinstance(item, str) for item in items):
            raise ValueError(f"{self.name}: string directive must be placed at the beginning.")
        if not items:
            raise IndexError(f"{self.name} needs something to concatenate.")
        parts = []
        for item in items:
            item = _from_slice(self.name, item) if isinstance(item, slice) else asarray(item)
            missing = ndmin - len(shape_of(item))
            if missing > 0:
                item = linear.expand_dims(item, tuple(range(missing)))
                item = linear.moveaxis(item, ndmin - 1, place % ndmin) if place != -1 else item
            parts.append(item)
        out = concatenate(parts, axis)
        return linear.expand_dims(out, (0,) if matrix == "r" else (1,)) if matrix and len(shape_of(out)) == 1 else out


r_ = _Concatenator("r_", 0, 1, -1)
c_ = _Concatenator("c_", -1, 2, 0)


class _IndexExpression:
    """An index as a value: `x[s_[1:, ...]]` is `x[1:, ...]`."""

    def __init__(self, maketuple: bool):
        self.maketuple = maketuple

    def __getitem__(self, item: Any) -> Any:
        return (item,) if self.maketuple and not isinstance(item, tuple) else item


index_exp = _IndexExpression(True)
s_ = _IndexExpression(False)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors shaped so that indexing with them picks every combination.

    Args:
        *args: vectors of any dtype.

    Returns:
        tuple of arrays, each of the dtype of its vector; the k-th has its size along axis k, and 1 along the others.

    Raises:
        ValueError: for arrays that are not vectors. NotImplementedError: for boolean ones.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.arange(6).reshape(2, 3)[jnp.ix_(jnp.array([1, 0]), jnp.array([0, 2]))].tolist()
        [[3, 5], [0, 2]]
    """
    out = []
    for k, x in enumerate(args):
        x = on_device(operand("ix_", x))
        if len(shape_of(x)) != 1:
            raise ValueError(f"ix_: arguments must be 1-dimensional, got shape {shape_of(x)}.")
        if dtypes.is_bool(get_aval(x).dtype):
            raise NotImplementedError("ix_ does not take booleans; give it the positions, jnp.flatnonzero(mask).")
        x = x if shape_of(x)[0] else linear.convert(x, dtypes.int32)
        out.append(linear.expand_dims(x, tuple(d for d in range(len(args)) if d != k)))
    return tuple(out)


def mask_indices(
    n: int, mask_func: Callable[[ArrayLike, int], Array], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """The positions in an n by n matrix that `mask_func(matrix, k)` leaves nonzero.

    Args:
        n: int, the number of rows and of columns.
        mask_func: function of a matrix of shape (n, n) and k, such as `triu`.
        k: what is passed to the function.
        size: int, how many are returned, which must be known under jit; None for as many as there are.

    Returns:
        (rows, columns), two vectors of integers of one size.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.mask_indices(2, jnp.triu)
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    n = static_int("n", n)
    rows, columns = nonzero(mask_func(ones((n, n)), k), size=size)
    return rows, columns


def iterable(y: object) -> bool:
    """Whether one can iterate over a value.

    Args:
        y: any value.

    Returns:
        bool.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.iterable(jnp.ones(2)), jnp.iterable(jnp.float32(1))
        (True, False)
    """
    try:
        iter(cast(Iterable[Any], y))
    except TypeError:
        return False
    return True
