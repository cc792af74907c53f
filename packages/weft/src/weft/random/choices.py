"""Sampling from what there is: permutations and choices."""
from __future__ import annotations

from .. import numpy as jnp
from ..core.trace import get_aval
from .keys import canonical_shape, size_of, typed
from .samplers import gumbel, randint, shuffled, shuffled_range, uniform


def permutation(key, x, axis: int = 0, independent: bool = False, *, out_sharding=None):
    """A random order of `x` along `axis`, or of 0 … x-1 for an integer.

    With `independent`, each row along `axis` gets its own order.

    Example:
        >>> import weft
        >>> sorted(weft.random.permutation(weft.random.key(0), 4).tolist())
        [0, 1, 2, 3]
    """
    key, _ = typed(key, "permutation")
    if isinstance(x, int) or not get_aval(x).shape:
        return shuffled_range(key, int(x))
    rank = len(get_aval(x).shape)
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}.")
    axis %= rank
    if independent or rank == 1:
        return shuffled(key, x, axis)
    return jnp.take(x, shuffled_range(key, get_aval(x).shape[axis]), axis, unique_indices=True)


def choice(key, a, shape=(), replace: bool = True, p=None, axis: int = 0, mode: str | None = None):
    """Samples from `a` (an array, or 0 … a-1 for an integer) along `axis`.

    Args:
        shape: how many, as a shape.
        replace: whether an element can come twice.
        p: probabilities along `axis`; uniform if None.

    Example:
        >>> import weft
        >>> weft.random.choice(weft.random.key(0), 5, (2,)).shape
        (2,)
    """
    key, _ = typed(key, "choice")
    shape = canonical_shape(shape)
    is_range = isinstance(a, int) or not get_aval(a).shape
    n = int(a) if is_range else get_aval(a).shape[axis]
    if n <= 0 and size_of(shape):
        raise ValueError("a must be greater than 0 unless no samples are taken")
    draws = size_of(shape)
    if not replace and draws > n:
        raise ValueError(f"Cannot take a larger sample (size {draws}) than population (size {n}) when 'replace=False'")
    if p is not None:
        if get_aval(p).shape != (n,):
            raise ValueError(f"p must be None or a 1D vector with the same size as a.shape[axis]. p has shape {get_aval(p).shape} and a.shape[axis] is {n}.")
        p = jnp.asarray(p, dtype=float) if not jnp.issubdtype(get_aval(p).dtype, jnp.floating) else jnp.asarray(p)
        if replace:
            cumulative = jnp.cumsum(p)
            r = cumulative[-1] * (1 - uniform(key, shape, dtype=cumulative.dtype))
            index = jnp.searchsorted(cumulative, r).astype(int)
        else:
            index = jnp.argsort(-(gumbel(key, (n,), p.dtype) + jnp.log(p)))[:draws].reshape(shape)
    elif replace:
        index = randint(key, shape, 0, n)
    elif is_range:
        return permutation(key, n)[:draws].reshape(shape)
    else:
        rows = permutation(key, a, axis)
        picked = jnp.take(rows, jnp.arange(draws), axis)
        return picked.reshape((*picked.shape[:axis], *shape, *picked.shape[axis + 1:]))
    return index if is_range else jnp.take(a, index, axis)
