"""Resampling: each axis is multiplied by a matrix of a kernel's values, so derivatives, vmap and every backend come
with it.

Kernels: the triangle, Keys' cubic with a = -1/2 ("Cubic convolution interpolation for digital image processing", 1981)
    and Lanczos' windowed sinc.
With `antialias` a kernel is as wide as the samples are apart where the image shrinks, which keeps it from aliasing.
"""

from __future__ import annotations

import enum
import math
from typing import Sequence

from ..base import dtypes
from ..base.errors import at_user_line, type_error
from ..lax.dots import Precision, dot_general
from ..numpy.taking import take
from ..numpy.util import canonical_axes, canonical_shape, on_device, operand, promote_inexact
from ..primitives import elementwise as el, transcendental
from ..primitives import linear
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..primitives.shape import iota, slice_
from ..runtime.jit import inner_jit


class ResizeMethod(enum.Enum):
    """The kernels of `resize` and `scale_and_translate`."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5  # CUBIC, but with a = -3/4 and a border that goes on where `antialias` is off
    AREA = 6  # the mean of what a pixel of the result covers

    @staticmethod
    def from_string(s: str) -> "ResizeMethod":
        """The method of a name; ValueError for an unknown one.

        Example:
            >>> import weft
            >>> weft.image.ResizeMethod.from_string("bilinear").name
            'LINEAR'
        """
        if s not in _NAMES:
            raise ValueError(at_user_line(f'Unknown resize method "{s}": there are {", ".join(_NAMES)}.'))
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


def _where(which, x, value: float):
    return el.select(which, x, linear.full(shape_of(x), value, dtype_of(x)))


def _triangle(x):
    return el.max_(scalar_like(x, 0), 1 - x)


def _cubic(a: float):
    def kernel(x):
        near, far = (((a + 2) * x - (a + 3)) * x) * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return _where(x < 2, el.select(x >= 1, far, near), 0)

    return kernel


def _lanczos(radius: float):
    def kernel(x):
        value = (
            radius
            * transcendental.sin(math.pi * x)
            * transcendental.sin(math.pi * x / radius)
            / _where(x != 0, math.pi**2 * el.integer_pow(x, 2), 1)
        )
        return _where(x <= radius, _where(x > 1e-3, value, 1), 0)

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.5),
}


def _weights(size: int, out: int, scale, translation, method: ResizeMethod, antialias: bool, dt):
    """The matrix (size, out) that resamples one axis; `scale` and `translation` are numbers or scalar arrays."""
    beyond = method is ResizeMethod.CUBIC_PYTORCH and not antialias  # the image goes on with its border
    kernel = _cubic(-0.75) if beyond else _KERNELS.get(method)
    inverse = 1 / scale
    width = (
        1.0
        if not antialias
        else max(inverse, 1.0)
        if isinstance(inverse, float)
        else el.max_(inverse, scalar_like(inverse, 1))
    )
    at = (iota(dt, (out,), 0) + 0.5) * inverse - translation * inverse - 0.5
    wide = lambda x, d: linear.broadcast_in_dim(x, (size, out), (d,))
    places = iota(dt, (size,), 0)
    if kernel is None:  # AREA: how much of each element lies under each of the result
        left = iota(dt, (out,), 0) * inverse - translation * inverse
        overlap = el.min_(wide(left + inverse, 1), wide(places + 1, 0)) - el.max_(wide(left, 1), wide(places, 0))
        weights = el.max_(scalar_like(overlap, 0), overlap)
    elif beyond:
        taps, both = iota(dt, (size + 4,), 0) - 2, (size + 4, out)
        weights = kernel(el.abs_(linear.broadcast_in_dim(at, both, (1,)) - linear.broadcast_in_dim(taps, both, (0,))))
        owner = linear.broadcast_in_dim(
            el.max_(scalar_like(taps, 0), el.min_(taps, scalar_like(taps, size - 1))), (size, size + 4), (1,)
        )
        mine = linear.convert(el.eq(owner, linear.broadcast_in_dim(places, (size, size + 4), (0,))), dt)
        weights = dot_general(mine, weights, (((1,), (0,)), ((), ())), precision=Precision.HIGHEST)
    else:
        weights = kernel(el.abs_(wide(at, 1) - wide(places, 0)) / width)
    total = wide(linear.reduce_sum(weights, (0,)), 1)
    weights = weights / _where(total != 0, total, 1)
    used = el.abs_(total) > 1000 * 2.0**-23
    return _where(used if beyond else used & wide((at >= -0.5) & (at <= size - 0.5), 1), weights, 0)


def _contract(x, axis: int, weights, precision):
    out = dot_general(x, linear.convert(weights, dtype_of(x)), (((axis,), (0,)), ((), ())), precision=precision)
    return linear.moveaxis(out, len(shape_of(x)) - 1, axis)


@inner_jit(name="_scale_and_translate", static_argnums=(1, 2, 5, 6, 7), inline=True)
def _scale_and_translate(x, shape, axes, scale, translation, method, antialias, precision):
    dt = dtype_of(x)
    dt = dtypes.real_of(dt) if dtypes.is_complex(dt) else dt
    for i, axis in reversed(list(enumerate(axes))):
        element = lambda v: linear.convert(linear.reshape(slice_(v, (i,), (i + 1,)), ()), dt)
        weights = _weights(shape_of(x)[axis], shape[axis], element(scale), element(translation), method, antialias, dt)
        x = _contract(x, axis, weights, precision)
    return x


@inner_jit(name="_resize", static_argnums=(1, 2, 3, 4))
def _resize(x, shape, method, antialias, precision):
    axes = [d for d, (n, m) in enumerate(zip(shape_of(x), shape)) if n != m]
    if method is ResizeMethod.NEAREST:
        for d in axes:
            n, m = shape_of(x)[d], shape[d]
            places = el.floor((iota(dtypes.float32, (m,), 0) + 0.5) * n / m)
            x = take(x, linear.convert(places, dtypes.int32), d)
        return x
    (x,) = promote_inexact("resize", x)
    dt = dtypes.real_of(dtype_of(x)) if dtypes.is_complex(dtype_of(x)) else dtype_of(x)
    for d in reversed(axes):
        n, m = shape_of(x)[d], shape[d]
        x = _contract(x, d, _weights(n, m, m / n if m else 1.0, 0.0, method, antialias, dt), precision)
    return x


def _method(name: str, method) -> ResizeMethod:
    if isinstance(method, str):
        return ResizeMethod.from_string(method)
    if not isinstance(method, ResizeMethod):
        raise TypeError(at_user_line(f"{name}: method is a ResizeMethod or its name, got {method!r}."))
    return method


def resize(image, shape, method: str | ResizeMethod, antialias: bool = True, precision=Precision.HIGHEST):
    """`image` resampled to `shape`, of the same rank: axes whose sizes differ are stretched so that their ends meet.

    `method`: 'nearest', 'linear' (bilinear, trilinear, triangle), 'cubic' (bicubic, tricubic), 'cubic-pytorch',
    'lanczos3', 'lanczos5' or 'area'. 'nearest' keeps the dtype, the others
    make integers floats. `precision` is that of the products.

    Args:
        image: array of numbers, any shape.
        shape: sequence of ints, the shape of the result.
        method: name of the method.
        antialias: bool: weigh all that falls on a smaller pixel.
        precision: `lax.Precision` or its name: how exact the products are.

    Returns:
        array of that shape: of the dtype of the image for 'nearest', else of floats.

    Raises:
        ValueError: for another method, or a shape of another rank. TypeError: for no array.

    Source: Keys, "Cubic convolution interpolation for digital image processing" (1981), for 'cubic'; Duchon, "Lanczos
    filtering in one and two dimensions" (1979), for 'lanczos3' and 'lanczos5'.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.image.resize(jnp.array([0., 1.]), (4,), 'linear')
        Array([0.  , 0.25, 0.75, 1.  ], dtype=float32)
    """
    x, shape, method = on_device(operand("resize", image)), canonical_shape(shape), _method("resize", method)
    if len(shape) != len(shape_of(x)):
        raise ValueError(
            at_user_line(f"resize: shape {shape} must have the rank of the image, whose shape is {shape_of(x)}.")
        )
    if any(n == 0 != m for n, m in zip(shape_of(x), shape)):
        raise ValueError(
            at_user_line(
                f"resize: an axis of size 0 has nothing to resample; the image's shape is {shape_of(x)}, asked for is"
                f" {shape}."
            )
        )
    return _resize(x, shape, method, antialias, precision)


def scale_and_translate(
    image,
    shape,
    spatial_dims: Sequence[int],
    scale,
    translation,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision=Precision.HIGHEST,
):
    """`image` stretched and moved along some axes: what lies at y along axis spatial_dims[i] lands at y * scale[i] +
    translation[i], 0 outside.

    `shape` is the result's, with the image's sizes along the other axes; `scale` and `translation` have one element for
    each axis, and derivatives. Methods are `resize`'s but for 'nearest'.

    Args:
        image: array of numbers, any shape.
        shape: sequence of ints, the shape of the result.
        spatial_dims: sequence of ints, the axes.
        scale, translation: array of floats, one for each of the axes.
        method: name of the method.
        antialias: bool: weigh all that falls on a smaller pixel.
        precision: `lax.Precision` or its name: how exact the products are.

    Returns:
        array of floats, of that shape.

    Raises:
        ValueError: for 'nearest', shapes that do not fit, or axes out of range. TypeError: for no arrays.

    Source: Keys, "Cubic convolution interpolation for digital image processing" (1981), for 'cubic'; Duchon, "Lanczos
    filtering in one and two dimensions" (1979), for 'lanczos3' and 'lanczos5'.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.image.scale_and_translate(jnp.array([1., 2., 3.]), (3,), (0,), jnp.ones(1), jnp.ones(1), 'linear')
        Array([0., 1., 2.], dtype=float32)
    """
    name = "scale_and_translate"
    x, scale, translation = [on_device(operand(name, v)) for v in (image, scale, translation)]
    shape, method = canonical_shape(shape), _method(name, method)
    if method is ResizeMethod.NEAREST:
        raise ValueError(at_user_line(f"{name} has no nearest neighbour; use 'linear', or resize."))
    if len(shape) != len(shape_of(x)):
        raise ValueError(
            at_user_line(f"{name}: shape {shape} must have the rank of the image, whose shape is {shape_of(x)}.")
        )
    axes = canonical_axes(tuple(spatial_dims), len(shape), "spatial_dims")
    for what, v in (("scale", scale), ("translation", translation)):
        if shape_of(v) != (len(axes),):
            raise ValueError(
                at_user_line(
                    f"{name}: {what} has one element for each of the {len(axes)} spatial_dims, got the shape"
                    f" {shape_of(v)}."
                )
            )
        if dtypes.is_complex(dtype_of(v)):
            raise type_error(f"{name}: {what} is real, got {dtypes.name(dtype_of(v))}.")
    (x,) = promote_inexact(name, x)
    others = [d for d in range(len(shape)) if d not in axes and shape[d] != shape_of(x)[d]]
    if others:
        raise ValueError(
            at_user_line(
                f"{name}: axis {others[0]} is not in spatial_dims and keeps its size {shape_of(x)[others[0]]}, but"
                f" shape says {shape[others[0]]}."
            )
        )
    return _scale_and_translate(x, shape, axes, scale, translation, method, antialias, precision)
