"""composite of `weft.lax`, which loads when it is first used."""

from ..higher_order.composite import composite as composite

__all__ = ["composite"]
