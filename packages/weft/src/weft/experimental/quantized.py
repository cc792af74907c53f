"""Matrices of integers of 8 or 4 bits with scales, for weights that a model only reads: a quarter or an eighth of the
memory of float32. They go wherever trees of arrays go, and are multiplied without being written out as floats.

Numbers that lie in one block along an axis share a scale, so that the largest of them becomes 127 or 7; each is then
off by half a scale at most. The axis is the one over which products sum. A byte holds two numbers of 4 bits: one of the
first half of that axis, and the one at its place in the second half.

Example:
    >>> import weft.numpy as jnp
    >>> from weft.experimental import quantized
    >>> w = quantized.quantize(jnp.array([[127.0, 0.0], [1.0, 2.0]]))
    >>> w
    QuantizedArray(shape=(2, 2), bits=8, dtype=float32)
    >>> jnp.ones(2) @ w
    Array([128.,   2.], dtype=float32)

Sources: Jacob and others, Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference
(2018); Dettmers and Zettlemoyer, The case for 4-bit precision: k-bit Inference Scaling Laws (2023), for blocks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from .. import numpy as jnp
from ..base import dtypes
from ..base.annotations import override
from ..base.errors import at_user_line
from ..base.source_info import api_boundary
from ..base.registration import register_dataclass
from ..base.tree import tree_map_with_path
from ..typing import Array, ArrayLike

__all__ = ["QuantizedArray", "matmul", "quantize", "quantize_tree"]

_FEW = 8  # rows, up to which a product goes block by block: it would make more of the weights than of the products


@register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class QuantizedArray:
    """Numbers of 8 or 4 bits, each times the scale of its block. `quantize` makes it; it is a pytree of two arrays.

    `x @ w` is `matmul(x, w)`, `w.T` its transpose, `w[i]` what lies at places of its leading axes, as a
    QuantizedArray. Other functions take what `dequantize` gives.

    Args:
        values: the numbers; array of int8 (..., k, n), or (..., k / 2, n) with two to a byte.
        scales: array of floats (..., blocks, n), whose dtype is that of the array.
        bits: 8 or 4.
        axis: along which numbers share scales, -2 as in these shapes, or -1.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import quantized
        >>> w = quantized.quantize(jnp.eye(4), bits=4)
        >>> w.nbytes, w.shape, w.dequantize()[0]
        (24, (4, 4), Array([1., 0., 0., 0.], dtype=float32))
    """

    values: Array
    scales: Array
    bits: int = dataclasses.field(metadata={"static": True})
    axis: int = dataclasses.field(metadata={"static": True})
    __array_ufunc__ = None  # NumPy's arrays leave `x @ w` to this class

    @override
    def __repr__(self) -> str:
        return f"QuantizedArray(shape={self.shape}, bits={self.bits}, dtype={dtypes.name(self.dtype)})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array for which this stands."""
        shape = list(self.values.shape)
        shape[self.axis] *= 8 // self.bits
        return tuple(shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """Of the array for which this stands."""
        return self.scales.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers and their scales."""
        return int(self.values.nbytes + self.scales.nbytes)

    @property
    def T(self) -> QuantizedArray:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(at_user_line(f"QuantizedArray.T is of matrices; this has shape {self.shape}."))
        return QuantizedArray(self.values.T, self.scales.T, self.bits, -3 - self.axis)

    def __getitem__(self, index: Any) -> QuantizedArray:
        entries = index if isinstance(index, tuple) else (index,)
        axes = 0
        for e in entries:
            axes += jnp.ndim(e) if dtypes.is_bool(getattr(e, "dtype", dtypes.int32)) else 1
        if any(e is None or e is ... for e in entries) or axes > self.ndim + self.axis:
            raise IndexError(
                at_user_line(
                    f"QuantizedArray[…] indexes the axes before axis {self.axis} of shape {self.shape}, along which"
                    " numbers share scales; dequantize() gives an array that takes any index."
                )
            )
        return QuantizedArray(self.values[index], self.scales[index], self.bits, self.axis)

    def dequantize(self) -> Array:
        """The array for which this stands.

        Returns:
            array of `shape` and `dtype`.

        Example:
            >>> import weft.numpy as jnp
            >>> from weft.experimental import quantized
            >>> quantized.quantize(jnp.array([[127.0], [-63.5]])).dequantize().ravel()
            Array([127., -64.], dtype=float32)
        """
        numbers = jnp.concatenate([n for n in self._halves()], axis=self.axis).astype(self.dtype)
        if self.scales.shape[self.axis] == 1:
            return numbers * self.scales
        blocks = _split(numbers, self.axis, self.scales.shape[self.axis])
        return (blocks * jnp.expand_dims(self.scales, self.axis)).reshape(self.shape)

    def __matmul__(self, y: ArrayLike) -> Array:
        return self.dequantize() @ y

    def __rmatmul__(self, x: ArrayLike) -> Array:
        return matmul(x, self)

    def _halves(self) -> list[Array]:
        """The numbers, as arrays that follow each other along the axis."""
        if self.bits == 8:
            return [self.values]
        four = jnp.int8(4)
        return [(self.values << four) >> four, self.values >> four]


def _split(x: Array, axis: int, count: int) -> Array:
    """An axis as two: blocks, and what is in them."""
    shape = list(x.shape)
    at = axis % x.ndim
    return x.reshape(*shape[:at], count, shape[at] // count, *shape[at + 1 :])


def _added(parts: list[Array]) -> Array:
    """The sum of one array, or of two."""
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@api_boundary
def quantize(x: ArrayLike, bits: int = 8, *, axis: int = -2, block: int | None = None) -> QuantizedArray:
    """Rounds an array to integers of 8 or 4 bits and scales.

    Args:
        x: floating-point array of two or more axes (..., k, n): weights that stand on the right of products.
        bits: 8 (numbers from -127 to 127) or 4 (-7 to 7).
        axis: along which numbers share scales: -2, over which `y @ x` sums, or -1, over which `y @ x.T` does: tables of
            embeddings, of which rows are read too.
        block: how many numbers share a scale, int; None for all along the axis. 32 to 128 make 4 bits good enough for
            most models, for one scale of the dtype of x in so many numbers.

    Returns:
        QuantizedArray: stands for an array of the shape and dtype of x, which differs from x by half a scale at most:
        the largest magnitude of the block, divided by 254 or 14.

    Raises:
        TypeError: if x is no array of floating-point numbers.
        ValueError: if x has too few axes, for other bits or axes, and if the blocks do not divide the axis (with 4
            bits: each half of it).

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import quantized
        >>> quantized.quantize(jnp.ones((64, 8)), bits=4, block=32).nbytes
        320
    """
    x = jnp.asarray(x)
    if not dtypes.is_float(x.dtype):
        raise TypeError(at_user_line(f"quantize takes floating-point numbers, got {dtypes.name(x.dtype)}."))
    if bits not in (4, 8) or axis not in (-1, -2):
        raise ValueError(at_user_line(f"quantize: bits are 8 or 4 and axis is -2 or -1, got {bits} and {axis}."))
    if x.ndim < 2:
        raise ValueError(at_user_line(f"quantize takes arrays (..., k, n), got shape {x.shape}."))
    size = x.shape[axis]
    halves = 8 // bits
    block = size if block is None else block
    if block < 1 and size or size % halves or (block < size or halves == 1) and block and size // halves % block:
        parts = "" if bits == 8 else " into two halves of whole blocks"
        raise ValueError(
            at_user_line(
                f"quantize: blocks of {block} do not divide axis {axis} of shape {x.shape}{parts}. Choose another"
                " block, or pad x with zeros."
            )
        )
    most = 127 if bits == 8 else 7
    blocks = _split(x, axis, size // block if size else 1)
    scales = jnp.max(jnp.abs(blocks), axis=axis, initial=0) / most
    divisors = jnp.expand_dims(jnp.where(scales == 0, 1, scales), axis)
    numbers = jnp.clip(jnp.round(blocks / divisors), -most, most).astype(jnp.int8).reshape(x.shape)
    if bits == 4:
        low, high = jnp.split(numbers, 2, axis=axis)
        numbers = (low & jnp.int8(15)) | (high << jnp.int8(4))
    return QuantizedArray(numbers, scales.astype(x.dtype), bits, axis)


@api_boundary
def quantize_tree(
    tree: Any,
    bits: int = 8,
    *,
    axis: int = -2,
    block: int | None = None,
    where: Callable[[Any, Any], bool] | None = None,
) -> Any:
    """Quantizes the matrices of a tree, such as the weights of a model.

    Args:
        tree: pytree of arrays.
        bits, axis, block: as of `quantize`.
        where: function of the path and the leaf, which says whether to quantize it; None for the floating-point arrays
            of two or more axes.

    Returns:
        the tree with QuantizedArrays in the place of these leaves.

    Raises:
        ValueError: what `quantize` raises, for one of the leaves.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import quantized
        >>> quantized.quantize_tree({"w": jnp.ones((2, 2)), "b": jnp.zeros(2)})
        {'b': Array([0., 0.], dtype=float32), 'w': QuantizedArray(shape=(2, 2), bits=8, dtype=float32)}
    """

    def wanted(path: Any, leaf: Any) -> bool:
        return jnp.ndim(leaf) > 1 and dtypes.is_float(jnp.asarray(leaf).dtype)

    chosen = where or wanted
    return tree_map_with_path(
        lambda path, leaf: quantize(leaf, bits, axis=axis, block=block) if chosen(path, leaf) else leaf, tree
    )


@api_boundary
def matmul(x: ArrayLike, w: QuantizedArray) -> Array:
    """The product of an array with a quantized one. `x @ w` is the same.

    Args:
        x: floating-point array of shape (k,) or (..., m, k).
        w: QuantizedArray of shape (..., k, n).

    Returns:
        array (..., m, n), or (..., n) where x has one axis, of the dtype to which those of x and w promote. Numbers of
        16 bits are summed in float32.

    Raises:
        TypeError: if w is no QuantizedArray.
        ValueError: if the sizes of the contracted axes differ.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import quantized
        >>> quantized.matmul(jnp.array([[1.0, 2.0]]), quantized.quantize(jnp.array([[7.0], [-7.0]]), bits=4))
        Array([[-7.]], dtype=float32)
    """
    if not isinstance(w, QuantizedArray):
        raise TypeError(at_user_line(f"matmul takes a QuantizedArray on its right, got {type(w).__name__}."))
    x = jnp.asarray(x)
    if not x.ndim or x.shape[-1] != w.shape[-2]:
        raise ValueError(at_user_line(f"matmul: {x.shape} @ {w.shape} don't fit: k differs."))
    dtype = jnp.result_type(x.dtype, w.dtype)
    wide = dtype if dtypes.itemsize(dtype) >= 4 else jnp.float32
    x = x.astype(dtype)
    if x.ndim == 1:
        return matmul(x[None], w)[..., 0, :]
    product = lambda a, b: jnp.matmul(a, b.astype(dtype), preferred_element_type=wide)
    blocks = w.scales.shape[-2]
    if w.axis == -1 or w.ndim > 2 or blocks > 1 and math.prod(x.shape[:-1]) > _FEW:
        return product(x, w.dequantize()).astype(dtype)
    halves = w._halves()
    if blocks == 1:
        if math.prod(x.shape[:-1]) > _FEW:
            halves = [jnp.concatenate(halves)]
        sums = [product(a, b) for a, b in zip(jnp.split(x, len(halves), axis=-1), halves)]
        return (_added(sums) * w.scales.astype(wide)).astype(dtype)
    # What the blocks sum to is little beside the weights: these are read once, as they are.
    count = blocks // len(halves)
    totals = []
    for a, b, scales in zip(jnp.split(x, len(halves), axis=-1), halves, jnp.split(w.scales, len(halves))):
        each = jnp.einsum(
            "...gk,gkn->...gn",
            _split(a, -1, count),
            _split(b, -2, count).astype(dtype),
            preferred_element_type=wide,
        )
        totals.append((each * scales.astype(wide)).sum(-2))
    return _added(totals).astype(dtype)


def __dir__() -> list[str]:
    return [*__all__]
