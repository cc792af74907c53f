"""How arrays are stored: the order of their axes in memory, and their sharding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .annotations import override


class AutoLayout:
    """The compiler chooses."""

    @override
    def __repr__(self):
        return "AUTO"


@dataclass(frozen=True)
class Layout:
    """The axes of an array from the slowest to the fastest.

    Example:
        >>> from weft.experimental.layout import Layout
        >>> Layout((1, 0))
        Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """

    major_to_minor: tuple
    tiling: tuple | None = None
    sub_byte_element_size_in_bits: int = 0
    AUTO = AutoLayout()

    def check_compatible_aval(self, shape: tuple) -> None:
        """Raises ValueError where an array of this shape has other axes."""
        if sorted(self.major_to_minor) != list(range(len(shape))):
            raise ValueError(
                f"{self} is not a layout of arrays of shape {tuple(shape)}: it must name each of their {len(shape)}"
                " axes once."
            )


@dataclass(frozen=True)
class Format:
    """A layout and a sharding; each may be None, which leaves the choice open.

    Example:
        >>> from weft.experimental.layout import Format, Layout
        >>> Format(Layout((0, 1))).layout
        Layout(major_to_minor=(0, 1), tiling=None, sub_byte_element_size_in_bits=0)
    """

    layout: Any = None
    sharding: Any = None
