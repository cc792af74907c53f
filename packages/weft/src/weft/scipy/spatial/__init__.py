"""weft.scipy.spatial: rotations."""

from . import transform

__all__ = ["transform"]
