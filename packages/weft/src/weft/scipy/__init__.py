"""weft.scipy: functions of SciPy."""
from . import special

__all__ = ["special"]
