"""conv_general_dilated: every convolution, with strides, padding, dilation, groups and any order of axes.

    out[n, o, r] = sum over i, q of padded[n, i, r * stride + q * rhs_dilation] * kernel[o, i, q]

where `padded` is the operand with `lhs_dilation - 1` zeros between its elements and then padded; negative padding cuts.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ..base import dtypes
from ..base.avals import shaped, tangent_aval
from ..core.primitive import Primitive, Zero
from ..core.shardings import SAY, divisible, parts_of, whole
from ..core.wire import AXES, PAIRS, SIZE, SIZES, param_type, portable, record
from .dot import PRODUCT, dot_general
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error
from ..base.host import np
from .linear import add_any, convert, full, moveaxis, reshape, transpose
from .rules import check_kind, dtype_of, is_linear_arg, same_dtype, shape_of
from .shape import pad_p, rev
from .window import dilated, padded, transposed_padding, unfold, window_count

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.shardings import Parts
    from ..core.types import Dims, ElementType, Params, Size, Value


@param_type
class ConvDimensionNumbers(NamedTuple):
    """Where the axes of a convolution's arrays are: (batch, feature, spatial…) of the operand and of the result,
    (out feature, in feature, spatial…) of the kernel."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


conv_general_dilated_p = Primitive(
    "conv_general_dilated",
    basic=False,
    wire=portable(
        window_strides=SIZES,
        padding=PAIRS,
        lhs_dilation=SIZES,
        rhs_dilation=SIZES,
        dimension_numbers=record("ConvDimensionNumbers", AXES, AXES, AXES),
        feature_group_count=SIZE,
        batch_group_count=SIZE,
        **PRODUCT,
    ),
)
_NAME = "conv_general_dilated"


def conv_shape(
    name: str,
    lhs_shape: Sequence[Size],
    rhs_shape: Sequence[Size],
    window_strides: tuple[int, ...],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    feature_group_count: int = 1,
    batch_group_count: int = 1,
) -> tuple[Any, ...]:
    """The (batch, feature, spatial…) sizes of a convolution of (batch, feature, spatial…) with (out, in, spatial…),
    or an error.
    """
    spatial = len(lhs_shape) - 2
    given: dict[str, Sequence[Any]] = {
        "window_strides": window_strides,
        "padding": padding,
        "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation,
    }
    for what, values in given.items():
        if len(values) != spatial:
            raise ValueError(f"{name}: {what} {values} must have one entry for each of the {spatial} spatial axes.")
        if what != "padding" and any(v < 1 for v in values):
            raise ValueError(f"{name}: {what} must be positive, got {values}.")
    if feature_group_count < 1 or batch_group_count < 1:
        raise ValueError(
            f"{name}: feature_group_count and batch_group_count must be positive, got {feature_group_count} and"
            f" {batch_group_count}."
        )
    if feature_group_count > 1 and batch_group_count > 1:
        raise ValueError(
            f"{name}: at most one of feature_group_count and batch_group_count may be greater than 1, got"
            f" {feature_group_count} and {batch_group_count}."
        )
    if lhs_shape[1] % feature_group_count or lhs_shape[1] // feature_group_count != rhs_shape[1]:
        raise ValueError(
            at_user_line(
                f"{name}: the operand has {lhs_shape[1]} features in {feature_group_count} group(s), so the kernel must"
                f" have {lhs_shape[1]} / {feature_group_count} input features, but it has {rhs_shape[1]}."
            )
        )
    if rhs_shape[0] % feature_group_count or rhs_shape[0] % batch_group_count:
        raise ValueError(
            f"{name}: the number of groups {max(feature_group_count, batch_group_count)} must divide the kernel's"
            f" {rhs_shape[0]} output features."
        )
    if lhs_shape[0] % batch_group_count:
        raise ValueError(
            f"{name}: batch_group_count {batch_group_count} must divide the operand's batch size {lhs_shape[0]}."
        )
    sizes = []
    for n, k, s, (lo, hi), a, b in zip(
        lhs_shape[2:], rhs_shape[2:], window_strides, padding, lhs_dilation, rhs_dilation
    ):
        wide = dilated(n, a) + lo + hi
        if wide < 0:
            raise ValueError(
                f"{name}: padding {tuple(padding)} cuts more than there is of spatial sizes {tuple(lhs_shape[2:])}."
            )
        sizes.append(window_count(wide, k, s, b))
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *sizes)


def _abstract(
    x: ShapedArray,
    kernel: ShapedArray,
    *,
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: ElementType | None,
    out_sharding: Any,
) -> ShapedArray:
    for operand in (x, kernel):
        check_kind(_NAME, operand, "biufc")
    dt = same_dtype(_NAME, [x, kernel])
    rank = len(x.shape)
    if rank != len(kernel.shape):
        raise type_error(
            f"{_NAME}: operand and kernel must have the same number of axes, got shapes {x.shape} and {kernel.shape}."
        )
    for spec in dimension_numbers:
        if sorted(spec) != list(range(rank)):
            raise type_error(f"{_NAME}: each of {dimension_numbers} must be a permutation of the {rank} axes.")
    if preferred_element_type is not None and preferred_element_type != dt:
        if (
            dtypes.is_float(dt)
            and dtypes.is_float(preferred_element_type)
            and dtypes.bits(preferred_element_type) < dtypes.bits(dt)
        ):
            raise type_error(
                f"{_NAME}: preferred_element_type {dtypes.name(preferred_element_type)} must not be narrower than the"
                f" operands' {dtypes.name(dt)}."
            )
        if (
            dtypes.kind(dt) in "iu"
            and dtypes.kind(preferred_element_type) not in "iuf"
            or dtypes.kind(dt) == "f"
            and not dtypes.is_float(preferred_element_type)
            or dtypes.is_complex(dt)
            and not dtypes.is_complex(preferred_element_type)
        ):
            raise type_error(
                f"{_NAME}: preferred_element_type {dtypes.name(preferred_element_type)} can't hold products of"
                f" {dtypes.name(dt)}."
            )
    lhs, rhs, out = dimension_numbers
    sizes = conv_shape(
        _NAME,
        [x.shape[d] for d in lhs],
        [kernel.shape[d] for d in rhs],
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        feature_group_count,
        batch_group_count,
    )
    return shaped(
        tuple(sizes[out.index(d)] for d in range(rank)), preferred_element_type or dt, x.weak_type and kernel.weak_type
    )


def _reference(
    x: Value,
    kernel: Value,
    *,
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: ElementType | None,
    out_sharding: Any,
) -> Any:
    lhs, rhs, out = dimension_numbers
    dt = preferred_element_type or x.dtype
    wide = (
        np.complex128
        if dtypes.is_complex(dt)
        else np.float64
        if dtypes.is_float(dt)
        else dt
        if dtypes.bits(dt) >= 8
        else np.int32
    )
    x, kernel = x.transpose(lhs).astype(wide), kernel.transpose(rhs).astype(wide)
    sizes = conv_shape(
        _NAME,
        x.shape,
        kernel.shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        feature_group_count,
        batch_group_count,
    )
    config = [(0, 0, 0), (0, 0, 0), *[(lo, hi, d - 1) for (lo, hi), d in zip(padding, lhs_dilation)]]
    x = pad_p.reference(x, np.zeros((), wide), padding_config=config)
    result = np.zeros(sizes, wide)  # of booleans: whether any product is true
    batch, features = sizes[0], kernel.shape[1]
    per_group = kernel.shape[0] // (feature_group_count * batch_group_count)
    for o in range(kernel.shape[0]):
        group = o // per_group
        images = (
            x[group * batch : (group + 1) * batch]
            if batch_group_count > 1
            else x[:, group * features : (group + 1) * features]
        )
        for at in itertools.product(*map(range, sizes[2:])):
            window = tuple(
                slice(r * s, r * s + dilated(k, d), d)
                for r, s, k, d in zip(at, window_strides, kernel.shape[2:], rhs_dilation)
            )
            place: tuple[Any, ...] = (slice(None), o, *at)
            result[place] = (images[(slice(None), slice(None), *window)] * kernel[o]).sum(axis=tuple(range(1, x.ndim)))
    return result.transpose(_inverse(out)).astype(dt)


def _inverse(spec: Sequence[int]) -> tuple[Any, ...]:
    return tuple(sorted(range(len(spec)), key=spec.__getitem__))


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    (x, kernel), (tx, tk) = primals, tangents
    out = conv_general_dilated_p.bind(x, kernel, **params)
    if dtypes.is_int(get_aval(out).dtype) or type(tx) is Zero and type(tk) is Zero:
        return out, Zero(tangent_aval(get_aval(out)))
    terms = []
    if type(tx) is not Zero:
        terms.append(conv_general_dilated_p.bind(tx, kernel, **params))
    if type(tk) is not Zero:
        terms.append(conv_general_dilated_p.bind(x, tk, **params))
    return out, terms[0] if len(terms) == 1 else add_any(*terms)


# the transpose -------------------------------------------------------------------------------------------------------


def _transpose(ct: Value, x: Value, kernel: Value, **params: Any) -> list[Value | None]:
    if is_linear_arg(x):
        return [_transpose_x(ct, x.aval, kernel, **params), None]
    return [None, _transpose_kernel(ct, x, kernel.aval, **params)]


def _one_dtype(ct: Value, other: object) -> Value:
    """The cotangent may be wider than the operands: `preferred_element_type`."""
    return convert(other, dtype_of(ct)) if dtype_of(other) != dtype_of(ct) else other


def _transpose_x(
    ct: Value,
    x: Value,
    kernel: Value,
    *,
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: ElementType | None,
    out_sharding: Any,
) -> Value:
    """The cotangent with the strides as gaps, convolved with the reversed kernel; in and out features swap, group by
    group.
    """
    lhs, rhs, out = dimension_numbers
    if 0 in x.shape or 0 in shape_of(ct) or 0 in shape_of(kernel):
        return full(x.shape, 0, x.dtype)
    kernel = _one_dtype(ct, kernel)
    groups = max(feature_group_count, batch_group_count)
    kernel_shape, ct_shape = shape_of(kernel), shape_of(ct)
    back = tuple(
        transposed_padding(x.shape[a], kernel_shape[b], s, ct_shape[c], lo, n, m)
        for a, b, c, s, (lo, _), n, m in zip(
            lhs[2:], rhs[2:], out[2:], window_strides, padding, lhs_dilation, rhs_dilation
        )
    )
    if groups > 1:
        kernel = _move_groups(kernel, rhs[0], rhs[1], groups)
    made = conv_general_dilated_p.bind(
        ct,
        rev(kernel, rhs[2:]),
        window_strides=lhs_dilation,
        padding=back,
        lhs_dilation=window_strides,
        rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(out, (rhs[1], rhs[0], *rhs[2:]), lhs),
        feature_group_count=groups,
        batch_group_count=1,
        precision=precision,
        preferred_element_type=None,
        out_sharding=None,
    )
    if batch_group_count > 1:
        made = _move_groups(made, lhs[1], lhs[0], groups)
    return convert(made, x.dtype)


def _transpose_kernel(
    ct: Value,
    x: Value,
    kernel: Value,
    *,
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: ElementType | None,
    out_sharding: Any,
) -> Value:
    """The operand convolved with the cotangent, summing over the batch: strides and kernel dilation swap, and so do
    the kinds of groups.
    """
    lhs, rhs, out = dimension_numbers
    if 0 in kernel.shape or 0 in shape_of(ct) or 0 in shape_of(x):
        return full(kernel.shape, 0, kernel.dtype)
    x = _one_dtype(ct, x)
    x_shape, ct_shape = shape_of(x), shape_of(ct)
    back = []
    for a, b, c, s, (lo, _), n, m in zip(
        lhs[2:], rhs[2:], out[2:], window_strides, padding, lhs_dilation, rhs_dilation
    ):
        needed = dilated(kernel.shape[b], m) + dilated(ct_shape[c], s) - 1
        back.append((lo, needed - dilated(x_shape[a], n) - lo))
    made = conv_general_dilated_p.bind(
        x,
        ct,
        window_strides=rhs_dilation,
        padding=tuple(back),
        lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides,
        dimension_numbers=ConvDimensionNumbers(
            (lhs[1], lhs[0], *lhs[2:]), (out[1], out[0], *out[2:]), (rhs[1], rhs[0], *rhs[2:])
        ),
        feature_group_count=batch_group_count,
        batch_group_count=feature_group_count,
        precision=precision,
        preferred_element_type=None,
        out_sharding=None,
    )
    return convert(made, kernel.dtype)


# batching ------------------------------------------------------------------------------------------------------------


def _into(x: Value, dim: int, axis: int, groups: int = 1) -> Value:
    """`x` with its axis `dim` merged into `axis` (numbered without `dim`), inside the latter's leading `groups`."""
    size = shape_of(x)[dim]
    rest = shape_of(x)[:dim] + shape_of(x)[dim + 1 :]
    merged = (*rest[:axis], size * rest[axis], *rest[axis + 1 :])
    if groups == 1:
        return reshape(moveaxis(x, dim, axis), merged)
    x = reshape(moveaxis(x, dim, 0), (size, *rest[:axis], groups, rest[axis] // groups, *rest[axis + 1 :]))
    return reshape(moveaxis(x, 0, axis + 1), merged)


def _out_of(x: Value, axis: int, size: int, groups: int = 1) -> tuple[Value, Value]:
    """The inverse of `_into`: the array and where the axis of `size` is in it."""
    shape = shape_of(x)
    each = shape[axis] // (size * groups)
    if groups == 1:
        return reshape(x, (*shape[:axis], size, each, *shape[axis + 1 :])), axis
    x = moveaxis(reshape(x, (*shape[:axis], groups, size, each, *shape[axis + 1 :])), axis + 1, 0)
    return reshape(x, (size, *shape[:axis], groups * each, *shape[axis + 1 :])), 0


def _move_groups(x: Value, source: int, target: int, groups: int) -> Value:
    """Takes leading groups out of one axis and puts them in front of another."""
    x, dim = _out_of(x, source, groups)
    return _into(x, dim, target)


def _batch(
    axis: Axis,
    args: Sequence[Value],
    dims: Dims,
    *,
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    **params: Any,
) -> tuple[Value, Any]:
    """Without groups the batch becomes more images, or more output features; with both operands batched, more
    groups.
    """
    (x, kernel), (dx, dk) = args, dims
    lhs, rhs, out = dimension_numbers
    new = dict(
        params,
        dimension_numbers=dimension_numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
    )
    if not axis.size:  # there are no groups without members
        shapes = [shape_of(v) if d is None else (*shape_of(v)[:d], *shape_of(v)[d + 1 :]) for v, d in zip(args, dims)]
        one = _abstract(*[shaped(shape, dtype_of(v)) for v, shape in zip(args, shapes)], **new)
        return full((0, *one.shape), 0, one.dtype), 0
    if dk is None:
        made = conv_general_dilated_p.bind(_into(x, dx, lhs[0], batch_group_count), kernel, **new)
        return _out_of(made, out[0], axis.size)
    if dx is None:
        groups = max(feature_group_count, batch_group_count)
        made = conv_general_dilated_p.bind(x, _into(kernel, dk, rhs[0], groups), **new)
        return _out_of(made, out[1], axis.size, groups)
    if batch_group_count > 1:
        x, new["batch_group_count"] = _into(x, dx, lhs[0]), batch_group_count * axis.size
    else:
        x, new["feature_group_count"] = _into(x, dx, lhs[1]), feature_group_count * axis.size
    made = conv_general_dilated_p.bind(x, _into(kernel, dk, rhs[0]), **new)
    return _out_of(made, out[1], axis.size)


# in the basis --------------------------------------------------------------------------------------------------------


def _decompose(
    x: Value,
    kernel: Value,
    *,
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: ElementType | None,
    out_sharding: Any,
) -> Value:
    """The product of the operand's patches and the kernel: one dot_general."""
    lhs, rhs, out = dimension_numbers
    dt = preferred_element_type or dtype_of(x)
    if batch_group_count > 1:  # groups of images are groups of features of fewer images
        x, feature_group_count = _move_groups(x, lhs[0], lhs[1], batch_group_count), batch_group_count
    groups = feature_group_count
    shape, kernel_shape = [[shape_of(v)[d] for d in spec] for v, spec in ((x, lhs), (kernel, rhs))]
    sizes = conv_shape(
        _NAME, tuple(shape), tuple(kernel_shape), window_strides, padding, lhs_dilation, rhs_dilation, groups
    )
    if 0 in sizes or 0 in shape or 0 in kernel_shape:
        return transpose(full(sizes, 0, dt), _inverse(out))
    spatial, window = len(sizes) - 2, tuple(kernel_shape[2:])
    # the features of a patch are contiguous if possible: then patches are copied, and read, in long runs
    first = 1 if groups == 1 else 2
    x = transpose(x, (lhs[0], *lhs[2:], lhs[1]) if groups == 1 else lhs)
    edges = ((0, 0), *padding, (0, 0)) if groups == 1 else ((0, 0), (0, 0), *padding)
    x = padded(x, full((), 0, dtype_of(x)), edges, (1, *lhs_dilation, 1) if groups == 1 else (1, 1, *lhs_dilation))
    places: list[int] = []  # the axes of x that run over the kernel
    for d in reversed(range(spatial)):
        if (window[d], window_strides[d]) != (1, 1):
            to = first + spatial if groups == 1 else first + 1 + d
            x = unfold(x, first + d, window[d], window_strides[d], rhs_dilation[d], to)
            places = [to, *[p + 1 for p in places]]
    kept = [d for d in range(spatial) if (window[d], window_strides[d]) != (1, 1)]
    if groups > 1:
        kernel = reshape(
            transpose(kernel, rhs), (groups, kernel_shape[0] // groups, kernel_shape[1], *[window[d] for d in kept])
        )
        x = reshape(x, (shape[0], groups, shape[1] // groups, *shape_of(x)[2:]))
        numbers: Any = (((2, *[p + 1 for p in places]), tuple(range(2, 3 + len(places)))), ((1,), (0,)))
    else:
        kernel = reshape(
            transpose(kernel, (*rhs[2:], rhs[1], rhs[0])),
            (*[window[d] for d in kept], kernel_shape[1], kernel_shape[0]),
        )
        numbers = (((*places, len(shape_of(x)) - 1), tuple(range(len(places) + 1))), ((), ()))
    made = dot_general(x, kernel, numbers, precision=precision, preferred_element_type=preferred_element_type)
    rank = len(shape_of(made))  # (groups), images, spatial, features of a group
    if groups > 1:
        made = reshape(transpose(made, (1, 0, rank - 1, *range(2, rank - 1))), sizes)
    else:
        made = transpose(made, (0, rank - 1, *range(1, rank - 1)))
    return transpose(made, _inverse(out))


conv_general_dilated_p.abstract, conv_general_dilated_p.reference, conv_general_dilated_p.jvp = (
    _abstract,
    _reference,
    _jvp,
)


def _conv_shard(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    """The images may be divided among the devices, and nothing else."""
    numbers = params["dimension_numbers"]
    (x, kernel), batch = ins, numbers.lhs_spec[0]
    name = "conv_general_dilated"
    whole(name, [x], [i for i in range(len(x.shape)) if i != batch], "it slides or sums", SAY)
    whole(name, [kernel], range(len(kernel.shape)), "it slides or sums", SAY)
    parts: list[Any] = [None] * len(outs[0].shape)
    parts[numbers.out_spec[0]] = parts_of(x)[batch]
    return [divisible(name, ins, outs[0], tuple(parts), (numbers.out_spec[0],))]


conv_general_dilated_p.transpose, conv_general_dilated_p.batch, conv_general_dilated_p.decompose = (
    _transpose,
    _batch,
    _decompose,
)
conv_general_dilated_p.shard = _conv_shard
