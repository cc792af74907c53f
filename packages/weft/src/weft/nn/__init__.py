"""weft.nn: activation functions, normalisations, attention and initial values for neural networks."""

from typing import TYPE_CHECKING

from ..base.lazy import LazyNames as _LazyNames
from . import initializers
from .activations import *
from .normalization import *

if TYPE_CHECKING:  # loaded on first use
    from .attention import *
    from .scaled import *

# families that are loaded on first use
_lazy = _LazyNames(
    globals(),
    {
        "attention": "dot_product_attention",
        "scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
    },
)

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every name
    __all__ = [
        "celu",
        "elu",
        "gelu",
        "glu",
        "hard_sigmoid",
        "hard_silu",
        "hard_swish",
        "hard_tanh",
        "identity",
        "initializers",
        "leaky_relu",
        "log1mexp",
        "log_sigmoid",
        "log_softmax",
        "logmeanexp",
        "logsumexp",
        "mish",
        "one_hot",
        "relu",
        "relu6",
        "selu",
        "sigmoid",
        "silu",
        "soft_sign",
        "softmax",
        "softplus",
        "sparse_plus",
        "sparse_sigmoid",
        "squareplus",
        "standardize",
        "swish",
        "tanh",
        *_lazy.names(),
    ]

    __getattr__ = _lazy.find

    def __dir__():
        return sorted(__all__)
