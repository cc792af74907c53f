"""`pjit`, which `weft.jit` has become."""

from ..runtime.jit import jit as pjit

__all__ = ["pjit"]
