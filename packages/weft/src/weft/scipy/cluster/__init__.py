"""weft.scipy.cluster: vector quantization."""
from . import vq as vq

__all__ = ["vq"]
