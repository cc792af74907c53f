"""The abstract class of all arrays, and the type of values that functions accept as arrays."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, TypeAlias

from .host import has_numpy, np

if TYPE_CHECKING:
    from .array_members import ArrayMembers
else:
    ArrayMembers = object


class Array(ArrayMembers, metaclass=abc.ABCMeta):
    """An immutable array on some device; traced values are instances too.

    Arrays come from `weft.numpy` functions, not from this class. Use it in `isinstance(x, weft.Array)`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> isinstance(jnp.ones(3), weft.Array)
        True
    """

    __slots__ = ()
    __array_priority__ = 100


if TYPE_CHECKING:
    ArrayLike: TypeAlias = Array | np.ndarray[Any, Any] | np.bool_ | np.number[Any] | bool | int | float | complex
elif has_numpy:
    ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
else:
    ArrayLike = Array | bool | int | float | complex
