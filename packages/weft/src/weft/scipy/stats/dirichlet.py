"""Dirichlet's distribution of n probabilities that add up to 1."""

import math

from ... import numpy as jnp
from ...numpy.util import on_device, promote_inexact
from .. import special

__all__ = ["logpdf", "pdf"]


def logpdf(x, alpha):
    """The logarithm of the density at x: n values, or n - 1 without the last one, along the first axis.

    `alpha` has shape (n,). -inf where a value is not positive or they do not add up to 1.

    Raises:
        ValueError: if alpha has another rank than 1, or x another length.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.stats import dirichlet
        >>> round(float(dirichlet.logpdf(jnp.array([0.5, 0.5]), 2 * jnp.ones(2))), 4)
        0.4055
    """
    x, alpha = [on_device(v) for v in promote_inexact("dirichlet.logpdf", x, alpha)]
    if alpha.ndim != 1:
        raise ValueError(f"dirichlet.logpdf: alpha must be one-dimensional, got shape {alpha.shape}.")
    n = alpha.shape[0]
    if x.ndim == 0 or x.shape[0] not in (n, n - 1):
        raise ValueError(
            "dirichlet.logpdf: x must have as many entries along its first axis as alpha, or one less, got shapes"
            f" {x.shape} and {alpha.shape}."
        )
    if x.shape[0] != n:
        x = jnp.concatenate([x, 1 - x.sum(0, keepdims=True)])
    alpha = jnp.expand_dims(alpha, tuple(range(1, x.ndim)))
    value = special.gammaln(alpha.sum(0)) - special.gammaln(alpha).sum(0) + special.xlogy(alpha - 1, x).sum(0)
    return jnp.where((x > 0).all(0) & (jnp.abs(x.sum(0) - 1) < 1e-6), value, -math.inf)


def pdf(x, alpha):
    """The density at x, as `logpdf`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.stats import dirichlet
        >>> round(float(dirichlet.pdf(jnp.array([0.5, 0.5]), jnp.ones(2))), 4)
        1.0
    """
    return jnp.exp(logpdf(x, alpha))


def __dir__() -> list[str]:
    return sorted(__all__)
