"""jnp.vectorize: a function of core arrays over all leading axes, which broadcast."""

from __future__ import annotations

import re
from functools import wraps
from typing import TYPE_CHECKING, Any, Callable, Collection

from ..core.trace import Axis
from ..primitives import linear
from ..primitives.rules import shape_of
from ..transforms.batch import batch_flat, to_front
from ..base.tree import tree_flatten
from .creation import asarray
from .util import broadcast_shapes

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["vectorize"]
_NAME = r"\w+"
_CORE = rf"\((?:{_NAME}(?:,{_NAME})*)?,?\)"
_SIGNATURE = re.compile(rf"^{_CORE}(?:,{_CORE})*->{_CORE}(?:,{_CORE})*$")


def _parse(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    text = re.sub(r"\s+", "", signature)
    if not _SIGNATURE.match(text):
        raise ValueError(f"not a valid gufunc signature: {signature!r}. Write for example '(n,m),(m)->(n)'.")
    ins, outs = ([tuple(re.findall(_NAME, core)) for core in re.findall(_CORE, side)] for side in text.split("->"))
    return ins, outs


def _bind(sizes: dict[str, Any], dims: tuple[str, ...], shape: tuple[Any, ...], where: str) -> None:
    if len(shape) < len(dims):
        raise ValueError(
            f"{where} has rank {len(shape)}, but its core dimensions {dims} need at least {len(dims)}: shape {shape}."
        )
    for name, n in zip(dims, shape[len(shape) - len(dims) :]):
        if sizes.setdefault(name, n) != n:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {n} vs {sizes[name]} ({where}).")


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """`pyfunc`, written for core arrays (scalars without a signature), over any leading axes of its arguments.

    Args:
        pyfunc: function of arrays or scalars.
        excluded: positions and names of arguments that are passed as they are.
        signature: core dimensions, for example '(n,m),(m)->(n)'.

    Returns:
        function that takes arrays whose leading axes broadcast, and returns arrays of the dtypes that pyfunc returns.

    Raises:
        ValueError: for a malformed signature, or arguments whose core dimensions do not fit it.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.vectorize(jnp.dot, signature='(n),(n)->()')(jnp.ones((4, 3)), jnp.ones(3)).shape
        (4,)
    """
    apart = set(excluded)
    if any(not isinstance(x, (str, int)) for x in apart):
        raise TypeError(f"vectorize: excluded holds positions and names, got {apart}.")
    parsed = None if signature is None else _parse(signature)

    @wraps(pyfunc)
    def vectorized(*args: Value, **kwargs: Any) -> Any:
        fixed_kwargs = {k: v for k, v in kwargs.items() if k in apart}
        named = {k: v for k, v in kwargs.items() if k not in apart}
        positions = [i for i in range(len(args)) if i not in apart and args[i] is not None]
        names = list(named)
        leaves = [asarray(args[i]) for i in positions] + [asarray(named[k]) for k in names]
        cores = [()] * len(leaves) if parsed is None else parsed[0]
        if len(cores) != len(leaves):
            raise TypeError(f"wrong number of positional arguments: expected {len(cores)}, got {len(leaves)}.")
        sizes: dict[Any, Any] = {}
        for k, (x, dims) in enumerate(zip(leaves, cores)):
            _bind(sizes, dims, shape_of(x), f"argument {k}")
        leads = [shape_of(x)[: len(shape_of(x)) - len(dims)] for x, dims in zip(leaves, cores)]
        lead = broadcast_shapes(leads) if leads else ()
        trees: list[Any] = []

        def call(*xs: Value) -> Any:
            full = list(args)
            for i, x in zip(positions, xs):
                full[i] = x
            out = pyfunc(*full, **dict(zip(names, xs[len(positions) :])), **fixed_kwargs)
            outs, tree = tree_flatten(out)
            outs = [asarray(o) for o in outs]
            trees.append(tree)
            if parsed is not None:
                if len(outs) != len(parsed[1]):
                    raise TypeError(
                        f"wrong number of results: the signature {signature!r} names {len(parsed[1])}, the function"
                        f" returned {len(outs)}."
                    )
                for k, (o, dims) in enumerate(zip(outs, parsed[1])):
                    if len(shape_of(o)) != len(dims):
                        raise ValueError(
                            f"result {k} has shape {shape_of(o)}, but the signature {signature!r} gives it core"
                            f" dimensions {dims}."
                        )
                    _bind(sizes, dims, shape_of(o), f"result {k}")
            return outs

        outs = _map(call, leaves, leads, lead)
        return trees[-1].unflatten(outs)

    return vectorized


def _map(call: Callable[..., Any], leaves: list[Any], leads: list[Any], lead: tuple[Any, ...]) -> list[Any]:
    """`call` over the leading axes `lead`; every argument has some of them, or size 1."""
    if not lead:
        return call(*leaves)
    axis = Axis(None, lead[0])
    dims: list[int | None] = []
    inner: list[Any] = []
    rests: list[Any] = []
    for x, mine in zip(leaves, leads):
        if len(mine) < len(lead):
            dims.append(None)
            inner.append(x)
            rests.append(mine)
        elif mine[0] == 1 and lead[0] != 1:
            dims.append(None)
            inner.append(linear.squeeze(x, (0,)))
            rests.append(mine[1:])
        else:
            dims.append(0)
            inner.append(x)
            rests.append(mine[1:])
    outs, out_dims = batch_flat(lambda *xs: _map(call, list(xs), rests, lead[1:]), axis, inner, dims)
    return [to_front(axis, o, d) for o, d in zip(outs, out_dims)]
