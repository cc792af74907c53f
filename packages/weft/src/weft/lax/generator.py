"""Random bits of `weft.lax`: XLA's own generators. Programs mostly want `weft.random`."""

from __future__ import annotations


from ..base import dtypes
from ..decompositions.uniform import rng_uniform_p
from ..primitives import generator as ops
from ..primitives.generator import RandomAlgorithm
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape
from ..transforms.auto_axes import takes_out_sharding
from .common import canonical_shape, on_device, operand

__all__ = ["RandomAlgorithm", "rng_bit_generator", "rng_uniform"]


@takes_out_sharding
def rng_bit_generator(
    key: ArrayLike,
    shape: Shape,
    dtype: DTypeLike = dtypes.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: OutSharding = None,
) -> tuple[Array, Array]:
    """Makes random bits and the next key, by Philox or Threefry; on every backend the same bits.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).

    Args:
        key: array of uint32, shape (4,), or of uint64, shape (2,): a key and a counter, the low word of each first.
        shape: the shape of the bits, a sequence of ints.
        dtype: uint8, uint16, uint32 or uint64, the dtype of the bits.
        algorithm: `lax.RandomAlgorithm`.
        out_sharding: `weft.NamedSharding` or `weft.P`: how the result is divided; None to leave it open.

    Returns:
        (key, bits): an array like key, and one of `dtype` and `shape`.

    Raises:
        TypeError: for another key or dtype.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import lax
        >>> key, bits = lax.rng_bit_generator(jnp.array([1, 2, 3, 4], 'uint32'), (5,))
        >>> key
        Array([1, 2, 5, 4], dtype=uint32)
    """
    return tuple(
        ops.rng_bit_generator(
            on_device(operand("rng_bit_generator", key)),
            canonical_shape(shape),
            dtypes.canonicalize(dtype),
            RandomAlgorithm(algorithm),
        )
    )


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Shape) -> Array:
    """Draws random numbers from [a, b) without a key: others in each run. `weft.random.uniform` is what programs mostly
    want.

    Args:
        a: scalar of integers or floats, the lower bound.
        b: scalar of the dtype of a, the upper bound.
        shape: the shape of the result, a sequence of ints.

    Returns:
        array of the dtype of a and `shape`.

    Raises:
        ValueError: if the bounds are no scalars of one integer or float dtype.

    Example:
        >>> from weft import lax
        >>> x = lax.rng_uniform(0.0, 1.0, (3,))
        >>> bool((x >= 0).all() and (x < 1).all())
        True
    """
    a, b = operand("rng_uniform", a), operand("rng_uniform", b)
    return rng_uniform_p.bind(a, b, shape=canonical_shape(shape))
