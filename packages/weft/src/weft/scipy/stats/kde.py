"""Density estimates by sums of normal densities."""

from __future__ import annotations

import math
from typing import Any, Callable

from ...base.annotations import override
from ... import lax
from ... import numpy as jnp
from ... import random
from ...lax import linalg
from ...numpy.util import on_device, operand, promote_inexact
from ...base.registration import register_pytree_node_class
from .. import special


@register_pytree_node_class
class gaussian_kde:
    """The density of which `dataset`, of shape (d, n) or (n,), is a sample: a normal density around each point, with
    the sample's covariance in small.

    `bw_method` is 'scott' (the default), 'silverman', the factor itself, or a function of the estimate that gives it;
    `weights` has shape (n,).

    Raises:
        ValueError: for one point or none, weights of another shape, or an unknown bw_method.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy import stats
        >>> stats.gaussian_kde(jnp.array([0., 1., 2.])).evaluate(jnp.array([0., 2.])).round(2).tolist()
        [0.25, 0.25]
    """

    __slots__ = ("neff", "dataset", "weights", "covariance", "inv_cov")
    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: Any, bw_method: str | float | Callable | None = None, weights: Any = None):
        (x,) = promote_inexact("gaussian_kde", dataset)
        x = jnp.atleast_2d(x)
        if jnp.issubdtype(x.dtype, jnp.complexfloating):
            raise NotImplementedError("gaussian_kde: dataset must be real; complex numbers have no density estimate.")
        if x.ndim != 2:
            raise ValueError(f"gaussian_kde: dataset must have shape (d, n) or (n,), got {x.shape}.")
        if not x.size > 1:
            raise ValueError(f"gaussian_kde: dataset must have several elements, got shape {x.shape}.")
        d, n = x.shape
        if weights is None:
            w = jnp.full(n, 1 / n, x.dtype)
        else:
            x, w = promote_inexact("gaussian_kde", x, weights)
            w = jnp.atleast_1d(w)
            if w.ndim != 1:
                raise ValueError(f"gaussian_kde: weights must be one-dimensional, got shape {w.shape}.")
            if w.shape[0] != n:
                raise ValueError(
                    f"gaussian_kde: there must be one weight for each of the {n} points, got {w.shape[0]}."
                )
            w = w / w.sum()
        put = object.__setattr__
        put(self, "dataset", x)
        put(self, "weights", w)
        put(self, "neff", 1 / jnp.square(w).sum())
        if bw_method is None or bw_method == "scott":
            factor = self.neff ** (-1 / (d + 4))
        elif isinstance(bw_method, str):
            if bw_method != "silverman":
                raise ValueError(
                    f"gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function, got {bw_method!r}."
                )
            factor = (self.neff * (d + 2) / 4) ** (-1 / (d + 4))
        elif callable(bw_method):
            factor = bw_method(self)
        else:
            factor = on_device(operand("gaussian_kde", bw_method))
            if factor.ndim:
                raise ValueError(f"gaussian_kde: bw_method must be a scalar, got shape {factor.shape}.")
        spread = jnp.atleast_2d(jnp.cov(x, rowvar=True, bias=False, aweights=w))
        put(self, "covariance", spread * jnp.square(factor))
        put(self, "inv_cov", jnp.linalg.inv(spread) / jnp.square(factor))

    @override
    def __setattr__(self, name: str, value):
        raise AttributeError(f"gaussian_kde is immutable: make another one instead of assigning {name!r}.")

    @override
    def __repr__(self):
        return f"gaussian_kde({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"

    def tree_flatten(self):
        return tuple(getattr(self, name) for name in self.__slots__), None

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        out = object.__new__(cls)
        for name, value in zip(cls.__slots__, children):
            object.__setattr__(out, name, value)
        return out

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of points."""
        return self.dataset.shape[1]

    def _points(self, points):
        (x,) = promote_inexact("gaussian_kde", points)
        x = jnp.atleast_2d(x)
        if x.shape[0] == 1 and x.ndim == 2 and x.shape[1] == self.d and self.d != 1:
            x = x.reshape(self.d, 1)
        if x.ndim != 2 or x.shape[0] != self.d:
            raise ValueError(
                f"gaussian_kde: points must have {self.d} rows, as many as the dataset has dimensions, got shape"
                f" {x.shape}."
            )
        return x

    def _logs(self, points):
        """The logarithms of the parts of the density, for each point and each of the data."""
        x = self._points(points)
        factor = jnp.linalg.cholesky(self.inv_cov)
        y, z = jnp.matmul(factor.T, x), jnp.matmul(factor.T, self.dataset)
        scale = jnp.log(jnp.diagonal(factor)).sum() - self.d / 2 * math.log(2 * math.pi)
        one = lambda point: special.logsumexp(scale - jnp.square(point[:, None] - z).sum(0) / 2, b=self.weights)
        return lax.map(one, y.T)  # point by point: a matrix of all distances may be too large

    def evaluate(self, points):
        """The density at points of shape (d, m), as (m,)."""
        return jnp.exp(self._logs(points))

    __call__ = evaluate

    def pdf(self, x):
        """As `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x):
        """The logarithm of `evaluate`, exact where the density underflows."""
        return self._logs(x)

    def integrate_gaussian(self, mean, cov):
        """The integral of the estimate times a normal density of a mean (d,) and a covariance (d, d)."""
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"gaussian_kde: mean must have shape ({self.d},), got {mean.shape}.")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"gaussian_kde: cov must have shape {(self.d, self.d)}, got {cov.shape}.")
        return self._overlap(self.dataset - mean[:, None], self.covariance + cov, self.weights)

    def integrate_box_1d(self, low, high):
        """The integral of a density of one dimension from low to high."""
        if self.d != 1:
            raise ValueError(f"gaussian_kde: integrate_box_1d is for one dimension; this estimate has {self.d}.")
        if jnp.ndim(low) or jnp.ndim(high):
            raise ValueError("gaussian_kde: the limits of integrate_box_1d must be scalars.")
        sigma = jnp.sqrt(self.covariance[0, 0])
        between = special.ndtr((high - self.dataset[0]) / sigma) - special.ndtr((low - self.dataset[0]) / sigma)
        return (self.weights * between).sum()

    def integrate_kde(self, other: "gaussian_kde"):
        """The integral of the product of two estimates."""
        if other.d != self.d:
            raise ValueError(
                f"gaussian_kde: both estimates must have the same number of dimensions, got {self.d} and {other.d}."
            )
        differences = (self.dataset[:, :, None] - other.dataset[:, None, :]).reshape(self.d, -1)
        return self._overlap(
            differences, self.covariance + other.covariance, jnp.outer(self.weights, other.weights).ravel()
        )

    def _overlap(self, differences, cov, weights):
        factor = jnp.linalg.cholesky(cov)
        y = linalg.triangular_solve(factor, differences, left_side=True, lower=True)
        scale = jnp.prod(jnp.diagonal(factor)) * (2 * math.pi) ** (self.d / 2)
        return (weights * jnp.exp(-jnp.square(y).sum(0) / 2)).sum() / scale

    def resample(self, key, shape=()):
        """Points drawn from the estimate, of shape (d, *shape)."""
        which, around = random.split(key)
        chosen = random.choice(which, self.n, shape=shape, p=self.weights)
        noise = random.multivariate_normal(
            around, jnp.zeros(self.d, self.covariance.dtype), self.covariance, shape=shape, dtype=self.dataset.dtype
        )
        return self.dataset[:, chosen] + jnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds, high_bounds, maxpts=None):
        """Not computed: SciPy integrates over boxes of several dimensions by a routine without an equal here."""
        raise NotImplementedError(
            "gaussian_kde.integrate_box is not computed; use integrate_box_1d, or average over resample(key, (n,))."
        )

    def set_bandwidth(self, bw_method=None):
        """Not possible: estimates are immutable."""
        raise NotImplementedError(
            "gaussian_kde.set_bandwidth: estimates are immutable; make a new one with gaussian_kde(dataset, bw_method)."
        )
