"""Random keys: making, splitting, wrapping. Raw keys (uint32 words) are accepted everywhere, and stay raw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ..base import dtypes
from ..base.avals import shaped
from ..base.config import config
from ..core.jaxpr import TypedScalar
from ..core.trace import get_aval
from ..base.errors import at_user_line, warn
from ..base.host import from_flat
from ..lax.common import canonical_shape, operand
from ..decompositions import uniform as _uniform  # noqa: F401  rng_uniform
from ..primitives import generator as _more_generators  # noqa: F401  rbg and unsafe_rbg
from ..primitives import linear
from ..primitives.random_bits import (
    generators,
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)
from ..primitives.shape import slice_p
from ..runtime import dispatch
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape
from ..transforms.auto_axes import takes_out_sharding

if TYPE_CHECKING:
    from ..core.types import Value
    from ..primitives.random_bits import Generator

# A generator is given by its name or the dtype of its keys; None is the configured one.
Implementation: TypeAlias = str | dtypes.KeyDType | None

__all__ = ["PRNGKey", "bits", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data"]


def _generator(impl: Any) -> Generator:
    """The generator that a name, a key's dtype or None (the configured one) stands for."""
    if impl is None:
        impl = config.default_prng_impl
    if isinstance(impl, dtypes.KeyDType):
        impl = impl.impl
    name = getattr(impl, "name", impl)
    for generator in generators.values():
        if name in (generator.name, generator.dtype.name, generator.dtype.name.removeprefix("key<").removesuffix(">")):
            return generator
    raise ValueError(
        at_user_line(
            f"unknown random generator {impl!r}; generators are {', '.join(generators)}. Name one of them, or leave"
            " impl out."
        )
    )


def _seeded(name: str, seed: Value, impl: Implementation) -> Value:
    seed = operand(name, seed, any_int=True)
    if config.random_seed_offset:
        seed = seed + config.random_seed_offset
    aval = get_aval(seed) if not isinstance(seed, int) or isinstance(seed, bool) or -(2**31) <= seed < 2**31 else None
    if aval is None:  # the two words of a Python int wider than int32
        return _wide_seed(seed, impl)
    if dtypes.is_bool(aval.dtype):
        seed = linear.convert(seed, dtypes.int32)
    elif not dtypes.is_int(aval.dtype):
        raise TypeError(f"{name}: a seed is an integer, got {aval}.")
    if aval.shape:
        raise TypeError(
            f"{name} takes one seed, got an array of shape {aval.shape}. Use weft.vmap(weft.random.key) for many."
        )
    return random_seed_p.bind(seed, impl=_generator(impl).dtype)


def _wide_seed(seed: int, impl: Implementation) -> Value:
    """A seed that needs 64 bits: with 64-bit types off only its low word counts, as in JAX."""
    dtype = dtypes.dtype("uint64") if config.enable_x64 else dtypes.uint32
    low = seed & ((1 << dtypes.bits(dtype)) - 1)
    return random_seed_p.bind(dispatch.put(from_flat([low], (), dtype)), impl=_generator(impl).dtype)


def key(seed: int | ArrayLike, *, impl: Implementation = None, dtype: Implementation = None) -> Array:
    """A new-style random key from an integer seed.

    Args:
        seed: integer, or scalar array of integers.
        impl: name of a generator: 'threefry2x32', 'rbg' or 'unsafe_rbg'; None for the configured one.
        dtype: dtype of keys, in place of impl; None for none.

    Returns:
        array of keys, a scalar.

    Raises:
        TypeError: if the seed is not one integer.

    Example:
        >>> import weft
        >>> weft.random.key(0).dtype
        key<fry>
    """
    return _seeded("key", seed, dtype if impl is None else impl)


def PRNGKey(seed: int | ArrayLike, *, impl: Implementation = None) -> Array:
    """A raw random key (two uint32 words) from an integer seed.

    Args:
        seed: integer, or scalar array of integers.
        impl: name of a generator: 'threefry2x32', 'rbg' or 'unsafe_rbg'; None for the configured one.

    Returns:
        array of uint32, shape (2,), or (4,) of the generators 'rbg' and 'unsafe_rbg'.

    Raises:
        TypeError: if the seed is not one integer.

    Example:
        >>> import weft
        >>> weft.random.PRNGKey(3)
        Array([0, 3], dtype=uint32)
    """
    made = _seeded("PRNGKey", seed, impl)
    return made if config.enable_custom_prng else random_unwrap_p.bind(made)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: Implementation = None, dtype: Implementation = None) -> Array:
    """Raw words (uint32, the last axis of the generator's size) as a new-style key array.

    Args:
        key_bits_array: array of uint32, shape (..., words).
        impl: name of a generator: 'threefry2x32', 'rbg' or 'unsafe_rbg'; None for the configured one.
        dtype: dtype of keys, in place of impl; None for none.

    Returns:
        array of keys, shape (...).

    Raises:
        TypeError: for another dtype, or a last axis of another size.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.random.wrap_key_data(jnp.array([0, 3], 'uint32')).shape
        ()
    """
    raw = operand("wrap_key_data", key_bits_array)
    generator = _generator(dtype if impl is None else impl)
    aval = get_aval(raw)
    if aval.dtype != dtypes.uint32 or not aval.shape or aval.shape[-1:] != generator.dtype.key_shape:
        raise TypeError(
            f"key data for {generator.name} is uint32 with a last axis of size {generator.dtype.key_shape[0]}, got"
            f" {aval}."
        )
    return random_wrap_p.bind(raw, impl=generator.dtype)


def key_data(keys: ArrayLike) -> Array:
    """The raw words of keys.

    Args:
        keys: array of keys, any shape; raw words stay as they are.

    Returns:
        array of uint32, shape (..., words).

    Example:
        >>> import weft
        >>> weft.random.key_data(weft.random.key(3))
        Array([0, 3], dtype=uint32)
    """
    keys, _ = as_key("key_data", keys, single=False)
    return random_unwrap_p.bind(keys)


def key_impl(keys: ArrayLike) -> str:
    """The name of the generator of keys.

    Args:
        keys: array of keys, any shape.

    Returns:
        str, or the specification of a generator.

    Example:
        >>> import weft
        >>> weft.random.key_impl(weft.random.key(3))
        'threefry2x32'
    """
    keys, _ = as_key("key_impl", keys, single=False)
    dtype: Any = get_aval(keys).dtype  # of keys
    return dtype.impl


def key_dtype(impl_spec: Implementation = None) -> dtypes.KeyDType:
    """The dtype of keys of a generator: of that name, or of the configured one.

    Args:
        impl_spec: name of a generator, a key or a specification; None for the configured one.

    Returns:
        dtype of keys, for arrays of any shape.

    Example:
        >>> import weft
        >>> weft.random.key_dtype("rbg")
        key<rbg>
    """
    return _generator(impl_spec).dtype


def as_key(name: str, keys: Any, single: bool = True) -> Any:
    """(new-style keys, whether the argument was raw). Raises TypeError for anything that is not a key."""
    keys = operand(name, keys)
    aval = get_aval(keys)
    raw = not dtypes.is_key(aval.dtype)
    if raw:
        generator = _generator(None)
        if aval.dtype != dtypes.uint32 or aval.shape[-1:] != generator.dtype.key_shape:
            raise TypeError(
                at_user_line(
                    f"{name} takes a random key (weft.random.key(seed)) or raw uint32 key data, got {aval}. Make a key"
                    " of the seed first."
                )
            )
        if config.legacy_prng_key != "allow":
            message = at_user_line(
                f"{name} got raw uint32 key data, and jax_legacy_prng_key is {config.legacy_prng_key!r}. Make keys with"
                " weft.random.key(seed), or wrap these words with weft.random.wrap_key_data."
            )
            if config.legacy_prng_key == "error":
                raise ValueError(message)
            warn(message, FutureWarning)
        keys = random_wrap_p.bind(keys, impl=generator.dtype)
        aval = get_aval(keys)
    if single and aval.shape:
        raise ValueError(
            at_user_line(
                f"{name} takes one key, and this is an array of keys of shape {aval.shape}. Map over it:"
                f" weft.vmap(lambda key: weft.random.{name}(key, …))(keys)."
            )
        )
    return keys, raw


def clone(key: ArrayLike) -> Array:
    """The same key, as one that is not consumed yet where `jax_debug_key_reuse` watches: for numbers that are meant to
    repeat.

    Args:
        key: array of keys, any shape.

    Returns:
        array of keys, the shape of key.

    Example:
        >>> import weft
        >>> key = weft.random.key(0)
        >>> bool(weft.random.normal(key) == weft.random.normal(weft.random.clone(key)))
        True
    """
    keys, raw = as_key("clone", key, single=False)
    out = random_clone_p.bind(keys)
    return random_unwrap_p.bind(out) if raw else out


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """`num` new independent keys (a number, or a shape).

    Args:
        key: random key, a scalar.
        num: int or sequence of ints: how many.

    Returns:
        array of keys of that shape; of raw keys their words, with one axis more.

    Raises:
        ValueError: for an array of keys.

    Example:
        >>> import weft
        >>> weft.random.split(weft.random.PRNGKey(0)).shape
        (2, 2)
    """
    keys, raw = as_key("split", key)
    out = random_split_p.bind(keys, shape=canonical_shape(num))
    return random_unwrap_p.bind(out) if raw else out


def halves(key: Any) -> Any:
    """Two new keys of a new-style key."""
    both = random_split_p.bind(key, shape=(2,))
    pick = lambda i: linear.squeeze(slice_p.bind(both, start_indices=(i,), limit_indices=(i + 1,), strides=(1,)), (0,))
    return pick(0), pick(1)


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key from a key and an integer.

    Args:
        key: random key, a scalar.
        data: integer, or scalar array of integers.

    Returns:
        array of keys, a scalar.

    Raises:
        ValueError: for an array of keys.

    Example:
        >>> import weft
        >>> weft.random.fold_in(weft.random.PRNGKey(0), 1).shape
        (2,)
    """
    keys, raw = as_key("fold_in", key)
    given: Any = operand("fold_in", data, any_int=True)
    if isinstance(given, int) and not isinstance(given, bool):
        if not 0 <= given < 2**32:
            raise OverflowError(f"fold_in: Python integer {given} is out of bounds for uint32.")
        given = TypedScalar(given, shaped((), dtypes.uint32))
    elif get_aval(given).shape:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {get_aval(given).shape}. Use weft.vmap for"
            " batching."
        )
    out = random_fold_in_p.bind(keys, linear.convert(given, dtypes.uint32))
    return random_unwrap_p.bind(out) if raw else out


def raw_bits(key: Any, bit_width: int, shape: Any) -> Any:
    """Random unsigned integers of a width from a new-style key."""
    return random_bits_p.bind(key, bit_width=bit_width, shape=shape)


@takes_out_sharding
def bits(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """Uniform random unsigned integers (uint32 by default).

    Args:
        key: random key, one or an array of them under vmap.
        shape: int or sequence of ints, the shape of the result.
        dtype: dtype of unsigned integers; None for uint32.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: for other dtypes.

    Example:
        >>> import weft
        >>> weft.random.bits(weft.random.key(0), (2,)).dtype
        dtype('uint32')
    """
    keys, _ = as_key("bits", key)
    dt = dtypes.canonicalize(
        "uint64" if dtype is None and config.enable_x64 else dtypes.uint32 if dtype is None else dtype
    )
    if not dtypes.is_unsigned(dt):
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {dtypes.name(dt)}.")
    return raw_bits(keys, dtypes.bits(dt), canonical_shape(shape))
