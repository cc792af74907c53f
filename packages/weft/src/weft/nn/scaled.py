"""Products of matrices of narrow numbers, each block of which has a scale: the OCP microscaling format MXFP8, and
NVFP4.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes, limits
from ..higher_order.custom_vjp import custom_vjp
from ..base.errors import at_user_line
from ..lax.dots import DotDimensionNumbers, dot_general
from ..numpy.util import on_device, operand
from ..numpy.ufuncs import _clip
from ..primitives import elementwise as el, bitwise
from ..primitives import linear
from ..primitives.reduce import reduce_max
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import pad
from ..typing import Array, ArrayLike, DTypeLike

if TYPE_CHECKING:
    from ..core.types import Value
    from ..base.dtypes import ElementType

__all__ = ["get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"]


@dataclasses.dataclass
class BlockScaleConfig:
    """How an operand is quantized: blocks of `block_size` numbers along the contracted axis share a scale."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool = False


def get_scaled_dot_general_config(mode: str, global_scale: ArrayLike | None = None) -> BlockScaleConfig:
    """The configuration of an operand of `scaled_dot_general`.

    'mxfp8': float8_e4m3fn in blocks of 32 with scales of float8_e8m0fnu. 'nvfp4': float4_e2m1fn in blocks of 16 with
    scales of float8_e4m3fn, times `global_scale` (an array of one float32, 1 by default).

    Args:
        mode: 'nvfp4' or 'mxfp8'.
        global_scale: array of float32, a scalar; None for 1.

    Returns:
        `ScaledDotConfig`: the dtype and size of blocks, and of their scales.

    Raises:
        ValueError: for another mode.

    Example:
        >>> import weft
        >>> weft.nn.get_scaled_dot_general_config("mxfp8").block_size
        32
    """
    if mode == "nvfp4":
        scale = linear.full((1,), 1, dtypes.float32) if global_scale is None else global_scale
        return BlockScaleConfig(
            mode, 16, dtypes.dtype("float4_e2m1fn"), dtypes.dtype("float8_e4m3fn"), on_device(scale)
        )
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, dtypes.dtype("float8_e4m3fn"), dtypes.dtype("float8_e8m0fnu"), None)
    raise ValueError(at_user_line(f"get_scaled_dot_general_config: mode is 'nvfp4' or 'mxfp8', got {mode!r}."))


def _spread(x: Value, scales: Value, dt: ElementType) -> Value:
    """Numbers (batch, rows, k) times the scales (batch, rows, blocks) of their blocks."""
    b, rows, k = shape_of(x)
    blocks = shape_of(scales)[2]
    wide = linear.broadcast_in_dim(linear.convert(scales, dt), (b, rows, blocks, k // blocks), (0, 1, 2))
    return el.mul(linear.convert(x, dt), linear.reshape(wide, (b, rows, k)))


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = dtypes.float32,
) -> Array:
    """lhs rhsᵀ for matrices (batch, m, k) and (batch, n, k) whose blocks along k are multiplied by scales (batch, m,
    blocks) and (batch, n, blocks).

    The result, of shape (batch, m, n), is accumulated in float32.

    Args:
        lhs: array of narrow floats, shape (batch, m, k).
        rhs: array of narrow floats, shape (batch, n, k).
        lhs_scales: array of floats, shape (batch, m, blocks).
        rhs_scales: array of floats, shape (batch, n, blocks).
        preferred_element_type: dtype of the result.

    Returns:
        array of that dtype, shape (batch, m, n).

    Raises:
        ValueError: for arrays of another rank, or sizes that do not fit.

    Source: Open Compute Project, "OCP microscaling formats (MX) specification" (2023).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> lhs, rhs = jnp.ones((1, 2, 4)), jnp.ones((1, 3, 4))
        >>> weft.nn.scaled_matmul(lhs, rhs, jnp.full((1, 2, 2), 2.), jnp.ones((1, 3, 2)))[0, 0]
        Array([8., 8., 8.], dtype=float32)
    """
    arrays = [on_device(operand("scaled_matmul", x)) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    a, b, s, t = [shape_of(x) for x in arrays]
    if any(len(x) != 3 for x in (a, b, s, t)):
        raise ValueError(
            at_user_line(f"scaled_matmul takes arrays of rank 3, got shapes {a}, {b} and scales {s}, {t}.")
        )
    if (a[0], a[2]) != (b[0], b[2]):
        raise ValueError(
            at_user_line(
                f"scaled_matmul: lhs (batch, m, k) and rhs (batch, n, k) have one batch and k, got {a} and {b}."
            )
        )
    if s[2] != t[2] or s[:2] != a[:2] or t[:2] != b[:2] or not s[2] or a[2] % s[2]:
        raise ValueError(
            at_user_line(
                "scaled_matmul: scales (batch, m, blocks) and (batch, n, blocks) have as many blocks, which divide k;"
                f" got {s} and {t} for {a} and {b}."
            )
        )
    l, r = [_spread(x, y, dtypes.float32) for x, y in (arrays[0::2], arrays[1::2])]
    return linear.convert(
        dot_general(l, r, (((2,), (2,)), ((0,), (0,))), preferred_element_type=dtypes.float32),
        dtypes.canonicalize(preferred_element_type),
    )


def quantize(x: Any, config: BlockScaleConfig) -> Any:
    """(numbers, scales) of an array (batch, rows, k), with zeros at the end of an incomplete block.

    The largest number of a block becomes the largest that the narrow dtype has, or less than twice smaller."""
    b, rows, k = shape_of(x)
    size = config.block_size
    if k % size:
        x, k = pad(x, linear.convert(0, dtype_of(x)), ((0, 0, 0), (0, 0, 0), (0, -k % size, 0))), k + -k % size
    most = float(limits.finfo(config.data_type).max)
    blocks = linear.reshape(linear.convert(x, dtypes.float32), (b, rows, k // size, size))
    top = reduce_max(el.abs_(blocks), (3,)) / most
    if config.mode == "mxfp8":  # up to a power of two, whose exponent is the scale
        words = bitwise.bitcast(top, dtypes.uint32)
        exponent = bitwise.shift_right_logical(words, scalar_like(words, 23))
        fraction = el.and_(words, scalar_like(words, (1 << 23) - 1))
        up = (fraction > 0) & (exponent != 254) & el.not_((exponent == 0) & (fraction <= 1 << 22))
        exponent = el.select(up, exponent + 1, exponent)
        scales = bitwise.bitcast(linear.convert(exponent, dtypes.dtype("uint8")), config.scale_type)
    else:
        scales = linear.convert(
            _clip(top / config.global_scale, 0.0, float(limits.finfo(config.scale_type).max)), config.scale_type
        )
    wide = linear.convert(scales, dtypes.float32)
    if config.global_scale is not None:
        wide = wide * config.global_scale
    zero = el.eq(wide, scalar_like(wide, 0))
    safe = linear.expand_dims(el.select(zero, linear.full(shape_of(wide), 1, dtypes.float32), wide), (3,))
    numbers = linear.convert(_clip(el.div(blocks, safe), -most, most), config.data_type)
    return linear.reshape(numbers, (b, rows, k)), scales


def _quantized_matmul(
    a: Value, b: Value, first: BlockScaleConfig, second: BlockScaleConfig, dtype: ElementType
) -> Value:
    """a bᵀ of matrices (batch, m, k) and (batch, n, k), each quantized along k."""
    (x, s), (y, t) = quantize(a, first), quantize(b, second)
    out = scaled_matmul(x, y, s, t)
    for config in (first, second):
        out = out if config.global_scale is None else out * config.global_scale
    return linear.convert(out, dtype)


def _matrices(x: Value, contract: Sequence[int], batch: Sequence[int]) -> tuple[Value, Value, Value]:
    """(the array as (batch, rows, k), the sizes of its batch axes and of its rows)."""
    shape = shape_of(x)
    rows = [d for d in range(len(shape)) if d not in contract and d not in batch]
    sizes = [tuple(shape[d] for d in axes) for axes in (batch, rows, contract)]
    return (
        linear.reshape(linear.transpose(x, (*batch, *rows, *contract)), tuple(map(math.prod, sizes))),
        sizes[0],
        sizes[1],
    )


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: DTypeLike = dtypes.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """`lax.dot_general` of operands quantized in blocks along the contracted axes; without `configs`, `lax.dot_general`
    itself.

    `configs` are those of lhs, rhs and the cotangent (get_scaled_dot_general_config): derivatives are products of
    quantized operands too.

    Args:
        lhs, rhs: array of floats, any shape.
        dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)).
        preferred_element_type: dtype of the result.
        configs: three configurations, for lhs, rhs and the cotangent; None for plain products.
        implementation: None or 'xla': the way that every backend has.

    Returns:
        array of that dtype: the batch axes, then the other axes of lhs and of rhs.

    Raises:
        ValueError: for other than three configurations, or another implementation. RuntimeError: for 'cudnn', which is
            not there.

    Source: Open Compute Project, "OCP microscaling formats (MX) specification" (2023).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> config = weft.nn.get_scaled_dot_general_config("mxfp8")
        >>> lhs, rhs = jnp.ones((2, 32)), jnp.ones((3, 32))
        >>> weft.nn.scaled_dot_general(lhs, rhs, (((1,), (1,)), ((), ())), configs=[config] * 3).shape
        (2, 3)
    """
    if implementation not in (None, "cudnn"):
        raise ValueError(
            at_user_line(f"scaled_dot_general: implementation is 'cudnn' or None, got {implementation!r}.")
        )
    if implementation == "cudnn":
        raise RuntimeError(at_user_line("scaled_dot_general: cuDNN is not detected. Leave `implementation` out."))
    dtype = dtypes.canonicalize(preferred_element_type)
    if configs is None:
        return dot_general(lhs, rhs, dimension_numbers, preferred_element_type=dtype)
    if len(configs) != 3:
        raise ValueError(
            at_user_line(f"scaled_dot_general: configs are those of lhs, rhs and the cotangent, got {len(configs)}.")
        )
    for_lhs, for_rhs, for_cotangent = configs
    (l_contract, r_contract), (l_batch, r_batch) = [tuple(map(tuple, pair)) for pair in dimension_numbers]
    a, batch, rows = _matrices(on_device(operand("scaled_dot_general", lhs)), l_contract, l_batch)
    b, _, columns = _matrices(on_device(operand("scaled_dot_general", rhs)), r_contract, r_batch)

    @custom_vjp
    def product(a: Value, b: Value) -> Value:
        return _quantized_matmul(a, b, for_lhs, for_rhs, dtype)

    def backward(kept: Sequence[Value], ct: Value) -> tuple[Value, Value]:
        a, b = kept
        swap = lambda x: linear.transpose(x, (0, 2, 1))
        return (
            _quantized_matmul(ct, swap(b), for_cotangent, for_rhs, dtype_of(a)),
            _quantized_matmul(swap(ct), swap(a), for_cotangent, for_lhs, dtype_of(b)),
        )

    product.defvjp(lambda a, b: (product(a, b), (a, b)), backward)
    return linear.reshape(product(a, b), (*batch, *rows, *columns))
