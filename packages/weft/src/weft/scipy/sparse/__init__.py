"""weft.scipy.sparse: iterative solvers of linear systems."""
from . import linalg as linalg

__all__ = ["linalg"]
