"""weft.scipy.spatial: rotations."""
from . import transform as transform

__all__ = ["transform"]
