"""weft.scipy.linalg: SciPy's names for factorisations and systems, and the matrix exponential.

`overwrite_…` and `check_finite` are taken and have no effect: arrays are immutable, and values are not known while a
function is traced.
"""

from ...base.lazy import LazyNames as _LazyNames
from .factorisations import *
from .factorisations import __all__ as _names

# functions that many programs never need are loaded on first use
_lazy = _LazyNames(
    globals(),
    {
        "matrices": (
            "circulant companion convolution_matrix dft fiedler fiedler_companion hadamard hankel helmert hilbert"
            " invhilbert invpascal leslie pascal toeplitz"
        ),
        "functions": "expm_frechet funm rsf2csf solve_sylvester sqrtm",
    },
)
__all__ = [*_names, *_lazy.names()]
__getattr__ = _lazy.find


def __dir__():
    return sorted(__all__)
