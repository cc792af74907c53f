"""Student's t distribution."""

import math

from ... import numpy as jnp
from .. import special
from .define import Distribution

__all__ = ["logpdf", "pdf"]

_define = Distribution("Student's t distribution with df degrees of freedom", 0.5, 3.0)


@_define
def logpdf(x, df, loc=0, scale=1):
    half = df / 2
    z = (x - loc) / scale
    return (
        special.gammaln(half + 0.5)
        - special.gammaln(half)
        - jnp.log(math.pi * df) / 2
        - jnp.log(scale)
        - (half + 0.5) * jnp.log1p(z * z / df)
    )


pdf = _define.exp(logpdf)


def __dir__() -> list[str]:
    return sorted(__all__)
