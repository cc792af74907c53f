"""Random keys: new-style ones (arrays with a dtype of their own) and raw ones (uint32 arrays)."""
from __future__ import annotations

import math
import operator

from .. import dtypes
from ..config import config
from ..core.jaxpr import TypedScalar
from ..core.trace import get_aval, is_array_like
from ..avals import shaped
from ..ops.linear import convert
from ..ops.random_bits import generators, random_fold_in_p, random_seed_p, random_split_p, random_unwrap_p, random_wrap_p


def _generator(spec):
    """The generator that `impl` names: a name, a key dtype, or None for the configured one."""
    if isinstance(spec, dtypes.KeyDType):
        return generators[spec.impl]
    name = config.default_prng_impl if spec is None else str(spec)
    if name not in generators:
        raise ValueError(f'unrecognized PRNG implementation "{name}". Did you mean one of: {", ".join(sorted(generators))}?')
    return generators[name]


def is_key(x) -> bool:
    return is_array_like(x) and dtypes.is_key(get_aval(x).dtype)


def _seed(seed, impl):
    if is_key(seed):
        raise TypeError("key accepts a scalar seed, but was given a key array. Use split or fold_in to make keys from a key.")
    if isinstance(seed, int) and not isinstance(seed, bool):
        wide = 64 if config.enable_x64 else 32
        if not -(1 << 63) <= seed < (1 << 64):
            raise OverflowError(f"the seed {seed} does not fit into 64 bits.")
        low = seed & ((1 << wide) - 1)
        seed = TypedScalar(low - (1 << wide) if low >> (wide - 1) else low, shaped((), dtypes.canonicalize(int)))
    aval = get_aval(seed)
    if not dtypes.is_int(aval.dtype):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}.")
    if aval.shape:
        raise TypeError(f"PRNGKey accepts a scalar seed, but was given an array of shape {aval.shape} != (). Use weft.vmap for batching.")
    return random_seed_p.bind(seed, impl=_generator(impl).dtype)


def key(seed, *, impl=None, dtype=None):
    """A random key from an integer seed.

    Args:
        seed: an integer scalar.
        impl: the generator; `jax_default_prng_impl` if None.

    Returns: an array of shape () whose dtype is that of the generator's keys.

    Example:
        >>> import weft
        >>> weft.random.uniform(weft.random.key(0), (2,))
        Array([0.947667 , 0.9785799], dtype=float32)
    """
    return _seed(seed, dtype if dtype is not None else impl)


def PRNGKey(seed, *, impl=None):
    """A raw random key (a uint32 array) from an integer seed: the old form of `key`.

    Example:
        >>> import weft
        >>> weft.random.PRNGKey(42)
        Array([ 0, 42], dtype=uint32)
    """
    made = _seed(seed, impl)
    return made if config.enable_custom_prng else random_unwrap_p.bind(made)


def key_data(keys):
    """The words of a key array: uint32 with one axis more."""
    return random_unwrap_p.bind(keys) if is_key(keys) else keys


def wrap_key_data(key_bits_array, *, impl=None):
    """The key array of raw words."""
    return random_wrap_p.bind(key_bits_array, impl=_generator(impl).dtype)


def key_impl(keys) -> str:
    """The name of the generator of a key array."""
    return get_aval(keys).dtype.impl


def clone(key):
    """The same key, marked as not consumed for the key-reuse checker."""
    return key


def typed(key, who: str, allow_batch: bool = False):
    """(new-style key, whether a raw one was given), checked."""
    if is_key(key):
        raw = False
    else:
        if not is_array_like(key):
            raise TypeError(f"unexpected PRNG key type {type(key)} for {who}; make one with weft.random.key(seed).")
        aval = get_aval(key)
        generator = _generator(None)
        if aval.dtype != dtypes.uint32 or not aval.shape or aval.shape[-1] != generator.dtype.key_shape[0]:
            raise TypeError(f"{who} got a raw key of type {aval.str_short()}; raw keys are uint32 arrays whose last axis has size {generator.dtype.key_shape[0]}.")
        key, raw = random_wrap_p.bind(key, impl=generator.dtype), True
    if not allow_batch and get_aval(key).shape:
        raise ValueError(f"{who} accepts a single key, but was given a key array of shape {get_aval(key).shape} != (). Use weft.vmap for batching.")
    return key, raw


def canonical_shape(shape) -> tuple:
    """A shape as a tuple of Python integers."""
    if isinstance(shape, int):
        return (shape,)
    try:
        return tuple(operator.index(n) for n in shape)
    except TypeError as e:
        raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {shape}. If using `jit`, try using `static_argnums`.") from e


def split(key, num=2):
    """New keys from a key.

    Args:
        key: a single key, new-style or raw.
        num: how many, or the shape of the array of keys.

    Example:
        >>> import weft
        >>> weft.random.split(weft.random.key(0), 3).shape
        (3,)
    """
    typed_key, raw = typed(key, "split")
    keys = random_split_p.bind(typed_key, shape=canonical_shape(num))
    return random_unwrap_p.bind(keys) if raw else keys


def fold_in(key, data):
    """A new key from a key and an integer.

    Example:
        >>> import weft
        >>> weft.random.fold_in(weft.random.PRNGKey(0), 7).shape
        (2,)
    """
    typed_key, raw = typed(key, "fold_in")
    aval = get_aval(data)
    if aval.shape:
        raise TypeError(f"fold_in accepts a scalar, but was given an array of shape {aval.shape} != (). Use weft.vmap for batching.")
    if not (dtypes.is_int(aval.dtype) or dtypes.is_bool(aval.dtype)):
        raise TypeError(f"fold_in takes an integer, got {dtypes.name(aval.dtype)}.")
    keys = random_fold_in_p.bind(typed_key, convert(data if not isinstance(data, int) else data & 0xFFFFFFFF, dtypes.uint32))
    return random_unwrap_p.bind(keys) if raw else keys


def size_of(shape) -> int:
    return math.prod(shape)
