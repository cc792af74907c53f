"""composite of `weft.lax`, which loads when it is first used."""
from ..control.composite import composite as composite

__all__ = ["composite"]
