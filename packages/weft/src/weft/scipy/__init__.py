"""weft.scipy: functions of SciPy."""
from . import linalg, special

__all__ = ["linalg", "special"]
