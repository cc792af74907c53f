"""Initial values of parameters: functions of (key, shape, dtype)."""
from __future__ import annotations

import math
from typing import Any, Callable, Sequence

from .. import dtypes
from .. import numpy as jnp
from .. import random

Initializer = Callable[..., Any]


def zeros(key, shape, dtype=float, out_sharding=None):
    """Zeros; `key` is not used."""
    return jnp.zeros(shape, dtypes.canonicalize(dtype))


def ones(key, shape, dtype=float, out_sharding=None):
    """Ones; `key` is not used."""
    return jnp.ones(shape, dtypes.canonicalize(dtype))


def constant(value, dtype=float) -> Initializer:
    """An initializer that fills with `value`."""
    def init(key, shape, dtype=dtype, out_sharding=None):
        return jnp.full(shape, value, dtypes.canonicalize(dtype))
    return init


def uniform(scale=1e-2, dtype=float) -> Initializer:
    """An initializer of uniform samples from [0, scale)."""
    def init(key, shape, dtype=dtype, out_sharding=None):
        dt = dtypes.canonicalize(dtype)
        return random.uniform(key, shape, dt) * jnp.array(scale, dt)
    return init


def normal(stddev=1e-2, dtype=float) -> Initializer:
    """An initializer of normal samples of the given standard deviation."""
    def init(key, shape, dtype=dtype, out_sharding=None):
        dt = dtypes.canonicalize(dtype)
        return random.normal(key, shape, dt) * jnp.array(stddev, dt)
    return init


def truncated_normal(stddev=1e-2, dtype=float, lower=-2.0, upper=2.0) -> Initializer:
    """An initializer of normal samples between `lower` and `upper`, times `stddev`."""
    def init(key, shape, dtype=dtype, out_sharding=None):
        dt = dtypes.canonicalize(dtype)
        return random.truncated_normal(key, lower, upper, shape, dt) * jnp.array(stddev, dt)
    return init


def _axes(axis) -> tuple:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _fans(shape: Sequence[int], in_axis, out_axis, batch_axis) -> tuple[float, float]:
    """How many inputs and outputs a weight of `shape` connects, receptive field included."""
    if len(shape) <= 1:
        raise ValueError(f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor. Must be at least 2D.")
    size = lambda axis: math.prod(shape[a] for a in _axes(axis))
    fan_in, fan_out = size(in_axis), size(out_axis)
    field = math.prod(shape) / fan_in / fan_out / size(batch_axis)
    return fan_in * field, fan_out * field


def variance_scaling(scale, mode: str, distribution: str, in_axis=-2, out_axis=-1, batch_axis=(), dtype=float) -> Initializer:
    """An initializer whose variance is scale / fan.

    Args:
        mode: the fan: 'fan_in', 'fan_out', 'fan_avg' or 'fan_geo_avg'.
        distribution: 'normal', 'truncated_normal' or 'uniform'.
        in_axis, out_axis, batch_axis: which axes of the shape are inputs, outputs and batches.
    """
    def init(key, shape, dtype=dtype, out_sharding=None):
        dt = dtypes.canonicalize(dtype)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2, "fan_geo_avg": math.sqrt(fan_in * fan_out)}
        if mode not in fans:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        variance = jnp.array(scale / fans[mode], dt)
        if distribution == "normal":
            return random.normal(key, shape, dt) * jnp.sqrt(variance)
        if distribution == "uniform":
            return random.uniform(key, shape, dt, -1) * jnp.sqrt(3 * variance)
        if distribution == "truncated_normal":      # the constant is the standard deviation of what lies within ±2
            stddev = jnp.sqrt(variance) / jnp.array(0.87962566103423978, dt)
            return random.truncated_normal(key, -2, 2, shape, dt) * stddev
        raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")
    return init


def _scaled(name: str, scale: float, mode: str, distribution: str):
    def make(in_axis=-2, out_axis=-1, batch_axis=(), dtype=float) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The initializer variance_scaling({scale}, {mode!r}, {distribution!r})."
    return make


glorot_uniform = xavier_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal = xavier_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal")
he_uniform = kaiming_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform")
he_normal = kaiming_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal")
