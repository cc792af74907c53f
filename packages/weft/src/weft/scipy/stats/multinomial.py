"""How often each of several outcomes happens in n trials."""

import math

from ... import numpy as jnp
from ...numpy.util import on_device, operand, promote_inexact, in_own_terms
from .. import special

__all__ = ["logpmf", "pmf"]


@in_own_terms
def logpmf(x, n, p):
    """The logarithm of the probability of the counts x, integers along one axis, in n trials with probabilities p.

    -inf unless the counts add up to n.

    Raises:
        ValueError: if x or n are no integers.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.stats import multinomial
        >>> round(float(multinomial.pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))), 4)
        0.5
    """
    x, n, p = [on_device(operand("multinomial.logpmf", v)) for v in (x, n, p)]
    if not (all(jnp.issubdtype(v.dtype, jnp.integer) for v in (x, n))):
        raise ValueError(
            f"multinomial.logpmf: x and n must be integers, got {x.dtype} and {n.dtype}; convert them with astype(int)."
        )
    counts, trials, p = [on_device(v) for v in promote_inexact("multinomial.logpmf", x, n, p)]
    value = special.gammaln(trials + 1) + (special.xlogy(counts, p) - special.gammaln(counts + 1)).sum(-1)
    return jnp.where(x.sum(-1) == n, value, -math.inf)


def pmf(x, n, p):
    """The probability of the counts x, as `logpmf`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.stats import multinomial
        >>> round(float(multinomial.pmf(jnp.array([2, 0]), 2, jnp.array([0.5, 0.5]))), 4)
        0.25
    """
    return jnp.exp(logpmf(x, n, p))


def __dir__() -> list[str]:
    return sorted(__all__)
