"""stax: neural networks from pairs of functions.

A layer is (init_fun, apply_fun): `init_fun(rng, input_shape)` gives (output_shape, params), `apply_fun(params, inputs,
rng=None)` the outputs.

Example:
    >>> import weft, weft.numpy as jnp
    >>> from weft.example_libraries import stax
    >>> init_fun, apply_fun = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2), stax.LogSoftmax)
    >>> shape, params = init_fun(weft.random.key(0), (-1, 4))
    >>> shape, apply_fun(params, jnp.ones((3, 4))).shape
    ((-1, 2), (3, 2))
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Callable

from .. import lax, numpy as jnp, random
from ..nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus, standardize
from ..nn.initializers import glorot_normal, normal, ones, zeros

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "glorot",
    "logsoftmax",
    "parallel",
    "randn",
    "serial",
    "shape_dependent",
]

glorot, randn, logsoftmax = glorot_normal, normal, log_softmax  # older names


def _unchanged(rng, input_shape):
    return input_shape, ()


def Dense(out_dim: int, W_init: Callable = glorot_normal(), b_init: Callable = normal()):
    """A dense layer: inputs @ W + b.

    Args:
        out_dim: the size of the outputs; int.
        W_init, b_init: functions (key, shape) -> array that make the first weights and biases.

    Returns:
        a layer, (init_fun, apply_fun). init_fun(rng, input_shape) returns (output_shape, params), and
        apply_fun(params, inputs, rng=None) the outputs, of the dtype of the inputs. It maps inputs of shape (…, n)
        to outputs of shape (…, out_dim).

    Example:
        >>> import weft
        >>> from weft.example_libraries import stax
        >>> stax.Dense(3)[0](weft.random.key(0), (-1, 5))[0]
        (-1, 3)
    """

    def init_fun(rng, input_shape):
        k1, k2 = random.split(rng)
        return (*input_shape[:-1], out_dim), (W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,)))

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun


def _convolution(dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init, fans, shape_of, convolve):
    lhs, rhs, out = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot_normal(*(rhs.index(c) for c in fans))

    def init_fun(rng, input_shape):
        sizes = iter(filter_shape)
        kernel = tuple(out_chan if c == "O" else input_shape[lhs.index("C")] if c == "I" else next(sizes) for c in rhs)
        k1, k2 = random.split(rng)
        params = W_init(k1, kernel), b_init(k2, tuple(out_chan if c == "C" else 1 for c in out))
        return shape_of(input_shape, kernel, strides, padding, dimension_numbers), params

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return convolve(inputs, W, strides, padding, dimension_numbers=dimension_numbers) + b

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers,
    out_chan: int,
    filter_shape,
    strides=None,
    padding="VALID",
    W_init: Callable | None = None,
    b_init: Callable = normal(1e-6),
):
    """A convolution with a bias. `Conv` is this layer for images in the layout NHWC.

    Args:
        dimension_numbers: the meaning of the axes of inputs, weights and outputs, such as ('NHWC', 'HWIO', 'NHWC').
        out_chan: how many channels the outputs have; int.
        filter_shape: the size of a window along each spatial axis; ints.
        strides: the step along each spatial axis; ints; 1 by default.
        padding: 'VALID', 'SAME', or a pair of ints (low, high) for each spatial axis.
        W_init, b_init: functions (key, shape) -> array that make the first weights and biases.

    Returns:
        a layer, (init_fun, apply_fun). init_fun(rng, input_shape) returns (output_shape, params), and
        apply_fun(params, inputs, rng=None) the outputs, of the dtype of the inputs.

    Raises:
        RuntimeError: `padding` is unknown; `init_fun` and `apply_fun` raise it.

    Example:
        >>> import weft
        >>> from weft.example_libraries import stax
        >>> stax.GeneralConv(('NHWC', 'HWIO', 'NHWC'), 8, (3, 3))[0](weft.random.key(0), (1, 10, 10, 3))[0]
        (1, 8, 8, 8)
    """
    return _convolution(
        dimension_numbers,
        out_chan,
        filter_shape,
        strides,
        padding,
        W_init,
        b_init,
        "IO",
        lax.conv_general_shape_tuple,
        lax.conv_general_dilated,
    )


def GeneralConvTranspose(
    dimension_numbers,
    out_chan: int,
    filter_shape,
    strides=None,
    padding="VALID",
    W_init: Callable | None = None,
    b_init: Callable = normal(1e-6),
):
    """A transposed convolution with a bias. `ConvTranspose` and `Conv1DTranspose` are this layer for the layouts NHWC
    and NHC.

    Args:
        dimension_numbers: the meaning of the axes of inputs, weights and outputs, such as ('NHWC', 'HWIO', 'NHWC').
        out_chan: how many channels the outputs have; int.
        filter_shape: the size of a window along each spatial axis; ints.
        strides: the step along each spatial axis; ints; 1 by default.
        padding: 'VALID', 'SAME', or a pair of ints (low, high) for each spatial axis.
        W_init, b_init: functions (key, shape) -> array that make the first weights and biases.

    Returns:
        a layer, (init_fun, apply_fun). init_fun(rng, input_shape) returns (output_shape, params), and
        apply_fun(params, inputs, rng=None) the outputs, of the dtype of the inputs.

    Raises:
        ValueError: `padding` is unknown; `apply_fun` raises it.

    Example:
        >>> import weft
        >>> from weft.example_libraries import stax
        >>> init, apply = stax.GeneralConvTranspose(('NHWC', 'HWIO', 'NHWC'), 8, (2, 2), (2, 2))
        >>> init(weft.random.key(0), (1, 5, 5, 3))[0]
        (1, 10, 10, 8)
    """
    return _convolution(
        dimension_numbers,
        out_chan,
        filter_shape,
        strides,
        padding,
        W_init,
        b_init,
        "OI",
        lax.conv_transpose_shape_tuple,
        lax.conv_transpose,
    )


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis=(0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Callable = zeros,
    gamma_init: Callable = ones,
):
    """Batch normalization: (x - mean) / sqrt(variance + epsilon), with a learned factor and shift.

    Source: S. Ioffe and C. Szegedy, "Batch normalization" (2015).

    Args:
        axis: the axes over which mean and variance are taken; an int or ints.
        epsilon: is added to the variance; float.
        center, scale: whether a shift and a factor are learned; bools.
        beta_init, gamma_init: functions (key, shape) -> array that make the first shift and factor.

    Returns:
        a layer, (init_fun, apply_fun). init_fun(rng, input_shape) returns (output_shape, params), and
        apply_fun(params, inputs, rng=None) the outputs, of the dtype of the inputs.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.example_libraries import stax
        >>> init, apply = stax.BatchNorm(axis=0)
        >>> apply(init(weft.random.key(0), (2, 1))[1], jnp.array([[1.], [3.]])).round(2)
        Array([[-1.],
               [ 1.]], dtype=float32)
    """
    axis = (axis,) if jnp.isscalar(axis) else axis

    def init_fun(rng, input_shape):
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axis)
        k1, k2 = random.split(rng)
        return input_shape, (beta_init(k1, shape) if center else (), gamma_init(k2, shape) if scale else ())

    def apply_fun(params, x, **kwargs):
        beta, gamma = params
        place = tuple(None if i in axis else slice(None) for i in range(jnp.ndim(x)))
        z = standardize(x, axis, epsilon=epsilon)
        z = gamma[place] * z if scale else z
        return z + beta[place] if center else z

    return init_fun, apply_fun


def elementwise(fun: Callable, **fun_kwargs):
    """A layer that applies a function to its inputs. It has no parameters.

    Args:
        fun: a function of an array of any shape and dtype.
        **fun_kwargs: more arguments of the function.

    Returns:
        a layer, (init_fun, apply_fun). init_fun(rng, input_shape) returns (output_shape, params), and
        apply_fun(params, inputs, rng=None) the outputs, of the dtype of the inputs.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import stax
        >>> stax.elementwise(jnp.square)[1]((), jnp.array([1., 2.]))
        Array([1., 4.], dtype=float32)
    """
    return _unchanged, lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)


def _pooling(name: str, reducer, start, text: str, mean: bool = False):
    def pool(window_shape, strides=None, padding="VALID", spec: str | None = None):
        strides = strides or (1,) * len(window_shape)
        others = sorted((0, len(window_shape) + 1) if spec is None else (spec.index("N"), spec.index("C")))

        def full(sizes):
            sizes = list(sizes)
            for i in others:
                sizes.insert(i, 1)
            return tuple(sizes)

        window, steps = full(window_shape), full(strides)

        def init_fun(rng, input_shape):
            pads = lax.padtype_to_pads(input_shape, window, steps, padding)
            dilation = (1,) * len(window)
            return lax.reduce_window_shape_tuple(input_shape, window, steps, pads, dilation, dilation), ()

        def apply_fun(params, inputs, **kwargs):
            out = lax.reduce_window(inputs, start, reducer, window, steps, padding)
            if not mean:
                return out
            sizes = tuple(1 if i in others else n for i, n in enumerate(inputs.shape))
            return out / lax.reduce_window(jnp.ones(sizes, inputs.dtype), start, reducer, window, steps, padding)

        return init_fun, apply_fun

    pool.__doc__ = f"""A layer that takes {text} of each window.

    Args:
        window_shape: the size of a window along each spatial axis; ints.
        strides: the step along each spatial axis; ints; 1 by default.
        padding: 'VALID', 'SAME', or a pair of ints (low, high) for each axis of the inputs.
        spec: the meaning of the axes, such as 'NCHW'; 'NHWC' by default.

    Returns:
        a layer, (init_fun, apply_fun), from inputs of any floating-point dtype to outputs of the same dtype and rank.

    Raises:
        RuntimeError: `padding` is unknown; `init_fun` raises it.

    Example:
        >>> import weft
        >>> from weft.example_libraries import stax
        >>> stax.{name}((2, 2), (2, 2))[0](weft.random.key(0), (1, 4, 4, 3))[0]
        (1, 2, 2, 3)
    """
    return pool


MaxPool = _pooling("MaxPool", lax.max, -jnp.inf, "the maximum")
SumPool = _pooling("SumPool", lax.add, 0.0, "the sum")
AvgPool = _pooling("AvgPool", lax.add, 0.0, "the mean", mean=True)

Flatten = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)),
)
Identity = (_unchanged, lambda params, inputs, **kwargs: inputs)


def FanOut(num: int):
    """A layer that repeats its input.

    Args:
        num: how often; int.

    Returns:
        a layer, (init_fun, apply_fun), from an array of any shape and dtype to a list of `num` arrays.

    Example:
        >>> import weft
        >>> from weft.example_libraries import stax
        >>> stax.FanOut(2)[0](weft.random.key(0), (3,))[0]
        [(3,), (3,)]
    """
    return lambda rng, input_shape: ([input_shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


FanInSum = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: functools.reduce(operator.add, inputs),
)


def FanInConcat(axis: int = -1):
    """A layer that concatenates its inputs.

    Args:
        axis: the axis along which they are joined; int.

    Returns:
        a layer, (init_fun, apply_fun), from a list of arrays of a dtype to one array, whose shape adds up their
        sizes along the axis.

    Example:
        >>> import weft
        >>> from weft.example_libraries import stax
        >>> stax.FanInConcat()[0](weft.random.key(0), [(2, 3), (2, 4)])[0]
        (2, 7)
    """

    def init_fun(rng, input_shape):
        at = axis % len(input_shape[0])
        return (*input_shape[0][:at], sum(shape[at] for shape in input_shape), *input_shape[0][at + 1 :]), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train"):
    """A layer that sets random elements to 0 and divides the others by `rate`.

    Source: N. Srivastava et al., "Dropout" (2014).

    Args:
        rate: the probability with which an element is kept; float.
        mode: 'train'; with any other value the layer changes nothing.

    Returns:
        a layer, (init_fun, apply_fun). init_fun(rng, input_shape) returns (output_shape, params), and
        apply_fun(params, inputs, rng=None) the outputs, of the dtype of the inputs.

    Raises:
        ValueError: `apply_fun` raises it if it gets no `rng`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.example_libraries import stax
        >>> stax.Dropout(0.5, mode='test')[1]((), jnp.ones(2), rng=weft.random.key(0))
        Array([1., 1.], dtype=float32)
    """

    def apply_fun(params, inputs, **kwargs):
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout: apply_fun needs a random key as its argument rng: apply_fun(params, inputs, rng=key)."
            )
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0) if mode == "train" else inputs

    return _unchanged, apply_fun


def _keys(rng, n: int):
    return (None,) * n if rng is None else random.split(rng, n)


def serial(*layers):
    """One layer from several: each takes the outputs of the one before.

    Args:
        *layers: the layers, at least one.

    Returns:
        a layer, (init_fun, apply_fun). init_fun(rng, input_shape) returns (output_shape, params), and
        apply_fun(params, inputs, rng=None) the outputs, of the dtype of the inputs.

    Raises:
        ValueError: there are no layers.

    Example:
        >>> import weft
        >>> from weft.example_libraries import stax
        >>> stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2))[0](weft.random.key(0), (-1, 4))[0]
        (-1, 2)
    """
    if not layers:
        raise ValueError("stax.serial takes at least one layer; stax.Identity is one that gives back its inputs.")
    init_funs, apply_funs = zip(*layers)

    def init_fun(rng, input_shape):
        params = []
        for init in init_funs:
            rng, layer_rng = random.split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params, inputs, **kwargs):
        for fun, param, rng in zip(apply_funs, params, _keys(kwargs.pop("rng", None), len(layers))):
            inputs = fun(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers):
    """One layer from several that stand side by side; see `FanOut` and `FanInSum`.

    Args:
        *layers: the layers, at least one.

    Returns:
        a layer, (init_fun, apply_fun), from a list of arrays of any shapes and dtypes, one for each layer, to the
        list of their outputs.

    Raises:
        ValueError: there are no layers.

    Example:
        >>> import weft
        >>> from weft.example_libraries import stax
        >>> stax.parallel(stax.Dense(8), stax.Identity)[0](weft.random.key(0), [(2, 4), (2, 4)])[0]
        ((2, 8), (2, 4))
    """
    init_funs, apply_funs = zip(*layers)

    def init_fun(rng, input_shape):
        return tuple(
            zip(*[init(key, shape) for init, key, shape in zip(init_funs, random.split(rng, len(layers)), input_shape)])
        )

    def apply_fun(params, inputs, **kwargs):
        rngs = _keys(kwargs.pop("rng", None), len(layers))
        return [f(p, x, rng=r, **kwargs) for f, p, x, r in zip(apply_funs, params, inputs, rngs)]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable):
    """A layer whose construction depends on the shape of its inputs.

    Args:
        make_layer: a function from the shape of the inputs, a tuple of ints, to a layer.

    Returns:
        a layer, (init_fun, apply_fun). init_fun(rng, input_shape) returns (output_shape, params), and
        apply_fun(params, inputs, rng=None) the outputs, of the dtype of the inputs.

    Example:
        >>> import weft
        >>> from weft.example_libraries import stax
        >>> stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))[0](weft.random.key(0), (2, 4))[0]
        (2, 8)
    """
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )


def __dir__() -> list[str]:
    return sorted(__all__)
