"""Random numbers from explicit keys, with JAX's bits.

Example:
    >>> import weft
    >>> key, sub = weft.random.split(weft.random.key(0))
    >>> weft.random.normal(sub, (2,)).shape
    (2,)
"""
from .choices import choice as choice, permutation as permutation
from .keys import (
    PRNGKey as PRNGKey,
    clone as clone,
    fold_in as fold_in,
    key as key,
    key_data as key_data,
    key_impl as key_impl,
    split as split,
    wrap_key_data as wrap_key_data,
)
from .samplers import (
    bernoulli as bernoulli,
    bits as bits,
    categorical as categorical,
    cauchy as cauchy,
    exponential as exponential,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    normal as normal,
    randint as randint,
    truncated_normal as truncated_normal,
    uniform as uniform,
)
