"""The normal distribution of vectors."""

import math

from ... import numpy as jnp
from ...lax import linalg
from ...numpy.util import broadcast_shapes, on_device, promote_inexact

__all__ = ["logpdf", "pdf"]


def logpdf(x, mean, cov, allow_singular: None = None):
    """The logarithm of the density at x (..., n) for a mean (..., n) and a positive-definite covariance (..., n, n),
    whose leading axes broadcast.

    A scalar mean with a scalar covariance makes each element of x a variable of its own.

    Raises:
        ValueError: for shapes that do not fit. NotImplementedError: for allow_singular.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.stats import multivariate_normal
        >>> round(float(multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 4)
        -1.8379
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal.logpdf: allow_singular is not supported; give a positive-definite cov."
        )
    x, mean, cov = [on_device(v) for v in promote_inexact("multivariate_normal.logpdf", x, mean, cov)]
    if mean.ndim == 0 and cov.ndim == 0:
        return -(jnp.square(x - mean) / cov + jnp.log(2 * math.pi * cov)) / 2
    n = mean.shape[-1] if mean.ndim else cov.shape[-1]
    if cov.ndim < 2 or cov.shape[-2:] != (n, n) or x.ndim and x.shape[-1] != n:
        raise ValueError(
            "multivariate_normal.logpdf got incompatible shapes: "
            f"x must be (..., n), mean (..., n) and cov (..., n, n), got {x.shape}, {mean.shape} and {cov.shape}."
        )
    factor = jnp.linalg.cholesky(cov)
    batch = broadcast_shapes([jnp.broadcast_shapes(x.shape, mean.shape, (n,))[:-1], cov.shape[:-2]])
    factor = jnp.broadcast_to(factor, (*batch, n, n))
    centred = jnp.broadcast_to(x - mean, (*batch, n))
    y = linalg.triangular_solve(factor, centred[..., None], left_side=True, lower=True)[..., 0]
    logs = jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
    return -(y * y).sum(-1) / 2 - n / 2 * math.log(2 * math.pi) - logs


def pdf(x, mean, cov):
    """The density at x, as `logpdf`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.stats import multivariate_normal
        >>> round(float(multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 4)
        0.1592
    """
    return jnp.exp(logpdf(x, mean, cov))


def __dir__() -> list[str]:
    return sorted(__all__)
