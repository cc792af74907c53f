"""A generator with state: each draw takes the next key of a counter that lives in a mutable reference, so it works
in programs too.
"""

from __future__ import annotations

import os
from typing import Any

from ..base.annotations import override
from .. import numpy as jnp, random
from ..api.tracing import vmap
from ..lax.common import canonical_shape, operand
from ..primitives.rules import shape_of
from ..api.refs import Ref, new_ref
from ..base.registration import register_pytree_node_class

__all__ = ["StatefulPRNG", "stateful_rng"]


@register_pytree_node_class
class StatefulPRNG:
    """What `stateful_rng` makes. Its numbers are those of `weft.random` for the keys fold_in(base key, 0), fold_in(base
    key, 1), ….

    Under `vmap` or `split` it is an array of generators, each with its own key and counter.
    """

    def __init__(self, _base_key, _counter: Ref):
        self._base_key, self._counter = _base_key, _counter

    def tree_flatten(self):
        return (self._base_key, self._counter), ()

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)

    @override
    def __repr__(self):
        return f"StatefulPRNG(_base_key={self._base_key!r}, _counter={self._counter!r})"

    def key(self, shape=()):
        """The next key, or an array of new keys split from it."""
        count = self._counter[...]
        self._counter[...] = count + 1
        fold = random.fold_in
        for _ in shape_of(self._base_key):
            fold = vmap(fold)
        key, shape = fold(self._base_key, count), canonical_shape(shape)
        return random.split(key, shape) if shape else key

    def _draw(self, sampler, size, *params, **options):
        shape = (
            jnp.broadcast_shapes(*[shape_of(operand("StatefulPRNG", p)) for p in params])
            if size is None
            else canonical_shape(size)
        )
        return sampler(self.key(), shape, **options)

    def random(self, size=None, dtype: Any = float):
        """Uniform numbers in [0, 1)."""
        return self.uniform(size=size, dtype=dtype)

    def uniform(self, low=0, high=1, size=None, *, dtype: Any = float):
        """Uniform numbers in [low, high)."""
        return self._draw(random.uniform, size, low, high, dtype=dtype, minval=low, maxval=high)

    def normal(self, loc=0, scale=1, size=None, *, dtype: Any = float):
        """Normal numbers with mean `loc` and standard deviation `scale`."""
        out = self._draw(random.normal, size, loc, scale, dtype=dtype)
        return out * jnp.asarray(scale, dtype=out.dtype) + jnp.asarray(loc, dtype=out.dtype)

    def integers(self, low, high=None, size=None, *, dtype: Any = int):
        """Integers in [low, high), or in [0, low)."""
        low, high = (0, low) if high is None else (low, high)
        return self._draw(random.randint, size, low, high, minval=low, maxval=high, dtype=dtype)

    def spawn(self, n_children: int) -> list:
        """That many new generators, independent of each other and of this one."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key((n_children,))]

    def split(self, num) -> StatefulPRNG:
        """An array of new generators (a number of them, or a shape), to map over with `vmap`."""
        shape = canonical_shape(num)
        return StatefulPRNG(self.key(shape), new_ref(jnp.zeros(shape, int)))


def stateful_rng(seed=None, *, impl: Any = None) -> StatefulPRNG:
    """Makes a random generator with state. Its methods take no keys: each draw uses the next one.

    Args:
        seed: an integer scalar. If it is left out, the seed comes from the operating system.
        impl: the implementation of random bits, as for `weft.random.key`.

    Returns:
        a `StatefulPRNG` with the methods `random`, `uniform`, `normal`, `integers`, `key`, `spawn` and `split`.

    Raises:
        TypeError: the seed is not one integer.

    Example:
        >>> from weft.experimental.random import stateful_rng
        >>> rng = stateful_rng(0)
        >>> bool(rng.uniform() == rng.uniform())
        False
    """
    if seed is None:
        seed = int.from_bytes(os.urandom(4), "little")
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


def __dir__() -> list[str]:
    return sorted(__all__)
