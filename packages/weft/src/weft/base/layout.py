"""How arrays are stored: the order of their axes in memory, and their sharding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .annotations import override
from .mesh import Sharding


class AutoLayout:
    """The compiler chooses."""

    @override
    def __repr__(self):
        return "AUTO"

    @override
    def __eq__(self, other):
        return isinstance(other, AutoLayout)

    @override
    def __hash__(self):
        return hash(AutoLayout)


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

    def with_order(self, major_to_minor: tuple) -> Layout:
        """The same with another order of axes."""
        return replace(self, major_to_minor=tuple(major_to_minor))

    @property
    def is_row_major(self) -> bool:
        """Whether the last axis is the fastest, without tiles: how arrays lie unless somebody says otherwise."""
        return self.major_to_minor == tuple(range(len(self.major_to_minor))) and not self.tiling


def check_layout(layout: Any) -> None:
    """Raises TypeError for what is no layout."""
    if layout is not None and not isinstance(layout, (Layout, AutoLayout)):
        raise TypeError(
            f"a layout is a weft.experimental.layout.Layout, Layout.AUTO or None; got {layout!r} of type"
            f" {type(layout).__name__}."
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

    def __post_init__(self):
        check_layout(self.layout)
        if self.sharding is not None and not isinstance(self.sharding, Sharding):
            raise TypeError(
                "the sharding of a Format is a weft.sharding.Sharding or None; got"
                f" {self.sharding!r} of type {type(self.sharding).__name__}."
            )
