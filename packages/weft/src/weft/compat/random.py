"""jax.extend.random: the generators behind random keys, and how to define one."""

from __future__ import annotations

from typing import Callable

from ..base import dtypes
from ..core.trace import get_aval
from ..numpy.creation import asarray as as_array
from ..numpy import concatenate
from ..primitives.random_bits import (
    Generator,
    add_generator,
    generators,
    random_seed_p,
    threefry2x32_p as threefry2x32_p,
)
from ..random.keys import _generator
from ..api.vmap import vmap

threefry_prng_impl, rbg_prng_impl, unsafe_rbg_prng_impl = (
    _generator(name) for name in ("threefry2x32", "rbg", "unsafe_rbg")
)
PRNGImpl = Generator


def random_seed(seeds, impl: Generator):
    """Keys of a generator from integers of any shape."""
    return random_seed_p.bind(as_array(seeds), impl=impl.dtype)


def seed_with_impl(impl: Generator, seed):
    return random_seed(seed, impl)


def threefry_2x32(keypair, count):
    """The hash of an array of an even number of counters under a key, (2,)."""
    flat = as_array(count).ravel()
    half = flat.size // 2
    first, second = threefry2x32_p.bind(
        *[as_array(keypair)[i] + flat[:half] * 0 for i in (0, 1)], flat[:half], flat[half:]
    )
    return concatenate([first, second]).reshape(get_aval(count).shape)


def define_prng_impl(
    *,
    key_shape: tuple,
    seed: Callable,
    split: Callable,
    random_bits: Callable,
    fold_in: Callable,
    name: str = "<unnamed>",
    tag: str = "?",
) -> Generator:
    """A generator that the user defines, which `weft.random.key(seed, impl=…)` takes.

    Args:
        seed, split, random_bits, fold_in: what it computes from one integer, or from one key of `key_shape` in uint32.
    Raises:
        ValueError: if there is a generator of this name already.
    """
    if name in generators:
        raise ValueError(f"define_prng_impl: there is a generator {name!r} already; give this one another name.")
    rank = len(key_shape)

    def over(fun: Callable, axes: int) -> Callable:
        for _ in range(axes):
            fun = vmap(fun)
        return fun

    leading = lambda raw: len(get_aval(raw).shape) - rank
    return add_generator(
        Generator(
            name,
            dtypes.KeyDType(name, tag, tuple(key_shape)),
            lambda s: over(seed, len(get_aval(s).shape))(s),
            lambda raw, shape: over(lambda k: split(k, shape), leading(raw))(raw),
            lambda raw, bit_width, shape: over(lambda k: random_bits(k, bit_width, shape), leading(raw))(raw),
            lambda raw, data: over(fold_in, leading(raw))(raw, data),
        )
    )
