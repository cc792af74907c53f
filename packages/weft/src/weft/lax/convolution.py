"""Convolutions of `weft.lax`."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, Sequence

from ..base import dtypes
from ..base.avals import Size, as_size
from ..core.trace import get_aval
from ..base.errors import type_error
from ..primitives import conv as ops
from ..primitives import linear
from ..primitives import window
from ..primitives.conv import ConvDimensionNumbers
from ..primitives.rules import dtype_of, shape_of
from ..primitives.shape import rev
from ..typing import Array, ArrayLike, DTypeLike, OutSharding, Shape
from ..transforms.auto_axes import divided, named_sharding
from .common import ints, on_device, operand
from .dots import PrecisionLike, canonical_precision, dot_general
from .window_reductions import padtype_to_pads, pairs

__all__ = [
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_general_dilated_local",
    "conv_general_dilated_patches",
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose",
    "conv_transpose_shape_tuple",
    "conv_with_general_padding",
]

ConvGeneralDilatedDimensionNumbers = ConvDimensionNumbers | tuple[str, str, str] | None


# dimension numbers ---------------------------------------------------------------------------------------------------


def conv_general_permutations(
    dimension_numbers: Sequence[str],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Where the axes are that three strings name: (batch N, feature C, spatial…) of the operand, (out O, in I,
    spatial…) of the kernel, (N, C, spatial…) of the result. The spatial axes, any other letters, come in the kernel's
    order.

    Args:
        dimension_numbers: three strings, such as ('NHWC', 'HWIO', 'NHWC').

    Returns:
        three tuples of ints, the axes of lhs, rhs and the result; each is as long as the rank.

    Raises:
        TypeError: if a letter is missing or repeated, or the spatial letters differ.

    Example:
        >>> from weft import lax
        >>> lax.conv_general_permutations(('NHWC', 'HWIO', 'NHWC'))
        ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    for i, (spec, pair) in enumerate(((lhs, "NC"), (rhs, "OI"), (out, "NC"))):
        if any(spec.count(letter) != 1 for letter in pair):
            raise TypeError(
                f"convolution dimension_numbers[{i}] must contain {pair[0]!r} and {pair[1]!r} exactly once, got"
                f" {spec!r}."
            )
        if len(set(spec)) != len(spec):
            raise TypeError(f"convolution dimension_numbers[{i}] must not repeat a letter, got {spec!r}.")
    spatial = [letter for letter in rhs if letter not in "OI"]
    if not set(spatial) == set(lhs) - set("NC") == set(out) - set("NC"):
        raise TypeError(
            f"convolution dimension_numbers must name the same spatial axes, got {tuple(dimension_numbers)}."
        )
    where = lambda spec, letters: tuple(spec.index(letter) for letter in letters)
    return where(lhs, ["N", "C", *spatial]), where(rhs, ["O", "I", *spatial]), where(out, ["N", "C", *spatial])


def conv_dimension_numbers(
    lhs_shape: Shape, rhs_shape: Shape, dimension_numbers: ConvDimensionNumbers | Sequence[str] | None
) -> ConvDimensionNumbers:
    """Dimension numbers as axes: from None (batch, feature, spatial…; out, in, spatial…) or from three strings such as
    'NHWC', 'HWIO', 'NHWC'.

    Args:
        lhs_shape: sequence of ints.
        rhs_shape: sequence of ints, of the same length.
        dimension_numbers: None, three strings, or `ConvDimensionNumbers`.

    Returns:
        `ConvDimensionNumbers`: tuples of ints, the axes of lhs, rhs and the result for any dtype.

    Raises:
        TypeError: if the ranks differ or the strings do not fit.

    Example:
        >>> from weft import lax
        >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ('NHWC', 'HWIO', 'NHWC')).out_spec
        (0, 3, 1, 2)
    """
    rank = len(lhs_shape)
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return ConvDimensionNumbers(*map(ints, dimension_numbers))
    if rank != len(rhs_shape):
        raise type_error(
            f"convolution requires operand and kernel of one rank, got shapes {tuple(lhs_shape)} and"
            f" {tuple(rhs_shape)}."
        )
    if rank < 2:
        raise type_error(f"convolution requires arrays with a batch and a feature axis, got shape {tuple(lhs_shape)}.")
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    strings = (
        [s for s in dimension_numbers if isinstance(s, str)] if isinstance(dimension_numbers, (list, tuple)) else []
    )
    if len(strings) != 3 or len(dimension_numbers) != 3:
        raise TypeError(
            "convolution dimension_numbers must be None, a ConvDimensionNumbers or three strings, got"
            f" {dimension_numbers!r}."
        )
    for i, spec in enumerate(strings):
        if len(spec) != rank:
            raise TypeError(f"convolution dimension_numbers[{i}] must name {rank} axes, got {spec!r}.")
    return ConvDimensionNumbers(*conv_general_permutations(strings))


# convolutions --------------------------------------------------------------------------------------------------------


class _Geometry(NamedTuple):
    strides: tuple[Any, ...]
    padding: tuple[Any, ...]
    lhs_dilation: tuple[Any, ...]
    rhs_dilation: tuple[Any, ...]
    numbers: ConvDimensionNumbers


def _geometry(
    name: str,
    lhs_shape: Any,
    rhs_shape: Any,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: Any,
) -> _Geometry:
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    spatial = len(numbers.lhs_spec) - 2
    strides = ints(window_strides)
    ones = (1,) * spatial
    left, right = [ints(d) if d is not None else ones for d in (lhs_dilation, rhs_dilation)]
    if len(strides) != spatial or len(right) != spatial or len(left) != spatial:
        raise ValueError(
            f"{name}: window_strides {strides} and dilations {left}, {right} must have one entry for each of the"
            f" {spatial} spatial axes."
        )
    if isinstance(padding, str) or hasattr(padding, "name"):
        if any(d != 1 for d in left):
            raise ValueError(
                f"{name}: the padding {padding!r} is not defined with lhs_dilation; give (low, high) pairs, or use"
                " conv_transpose."
            )
        kernel = [window.dilated(rhs_shape[d], r) for d, r in zip(numbers.rhs_spec[2:], right)]
        padding = padtype_to_pads([lhs_shape[d] for d in numbers.lhs_spec[2:]], kernel, strides, padding)
    return _Geometry(strides, pairs(name, padding), left, right, numbers)


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The convolution (as in learning: the kernel is not reversed) of `lhs` with the kernel `rhs`, of one dtype.

    Args:
        lhs: array of numbers, shape (batch, features, *sizes), or in the order that `dimension_numbers` says.
        rhs: array of the dtype of lhs, shape (out, in, *sizes): the kernel.
        window_strides: a step for each spatial axis.
        padding: 'VALID', 'SAME', 'SAME_LOWER', or (low, high) for each spatial axis; negative numbers cut.
        lhs_dilation: gaps between the operand's elements: a transposed convolution. rhs_dilation: gaps between the
            kernel's.
        rhs_dilation: sequence of ints, the distance of the kernel's elements; None for ones.
        dimension_numbers: the order of axes, see `conv_dimension_numbers`; batch, feature, spatial and out, in, spatial
            by default.
        feature_group_count: groups of features, each convolved with its own part of the kernel; batch_group_count:
            groups of images.
        batch_group_count: int, how many groups of the batch have kernels of their own.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: the dtype of the result.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of that dtype, shape (batch, out, *sizes), in the order that `dimension_numbers` says.

    Raises:
        TypeError: for ranks, dtypes or dimension numbers that do not fit. ValueError: for sizes that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.conv_general_dilated(lax.full((1, 3, 8, 8), 1.0), lax.full((4, 3, 3, 3), 1.0), (2, 2), 'SAME').shape
        (1, 4, 4, 4)
    """
    if out_sharding is not None:
        alone = functools.partial(
            conv_general_dilated,
            lhs,
            rhs,
            window_strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            dimension_numbers,
            feature_group_count,
            batch_group_count,
            precision,
            preferred_element_type,
        )
        return divided(alone, named_sharding("conv_general_dilated", out_sharding))
    lhs, rhs = operand("conv_general_dilated", lhs), operand("conv_general_dilated", rhs)
    g = _geometry(
        "conv_general_dilated",
        shape_of(lhs),
        shape_of(rhs),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
    )
    preferred = None if preferred_element_type is None else dtypes.canonicalize(preferred_element_type)
    return ops.conv_general_dilated_p.bind(
        lhs,
        rhs,
        window_strides=g.strides,
        padding=g.padding,
        lhs_dilation=g.lhs_dilation,
        rhs_dilation=g.rhs_dilation,
        dimension_numbers=g.numbers,
        feature_group_count=int(feature_group_count),
        batch_group_count=int(batch_group_count),
        precision=canonical_precision(precision),
        preferred_element_type=preferred,
        out_sharding=None,
    )


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """A convolution of (batch, feature, spatial…) with (out, in, spatial…).

    Args:
        lhs: array of numbers, shape (batch, features, *sizes), or in the order that `dimension_numbers` says.
        rhs: array of the dtype of lhs, shape (out, in, *sizes): the kernel.
        window_strides: sequence of ints, a step for each spatial axis.
        padding: 'VALID', 'SAME', 'SAME_LOWER', or pairs (low, high) of ints.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that of the arguments.

    Returns:
        array of that dtype, shape (batch, out, *sizes).

    Raises:
        TypeError, ValueError: for ranks, sizes and strides that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.conv(lax.full((1, 1, 4), 1.0), lax.full((1, 1, 2), 1.0), (1,), 'VALID').tolist()
        [[[2.0, 2.0, 2.0]]]
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`conv` with dilations and explicit padding.

    Args:
        lhs: array of numbers, shape (batch, features, *sizes), or in the order that `dimension_numbers` says.
        rhs: array of the dtype of lhs, shape (out, in, *sizes): the kernel.
        window_strides: sequence of ints, a step for each spatial axis.
        padding: 'VALID', 'SAME', 'SAME_LOWER', or pairs (low, high) of ints.
        lhs_dilation: sequence of ints, the distance of lhs's elements; None for ones.
        rhs_dilation: sequence of ints, the distance of the kernel's elements; None for ones.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that of the arguments.

    Returns:
        array of that dtype, shape (batch, out, *sizes).

    Raises:
        TypeError, ValueError: for ranks, sizes and strides that do not fit.

    Example:
        >>> from weft import lax
        >>> x, kernel = lax.full((1, 1, 4), 1.0), lax.full((1, 1, 2), 1.0)
        >>> lax.conv_with_general_padding(x, kernel, (1,), [(1, 0)], (2,), None).shape
        (1, 1, 7)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _transpose_pads(kernel: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding of the widened operand that undoes a convolution with 'SAME' or 'VALID' padding."""
    total = kernel + stride - 2
    if padding == "SAME":
        low = kernel - 1 if stride > kernel - 1 else -(-total // 2)
    else:
        total += max(kernel - stride, 0)
        low = kernel - 1
    return low, total - low


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """A convolution that makes arrays larger by `strides` where `conv` makes them smaller; channels last by default.

    Args:
        lhs: array of numbers, shape (batch, features, *sizes), or in the order that `dimension_numbers` says.
        rhs: array of the dtype of lhs, shape (out, in, *sizes): the kernel.
        strides: sequence of ints, a step for each spatial axis.
        padding: 'SAME' or 'VALID' as of the convolution that this is the transpose of, or (low, high) pairs: the
            padding of the widened operand or, with `use_consistent_padding`, of that convolution.
        rhs_dilation: sequence of ints, the distance of the kernel's elements; None for ones.
        dimension_numbers: order of the axes, as `conv_dimension_numbers` takes it; None for channels last.
        transpose_kernel: reverse the kernel and swap its features, so that this is the derivative of a convolution with
            it.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that of the arguments.
        use_consistent_padding: bool: the pairs of `padding` are those of the convolution that this is the transpose of.

    Returns:
        array of that dtype, shape (batch, *sizes, out), in the order that `dimension_numbers` says.

    Raises:
        TypeError, ValueError: for ranks, sizes and strides that do not fit.
        TypeError, ValueError: as `conv_general_dilated`.

    Example:
        >>> from weft import lax
        >>> lax.conv_transpose(lax.full((1, 4, 4, 2), 1.0), lax.full((3, 3, 2, 5), 1.0), (2, 2), 'SAME').shape
        (1, 8, 8, 5)
    """
    lhs, rhs = operand("conv_transpose", lhs), operand("conv_transpose", rhs)
    rank, strides = len(shape_of(lhs)), ints(strides)
    spatial = rank - 2
    if dimension_numbers is None:
        last = (0, rank - 1, *range(1, rank - 1))
        numbers = ConvDimensionNumbers(last, (rank - 1, rank - 2, *range(spatial)), last)
    else:
        numbers = conv_dimension_numbers(shape_of(lhs), shape_of(rhs), dimension_numbers)
    dilation = (1,) * spatial if rhs_dilation is None else ints(rhs_dilation)
    sizes = [window.dilated(shape_of(rhs)[d], r) for d, r in zip(numbers.rhs_spec[2:], dilation)]
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f"conv_transpose: padding must be 'SAME', 'VALID' or (low, high) pairs, got {padding!r}.")
        pads: Any = [_transpose_pads(k, s, padding.upper()) for k, s in zip(sizes, strides)]
    elif use_consistent_padding:
        pads = [(k - 1 - lo, k - 1 - hi) for k, (lo, hi) in zip(sizes, pairs("conv_transpose", padding))]
    else:
        pads = padding
    if transpose_kernel:
        rhs = rev(rhs, numbers.rhs_spec[2:])
        first, second, *rest = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(second, first, *rest))
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * spatial,
        pads,
        strides,
        dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """What each window of a convolution sees, as features: feature c * prod(filter_shape) + k is place k of feature c.

    Moving elements is exact: `precision` changes nothing.

    Args:
        lhs: array of numbers, shape (batch, features, *sizes), or in the order that `dimension_numbers` says.
        filter_shape: sequence of ints, the spatial shape of windows.
        window_strides: sequence of ints, a step for each spatial axis.
        padding: 'VALID', 'SAME', 'SAME_LOWER', or pairs (low, high) of ints.
        lhs_dilation: sequence of ints, the distance of lhs's elements; None for ones.
        rhs_dilation: sequence of ints, the distance of the kernel's elements; None for ones.
        dimension_numbers: order of the axes, as `conv_dimension_numbers` takes it; None for batch, feature, spatial.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that of the arguments.

    Returns:
        array of that dtype, shape (batch, features * prod(filter_shape), *places).

    Raises:
        TypeError, ValueError: as `conv_general_dilated`.

    Example:
        >>> from weft import lax
        >>> lax.conv_general_dilated_patches(lax.full((1, 3, 8, 8), 1.0), (2, 2), (2, 2), 'VALID').shape
        (1, 12, 4, 4)
    """
    name = "conv_general_dilated_patches"
    canonical_precision(precision)
    lhs, filter_shape = on_device(operand(name, lhs)), ints(filter_shape)
    x_shape = shape_of(lhs)
    if isinstance(dimension_numbers, ConvDimensionNumbers) or dimension_numbers is None:
        numbers = conv_dimension_numbers(x_shape, x_shape, dimension_numbers)
    else:
        numbers = conv_dimension_numbers(x_shape, x_shape, tuple(dimension_numbers))
    if len(filter_shape) != len(x_shape) - 2:
        raise ValueError(
            f"{name}: filter_shape {filter_shape} must have one entry for each of the {len(x_shape) - 2} spatial axes"
            f" of shape {x_shape}."
        )
    kernel_shape = [1] * len(x_shape)
    for d, n in zip(numbers.rhs_spec[2:], filter_shape):
        kernel_shape[d] = n
    g = _geometry(name, x_shape, kernel_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers)
    x = linear.transpose(lhs, numbers.lhs_spec)
    full_window = dict(
        window_dimensions=(1, 1, *filter_shape),
        window_strides=(1, 1, *g.strides),
        padding=((0, 0), (0, 0), *g.padding),
        base_dilation=(1, 1, *g.lhs_dilation),
        window_dilation=(1, 1, *g.rhs_dilation),
    )
    window.window_shape(name, shape_of(x), **full_window)
    rows = window.patches(x, linear.full((), 0, dtype_of(x)), **full_window)
    rank, shape = len(x_shape), shape_of(rows)
    rows = linear.transpose(rows, (0, 1, rank, *range(2, rank)))
    out = linear.reshape(rows, (shape[0], shape[1] * math.prod(filter_shape), *shape[2:rank]))
    out = linear.transpose(out, sorted(range(rank), key=numbers.out_spec.__getitem__))
    return (
        out
        if preferred_element_type is None
        else linear.convert(out, dtypes.canonicalize(preferred_element_type), get_aval(out).weak_type)
    )


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """A convolution with a kernel of its own at every place: `rhs` has (out, in * prod(filter_shape), places…) where a
    kernel has (out, in, spatial…).

    Args:
        lhs: array of numbers, shape (batch, features, *sizes), or in the order that `dimension_numbers` says.
        rhs: array of the dtype of lhs, shape (out, in * prod(filter_shape), *places).
        window_strides: sequence of ints, a step for each spatial axis.
        padding: 'VALID', 'SAME', 'SAME_LOWER', or pairs (low, high) of ints.
        filter_shape: sequence of ints, the spatial shape of windows.
        lhs_dilation: sequence of ints, the distance of lhs's elements; None for ones.
        rhs_dilation: sequence of ints, the distance of the kernel's elements; None for ones.
        dimension_numbers: order of the axes, as `conv_dimension_numbers` takes it; None for batch, feature, spatial.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.

    Returns:
        array of the dtype of lhs, shape (batch, out, *places).

    Raises:
        TypeError, ValueError: as `conv_general_dilated`.

    Example:
        >>> from weft import lax
        >>> x, kernels = lax.full((2, 3, 5), 1.0), lax.full((4, 6, 4), 1.0)
        >>> lax.conv_general_dilated_local(x, kernels, (1,), 'VALID', (2,)).shape
        (2, 4, 4)
    """
    name = "conv_general_dilated_local"
    lhs, rhs = operand(name, lhs), operand(name, rhs)
    numbers = conv_dimension_numbers(shape_of(lhs), shape_of(rhs), dimension_numbers)
    rows = conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers)
    x_spec, k_spec = numbers.out_spec, numbers.rhs_spec
    want = [shape_of(rows)[d] for d in x_spec[1:]]
    have = [shape_of(rhs)[d] for d in k_spec[1:]]
    if want != have:
        raise ValueError(
            f"{name}: the kernel must have (in * prod(filter_shape), places…) = {tuple(want)}, got {tuple(have)} (its"
            f" shape is {shape_of(rhs)})."
        )
    # places…, images, out features
    out = dot_general(rows, rhs, (((x_spec[1],), (k_spec[1],)), (x_spec[2:], k_spec[2:])), precision=precision)
    rank = len(x_spec)
    order = (rank - 2, rank - 1, *range(rank - 2))
    return linear.transpose(linear.transpose(out, order), sorted(range(rank), key=x_spec.__getitem__))


# shapes --------------------------------------------------------------------------------------------------------------


def conv_shape_tuple(
    lhs_shape: Shape,
    rhs_shape: Shape,
    strides: Sequence[int],
    pads: str | Sequence[tuple[int, int]],
    batch_group_count: int = 1,
) -> tuple[Size, ...]:
    """The shape of a convolution of (batch, feature, spatial…) with (out, in, spatial…).

    Args:
        lhs_shape: sequence of ints.
        rhs_shape: sequence of ints, of the same length.
        strides: sequence of ints, a step for each spatial axis.
        pads: pairs (low, high) of ints.
        batch_group_count: int.

    Returns:
        tuple of ints.

    Raises:
        TypeError, ValueError: for ranks, sizes and strides that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.conv_shape_tuple((2, 3, 8), (4, 3, 3), (1,), 'SAME')
        (2, 4, 8)
    """
    # a batch of -1 is of any size, and stays so
    lhs, rhs = tuple(map(as_size, lhs_shape)), tuple(map(as_size, rhs_shape))
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs[2:], rhs[2:], strides, pads)
    ones = (1,) * (len(lhs) - 2)
    return ops.conv_shape(
        "conv_shape_tuple", lhs, rhs, ints(strides), pairs("conv_shape_tuple", pads), ones, ones, 1, batch_group_count
    )


def conv_general_shape_tuple(
    lhs_shape: Shape,
    rhs_shape: Shape,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> tuple[Size, ...]:
    """The shape of a convolution with dimension numbers.

    Args:
        lhs_shape: sequence of ints.
        rhs_shape: sequence of ints, of the same length.
        window_strides: sequence of ints, a step for each spatial axis.
        padding: 'VALID', 'SAME', 'SAME_LOWER', or pairs (low, high) of ints.
        dimension_numbers: order of the axes, as `conv_dimension_numbers` takes it; None for batch, feature, spatial.

    Returns:
        tuple of ints.

    Raises:
        TypeError, ValueError: for ranks, sizes and strides that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 4), (2, 2), 'SAME', ('NHWC', 'HWIO', 'NHWC'))
        (1, 4, 4, 4)
    """
    g = _geometry(
        "conv_general_shape_tuple",
        tuple(lhs_shape),
        tuple(rhs_shape),
        window_strides,
        padding,
        None,
        None,
        dimension_numbers,
    )
    out = conv_shape_tuple(
        [lhs_shape[d] for d in g.numbers.lhs_spec], [rhs_shape[d] for d in g.numbers.rhs_spec], g.strides, g.padding
    )
    return tuple(out[g.numbers.out_spec.index(d)] for d in range(len(out)))


def conv_transpose_shape_tuple(
    lhs_shape: Shape,
    rhs_shape: Shape,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> tuple[Size, ...]:
    """The shape of `conv_transpose`.

    Args:
        lhs_shape: sequence of ints.
        rhs_shape: sequence of ints, of the same length.
        window_strides: sequence of ints, a step for each spatial axis.
        padding: 'VALID', 'SAME', 'SAME_LOWER', or pairs (low, high) of ints.
        dimension_numbers: order of the axes, as `conv_dimension_numbers` takes it; None for batch, feature, spatial.

    Returns:
        tuple of ints.

    Raises:
        TypeError, ValueError: for ranks, sizes and strides that do not fit.

    Example:
        >>> from weft import lax
        >>> lax.conv_transpose_shape_tuple((1, 4, 4, 2), (3, 3, 2, 5), (2, 2), 'SAME', ('NHWC', 'HWIO', 'NHWC'))
        (1, 8, 8, 5)
    """
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lhs, rhs, strides = (
        [as_size(lhs_shape[d]) for d in numbers.lhs_spec],
        [as_size(rhs_shape[d]) for d in numbers.rhs_spec],
        ints(window_strides),
    )
    pads = (
        [_transpose_pads(k, s, padding.upper()) for k, s in zip(rhs[2:], strides)]
        if isinstance(padding, str)
        else pairs("conv_transpose", padding)
    )
    ones = (1,) * len(strides)
    out = ops.conv_shape("conv_transpose_shape_tuple", lhs, rhs, ones, pads, strides, ones)
    return tuple(out[numbers.out_spec.index(d)] for d in range(len(out)))
