"""weft.random: random numbers as pure functions of keys. The numbers are JAX's, bit for bit where the dtype allows it."""
from .keys import PRNGKey, bits, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data
from .sampling import (bernoulli, categorical, cauchy, choice, exponential, geometric, gumbel, laplace, logistic, lognormal, maxwell,
                       normal, pareto, permutation, rademacher, randint, rayleigh, triangular, truncated_normal, uniform, weibull_min)

__all__ = ["PRNGKey", "bernoulli", "bits", "categorical", "cauchy", "choice", "clone", "exponential", "fold_in", "geometric", "gumbel", "key", "key_data",
           "key_dtype", "key_impl", "laplace", "logistic", "lognormal", "maxwell", "normal", "pareto", "permutation", "rademacher", "randint",
           "rayleigh", "split", "triangular", "truncated_normal", "uniform", "weibull_min", "wrap_key_data"]
