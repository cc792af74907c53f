"""The distribution of the sum of df squares of normal variables: the gamma distribution of df / 2, with twice its
scale.
"""

from . import gamma
from .define import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_define = Distribution("the chi-squared distribution with df degrees of freedom", 0.5, 3.0)


def _as_gamma(name: str):
    f = getattr(gamma, name)
    return _define(lambda x, df, loc=0, scale=1: f(x, df / 2, loc, 2 * scale), name)


pdf, logpdf, cdf, logcdf, sf, logsf = map(_as_gamma, ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"))


def __dir__() -> list[str]:
    return sorted(__all__)
