"""What the sparse formats share: their base class, their errors, and operations on one batch element at a time."""

from __future__ import annotations

import abc
import math
from typing import Any, Callable, NamedTuple, Sequence

from ...base.annotations import override
from ...base import dtypes
from ...base.hooks import Hook
from ... import numpy as jnp
from ...api.vmap import vmap


class SparseEfficiencyError(ValueError):
    """What was asked for would store a sparse array wastefully.

    Example:
        >>> from weft.experimental import sparse
        >>> try:
        ...     sparse.eye(3).update_layout(n_batch=1)
        ... except sparse.SparseEfficiencyError as e:
        ...     print('n_batch' in str(e))
        True
    """


class SparseEfficiencyWarning(UserWarning):
    """A sparse array is stored wastefully."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An array can't use a vendor's sparse kernels. weft has none and never warns so; the name is there for filters."""


class SparseInfo(NamedTuple):
    """What is known of a sparse array besides its buffers."""

    shape: tuple
    indices_sorted: bool = False
    unique_indices: bool = False


def _missing(name: str):
    def method(self, *args, **kwargs):
        raise NotImplementedError(
            f"{type(self).__name__} has no {name}; use BCOO (BCOO.fromdense, BCSR.to_bcoo), or todense()."
        )

    method.__name__ = name
    return method


# A function of arrays as one of sparse arrays; `transform`, whose rules make sparse arrays, defines it.
sparsified: Hook[[Callable[..., Any]], Callable[..., Any]] = Hook("sparsify")


def operator(function: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    """The method of an operator of two operands, of which one may be dense or a number."""
    ordered = (lambda x, y: function(y, x)) if reflected else function

    def method(self: Any, other: Any) -> Any:
        if dtypes.is_python_scalar(other):  # a number stays one: x ** 2
            return sparsified(lambda x: ordered(x, other))(self)
        return sparsified(ordered)(self, other)

    return method


class JAXSparse(abc.ABC):
    """Base of the sparse formats: an array of `shape` as a few buffers, a pytree of them.

    Example:
        >>> from weft.experimental import sparse
        >>> isinstance(sparse.eye(2), sparse.JAXSparse)
        True
    """

    __array_priority__ = 1000
    __array_ufunc__ = None  # NumPy's operators leave the work to ours
    __hash__ = None  # type: ignore[assignment]

    shape: tuple
    data: Any

    nse = property(lambda self: self.data.shape[-1], doc="How many elements are stored (for each batch).")
    dtype = property(lambda self: self.data.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    T = property(lambda self: self.transpose(), doc="The transposed array.")

    def _layout(self) -> dict:
        return {}

    @override
    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            layout = "".join(f", {k}={v}" for k, v in self._layout().items() if v)
            return f"{name}({dtypes.name(self.dtype)}{list(self.shape)}, nse={self.nse}{layout})"
        except Exception:  # buffers may be anything while a pytree is rebuilt
            return f"{name}(<invalid>)"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def block_until_ready(self):
        """Waits for the buffers."""
        for x in self.tree_flatten()[0]:
            x.block_until_ready()
        return self

    @abc.abstractmethod
    def tree_flatten(self):
        """(buffers, what is static)."""

    @classmethod
    @abc.abstractmethod
    def tree_unflatten(cls, aux_data, children):
        """The array of its buffers."""

    @abc.abstractmethod
    def transpose(self, axes=None):
        """The array with its axes in another order."""

    @abc.abstractmethod
    def todense(self):
        """The same as a dense array."""

    __add__ = _missing("__add__")
    __radd__ = _missing("__radd__")
    __sub__ = _missing("__sub__")
    __rsub__ = _missing("__rsub__")
    __mul__ = _missing("__mul__")
    __rmul__ = _missing("__rmul__")
    __neg__ = _missing("__neg__")
    __pos__ = _missing("__pos__")
    __matmul__ = _missing("__matmul__")
    __rmatmul__ = _missing("__rmatmul__")
    __getitem__ = _missing("__getitem__")
    sum = _missing("sum")


def each(f: Callable, n_batch: int) -> Callable:
    """`f` mapped over the first `n_batch` axes of its arguments."""
    for _ in range(n_batch):
        f = vmap(f)
    return f


def with_batch(x, batch: Sequence[int]):
    """`x` with its batch axes, which may have size 1, repeated to `batch`."""
    return jnp.broadcast_to(x, (*batch, *x.shape[len(batch) :]))


def inside(indices, sizes: Sequence[int]):
    """Which rows of indices lie inside; the others are padding."""
    if not sizes:
        return jnp.ones(indices.shape[:-1], bool)
    limits = jnp.array(sizes, indices.dtype).reshape((1,) * (indices.ndim - 1) + (len(sizes),))
    return jnp.all((indices >= 0) & (indices < limits), -1)


def spread(mask, like):
    """A mask with axes of size 1 appended, so that it broadcasts against `like`."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - mask.ndim))


def accumulate(shape: Sequence[int], dtype, index, values):
    """Zeros to which `values` are added at an index; of booleans, whether there is a true one."""
    places = jnp.zeros(shape, dtype).at[index]
    return (places.max if dtypes.is_bool(dtype) else places.add)(values, mode="drop")


def columns(indices) -> tuple:
    return tuple(indices[..., k] for k in range(indices.shape[-1]))
