"""weft.scipy.sparse: iterative solvers of linear systems."""

from . import linalg

__all__ = ["linalg"]
