"""Derivatives with respect to sparse arrays: of their stored elements, in arrays with the same indices."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from ...api import autodiff
from ... import numpy as jnp
from ...base.source_info import api_boundary
from ...base.tree import tree_flatten, tree_unflatten
from .base import JAXSparse
from .bcoo import BCOO
from .transform import _is_sparse


def _apart(tree: Any) -> tuple[list, Callable]:
    """(what is differentiated: dense leaves, and the data of sparse ones; the function that puts such values in
    their places).
    """
    leaves, structure = tree_flatten(tree, is_leaf=_is_sparse)

    def together(values: Sequence, make: Callable | None = None):
        out = []
        for leaf, value in zip(leaves, values):
            if not isinstance(leaf, JAXSparse):
                out.append(value)
            elif make is not None:
                out.append(make(leaf, value))
            else:
                children, aux = leaf.tree_flatten()
                out.append(type(leaf).tree_unflatten(aux, (value, *children[1:])))
        return tree_unflatten(structure, out)

    return [x.data if isinstance(x, JAXSparse) else x for x in leaves], together


def _derivative(transform: Callable, fun: Callable, argnums, has_aux: bool, kwargs: dict, result: Callable):
    """`transform` of `fun` as a function of the numbers in its arguments `argnums`."""

    @functools.wraps(fun)
    @api_boundary
    def wrapped(*args, **kw):
        nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        if any(not -len(args) <= n < len(args) for n in nums):
            raise ValueError(f"argnums {argnums} must name positional arguments, of which there are {len(args)}.")
        nums = tuple(n % len(args) for n in nums)
        values, together = _apart(tuple(args[n] for n in nums))

        def of_values(values):
            full = list(args)
            for n, x in zip(nums, together(values)):
                full[n] = x
            return fun(*full, **kw)

        pick = lambda tree: tree[0] if isinstance(argnums, int) else tree
        return result(
            transform(of_values, has_aux=has_aux, **kwargs)(values), lambda new, make=None: pick(together(new, make))
        )

    return wrapped


def value_and_grad(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs
) -> Callable[..., tuple[Any, Any]]:
    """`weft.value_and_grad` that takes sparse arguments. Their gradients are sparse, with the same indices.

    Args:
        fun: a function of arrays, sparse or dense, that returns a real floating-point scalar.
        argnums: which positional arguments are differentiated; an int or a sequence of ints.
        has_aux: whether `fun` returns a pair (scalar, other values).
        **kwargs: other options of `weft.value_and_grad`.

    Returns:
        a function of the same arguments that returns (value, gradients).

    Raises:
        ValueError: `argnums` names an argument that does not exist.
        TypeError: the result is not a real scalar.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.value_and_grad(lambda m: (m @ jnp.arange(2.)).sum())(sparse.eye(2))[1].data
        Array([0., 1.], dtype=float32)
    """
    return _derivative(autodiff.value_and_grad, fun, argnums, has_aux, kwargs, lambda out, pack: (out[0], pack(out[1])))


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs) -> Callable:
    """`weft.grad` that takes sparse arguments. Their gradients are sparse, with the same indices.

    Args:
        fun: a function of arrays, sparse or dense, that returns a real floating-point scalar.
        argnums, has_aux: as for `value_and_grad`.
        **kwargs: other options of `weft.grad`.

    Returns:
        a function of the same arguments that returns the gradients, or (gradients, other values) with `has_aux`.

    Raises:
        ValueError: `argnums` names an argument that does not exist.
        TypeError: the result is not a real scalar.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.grad(lambda m: jnp.sum(m @ jnp.arange(2.)))(sparse.eye(2)).data
        Array([0., 1.], dtype=float32)
    """
    return _derivative(
        autodiff.grad, fun, argnums, has_aux, kwargs, lambda out, pack: (pack(out[0]), out[1]) if has_aux else pack(out)
    )


def _jacobian(which: Callable, fun: Callable, argnums, has_aux: bool, kwargs: dict) -> Callable:
    def checked(f):
        @functools.wraps(f)
        def g(*args, **kw):
            out = f(*args, **kw)
            if any(isinstance(x, JAXSparse) for x in tree_flatten(out[0] if has_aux else out, is_leaf=_is_sparse)[0]):
                raise TypeError("a Jacobian of a function with a sparse result: return result.todense().")
            return out

        return g

    def block(leaf, jacobian):
        if not isinstance(leaf, BCOO):
            raise NotImplementedError(f"Jacobians with respect to {type(leaf).__name__} arrays; use BCOO.")
        outer = jacobian.shape[: jacobian.ndim - leaf.data.ndim]
        indices = jnp.broadcast_to(leaf.indices, (*(1,) * len(outer), *leaf.indices.shape))
        return BCOO(
            (jacobian, indices),
            shape=(*outer, *leaf.shape),
            indices_sorted=leaf.indices_sorted,
            unique_indices=leaf.unique_indices,
        )

    def result(out, pack):
        jacobians, aux = out if has_aux else (out, None)
        # the result's structure is outside, the arguments' inside
        leaves, structure = tree_flatten(
            jacobians, is_leaf=lambda x: isinstance(x, list) and not any(isinstance(v, (list, tuple, dict)) for v in x)
        )
        blocks = tree_unflatten(structure, [pack(new, block) for new in leaves])
        return (blocks, aux) if has_aux else blocks

    return _derivative(which, checked(fun), argnums, has_aux, kwargs, result)


def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs) -> Callable:
    """`weft.jacfwd` that takes BCOO arguments. Their blocks of the Jacobian are sparse; the axes of the result stand in
    front, as batch axes.

    Args:
        fun: a function of arrays, sparse or dense, that returns dense floating-point arrays of any shapes.
        argnums, has_aux: as for `value_and_grad`.
        **kwargs: other options of `weft.jacfwd`.

    Returns:
        a function of the same arguments that returns the Jacobian, or (Jacobian, other values) with `has_aux`.

    Raises:
        ValueError: `argnums` names an argument that does not exist.
        TypeError: the result is sparse. Return result.todense().
        NotImplementedError: an argument is sparse, but not a BCOO.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.jacfwd(lambda m: m @ jnp.ones(2))(sparse.eye(2))
        BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _jacobian(autodiff.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs) -> Callable:
    """`weft.jacrev` that takes BCOO arguments. Their blocks of the Jacobian are sparse; the axes of the result stand in
    front, as batch axes.

    Args:
        fun: a function of arrays, sparse or dense, that returns dense floating-point arrays of any shapes.
        argnums, has_aux: as for `value_and_grad`.
        **kwargs: other options of `weft.jacrev`.

    Returns:
        a function of the same arguments that returns the Jacobian, or (Jacobian, other values) with `has_aux`.

    Raises:
        ValueError: `argnums` names an argument that does not exist.
        TypeError: the result is sparse. Return result.todense().
        NotImplementedError: an argument is sparse, but not a BCOO.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.jacrev(lambda m: m @ jnp.ones(2))(sparse.eye(2))
        BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _jacobian(autodiff.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
