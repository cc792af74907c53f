"""How arrays lie in memory: the order of their axes, with where they lie."""

from ..base.layout import AutoLayout as AutoLayout, Format as Format, Layout as Layout

__all__ = ["AutoLayout", "Format", "Layout"]


def __dir__() -> list[str]:
    return sorted(__all__)
