"""weft.numpy.linalg: norms, products, factorisations and linear systems."""

from . import decompositions as _decompositions, norms as _norms, products as _products, solving as _solving
from .decompositions import *
from .norms import *
from .products import *
from .solving import *

__all__ = [*_decompositions.__all__, *_norms.__all__, *_products.__all__, *_solving.__all__]


def __dir__() -> list[str]:
    return sorted(__all__)
